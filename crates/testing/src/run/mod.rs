//! One run of a case.
//!
//! `world` is what stays when the engine dies: the clock, the fakes, and what others do. `engine` is one life of the engine on
//! the database of the case, `outside` acts for those who are no part of it, and `database` ends it after a number of commits.

mod database;
mod engine;
mod outside;
mod report;
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value as Json;
use windlass_db::Error;
use windlass_engine::store::NewRun;
use windlass_engine::{JobStatus, RunStatus};
use windlass_workflow::Workflow;

use crate::file::Case;
use database::Lifespan;
use engine::{Engine, Settled};
use world::World;

/// The most instants at which something happens in a run of a case.
const INSTANTS_MAX: usize = 100_000;
/// The most lives of the engine in a run of a case.
const LIVES_MAX: usize = 8;

/// The workflow of a case.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// The workflow.
    pub workflow: &'a Workflow,
    /// The folder of its file.
    pub folder: Option<&'a str>,
}

/// What was seen of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Observed {
    /// The state of the run.
    pub status: RunStatus,
    /// How long the run took by the clock of the case, in milliseconds.
    pub took_ms: i64,
    /// The jobs by their names. The jobs of a called workflow have the name of the calling job before theirs.
    pub jobs: BTreeMap<String, ObservedJob>,
    /// The outputs of the run, or why they have no value. Nothing if it has none, or did not succeed.
    pub outputs: Option<Result<Json, String>>,
    /// The variables at the end.
    pub variables: BTreeMap<String, Json>,
    /// The jobs that began and have no fake.
    pub without_fake: BTreeSet<String>,
    /// The jobs for which nothing can happen any more, each with what it waits for.
    pub stuck: Vec<(String, String)>,
    /// How many commits the engine made after the case began.
    pub commits: u64,
}

/// What was seen of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedJob {
    /// Its state.
    pub status: JobStatus,
    /// Its output.
    pub output: Option<Json>,
    /// Its last error.
    pub error: Option<String>,
    /// How many of its attempts began.
    pub attempts: i64,
    /// What the end of the engine interrupted.
    pub interruptions: Interruptions,
}

/// The attempts of a job that the end of the engine interrupted. A job that calls a workflow again has several runs, whose jobs
/// have the same names: all of them count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Interruptions {
    /// How many attempts were interrupted, so that the job began again, failed or was stopped.
    pub attempts: i64,
    /// How many of these were not repeated, because the job was cancelled or its deadline was over.
    pub stopped: i64,
    /// Whether the job failed after one of them.
    pub has_failed: bool,
}

/// Why a case could not be run.
#[derive(Debug)]
pub enum CaseError {
    /// There is no folder for the temporary database.
    Folder(std::io::Error),
    /// The database or the engine refused something.
    Engine(Error),
    /// The case does not come to an end within a limit.
    Endless(String),
}

impl std::fmt::Display for CaseError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CaseError::Folder(error) => write!(formatter, "no folder for the temporary database: {error}"),
            CaseError::Engine(error) => write!(formatter, "{error}"),
            CaseError::Endless(why) => formatter.write_str(why),
        }
    }
}

impl std::error::Error for CaseError {}

impl From<Error> for CaseError {
    fn from(error: Error) -> CaseError {
        CaseError::Engine(error)
    }
}

/// Runs a case to its end.
///
/// # Errors
/// Why it could not be run. That it ends otherwise than expected is no error.
pub fn run(subject: Subject<'_>, case: &Case) -> Result<Observed, CaseError> {
    run_until(subject, case, None)
}

/// Runs a case to its end. With `ends_after` the engine is ended when it begins another commit after that many, and
/// a new one carries on.
pub(crate) fn run_until(
    subject: Subject<'_>,
    case: &Case,
    ends_after: Option<u64>,
) -> Result<Observed, CaseError> {
    let folder = tempfile::tempdir().map_err(CaseError::Folder)?;
    let path = folder.path().join("case.db");
    let world = Arc::new(World::new(case));
    let run = NewRun {
        workflow: subject.workflow.clone(),
        params: case.params.clone(),
        dir: subject.folder.map(str::to_owned),
        run_key: Some("case".to_owned()),
        occasion: None,
    };
    let mut lifespan = ends_after.map_or(Lifespan::Endless, Lifespan::Commits);
    let mut commits = 0;
    for _life in 0..LIVES_MAX {
        let mut engine = Engine::open(&path, &world, subject.workflow, lifespan)?;
        let end = live(&mut engine, &run);
        commits += engine.commits();
        match end {
            Ok(stuck) => return Ok(report::observe(&mut engine, &world, folder.path(), stuck, commits)?),
            Err(_dead) if engine.is_dead() => lifespan = Lifespan::Endless,
            Err(error) => return Err(error),
        }
    }
    Err(CaseError::Endless("the engine could not carry on with the case".to_owned()))
}

/// Lets one engine live until the run is over, or until nothing can happen any more. Returns the jobs that are stuck.
fn live(engine: &mut Engine, run: &NewRun) -> Result<Vec<(String, String)>, CaseError> {
    engine.submit(run)?;
    for _instant in 0..INSTANTS_MAX {
        match engine.settle()? {
            Settled::Over => return Ok(Vec::new()),
            Settled::Stuck => return Ok(report::stuck_jobs(engine)?),
            Settled::NextAt(at_ms) => engine.jump_to(at_ms),
        }
    }
    Err(CaseError::Endless(format!(
        "the case is not over after {INSTANTS_MAX} instants at which something happened"
    )))
}
