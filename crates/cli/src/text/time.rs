//! Instants and durations as text.

use std::sync::OnceLock;

use chrono::{DateTime, FixedOffset, Local, SecondsFormat, Utc};

use crate::text::style::{DIM, paint};

/// The zone of all times for people. `--utc` sets it once.
static ZONE: OnceLock<Zone> = OnceLock::new();

/// A zone of times for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Zone {
    /// The zone of this machine, or of the variable `TZ`.
    Local,
    Utc,
}

/// Decides in which zone times are shown from now on.
pub(crate) fn set_zone(zone: Zone) {
    let _first = ZONE.set(zone);
}

fn zone() -> Zone {
    ZONE.get().copied().unwrap_or(Zone::Local)
}

/// Milliseconds since the Unix epoch, now.
pub(crate) fn now_ms() -> i64 {
    Utc::now().timestamp_millis()
}

/// In UTC to the second: `2026-11-20T12:03:04Z`.
pub(crate) fn utc(at_ms: i64) -> String {
    match DateTime::<Utc>::from_timestamp_millis(at_ms) {
        Some(instant) => instant.to_rfc3339_opts(SecondsFormat::AutoSi, true),
        None => format!("{at_ms} ms"),
    }
}

/// The time of day: `12:03:04`, or `12:03:04Z` if times are shown in UTC.
pub(crate) fn clock(at_ms: i64) -> String {
    formatted(at_ms, zone(), Named::IfUtc, "%H:%M:%S")
}

/// The day and time: `2026-11-20 12:03:04`.
pub(crate) fn day_and_clock(at_ms: i64) -> String {
    formatted(at_ms, zone(), Named::IfUtc, "%Y-%m-%d %H:%M:%S")
}

/// The day and time with their zone, where nothing else says it: `2026-11-20 12:03:04 +01:00`.
pub(crate) fn day_and_clock_with_zone(at_ms: i64) -> String {
    formatted(at_ms, zone(), Named::Always, "%Y-%m-%d %H:%M:%S")
}

/// The time of a line of the log: `2026-11-20T12:03:04.567+01:00`.
pub(crate) fn log_time(at_ms: i64) -> String {
    in_zone(at_ms, zone())
        .map(|instant| instant.to_rfc3339_opts(SecondsFormat::Millis, true))
        .unwrap_or_default()
}

/// Whether the zone is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Named {
    Always,
    /// Only a reader who asked for UTC would take it for local time.
    IfUtc,
}

fn in_zone(at_ms: i64, zone: Zone) -> Option<DateTime<FixedOffset>> {
    let instant = DateTime::<Utc>::from_timestamp_millis(at_ms)?;
    Some(match zone {
        Zone::Local => instant.with_timezone(&Local).fixed_offset(),
        Zone::Utc => instant.fixed_offset(),
    })
}

fn formatted(at_ms: i64, zone: Zone, named: Named, format: &str) -> String {
    let Some(instant) = in_zone(at_ms, zone) else { return format!("{at_ms} ms") };
    let text = instant.format(format);
    match (zone, named) {
        (Zone::Utc, Named::IfUtc) => format!("{text}Z"),
        (Zone::Utc, Named::Always) => format!("{text} UTC"),
        (Zone::Local, Named::IfUtc) => text.to_string(),
        (Zone::Local, Named::Always) => format!("{text} {}", instant.format("%:z")),
    }
}

/// A duration in at most two units: `35ms`, `1.2s`, `4m 05s`, `3h 20m`, `2d 4h`.
pub(crate) fn duration(duration_ms: i64) -> String {
    let ms = duration_ms.max(0);
    // Round before choosing the unit, so that 59,960 ms is "1m 00s" and not "60.0s".
    let seconds = (ms + 500) / 1_000;
    if ms < 1_000 {
        format!("{ms}ms")
    } else if ms < 59_950 {
        let tenths = (ms + 50) / 100;
        format!("{}.{}s", tenths / 10, tenths % 10)
    } else if seconds < 3_600 {
        format!("{}m {:02}s", seconds / 60, seconds % 60)
    } else if seconds < 86_400 {
        format!("{}h {:02}m", seconds / 3_600, seconds % 3_600 / 60)
    } else {
        format!("{}d {}h", seconds / 86_400, seconds % 86_400 / 3_600)
    }
}

/// An elapsed time in whole seconds: `7s`, `1m 07s`.
pub(crate) fn elapsed(duration_ms: i64) -> String {
    let ms = duration_ms.max(0);
    if ms < 60_000 { format!("{}s", ms / 1_000) } else { duration(ms / 1_000 * 1_000) }
}

/// The distance of an instant from now, in one unit: `just now`, `5m ago`, `in 3h`.
pub(crate) fn relative(at_ms: i64, now_ms: i64) -> String {
    let distance_ms = now_ms.saturating_sub(at_ms);
    let text = one_unit(distance_ms.saturating_abs());
    if distance_ms.saturating_abs() < 1_000 {
        "just now".to_owned()
    } else if distance_ms >= 0 {
        format!("{text} ago")
    } else {
        format!("in {text}")
    }
}

/// An instant with its zone and its distance from now: `2026-11-20 12:03:04 +01:00 (5m ago)`.
pub(crate) fn instant(at_ms: i64, now_ms: i64) -> String {
    format!("{} {}", day_and_clock_with_zone(at_ms), paint(DIM, format!("({})", relative(at_ms, now_ms))))
}

fn one_unit(ms: i64) -> String {
    let seconds = ms / 1_000;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn utc_is_always_named() {
        let at_ms = 1_795_428_184_000;
        let (day, clock) = ("%Y-%m-%d %H:%M:%S", "%H:%M:%S");
        assert_eq!(formatted(at_ms, Zone::Utc, Named::IfUtc, clock), "10:03:04Z");
        assert_eq!(formatted(at_ms, Zone::Utc, Named::IfUtc, day), "2026-11-23 10:03:04Z");
        assert_eq!(formatted(at_ms, Zone::Utc, Named::Always, day), "2026-11-23 10:03:04 UTC");
    }

    #[test]
    fn durations() {
        let cases = [
            (-5, "0ms"),
            (0, "0ms"),
            (35, "35ms"),
            (999, "999ms"),
            (1_000, "1.0s"),
            (1_249, "1.2s"),
            (59_949, "59.9s"),
            (59_950, "1m 00s"),
            (245_000, "4m 05s"),
            (3_599_499, "59m 59s"),
            (3_599_500, "1h 00m"),
            (12_000_000, "3h 20m"),
            (187_200_000, "2d 4h"),
        ];
        for (ms, expected) in cases {
            assert_eq!(duration(ms), expected, "{ms} ms");
        }
    }

    #[test]
    fn elapsed_ticks_by_seconds() {
        let cases = [(900, "0s"), (7_999, "7s"), (67_999, "1m 07s")];
        for (ms, expected) in cases {
            assert_eq!(elapsed(ms), expected, "{ms} ms");
        }
    }

    #[test]
    fn relative_times() {
        let cases = [
            (0, "just now"),
            (-999, "just now"),
            (5_000, "5s ago"),
            (61_000, "1m ago"),
            (-7_200_000, "in 2h"),
            (200_000_000, "2d ago"),
        ];
        let now = 1_000_000_000_000;
        for (distance, expected) in cases {
            assert_eq!(relative(now - distance, now), expected, "{distance} ms");
        }
    }
}
