//! Schedules: each occurrence is decided once.

use std::collections::BTreeSet;

use windlass_workflow::model::Overlap;

use super::{Oracle, ScheduleRules};

impl ScheduleRules {
    /// The nominal times from the creation of the schedule to an instant. Intervals are counted from the epoch.
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

    /// Checks that no two unfinished runs of a schedule overlap against its rule, unless a person retried one of
    /// them.
    pub fn check_overlaps(&self) {
        for (schedule_id, rules) in &self.schedules {
            let is_unfinished = |run: &&super::Run| {
                let is_of_schedule = run.occasion.is_some_and(|(id, _at_ms)| id == *schedule_id);
                let is_never_retried = self.jobs_of(run.id).all(|job| job.retries == 0);
                is_of_schedule && is_never_retried && self.unfinished(run.id) > 0
            };
            let unfinished = self.runs.values().filter(is_unfinished).count();
            assert!(
                unfinished <= 1 || !rules.runs_one_at_a_time(),
                "schedule {schedule_id}: {unfinished} runs"
            );
        }
    }
}
