//! Notifications to the service manager, with systemd's protocol: ready, reloading, stopping, and the watchdog signal.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The service manager, if there is one.
#[derive(Debug)]
pub(crate) struct ServiceManager {
    channel: Option<(UnixDatagram, SocketAddr)>,
    /// The longest time between two watchdog signals that the manager accepts.
    watchdog: Option<Duration>,
}

impl ServiceManager {
    /// The manager that the environment names.
    pub(crate) fn from_environment() -> ServiceManager {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let channel = variable("NOTIFY_SOCKET").and_then(|address| match connect(&address) {
            Ok(channel) => Some(channel),
            Err(error) => {
                tracing::warn!(%error, address = %address.display(), "the service manager gets no notifications");
                None
            }
        });
        let watchdog = watchdog(variable("WATCHDOG_USEC"), variable("WATCHDOG_PID"), std::process::id());
        ServiceManager { channel, watchdog }
    }

    /// The longest time between two watchdog signals that the manager accepts.
    pub(crate) fn watchdog(&self) -> Option<Duration> {
        self.watchdog.filter(|_| self.channel.is_some())
    }

    /// The service is ready.
    pub(crate) fn ready(&self, status: &str) {
        self.notify(&format!("READY=1\nSTATUS={status}"));
    }

    /// One line for people.
    pub(crate) fn status(&self, status: &str) {
        self.notify(&format!("STATUS={status}"));
    }

    /// The configuration is being read again. [`ServiceManager::ready`] follows.
    pub(crate) fn reloading(&self) {
        let now = clock_gettime(ClockId::Monotonic);
        let microseconds = now.tv_sec * 1_000_000 + now.tv_nsec / 1_000;
        self.notify(&format!("RELOADING=1\nMONOTONIC_USEC={microseconds}\nSTATUS=reloading"));
    }

    /// The service is stopping.
    pub(crate) fn stopping(&self, status: &str) {
        self.notify(&format!("STOPPING=1\nSTATUS={status}"));
    }

    /// The watchdog signal: the service works.
    pub(crate) fn signal_watchdog(&self) {
        self.notify("WATCHDOG=1");
    }

    /// An error is only logged: the manager is the only reader of the message.
    fn notify(&self, message: &str) {
        if let Some((socket, address)) = &self.channel
            && let Err(error) = socket.send_to_addr(message.as_bytes(), address)
        {
            tracing::debug!(%error, "the service manager could not be notified");
        }
    }
}

fn connect(address: &OsStr) -> io::Result<(UnixDatagram, SocketAddr)> {
    let address = match address.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        [b'/', ..] => SocketAddr::from_pathname(address)?,
        _ => return Err(io::Error::other("the address is neither a path nor an abstract name")),
    };
    let socket = UnixDatagram::unbound()?;
    // A manager that does not read must not block the service.
    socket.set_nonblocking(true)?;
    Ok((socket, address))
}

/// The interval of the watchdog, if it is for this process.
fn watchdog(interval: Option<OsString>, pid: Option<OsString>, own: u32) -> Option<Duration> {
    let is_for_this_process = pid.is_none_or(|pid| pid.to_str() == Some(&own.to_string()));
    let microseconds: u64 = interval?.to_str()?.parse().ok()?;
    (is_for_this_process && microseconds > 0).then(|| Duration::from_micros(microseconds))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_watchdog_is_for_the_process_of_its_variable() {
        let text = |text: &str| Some(OsString::from(text));
        let second = Some(Duration::from_secs(1));
        assert_eq!(watchdog(text("1000000"), None, 7), second);
        assert_eq!(watchdog(text("1000000"), text("7"), 7), second);
        assert_eq!(watchdog(text("1000000"), text("8"), 7), None);
        assert_eq!(watchdog(text("0"), None, 7), None);
        assert_eq!(watchdog(text("soon"), None, 7), None);
        assert_eq!(watchdog(None, None, 7), None);
    }

    #[test]
    fn abstract_and_plain_sockets_are_reached() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let name = format!("windlass-test-{}-{}", std::process::id(), folder.path().display());
        let plain = UnixDatagram::bind(&path).unwrap();
        let hidden = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        let addresses = [(path.into_os_string(), plain), (OsString::from(format!("@{name}")), hidden)];
        for (address, socket) in addresses {
            let manager = ServiceManager { channel: Some(connect(&address).unwrap()), watchdog: None };
            manager.ready("fine");
            let mut buffer = [0; 100];
            let length = socket.recv(&mut buffer).unwrap();
            assert_eq!(&buffer[..length], b"READY=1\nSTATUS=fine");
        }
        assert!(connect(OsStr::new("relative")).is_err());
    }
}
