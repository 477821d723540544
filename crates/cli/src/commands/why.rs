//! `windlass why`: the reason that a job is not running, or ended as it did.

use clap::Args;
use windlass::store::{Job, Why};

use crate::address::Address;
use crate::cli::GlobalOptions;
use crate::database::Database;
use crate::describe;
use crate::error::Failure;
use crate::lookup;
use crate::output::Output;
use crate::style::{BOLD, paint};
use crate::time;
use crate::views::{JobView, ReasonView, WhyView};

pub(crate) mod words;

/// Explain why a job is not running, or why it ended as it did
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct WhyArgs {
    /// A job of a run (3/build), or a job by its id (42 or j42)
    #[arg(value_name = "JOB")]
    address: Address,
}

const EXAMPLES: &str = "\
Examples:
  windlass why 3/build
  windlass why j42";

/// Explains.
pub(crate) fn execute(global: &GlobalOptions, args: &WhyArgs) -> Result<(), Failure> {
    let database = Database::existing(global)?;
    let job_id = lookup::job(&database, &args.address)?.id;
    let Why { job, reasons } = database.ask(|store| store.jobs().why(job_id))?;
    let needs = lookup::needs(&database, &job)?;
    let now_ms = time::now_ms();
    let reasons = reasons
        .iter()
        .map(|reason| ReasonView {
            kind: words::kind(reason),
            text: words::sentence(reason, &job, now_ms, global),
        })
        .collect();
    let view = WhyView { job: JobView::new(&job, needs), reasons };
    Output { format: global.output }.object(&view, |view| explanation(&job, view))
}

fn explanation(job: &Job, view: &WhyView) -> String {
    let mut text = format!("{} is {}.\n", paint(BOLD, title(job)), describe::job_state(job));
    for reason in &view.reasons {
        text.push_str(&format!("  {}\n", reason.text));
    }
    text
}

/// The job in its run, with its id.
fn title(job: &Job) -> String {
    let label = job.label();
    let id = format!("j{}", job.id);
    if label == id { format!("job {id}") } else { format!("job {label} ({id})") }
}
