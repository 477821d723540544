//! The names of jobs of child runs: `load/copy` is the job `copy` of the run that the job `load` has started.

use std::collections::HashMap;

use windlass_engine::store::Job;

use crate::database::Database;
use crate::error::Failure;
use crate::text::runs_and_jobs;
use crate::text::style::printable;

/// How many child runs are read at a time.
const PAGE: i64 = 1_000;

/// The child runs of a run, with the names of the jobs that have started them.
#[derive(Debug, Default)]
pub(crate) struct CalledJobs {
    /// What stands before the name of a job, by the id of its run.
    prefixes: HashMap<i64, String>,
    last_run_id: i64,
}

impl CalledJobs {
    /// Reads the child runs that were started since the last call.
    pub(crate) fn learn(&mut self, database: &Database, run_id: i64) -> Result<(), Failure> {
        loop {
            let after = self.last_run_id;
            let runs = database.ask(|store| store.runs().below(run_id, after, PAGE))?;
            for run in &runs {
                // A run is newer than the one above it.
                let above = run.parent_run_id.and_then(|above| self.prefixes.get(&above));
                let name = run.parent_name.as_deref().map(printable).unwrap_or_default();
                let prefix = format!("{}{name}/", above.map_or("", String::as_str));
                self.prefixes.insert(run.run_id, prefix);
                self.last_run_id = run.run_id;
            }
            if (runs.len() as i64) < PAGE {
                return Ok(());
            }
        }
    }

    /// The name of a job for people.
    pub(crate) fn name(&self, job: &Job) -> String {
        let prefix = job.run_id.and_then(|run_id| self.prefixes.get(&run_id));
        format!("{}{}", prefix.map_or("", String::as_str), runs_and_jobs::job_name(job))
    }
}

/// Whether some of the jobs may start runs.
pub(crate) fn has_calls(jobs: &[Job]) -> bool {
    jobs.iter().any(|job| job.kind == "workflow" || job.kind == "group")
}
