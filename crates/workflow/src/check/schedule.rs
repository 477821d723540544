//! Checks the schedules of a workflow that a program made.

use std::collections::HashMap;

use crate::expression::{HasItems, HasWorkspace, Place, Reader};
use crate::field::{self, Checked, KnownNames, WorkflowError, in_range, optional_duration, refuse, within};
use crate::job_names::JobNames;
use crate::limits;
use crate::model::{Rule, Schedule};
use crate::names::NameKind;
use crate::params::{Param, Supplied};
use crate::schedule::{Timetable, check_params};
use crate::support::Accepted;

pub(super) fn check_all(schedules: &[Schedule], names: &KnownNames<'_>) -> Checked {
    within(schedules.len(), limits::SCHEDULES, "schedules")?;
    let mut seen: HashMap<&str, usize> = HashMap::new();
    for (index, schedule) in schedules.iter().enumerate() {
        let field = format!("schedules[{index}] (`{}`)", schedule.name);
        check(schedule, names).map_err(|error| error.inside(&field))?;
        if let Some(first) = seen.insert(&schedule.name, index) {
            return refuse(format!("{field}.name"), format!("schedules[{first}] has the same name"));
        }
    }
    Ok(())
}

impl Schedule {
    /// Checks a schedule that a program made, for a workflow with these parameters.
    ///
    /// # Errors
    /// The first error that is found, and the field.
    pub fn check(&self, params: &[Param]) -> Result<(), WorkflowError> {
        let jobs = JobNames::new([].into_iter());
        let names = KnownNames {
            params,
            jobs: &jobs,
            secrets: &[],
            reader: Reader::Workflow,
            has_items: HasItems::No,
            has_workspace: HasWorkspace::No,
            accepted: Accepted::Supported,
        };
        check(self, &names)
    }
}

fn check(schedule: &Schedule, names: &KnownNames<'_>) -> Checked {
    field::name(&schedule.name, "name", NameKind::Schedule)?;
    let allowed_ms = limits::SCHEDULE_FIRST_MS..=limits::SCHEDULE_LAST_MS;
    for (instant_ms, field) in [(schedule.start_ms, "start_ms"), (schedule.end_ms, "end_ms")] {
        if let Some(instant_ms) = instant_ms {
            in_range(instant_ms, allowed_ms.clone(), field)?;
        }
    }
    in_range(schedule.jitter_ms, 0..=limits::DURATION_MS, "jitter_ms")?;
    optional_duration(schedule.catchup_window_ms, "catchup_window_ms")?;
    in_range(schedule.catchup_max, 1..=limits::CATCHUP, "catchup_max")?;
    if let Rule::AtMs(at_ms) = &schedule.rule {
        in_range(*at_ms, allowed_ms, "rule.at_ms")?;
        for (instant_ms, field) in [(schedule.start_ms, "start_ms"), (schedule.end_ms, "end_ms")] {
            if instant_ms.is_some() {
                return refuse(field, "it has no effect on a schedule that occurs once");
            }
        }
    }
    if let Err(error) = Timetable::of(schedule) {
        let field = match &schedule.rule {
            Rule::Cron(_) => "rule.cron",
            Rule::EveryMs(_) => "rule.every_ms",
            Rule::AtMs(_) => "rule.at_ms",
        };
        return refuse(field, error.to_string());
    }
    for (name, value) in &schedule.params {
        let field = format!("params[{name:?}]");
        if let Some(value) = value.as_str() {
            field::plain(value, &field)?;
            field::outputs_read(value, &field, names, Place::Schedule)?;
        }
    }
    let supplied = schedule.params.iter().map(|(name, value)| (name.clone(), Supplied::Json(value.clone())));
    match check_params(names.params, schedule, supplied.collect()) {
        Ok(_kept) => Ok(()),
        Err(errors) => {
            let reasons: Vec<String> = errors.iter().map(ToString::to_string).collect();
            refuse("params", reasons.join("; "))
        }
    }
}
