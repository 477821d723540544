//! The rate of a queue as text: `100/1m`.

use std::time::Duration;

use windlass_engine::store::{RATE_INTERVAL_MAX_MS, Rate};

use crate::arguments::parse_duration;

/// Reads a rate such as `100/1m`, `5/1s` or `5/s`.
pub(super) fn parse(text: &str) -> Result<Rate, String> {
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

/// The interval as text.
pub(super) fn interval(rate: Rate) -> String {
    humantime::format_duration(Duration::from_millis(rate.interval_ms.unsigned_abs())).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates() {
        let cases = [
            ("100/1m", 100, 60_000),
            ("5/s", 5, 1_000),
            (" 7 / 250ms", 7, 250),
            ("1/31d", 1, RATE_INTERVAL_MAX_MS),
        ];
        for (text, jobs, interval_ms) in cases {
            assert_eq!(parse(text), Ok(Rate { jobs, interval_ms }), "{text}");
        }
        for text in ["", "100", "0/1m", "-1/1m", "1/0s", "1/32d", "x/1m", "1/x"] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert_eq!(interval(Rate { jobs: 1, interval_ms: 90_000 }), "1m 30s");
    }
}
