//! Listening, and one task for each connection.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use windlass_engine::Store;

use crate::connections::accept;
use crate::door::Door;
use crate::hooks::Hook;
use crate::live::{Hub, Viewers};
use crate::options::WebOptions;
use crate::sentences::Sentences;
use crate::threads::{DatabaseThreads, ThreadsEnd};
use crate::tls::{CurrentIdentity, TlsIdentity};

const RUNTIME_THREAD_NAME: &str = "windlass-web";
/// The threads of the runtime.
const RUNTIME_THREADS: usize = 2;
/// How long the end waits for requests that are being answered.
const END_MAX: Duration = Duration::from_millis(500);

/// An address that is listened on, before anything is answered.
pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
    tls: Option<TlsIdentity>,
}

impl Listener {
    /// Takes the address.
    ///
    /// # Errors
    /// The system's, for example when another process listens there.
    pub fn bind(options: &WebOptions) -> io::Result<Listener> {
        let socket = TcpListener::bind(options.listen.socket())?;
        socket.set_nonblocking(true)?;
        let address = socket.local_addr()?;
        Ok(Listener { socket, address, tls: None })
    }

    /// The same for clients that use TLS.
    #[must_use]
    pub fn with_tls(self, identity: TlsIdentity) -> Listener {
        Listener { tls: Some(identity), ..self }
    }

    /// The address, with the port that the system chose if port 0 was asked for.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// A running server. Dropping it ends it.
pub struct WebServer {
    address: SocketAddr,
    /// Taken when it ends.
    parts: Option<Parts>,
}

struct Parts {
    runtime: Runtime,
    tls: Option<CurrentIdentity>,
    stop: watch::Sender<bool>,
    viewers: Arc<Viewers>,
    /// Holds the queues of the database threads, which end when the last task that holds it too has ended.
    door: Arc<Door>,
    threads: ThreadsEnd,
}

impl WebServer {
    /// Starts to answer.
    ///
    /// # Errors
    /// When the system gives no threads.
    pub fn start(
        listener: Listener,
        store: &Store,
        sentences: Sentences,
        options: WebOptions,
    ) -> io::Result<WebServer> {
        let Listener { socket, address, tls } = listener;
        let tls = tls.map(CurrentIdentity::new);
        let (database_threads, threads) = DatabaseThreads::start(store)?;
        let viewers = Hub::start(store, threads.one_more())?;
        let clock = store.clock().clone();
        let door = Arc::new(Door::new(options, sentences, database_threads, Arc::clone(&viewers), clock));
        let runtime = Builder::new_multi_thread()
            .worker_threads(RUNTIME_THREADS)
            .max_blocking_threads(1)
            .thread_name(RUNTIME_THREAD_NAME)
            .enable_all()
            .build()?;
        let (stop, stopped) = watch::channel(false);
        let socket = {
            let _inside = runtime.enter();
            tokio::net::TcpListener::from_std(socket)?
        };
        runtime.spawn(accept(socket, tls.clone(), Arc::clone(&door), stopped));
        Ok(WebServer { address, parts: Some(Parts { runtime, stop, tls, viewers, door, threads }) })
    }

    /// The address it listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The streams that are open.
    #[cfg(test)]
    pub(crate) fn viewers(&self) -> &Arc<Viewers> {
        self.parts.as_ref().map(|parts| &parts.viewers).expect("it runs")
    }

    /// Gives new connections another certificate. Nothing happens without TLS.
    pub fn replace_certificate(&self, identity: TlsIdentity) {
        if let Some(tls) = self.parts.as_ref().and_then(|parts| parts.tls.as_ref()) {
            tls.replace(identity);
        }
    }

    /// Takes messages of other services from now on.
    pub fn set_hooks(&self, hooks: Vec<Hook>) {
        if let Some(parts) = &self.parts {
            parts.door.set_hooks(hooks);
        }
    }

    /// Answers the requests that have come, and ends.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let Some(Parts { runtime, stop, viewers, door, threads, tls: _ }) = self.parts.take() else { return };
        // Streams do not end by themselves.
        viewers.stop();
        stop.send_replace(true);
        // The receivers are held by the connections.
        runtime.block_on(async {
            let _late = tokio::time::timeout(END_MAX, stop.closed()).await;
        });
        runtime.shutdown_timeout(END_MAX);
        drop(door);
        threads.wait();
    }
}

impl Drop for WebServer {
    fn drop(&mut self) {
        self.end();
    }
}
