//! When a schedule occurs. The functions are pure: they depend on the rule, the zone and an instant, and read no clock.
//!
//! The times of a `cron` rule are local times. `local` iterates over local times and knows nothing of zones. `zone`
//! converts local times to instants, also around changes of the clock. `occurrences` combines the two.

mod cron;
mod field;
mod instant;
mod jitter;
mod local;
mod occurrences;
mod params;
mod zone;

use std::fmt;
use std::ops::Range;

use chrono::NaiveDateTime;

pub use instant::{local_text, parse_instant};
pub use jitter::jitter;
pub use occurrences::{Backwards, Occurrences};
pub use params::{ScheduleParamError, check_params, render_params, run_params};

use crate::model::{Rule, Schedule};
use crate::{duration, limits};
use cron::Cron;
use zone::Zone;

/// The compiled rule of a schedule. It lists the occurrences.
#[derive(Debug, Clone)]
pub struct Timetable {
    times: Times,
    /// The first instant at which the schedule may occur.
    start_ms: Option<i64>,
    /// The schedule no longer occurs at this instant or later.
    end_ms: Option<i64>,
}

#[derive(Debug, Clone)]
enum Times {
    /// Local times in a zone.
    Cron(Box<Cron>, Zone),
    /// Multiples of an interval, counted from `origin_ms`.
    Every { interval_ms: i64, origin_ms: i64 },
    /// One instant.
    Once { at_ms: i64 },
}

/// One time at which a schedule is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Occurrence {
    /// The instant, in milliseconds since the Unix epoch.
    pub at_ms: i64,
    /// How a change of the clock affects the occurrence. `None` on nearly all days.
    pub moved: Option<Moved>,
}

/// What a change of the clock does to an occurrence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moved {
    /// The clock is put forward and skips `local`, which does not exist that day. The occurrence is at the first instant
    /// after the gap.
    GapForward {
        /// The first time of the rule that is skipped.
        local: NaiveDateTime,
    },
    /// The clock is put back and shows `local` twice. The occurrence is at the first of the two.
    FoldFirst {
        /// The time that the clock shows twice.
        local: NaiveDateTime,
    },
}

impl fmt::Display for Moved {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Moved::GapForward { local } => {
                write!(formatter, "{} does not exist: the clock is put forward", local.format("%F %T"))
            }
            Moved::FoldFirst { local } => {
                write!(formatter, "{} comes twice: the clock is put back", local.format("%F %T"))
            }
        }
    }
}

/// Why a schedule can't be compiled: the reason, and what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}; {help}")]
pub struct RuleError {
    /// What is wrong.
    pub reason: String,
    /// What to do about it.
    pub help: String,
    /// Which field of the schedule is wrong.
    pub(crate) field: ScheduleField,
    /// The wrong part of a cron expression, in bytes. `None` if the whole expression is wrong.
    pub(crate) range: Option<Range<usize>>,
}

/// A field of a schedule that can be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScheduleField {
    /// `cron`, `every` or `at`.
    Rule,
    Timezone,
    Jitter,
    End,
}

impl RuleError {
    fn new(reason: impl Into<String>, help: impl Into<String>) -> RuleError {
        RuleError { reason: reason.into(), help: help.into(), field: ScheduleField::Rule, range: None }
    }
}

/// Checks a cron expression and the name of its zone.
pub(crate) fn check_cron(cron: &str, timezone: &str) -> Result<(), String> {
    let checked = Cron::parse(cron).and_then(|_cron| Zone::named(timezone));
    checked.map(|_zone| ()).map_err(|error| error.reason)
}

impl Timetable {
    /// Compiles the rule of a schedule.
    ///
    /// # Errors
    /// The cron expression is invalid or matches no day, the zone does not exist, the interval is too short, the jitter is
    /// longer than the interval, or the schedule never occurs between `start` and `end`.
    pub fn of(schedule: &Schedule) -> Result<Timetable, RuleError> {
        // A schedule with `every` has a zone too, because templates and messages show local times.
        let zone = Zone::named(&schedule.timezone)?;
        let times = match &schedule.rule {
            Rule::Cron(text) => Times::Cron(Box::new(Cron::parse(text)?), zone),
            Rule::EveryMs(interval_ms) => Times::Every {
                interval_ms: within_limits(*interval_ms)?,
                origin_ms: schedule.start_ms.unwrap_or(0),
            },
            Rule::AtMs(at_ms) => Times::Once { at_ms: *at_ms },
        };
        let timetable = Timetable { times, start_ms: schedule.start_ms, end_ms: schedule.end_ms };
        timetable.check_jitter(schedule.jitter_ms)?;
        timetable.check_start_and_end()?;
        Ok(timetable)
    }

    /// All that is wrong with a schedule: the zone and the rule, or else the first thing that is wrong with both together.
    #[must_use]
    pub fn errors(schedule: &Schedule) -> Vec<RuleError> {
        let rule = match &schedule.rule {
            Rule::Cron(text) => Cron::parse(text).map(|_cron| ()),
            Rule::EveryMs(interval_ms) => within_limits(*interval_ms).map(|_interval_ms| ()),
            Rule::AtMs(_) => Ok(()),
        };
        let errors: Vec<RuleError> =
            [rule.err(), Zone::named(&schedule.timezone).err()].into_iter().flatten().collect();
        match errors.is_empty() {
            true => Timetable::of(schedule).err().into_iter().collect(),
            false => errors,
        }
    }

    /// The occurrences after the instant, the earliest first.
    pub fn after(&self, instant_ms: i64) -> Occurrences<'_> {
        Occurrences::new(self, instant_ms)
    }

    /// The occurrences at or before the instant, the latest first.
    pub fn until(&self, instant_ms: i64) -> Backwards<'_> {
        Backwards::new(self, instant_ms)
    }

    fn check_jitter(&self, jitter_ms: i64) -> Result<(), RuleError> {
        if jitter_ms == 0 {
            return Ok(());
        }
        let shortest_ms = match &self.times {
            Times::Cron(cron, _) => cron.times.shortest_interval_s().map(|interval_s| interval_s * 1_000),
            Times::Every { interval_ms, .. } => Some(*interval_ms),
            Times::Once { .. } => None,
        };
        match shortest_ms {
            Some(shortest_ms) if jitter_ms > shortest_ms => {
                let (jitter, shortest) = (duration::to_text(jitter_ms), duration::to_text(shortest_ms));
                let reason =
                    format!("the jitter of {jitter} is longer than the shortest interval, {shortest}");
                Err(RuleError {
                    field: ScheduleField::Jitter,
                    ..RuleError::new(reason, "write a shorter `jitter`")
                })
            }
            Some(_) | None => Ok(()),
        }
    }

    fn check_start_and_end(&self) -> Result<(), RuleError> {
        let (Some(start_ms), Some(end_ms)) = (self.start_ms, self.end_ms) else { return Ok(()) };
        let refuse = |reason: &str| {
            Err(RuleError {
                field: ScheduleField::End,
                ..RuleError::new(reason, "write a later `end`, or remove it")
            })
        };
        if end_ms <= start_ms {
            return refuse("`end` is not after `start`");
        }
        match self.after(i64::MIN).next() {
            Some(_) => Ok(()),
            None => refuse("the schedule never occurs between `start` and `end`"),
        }
    }
}

/// The interval, if it has an allowed length.
fn within_limits(interval_ms: i64) -> Result<i64, RuleError> {
    if (limits::SCHEDULE_INTERVAL_MS..=limits::DURATION_MS).contains(&interval_ms) {
        return Ok(interval_ms);
    }
    let (least, most) = (limits::SCHEDULE_INTERVAL_MS, limits::DURATION_MS);
    let reason = format!("an interval of {} is out of range", duration::to_text(interval_ms));
    let help =
        format!("write a duration between {} and {}", duration::to_text(least), duration::to_text(most));
    Err(RuleError::new(reason, help))
}
