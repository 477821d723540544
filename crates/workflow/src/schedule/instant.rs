//! Parses and formats instants, in the zone of a schedule.

use chrono::{DateTime, NaiveDate, NaiveDateTime, SecondsFormat, Timelike};

use super::zone::Zone;

/// The formats of a time without an offset. A space may replace the `T`.
const LOCAL_FORMATS: [&str; 2] = ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%dT%H:%M"];

/// Parses an instant like `2026-11-21`, `2026-11-21T02:30` or `2026-11-21T02:30:00+01:00`. The result is in milliseconds
/// since the Unix epoch.
///
/// A day means its first instant. A time without an offset is a local time of the zone. If the clock shows it twice, the
/// first instant is meant; if the clock skips it, the first instant after the gap.
///
/// # Errors
/// What to write instead, or that the zone does not exist.
pub fn parse_instant(text: &str, timezone: &str) -> Result<i64, String> {
    let text = text.trim();
    let joined = match text.as_bytes().get(10) {
        Some(b' ' | b't') if text.is_char_boundary(10) => format!("{}T{}", &text[..10], &text[11..]),
        _ => text.to_owned(),
    };
    if let Ok(instant) = DateTime::parse_from_rfc3339(&joined) {
        return Ok(instant.timestamp_millis());
    }
    let local = LOCAL_FORMATS.iter().find_map(|format| NaiveDateTime::parse_from_str(&joined, format).ok());
    let day = || NaiveDate::parse_from_str(&joined, "%Y-%m-%d").ok()?.and_hms_opt(0, 0, 0);
    let Some(local) = local.or_else(day) else {
        return Err(
            "write a day like 2026-11-21, a time like 2026-11-21T02:30, or one with its offset like \
                    2026-11-21T02:30:00+01:00"
                .to_owned(),
        );
    };
    let zone = Zone::named(timezone).map_err(|error| error.to_string())?;
    let whole = local.with_nanosecond(0).unwrap_or(local);
    let rest_ms = i64::from(local.nanosecond() / 1_000_000);
    Ok(zone.first_showing(whole) * 1_000 + rest_ms)
}

/// Formats an instant as local time with its offset, like `2026-11-21T02:30:00+01:00` (RFC 3339). The time is in UTC if the
/// zone does not exist.
#[must_use]
pub fn local_text(at_ms: i64, timezone: &str) -> String {
    let instant = DateTime::from_timestamp_millis(at_ms).unwrap_or_default();
    let precision = if at_ms % 1_000 == 0 { SecondsFormat::Secs } else { SecondsFormat::Millis };
    match Zone::named(timezone) {
        Ok(zone) => instant.with_timezone(&zone.tz()).to_rfc3339_opts(precision, false),
        Err(_) => instant.to_rfc3339_opts(precision, false),
    }
}
