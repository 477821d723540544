//! The schedules of a workflow.

use windlass_engine::store::{Occurrence, Schedule};
use windlass_views::{catchup_name, overlap_name};
use windlass_workflow::duration::to_text;
use windlass_workflow::model::{Catchup, Overlap, Rule, Schedule as Definition};
use windlass_workflow::schedule::{Timetable, local_text};

use crate::pages::frame::Reader;
use crate::pages::times::Stamp;

/// So many of the next times are shown.
const TIMES_SHOWN: usize = 5;

/// A schedule, and what can be done with it.
pub(super) struct ScheduleRow {
    pub(super) name: String,
    pub(super) rule: String,
    /// What differs from the defaults.
    pub(super) settings: Vec<String>,
    pub(super) state: &'static str,
    pub(super) is_paused: bool,
    /// Whether it can be paused, resumed and triggered.
    pub(super) is_registered: bool,
    /// The next times, the earliest first.
    pub(super) next: Vec<Stamp>,
    pub(super) skipped: Vec<(Stamp, String)>,
    /// The address of its forms.
    pub(super) href: String,
}

impl ScheduleRow {
    pub(super) fn new(schedule: &Schedule, skipped: &[Occurrence], reader: &Reader) -> ScheduleRow {
        let times = &reader.times;
        ScheduleRow {
            name: schedule.name.clone(),
            rule: rule(&schedule.definition),
            settings: settings(&schedule.definition),
            state: state(schedule),
            is_paused: schedule.paused_at.is_some(),
            is_registered: schedule.is_registered && schedule.removed_at.is_none(),
            next: next(schedule, times.now_ms).into_iter().map(|at| times.stamp(at)).collect(),
            skipped: skipped
                .iter()
                .map(|occurrence| {
                    let reason = occurrence.reason.clone().unwrap_or_default();
                    (times.stamp(occurrence.scheduled_for), reason)
                })
                .collect(),
            href: format!("{}/schedules/{}", reader.base, schedule.id),
        }
    }
}

/// The next times of a schedule that can fire.
fn next(schedule: &Schedule, now_ms: i64) -> Vec<i64> {
    if !schedule.is_active() {
        return Vec::new();
    }
    let Ok(timetable) = Timetable::of(&schedule.definition) else {
        return schedule.next_at.into_iter().collect();
    };
    let from_ms = now_ms.max(schedule.decided_until);
    timetable.after(from_ms).take(TIMES_SHOWN).map(|occurrence| occurrence.at_ms).collect()
}

fn state(schedule: &Schedule) -> &'static str {
    if !schedule.is_registered || schedule.removed_at.is_some() {
        return "not registered";
    }
    match (schedule.paused_at, schedule.workflow_paused_at) {
        (Some(_), _) => "paused",
        (None, Some(_)) => "workflow paused",
        (None, None) if schedule.next_at.is_none() => "over",
        (None, None) => "active",
    }
}

/// The rule and its zone: `0 2 * * * Europe/Berlin`, `every 1h`.
fn rule(definition: &Definition) -> String {
    match &definition.rule {
        Rule::Cron(cron) => format!("{cron} {}", definition.timezone),
        Rule::EveryMs(every_ms) => format!("every {}", to_text(*every_ms)),
        Rule::AtMs(at_ms) => format!("once, at {}", local_text(*at_ms, &definition.timezone)),
    }
}

/// What is not as it is without a word about it.
fn settings(definition: &Definition) -> Vec<String> {
    let mut settings = Vec::new();
    if definition.overlap != Overlap::default() {
        settings.push(format!("overlap: {}", overlap_name(definition.overlap)));
    }
    if definition.catchup != Catchup::default() {
        settings.push(format!("catches up: {}", catchup_name(definition.catchup)));
    }
    settings.extend(
        definition.catchup_window_ms.map(|window_ms| format!("catches up {} at most", to_text(window_ms))),
    );
    if definition.jitter_ms > 0 {
        settings.push(format!("up to {} later", to_text(definition.jitter_ms)));
    }
    let local = |at_ms| local_text(at_ms, &definition.timezone);
    settings.extend(definition.start_ms.map(|at_ms| format!("from {}", local(at_ms))));
    settings.extend(definition.end_ms.map(|at_ms| format!("until {}", local(at_ms))));
    let params = definition.params.iter();
    settings
        .extend(params.map(|(name, value)| format!("{name} = {}", crate::pages::runs::value_as_text(value))));
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition() -> Definition {
        Definition {
            name: "night".to_owned(),
            rule: Rule::Cron("0 2 * * *".to_owned()),
            timezone: "Europe/Berlin".to_owned(),
            overlap: Overlap::default(),
            catchup: Catchup::default(),
            catchup_window_ms: None,
            catchup_max: 1_000,
            start_ms: None,
            end_ms: None,
            jitter_ms: 0,
            params: serde_json::Map::new(),
        }
    }

    #[test]
    fn only_what_differs_from_the_defaults_is_said() {
        assert_eq!(
            (rule(&definition()), settings(&definition())),
            ("0 2 * * * Europe/Berlin".to_owned(), vec![])
        );
        let params = serde_json::json!({ "day": "monday" }).as_object().cloned().unwrap_or_default();
        let other = Definition {
            rule: Rule::EveryMs(90_000),
            overlap: Overlap::QueueAll,
            catchup: Catchup::All,
            catchup_window_ms: Some(3_600_000),
            jitter_ms: 60_000,
            params,
            ..definition()
        };
        assert_eq!(rule(&other), "every 1m 30s");
        assert_eq!(
            settings(&other),
            [
                "overlap: queue_all",
                "catches up: all",
                "catches up 1h at most",
                "up to 1m later",
                "day = monday"
            ]
        );
    }
}
