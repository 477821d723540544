//! `windlass open`: makes a link that signs a person in. Who may write to the database may enter.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use clap::Args;
use windlass_engine::store::{Role, Secret};
use windlass_views::{Instant, OpenedView};
use windlass_web::{ListenAddress, WebOptions};

use crate::arguments::GlobalOptions;
use crate::commands::token::parse_role;
use crate::config::{self, parse_listen};
use crate::database::{Database, present_user};
use crate::error::Failure;
use crate::output::Output;
use crate::stderr;

/// How long the link works.
const LINK_MS: i64 = 60_000;

/// Make a link that signs you in to the web page
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct OpenArgs {
    /// What the session may do: view, run, edit or admin
    #[arg(long, value_name = "ROLE", default_value = "admin", value_parser = parse_role_of_person)]
    role: Role,

    /// The address of the server, if it was started with another one [default: `listen` of [web], else 127.0.0.1:9463]
    #[arg(long, value_name = "ADDRESS", value_parser = parse_listen)]
    listen: Option<SocketAddr>,
}

const EXAMPLES: &str = "\
Examples:
  windlass open
  windlass open --role view
  windlass open --listen 127.0.0.1:8080   # of `windlass web --listen ...`

The link works once, within a minute. It needs `windlass serve` or
`windlass web` on this database.";

/// Prints the link.
pub(crate) fn execute(global: &GlobalOptions, args: &OpenArgs) -> Result<(), Failure> {
    let configured = config::read_here(global.config().as_deref())?.web.options;
    let options = match args.listen {
        Some(address) => WebOptions { listen: ListenAddress::Set(address), ..configured },
        None => configured,
    };
    let base = address(&options)?;
    let database = Database::existing_without_rescue(global)?;
    let secret = Secret::generate()
        .map_err(|error| Failure::no_resources(&format!("the system has no random bytes: {error}")))?;
    let expires_at = database.store().clock().now_ms() + LINK_MS;
    let user = present_user();
    database.change(format!("a link with the role {}", args.role.as_str()), |store| {
        store.access().add_link(&secret.hash(), &user, args.role, expires_at)
    })?;
    let url = format!("{base}/open?code={}", secret.text());
    stderr::note("the link works once, within a minute:");
    let view = OpenedView { url, role: args.role.as_str(), expires_at: Instant::at(expires_at) };
    Output { format: global.output }.object(&view, |view| view.url.clone())
}

/// The roles of people. A session that may only read metrics would see no page.
fn parse_role_of_person(text: &str) -> Result<Role, String> {
    match parse_role(text)? {
        Role::Metrics => Err("a session needs a role that sees pages: view, run, edit or admin".to_owned()),
        role @ (Role::View | Role::Run | Role::Edit | Role::Admin) => Ok(role),
    }
}

/// Where a browser finds the server: under the first name of `hosts`, or on this machine.
fn address(options: &WebOptions) -> Result<String, Failure> {
    let port = options.listen.socket().port();
    let origin = match (options.is_secure(), options.hosts.first()) {
        // A proxy has a port of its own.
        (true, Some(host)) if options.tls.is_none() || host.contains(':') => format!("https://{host}"),
        (_, _) if port == 0 => {
            return Err(Failure::usage(
                "the address of the server is unknown: port 0 lets the system choose one".to_owned(),
                "`windlass serve` writes the address to its log after `page:`, and `windlass web` after `serves`; \
                 then `windlass open --listen ADDRESS`",
            ));
        }
        (true, Some(host)) => format!("https://{host}:{port}"),
        (true, None) if options.tls.is_some() => format!("https://{}", reachable(options.listen.socket())),
        (_, _) => format!("http://{}", reachable(options.listen.socket())),
    };
    Ok(format!("{origin}{}", options.base_path))
}

/// The address for a browser of this machine. A server that listens on all addresses is known to itself by its loopback names.
fn reachable(address: SocketAddr) -> SocketAddr {
    match (address.ip().is_unspecified(), address.ip()) {
        (false, _) => address,
        (true, IpAddr::V4(_)) => SocketAddr::new(Ipv4Addr::LOCALHOST.into(), address.port()),
        (true, IpAddr::V6(_)) => SocketAddr::new(Ipv6Addr::LOCALHOST.into(), address.port()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use windlass_web::TlsFiles;

    fn at(listen: &str) -> WebOptions {
        WebOptions { listen: ListenAddress::Set(listen.parse().unwrap()), ..WebOptions::default() }
    }

    fn with_tls(listen: &str) -> WebOptions {
        let tls = TlsFiles { certificate: "a.crt".into(), key: "a.key".into() };
        WebOptions { tls: Some(tls), ..at(listen) }
    }

    #[test]
    fn a_link_leads_to_a_name_that_the_server_answers() {
        let hosts = |host: &str| vec![host.to_owned()];
        for (options, expected) in [
            (at("127.0.0.1:8080"), "http://127.0.0.1:8080"),
            (with_tls("0.0.0.0:9463"), "https://127.0.0.1:9463"),
            (with_tls("[::]:9463"), "https://[::1]:9463"),
            (
                WebOptions { hosts: hosts("jobs.example"), ..with_tls("0.0.0.0:443") },
                "https://jobs.example:443",
            ),
            (
                WebOptions { hosts: hosts("jobs.example:8443"), ..with_tls("0.0.0.0:0") },
                "https://jobs.example:8443",
            ),
        ] {
            assert_eq!(address(&options).unwrap(), expected);
        }
        for options in
            [at("127.0.0.1:0"), WebOptions { hosts: hosts("jobs.example"), ..with_tls("0.0.0.0:0") }]
        {
            assert!(address(&options).unwrap_err().plain().contains("page:"));
        }
        assert!(parse_role_of_person("metrics").is_err() && parse_role_of_person("view").is_ok());
    }
}
