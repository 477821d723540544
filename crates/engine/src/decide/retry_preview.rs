//! Which jobs a retry would execute again, and why. Pure.

use std::collections::HashMap;

use windlass_workflow::Workflow;

use super::next_definition::DefinitionChanges;
use crate::status::JobStatus;

/// A job that would be executed again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreviewedJob {
    /// Its name.
    pub name: String,
    /// Why it would be executed again.
    pub reason: RetryReason,
}

/// Why a job would be executed again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RetryReason {
    /// It ended in this state.
    Ended(JobStatus),
    /// So many of its items failed or were cancelled. Only they are executed again.
    Items(usize),
    /// It does something else in the next definition.
    Changed,
    /// Only the next definition has it.
    Added,
    /// It was named.
    Named,
    /// It comes after this job, which would be executed again.
    After(String),
    /// It is a handler: they are executed at each end of the run.
    Handler,
}

/// A row of a run, as it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedRow {
    /// Its name.
    pub name: String,
    /// Its state.
    pub status: JobStatus,
    /// Whether its failure does not matter to the run.
    pub allow_failure: bool,
    /// Of an item: the name of its group.
    pub group: Option<String>,
}

/// The jobs that a retry would execute again, in the order of the definition. `named` is the job of a retry from a job on;
/// without it, what failed is executed again.
#[must_use]
pub fn preview(
    after: &Workflow,
    changes: &DefinitionChanges,
    rows: &[EndedRow],
    named: Option<&str>,
) -> Vec<PreviewedJob> {
    let mut reasons = roots(after, changes, rows, named);
    // Few rounds: the parents of a job are nearly always before it.
    loop {
        let found: Vec<(String, RetryReason)> = after
            .jobs
            .iter()
            .filter(|job| job.handler.is_none() && !reasons.contains_key(job.name.as_str()))
            .filter_map(|job| {
                let parents = job.needs.iter().map(|index| after.jobs[*index].name.as_str());
                let parent = parents.into_iter().find(|parent| reasons.contains_key(*parent))?;
                Some((job.name.clone(), RetryReason::After(parent.to_owned())))
            })
            .collect();
        if found.is_empty() {
            break;
        }
        reasons.extend(found);
    }
    let handlers = after.jobs.iter().filter(|job| job.handler.is_some());
    reasons.extend(handlers.map(|job| (job.name.clone(), RetryReason::Handler)));
    let of_job = |name: &str| reasons.get(name).cloned();
    after
        .jobs
        .iter()
        .filter_map(|job| Some(PreviewedJob { name: job.name.clone(), reason: of_job(&job.name)? }))
        .collect()
}

/// The jobs that are executed again for a reason of their own.
fn roots(
    after: &Workflow,
    changes: &DefinitionChanges,
    rows: &[EndedRow],
    named: Option<&str>,
) -> HashMap<String, RetryReason> {
    let may_fail: HashMap<&str, bool> =
        after.jobs.iter().map(|job| (job.name.as_str(), job.allow_failure)).collect();
    let mut reasons = HashMap::new();
    if named.is_none() {
        for row in rows {
            let job = row.group.as_deref().unwrap_or(&row.name);
            let is_allowed = row.allow_failure && may_fail.get(job).copied().unwrap_or(true);
            match (row.status, &row.group) {
                (JobStatus::Failed, _) if is_allowed => {}
                (JobStatus::Failed | JobStatus::Cancelled, None) => {
                    reasons.entry(job.to_owned()).or_insert(RetryReason::Ended(row.status));
                }
                (JobStatus::Failed | JobStatus::Cancelled, Some(_group)) => add_item(&mut reasons, job),
                (
                    JobStatus::Pending
                    | JobStatus::Blocked
                    | JobStatus::Scheduled
                    | JobStatus::Waiting
                    | JobStatus::Running
                    | JobStatus::Successful
                    | JobStatus::Skipped,
                    _,
                ) => {}
            }
        }
    }
    reasons.extend(changes.changed.iter().map(|name| (name.clone(), RetryReason::Changed)));
    reasons.extend(changes.added.iter().map(|name| (name.clone(), RetryReason::Added)));
    reasons.extend(named.map(|name| (name.to_owned(), RetryReason::Named)));
    reasons.retain(|name, _reason| may_fail.contains_key(name.as_str()));
    reasons
}

/// Counts an item of a group. That the group failed because of its items is no reason of its own.
fn add_item(reasons: &mut HashMap<String, RetryReason>, group: &str) {
    let items = match reasons.get(group) {
        Some(RetryReason::Items(items)) => items + 1,
        Some(
            RetryReason::Ended(_)
            | RetryReason::Changed
            | RetryReason::Added
            | RetryReason::Named
            | RetryReason::After(_)
            | RetryReason::Handler,
        )
        | None => 1,
    };
    reasons.insert(group.to_owned(), RetryReason::Items(items));
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use windlass_workflow::{Source, parse};

    const FILE: &str = "[jobs.a]\nrun = 'a'\n[jobs.b]\nrun = 'b'\nneeds = ['a']\n[jobs.c]\nrun = 'c'\nneeds = ['b']\n\
                        [jobs.d]\nrun = 'd'\n[jobs.e]\nrun = 'e'\nallow_failure = true\n[on_failure.tell]\nrun = 't'\n";

    fn workflow(text: &str) -> Workflow {
        parse(&Source::new("w.toml", text.into()).unwrap()).unwrap()
    }

    fn row(name: &str, status: JobStatus) -> EndedRow {
        EndedRow { name: name.to_owned(), status, allow_failure: name == "e", group: None }
    }

    fn said(after: &str, rows: &[EndedRow], named: Option<&str>) -> Vec<String> {
        let (before, after) = (workflow(FILE), workflow(after));
        let changes = DefinitionChanges::between(&before, &after);
        preview(&after, &changes, rows, named)
            .iter()
            .map(|job| format!("{} {:?}", job.name, job.reason))
            .collect()
    }

    #[test]
    fn what_failed_and_all_after_it_runs_again() {
        use JobStatus::{Cancelled, Failed, Skipped, Successful};
        let rows = [
            row("a", Successful),
            row("b", Failed),
            row("c", Skipped),
            row("d", Cancelled),
            row("e", Failed),
        ];
        let failed = ["b Ended(Failed)", "c After(\"b\")", "d Ended(Cancelled)", "tell Handler"];
        assert_eq!(said(FILE, &rows, None), failed);
        assert_eq!(said(FILE, &rows, Some("c")), ["c Named", "tell Handler"]);
        let strict = FILE.replace("allow_failure = true\n", "");
        assert!(said(&strict, &rows, None).contains(&"e Ended(Failed)".to_owned()));
    }

    #[test]
    fn so_does_what_the_next_definition_changes() {
        let rows = ["a", "b", "c", "d", "e"].map(|name| row(name, JobStatus::Successful));
        let after = FILE.replace("run = 'd'", "run = 'other'") + "[jobs.f]\nrun = 'f'\nneeds = ['d']\n";
        assert_eq!(said(&after, &rows, None), ["d Changed", "f Added", "tell Handler"]);
    }

    #[test]
    fn of_a_group_the_failed_items_run_again() {
        let item = |name: &str, status| EndedRow { group: Some("b".to_owned()), ..row(name, status) };
        let rows = [
            row("b", JobStatus::Failed),
            item("b[0]", JobStatus::Failed),
            item("b[1]", JobStatus::Successful),
            item("b[2]", JobStatus::Cancelled),
        ];
        assert_eq!(said(FILE, &rows, None), ["b Items(2)", "c After(\"b\")", "tell Handler"]);
    }
}
