//! Stands before a PostgreSQL server and counts round trips: how often it answers what it was asked since its last
//! answer. Statements that are sent together are one. Telling other processes of changes is none: that is done so many
//! times a second at most, so how often it is for one job says how fast the machine is.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use postgres::config::Host;

/// The message with which a server ends each answer: ReadyForQuery.
const READY: u8 = b'Z';
/// What tells other processes.
const TELLING: &[u8] = b"pg_notify($1";

/// Connections to it go on to the server. It ends with the test process.
pub(crate) struct Proxy {
    address: String,
    answers: Arc<AtomicU64>,
}

impl Proxy {
    /// To the server of a URL.
    pub(crate) fn to(url: &str) -> Proxy {
        let (base, schema) = url.split_once("schema=").unwrap();
        let config: postgres::Config = base.trim_end_matches(['?', '&']).parse().unwrap();
        let (Some(Host::Tcp(host)), Some(port)) = (config.get_hosts().first(), config.get_ports().first())
        else {
            panic!("{url} is no address of a network")
        };
        let server = (host.clone(), *port);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let here = listener.local_addr().unwrap().port();
        let (user, database) = (config.get_user().unwrap(), config.get_dbname().unwrap());
        let password = config
            .get_password()
            .map_or_else(String::new, |password| format!(":{}", std::str::from_utf8(password).unwrap()));
        let address = format!(
            "postgres://{user}{password}@127.0.0.1:{here}/{database}?sslmode=disable&schema={schema}"
        );
        let answers = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&answers);
        thread::spawn(move || {
            for client in listener.incoming() {
                let server = TcpStream::connect(&server).unwrap();
                connect(client.unwrap(), server, &counted).unwrap();
            }
        });
        Proxy { address, answers }
    }

    /// As it is named to who is to go through it.
    pub(crate) fn address(&self) -> String {
        self.address.clone()
    }

    /// How often the server was waited for so far.
    pub(crate) fn answers(&self) -> u64 {
        self.answers.load(Ordering::SeqCst)
    }
}

fn connect(client: TcpStream, server: TcpStream, answers: &Arc<AtomicU64>) -> io::Result<()> {
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (mut from_client, mut to_server) = (client.try_clone()?, server.try_clone()?);
    let is_asked = Arc::new(AtomicBool::new(false));
    let asking = Arc::clone(&is_asked);
    thread::spawn(move || {
        // A connection that ends does so on both sides.
        let _ended = pass_on(&mut from_client, &mut to_server, &asking);
        let _gone = to_server.shutdown(Shutdown::Both);
    });
    let answers = Arc::clone(answers);
    thread::spawn(move || {
        let _ended = forward(&server, &client, &is_asked, &answers);
        let _gone = client.shutdown(Shutdown::Both);
    });
    Ok(())
}

/// As the bytes come: what is sent together comes together.
fn pass_on(client: &mut TcpStream, server: &mut TcpStream, is_asked: &AtomicBool) -> io::Result<()> {
    let mut buffer = vec![0; 1 << 20];
    loop {
        let count = client.read(&mut buffer)?;
        if count == 0 {
            return Ok(());
        }
        let is_telling = buffer[..count].windows(TELLING.len()).any(|part| part == TELLING);
        is_asked.store(!is_telling, Ordering::SeqCst);
        server.write_all(&buffer[..count])?;
    }
}

/// Message by message: a byte that says what it is, four that say how long it is with these four, the rest.
fn forward(
    mut server: &TcpStream,
    mut client: &TcpStream,
    is_asked: &AtomicBool,
    answers: &AtomicU64,
) -> io::Result<()> {
    let mut buffered = io::BufReader::new(&mut server);
    loop {
        let mut head = [0; 5];
        buffered.read_exact(&mut head)?;
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
        let mut message = head.to_vec();
        message.resize(1 + length as usize, 0);
        buffered.read_exact(&mut message[5..])?;
        if head[0] == READY && is_asked.swap(false, Ordering::SeqCst) {
            answers.fetch_add(1, Ordering::SeqCst);
        }
        client.write_all(&message)?;
    }
}
