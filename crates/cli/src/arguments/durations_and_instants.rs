//! Durations and instants that people type.

use chrono::{DateTime, Local, NaiveDate, NaiveDateTime, TimeZone};
use windlass_views::parse_duration;

/// Reads an instant: RFC 3339, or a local day and time; for clap.
pub(crate) fn parse_instant(text: &str) -> Result<i64, String> {
    let text = text.trim();
    if let Ok(instant) = DateTime::parse_from_rfc3339(text) {
        return Ok(instant.timestamp_millis());
    }
    let local_formats = ["%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M"];
    let naive = local_formats
        .iter()
        .find_map(|format| NaiveDateTime::parse_from_str(text, format).ok())
        .ok_or_else(|| "write 2026-11-20T09:00:00Z (UTC) or \"2026-11-20 09:00\" (local time)".to_owned())?;
    Local
        .from_local_datetime(&naive)
        .earliest()
        .map(|instant| instant.timestamp_millis())
        .ok_or_else(|| "this local time does not exist, because daylight saving time skips it".to_owned())
}

/// Reads how far back a list goes: a duration before now, a local day, or an instant; for clap.
pub(crate) fn parse_since(text: &str) -> Result<i64, String> {
    since(text, Local::now())
}

fn since(text: &str, now: DateTime<Local>) -> Result<i64, String> {
    let text = text.trim();
    let day = match text {
        "today" => Some(now.date_naive()),
        "yesterday" => now.date_naive().pred_opt(),
        text => NaiveDate::parse_from_str(text, "%Y-%m-%d").ok(),
    };
    if let Some(day) = day {
        // A day begins later where a change of the clock skips midnight.
        let hours = (0..24).filter_map(|hour| day.and_hms_opt(hour, 0, 0));
        let begin = hours.filter_map(|hour| Local.from_local_datetime(&hour).earliest()).next();
        return begin.map(|begin| begin.timestamp_millis()).ok_or_else(|| format!("there is no {text} here"));
    }
    if let Ok(instant) = parse_instant(text) {
        return Ok(instant);
    }
    let ago =
        parse_duration(text).map_err(|reason| match text.bytes().any(|byte| byte.is_ascii_digit()) {
            true => reason,
            false => {
                "write how long ago, as 10m or 2h, a day such as 2026-11-20 or today, or \"2026-11-20 09:00\""
                    .to_owned()
            }
        })?;
    Ok(now.timestamp_millis() - i64::try_from(ago.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_parsed() {
        assert_eq!(parse_instant("2026-11-20T23:05:28.123Z"), Ok(1_795_215_928_123));
        assert!(parse_instant("2026-11-20 23:05").is_ok());
        let error = parse_instant("tomorrow").expect_err("not an instant");
        assert!(error.contains("2026-11-20"), "{error}");
    }

    #[test]
    fn a_list_goes_back_for_a_duration_or_to_a_day() {
        let now = Local.with_ymd_and_hms(2026, 11, 20, 9, 30, 0).single().expect("an instant");
        let at = |text: &str| since(text, now);
        let ms = now.timestamp_millis();
        assert_eq!(at("10m"), Ok(ms - 600_000));
        assert_eq!(at("2h"), Ok(ms - 7_200_000));
        let midnight = ms - (9 * 60 + 30) * 60_000;
        for text in ["today", "2026-11-20", "2026-11-20 00:00"] {
            assert_eq!(at(text), Ok(midnight), "{text}");
        }
        assert_eq!(at("yesterday"), at("2026-11-19"));
        for (text, expected) in [("5", "did you mean `5s`"), ("soon", "today"), ("2026-13-01", "for example")]
        {
            let error = at(text).expect_err(text);
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
