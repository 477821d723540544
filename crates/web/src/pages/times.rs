//! Instants and durations for people: instants in the reader's zone, with the full text beside them.

use chrono::{DateTime, Datelike, NaiveDateTime, TimeZone, Utc};
use chrono_tz::Tz;

/// The zone of a reader, and the present instant.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    /// The zone.
    pub zone: Tz,
    /// Now, in milliseconds since the Unix epoch.
    pub now_ms: i64,
}

/// An instant as it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp {
    /// For programs: RFC 3339 in UTC.
    pub iso: String,
    /// As short as it is clear today.
    pub short: String,
    /// With date, seconds and zone.
    pub full: String,
}

impl Times {
    /// The zone of a name of the time zone database; UTC for every other name.
    #[must_use]
    pub fn zone(name: &str) -> Tz {
        name.parse().unwrap_or(Tz::UTC)
    }

    /// The place that the zone is named for: `Berlin` for `Europe/Berlin`.
    #[must_use]
    pub fn place(&self) -> String {
        self.zone.name().rsplit('/').next().unwrap_or_default().replace('_', " ")
    }

    /// The instant of a local time of the reader as forms send it: `2026-11-21T06:00`. The first one if a clock shows it twice.
    #[must_use]
    pub fn instant_of(&self, local: &str) -> Option<i64> {
        let formats = ["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"];
        let time = formats.iter().find_map(|format| NaiveDateTime::parse_from_str(local, format).ok())?;
        self.zone.from_local_datetime(&time).earliest().map(|at| at.timestamp_millis())
    }

    /// An instant as the value of a field of a form: `2026-11-21T06:00`.
    #[must_use]
    pub fn field(&self, at_ms: i64) -> String {
        self.local(at_ms).map_or_else(String::new, |local| local.format("%Y-%m-%dT%H:%M").to_string())
    }

    fn local(&self, at_ms: i64) -> Option<DateTime<Tz>> {
        self.zone.timestamp_millis_opt(at_ms).single()
    }

    /// An instant, with seconds if it is of today.
    #[must_use]
    pub fn stamp(&self, at_ms: i64) -> Stamp {
        let Some(local) = self.local(at_ms) else {
            let text = format!("{at_ms} ms");
            return Stamp { iso: text.clone(), short: text.clone(), full: text };
        };
        let iso = local.with_timezone(&Utc).to_rfc3339_opts(chrono::SecondsFormat::Millis, true);
        let full = local.format("%a %-d %b %Y %H:%M:%S%.3f %Z").to_string();
        Stamp { iso, short: self.short(at_ms, "%H:%M:%S"), full }
    }

    /// The hour and minute, with the day if it is not today.
    #[must_use]
    pub fn minute(&self, at_ms: i64) -> String {
        self.short(at_ms, "%H:%M")
    }

    /// The time of day, in this format, with the day before it if that is not today.
    fn short(&self, at_ms: i64, time_of_day: &str) -> String {
        let (Some(local), Some(now)) = (self.local(at_ms), self.local(self.now_ms)) else {
            return format!("{at_ms} ms");
        };
        let days = now.date_naive().signed_duration_since(local.date_naive()).num_days();
        let day = match days {
            0 => return local.format(time_of_day).to_string(),
            1..=5 => "%a %H:%M",
            _ if local.year() == now.year() => "%-d %b %H:%M",
            _ => "%Y-%m-%d %H:%M",
        };
        local.format(day).to_string()
    }

    /// `06:00` today, `yesterday 22:00`, or `Sat 21 Nov 22:00`.
    #[must_use]
    pub fn day_and_minute(&self, at_ms: i64) -> String {
        let (Some(local), Some(now)) = (self.local(at_ms), self.local(self.now_ms)) else {
            return format!("{at_ms} ms");
        };
        let days = now.date_naive().signed_duration_since(local.date_naive()).num_days();
        let format = match days {
            0 => "%H:%M",
            1 => "yesterday %H:%M",
            _ => "%a %-d %b %H:%M",
        };
        local.format(format).to_string()
    }

    /// The weekday, the day and the month.
    #[must_use]
    pub fn day(&self, at_ms: i64) -> String {
        self.local(at_ms).map_or_else(String::new, |local| local.format("%a %-d %b").to_string())
    }

    /// The time of day with seconds.
    #[must_use]
    pub fn second(&self, at_ms: i64) -> String {
        self.local(at_ms).map_or_else(String::new, |local| local.format("%H:%M:%S").to_string())
    }

    /// The time of day with milliseconds.
    #[must_use]
    pub fn millisecond(&self, at_ms: i64) -> String {
        self.local(at_ms).map_or_else(String::new, |local| local.format("%H:%M:%S%.3f").to_string())
    }
}

/// A duration in its two largest units: `350ms`, `47s`, `4m 23s`, `1h 02m`, `3d 4h`.
#[must_use]
pub fn duration(duration_ms: i64) -> String {
    let ms = duration_ms.max(0);
    let seconds = ms / 1_000;
    match seconds {
        0 => format!("{ms}ms"),
        1..10 if ms % 1_000 >= 100 => format!("{seconds}.{}s", ms % 1_000 / 100),
        1..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{}h {:02}m", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!("{}d {}h", seconds / 86_400, seconds % 86_400 / 3_600),
    }
}

/// A duration in its largest unit, where the exact value does not matter: `47s`, `4m`, `2h`.
#[must_use]
pub fn rough_duration(duration_ms: i64) -> String {
    let seconds = duration_ms.max(0) / 1_000;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// A number with commas between thousands.
#[must_use]
pub fn grouped(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if number < 0 { format!("-{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sunday 22 November 2026, 07:42:00 in Berlin.
    const NOW_MS: i64 = 1_795_329_720_000;

    fn berlin() -> Times {
        Times { zone: Tz::Europe__Berlin, now_ms: NOW_MS }
    }

    #[test]
    fn an_instant_shows_its_day_only_if_it_is_not_today() {
        let texts = [0, 30_000, 8 * 3_600_000, 3 * 86_400_000, 40 * 86_400_000, 400 * 86_400_000]
            .map(|ago| berlin().stamp(NOW_MS - ago).short);
        assert_eq!(
            texts,
            ["07:42:00", "07:41:30", "Sat 23:42", "Thu 07:42", "13 Oct 08:42", "2025-10-18 08:42"]
        );
    }

    #[test]
    fn the_full_text_names_the_zone() {
        let stamp = berlin().stamp(NOW_MS + 5);
        assert_eq!(stamp.full, "Sun 22 Nov 2026 07:42:00.005 CET");
        assert_eq!(stamp.iso, "2026-11-22T06:42:00.005Z");
        assert_eq!(berlin().place(), "Berlin");
        assert_eq!(Times::zone("../etc/passwd"), Tz::UTC);
    }

    #[test]
    fn a_field_of_a_form_comes_back() {
        let field = berlin().field(NOW_MS);
        assert_eq!((field.as_str(), berlin().instant_of(&field)), ("2026-11-22T07:42", Some(NOW_MS)));
        assert_eq!([berlin().instant_of("2026-11-22"), berlin().instant_of("now")], [None, None]);
    }

    #[test]
    fn an_instant_outside_the_calendar_is_a_number() {
        assert_eq!(berlin().stamp(i64::MAX).short, format!("{} ms", i64::MAX));
    }

    #[test]
    fn thousands_are_apart() {
        assert_eq!(
            [0, 999, 1_000, 1_234_567, -1_000].map(grouped),
            ["0", "999", "1,000", "1,234,567", "-1,000"]
        );
    }

    #[test]
    fn a_duration_has_two_units() {
        let cases = [
            (-5, "0ms"),
            (350, "350ms"),
            (1_000, "1s"),
            (6_250, "6.2s"),
            (47_900, "47s"),
            (263_000, "4m 23s"),
            (3_725_000, "1h 02m"),
            (273_600_000, "3d 4h"),
        ];
        for (ms, text) in cases {
            assert_eq!(duration(ms), text);
        }
        assert_eq!([9_000, 240_000, 7_300_000, 200_000_000].map(rough_duration), ["9s", "4m", "2h", "2d"]);
    }
}
