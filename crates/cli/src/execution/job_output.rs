//! Reads the lines that jobs write, in bounded portions, and the last lines of running and failed jobs.
//!
//! The lines come from the database, wherever the jobs run. A worker writes them a few times a second, and the rest
//! together with the end of the attempt.

use std::collections::{HashMap, HashSet};

use windlass_engine::store::{LogLine, LogPosition};

use crate::database::Database;
use crate::error::Failure;
use crate::progress::{FailedOutput, JobState, OutputPlan, Shown, Streamed};
use crate::shell_words::quoted;

/// How many lines are read at a time. The worker bounds the bytes of an attempt.
const PAGE_LINES: i64 = 500;
/// How many running jobs are read between two refreshes. The others follow at the next ones.
const MAX_JOBS_READ: usize = 64;
/// How many lines are shown of a job that already ran when the command began.
const LINES_BEFORE: i64 = 10;
/// How many lines of a failed job are shown.
const FAILED_LINES: i64 = 100;
/// How many lines of failed jobs are shown in all. Jobs that fail later show only their error.
const ALL_FAILED_LINES: i64 = 1_000;

/// What has been shown of the output of jobs.
#[derive(Debug)]
pub(super) struct JobOutput {
    plan: OutputPlan,
    /// The jobs that no other runs beside.
    alone: HashSet<i64>,
    positions: HashMap<i64, LogPosition>,
    /// The last running job that was read.
    last_read: i64,
    failed_lines_left: i64,
}

impl JobOutput {
    /// Begins behind the lines of attempts that have ended, and a few lines before the end of those that run.
    pub(super) fn new(
        plan: OutputPlan,
        alone: HashSet<i64>,
        started: &[JobState],
        database: &Database,
    ) -> Result<JobOutput, Failure> {
        let mut output = JobOutput {
            plan,
            alone,
            positions: HashMap::new(),
            last_read: 0,
            failed_lines_left: ALL_FAILED_LINES,
        };
        for job in started.iter().filter(|job| job.attempt > 0) {
            if !output.streams(job) {
                continue;
            }
            let mut position = LogPosition { job_id: job.id, attempt: job.attempt, line: i64::MAX };
            if job.is_running() {
                let last = database.ask(|store| store.logs().last(job.id, job.attempt, LINES_BEFORE))?;
                position.line = last.first().map_or(0, |line| line.line - 1);
            }
            output.positions.insert(job.id, position);
        }
        Ok(output)
    }

    /// Whether the lines of a job are shown as they come.
    fn streams(&self, job: &JobState) -> bool {
        match self.plan.streamed {
            Streamed::Every => true,
            Streamed::Alone => self.alone.contains(&job.id),
            Streamed::None => false,
        }
    }

    /// The next lines of attempts up to this one, or none if there are no more yet.
    pub(super) fn next(
        &mut self,
        database: &Database,
        job: &JobState,
        through_attempt: i64,
    ) -> Result<Vec<LogLine>, Failure> {
        if !self.streams(job) {
            return Ok(Vec::new());
        }
        let start = LogPosition { job_id: job.id, attempt: 0, line: i64::MAX };
        let position = *self.positions.entry(job.id).or_insert(start);
        if position >= (LogPosition { job_id: job.id, attempt: through_attempt, line: i64::MAX }) {
            return Ok(Vec::new());
        }
        let mut lines = database.ask(|store| store.logs().after(position, PAGE_LINES))?;
        lines.retain(|line| line.attempt <= through_attempt);
        if let Some(last) = lines.last() {
            let position = LogPosition { job_id: job.id, attempt: last.attempt, line: last.line };
            self.positions.insert(job.id, position);
        }
        Ok(lines)
    }

    /// Some of the running jobs, whose next lines are shown at this refresh.
    pub(super) fn next_jobs<'j>(&mut self, running: &[&'j JobState]) -> Vec<&'j JobState> {
        let mut jobs: Vec<&JobState> = running.iter().copied().filter(|job| self.streams(job)).collect();
        if jobs.len() > MAX_JOBS_READ {
            jobs.sort_by_key(|job| (job.id <= self.last_read, job.id));
            jobs.truncate(MAX_JOBS_READ);
            self.last_read = jobs.last().map_or(0, |job| job.id);
        }
        jobs
    }

    /// The last lines of running jobs, for the live view.
    pub(super) fn tails(
        &self,
        database: &Database,
        named: &[&JobState],
        lines: usize,
    ) -> Result<HashMap<i64, Vec<LogLine>>, Failure> {
        let lines = i64::try_from(lines).unwrap_or(0);
        let mut tails = HashMap::new();
        if self.plan.tails == Shown::No || lines == 0 {
            return Ok(tails);
        }
        for job in named.iter().filter(|job| !self.streams(job)) {
            tails.insert(job.id, database.ask(|store| store.logs().last(job.id, job.attempt, lines))?);
        }
        Ok(tails)
    }

    /// The output of a job that has failed, unless it was shown as it came.
    pub(super) fn of_failed(&mut self, database: &Database, job: &JobState) -> Result<FailedOutput, Failure> {
        if self.plan.of_failed == Shown::No || self.streams(job) || self.failed_lines_left <= 0 {
            return Ok(FailedOutput::default());
        }
        let count = FAILED_LINES.min(self.failed_lines_left);
        let lines = database.ask(|store| store.logs().last(job.id, job.attempt, count))?;
        self.failed_lines_left -= i64::try_from(lines.len()).unwrap_or(0);
        let left_out = match lines.first().map_or(0, |line| line.line - 1) {
            ..=0 => None,
            before => {
                let label = database.ask(|store| store.jobs().get(job.id))?.label();
                Some((before, database.hint(&format!("logs {}", quoted(&label)))))
            }
        };
        Ok(FailedOutput { lines, left_out })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::examples::{everything, job};
    use windlass_engine::JobStatus;

    #[test]
    fn many_running_jobs_are_read_in_turns() {
        let jobs: Vec<JobState> = (1..=100).map(|id| job(id, JobStatus::Running)).collect();
        let running: Vec<&JobState> = jobs.iter().collect();
        let mut output = JobOutput {
            plan: everything(),
            alone: HashSet::new(),
            positions: HashMap::new(),
            last_read: 0,
            failed_lines_left: 0,
        };
        let mut turn = || -> Vec<i64> { output.next_jobs(&running).iter().map(|job| job.id).collect() };
        assert_eq!(turn(), (1..=64).collect::<Vec<i64>>());
        assert_eq!(turn(), (65..=100).chain(1..=28).collect::<Vec<i64>>());
    }
}
