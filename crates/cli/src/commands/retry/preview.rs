//! `windlass retry RUN --dry-run`: which jobs would run again, and why.

use windlass_engine::decide::retry_preview::{PreviewedJob, RetryReason};
use windlass_engine::store::{RetryPreview, Run};
use windlass_views::{RetriedJobPreview, RetryPreviewView};

use super::RetryArgs;
use super::next;
use crate::arguments::GlobalOptions;
use crate::database::Database;
use crate::error::Failure;
use crate::output::Output;
use crate::stderr;
use crate::text::style::printable;
use crate::text::table::{self, Column, Table};
use crate::text::values::counted;

/// Prints the jobs that a retry would execute. Nothing is written.
pub(super) fn show(
    global: &GlobalOptions,
    database: &Database,
    run: &Run,
    args: &RetryArgs,
) -> Result<(), Failure> {
    let candidate = args.candidate(global, database, run)?;
    let selection = args.selection(database, run, candidate.as_ref())?;
    let next = candidate.as_ref().map(next::Candidate::workflow);
    let preview = database.ask(|store| store.runs().preview_retry(run.id, &selection, next))?;
    match &candidate {
        Some(candidate) => stderr::note(&next::preview_note(candidate.title(), run, &preview.changes)),
        None => {
            if let Some(note) = next::change_note(database, run)? {
                stderr::note(&note);
            }
        }
    }
    let view = RetryPreviewView { run_id: run.id, jobs: preview.jobs.iter().map(job_view).collect() };
    Output { format: global.output }.object(&view, |_| text(&preview))?;
    let jobs = counted(preview.jobs.len() as i64, "job", "jobs");
    stderr::note(&format!("{jobs} of run {} would run again; without --dry-run they do", run.id));
    Ok(())
}

fn text(preview: &RetryPreview) -> String {
    let mut table = Table::new(&[Column::Left("JOB"), Column::Shrinking("WHY")]);
    for job in &preview.jobs {
        table.row([printable(&job.name).into_owned(), reason(&job.reason)]);
    }
    table.render(table::stdout_width())
}

/// The reason in words.
fn reason(reason: &RetryReason) -> String {
    match reason {
        RetryReason::Ended(status) => format!("it is {status}"),
        RetryReason::Items(1) => "1 of its items has failed or was cancelled".to_owned(),
        RetryReason::Items(items) => format!("{items} of its items have failed or were cancelled"),
        RetryReason::Changed => "it does something else now".to_owned(),
        RetryReason::Added => "it is new".to_owned(),
        RetryReason::Named => "--from names it".to_owned(),
        RetryReason::After(parent) => format!("it needs `{}`", printable(parent)),
        RetryReason::Handler => "handlers run at each end of the run".to_owned(),
    }
}

fn job_view(job: &PreviewedJob) -> RetriedJobPreview {
    let (name, after) = match &job.reason {
        RetryReason::Ended(_) => ("ended", None),
        RetryReason::Items(_) => ("items", None),
        RetryReason::Changed => ("changed", None),
        RetryReason::Added => ("added", None),
        RetryReason::Named => ("named", None),
        RetryReason::After(parent) => ("after", Some(parent.clone())),
        RetryReason::Handler => ("handler", None),
    };
    RetriedJobPreview { job: job.name.clone(), reason: name.to_owned(), after }
}
