//! Who executes work that was accepted: a worker that is alive, or one that the user starts next.

use windlass_engine::store::{Job, JobFilter, Worker};
use windlass_engine::{JobStatus, WorkerStatus};
use windlass_scheduler::gone_workers;

use crate::database::Database;
use crate::error::Failure;

/// Who executes a run that was accepted. `start` is the next step if nobody does yet.
pub(crate) fn of_run(database: &Database, run_id: i64, start: &str) -> Result<String, Failure> {
    let statuses = vec![JobStatus::Pending];
    let filter = JobFilter { statuses, run_id: Some(run_id), ..JobFilter::newest(1) };
    let job = database.ask(|store| store.jobs().list_full(&filter))?.rows.pop();
    clause(database, job.as_ref(), start)
}

/// Who executes a job that was accepted.
pub(crate) fn of_job(database: &Database, job_id: i64, start: &str) -> Result<String, Failure> {
    let job = database.ask(|store| store.jobs().get(job_id))?;
    clause(database, Some(&job), start)
}

/// Without a job that can be claimed now, the worker that is there decides about the rest.
fn clause(database: &Database, job: Option<&Job>, start: &str) -> Result<String, Failure> {
    let gone = database.ask(gone_workers)?;
    let live = database.ask(|store| store.workers().live())?;
    let executes = |worker: &&Worker| {
        worker.status == WorkerStatus::Alive
            && !gone.contains(&worker.id)
            && job.map_or(worker.run_ids.is_none(), |job| worker.takes(job))
    };
    Ok(match live.iter().find(executes) {
        Some(worker) => format!("worker {} is running and executes it", worker.id),
        None => start.to_owned(),
    })
}
