//! Converts the parameters into a configuration of the client.

use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{ChannelBinding, SslMode, TargetSessionAttrs};

use super::AddressError;
use super::hosts::{Server, ServerHost};
use super::settings::Settings;

/// How long connecting to one server may take. libpq waits as long as the system does: minutes.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long sent data may stay unacknowledged. The system's default is about 15 minutes, and a worker must notice before the
/// end of its lease that it can't reach its database.
const TCP_USER_TIMEOUT: Duration = Duration::from_secs(10);
/// The time without data after which a keepalive is sent. The system's default is 2 hours.
const KEEPALIVES_IDLE: Duration = Duration::from_secs(10);
/// The time between two keepalives that are not answered.
const KEEPALIVES_INTERVAL: Duration = Duration::from_secs(5);
/// The number of keepalives without an answer after which the connection is dead.
const KEEPALIVES_COUNT: u32 = 3;
/// The name of this client in the server's lists.
const APPLICATION_NAME: &str = "windlass";

/// The configuration without the servers, the user, the database and the password.
pub(super) fn config(
    settings: &Settings,
    servers: &[Server],
    ssl_mode: SslMode,
) -> Result<Config, AddressError> {
    let mut config = Config::new();
    config.ssl_mode(ssl_mode_for(servers, ssl_mode)?);
    set_timeouts(&mut config, settings)?;
    config.target_session_attrs(session_attributes(settings, servers)?);
    let bindings = [
        ("disable", ChannelBinding::Disable),
        ("prefer", ChannelBinding::Prefer),
        ("require", ChannelBinding::Require),
    ];
    config.channel_binding(settings.choice("channel_binding", &bindings)?.unwrap_or(ChannelBinding::Prefer));
    let application_name = settings
        .text("application_name")
        .or_else(|| settings.text("fallback_application_name"))
        .unwrap_or(APPLICATION_NAME);
    config.application_name(application_name);
    if let Some(options) = settings.text("options") {
        config.options(options);
    }
    Ok(config)
}

/// The configuration with these servers.
pub(super) fn with_servers(config: &Config, servers: &[Server]) -> Config {
    let mut config = config.clone();
    for server in servers {
        match &server.host {
            ServerHost::Socket(folder) => config.host_path(folder),
            ServerHost::Network { name, address } => {
                if let Some(address) = address {
                    config.hostaddr(*address);
                }
                config.host(name.as_str())
            }
        };
        config.port(server.port);
    }
    config
}

/// As for libpq, `sslmode` does not apply to a socket. The client has one mode for all servers.
fn ssl_mode_for(servers: &[Server], ssl_mode: SslMode) -> Result<SslMode, AddressError> {
    let sockets = servers.iter().filter(|server| matches!(server.host, ServerHost::Socket(_))).count();
    if sockets == servers.len() {
        return Ok(SslMode::Disable);
    }
    if sockets > 0 && ssl_mode == SslMode::Require {
        return Err(AddressError::new(
            "an address with sslmode=require or stricter can't name both a socket and a host",
            "leave the socket out",
        ));
    }
    Ok(ssl_mode)
}

fn set_timeouts(config: &mut Config, settings: &Settings) -> Result<(), AddressError> {
    // As for libpq, zero and negative numbers mean no limit.
    if let Some(timeout) = seconds(settings, "connect_timeout", CONNECT_TIMEOUT)? {
        config.connect_timeout(timeout);
    }
    config.keepalives(settings.number("keepalives")? != Some(0));
    // Zero and negative numbers mean the system's default.
    if let Some(idle) = seconds(settings, "keepalives_idle", KEEPALIVES_IDLE)? {
        config.keepalives_idle(idle);
    }
    if let Some(interval) = seconds(settings, "keepalives_interval", KEEPALIVES_INTERVAL)? {
        config.keepalives_interval(interval);
    }
    match settings.number("keepalives_count")?.map(u32::try_from) {
        None => config.keepalives_retries(KEEPALIVES_COUNT),
        Some(Ok(count)) if count > 0 => config.keepalives_retries(count),
        Some(_) => config,
    };
    match settings.number("tcp_user_timeout")?.map(u64::try_from) {
        None => config.tcp_user_timeout(TCP_USER_TIMEOUT),
        Some(Ok(milliseconds)) if milliseconds > 0 => {
            config.tcp_user_timeout(Duration::from_millis(milliseconds))
        }
        Some(_) => config,
    };
    Ok(())
}

/// The given number of seconds, or the default. `None` if the number is zero or negative.
fn seconds(
    settings: &Settings,
    name: &'static str,
    default: Duration,
) -> Result<Option<Duration>, AddressError> {
    let Some(given) = settings.number(name)? else { return Ok(Some(default)) };
    Ok(u64::try_from(given).ok().filter(|seconds| *seconds > 0).map(Duration::from_secs))
}

/// Which of several servers is used. Windlass writes, so by default it is one that accepts writes. `primary` means the same.
fn session_attributes(settings: &Settings, servers: &[Server]) -> Result<TargetSessionAttrs, AddressError> {
    let words = [
        ("any", Some(TargetSessionAttrs::Any)),
        ("read-write", Some(TargetSessionAttrs::ReadWrite)),
        ("primary", Some(TargetSessionAttrs::ReadWrite)),
        ("read-only", None),
        ("standby", None),
        ("prefer-standby", None),
    ];
    match settings.choice("target_session_attrs", &words)? {
        Some(Some(attributes)) => Ok(attributes),
        Some(None) => {
            Err(settings.invalid_value("target_session_attrs", "Windlass must write: use read-write or any"))
        }
        None if servers.len() > 1 => Ok(TargetSessionAttrs::ReadWrite),
        None => Ok(TargetSessionAttrs::Any),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::hosts;
    use super::*;

    fn of(given: &[(&str, &str)]) -> Result<Config, AddressError> {
        let mut settings = Settings::new();
        for (name, text) in given {
            settings.replace(name, (*text).to_owned()).unwrap();
        }
        let servers = hosts::servers(&settings).unwrap();
        config(&settings, &servers, SslMode::Require)
    }

    #[test]
    fn timeouts_have_defaults_and_can_be_turned_off() {
        let timeouts = |given: &[(&str, &str)]| {
            let config = of(&[&[("host", "h")], given].concat()).unwrap();
            let milliseconds = |duration: Option<&Duration>| duration.map(Duration::as_millis);
            (
                milliseconds(config.get_connect_timeout()),
                milliseconds(config.get_tcp_user_timeout()),
                config.get_keepalives(),
                config.get_keepalives_idle().as_secs(),
                config.get_keepalives_interval().map(|interval| interval.as_secs()),
                config.get_keepalives_retries(),
            )
        };
        let system_idle = 2 * 60 * 60;
        let by_default = (Some(10_000), Some(10_000), true, 10, Some(5), Some(3));
        assert_eq!(timeouts(&[]), by_default);
        assert_eq!(timeouts(&[("connect_timeout", "3")]).0, Some(3_000));
        assert_eq!(timeouts(&[("connect_timeout", "0")]).0, None);
        assert_eq!(timeouts(&[("connect_timeout", "-1")]).0, None);
        // Milliseconds for libpq, unlike for the client's own parser.
        assert_eq!(timeouts(&[("tcp_user_timeout", "1500")]).1, Some(1_500));
        assert_eq!(timeouts(&[("tcp_user_timeout", "0")]).1, None);
        assert!(!timeouts(&[("keepalives", "0")]).2);
        assert_eq!(timeouts(&[("keepalives_idle", "60")]).3, 60);
        assert_eq!(timeouts(&[("keepalives_idle", "0")]).3, system_idle);
        assert_eq!(timeouts(&[("keepalives_interval", "7")]).4, Some(7));
        assert_eq!(timeouts(&[("keepalives_interval", "0")]).4, None);
        assert_eq!(timeouts(&[("keepalives_count", "9")]).5, Some(9));
        assert_eq!(timeouts(&[("keepalives_count", "0")]).5, None);
        assert!(of(&[("connect_timeout", "soon")]).is_err());
        assert!(of(&[("keepalives", "yes")]).is_err());
    }

    #[test]
    fn of_several_servers_one_that_accepts_writes_is_used() {
        let attributes = |given: &[(&str, &str)]| of(given).map(|config| config.get_target_session_attrs());
        let cases: &[(&[(&str, &str)], TargetSessionAttrs)] = &[
            (&[("host", "a")], TargetSessionAttrs::Any),
            (&[("host", "a,b")], TargetSessionAttrs::ReadWrite),
            (&[("host", "a,b"), ("target_session_attrs", "any")], TargetSessionAttrs::Any),
            (&[("host", "a"), ("target_session_attrs", "read-write")], TargetSessionAttrs::ReadWrite),
            (&[("host", "a"), ("target_session_attrs", "primary")], TargetSessionAttrs::ReadWrite),
        ];
        for (given, expected) in cases {
            assert_eq!(attributes(given).unwrap(), *expected, "{given:?}");
        }
        for word in ["standby", "read-only", "prefer-standby", "writable"] {
            assert!(attributes(&[("host", "a"), ("target_session_attrs", word)]).is_err(), "{word}");
        }
    }

    #[test]
    fn a_socket_is_not_encrypted_and_not_allowed_with_a_host_that_requires_encryption() {
        assert_eq!(of(&[("host", "/run/x")]).unwrap().get_ssl_mode(), SslMode::Disable);
        assert_eq!(of(&[("host", "a")]).unwrap().get_ssl_mode(), SslMode::Require);
        assert!(of(&[("host", "a,/run/x")]).is_err());
        let mut settings = Settings::new();
        settings.replace("host", "a,/run/x".to_owned()).unwrap();
        let servers = hosts::servers(&settings).unwrap();
        assert_eq!(config(&settings, &servers, SslMode::Prefer).unwrap().get_ssl_mode(), SslMode::Prefer);
    }

    #[test]
    fn the_server_is_told_a_name() {
        let name = |given: &[(&str, &str)]| of(given).unwrap().get_application_name().unwrap().to_owned();
        assert_eq!(name(&[]), "windlass");
        assert_eq!(name(&[("fallback_application_name", "f")]), "f");
        assert_eq!(name(&[("fallback_application_name", "f"), ("application_name", "a")]), "a");
    }
}
