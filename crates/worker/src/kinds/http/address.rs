//! Which addresses a request may go to. Pure.

use std::net::{IpAddr, Ipv6Addr};

/// The address at which machines of one cloud get their credentials. It is not link-local, and has the same purpose.
const METADATA_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);

/// Whether the address is link-local. Clouds serve the credentials of a machine at such addresses.
pub(super) fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => {
            // `::ffff:169.254.169.254` and `::169.254.169.254` are IPv4 addresses too.
            v6.is_unicast_link_local()
                || v6 == METADATA_V6
                || v6.to_ipv4().is_some_and(|v4| v4.is_link_local())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_local_addresses_are_known_in_every_spelling() {
        let check = |text: &str| is_link_local(text.parse().expect("an address"));
        for address in [
            "169.254.169.254",
            "169.254.0.1",
            "fe80::1",
            "febf::1",
            "::ffff:169.254.169.254",
            "::169.254.169.254",
            "fd00:ec2::254",
        ] {
            assert!(check(address), "{address}");
        }
        for address in
            ["127.0.0.1", "10.0.0.1", "192.168.1.1", "169.253.1.1", "::1", "fd00::1", "fec0::1", "8.8.8.8"]
        {
            assert!(!check(address), "{address}");
        }
    }
}
