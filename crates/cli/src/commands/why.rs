//! `windlass why`: explains why a run or a job does not go on, or why it ended as it did.

mod run;

use clap::Args;
use windlass_engine::store::{Job, Reason};
use windlass_views::{ExplainedRun, WhyRunView, WhyView};

use crate::arguments::{GlobalOptions, RunOrJob};
use crate::complete;
use crate::database::Database;
use crate::error::Failure;
use crate::find::{self, FoundRunOrJob};
use crate::output::Output;
use crate::text::style::{BOLD, paint};
use crate::text::{reasons, runs_and_jobs, time};

/// Explain why a run or a job waits, or why it ended as it did
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct WhyArgs {
    /// A run (3, latest, nightly), a job of a run (3/build), or a job by its id (j42)
    #[arg(value_name = "RUN|JOB", add = complete::run_or_job(), default_value = "latest")]
    address: RunOrJob,
}

const EXAMPLES: &str = "\
Examples:
  windlass why             # the newest run
  windlass why 3           # the jobs that hold run 3 up, or ended it
  windlass why 3/build
  windlass why j42";

/// Prints the reasons.
pub(crate) fn execute(global: &GlobalOptions, args: &WhyArgs) -> Result<(), Failure> {
    let database = Database::for_reading(global)?;
    let output = Output { format: global.output };
    let now_ms = time::now_ms();
    let sentence = |reason: &Reason, job: &Job| reasons::sentence(reason, job, now_ms, global);
    match find::run_or_job(&database, &args.address)? {
        FoundRunOrJob::Job(job) => {
            let (job, view) = database.ask(|store| WhyView::read(store, job.id, &sentence))?;
            output.object(&view, |view| explanation(&job, view))
        }
        FoundRunOrJob::Run(found) => {
            let found = database.ask(|store| ExplainedRun::read(store, *found, &sentence))?;
            let slot = database.ask(|store| store.runs().awaited_slot(&found.run))?;
            let text = run::text(&found, slot.as_ref(), global);
            output.object(&found.view(), |_: &WhyRunView| text)
        }
    }
}

fn explanation(job: &Job, view: &WhyView) -> String {
    let mut text = format!("{} is {}.\n", paint(BOLD, title(job)), runs_and_jobs::job_state(job));
    for reason in &view.reasons {
        text.push_str(&format!("  {}\n", reason.text));
    }
    text
}

/// The name of the job in its run, and its id.
fn title(job: &Job) -> String {
    let label = job.label();
    let id = format!("j{}", job.id);
    if label == id { format!("job {id}") } else { format!("job {label} ({id})") }
}
