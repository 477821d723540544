//! The runs that a schedule is about to start, prepared before the write lock is taken.

use std::collections::HashMap;

use windlass_workflow::Workflow;

use super::Schedule;
use super::fire::bind;
use super::overlap::OverlapDecision;
use crate::status::RunSource;
use crate::store::registrations::Registration;
use crate::store::runs::prepared::PreparedRun;
use crate::store::runs::submit::{NewRun, Occasion};
use windlass_db::error::{Error, Result};
use windlass_system::random::Random;

/// The maximum number of runs that one transaction starts.
pub(super) const STARTS_MAX: usize = 100;
/// The maximum number of jobs that one transaction inserts, unless a single run has more.
const JOBS_MAX: usize = 10_000;

/// The runs to prepare.
pub(super) struct RunsToPrepare {
    pub(super) registration: Registration,
    pub(super) workflow: Workflow,
    /// Nominal times and sources of the runs.
    pub(super) start: Vec<(i64, RunSource)>,
}

/// A prepared run, or the reason why it can't be started.
type PreparationResult = std::result::Result<(NewRun, PreparedRun), String>;

/// Prepared runs by their nominal times.
pub(super) struct PreparedRuns {
    runs: HashMap<i64, PreparationResult>,
    /// How many runs one transaction may start: fewer if they are large.
    pub(super) starts_max: usize,
}

impl PreparedRuns {
    pub(super) fn prepare(
        schedule: &Schedule,
        to_prepare: Option<RunsToPrepare>,
        random: &Random,
    ) -> Result<PreparedRuns> {
        let Some(to_prepare) = to_prepare else {
            return Ok(PreparedRuns { runs: HashMap::new(), starts_max: STARTS_MAX });
        };
        let starts_max = (JOBS_MAX / to_prepare.workflow.jobs.len().max(1)).clamp(1, STARTS_MAX);
        let mut runs = HashMap::new();
        for (at_ms, source) in to_prepare.start.iter().take(starts_max) {
            runs.insert(*at_ms, prepare_run(schedule, &to_prepare, *at_ms, *source, random)?);
        }
        Ok(PreparedRuns { runs, starts_max })
    }

    /// Returns the run for a nominal time, if it was prepared.
    pub(super) fn run(&self, at_ms: i64) -> Option<&PreparationResult> {
        self.runs.get(&at_ms)
    }

    /// Whether every run that the decision starts was prepared.
    pub(super) fn has_all(&self, decision: &OverlapDecision) -> bool {
        decision.start.iter().all(|(at_ms, _source)| self.runs.contains_key(at_ms))
    }
}

fn prepare_run(
    schedule: &Schedule,
    to_prepare: &RunsToPrepare,
    at_ms: i64,
    source: RunSource,
    random: &Random,
) -> Result<PreparationResult> {
    let params = match bind(&to_prepare.workflow, &schedule.definition, at_ms) {
        Ok(params) => params,
        Err(reason) => return Ok(Err(format!("its parameters are invalid: {reason}"))),
    };
    let occasion = Occasion { schedule_id: Some(schedule.id), scheduled_for: Some(at_ms), source };
    let run = NewRun {
        workflow: to_prepare.workflow.clone(),
        params,
        dir: to_prepare.registration.dir.clone(),
        run_key: None,
        occasion: Some(occasion),
    };
    match PreparedRun::of(&run, random) {
        Ok(prepared) => Ok(Ok((run, prepared))),
        Err(Error::Invalid { reason, .. }) => Ok(Err(reason)),
        Err(error) => Err(error),
    }
}
