//! The address from which a request comes.

use std::net::IpAddr;

use axum::http::HeaderMap;

/// The other end of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) IpAddr);

impl Peer {
    /// The client. Behind a trusted proxy it is the last address of `X-Forwarded-For` that is of no trusted proxy: each proxy
    /// appends the address of its own client, so all before it can be made up.
    pub(crate) fn client(self, headers: &HeaderMap, trusted: &[IpAddr]) -> IpAddr {
        let mut client = self.0.to_canonical();
        let values: Vec<&str> =
            headers.get_all("x-forwarded-for").iter().filter_map(|value| value.to_str().ok()).collect();
        for text in values.join(",").rsplit(',') {
            if !trusted.contains(&client) {
                break;
            }
            let Ok(address) = text.trim().parse::<IpAddr>() else { break };
            client = address.to_canonical();
        }
        client
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn only_trusted_proxies_are_believed() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let client = |peer: &str, forwarded: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("x-forwarded-for", forwarded.parse().unwrap());
            Peer(ip(peer)).client(&headers, &[ip("127.0.0.1"), ip("10.0.0.1")])
        };
        assert_eq!(client("127.0.0.1", "1.1.1.1, 2.2.2.2"), ip("2.2.2.2"));
        assert_eq!(client("127.0.0.1", "1.1.1.1, 2.2.2.2, 10.0.0.1"), ip("2.2.2.2"));
        assert_eq!(client("::ffff:127.0.0.1", "2.2.2.2"), ip("2.2.2.2"));
        assert_eq!(client("3.3.3.3", "1.1.1.1"), ip("3.3.3.3"), "not a proxy");
        assert_eq!(client("127.0.0.1", "unknown"), ip("127.0.0.1"));
        assert_eq!(client("127.0.0.1", ""), ip("127.0.0.1"));
    }
}
