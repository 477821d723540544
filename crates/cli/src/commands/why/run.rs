//! Why a run does not go on, or why it ended as it did: by the jobs that decide.

use windlass_engine::store::{Cursor, Job, JobCounts, JobFilter, JobSummary, Run, RunSlot};
use windlass_engine::{JobStatus, RunStatus, StopReason};
use windlass_views::{RunView, WhyRunView, WhyView};

use crate::arguments::GlobalOptions;
use crate::database::Database;
use crate::error::Failure;
use crate::text::style::{BOLD, paint, printable};
use crate::text::{reasons, runs_and_jobs};

/// How many jobs are explained. The others are counted.
const JOBS_MAX: i64 = 20;

/// The states that hold an unfinished run up, in the order in which a person would ask. A BLOCKED job waits for one of them.
const HOLDING_UP: [JobStatus; 4] =
    [JobStatus::Running, JobStatus::Waiting, JobStatus::Pending, JobStatus::Scheduled];
/// The states of jobs that did not do their work in a run that has ended.
const ENDING: [JobStatus; 2] = [JobStatus::Failed, JobStatus::Cancelled];

/// A run, and the jobs that decide about it.
pub(super) struct RunExplained {
    run: Run,
    counts: JobCounts,
    interrupted: bool,
    /// The slot of its concurrency key that the run waits for.
    slot: Option<RunSlot>,
    /// The jobs that decide, with their reasons.
    jobs: Vec<(Job, WhyView)>,
    /// How many more decide.
    more: i64,
}

impl RunExplained {
    pub(super) fn read(
        database: &Database,
        run: Run,
        global: &GlobalOptions,
    ) -> Result<RunExplained, Failure> {
        let counts = database.ask(|store| store.runs().job_counts(run.id))?;
        let interrupted = database.ask(|store| store.runs().is_interrupted(run.id))?;
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
                let page = database.ask(|store| store.jobs().list(&filter))?;
                // A failure that is allowed did not end the run.
                let decides = |job: &&JobSummary| status != JobStatus::Failed || !job.allow_failure;
                all -= page.rows.iter().filter(|job| !decides(job)).count() as i64;
                ids.extend(page.rows.iter().rev().filter(decides).map(|job| job.id));
            }
        }
        let more = (all - ids.len() as i64).max(0);
        let jobs =
            ids.into_iter().map(|id| super::explain(database, id, global)).collect::<Result<_, _>>()?;
        let slot = database.ask(|store| store.runs().awaited_slot(&run))?;
        Ok(RunExplained { run, counts, interrupted, slot, jobs, more })
    }

    pub(super) fn view(self) -> WhyRunView {
        WhyRunView {
            run: RunView::new(&self.run, &self.counts, self.interrupted),
            jobs: self.jobs.into_iter().map(|(_job, view)| view).collect(),
        }
    }

    pub(super) fn text(&self, global: &GlobalOptions) -> String {
        let run = &self.run;
        let title = paint(BOLD, format!("run {} of {}", run.id, printable(&run.workflow)));
        let mut text = format!("{title} is {}.\n", runs_and_jobs::run_state(run, self.interrupted));
        for sentence in self.sentences(global) {
            text.push_str(&format!("  {sentence}\n"));
        }
        for (job, view) in &self.jobs {
            text.push('\n');
            text.push_str(&super::explanation(job, view));
        }
        if self.more > 0 {
            let list = global.hint(&format!("jobs --run {}", run.id));
            text.push_str(&format!("\n… and {} more; `{list}` lists them\n", self.more));
        }
        text
    }

    /// What can be said of the run as a whole.
    fn sentences(&self, global: &GlobalOptions) -> Vec<String> {
        let run = &self.run;
        let mut sentences = Vec::new();
        let is_over = run.status.is_terminal();
        match (run.stop_reason, is_over) {
            (Some(StopReason::TimedOut), true) => sentences.push("It reached its timeout.".to_owned()),
            (Some(StopReason::TimedOut), false) => {
                sentences.push("It reached its timeout, and its jobs are stopping.".to_owned());
            }
            (Some(StopReason::Cancelled), true) => sentences.push("It was cancelled.".to_owned()),
            (Some(StopReason::Skipped), true | false) => {
                sentences.push("It was skipped: its concurrency key had no free slot.".to_owned());
            }
            (Some(StopReason::Cancelled), false) => {
                sentences.push("It was cancelled, and its jobs are stopping.".to_owned());
            }
            (None, false) if self.interrupted => sentences.push(format!(
                "No worker executes it; `{}` continues it.",
                global.hint(&format!("resume {}", run.id))
            )),
            (None, true | false) => {}
        }
        if let Some(slot) = &self.slot {
            sentences.push(reasons::run_waits_for_slot("It", slot));
        }
        sentences.push(format!("Its jobs: {}.", runs_and_jobs::job_counts(&self.counts)));
        sentences
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
