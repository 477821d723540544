//! Why a run does not go on, or why it ended as it did: by the jobs that decide.

use windlass_engine::StopReason;
use windlass_engine::store::RunSlot;
use windlass_views::ExplainedRun;

use crate::arguments::GlobalOptions;
use crate::text::style::{BOLD, paint, printable};
use crate::text::{reasons, runs_and_jobs};

/// The explanation for people. `slot` is the slot of its concurrency key that the run waits for.
pub(super) fn text(found: &ExplainedRun, slot: Option<&RunSlot>, global: &GlobalOptions) -> String {
    let run = &found.run;
    let title = paint(BOLD, format!("run {} of {}", run.id, printable(&run.workflow)));
    let mut text = format!("{title} is {}.\n", runs_and_jobs::run_state(run, found.interrupted));
    for sentence in sentences(found, slot, global) {
        text.push_str(&format!("  {sentence}\n"));
    }
    for (job, view) in &found.jobs {
        text.push('\n');
        text.push_str(&super::explanation(job, view));
    }
    if found.more > 0 {
        let list = global.hint(&format!("jobs --run {}", run.id));
        text.push_str(&format!("\n… and {} more; `{list}` lists them\n", found.more));
    }
    text
}

/// What can be said of the run as a whole.
fn sentences(found: &ExplainedRun, slot: Option<&RunSlot>, global: &GlobalOptions) -> Vec<String> {
    let run = &found.run;
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
        (None, false) if found.interrupted => sentences.push(format!(
            "No worker executes it; `{}` continues it.",
            global.hint(&format!("resume {}", run.id))
        )),
        (None, true | false) => {}
    }
    if let Some(slot) = slot {
        sentences.push(reasons::run_waits_for_slot("It", slot));
    }
    sentences.push(format!("Its jobs: {}.", runs_and_jobs::job_counts(&found.counts)));
    sentences
}
