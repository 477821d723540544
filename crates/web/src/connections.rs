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
use tokio::net::{TcpListener, TcpStream};
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
/// How long the head of a request may take, and how long a connection is kept without one.
const HEAD_TIME_MAX: Duration = Duration::from_secs(10);
/// The longest head of a request.
const HEAD_BYTES_MAX: usize = 32 * 1024;
/// The most headers of a request.
const HEADERS_MAX: usize = 100;
/// How long a client may take none of an answer.
const WRITE_STALL_MAX: Duration = Duration::from_secs(30);
/// The pause after the system gave no connection, for example because too many files are open.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Accepts connections until `stopped` is true.
pub(crate) async fn accept(
    listener: TcpListener,
    tls: Option<CurrentIdentity>,
    door: Arc<Door>,
    mut stopped: watch::Receiver<bool>,
) {
    let router = router(&door);
    drop(door);
    let connections = Arc::new(Connections::default());
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
#[derive(Default)]
struct Connections {
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
    fn serve(
        self: &Arc<Self>,
        stream: TcpStream,
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
        let stream = WithWriteLimit::new(stream, WRITE_STALL_MAX);
        let registered = Registered { connections: Arc::clone(self), number };
        let task = tokio::spawn(async move {
            match acceptor {
                None => serve_connection(stream, requests, stopped).await,
                Some(acceptor) => serve_with_tls(acceptor, stream, requests, stopped).await,
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

/// Agrees on keys first. A client has as much time for that as for the head of a request, and its connection counts as one without
/// a request.
async fn serve_with_tls(
    acceptor: TlsAcceptor,
    stream: impl AsyncRead + AsyncWrite + Unpin,
    requests: Requests,
    mut stopped: watch::Receiver<bool>,
) {
    let handshake = tokio::time::timeout(HEAD_TIME_MAX, acceptor.accept(stream));
    let agreed = tokio::select! {
        agreed = handshake => agreed,
        () = end_of(&mut stopped) => return,
    };
    match agreed {
        Ok(Ok(stream)) => serve_connection(stream, requests, stopped).await,
        Ok(Err(error)) => tracing::trace!(%error, "a client of the web server did not agree on keys"),
        Err(_late) => tracing::trace!("a client of the web server was too slow to agree on keys"),
    }
}

async fn serve_connection(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    requests: Requests,
    mut stopped: watch::Receiver<bool>,
) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME_MAX)
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
