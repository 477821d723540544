//! A connection whose every wait ends when the request must end.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with};
use ureq::Error;
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, LazyBuffers, NextTimeout, Transport,
};

use super::address::is_link_local;
use super::patience::{Over, Patience};
use crate::handler::LinkLocal;

/// The message of a refused address.
pub(super) const REFUSED: &str = "is link-local, where clouds serve the credentials of a machine; if it is meant, set \
                                  allow_link_local = true in [http] of the configuration";

/// Connects to the addresses of a host, one after the other.
#[derive(Debug)]
pub(super) struct Direct {
    pub(super) patience: Patience,
    pub(super) link_local: LinkLocal,
}

impl Connector for Direct {
    type Out = Connection;

    fn connect(
        &self,
        details: &ConnectionDetails<'_>,
        _chained: Option<()>,
    ) -> Result<Option<Connection>, Error> {
        let mut last = Error::HostNotFound;
        for (index, address) in details.addrs.iter().enumerate() {
            // An address that does not answer must leave time for the others.
            let patience = self.patience.share(details.addrs.len() - index);
            match self.connect_to(*address, &patience) {
                Ok(stream) => {
                    let config = details.config;
                    let buffers = LazyBuffers::new(config.input_buffer_size(), config.output_buffer_size());
                    return Ok(Some(Connection { stream, buffers, patience: self.patience.clone() }));
                }
                Err(error) => last = Error::Io(error),
            }
            if self.patience.over().is_some() {
                break;
            }
        }
        Err(last)
    }
}

impl Direct {
    /// Connects to one address. The address that is checked is the one that is connected to, so no name can lead elsewhere.
    fn connect_to(&self, address: SocketAddr, patience: &Patience) -> io::Result<TcpStream> {
        if self.link_local == LinkLocal::Refused && is_link_local(address.ip()) {
            let message = format!("the address {} {REFUSED}", address.ip());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
        }
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(family, SocketType::STREAM, flags, None)?;
        match connect(&socket, &address) {
            Ok(()) => {}
            Err(Errno::INPROGRESS | Errno::INTR) => patience.wait(socket.as_fd(), PollFlags::OUT)?,
            Err(error) => return Err(error.into()),
        }
        let stream = TcpStream::from(socket);
        match stream.take_error()? {
            Some(error) => Err(error),
            None => stream.set_nodelay(true).map(|()| stream),
        }
    }
}

/// A connection that is used for one request.
#[derive(Debug)]
pub(super) struct Connection {
    /// It does not block.
    stream: TcpStream,
    buffers: LazyBuffers,
    patience: Patience,
}

impl Connection {
    /// Repeats an operation until it does something, or the request must end.
    fn repeat(
        &mut self,
        ready: PollFlags,
        mut operate: impl FnMut(&TcpStream, &mut LazyBuffers) -> io::Result<usize>,
    ) -> io::Result<usize> {
        loop {
            // An endless answer never waits for the network.
            if let Some(Over::Stopped | Over::TimedOut) = self.patience.over() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            match operate(&self.stream, &mut self.buffers) {
                Ok(count) => return Ok(count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.patience.wait(self.stream.as_fd(), ready)?;
                }
                Err(error) => return Err(error),
            }
        }
    }
}

impl Transport for Connection {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, _timeout: NextTimeout) -> Result<(), Error> {
        let mut sent = 0;
        while sent < amount {
            let count = self.repeat(PollFlags::OUT, |mut stream, buffers| {
                stream.write(&buffers.output()[sent..amount])
            })?;
            if count == 0 {
                return Err(Error::Io(io::ErrorKind::WriteZero.into()));
            }
            sent += count;
        }
        Ok(())
    }

    fn await_input(&mut self, _timeout: NextTimeout) -> Result<bool, Error> {
        let count =
            self.repeat(PollFlags::IN, |mut stream, buffers| stream.read(buffers.input_append_buf()))?;
        self.buffers.input_appended(count);
        Ok(count > 0)
    }

    fn is_open(&mut self) -> bool {
        // Each request has a connection of its own.
        false
    }
}
