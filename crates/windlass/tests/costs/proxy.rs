//! A proxy in front of a PostgreSQL server that counts round trips. Statements that are sent together are one round
//! trip. Notifications are not counted: they are limited to some per second, so that their number for each job
//! depends on the speed of the machine.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use postgres::config::Host;

/// The message with which a server ends each answer: ReadyForQuery.
const READY: u8 = b'Z';
/// A part of every notification.
const NOTIFICATION: &[u8] = b"pg_notify($1";

/// Connections to this proxy are passed on to the server. The proxy ends with the test process.
pub(crate) struct Proxy {
    address: String,
    answers: Arc<AtomicU64>,
}

impl Proxy {
    /// Starts a proxy for the server of a URL.
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

    /// The URL of the same database through the proxy.
    pub(crate) fn address(&self) -> String {
        self.address.clone()
    }

    /// The number of round trips so far.
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
        // When one side closes a connection, so does the other.
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

/// Passes bytes on as they arrive, so that statements which are sent together stay together.
fn pass_on(client: &mut TcpStream, server: &mut TcpStream, is_asked: &AtomicBool) -> io::Result<()> {
    let mut buffer = vec![0; 1 << 20];
    loop {
        let count = client.read(&mut buffer)?;
        if count == 0 {
            return Ok(());
        }
        let is_notification = buffer[..count].windows(NOTIFICATION.len()).any(|part| part == NOTIFICATION);
        is_asked.store(!is_notification, Ordering::SeqCst);
        server.write_all(&buffer[..count])?;
    }
}

/// Passes messages on one by one. A message has one byte for its type, four for its length (including these four),
/// and the rest.
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
