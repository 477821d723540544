//! A network between a client and a PostgreSQL server that breaks when a test says so.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

/// Where the connection breaks at the next commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Break {
    /// Before the server gets the message.
    BeforeCommit = 1,
    /// After the server has committed, before the client gets the answer.
    AfterCommit = 2,
    /// The message does not arrive, and neither side notices.
    Hold = 3,
    /// The client notices a broken connection. The message arrives after [`Proxy::deliver`].
    Late = 4,
}

/// Passes bytes on until it breaks a commit. Its threads end with their connections.
pub struct Proxy {
    port: u16,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    breaks: AtomicU8,
    broken: AtomicUsize,
    silences: AtomicUsize,
    is_closed: AtomicBool,
    /// Whether a late message may arrive.
    delivers: Mutex<bool>,
    delivery: Condvar,
    /// Late messages that the server has answered.
    late_answered: AtomicUsize,
}

impl Proxy {
    pub fn before(server_port: u16) -> Proxy {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared::default());
        let of_thread = Arc::clone(&shared);
        thread::spawn(move || {
            let mut held = Vec::new();
            for client in listener.incoming().flatten() {
                if of_thread.silences.load(Ordering::SeqCst) > 0 {
                    held.push(client);
                    of_thread.silences.fetch_sub(1, Ordering::SeqCst);
                    continue;
                }
                if of_thread.is_closed.load(Ordering::SeqCst) {
                    continue;
                }
                let Ok(server) = TcpStream::connect(("127.0.0.1", server_port)) else { continue };
                let shared = Arc::clone(&of_thread);
                thread::spawn(move || serve(client, server, &shared));
            }
        });
        Proxy { port, shared }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Breaks the connection at the next commit.
    pub fn break_once(&self, wanted: Break) {
        *self.shared.delivers.lock().unwrap() = false;
        self.shared.breaks.store(wanted as u8, Ordering::SeqCst);
    }

    /// Lets a late commit arrive.
    pub fn deliver(&self) {
        *self.shared.delivers.lock().unwrap() = true;
        self.shared.delivery.notify_all();
    }

    /// How many late messages the server has answered.
    pub fn late_answered(&self) -> usize {
        self.shared.late_answered.load(Ordering::SeqCst)
    }

    /// Sets whether the server refuses new connections. Open connections stay.
    pub fn set_closed(&self, is_closed: bool) {
        self.shared.is_closed.store(is_closed, Ordering::SeqCst);
    }

    /// Accepts the next connections and never answers on them, like a server that hangs.
    pub fn accept_silently(&self, connections: usize) {
        self.shared.silences.store(connections, Ordering::SeqCst);
    }

    /// How many silent connections are left.
    pub fn silent_connections_left(&self) -> usize {
        self.shared.silences.load(Ordering::SeqCst)
    }

    /// How many connections were broken.
    pub fn broken(&self) -> usize {
        self.shared.broken.load(Ordering::SeqCst)
    }
}

/// Serves one connection: requests on this thread, answers on another.
fn serve(mut client: TcpStream, mut server: TcpStream, shared: &Shared) {
    let (mut from_server, mut to_client) = (server.try_clone().unwrap(), client.try_clone().unwrap());
    let holds_answers = Arc::new(AtomicU8::new(0));
    let held = Arc::clone(&holds_answers);
    let answers = thread::spawn(move || {
        let mut buffer = [0; 16 * 1024];
        loop {
            let read = from_server.read(&mut buffer).unwrap_or(0);
            if read == 0 || held.load(Ordering::SeqCst) != 0 {
                // The server has answered, so the commit is done.
                let _gone = to_client.shutdown(Shutdown::Both);
                let _gone = from_server.shutdown(Shutdown::Both);
                return;
            }
            if to_client.write_all(&buffer[..read]).is_err() {
                return;
            }
        }
    });
    let (mut buffer, mut only_reads, mut is_late) = ([0; 16 * 1024], false, false);
    loop {
        let read = client.read(&mut buffer).unwrap_or(0);
        if read == 0 {
            break;
        }
        let has = |text: &[u8]| buffer[..read].windows(text.len()).any(|bytes| bytes == text);
        if has(b"BEGIN") {
            only_reads = has(b"READ ONLY");
        }
        let is_commit = has(b"COMMIT\0") && !only_reads;
        let wanted = if is_commit { shared.breaks.swap(0, Ordering::SeqCst) } else { 0 };
        if wanted == Break::Late as u8 {
            is_late = true;
            let _gone = client.shutdown(Shutdown::Both);
        }
        if wanted == Break::AfterCommit as u8 {
            holds_answers.store(1, Ordering::SeqCst);
        }
        if wanted != 0 {
            shared.broken.fetch_add(1, Ordering::SeqCst);
        }
        if wanted == Break::BeforeCommit as u8 {
            break;
        }
        if wanted == Break::Hold as u8 {
            // Until the server closes the connection.
            let _panicked = answers.join();
            return;
        }
        if wanted == Break::Late as u8 {
            let delivers = shared.delivers.lock().unwrap();
            drop(shared.delivery.wait_while(delivers, |delivers| !*delivers).unwrap());
        }
        if server.write_all(&buffer[..read]).is_err() {
            break;
        }
    }
    let _gone = client.shutdown(Shutdown::Both);
    let _gone = server.shutdown(Shutdown::Write);
    let _panicked = answers.join();
    if is_late {
        shared.late_answered.fetch_add(1, Ordering::SeqCst);
    }
}
