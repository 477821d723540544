//! Checks the schedules of a workflow that a program made.

use std::collections::HashMap;

use super::text::{self, Rule, Texts};
use super::{Checked, WorkflowError, in_range, optional_duration, refuse, within};
use crate::job_names::JobNames;
use crate::limits;
use crate::model::{self, Param, Schedule};
use crate::params::Supplied;
use crate::schedule::{Timetable, check_params};
use crate::template::Reader;

pub(super) fn check_all(schedules: &[Schedule], texts: &Texts<'_>) -> Checked {
    within(schedules.len(), limits::SCHEDULES, "schedules")?;
    let mut seen: HashMap<&str, usize> = HashMap::new();
    for (index, schedule) in schedules.iter().enumerate() {
        let place = format!("schedules[{index}] (`{}`)", schedule.name);
        check(schedule, texts).map_err(|error| error.below(&place))?;
        if let Some(first) = seen.insert(&schedule.name, index) {
            return refuse(format!("{place}.name"), format!("schedules[{first}] has the same name"));
        }
    }
    Ok(())
}

impl Schedule {
    /// Checks a schedule that a program made for a workflow with these parameters.
    ///
    /// # Errors
    /// The first thing that is wrong, and where.
    pub fn check(&self, params: &[Param]) -> Result<(), WorkflowError> {
        check(self, &Texts { params, names: &JobNames::new([].into_iter()) })
    }
}

fn check(schedule: &Schedule, texts: &Texts<'_>) -> Checked {
    text::name(&schedule.name, "name", Rule::Schedule)?;
    let earliest_ms = limits::SCHEDULE_FIRST_MS..=limits::SCHEDULE_LAST_MS;
    for (instant_ms, place) in [(schedule.start_ms, "start_ms"), (schedule.end_ms, "end_ms")] {
        if let Some(instant_ms) = instant_ms {
            in_range(instant_ms, earliest_ms.clone(), place)?;
        }
    }
    in_range(schedule.jitter_ms, 0..=limits::DURATION_MS, "jitter_ms")?;
    optional_duration(schedule.catchup_window_ms, "catchup_window_ms")?;
    in_range(schedule.catchup_max, 1..=limits::CATCHUP, "catchup_max")?;
    if let Err(error) = Timetable::of(schedule) {
        let field = match &schedule.rule {
            model::Rule::Cron(_) => "rule.cron",
            model::Rule::EveryMs(_) => "rule.every_ms",
        };
        return refuse(field, error.to_string());
    }
    for (name, value) in &schedule.params {
        let place = format!("params[{name:?}]");
        if let Some(value) = value.as_str() {
            text::plain(value, &place)?;
            text::outputs_read(value, &place, texts, Reader::Schedule)?;
        }
    }
    let supplied = schedule.params.iter().map(|(name, value)| (name.clone(), Supplied::Json(value.clone())));
    match check_params(texts.params, schedule, supplied.collect()) {
        Ok(_kept) => Ok(()),
        Err(errors) => {
            let reasons: Vec<String> = errors.iter().map(ToString::to_string).collect();
            refuse("params", reasons.join("; "))
        }
    }
}
