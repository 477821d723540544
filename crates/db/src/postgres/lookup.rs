//! Checks that a thread can be started before the name of a server is looked up. The client looks it up in a thread of its
//! runtime, and the runtime panics if it can't start one.

use std::io;
use std::net::IpAddr;

use tokio_postgres::Config;
use tokio_postgres::config::Host;

/// Starts a thread that does nothing, if connecting needs a thread.
///
/// # Errors
/// When no thread can be started.
pub(super) fn check_thread(config: &Config) -> io::Result<()> {
    if !config.get_hostaddrs().is_empty() || !config.get_hosts().iter().any(is_name) {
        return Ok(());
    }
    let thread = std::thread::Builder::new().name("windlass-lookup".to_owned()).spawn(|| {})?;
    let _it_does_nothing = thread.join();
    Ok(())
}

fn is_name(host: &Host) -> bool {
    match host {
        Host::Tcp(name) => name.parse::<IpAddr>().is_err(),
        Host::Unix(_) => false,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn only_names_are_looked_up() {
        for (host, expected) in
            [("db.example", true), ("localhost", true), ("10.0.0.1", false), ("::1", false), ("/run", false)]
        {
            let mut config = Config::new();
            config.host(host);
            assert_eq!(is_name(&config.get_hosts()[0]), expected, "{host}");
            check_thread(&config).unwrap();
        }
    }
}
