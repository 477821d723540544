//! The form of an address that is shown to people, without a password.

use std::fmt;

use super::hosts::{Server, ServerHost};
use super::{PostgresAddress, SCHEMA_DEFAULT};

impl fmt::Display for PostgresAddress {
    /// `postgres://user@host:port/dbname`, which is itself a valid address.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "postgres://{}@", encoded(&self.user))?;
        let sockets = self.servers.iter().any(|server| matches!(server.host, ServerHost::Socket(_)));
        let mut parameters = Vec::new();
        if sockets {
            let hosts: Vec<String> = self.servers.iter().map(host).collect();
            let ports: Vec<String> = self.servers.iter().map(|server| server.port.to_string()).collect();
            parameters.push(format!("host={}", hosts.join(",")));
            parameters.push(format!("port={}", ports.join(",")));
        } else {
            let servers: Vec<String> = self.servers.iter().map(Server::to_string).collect();
            formatter.write_str(&servers.join(","))?;
        }
        write!(formatter, "/{}", encoded(&self.database))?;
        if self.schema != SCHEMA_DEFAULT {
            parameters.push(format!("schema={}", self.schema));
        }
        match parameters.is_empty() {
            true => Ok(()),
            false => write!(formatter, "?{}", parameters.join("&")),
        }
    }
}

impl fmt::Debug for PostgresAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

fn host(server: &Server) -> String {
    match &server.host {
        ServerHost::Socket(folder) => encoded(&folder.display().to_string()),
        ServerHost::Network { name, .. } => encoded(name),
    }
}

/// Percent-encodes characters that have a meaning in a URL.
fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '%' | '@' | ':' | '?' | '&' | '=' | '#' | ' ' => {
                encoded.push_str(&format!("%{:02X}", u32::from(character)))
            }
            other => encoded.push(other),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_shown_address_is_valid_and_has_no_password() {
        let cases = [
            ("postgres://u:secret@h/db", "postgres://u@h:5432/db"),
            ("postgres://u:secret@h:5433/db?sslmode=require", "postgres://u@h:5433/db"),
            ("postgres://u@a,b:2/db?password=secret", "postgres://u@a:5432,b:2/db"),
            ("postgres://u@[::1]/db?schema=jobs", "postgres://u@[::1]:5432/db?schema=jobs"),
            ("postgres://u%40x@h/d%20b", "postgres://u%40x@h:5432/d%20b"),
            ("postgres://u@/db?host=/run/x", "postgres://u@/db?host=/run/x&port=5432"),
            ("postgres://u@/db?host=/run/x,h&port=1,2", "postgres://u@/db?host=/run/x,h&port=1,2"),
            ("postgres://u@h", "postgres://u@h:5432/u"),
        ];
        for (url, expected) in cases {
            let address = PostgresAddress::parse(url, &|_| None).unwrap();
            assert_eq!(address.to_string(), expected, "{url}");
            assert_eq!(format!("{address:?}"), expected, "{url}");
            let again = PostgresAddress::parse(expected, &|_| None).unwrap();
            assert_eq!(again.to_string(), expected, "it is a valid address");
        }
    }
}
