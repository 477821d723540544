//! Schedules: each occurrence is decided once.

use std::collections::BTreeSet;

use windlass_workflow::model::Overlap;

use super::{Oracle, ScheduleRules};

impl ScheduleRules {
    /// The nominal times from the schedule's making to an instant. It counts from the epoch.
    pub fn occurrences(&self, until_ms: i64) -> BTreeSet<i64> {
        let first = self.made_at_ms / self.every_ms + 1;
        (first..=until_ms / self.every_ms).map(|number| number * self.every_ms).collect()
    }

    fn runs_one_at_a_time(&self) -> bool {
        match self.definition.overlap {
            Overlap::Allow => false,
            Overlap::Skip
            | Overlap::QueueOne
            | Overlap::QueueAll
            | Overlap::CancelRunning
            | Overlap::TerminateRunning => true,
        }
    }
}

impl Oracle {
    /// The occurrences of a schedule that have a run.
    pub fn fired(&self, schedule_id: i64) -> Vec<i64> {
        let of_schedule = self.runs.values().filter_map(|run| run.occasion);
        of_schedule.filter(|(id, _at_ms)| *id == schedule_id).map(|(_id, at_ms)| at_ms).collect()
    }

    /// No schedule has two unfinished runs that may not run side by side, unless a person retried one.
    pub fn check_overlaps(&self) {
        for (schedule_id, rules) in &self.schedules {
            let is_unfinished = |run: &&super::Run| {
                let is_of_schedule = run.occasion.is_some_and(|(id, _at_ms)| id == *schedule_id);
                let is_first_life = self.jobs_of(run.id).all(|job| job.life == 0);
                is_of_schedule && is_first_life && self.unfinished(run.id) > 0
            };
            let unfinished = self.runs.values().filter(is_unfinished).count();
            assert!(
                unfinished <= 1 || !rules.runs_one_at_a_time(),
                "schedule {schedule_id}: {unfinished} runs"
            );
        }
    }
}
