//! The runs that a schedule is about to start, made ready before the write lock is taken.

use std::collections::HashMap;

use windlass_workflow::Workflow;

use super::Schedule;
use super::overlap::Decision;
use super::trigger::bind;
use crate::status::RunSource;
use crate::store::registrations::Registration;
use crate::store::runs::submit::{NewRun, Occasion, Prepared};
use windlass_db::error::{Error, Result};
use windlass_system::random::Random;

/// Runs of one transaction at most.
pub(super) const STARTS_MAX: usize = 100;
/// Jobs of the runs of one transaction at most, unless a single run has more.
const JOBS_MAX: usize = 10_000;

/// What is to be made ready.
pub(super) struct Wanted {
    pub(super) registration: Registration,
    pub(super) workflow: Workflow,
    /// Nominal times and sources.
    pub(super) start: Vec<(i64, RunSource)>,
}

/// A run that is ready, or why there can be none.
type Ready = std::result::Result<(NewRun, Prepared), String>;

/// Runs that are ready, by their nominal times.
pub(super) struct PreparedRuns {
    runs: HashMap<i64, Ready>,
    /// Runs of one transaction at most: large ones take long.
    pub(super) starts_max: usize,
}

impl PreparedRuns {
    pub(super) fn make(schedule: &Schedule, wanted: Option<Wanted>, random: &Random) -> Result<PreparedRuns> {
        let Some(wanted) = wanted else {
            return Ok(PreparedRuns { runs: HashMap::new(), starts_max: STARTS_MAX });
        };
        let starts_max = (JOBS_MAX / wanted.workflow.jobs.len().max(1)).clamp(1, STARTS_MAX);
        let mut runs = HashMap::new();
        for (at_ms, source) in wanted.start.iter().take(starts_max) {
            runs.insert(*at_ms, make_ready(schedule, &wanted, *at_ms, *source, random)?);
        }
        Ok(PreparedRuns { runs, starts_max })
    }

    /// The run for a nominal time, if it was made ready.
    pub(super) fn run(&self, at_ms: i64) -> Option<&Ready> {
        self.runs.get(&at_ms)
    }

    /// Everything that is to start was made ready.
    pub(super) fn has_all(&self, decision: &Decision) -> bool {
        decision.start.iter().all(|(at_ms, _source)| self.runs.contains_key(at_ms))
    }
}

fn make_ready(
    schedule: &Schedule,
    wanted: &Wanted,
    at_ms: i64,
    source: RunSource,
    random: &Random,
) -> Result<Ready> {
    let params = match bind(&wanted.workflow, &schedule.definition, at_ms) {
        Ok(params) => params,
        Err(reason) => return Ok(Err(format!("its parameters can't be used: {reason}"))),
    };
    let occasion = Occasion { schedule_id: schedule.id, scheduled_for: Some(at_ms), source };
    let run = NewRun {
        workflow: wanted.workflow.clone(),
        params,
        dir: wanted.registration.dir.clone(),
        run_key: None,
        occasion: Some(occasion),
    };
    match Prepared::of(&run, random) {
        Ok(prepared) => Ok(Ok((run, prepared))),
        Err(Error::Invalid { reason, .. }) => Ok(Err(reason)),
        Err(error) => Err(error),
    }
}
