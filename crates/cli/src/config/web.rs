//! `[web]` of the configuration: the web server.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use windlass_web::{Definitions, ListenAddress, Proxy, TlsFiles, WebOptions, check_base_path};
use windlass_workflow::strict::Table;

/// The settings of the web server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct WebConfig {
    /// Whether `serve` has a web server. `windlass web` is one, whatever this says.
    pub(crate) in_serve: WebInServe,
    /// The settings, which `windlass web` and `windlass open` read too.
    pub(crate) options: WebOptions,
}

/// Whether `serve` has a web server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum WebInServe {
    /// `enabled = false`.
    Disabled,
    #[default]
    Enabled,
}

pub(super) fn take(table: &mut Table<'_, '_>, folder: &Path) -> WebConfig {
    let enabled = table.boolean("enabled");
    let listen = table.parsed("listen", parse_listen);
    let proxy = table.boolean("behind_proxy");
    let hosts = table.texts("hosts", check_host);
    let base_path = table.parsed("base_path", |path| check_base_path(path).map(|()| path.to_owned()));
    let proxies = table.texts("trusted_proxies", |text| parse_ip(text).map(drop));
    let certificate = table.text("tls_cert").map(|path| folder.join(path));
    let key = table.text("tls_key").map(|path| folder.join(path));
    if certificate.is_some() != key.is_some() {
        table.refuse(
            "`tls_cert` and `tls_key` need each other",
            "write both: the files of the certificate and of its key, in PEM",
        );
    }
    let definitions = table.boolean("allow_definitions");
    let options = WebOptions {
        listen: listen.map_or(ListenAddress::Default, ListenAddress::Set),
        proxy: if proxy == Some(true) { Proxy::Tls } else { Proxy::None },
        tls: certificate.zip(key).map(|(certificate, key)| TlsFiles { certificate, key }),
        hosts: hosts.unwrap_or_default(),
        base_path: base_path.unwrap_or_default(),
        trusted_proxies: proxies.unwrap_or_default().iter().filter_map(|text| parse_ip(text).ok()).collect(),
        hooks: Vec::new(),
        definitions: if definitions == Some(true) { Definitions::Allowed } else { Definitions::Refused },
    };
    if let Err((message, help)) = options.check() {
        table.refuse_key("listen", message, help);
    }
    let in_serve = if enabled == Some(false) { WebInServe::Disabled } else { WebInServe::Enabled };
    WebConfig { in_serve, options }
}

/// An address with a port; for clap too.
pub(crate) fn parse_listen(text: &str) -> Result<SocketAddr, String> {
    text.parse()
        .map_err(|_error| "write an address and a port, such as 127.0.0.1:9463 or [::1]:9463".to_owned())
}

fn parse_ip(text: &str) -> Result<IpAddr, String> {
    text.parse().map_err(|_error| "write an address such as 127.0.0.1".to_owned())
}

fn check_host(text: &str) -> Result<(), String> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b':' | b'[' | b']');
    match !text.is_empty() && text.bytes().all(allowed) {
        true => Ok(()),
        false => {
            Err("write a name of a host such as jobs.example, without https:// and without a path".to_owned())
        }
    }
}
