//! Schedules as text.

use windlass_engine::store::{Schedule, TriggerFailure};
use windlass_views::catchup_name;
use windlass_workflow::Workflow;
use windlass_workflow::duration::to_text;
use windlass_workflow::model::{Catchup, Rule, Schedule as Definition};
use windlass_workflow::schedule::local_text;

use crate::text::style::{YELLOW, paint, printable};
use crate::text::time;

/// Why a trigger started no run the last time.
pub(crate) fn failed_trigger(failure: &TriggerFailure, now_ms: i64) -> String {
    let TriggerFailure { at, source, error } = failure;
    format!("started no run for {} {}: {}", printable(source), time::relative(*at, now_ms), printable(error))
}

/// The schedules of a workflow, as `default: 0 3 * * * Europe/Berlin`.
pub(crate) fn summaries(workflow: &Workflow) -> String {
    workflow.schedules.iter().map(summary).collect::<Vec<_>>().join("; ")
}

/// The active schedule that fires next, and when.
pub(crate) fn next_occurrence<'s>(
    schedules: impl IntoIterator<Item = &'s Schedule>,
) -> Option<(&'s Schedule, i64)> {
    let active = schedules.into_iter().filter(|schedule| schedule.is_active());
    let due = active.filter_map(|schedule| Some((schedule, schedule.next_at?)));
    due.min_by_key(|(_schedule, at_ms)| *at_ms)
}

/// The name of a schedule and its rule.
pub(crate) fn summary(schedule: &Definition) -> String {
    match &schedule.rule {
        Rule::Cron(cron) => format!("{}: {cron} {}", schedule.name, schedule.timezone),
        Rule::EveryMs(every_ms) => {
            format!("{}: every {}", schedule.name, to_text(*every_ms))
        }
        Rule::AtMs(at_ms) => format!("{}: once, at {}", schedule.name, local_time(*at_ms, schedule)),
    }
}

/// The catch-up policy and its limits.
pub(crate) fn catchup_rule(definition: &Definition) -> String {
    let mut text = catchup_name(definition.catchup).to_owned();
    if definition.catchup == Catchup::All {
        text.push_str(&format!(", at most {}", definition.catchup_max));
    }
    if let Some(window_ms) = definition.catchup_window_ms {
        text.push_str(&format!(", not older than {}", to_text(window_ms)));
    }
    text
}

/// The rule: a cron expression, an interval, or an instant.
pub(crate) fn rule(definition: &Definition) -> String {
    match &definition.rule {
        Rule::Cron(cron) => cron.clone(),
        Rule::EveryMs(every_ms) => format!("every {}", to_text(*every_ms)),
        Rule::AtMs(at_ms) => format!("once, at {}", local_time(*at_ms, definition)),
    }
}

/// An instant in the time zone of the schedule.
pub(crate) fn local_time(at_ms: i64, definition: &Definition) -> String {
    local_text(at_ms, &definition.timezone)
}

/// Why the schedule does not fire. Empty if it does.
pub(crate) fn state(schedule: &Schedule, now_ms: i64) -> String {
    let paused = |what: &str, at_ms| paint(YELLOW, format!("{what} {}", time::relative(at_ms, now_ms)));
    if !schedule.is_registered {
        return paint(YELLOW, "workflow is not registered");
    }
    match (schedule.paused_at, schedule.workflow_paused_at) {
        (Some(at_ms), _) => paused("paused", at_ms),
        (None, Some(at_ms)) => paused("workflow paused", at_ms),
        (None, None) if schedule.next_at.is_none() => paint(YELLOW, "over"),
        (None, None) => String::new(),
    }
}

#[cfg(test)]
pub(crate) mod examples {
    use windlass_engine::store::ScheduleOrigin;
    use windlass_workflow::model::Overlap;

    use super::*;

    /// A schedule as the store returns it.
    pub(crate) fn schedule(workflow: &str, name: &str) -> Schedule {
        let definition = Definition {
            name: name.to_owned(),
            rule: Rule::EveryMs(90_000),
            timezone: "UTC".to_owned(),
            overlap: Overlap::Skip,
            catchup: Catchup::All,
            catchup_window_ms: Some(3_600_000),
            catchup_max: 5,
            start_ms: None,
            end_ms: None,
            jitter_ms: 0,
            params: serde_json::Map::new(),
        };
        Schedule {
            id: 1,
            workflow: workflow.to_owned(),
            name: name.to_owned(),
            definition,
            origin: ScheduleOrigin::File,
            paused_at: None,
            workflow_paused_at: None,
            is_registered: true,
            next_at: Some(90_000),
            decided_until: 0,
            removed_at: None,
            created_at: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::examples::schedule;
    use super::*;

    #[test]
    fn rules_and_states() {
        let mut schedule = schedule("report", "default");
        assert_eq!(rule(&schedule.definition), "every 1m 30s");
        assert_eq!(catchup_rule(&schedule.definition), "all, at most 5, not older than 1h");
        let said = |schedule: &Schedule| anstream::adapter::strip_str(&state(schedule, 60_000)).to_string();
        assert_eq!(said(&schedule), "");
        schedule.next_at = None;
        assert_eq!(said(&schedule), "over");
        schedule.workflow_paused_at = Some(0);
        assert_eq!(said(&schedule), "workflow paused 1m ago");
        schedule.paused_at = Some(30_000);
        assert_eq!(said(&schedule), "paused 30s ago");
        schedule.is_registered = false;
        assert_eq!(said(&schedule), "workflow is not registered");
    }
}
