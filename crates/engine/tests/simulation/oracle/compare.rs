//! Compares the oracle with the tables.

use std::collections::BTreeMap;

use windlass_engine::store::{Job as JobRow, JobFilter, PAGE_MAX, Run as RunRow, RunFilter};
use windlass_engine::{JobStatus, Store, WaitsFor};

use super::{Job, Oracle};

/// More rows than a simulation makes.
const ALL: i64 = PAGE_MAX;

impl Oracle {
    /// Checks that every run and every job is as the rules say. Takes over the times of retries, which depend on
    /// chance.
    pub fn compare(&mut self, store: &Store) {
        let rows = store.jobs().list_full(&JobFilter::newest(ALL)).unwrap().rows;
        let expected: Vec<i64> = self.jobs.keys().rev().copied().collect();
        let found: Vec<i64> = rows.iter().map(|row| row.id).collect();
        assert_eq!(found, expected, "the tables have the jobs that were accepted");
        for row in &rows {
            self.learn_due(row);
            self.compare_job(row);
        }
        let rows = store.runs().list_full(&RunFilter::newest(ALL)).unwrap().rows;
        assert_eq!(rows.len(), self.runs.len(), "the tables have the runs that were accepted");
        rows.iter().for_each(|row| self.compare_run(row));
    }

    fn learn_due(&mut self, row: &JobRow) {
        let job = self.jobs.get_mut(&row.id).expect("the ids are the same");
        let (earliest, latest) = job.due;
        assert!(
            (earliest..=latest).contains(&row.execute_after),
            "j{} is due at {:?}: {row:?}",
            row.id,
            job.due
        );
        job.due = (row.execute_after, row.execute_after);
    }

    fn compare_job(&self, row: &JobRow) {
        let job = &self.jobs[&row.id];
        let expected = (job.status, job.attempt, job.failures, job.interruptions, job.owner, job.priority);
        let found = (row.status, row.attempt, row.failures, row.interruptions, row.worker_id, row.priority);
        assert_eq!(found, expected, "(state, attempt, failures, interruptions, owner, priority) of {row:?}");
        let expected = (job.is_over, job.is_stopping, job.output.as_deref());
        let found = (row.finished_at.is_some(), row.cancel_requested_at.is_some(), row.output.as_deref());
        assert_eq!(found, expected, "(over, stopping, output) of {row:?}");
        let waits_for = if job.is_undecided { WaitsFor::Decision } else { WaitsFor::Slot };
        let expected = ((job.status == JobStatus::Waiting).then_some(waits_for), job.upstream_failed);
        assert_eq!((row.waits_for, row.upstream_failed), expected, "(waits for, upstream failed) of {row:?}");
        if let Some(blocked_by) = self.counted_parents(job) {
            assert_eq!(row.blocked_by, blocked_by, "unfinished parents of {row:?}");
        }
        if job.is_over && job.status == JobStatus::Failed {
            assert!(row.last_error.is_some(), "a failure has a reason: {row:?}");
        }
    }

    /// A job that ended while it was blocked keeps its count of parents.
    fn counted_parents(&self, job: &Job) -> Option<i64> {
        if job.status == JobStatus::Blocked {
            return Some(self.blocked_by(job));
        }
        let may_keep_it = matches!(job.status, JobStatus::Skipped | JobStatus::Cancelled);
        (!may_keep_it).then_some(0)
    }

    fn compare_run(&self, row: &RunRow) {
        let run = &self.runs[&row.id];
        let expected = (self.run_status(run), self.unfinished(row.id), self.failed(row.id));
        let found = (row.status, row.unfinished_jobs, row.failed_jobs);
        assert_eq!(found, expected, "(state, unfinished jobs, failed jobs) of {row:?}");
        let expected = (run.stop_reason, run.deadline_at, run.occasion.map(|(_id, at_ms)| at_ms));
        let found = (row.stop_reason, row.deadline_at, row.scheduled_for);
        assert_eq!(found, expected, "(why it stops, deadline, nominal time) of {row:?}");
        assert_eq!(row.finished_at.is_some(), row.status.is_terminal(), "{row:?}");
    }

    /// Compares the recorded attempts and the output of all jobs, which are only ever added.
    pub fn compare_records(&self, attempts: &[(i64, i64, i64, String)], lines: &[(i64, i64, i64, String)]) {
        let expected: Vec<(i64, i64, i64, String)> = self
            .jobs
            .values()
            .flat_map(|job| job.kept_attempts.iter().map(move |(attempt, record)| (job.id, attempt, record)))
            .map(|(id, attempt, (worker_id, outcome))| (id, *attempt, *worker_id, (*outcome).to_owned()))
            .collect();
        assert_eq!(attempts, expected, "(job, attempt, worker, outcome) of the recorded attempts");
        let found: BTreeMap<(i64, i64, i64), String> =
            lines.iter().map(|(job, attempt, line, text)| ((*job, *attempt, *line), text.clone())).collect();
        assert_eq!(found, self.lines, "output, by job, attempt and number");
    }
}
