//! The addresses of a host. The system's look-up can't be ended, so a thread makes it, and the request stops waiting.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::event::{EventfdFlags, PollFlags, eventfd};
use ureq::Error;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;

use super::patience::Patience;

/// How many addresses of a host are tried.
const ADDRESSES_MAX: usize = 8;

/// Looks up names while there is patience.
#[derive(Debug)]
pub(super) struct Lookup {
    pub(super) patience: Patience,
}

impl Resolver for Lookup {
    fn resolve(
        &self,
        uri: &Uri,
        _config: &Config,
        _timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, Error> {
        let host = uri.host().ok_or_else(|| Error::BadUri("it names no host".to_owned()))?;
        let default_port = if uri.scheme_str() == Some("https") { 443 } else { 80 };
        let port = uri.port_u16().unwrap_or(default_port);
        let mut addresses = self.empty();
        for address in find(host, port, &self.patience)?.into_iter().take(ADDRESSES_MAX) {
            addresses.push(address);
        }
        if addresses.is_empty() { Err(Error::HostNotFound) } else { Ok(addresses) }
    }
}

fn find(host: &str, port: u16, patience: &Patience) -> io::Result<Vec<SocketAddr>> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = bare.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    let done = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
    let found = Arc::new(Mutex::new(None));
    let name = (bare.to_owned(), port);
    let (thread_done, thread_found) = (Arc::clone(&done), Arc::clone(&found));
    std::thread::Builder::new().name("windlass-resolver".to_owned()).spawn(move || {
        let addresses = name.to_socket_addrs().map(Vec::from_iter);
        *thread_found.lock().unwrap_or_else(PoisonError::into_inner) = Some(addresses);
        // It fails only if the counter is full, and this is the only write.
        let _written = rustix::io::write(&*thread_done, &1u64.to_ne_bytes());
    })?;
    patience.wait(done.as_fd(), PollFlags::IN)?;
    let found = found.lock().unwrap_or_else(PoisonError::into_inner).take();
    found.unwrap_or_else(|| Err(io::Error::other("the look-up gave no answer")))
}
