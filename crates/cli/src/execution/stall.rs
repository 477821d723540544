//! A run that waits for what does not come by itself is not left without a word: once nothing of it has run for a
//! moment, it is said why, and the waiting goes on.

use std::time::{Duration, Instant};

use windlass::JobStatus;
use windlass::store::{Job, JobFilter, Reason, Why};

use crate::cli::GlobalOptions;
use crate::commands::why::words;
use crate::database::Database;
use crate::describe;
use crate::error::Failure;
use crate::style::printable;
use crate::time;

/// How long nothing runs before it is asked why, and between two questions.
const PATIENCE: Duration = Duration::from_secs(2);
/// Runs that are asked about at a time.
const RUNS_MAX: usize = 10;
/// Jobs of a run that are looked at; the first of them is asked about.
const JOBS_MAX: i64 = 20;

/// Notices that nothing goes on.
#[derive(Debug, Default)]
pub(super) struct Stall {
    idle_since: Option<Instant>,
    is_told: bool,
}

/// Whether any job goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Activity {
    /// A job runs, or its next attempt has a time.
    Some,
    /// Nothing does.
    None,
}

impl Stall {
    /// Why nothing of the runs goes on, once for each time that they came to a stand.
    pub(super) fn look(
        &mut self,
        activity: Activity,
        run_ids: &[i64],
        database: &Database,
        global: &GlobalOptions,
    ) -> Result<Option<String>, Failure> {
        if !self.is_due(activity, Instant::now()) {
            return Ok(None);
        }
        let told = explain(run_ids, database, global)?;
        self.is_told = told.is_some();
        Ok(told)
    }

    /// Whether it is time to ask why.
    fn is_due(&mut self, activity: Activity, now: Instant) -> bool {
        if activity == Activity::Some {
            *self = Stall::default();
            return false;
        }
        let idle_since = *self.idle_since.get_or_insert(now);
        if self.is_told || now.duration_since(idle_since) < PATIENCE {
            return false;
        }
        self.idle_since = Some(now);
        true
    }
}

fn explain(run_ids: &[i64], database: &Database, global: &GlobalOptions) -> Result<Option<String>, Failure> {
    for run_id in run_ids.iter().take(RUNS_MAX) {
        let Some(job) = waiting_job(*run_id, database)? else { continue };
        let Why { job, reasons } = database.ask(|store| store.jobs().why(job.id))?;
        let Some(reason) = reasons.iter().find(|reason| is_obstacle(reason)) else { continue };
        return Ok(Some(format!(
            "nothing of run {run_id} runs now; it waits for job `{}`: {}",
            printable(&describe::job_name(&job)),
            words::sentence(reason, &job, time::now_ms(), global)
        )));
    }
    Ok(None)
}

/// The first job of a run that could run but for something else.
fn waiting_job(run_id: i64, database: &Database) -> Result<Option<Job>, Failure> {
    for status in [JobStatus::Pending, JobStatus::Waiting] {
        let filter = JobFilter { status: Some(status), queue: None, run_id: Some(run_id), limit: JOBS_MAX };
        let first = database.ask(|store| store.jobs().list(&filter))?.pop();
        if first.is_some() {
            return Ok(first);
        }
    }
    Ok(None)
}

/// Whether somebody else has to do something, or to finish, before the job can start.
fn is_obstacle(reason: &Reason) -> bool {
    match reason {
        Reason::QueuePaused(_)
        | Reason::NoWorker { .. }
        | Reason::NoCapability { .. }
        | Reason::WorkersTooOld { .. }
        | Reason::QueueFull { .. }
        | Reason::QueueRate { .. }
        | Reason::NotItsTurn { .. }
        | Reason::KeyTaken { .. } => true,
        Reason::WaitsForParents(_)
        | Reason::WaitsForTime { .. }
        | Reason::NobodyKeepsTime
        | Reason::WorkersBusy { .. }
        | Reason::Behind(_)
        | Reason::Runs { .. }
        | Reason::WaitsForEvent
        | Reason::Over(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_asked_now_and_then_until_it_is_told_and_anew_after_something_went_on() {
        let began = Instant::now();
        let mut stall = Stall::default();
        let steps = [
            (0, Activity::None, false),
            (1, Activity::None, false),
            (2, Activity::None, true),
            (3, Activity::None, false),
            (4, Activity::None, true),
        ];
        for (second, activity, expected) in steps {
            assert_eq!(stall.is_due(activity, began + Duration::from_secs(second)), expected, "{second}");
        }
        stall.is_told = true;
        let later = [
            (60, Activity::None, false),
            (61, Activity::Some, false),
            (62, Activity::None, false),
            (64, Activity::None, true),
        ];
        for (second, activity, expected) in later {
            assert_eq!(stall.is_due(activity, began + Duration::from_secs(second)), expected, "{second}");
        }
    }
}
