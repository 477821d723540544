//! The reasons why a job is not running, and the jobs that decide about a run, as JSON.

use schemars::JsonSchema;
use serde::Serialize;
use windlass_engine::store::{Cursor, Job, JobCounts, JobFilter, JobSummary, Reason, Run, Why};
use windlass_engine::{JobStatus, Result, RunStatus, Store};

use crate::{JobView, RunView, names_of_needed_jobs};

/// How many jobs of a run are explained. The others are counted.
const JOBS_MAX: i64 = 20;

/// The states that hold an unfinished run up, in the order in which a person would ask. A BLOCKED job waits for one of them.
const HOLDING_UP: [JobStatus; 4] =
    [JobStatus::Running, JobStatus::Waiting, JobStatus::Pending, JobStatus::Scheduled];
/// The states of jobs that did not do their work in a run that has ended.
const ENDING: [JobStatus; 2] = [JobStatus::Failed, JobStatus::Cancelled];

/// Makes a sentence for people of a reason for the state of a job.
pub type ReasonSentence<'s> = &'s dyn Fn(&Reason, &Job) -> String;

/// A job, and the reasons for its state.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Why")]
pub struct WhyView {
    /// The job.
    #[serde(flatten)]
    pub job: JobView,
    /// The most important reason first.
    pub reasons: Vec<ReasonView>,
}

/// A run, and the jobs that decide about it: those that hold it up, or those that ended it.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "WhyRun")]
pub struct WhyRunView {
    /// The run.
    #[serde(flatten)]
    pub run: RunView,
    /// The jobs with their reasons, twenty at most.
    pub jobs: Vec<WhyView>,
}

/// A run, and the jobs that decide about it.
#[derive(Debug)]
pub struct ExplainedRun {
    /// The run.
    pub run: Run,
    /// How many jobs it has in each state.
    pub counts: JobCounts,
    /// It is unfinished, and no worker executes it.
    pub interrupted: bool,
    /// The jobs that decide, with their reasons.
    pub jobs: Vec<(Job, WhyView)>,
    /// How many more decide.
    pub more: i64,
}

impl WhyView {
    /// Reads the reasons for the state of a job.
    pub fn read(store: &Store, job_id: i64, sentence: ReasonSentence<'_>) -> Result<(Job, WhyView)> {
        let Why { job, reasons } = store.jobs().why(job_id)?;
        let needs = names_of_needed_jobs(store, &job)?;
        let reason = |reason: &Reason| ReasonView { kind: reason_kind(reason), text: sentence(reason, &job) };
        let reasons = reasons.iter().map(reason).collect();
        let view = WhyView { job: JobView::new(&job, needs), reasons };
        Ok((job, view))
    }
}

impl ExplainedRun {
    /// Reads the jobs that hold a run up, or have ended it.
    pub fn read(store: &Store, run: Run, sentence: ReasonSentence<'_>) -> Result<ExplainedRun> {
        let counts = store.runs().job_counts(run.id)?;
        let interrupted = store.runs().is_interrupted(run.id)?;
        let mut ids: Vec<i64> = Vec::new();
        let mut all = 0;
        for status in deciding(&run, &counts) {
            all += counts.of(status);
            let left = JOBS_MAX - ids.len() as i64;
            if left > 0 && counts.of(status) > 0 {
                let filter = JobFilter {
                    run_id: Some(run.id),
                    statuses: vec![status],
                    cursor: Cursor::newest(left),
                    ..JobFilter::default()
                };
                let page = store.jobs().list(&filter)?;
                // A failure that is allowed did not end the run.
                let decides = |job: &&JobSummary| status != JobStatus::Failed || !job.allow_failure;
                all -= page.rows.iter().filter(|job| !decides(job)).count() as i64;
                ids.extend(page.rows.iter().rev().filter(decides).map(|job| job.id));
            }
        }
        let more = (all - ids.len() as i64).max(0);
        let jobs = ids.into_iter().map(|id| WhyView::read(store, id, sentence)).collect::<Result<_>>()?;
        Ok(ExplainedRun { run, counts, interrupted, jobs, more })
    }

    /// Its JSON.
    pub fn view(self) -> WhyRunView {
        WhyRunView {
            run: RunView::new(&self.run, &self.counts, self.interrupted),
            jobs: self.jobs.into_iter().map(|(_job, view)| view).collect(),
        }
    }
}

/// The states of the jobs that decide about the run.
fn deciding(run: &Run, counts: &JobCounts) -> Vec<JobStatus> {
    match run.status {
        RunStatus::Successful => Vec::new(),
        RunStatus::Failed | RunStatus::Cancelled => {
            // What was cancelled after a failure says nothing more.
            let failed = ENDING.into_iter().find(|status| counts.of(*status) > 0);
            failed.into_iter().collect()
        }
        RunStatus::Pending | RunStatus::Running => HOLDING_UP.to_vec(),
    }
}

/// One reason: a word for programs and a sentence for people.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Reason")]
pub struct ReasonView {
    /// One of the words of [`reason_kind`].
    pub kind: &'static str,
    /// The sentence.
    pub text: String,
}

/// The reason as a word for programs.
pub fn reason_kind(reason: &Reason) -> &'static str {
    match reason {
        Reason::WaitsForParents(_) => "waits_for_parents",
        Reason::WaitsForTime { .. } => "waits_for_time",
        Reason::WaitsForRound { .. } => "waits_for_round",
        Reason::Sleeps { .. } => "sleeps",
        Reason::NoScheduler => "no_scheduler",
        Reason::QueuePaused(_) => "queue_paused",
        Reason::NoWorker { .. } => "no_worker",
        Reason::NoCapability { .. } => "no_capability",
        Reason::WorkersTooOld { .. } => "workers_too_old",
        Reason::QueueFull { .. } => "queue_full",
        Reason::QueueRate { .. } => "queue_rate",
        Reason::NotItsTurn { .. } => "not_its_turn",
        Reason::KeyTaken { .. } => "key_taken",
        Reason::WorkersBusy { .. } => "workers_busy",
        Reason::Behind(_) => "behind",
        Reason::Runs { .. } => "runs",
        Reason::WaitsForRun { .. } => "waits_for_run",
        Reason::WaitsForEndOfRun => "waits_for_end_of_run",
        Reason::WaitsForDecision => "waits_for_decision",
        Reason::WaitsForEvent { .. } => "waits_for_event",
        Reason::WaitsForApproval { .. } => "waits_for_approval",
        Reason::WaitsForItems { .. } => "waits_for_items",
        Reason::RunWaitsForSlot(_) => "run_waits_for_slot",
        Reason::WaitsForTurn { .. } => "waits_for_turn",
        Reason::HasDeadline(_) => "has_deadline",
        Reason::Over { .. } => "over",
    }
}
