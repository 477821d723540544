//! `windlass why`: explains why a job is not running, or why it ended as it did.

use clap::Args;
use windlass_engine::store::{Job, Why};
use windlass_views::{JobView, ReasonView, WhyView, names_of_needed_jobs, reason_kind};

use crate::arguments::{GlobalOptions, RunOrJob};
use crate::database::Database;
use crate::error::Failure;
use crate::find;
use crate::output::Output;
use crate::text::style::{BOLD, paint};
use crate::text::{reasons, runs_and_jobs, time};

/// Explain why a job is not running, or why it ended as it did
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct WhyArgs {
    /// A job of a run (3/build), or a job by its id (42 or j42)
    #[arg(value_name = "JOB")]
    address: RunOrJob,
}

const EXAMPLES: &str = "\
Examples:
  windlass why 3/build
  windlass why j42";

/// Prints the reasons.
pub(crate) fn execute(global: &GlobalOptions, args: &WhyArgs) -> Result<(), Failure> {
    let database = Database::existing(global)?;
    let job_id = find::job(&database, &args.address)?.id;
    let Why { job, reasons } = database.ask(|store| store.jobs().why(job_id))?;
    let needs = database.ask(|store| names_of_needed_jobs(store, &job))?;
    let now_ms = time::now_ms();
    let reasons = reasons
        .iter()
        .map(|reason| ReasonView {
            kind: reason_kind(reason),
            text: reasons::sentence(reason, &job, now_ms, global),
        })
        .collect();
    let view = WhyView { job: JobView::new(&job, needs), reasons };
    Output { format: global.output }.object(&view, |view| explanation(&job, view))
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
