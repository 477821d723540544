//! A network between a client and a PostgreSQL server that breaks where a test says.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::thread;

/// Where the connection of the next commit breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Break {
    /// Before the server hears of it.
    BeforeCommit = 1,
    /// After the server has done it, before the client hears of that.
    AfterCommit = 2,
}

/// Passes bytes on, until a commit is to be broken. Its threads end with their connections.
pub struct Proxy {
    port: u16,
    breaks: Arc<AtomicU8>,
    broken: Arc<AtomicUsize>,
    silences: Arc<AtomicUsize>,
}

impl Proxy {
    pub fn before(server_port: u16) -> Proxy {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (breaks, broken) = (Arc::new(AtomicU8::new(0)), Arc::new(AtomicUsize::new(0)));
        let silences = Arc::new(AtomicUsize::new(0));
        let (of_thread, counted, left) = (Arc::clone(&breaks), Arc::clone(&broken), Arc::clone(&silences));
        thread::spawn(move || {
            let mut held = Vec::new();
            for client in listener.incoming().flatten() {
                if left.load(Ordering::SeqCst) > 0 {
                    held.push(client);
                    left.fetch_sub(1, Ordering::SeqCst);
                    continue;
                }
                let Ok(server) = TcpStream::connect(("127.0.0.1", server_port)) else { continue };
                let (breaks, broken) = (Arc::clone(&of_thread), Arc::clone(&counted));
                thread::spawn(move || serve(client, server, &breaks, &broken));
            }
        });
        Proxy { port, breaks, broken, silences }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Breaks the connection of the next commit.
    pub fn break_once(&self, wanted: Break) {
        self.breaks.store(wanted as u8, Ordering::SeqCst);
    }

    /// Takes so many of the next connections and says nothing on them, as a server that hangs.
    pub fn be_silent(&self, connections: usize) {
        self.silences.store(connections, Ordering::SeqCst);
    }

    /// How many of these are still to come.
    pub fn silences_left(&self) -> usize {
        self.silences.load(Ordering::SeqCst)
    }

    /// How many were broken.
    pub fn broken(&self) -> usize {
        self.broken.load(Ordering::SeqCst)
    }
}

/// One connection: requests on this thread, answers on another.
fn serve(mut client: TcpStream, mut server: TcpStream, breaks: &AtomicU8, broken: &AtomicUsize) {
    let (mut from_server, mut to_client) = (server.try_clone().unwrap(), client.try_clone().unwrap());
    let holds_answers = Arc::new(AtomicU8::new(0));
    let held = Arc::clone(&holds_answers);
    let answers = thread::spawn(move || {
        let mut buffer = [0; 16 * 1024];
        loop {
            let read = from_server.read(&mut buffer).unwrap_or(0);
            if read == 0 || held.load(Ordering::SeqCst) != 0 {
                // The server has answered: what the client waits for is done.
                let _gone = to_client.shutdown(Shutdown::Both);
                let _gone = from_server.shutdown(Shutdown::Both);
                return;
            }
            if to_client.write_all(&buffer[..read]).is_err() {
                return;
            }
        }
    });
    let mut buffer = [0; 16 * 1024];
    loop {
        let read = client.read(&mut buffer).unwrap_or(0);
        if read == 0 {
            break;
        }
        let is_commit = buffer[..read].windows(7).any(|bytes| bytes == b"COMMIT\0");
        let wanted = if is_commit { breaks.swap(0, Ordering::SeqCst) } else { 0 };
        if wanted != 0 {
            broken.fetch_add(1, Ordering::SeqCst);
        }
        if wanted == Break::BeforeCommit as u8 {
            break;
        }
        if wanted == Break::AfterCommit as u8 {
            holds_answers.store(1, Ordering::SeqCst);
        }
        if server.write_all(&buffer[..read]).is_err() {
            break;
        }
    }
    let _gone = client.shutdown(Shutdown::Both);
    let _gone = server.shutdown(Shutdown::Write);
    let _panicked = answers.join();
}
