//! The servers of an address: each a host or a socket, perhaps with its IP address, and a port.

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use super::AddressError;
use super::settings::Settings;

/// The port when none is given.
const PORT: u16 = 5432;
/// The most servers of one address.
const SERVERS_MAX: usize = 100;
/// The folders of a server's socket if no host is given: Debian's default, and PostgreSQL's own.
const SOCKET_FOLDERS: [&str; 2] = ["/var/run/postgresql", "/tmp"];

/// One server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Server {
    pub(super) host: ServerHost,
    pub(super) port: u16,
}

/// The host of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ServerHost {
    /// The folder of a Unix socket.
    Socket(PathBuf),
    /// A name or IP address on the network.
    Network {
        /// The name that its certificate must have.
        name: String,
        /// Its IP address, if the name need not be looked up.
        address: Option<IpAddr>,
    },
}

impl Server {
    /// Its name in the first field of a line of the password file.
    pub(super) fn name_in_passfile(&self) -> String {
        match &self.host {
            ServerHost::Socket(folder) if SOCKET_FOLDERS.iter().any(|usual| folder == Path::new(usual)) => {
                "localhost".to_owned()
            }
            ServerHost::Socket(folder) => folder.display().to_string(),
            ServerHost::Network { name, .. } => name.clone(),
        }
    }
}

impl fmt::Display for Server {
    /// `db.example:5432`, `[::1]:5432`, or the path of the socket.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let port = self.port;
        match &self.host {
            ServerHost::Socket(folder) => write!(formatter, "{}/.s.PGSQL.{port}", folder.display()),
            ServerHost::Network { name, .. } if name.contains(':') => write!(formatter, "[{name}]:{port}"),
            ServerHost::Network { name, .. } => write!(formatter, "{name}:{port}"),
        }
    }
}

/// The servers in the order in which they are tried.
pub(super) fn servers(settings: &Settings) -> Result<Vec<Server>, AddressError> {
    let names = list(settings.text("host"));
    let addresses = list(settings.text("hostaddr"));
    let ports = list(settings.text("port"));
    // Without any host there is one server, at the default socket.
    let count = if addresses.is_empty() { names.len().max(1) } else { addresses.len() };
    if count > SERVERS_MAX {
        let message = format!("the address has {count} hosts, and {SERVERS_MAX} is the most");
        return Err(AddressError::new(message, "name fewer"));
    }
    if !names.is_empty() && names.len() != count {
        let message =
            format!("there are {} for {}", counted(names.len(), "host"), counted(count, "hostaddr"));
        return Err(AddressError::new(message, "give each host its hostaddr, or leave all of them out"));
    }
    if ports.len() > 1 && ports.len() != count {
        let message = format!("there are {} for {}", counted(ports.len(), "port"), counted(count, "host"));
        return Err(AddressError::new(message, "give one port, or one for each host"));
    }
    (0..count)
        .map(|index| {
            let name = names.get(index).copied().unwrap_or_default();
            let address = addresses.get(index).copied();
            // A single port is for all servers.
            let port = ports.get(index).or(ports.first().filter(|_| ports.len() == 1)).copied();
            Ok(Server {
                host: parse_host(name, address)?,
                port: port_number(port.unwrap_or_default(), settings)?,
            })
        })
        .collect()
}

fn counted(number: usize, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        number => format!("{number} {noun}s"),
    }
}

/// The words between commas. `None` becomes an empty list.
fn list(text: Option<&str>) -> Vec<&str> {
    text.map(|text| text.split(',').map(str::trim).collect()).unwrap_or_default()
}

fn parse_host(name: &str, address: Option<&str>) -> Result<ServerHost, AddressError> {
    if let Some(text) = address {
        let address = text.parse().map_err(|_| {
            let message = format!("`hostaddr` can't be `{text}`");
            AddressError::new(message, "give the IP address of each host, and names with `host`")
        })?;
        let name = if name.is_empty() { text } else { name };
        return Ok(ServerHost::Network { name: name.to_owned(), address: Some(address) });
    }
    if name.is_empty() {
        return Ok(ServerHost::Socket(usual_socket_folder()));
    }
    if name.starts_with('@') {
        let message = format!("the host `{name}` is an abstract socket, which Windlass can't use");
        return Err(AddressError::new(message, "name the folder of the server's socket, or a host"));
    }
    match name.starts_with('/') {
        true => Ok(ServerHost::Socket(PathBuf::from(name))),
        false => Ok(ServerHost::Network { name: name.to_owned(), address: None }),
    }
}

fn usual_socket_folder() -> PathBuf {
    let folders = SOCKET_FOLDERS.map(Path::new);
    folders.iter().find(|folder| folder.is_dir()).unwrap_or(&folders[0]).to_path_buf()
}

/// Parses a port. The error does not show the text, because it may be a part of a password that contains a `/`.
fn port_number(text: &str, settings: &Settings) -> Result<u16, AddressError> {
    if text.is_empty() {
        return Ok(PORT);
    }
    text.parse().ok().filter(|port| *port > 0).ok_or_else(|| {
        let place = settings.source("port").map(super::settings::Source::describe).unwrap_or_default();
        AddressError::new(
            format!("the port {place} is not a number from 1 to 65535"),
            "correct it; in a user name or password write `@` as %40, `/` as %2F and `:` as %3A",
        )
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn of(host: &str, hostaddr: &str, port: &str) -> Result<String, AddressError> {
        let mut settings = Settings::new();
        for (name, text) in [("host", host), ("hostaddr", hostaddr), ("port", port)] {
            settings.replace(name, text.to_owned()).unwrap();
        }
        let servers = servers(&settings)?;
        let shown = servers.iter().map(|server| match &server.host {
            ServerHost::Network { address: Some(address), .. } => format!("{server} at {address}"),
            ServerHost::Network { address: None, .. } | ServerHost::Socket(_) => server.to_string(),
        });
        Ok(shown.collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn hosts_ports_and_addresses_are_matched() {
        let cases = [
            ("a", "", "", "a:5432"),
            ("a", "", "5433", "a:5433"),
            ("a,b", "", "", "a:5432 b:5432"),
            ("a,b", "", "1", "a:1 b:1"),
            ("a,b", "", "1,2", "a:1 b:2"),
            ("a,b", "", ",2", "a:5432 b:2"),
            ("a,b", "", ",", "a:5432 b:5432"),
            ("::1", "", "", "[::1]:5432"),
            ("/run/x", "", "5433", "/run/x/.s.PGSQL.5433"),
            ("/run/x,a", "", "1,2", "/run/x/.s.PGSQL.1 a:2"),
            ("a", "10.0.0.1", "", "a:5432 at 10.0.0.1"),
            ("", "10.0.0.1,::1", "", "10.0.0.1:5432 at 10.0.0.1 [::1]:5432 at ::1"),
            ("a,b", "10.0.0.1,10.0.0.2", "7", "a:7 at 10.0.0.1 b:7 at 10.0.0.2"),
        ];
        for (host, hostaddr, port, expected) in cases {
            assert_eq!(of(host, hostaddr, port).unwrap(), expected, "{host} {hostaddr} {port}");
        }
    }

    #[test]
    fn without_a_host_it_is_the_default_socket() {
        let usual = of("", "", "").unwrap();
        assert!(SOCKET_FOLDERS.iter().any(|folder| usual == format!("{folder}/.s.PGSQL.5432")), "{usual}");
    }

    #[test]
    fn invalid_hosts_and_ports_are_refused() {
        let cases = [
            ("a,b", "10.0.0.1", "", "there are 2 hosts for 1 hostaddr"),
            ("a", "", "1,2", "there are 2 ports for 1 host"),
            ("a,b,c", "", "1,2", "there are 2 ports for 3 hosts"),
            ("a", "db.example", "", "`hostaddr` can't be `db.example`"),
            ("a,b", "10.0.0.1,", "", "`hostaddr` can't be ``"),
            ("a", "", "0", "not a number from 1 to 65535"),
            ("a", "", "65536", "not a number from 1 to 65535"),
            ("a", "", "secret", "the port in the address is not a number"),
            ("@x", "", "", "abstract socket"),
        ];
        for (host, hostaddr, port, expected) in cases {
            let error = of(host, hostaddr, port).unwrap_err().to_string();
            assert!(error.contains(expected), "{host} {hostaddr} {port}: {error}");
            assert!(!error.contains("secret"), "{error}");
        }
        let many = vec!["h"; SERVERS_MAX + 1].join(",");
        assert!(of(&many, "", "").is_err());
    }
}
