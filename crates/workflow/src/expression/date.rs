//! The filter `date`: formats a date or a time.

use std::fmt::Write as _;

use chrono::format::{Item, StrftimeItems};
use chrono::{DateTime, NaiveDate, NaiveDateTime, TimeDelta};

/// The default format: the day.
const DAY: &str = "%Y-%m-%d";

/// Formats the date or time `text` after adding `days`. The format is that of `strftime`. A time with an offset is
/// formatted as local time; it is not converted to UTC.
pub(super) fn format(text: &str, format: Option<&str>, days: i64) -> Result<String, String> {
    let format = format.unwrap_or(DAY);
    let items: Vec<Item<'_>> = StrftimeItems::new(format).collect();
    if items.contains(&Item::Error) {
        return Err(format!("`{format}` is not a format; write one like \"%Y-%m-%d\" or \"%H:%M\""));
    }
    let time =
        read(text).ok_or_else(|| "`date` needs a date like 2026-01-31 or a time in RFC 3339".to_owned())?;
    let moved = TimeDelta::try_days(days).and_then(|days| time.checked_add_signed(days));
    let moved = moved.ok_or_else(|| format!("adding {days} days leaves the calendar"))?;
    let mut written = String::new();
    // The time is a local time without an offset, so a format that asks for the offset fails.
    write!(written, "{}", moved.format_with_items(items.into_iter()))
        .map_err(|_| format!("`{format}` asks for the offset, which `date` can't write"))?;
    Ok(written)
}

fn read(text: &str) -> Option<NaiveDateTime> {
    if let Ok(time) = DateTime::parse_from_rfc3339(text) {
        return Some(time.naive_local());
    }
    NaiveDate::parse_from_str(text, DAY).ok()?.and_hms_opt(0, 0, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_local_time_is_formatted() {
        let night = "2026-03-29T00:30:00+02:00";
        let cases = [
            (night, None, 0, "2026-03-29"),
            (night, None, -1, "2026-03-28"),
            (night, Some("%Y/%m/%d %H:%M"), 1, "2026/03/30 00:30"),
            (night, Some("%G-W%V"), 0, "2026-W13"),
            ("2026-12-31", None, 1, "2027-01-01"),
            ("2026-01-31", Some("%Y"), 0, "2026"),
            ("2026-01-01T00:00:00.500Z", Some("%Y%m%d"), -1, "20251231"),
        ];
        for (text, format_, days, expected) in cases {
            assert_eq!(format(text, format_, days).as_deref(), Ok(expected), "{text} {format_:?} {days}");
        }
    }

    #[test]
    fn a_refusal_has_a_reason() {
        let cases = [
            ("yesterday", None, 0, "needs a date"),
            ("2026-02-30", None, 0, "needs a date"),
            ("2026-01-31", Some("%Q"), 0, "not a format"),
            ("2026-01-31T00:00:00Z", Some("%z"), 0, "offset"),
            ("2026-01-31", None, i64::MAX, "calendar"),
            ("2026-01-31", None, 999_999_999, "calendar"),
        ];
        for (text, format_, days, reason) in cases {
            let message = format(text, format_, days).expect_err(text);
            assert!(message.contains(reason), "{message}");
        }
    }
}
