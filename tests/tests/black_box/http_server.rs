//! A small HTTP server of the tests. It remembers what it was asked, and answers whatever a test wants.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A request that arrived.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// The path with the query.
    pub(crate) path: String,
    /// The headers, with names in small letters.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
    pub(crate) at: Instant,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// A server that ends with its value.
pub(crate) struct Server {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts a server that calls `respond` for each request, on a thread of its own.
    pub(crate) fn start(respond: impl Fn(&Request, &mut TcpStream) + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("its address");
        let (requests, ends) = (Arc::<Mutex<Vec<Request>>>::default(), Arc::new(AtomicBool::new(false)));
        let (seen, is_over, respond) = (Arc::clone(&requests), Arc::clone(&ends), Arc::new(respond));
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if is_over.load(Ordering::Acquire) {
                    return;
                }
                let Ok(mut stream) = stream else { continue };
                let (seen, respond) = (Arc::clone(&seen), Arc::clone(&respond));
                std::thread::spawn(move || {
                    let Some(request) = read(&stream) else { return };
                    seen.lock().expect("no panic").push(request.clone());
                    respond(&request, &mut stream);
                });
            }
        });
        Server { address, requests, ends, thread: Some(thread) }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn host(&self) -> String {
        self.address.to_string()
    }

    /// What arrived, in its order.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().expect("no panic").clone()
    }

    /// The requests for paths that begin so.
    pub(crate) fn requests_for(&self, path: &str) -> Vec<Request> {
        self.requests().into_iter().filter(|request| request.path.starts_with(path)).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Release);
        let _woken = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ended = thread.join();
        }
    }
}

fn read(stream: &TcpStream) -> Option<Request> {
    let at = Instant::now();
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace();
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let mut body = vec![0; length.and_then(|(_, length)| length.parse().ok()).unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    Some(Request { method, path, headers, body: String::from_utf8_lossy(&body).into_owned(), at })
}

/// Sends a whole answer. `headers` are lines with their ends.
pub(crate) fn answer(stream: &mut TcpStream, status: &str, headers: &str, body: &str) {
    let length = body.len();
    let text =
        format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}");
    let _client_left = stream.write_all(text.as_bytes());
}

/// Sends a text and the same text again and again, until the client leaves.
pub(crate) fn for_ever(stream: &mut TcpStream, start: &str, again: &str, pause: Duration) {
    let mut text = start;
    while stream.write_all(text.as_bytes()).is_ok() {
        text = again;
        // A server that is slow on purpose.
        std::thread::sleep(pause);
    }
}
