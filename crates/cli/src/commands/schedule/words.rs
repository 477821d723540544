//! Schedules in words.

use clap::ValueEnum;
use windlass::store::Schedule;
use windlass::workflow::duration::to_text;
use windlass::workflow::model::{Catchup, Overlap, Rule, Schedule as Definition};
use windlass::workflow::schedule::local_text;

use crate::style::{YELLOW, paint};
use crate::time;

/// What becomes of an occurrence while an earlier run is not over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(super) enum OverlapWord {
    /// It gets no run
    Skip,
    /// The last such one waits
    QueueOne,
    /// All wait, in order
    QueueAll,
    /// It runs beside
    Allow,
    /// The earlier run is cancelled
    CancelRunning,
    /// The earlier run is killed at once
    TerminateRunning,
}

impl OverlapWord {
    pub(super) fn overlap(self) -> Overlap {
        match self {
            OverlapWord::Skip => Overlap::Skip,
            OverlapWord::QueueOne => Overlap::QueueOne,
            OverlapWord::QueueAll => Overlap::QueueAll,
            OverlapWord::Allow => Overlap::Allow,
            OverlapWord::CancelRunning => Overlap::CancelRunning,
            OverlapWord::TerminateRunning => Overlap::TerminateRunning,
        }
    }
}

/// What becomes of the occurrences that nobody was there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(super) enum CatchupWord {
    /// They get no run
    None,
    /// The last of them runs
    Last,
    /// All of them run
    All,
}

impl CatchupWord {
    pub(super) fn catchup(self) -> Catchup {
        match self {
            CatchupWord::None => Catchup::None,
            CatchupWord::Last => Catchup::Last,
            CatchupWord::All => Catchup::All,
        }
    }
}

/// The word of the file for a policy.
pub(crate) fn overlap(overlap: Overlap) -> &'static str {
    match overlap {
        Overlap::Skip => "skip",
        Overlap::QueueOne => "queue_one",
        Overlap::QueueAll => "queue_all",
        Overlap::Allow => "allow",
        Overlap::CancelRunning => "cancel_running",
        Overlap::TerminateRunning => "terminate_running",
    }
}

/// The word of the file for a policy.
pub(crate) fn catchup(catchup: Catchup) -> &'static str {
    match catchup {
        Catchup::None => "none",
        Catchup::Last => "last",
        Catchup::All => "all",
    }
}

/// What is caught up, with its bounds.
pub(super) fn catchup_rule(definition: &Definition) -> String {
    let mut text = catchup(definition.catchup).to_owned();
    if definition.catchup == Catchup::All {
        text.push_str(&format!(", at most {}", definition.catchup_max));
    }
    if let Some(window_ms) = definition.catchup_window_ms {
        text.push_str(&format!(", not older than {}", to_text(window_ms)));
    }
    text
}

/// When it occurs.
pub(super) fn rule(definition: &Definition) -> String {
    match &definition.rule {
        Rule::Cron(cron) => cron.clone(),
        Rule::EveryMs(every_ms) => format!("every {}", to_text(*every_ms)),
    }
}

/// An instant on the clock of the schedule's zone.
pub(super) fn local(at_ms: i64, definition: &Definition) -> String {
    local_text(at_ms, &definition.timezone)
}

/// Why it fires nothing, if it does not.
pub(super) fn state(schedule: &Schedule, now_ms: i64) -> String {
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
pub(super) mod tests {
    use windlass::store::ScheduleOrigin;

    use super::*;

    /// A schedule as the tables may have it.
    pub(in super::super) fn schedule(workflow: &str, name: &str) -> Schedule {
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
