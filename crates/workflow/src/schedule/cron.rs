//! A cron expression, compiled.

use croner::parser::{CronParser, Seconds, Year};

use super::RuleError;
use super::local::LocalTimes;

/// The times of a cron expression, and how they follow changes of the clock.
#[derive(Debug, Clone)]
pub(super) struct Cron {
    pub(super) times: LocalTimes,
    pub(super) pace: Pace,
}

/// How a rule follows changes of the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pace {
    /// Some hours of the day are meant: each of its times occurs once, whatever the clock does.
    Fixed,
    /// Every hour of the day is meant: it occurs whenever the clock shows one of its times.
    EveryHour,
}

impl Cron {
    pub(super) fn parse(text: &str) -> Result<Cron, RuleError> {
        let parser = CronParser::builder()
            .seconds(Seconds::Optional)
            .year(Year::Disallowed)
            .sloppy_ranges(true)
            .build();
        let parsed = parser.parse(text).map_err(|error| {
            RuleError::new(error.to_string(), "write five fields, like `30 2 * * *` for 02:30 every day")
        })?;
        let times = LocalTimes::of(parsed.pattern);
        let pace = if times.every_hour() { Pace::EveryHour } else { Pace::Fixed };
        Ok(Cron { times, pace })
    }
}
