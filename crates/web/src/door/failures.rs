//! Counts failed attempts to enter for each address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

/// How many failures an address has in one interval.
const FAILURES_MAX: u32 = 10;
/// The length of an interval in milliseconds.
const INTERVAL_MS: i64 = 60_000;
/// How many addresses are counted. If there are more, the oldest intervals are forgotten.
const ADDRESSES_MAX: usize = 10_000;

#[derive(Default)]
pub(crate) struct Failures {
    of_addresses: Mutex<HashMap<IpAddr, Interval>>,
}

#[derive(Clone, Copy)]
struct Interval {
    began_ms: i64,
    failures: u32,
}

impl Failures {
    /// For how many seconds an address is refused.
    pub(crate) fn refused_for_s(&self, address: IpAddr, now_ms: i64) -> Option<u64> {
        let of_addresses = self.of_addresses.lock().unwrap_or_else(PoisonError::into_inner);
        let interval = of_addresses.get(&address).filter(|interval| interval.failures >= FAILURES_MAX)?;
        let left_ms = interval.began_ms.saturating_add(INTERVAL_MS).saturating_sub(now_ms);
        // An interval that begins in the future is of a clock that went back.
        (1..=INTERVAL_MS).contains(&left_ms).then(|| left_ms.unsigned_abs().div_ceil(1_000))
    }

    pub(crate) fn add(&self, address: IpAddr, now_ms: i64) {
        let mut of_addresses = self.of_addresses.lock().unwrap_or_else(PoisonError::into_inner);
        let is_over = |interval: &Interval| !(0..INTERVAL_MS).contains(&(now_ms - interval.began_ms));
        if of_addresses.len() >= ADDRESSES_MAX && !of_addresses.contains_key(&address) {
            of_addresses.retain(|_, interval| !is_over(interval));
            let oldest = of_addresses
                .iter()
                .min_by_key(|(_, interval)| interval.began_ms)
                .map(|(address, _)| *address);
            if let (true, Some(oldest)) = (of_addresses.len() >= ADDRESSES_MAX, oldest) {
                of_addresses.remove(&oldest);
            }
        }
        let interval = of_addresses.entry(address).or_insert(Interval { began_ms: now_ms, failures: 0 });
        if is_over(interval) {
            *interval = Interval { began_ms: now_ms, failures: 0 };
        }
        interval.failures = interval.failures.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn address(last: u32) -> IpAddr {
        IpAddr::V4(Ipv4Addr::from(last))
    }

    #[test]
    fn the_tenth_failure_closes_the_door_for_the_rest_of_the_minute() {
        let failures = Failures::default();
        for number in 0..10 {
            assert_eq!(failures.refused_for_s(address(1), 1_000 + number), None);
            failures.add(address(1), 1_000 + number);
        }
        assert_eq!(failures.refused_for_s(address(1), 31_000), Some(30));
        assert_eq!(failures.refused_for_s(address(2), 31_000), None, "another address");
        assert_eq!(failures.refused_for_s(address(1), 61_000), None, "the next minute");
        failures.add(address(1), 61_000);
        assert_eq!(failures.refused_for_s(address(1), 61_000), None, "it counts anew");
        assert_eq!(failures.refused_for_s(address(1), 0), None, "a clock that went back");
    }

    #[test]
    fn the_number_of_addresses_is_bounded() {
        let failures = Failures::default();
        for last in 0..u32::try_from(ADDRESSES_MAX).unwrap_or(0) + 50 {
            failures.add(address(last), i64::from(last));
        }
        let counted = failures.of_addresses.lock().unwrap_or_else(PoisonError::into_inner).len();
        assert_eq!(counted, ADDRESSES_MAX);
    }
}
