//! Parses and formats durations like `90s`, `1h 30m` and `500ms`.

use crate::limits;

/// The accepted units, a part of those of humantime. `M`, months and years are not accepted: `M` is a month for humantime
/// and usually a typing error, and months and years have no fixed length. Units under a millisecond are not needed.
const UNITS: [&str; 21] = [
    "ms", "millis", "msec", "s", "sec", "secs", "second", "seconds", "m", "min", "mins", "minute", "minutes",
    "h", "hr", "hrs", "hour", "hours", "d", "day", "days",
];
const WEEKS: [&str; 4] = ["w", "wk", "week", "weeks"];

/// Parses a duration. The result is in milliseconds, from 0 to [`limits::DURATION_MS`].
///
/// # Errors
/// What is wrong and what to write. The caller names the text.
pub fn parse_ms(text: &str) -> Result<i64, String> {
    let text = text.trim();
    if text.is_empty() {
        return Err("a duration is a number with a unit, like `90s`, `10m` or `1h 30m`".to_owned());
    }
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("a duration needs a unit: `{text}s` for seconds, `{text}m` for minutes"));
    }
    if text.contains(['.', ',']) {
        return Err("a duration has only whole numbers; write `1h 30m`, not `1.5h`".to_owned());
    }
    for unit in text.split(|c: char| !c.is_alphabetic()).filter(|unit| !unit.is_empty()) {
        check_unit(unit)?;
    }
    let duration = humantime::parse_duration(text)
        .map_err(|_| "a duration is a number with a unit, like `90s`, `10m` or `1h 30m`".to_owned())?;
    match i64::try_from(duration.as_millis()) {
        Ok(milliseconds) if milliseconds <= limits::DURATION_MS => Ok(milliseconds),
        Ok(_) | Err(_) => Err(format!("the longest duration is {}", to_text(limits::DURATION_MS))),
    }
}

fn check_unit(unit: &str) -> Result<(), String> {
    match unit {
        "M" => Err("`M` could mean months; write `m` for minutes".to_owned()),
        "month" | "months" | "y" | "yr" | "yrs" | "year" | "years" => {
            Err(format!("`{unit}` has no fixed length; write days (`30d`)"))
        }
        "us" | "usec" | "micros" | "ns" | "nsec" | "nanos" | "µs" => {
            Err("the smallest unit is the millisecond (`ms`)".to_owned())
        }
        known if UNITS.contains(&known) || WEEKS.contains(&known) => Ok(()),
        unknown => Err(format!("`{unknown}` is not a unit; the units are ms, s, m, h, d and w")),
    }
}

/// Formats a duration like `1h 30m`, as [`parse_ms`] reads it. A negative duration is shown as `0s`.
pub fn to_text(milliseconds: i64) -> String {
    let mut rest = u64::try_from(milliseconds).unwrap_or(0);
    let mut parts = Vec::new();
    for (unit, length) in [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)] {
        if rest >= length {
            parts.push(format!("{}{unit}", rest / length));
            rest %= length;
        }
    }
    if parts.is_empty() { "0s".to_owned() } else { parts.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_spellings_are_parsed() {
        let cases = [
            ("90s", 90_000),
            ("500ms", 500),
            ("1h 30m", 5_400_000),
            ("1h30m", 5_400_000),
            ("2 days", 172_800_000),
            ("1w", 604_800_000),
            ("0s", 0),
            (" 5m ", 300_000),
        ];
        for (text, milliseconds) in cases {
            assert_eq!(parse_ms(text), Ok(milliseconds), "{text}");
        }
    }

    #[test]
    fn a_refusal_has_a_reason() {
        let cases = [
            ("", "with a unit"),
            ("90", "`90s`"),
            ("1M", "minutes"),
            ("1month", "no fixed length"),
            ("2y", "no fixed length"),
            ("1.5h", "`1h 30m`"),
            ("100us", "millisecond"),
            ("5 fortnights", "is not a unit"),
            ("s", "with a unit"),
            ("-5s", "with a unit"),
            ("5s5", "with a unit"),
            ("99999999999999999999s", "with a unit"),
            ("4000d", "longest"),
        ];
        for (text, reason) in cases {
            let message = parse_ms(text).expect_err(text);
            assert!(message.contains(reason), "{text}: {message}");
        }
    }

    #[test]
    fn every_listed_unit_is_parsed() {
        for unit in UNITS.iter().chain(&WEEKS) {
            assert!(parse_ms(&format!("1{unit}")).is_ok(), "{unit}");
        }
    }

    #[test]
    fn a_formatted_duration_can_be_parsed() {
        for milliseconds in [0, 1, 999, 1_000, 90_000, 5_400_000, 86_400_000, limits::DURATION_MS] {
            assert_eq!(parse_ms(&to_text(milliseconds)), Ok(milliseconds));
        }
        assert_eq!(to_text(5_400_000), "1h 30m");
    }
}
