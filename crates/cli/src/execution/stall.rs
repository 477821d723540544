//! Explains why a run does not continue. If no job has run for two seconds, and a job waits for something that does not
//! happen by itself, the reason is shown once.

use std::time::{Duration, Instant};

use windlass_engine::JobStatus;
use windlass_engine::store::{Job, JobFilter, Reason, Why};

use crate::arguments::GlobalOptions;
use crate::database::Database;
use crate::error::Failure;
use crate::find;
use crate::text::style::printable;
use crate::text::{reasons, runs_and_jobs, time};

/// The time without a running job after which the reason is read, and the time between two reads.
const IDLE_MIN: Duration = Duration::from_secs(2);
/// How many runs are examined.
const RUNS_MAX: usize = 10;
/// How many child runs of a run are read.
const CHILDREN_MAX: i64 = 1_000;
/// How many jobs of a run are read. The first of them is explained.
const JOBS_MAX: i64 = 20;

/// Notices that no job runs.
#[derive(Debug, Default)]
pub(super) struct Stall {
    idle_since: Option<Instant>,
    is_reported: bool,
}

/// Whether any job is active.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Activity {
    /// A job runs or waits for its next attempt.
    Some,
    /// No job is active.
    None,
}

impl Stall {
    /// The reason why no job runs. Returned once until a job becomes active again.
    pub(super) fn check(
        &mut self,
        activity: Activity,
        run_ids: &[i64],
        database: &Database,
        global: &GlobalOptions,
    ) -> Result<Option<String>, Failure> {
        if !self.is_due(activity, Instant::now()) {
            return Ok(None);
        }
        let reason = explain(run_ids, database, global)?;
        self.is_reported = reason.is_some();
        Ok(reason)
    }

    /// Whether it is time to read the reason.
    fn is_due(&mut self, activity: Activity, now: Instant) -> bool {
        if activity == Activity::Some {
            *self = Stall::default();
            return false;
        }
        let idle_since = *self.idle_since.get_or_insert(now);
        if self.is_reported || now.duration_since(idle_since) < IDLE_MIN {
            return false;
        }
        self.idle_since = Some(now);
        true
    }
}

fn explain(run_ids: &[i64], database: &Database, global: &GlobalOptions) -> Result<Option<String>, Failure> {
    for run_id in with_child_runs(run_ids, database)? {
        let run = find::run(database, run_id)?;
        if let Some(slot) = database.ask(|store| store.runs().awaited_slot(&run))? {
            return Ok(Some(reasons::run_waits_for_slot(&format!("run {run_id}"), &slot)));
        }
        let Some(job) = waiting_job(run_id, database)? else { continue };
        let Why { job, reasons } = database.ask(|store| store.jobs().why(job.id))?;
        let Some(reason) = reasons.iter().find(|reason| is_obstacle(reason)) else { continue };
        return Ok(Some(format!(
            "run {run_id} is waiting for job `{}`: {}",
            printable(&runs_and_jobs::job_name(&job)),
            reasons::sentence(reason, &job, time::now_ms(), global)
        )));
    }
    Ok(None)
}

/// The first of the runs, and the first of their unfinished child runs.
fn with_child_runs(run_ids: &[i64], database: &Database) -> Result<Vec<i64>, Failure> {
    let mut all = Vec::new();
    for run_id in run_ids.iter().take(RUNS_MAX) {
        all.push(*run_id);
        let below = database.ask(|store| store.runs().below(*run_id, 0, CHILDREN_MAX))?;
        let unfinished = below.iter().filter(|child| !child.status.is_terminal()).map(|child| child.run_id);
        all.extend(unfinished.take(RUNS_MAX));
    }
    Ok(all)
}

/// The first job of a run that is PENDING or WAITING.
fn waiting_job(run_id: i64, database: &Database) -> Result<Option<Job>, Failure> {
    for status in [JobStatus::Pending, JobStatus::Waiting] {
        let filter =
            JobFilter { statuses: vec![status], run_id: Some(run_id), ..JobFilter::newest(JOBS_MAX) };
        let first = database.ask(|store| store.jobs().list_full(&filter))?.rows.pop();
        if first.is_some() {
            return Ok(first);
        }
    }
    Ok(None)
}

/// Whether a person or another job must act before the job can start.
fn is_obstacle(reason: &Reason) -> bool {
    match reason {
        Reason::QueuePaused(_)
        | Reason::NoWorker { .. }
        | Reason::NoCapability { .. }
        | Reason::WorkersTooOld { .. }
        | Reason::QueueFull { .. }
        | Reason::QueueRate { .. }
        | Reason::NotItsTurn { .. }
        | Reason::KeyTaken { .. }
        | Reason::RunWaitsForSlot(_)
        | Reason::WaitsForEvent { .. }
        | Reason::WaitsForApproval { .. } => true,
        Reason::WaitsForParents(_)
        | Reason::WaitsForTime { .. }
        | Reason::WaitsForRound { .. }
        | Reason::WaitsForRun { .. }
        | Reason::Sleeps { .. }
        | Reason::NoScheduler
        | Reason::WorkersBusy { .. }
        | Reason::Behind(_)
        | Reason::Runs { .. }
        | Reason::WaitsForDecision
        | Reason::WaitsForItems { .. }
        | Reason::WaitsForTurn { .. }
        | Reason::WaitsForEndOfRun
        | Reason::HasDeadline(_)
        | Reason::Over { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_read_until_it_is_reported_and_again_after_activity() {
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
        stall.is_reported = true;
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
