//! Instants and durations, as people read and type them.

use std::time::Duration;

use chrono::{DateTime, Local, NaiveDateTime, SecondsFormat, TimeZone, Utc};

/// The longest duration that is accepted: a hundred years. It keeps sums far from overflow.
const MAX_DURATION: Duration = Duration::from_secs(100 * 366 * 24 * 3600);

/// Milliseconds since the Unix epoch, now.
pub(crate) fn now_ms() -> i64 {
    Utc::now().timestamp_millis()
}

/// RFC 3339 in UTC with milliseconds, as in the JSON output.
pub(crate) fn rfc3339(at_ms: i64) -> String {
    match DateTime::<Utc>::from_timestamp_millis(at_ms) {
        Some(instant) => instant.to_rfc3339_opts(SecondsFormat::Millis, true),
        None => format!("{at_ms} ms"),
    }
}

/// In UTC to the second, `2026-11-20T12:03:04Z`.
pub(crate) fn utc(at_ms: i64) -> String {
    match DateTime::<Utc>::from_timestamp_millis(at_ms) {
        Some(instant) => instant.to_rfc3339_opts(SecondsFormat::AutoSi, true),
        None => format!("{at_ms} ms"),
    }
}

/// The time of day on this machine's clock, `12:03:04`.
pub(crate) fn clock(at_ms: i64) -> String {
    local(at_ms, "%H:%M:%S")
}

/// Day and time on this machine's clock, `2026-11-20 12:03:04`.
pub(crate) fn day_and_clock(at_ms: i64) -> String {
    local(at_ms, "%Y-%m-%d %H:%M:%S")
}

fn local(at_ms: i64, format: &str) -> String {
    match Local.timestamp_millis_opt(at_ms).single() {
        Some(instant) => instant.format(format).to_string(),
        None => format!("{at_ms} ms"),
    }
}

/// A duration in at most two units: `35ms`, `1.2s`, `4m 05s`, `3h 20m`, `2d 4h`.
pub(crate) fn duration(duration_ms: i64) -> String {
    let ms = duration_ms.max(0);
    // Rounding happens before the unit is chosen, so that 59,960 ms is "1m 00s" and not "60.0s".
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

/// An elapsed time that ticks by whole seconds: `7s`, `1m 07s`.
pub(crate) fn elapsed(duration_ms: i64) -> String {
    let ms = duration_ms.max(0);
    if ms < 60_000 { format!("{}s", ms / 1_000) } else { duration(ms / 1_000 * 1_000) }
}

/// How an instant lies to now, in one unit: `just now`, `5m ago`, `in 3h`.
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

fn one_unit(ms: i64) -> String {
    let seconds = ms / 1_000;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// Reads a duration such as `90s`, `5m`, `1h 30m`, `7d`; for clap.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    // humantime reads `M` as a month; nobody who types it here means one.
    if text.contains('M') {
        return Err(format!(
            "`{text}` is unclear: write `m` for minutes or `days` for longer, for example `30m`"
        ));
    }
    let duration = humantime::parse_duration(text).map_err(|error| {
        if text.parse::<u64>().is_ok() {
            format!("it has no unit; did you mean `{text}s`?")
        } else {
            format!("{error}; write a number and a unit, for example 30s, 5m, 1h 30m, 7d")
        }
    })?;
    if duration > MAX_DURATION {
        return Err("it is longer than a hundred years".to_owned());
    }
    Ok(duration)
}

/// Reads an instant: RFC 3339, or day and time on this machine's clock; for clap.
pub(crate) fn parse_instant(text: &str) -> Result<i64, String> {
    let text = text.trim();
    if let Ok(instant) = DateTime::parse_from_rfc3339(text) {
        return Ok(instant.timestamp_millis());
    }
    let local_formats = ["%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M"];
    let naive = local_formats
        .iter()
        .find_map(|format| NaiveDateTime::parse_from_str(text, format).ok())
        .ok_or_else(|| {
            "write it as 2026-11-20T09:00:00Z (UTC) or \"2026-11-20 09:00\" (this machine's clock)".to_owned()
        })?;
    Local
        .from_local_datetime(&naive)
        .earliest()
        .map(|instant| instant.timestamp_millis())
        .ok_or_else(|| "this machine's clock skips that time (daylight saving)".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn instants_in_json() {
        assert_eq!(rfc3339(1_795_215_928_123), "2026-11-20T23:05:28.123Z");
        assert_eq!(rfc3339(i64::MAX), format!("{} ms", i64::MAX));
    }

    #[test]
    fn durations_that_people_type() {
        assert_eq!(parse_duration("1h 30m"), Ok(Duration::from_secs(5_400)));
        assert_eq!(parse_duration("7d"), Ok(Duration::from_secs(604_800)));
        let refused = [
            ("1M", "unclear"),
            ("30", "did you mean `30s`?"),
            ("soon", "for example"),
            ("-5s", "for example"),
            ("900years", "hundred years"),
        ];
        for (text, expected) in refused {
            let error = parse_duration(text).expect_err(text);
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn instants_that_people_type() {
        assert_eq!(parse_instant("2026-11-20T23:05:28.123Z"), Ok(1_795_215_928_123));
        assert!(parse_instant("2026-11-20 23:05").is_ok());
        let error = parse_instant("tomorrow").expect_err("not an instant");
        assert!(error.contains("2026-11-20"), "{error}");
    }
}
