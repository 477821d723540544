//! The times of the last runs of a workflow.

use std::collections::HashMap;

use windlass_engine::store::RunFilter;
use windlass_engine::{JobStatus, RunStatus};
use windlass_views::PastRunView;

use crate::database::Database;
use crate::error::Failure;

/// How many runs are read.
const RUNS: i64 = 10;
/// Jobs of larger runs are not read.
const JOBS_MAX: i64 = 20_000;

/// The times of the last runs.
#[derive(Default)]
pub(super) struct PastTimes {
    /// The newest first.
    pub(super) runs: Vec<PastRunView>,
    /// By the names of the jobs, in milliseconds.
    jobs: HashMap<String, Vec<i64>>,
}

impl PastTimes {
    /// Reads the last runs of a workflow that have ended.
    pub(super) fn read(database: &Database, workflow: &str) -> Result<PastTimes, Failure> {
        let filter = RunFilter {
            workflow: Some(workflow.to_owned()),
            statuses: vec![RunStatus::Successful, RunStatus::Failed],
            ..RunFilter::newest(RUNS)
        };
        let mut past = PastTimes::default();
        for run in database.ask(|store| store.runs().list(&filter))?.rows {
            let duration_ms = elapsed(run.started_at, run.finished_at);
            past.runs.push(PastRunView { run_id: run.id, status: run.status.as_str(), duration_ms });
            if run.total_jobs > JOBS_MAX {
                continue;
            }
            for job in database.ask(|store| store.jobs().of_run(run.id))? {
                let Some(name) = job.name.filter(|_name| job.status == JobStatus::Successful) else {
                    continue;
                };
                past.jobs.entry(name).or_default().extend(elapsed(job.started_at, job.finished_at));
            }
        }
        Ok(past)
    }

    /// The median of the times of a job.
    pub(super) fn median_ms(&self, job: &str) -> Option<i64> {
        median(self.jobs.get(job)?.clone())
    }
}

fn elapsed(started_at: Option<i64>, finished_at: Option<i64>) -> Option<i64> {
    Some(finished_at? - started_at?)
}

/// The median. Of two values in the middle it is the greater one.
pub(super) fn median(mut values: Vec<i64>) -> Option<i64> {
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!([median(vec![]), median(vec![3]), median(vec![9, 1, 3])], [None, Some(3), Some(3)]);
        assert_eq!(median(vec![4, 1]), Some(4));
    }
}
