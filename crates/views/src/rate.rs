//! Durations that people type, and the rate of a queue as text: `100/1m`.

use std::time::Duration;

use windlass_engine::store::{RATE_INTERVAL_MAX_MS, Rate};

/// The longest duration: a hundred years. With this limit, sums cannot overflow.
const MAX_DURATION: Duration = Duration::from_secs(100 * 366 * 24 * 3600);

/// Reads a duration such as `90s`, `5m`, `1h 30m`, `7d`.
///
/// # Errors
/// A sentence about what is wrong.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    // humantime reads `M` as a month, but a user who types it means minutes.
    if text.contains('M') {
        return Err(format!(
            "`{text}` is unclear: write `m` for minutes or `days` for longer, for example `30m`"
        ));
    }
    let duration = humantime::parse_duration(text).map_err(|_error| {
        if text.parse::<u64>().is_ok() {
            format!("the unit is missing; did you mean `{text}s`?")
        } else {
            "write a number and a unit, for example 30s, 5m, 1h 30m, 7d".to_owned()
        }
    })?;
    if duration > MAX_DURATION {
        return Err("the duration is longer than a hundred years".to_owned());
    }
    Ok(duration)
}

/// Reads a rate such as `100/1m`, `5/1s` or `5/s`.
///
/// # Errors
/// A sentence about what is wrong.
pub fn parse_rate(text: &str) -> Result<Rate, String> {
    let help = "write jobs and an interval, for example 100/1m";
    let (jobs, interval) = text.split_once('/').ok_or(help)?;
    let jobs: i64 = jobs.trim().parse().ok().filter(|jobs| *jobs >= 1).ok_or(help)?;
    let interval = interval.trim();
    let interval = match interval.starts_with(|character: char| character.is_ascii_digit()) {
        true => parse_duration(interval)?,
        false => parse_duration(&format!("1{interval}"))?,
    };
    let interval_ms = i64::try_from(interval.as_millis()).unwrap_or(i64::MAX);
    if !(1..=RATE_INTERVAL_MAX_MS).contains(&interval_ms) {
        return Err("the interval of a rate is between 1ms and 31days".to_owned());
    }
    Ok(Rate { jobs, interval_ms })
}

/// The interval of a rate as text, which [`parse_duration`] reads.
#[must_use]
pub fn rate_interval(rate: Rate) -> String {
    humantime::format_duration(Duration::from_millis(rate.interval_ms.unsigned_abs())).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_parsed() {
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
    fn rates() {
        let cases = [
            ("100/1m", 100, 60_000),
            ("5/s", 5, 1_000),
            (" 7 / 250ms", 7, 250),
            ("1/31d", 1, RATE_INTERVAL_MAX_MS),
        ];
        for (text, jobs, interval_ms) in cases {
            assert_eq!(parse_rate(text), Ok(Rate { jobs, interval_ms }), "{text}");
        }
        for text in ["", "100", "0/1m", "-1/1m", "1/0s", "1/32d", "x/1m", "1/x"] {
            assert!(parse_rate(text).is_err(), "{text}");
        }
        assert_eq!(rate_interval(Rate { jobs: 1, interval_ms: 90_000 }), "1m 30s");
    }
}
