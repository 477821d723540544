//! A run as JSON.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use windlass_engine::store::{Job, JobCounts, Run, RunDefinition, Submitted, Workspace, WorkspaceState};
use windlass_engine::{JobStatus, Result, RunSource, RunStatus, StopReason, Store, WaitsFor};

use crate::job::{job_name, names_needed_by};
use crate::time::{Instant, duration_ms, instant};
use crate::{JobView, json};

/// A run.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Run")]
pub struct RunView {
    /// Its number.
    run_id: i64,
    /// The name of its workflow.
    workflow: String,
    /// Its state.
    #[schemars(schema_with = "crate::schema::run_status")]
    status: &'static str,
    /// The state in which its jobs ended, before its handlers ran; null without handlers, and before that.
    #[schemars(extend("enum" = ["SUCCESSFUL", "FAILED", "CANCELLED", null]))]
    outcome: Option<&'static str>,
    /// Why it was stopped.
    #[schemars(extend("enum" = ["cancelled", "timed_out", "skipped", null]))]
    stop_reason: Option<&'static str>,
    /// What it waits for before its jobs may start: a slot of its concurrency key.
    #[schemars(extend("enum" = ["slot", null]))]
    waits_for: Option<&'static str>,
    /// The concurrency key that it shares with other runs.
    concurrency_key: Option<String>,
    /// The values of its parameters, by name.
    params: Value,
    /// The key of `--run-key`.
    run_key: Option<String>,
    /// The tags of its definition, sorted.
    tags: Vec<String>,
    /// What started it, if it was no person and no job.
    #[schemars(extend("enum" = ["schedule", "catchup", "backfill", "manual", "event", null]))]
    source: Option<&'static str>,
    /// Who submitted it or fired its schedule by hand: the name of a token, of a session or of a user. Null if nobody is known.
    started_by: Option<String>,
    /// The schedule that started it.
    schedule_id: Option<i64>,
    /// The occurrence for which it was started.
    scheduled_for: Option<Instant>,
    /// The folder in which its jobs start.
    dir: Option<String>,
    /// When it was accepted.
    created_at: Option<Instant>,
    /// When its first job started.
    started_at: Option<Instant>,
    /// When it ended.
    finished_at: Option<Instant>,
    /// From its start to its end.
    duration_ms: Option<i64>,
    /// It has not ended, and no living process executes it.
    interrupted: bool,
    /// The job that called its workflow.
    parent: Option<ParentView>,
    /// How many of its jobs are in each state.
    job_counts: JobCountsView,
}

/// The job that called the workflow of a run.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Parent")]
pub(crate) struct ParentView {
    /// The job.
    job_id: i64,
    /// The run at the top of all calls.
    root_run_id: Option<i64>,
}

impl RunView {
    /// Reads the counts of the run's jobs, and whether it is interrupted.
    pub fn read(store: &Store, run: &Run) -> Result<RunView> {
        Ok(RunView::new(run, &store.runs().job_counts(run.id)?, store.runs().is_interrupted(run.id)?))
    }

    /// Reads the same for many runs at once.
    pub fn read_all(store: &Store, runs: &[Run]) -> Result<Vec<RunView>> {
        let ids: Vec<i64> = runs.iter().map(|run| run.id).collect();
        let (counts, interrupted) = (store.runs().job_counts_of(&ids)?, store.runs().interrupted_of(&ids)?);
        let none = JobCounts::default();
        let view = |run: &Run| {
            RunView::new(run, counts.get(&run.id).unwrap_or(&none), interrupted.contains(&run.id))
        };
        Ok(runs.iter().map(view).collect())
    }

    /// `interrupted`: the run is unfinished and no worker executes it.
    pub fn new(run: &Run, counts: &JobCounts, interrupted: bool) -> RunView {
        RunView {
            run_id: run.id,
            workflow: run.workflow.clone(),
            status: run.status.as_str(),
            outcome: run.outcome.map(RunStatus::as_str),
            stop_reason: run.stop_reason.map(StopReason::as_str),
            waits_for: run.waits_for.map(WaitsFor::as_str),
            concurrency_key: run.concurrency.as_ref().map(|(key, _limit)| key.clone()),
            params: json(&run.params),
            run_key: run.run_key.clone(),
            tags: run.tags.clone(),
            source: run.source.map(RunSource::as_str),
            started_by: run.started_by.clone(),
            schedule_id: run.schedule_id,
            scheduled_for: instant(run.scheduled_for),
            dir: run.dir.clone(),
            created_at: instant(Some(run.created_at)),
            started_at: instant(run.started_at),
            finished_at: instant(run.finished_at),
            duration_ms: duration_ms(run.started_at, run.finished_at)
                .map(|last_ms| run.ran_before_ms + last_ms),
            interrupted,
            parent: run.parent_job_id.map(|job_id| ParentView { job_id, root_run_id: run.root_run_id }),
            job_counts: JobCountsView::new(counts),
        }
    }
}

/// How many jobs of a run are in each state.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "JobCounts")]
pub struct JobCountsView {
    /// All jobs.
    total: i64,
    /// Jobs that are BLOCKED.
    blocked: i64,
    /// Jobs that are SCHEDULED.
    scheduled: i64,
    /// Jobs that are PENDING.
    pending: i64,
    /// Jobs that are RUNNING.
    running: i64,
    /// Jobs that are WAITING.
    waiting: i64,
    /// Jobs that are SUCCESSFUL.
    successful: i64,
    /// Jobs that are FAILED.
    failed: i64,
    /// Jobs that are SKIPPED.
    skipped: i64,
    /// Jobs that are CANCELLED.
    cancelled: i64,
}

impl JobCountsView {
    pub(crate) fn new(counts: &JobCounts) -> JobCountsView {
        JobCountsView {
            total: counts.total(),
            blocked: counts.of(JobStatus::Blocked),
            scheduled: counts.of(JobStatus::Scheduled),
            pending: counts.of(JobStatus::Pending),
            running: counts.of(JobStatus::Running),
            waiting: counts.of(JobStatus::Waiting),
            successful: counts.of(JobStatus::Successful),
            failed: counts.of(JobStatus::Failed),
            skipped: counts.of(JobStatus::Skipped),
            cancelled: counts.of(JobStatus::Cancelled),
        }
    }
}

/// A run with its jobs.
#[derive(Debug, Serialize, JsonSchema)]
pub struct InspectedRun {
    /// The run itself.
    #[serde(flatten)]
    run: RunView,
    /// The values of the outputs of the workflow, after a success.
    outputs: Option<Value>,
    /// The path of its folder, until it is removed.
    workspace: Option<String>,
    /// Its definitions, in order. The last one is the one that it has.
    definitions: Vec<RunDefinitionView>,
    /// Its jobs.
    jobs: Vec<JobView>,
}

/// A definition that a run has or had.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "RunDefinition")]
pub(crate) struct RunDefinitionView {
    /// Its place among the definitions of the run, from 1.
    number: i64,
    /// What gave it to the run.
    #[schemars(extend("enum" = ["submit", "run", "rerun", "retry", "call", "schedule", "catchup", "backfill", "manual",
                                "event"]))]
    verb: &'static str,
    /// When the run got it.
    pinned_at: Option<Instant>,
    /// The SHA-256 of its content, without comments.
    hash: String,
    /// The version of the registered workflow with the same content.
    version: Option<i64>,
    /// The file from which it came, as it was named.
    file: Option<String>,
    /// The absolute path of the file.
    path: Option<String>,
    /// The SHA-256 of the file, with the files that it includes.
    file_hash: Option<String>,
    /// The jobs to which `--only` has reduced the file.
    only: Option<Vec<String>>,
    /// Whether the jobs that these need were kept.
    with_upstream: bool,
}

impl RunDefinitionView {
    fn new(definition: &RunDefinition) -> RunDefinitionView {
        let file = definition.file.as_ref();
        let only = file.and_then(|file| file.only.as_ref());
        RunDefinitionView {
            number: definition.number,
            verb: definition.origin.as_str(),
            pinned_at: instant(Some(definition.pinned_at)),
            hash: definition.hash.clone(),
            version: definition.version,
            file: file.map(|file| file.named.clone()),
            path: file.map(|file| file.path.clone()),
            file_hash: file.map(|file| file.hash.clone()),
            only: only.map(|only| only.jobs.clone()),
            with_upstream: only.is_some_and(|only| only.with_upstream),
        }
    }
}

impl InspectedRun {
    /// Reads the jobs of the run and what each of them needs.
    pub fn read(store: &Store, run: &Run) -> Result<InspectedRun> {
        let jobs = store.jobs().of_run(run.id)?;
        let needs = needed_jobs_of_run(store, run.id, &jobs)?;
        InspectedRun::with_jobs(store, run, jobs, &needs)
    }

    /// The same with some of its jobs.
    pub fn read_part(store: &Store, run: &Run, jobs: Vec<Job>) -> Result<InspectedRun> {
        let needs = names_needed_by(store, &jobs)?;
        InspectedRun::with_jobs(store, run, jobs, &needs)
    }

    fn with_jobs(
        store: &Store,
        run: &Run,
        mut jobs: Vec<Job>,
        needs: &HashMap<i64, Vec<String>>,
    ) -> Result<InspectedRun> {
        store.jobs().collect_outputs(&mut jobs)?;
        let outputs = known_outputs(store, run.id)?;
        let workspace = workspace_path(store.runs().workspace(run.id)?);
        let definitions = store.runs().definitions(run.id)?;
        let run = RunView::read(store, run)?;
        Ok(InspectedRun::new(run, outputs, workspace, &definitions, &jobs, needs))
    }

    /// `needs` are the names of the jobs that a job needs, by the id of that job.
    pub fn new(
        run: RunView,
        outputs: Option<Value>,
        workspace: Option<String>,
        definitions: &[RunDefinition],
        jobs: &[Job],
        needs: &HashMap<i64, Vec<String>>,
    ) -> InspectedRun {
        let view = |job: &Job| JobView::new(job, needs.get(&job.id).cloned().unwrap_or_default());
        let definitions = definitions.iter().map(RunDefinitionView::new).collect();
        InspectedRun { run, outputs, workspace, definitions, jobs: jobs.iter().map(view).collect() }
    }
}

/// The outputs of a run that succeeded, if they have values.
fn known_outputs(store: &Store, run_id: i64) -> Result<Option<Value>> {
    Ok(store.runs().outputs(run_id)?.and_then(std::result::Result::ok))
}

/// The path of a workspace that was not removed.
pub fn workspace_path(workspace: Option<Workspace>) -> Option<String> {
    workspace
        .filter(|workspace| workspace.state != WorkspaceState::Removed)
        .and_then(|workspace| workspace.path)
}

/// The names of the jobs that each job of a run needs, by the id of the job that needs them.
pub fn needed_jobs_of_run(store: &Store, run_id: i64, jobs: &[Job]) -> Result<HashMap<i64, Vec<String>>> {
    let names: HashMap<i64, String> = jobs.iter().map(|job| (job.id, job_name(job))).collect();
    let mut needs: HashMap<i64, Vec<String>> = HashMap::new();
    for (parent_id, child_id) in store.jobs().dependencies(run_id)? {
        let parent = names.get(&parent_id).cloned().unwrap_or_else(|| format!("j{parent_id}"));
        needs.entry(child_id).or_default().push(parent);
    }
    Ok(needs)
}

/// The result of a submission.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Submitted")]
pub struct SubmittedView {
    /// The number of the run.
    run_id: i64,
    /// The name of its workflow.
    workflow: String,
    /// Its state.
    #[schemars(schema_with = "crate::schema::run_status")]
    status: &'static str,
    /// False if the run key belonged to an existing run.
    created: bool,
}

impl SubmittedView {
    /// `status` is the state of the run, which may have existed before.
    pub fn new(submitted: Submitted, workflow: &str, status: RunStatus) -> SubmittedView {
        SubmittedView {
            run_id: submitted.run_id,
            workflow: workflow.to_owned(),
            status: status.as_str(),
            created: submitted.created,
        }
    }
}
