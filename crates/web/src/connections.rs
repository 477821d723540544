//! Connections, and how many there may be. A client that sends nothing keeps none for long, and none at all if others need it.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;

use crate::answer::IsStream;
use crate::door::{Door, Peer, router};
use crate::slow_writes::WithWriteLimit;
use crate::tls::CurrentIdentity;

/// How many connections there are at most. A further one takes the place of the oldest that has no request.
const CONNECTIONS_MAX: usize = 512;
/// How long clients may take.
const TIME_LIMITS: TimeLimits =
    TimeLimits { head_max: Duration::from_secs(10), write_stall_max: Duration::from_secs(30) };
/// The longest head of a request.
const HEAD_BYTES_MAX: usize = 32 * 1024;
/// The most headers of a request.
const HEADERS_MAX: usize = 100;
/// The pause after the system gave no connection, for example because too many files are open.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How long a client may take.
#[derive(Debug, Clone, Copy)]
struct TimeLimits {
    /// For the head of a request, and for agreeing on keys before. A connection is kept as long without a request.
    head_max: Duration,
    /// While it takes none of an answer.
    write_stall_max: Duration,
}

/// Accepts connections until `stopped` is true.
pub(crate) async fn accept(
    listener: TcpListener,
    tls: Option<CurrentIdentity>,
    door: Arc<Door>,
    mut stopped: watch::Receiver<bool>,
) {
    let router = router(&door);
    drop(door);
    let connections = Arc::new(Connections::new(TIME_LIMITS));
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = end_of(&mut stopped) => return,
        };
        match accepted {
            Ok((stream, address)) => {
                let _slow = stream.set_nodelay(true);
                let acceptor = tls.as_ref().map(CurrentIdentity::acceptor);
                connections.serve(stream, acceptor, Peer(address.ip()), router.clone(), stopped.clone());
            }
            Err(error) => {
                tracing::debug!(%error, "the web server got no connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Waits until the server stops.
async fn end_of(stopped: &mut watch::Receiver<bool>) {
    // An error means that the sender is gone, which is an end too.
    let _stopped = stopped.wait_for(|stopped| *stopped).await;
}

/// The open connections, by the order in which they came.
struct Connections {
    limits: TimeLimits,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    next: u64,
    by_number: BTreeMap<u64, Connection>,
}

struct Connection {
    task: AbortHandle,
    /// Whether a request is being answered, or a stream is open.
    is_busy: Arc<AtomicBool>,
}

impl Connections {
    fn new(limits: TimeLimits) -> Connections {
        Connections { limits, open: Mutex::default() }
    }

    fn serve(
        self: &Arc<Self>,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        acceptor: Option<TlsAcceptor>,
        peer: Peer,
        router: Router,
        stopped: watch::Receiver<bool>,
    ) {
        let is_busy = Arc::new(AtomicBool::new(false));
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.by_number.len() >= CONNECTIONS_MAX && !open.close_oldest_idle() {
            // All are busy: the new client is told so by the end of its connection.
            return;
        }
        let number = open.next;
        open.next += 1;
        let own = OwnConnection { task: Arc::default(), is_busy: Arc::clone(&is_busy) };
        let requests = Requests { router, peer, own: own.clone() };
        let TimeLimits { head_max, write_stall_max } = self.limits;
        let stream = WithWriteLimit::new(stream, write_stall_max);
        let registered = Registered { connections: Arc::clone(self), number };
        let task = tokio::spawn(async move {
            match acceptor {
                None => serve_connection(stream, requests, head_max, stopped).await,
                Some(acceptor) => serve_with_tls(acceptor, stream, requests, head_max, stopped).await,
            }
            drop(registered);
        });
        let _first = own.task.set(task.abort_handle());
        open.by_number.insert(number, Connection { task: task.abort_handle(), is_busy });
    }
}

impl Open {
    /// Ends the oldest connection that has no request. Returns whether there was one.
    fn close_oldest_idle(&mut self) -> bool {
        let idle = self.by_number.iter().find(|(_, connection)| !connection.is_busy.load(Ordering::Relaxed));
        let Some(number) = idle.map(|(number, _)| *number) else { return false };
        if let Some(connection) = self.by_number.remove(&number) {
            connection.task.abort();
        }
        true
    }
}

/// The connection of a request.
#[derive(Clone)]
pub(crate) struct OwnConnection {
    task: Arc<OnceLock<AbortHandle>>,
    is_busy: Arc<AtomicBool>,
}

impl OwnConnection {
    /// The task, for requests that may have to end it.
    pub(crate) fn task(&self) -> Option<AbortHandle> {
        self.task.get().cloned()
    }

    /// Whether the server works for the client. While it waits for the client, another client may take the place.
    pub(crate) fn set_work(&self, work: ConnectionWork) {
        self.is_busy.store(work == ConnectionWork::Busy, Ordering::Relaxed);
    }
}

/// Whether the server works for the client of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectionWork {
    Busy,
    Waiting,
}

/// Removes a connection from the list at its end.
struct Registered {
    connections: Arc<Connections>,
    number: u64,
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.connections.open.lock().unwrap_or_else(PoisonError::into_inner).by_number.remove(&self.number);
    }
}

/// Agrees on keys first. Meanwhile the connection counts as one without a request.
async fn serve_with_tls(
    acceptor: TlsAcceptor,
    stream: impl AsyncRead + AsyncWrite + Unpin,
    requests: Requests,
    head_max: Duration,
    mut stopped: watch::Receiver<bool>,
) {
    let handshake = tokio::time::timeout(head_max, acceptor.accept(stream));
    let agreed = tokio::select! {
        agreed = handshake => agreed,
        () = end_of(&mut stopped) => return,
    };
    match agreed {
        Ok(Ok(stream)) => serve_connection(stream, requests, head_max, stopped).await,
        Ok(Err(error)) => tracing::trace!(%error, "a client of the web server did not agree on keys"),
        Err(_late) => tracing::trace!("a client of the web server was too slow to agree on keys"),
    }
}

async fn serve_connection(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    requests: Requests,
    head_max: Duration,
    mut stopped: watch::Receiver<bool>,
) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(head_max)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        .serve_connection(TokioIo::new(stream), requests);
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = end_of(&mut stopped) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::trace!(%error, "a connection of the web server ended early");
    }
}

/// The requests of one connection.
struct Requests {
    router: Router,
    peer: Peer,
    own: OwnConnection,
}

impl Service<Request<Incoming>> for Requests {
    type Response = Response<Body>;
    type Error = std::convert::Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(self.peer);
        request.extensions_mut().insert(self.own.clone());
        let (router, own) = (self.router.clone(), self.own.clone());
        Box::pin(async move {
            own.set_work(ConnectionWork::Busy);
            let Ok(answered) = router.oneshot(request).await;
            // The connection of a stream ends with it.
            let is_stream = answered.extensions().get::<IsStream>().is_some();
            own.set_work(if is_stream { ConnectionWork::Busy } else { ConnectionWork::Waiting });
            Ok(answered)
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::ErrorKind;
    use std::net::{IpAddr, Ipv4Addr};

    use axum::routing::get;
    use rustls::server::ResolvesServerCertUsingSni;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
    use tokio::time::timeout;

    use super::*;

    /// Much longer than the short limits, and shorter than those that the library has by itself.
    const PATIENCE: Duration = Duration::from_secs(20);
    const SHORT: Duration = Duration::from_millis(50);
    const LONG: Duration = Duration::from_secs(3_600);

    fn block_on<T>(test: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test)
    }

    /// The client's end of a connection, on which `/` answers a megabyte. The sender must be kept.
    fn connect(
        limits: TimeLimits,
        acceptor: Option<TlsAcceptor>,
    ) -> (DuplexStream, Arc<Connections>, watch::Sender<bool>) {
        let (near, far) = duplex(1_024);
        let connections = Arc::new(Connections::new(limits));
        let (stop, stopped) = watch::channel(false);
        let router = Router::new().route("/", get(|| async { "x".repeat(1_000_000) }));
        connections.serve(near, acceptor, Peer(IpAddr::V4(Ipv4Addr::LOCALHOST)), router, stopped);
        (far, connections, stop)
    }

    fn is_empty(connections: &Connections) -> bool {
        connections.open.lock().unwrap().by_number.is_empty()
    }

    #[test]
    fn a_head_that_does_not_come_ends_its_connection() {
        let limits = TimeLimits { head_max: SHORT, write_stall_max: LONG };
        for sent in ["", "GET / HTTP/1.1\r\nHost: loc"] {
            block_on(async {
                let (mut client, connections, _stop) = connect(limits, None);
                client.write_all(sent.as_bytes()).await.unwrap();
                let ended = timeout(PATIENCE, client.read_to_end(&mut Vec::new())).await;
                assert!(ended.is_ok() && is_empty(&connections), "{sent:?}");
            });
        }
    }

    #[test]
    fn a_client_that_does_not_agree_on_keys_loses_its_connection() {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(ResolvesServerCertUsingSni::new()));
        let limits = TimeLimits { head_max: SHORT, write_stall_max: LONG };
        block_on(async {
            let (mut client, connections, _stop) = connect(limits, Some(TlsAcceptor::from(Arc::new(config))));
            let ended = timeout(PATIENCE, client.read_to_end(&mut Vec::new())).await;
            assert!(ended.is_ok() && is_empty(&connections));
        });
    }

    #[test]
    fn an_answer_that_nobody_reads_ends_its_connection() {
        let limits = TimeLimits { head_max: LONG, write_stall_max: SHORT };
        block_on(async {
            let (mut client, connections, _stop) = connect(limits, None);
            client.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
            // More than the server keeps: this waits until it reads, or until it has closed the connection.
            let ended = timeout(PATIENCE, client.write_all(&[b'x'; 200_000])).await;
            assert_eq!(ended.unwrap().unwrap_err().kind(), ErrorKind::BrokenPipe);
            assert!(is_empty(&connections));
        });
    }
}
