//! The settings of the web server, from `[web]` of the configuration.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use crate::hooks::Hook;
use crate::tls::TlsFiles;

/// The address if none is set.
pub const DEFAULT_ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9463);

/// Where the server listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListenAddress {
    /// [`DEFAULT_ADDRESS`], because no other is set.
    Default,
    /// An address that was set.
    Set(SocketAddr),
}

impl ListenAddress {
    /// The address itself.
    #[must_use]
    pub fn socket(self) -> SocketAddr {
        match self {
            ListenAddress::Default => DEFAULT_ADDRESS,
            ListenAddress::Set(address) => address,
        }
    }
}

/// Whether a proxy that has TLS is in front of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Proxy {
    /// Browsers connect to this process.
    #[default]
    None,
    /// Browsers connect to a proxy, with TLS.
    Tls,
}

/// Whether callers may send definitions and commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Definitions {
    /// They may not.
    #[default]
    Refused,
    /// Callers with the role `edit` may.
    Allowed,
}

/// The settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebOptions {
    /// Where to listen.
    pub listen: ListenAddress,
    /// Whether a proxy is in front.
    pub proxy: Proxy,
    /// The certificate of the server, if browsers use TLS with it.
    pub tls: Option<TlsFiles>,
    /// The names under which the server is reached, beside the loopback names.
    pub hosts: Vec<String>,
    /// The path below which everything is: empty, or `/windlass`.
    pub base_path: String,
    /// The addresses of proxies whose `X-Forwarded-For` is believed.
    pub trusted_proxies: Vec<IpAddr>,
    /// Whether callers may send commands.
    pub definitions: Definitions,
    /// What the addresses below `/hooks` take, at the start.
    pub hooks: Vec<Hook>,
}

impl Default for WebOptions {
    fn default() -> WebOptions {
        WebOptions {
            listen: ListenAddress::Default,
            proxy: Proxy::None,
            tls: None,
            hosts: Vec::new(),
            base_path: String::new(),
            trusted_proxies: Vec::new(),
            definitions: Definitions::Refused,
            hooks: Vec::new(),
        }
    }
}

impl WebOptions {
    /// Whether browsers use TLS, with this server or with a proxy.
    #[must_use]
    pub fn is_secure(&self) -> bool {
        self.proxy == Proxy::Tls || self.tls.is_some()
    }

    /// Whether all clients seem to have the address of a proxy, because its `X-Forwarded-For` is not believed.
    #[must_use]
    pub fn shares_one_address(&self) -> bool {
        self.proxy == Proxy::Tls && self.trusted_proxies.is_empty()
    }

    /// Why the settings don't fit each other: what is wrong, and the next step.
    ///
    /// # Errors
    /// An address that is not of this machine, without a proxy that has TLS.
    pub fn check(&self) -> Result<(), (String, String)> {
        let address = self.listen.socket();
        if !address.ip().is_loopback() && !self.is_secure() {
            return Err((
                format!("the web server may not listen on {address}: passwords would cross the network as plain text"),
                "listen on a loopback address; or set `tls_cert` and `tls_key` under [web]; or put a proxy with TLS in front and \
                 set `behind_proxy = true`"
                    .to_owned(),
            ));
        }
        Ok(())
    }
}

/// Checks a base path: empty, or segments of letters, digits, `-`, `_` and `.`, each after a slash.
///
/// # Errors
/// What is wrong with it.
pub fn check_base_path(path: &str) -> Result<(), String> {
    let is_plain = |segment: &str| {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        !segment.is_empty() && segment != "." && segment != ".." && segment.bytes().all(allowed)
    };
    match path.strip_prefix('/') {
        Some(segments) if segments.split('/').all(is_plain) => Ok(()),
        Some(_) | None => {
            Err("write a path such as /windlass: a slash and a name, without a slash at the end".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn another_address_needs_a_proxy() {
        let listen = ListenAddress::Set("0.0.0.0:80".parse().unwrap());
        let open = WebOptions { listen, ..WebOptions::default() };
        assert!(open.check().unwrap_err().1.contains("behind_proxy"));
        assert!(WebOptions { proxy: Proxy::Tls, ..open }.check().is_ok());
        assert!(WebOptions::default().check().is_ok());
        let loopback = ListenAddress::Set("[::1]:80".parse().unwrap());
        assert!(WebOptions { listen: loopback, ..WebOptions::default() }.check().is_ok());
    }

    #[test]
    fn a_proxy_that_is_not_trusted_hides_its_clients() {
        let behind = WebOptions { proxy: Proxy::Tls, ..WebOptions::default() };
        assert!(behind.shares_one_address() && !WebOptions::default().shares_one_address());
        let trusted = WebOptions { trusted_proxies: vec!["127.0.0.1".parse().unwrap()], ..behind };
        assert!(!trusted.shares_one_address());
    }

    #[test]
    fn a_base_path_is_made_of_plain_names() {
        for path in ["/windlass", "/a/b-1", "/v1.2"] {
            assert!(check_base_path(path).is_ok(), "{path}");
        }
        for path in ["", "/", "windlass", "/a/", "//a", "/a/../b", "/%2f", "/{x}", "/a b"] {
            assert!(check_base_path(path).is_err(), "{path}");
        }
    }
}
