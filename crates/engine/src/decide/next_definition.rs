//! What a run does with another definition than the one that it has: which of its jobs differ, which are executed again, and
//! whether its rows fit. Pure.

use std::collections::{BTreeSet, HashMap, HashSet};

use windlass_workflow::model::Retry;
use windlass_workflow::{Action, Job, OnInterrupt, Workflow};

use crate::status::JobStatus;

/// How many jobs a refusal names.
const NAMED_MAX: usize = 8;

/// How the jobs of two definitions differ, by their names, in the order of the definitions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DefinitionChanges {
    /// Jobs that only the next definition has.
    pub added: Vec<String>,
    /// Jobs that only the earlier definition has.
    pub removed: Vec<String>,
    /// Jobs that do something else, or after other jobs, or under other conditions.
    pub changed: Vec<String>,
    /// Jobs that do the same in another way: retries, timeouts, queue, priority, limits, a description.
    pub settings: Vec<String>,
    /// Whether anything differs that is not of a job: the timeout of the run, its params, tags, outputs.
    pub others: bool,
}

impl DefinitionChanges {
    /// Compares a definition with the next one. Schedules and triggers do not count: they mean nothing to a run.
    #[must_use]
    pub fn between(before: &Workflow, after: &Workflow) -> DefinitionChanges {
        let earlier: HashMap<&str, &Job> = by_name(before);
        let later = by_name(after);
        let mut changes = DefinitionChanges::default();
        for job in &after.jobs {
            let name = job.name.clone();
            match earlier.get(name.as_str()) {
                None => changes.added.push(name),
                Some(old) if work(before, old) != work(after, job) => changes.changed.push(name),
                Some(old) if settings(before, old) != settings(after, job) => changes.settings.push(name),
                Some(_same) => {}
            }
        }
        let removed = before.jobs.iter().filter(|job| !later.contains_key(job.name.as_str()));
        changes.removed = removed.map(|job| job.name.clone()).collect();
        changes.others = without_jobs(before) != without_jobs(after);
        changes
    }

    /// How many jobs differ.
    #[must_use]
    pub fn jobs(&self) -> usize {
        self.added.len() + self.removed.len() + self.changed.len() + self.settings.len()
    }

    /// Whether nothing differs that means something to a run.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.jobs() == 0 && !self.others
    }
}

fn by_name(workflow: &Workflow) -> HashMap<&str, &Job> {
    workflow.jobs.iter().map(|job| (job.name.as_str(), job)).collect()
}

/// The definition without its jobs, and without what means nothing to a run.
fn without_jobs(workflow: &Workflow) -> Workflow {
    Workflow {
        description: None,
        schedules: Vec::new(),
        triggers: Vec::new(),
        workflows: Vec::new(),
        jobs: Vec::new(),
        secrets: Vec::new(),
        ..workflow.clone()
    }
}

/// What a job does: the job without settings, with the names of the jobs before it and the workflow that it calls.
fn work(workflow: &Workflow, job: &Job) -> (Job, BTreeSet<String>, BTreeSet<String>, Option<Workflow>) {
    let names = |indices: &[usize]| indices.iter().map(|index| workflow.jobs[*index].name.clone()).collect();
    let (needs, uses) = (names(&job.needs), names(&job.uses));
    let mut action = job.action.clone();
    let mut called = None;
    match &mut action {
        Action::Call(call) => {
            called = call.called.take().and_then(|index| workflow.called(index));
        }
        // The environment of the workflow is a part of each job that is a process, as far as the job has no value of its own.
        Action::Shell(shell) => {
            let own = std::mem::take(&mut shell.env);
            shell.env = workflow.env.clone().into_iter().chain(own).collect();
        }
        Action::Http(_) | Action::Sleep(_) | Action::WaitFor(_) | Action::Approval(_) | Action::Signal(_) => {
        }
    }
    let work = Job {
        action,
        description: None,
        needs: Vec::new(),
        uses: Vec::new(),
        retry: Retry::default(),
        timeout_ms: None,
        deadline_ms: None,
        queue: String::new(),
        priority: 0,
        allow_failure: false,
        on_interrupt: OnInterrupt::default(),
        max_interruptions: 0,
        requires: Vec::new(),
        code_version: 0,
        concurrency: None,
        ..job.clone()
    };
    (work, needs, uses, called)
}

/// How a job is executed: the job, and where its secrets come from. What it does is compared before.
fn settings(workflow: &Workflow, job: &Job) -> (Job, String) {
    let secrets = workflow.secrets.iter().filter(|secret| job.secrets.contains(&secret.name));
    let secrets: Vec<_> = secrets.collect();
    let job = Job { needs: Vec::new(), uses: Vec::new(), action: Action::nothing(), ..job.clone() };
    (job, format!("{secrets:?}"))
}

/// A row of a job that is no item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobRow {
    /// Its id.
    pub id: i64,
    /// Its name.
    pub name: String,
    /// Its state.
    pub status: JobStatus,
    /// Whether it is a handler. Handlers run again with each retry.
    pub is_handler: bool,
    /// Whether it, or one of its items, has started a run.
    pub has_started_runs: bool,
}

/// What becomes of the rows of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Continuation {
    /// The jobs to insert, as indices into the next definition.
    pub inserted: Vec<usize>,
    /// The ids of the jobs to delete.
    pub deleted: Vec<i64>,
    /// The jobs whose rows are written anew: their ids, and their indices in the next definition.
    pub updated: Vec<(i64, usize)>,
    /// Those of them that are executed again even if they have succeeded.
    pub changed: Vec<i64>,
    /// Whether the jobs before some jobs are others.
    pub has_other_edges: bool,
}

/// Decides what becomes of the rows of a run. Its jobs have ended.
///
/// # Errors
/// Why the next definition does not fit the run, for people.
pub fn continuation(
    changes: &DefinitionChanges,
    after: &Workflow,
    rows: &[JobRow],
) -> Result<Continuation, String> {
    let removed: HashSet<&str> = changes.removed.iter().map(String::as_str).collect();
    refuse_lost_work(&removed, rows)?;
    let ids: HashMap<&str, i64> = rows.iter().map(|row| (row.name.as_str(), row.id)).collect();
    let set = |names: &[String]| names.iter().cloned().collect::<HashSet<String>>();
    let (changed, settings) = (set(&changes.changed), set(&changes.settings));
    let mut continuation = Continuation {
        deleted: rows.iter().filter(|row| removed.contains(row.name.as_str())).map(|row| row.id).collect(),
        has_other_edges: !(changes.added.is_empty() && removed.is_empty() && changed.is_empty()),
        ..Continuation::default()
    };
    for (index, job) in after.jobs.iter().enumerate() {
        let Some(id) = ids.get(job.name.as_str()).copied() else {
            continuation.inserted.push(index);
            continue;
        };
        // A call names the workflow by its place in the definition.
        let is_call = matches!(job.action, Action::Call(_));
        if changed.contains(&job.name) || settings.contains(&job.name) || is_call {
            continuation.updated.push((id, index));
        }
        if changed.contains(&job.name) {
            continuation.changed.push(id);
        }
    }
    Ok(continuation)
}

/// A run keeps what its jobs did: a job that succeeded, or that has started runs, can't be taken out of it.
fn refuse_lost_work(removed: &HashSet<&str>, rows: &[JobRow]) -> Result<(), String> {
    let lost = |is_lost: fn(&JobRow) -> bool| -> Vec<String> {
        let lost = rows.iter().filter(|row| removed.contains(row.name.as_str()) && is_lost(row));
        lost.map(|row| format!("`{}`", row.name)).collect()
    };
    let is_done = |row: &JobRow| row.status == JobStatus::Successful && !row.is_handler;
    let cases = [
        (lost(is_done), "succeeded", "a run keeps what its jobs did"),
        (lost(|row| row.has_started_runs), "started runs", "a run keeps the runs that its jobs started"),
    ];
    match cases.into_iter().find(|(names, _did, _why)| !names.is_empty()) {
        None => Ok(()),
        Some((names, did, why)) => {
            let jobs = if names.len() == 1 { "job" } else { "jobs" };
            let shown = names[..names.len().min(NAMED_MAX)].join(", ");
            let more = if names.len() > NAMED_MAX { ", …" } else { "" };
            Err(format!(
                "{jobs} {shown}{more} {did}, and the new definition does not have {}: {why}; put {} back, or start \
                 a new run",
                if names.len() == 1 { "it" } else { "them" },
                if names.len() == 1 { "it" } else { "them" },
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use windlass_workflow::{Source, parse};

    const BASE: &str = "[jobs.a]\nrun = 'x'\n[jobs.b]\nrun = 'y'\nneeds = ['a']\n[jobs.c]\nworkflow = 'sub'\nneeds = ['b']\n\
                        [workflows.sub.jobs.z]\nrun = 'z'\n[on_failure.tell]\nrun = 't'\n";

    fn workflow(text: &str) -> Workflow {
        parse(&Source::new("w.toml", text.into()).unwrap()).unwrap()
    }

    fn changes(after: &str) -> DefinitionChanges {
        DefinitionChanges::between(&workflow(BASE), &workflow(after))
    }

    fn row(id: i64, name: &str, status: JobStatus) -> JobRow {
        JobRow { id, name: name.to_owned(), status, is_handler: false, has_started_runs: false }
    }

    #[test]
    fn what_a_job_does_is_told_from_how_it_is_executed() {
        let cases = [
            (BASE.replace("'y'", "'y2'"), "changed b"),
            (BASE.replace("needs = ['a']", ""), "changed b"),
            (BASE.replace("'y'", "'y'\nif = '1 == 1'"), "changed b"),
            (BASE.replace("'y'", "'y'\nfor_each = ['1']"), "changed b"),
            (BASE.replace("'z'", "'z2'"), "changed c"),
            (BASE.replace("'t'", "'t2'"), "changed tell"),
            (BASE.replace("'y'", "'y'\ntimeout = '1h'"), "settings b"),
            (
                BASE.replace("'y'", "'y'\nretry = { max_attempts = 3 }\nqueue = 'slow'\ndescription = 'd'"),
                "settings b",
            ),
            (format!("{BASE}[jobs.d]\nrun = 'd'\n"), "added d"),
            (
                BASE.replace("[jobs.b]\nrun = 'y'\nneeds = ['a']\n", "").replace("['b']", "[]"),
                "removed b, changed c",
            ),
            // A call is no process, and a job that has the variable itself has the same environment.
            (
                format!("env = {{ X = '1' }}\n{}", BASE.replace("'x'", "'x'\nenv = { X = '2' }")),
                "changed a b tell, others",
            ),
            (format!("timeout = '1h'\n{BASE}"), "others"),
            (format!("description = 'd'\nschedules = [{{ cron = '@daily' }}]\n{BASE}"), ""),
        ];
        for (after, expected) in cases {
            let found = changes(&after);
            let lists = [
                ("added", &found.added),
                ("removed", &found.removed),
                ("changed", &found.changed),
                ("settings", &found.settings),
            ];
            let mut said: Vec<String> = lists
                .iter()
                .filter(|(_kind, names)| !names.is_empty())
                .map(|(kind, names)| format!("{kind} {}", names.join(" ")))
                .collect();
            said.extend(found.others.then(|| "others".to_owned()));
            assert_eq!(said.join(", "), expected, "{after}");
            assert_eq!(found.is_empty(), expected.is_empty());
        }
    }

    #[test]
    fn an_environment_that_is_the_same_in_the_end_is_no_change() {
        let own = "[jobs.a]\nrun = 'x'\nenv = { X = '1' }\n[jobs.b]\nrun = 'y'\nenv = { X = '2' }\n[jobs.c]\nsleep = '1s'\n";
        let shared = |value: &str| {
            let jobs =
                "[jobs.a]\nrun = 'x'\n[jobs.b]\nrun = 'y'\nenv = { X = '2' }\n[jobs.c]\nsleep = '1s'\n";
            workflow(&format!("env = {{ X = '{value}' }}\n{jobs}"))
        };
        let changed = |before: &Workflow, after: &Workflow| DefinitionChanges::between(before, after).changed;
        assert!(changed(&workflow(own), &shared("1")).is_empty(), "it moved to the workflow");
        assert_eq!(
            changed(&shared("1"), &shared("3")),
            ["a"],
            "b has a value of its own, and c is no process"
        );
    }

    #[test]
    fn a_job_that_only_moved_has_not_changed() {
        let moved = "[jobs.c]\nworkflow = 'sub'\nneeds = ['b']\n[jobs.b]\nrun = 'y'\nneeds = ['a']\n[jobs.a]\nrun = 'x'\n\
                     [workflows.first.jobs.f]\nrun = 'f'\n[workflows.sub.jobs.z]\nrun = 'z'\n[on_failure.tell]\nrun = 't'\n";
        assert_eq!(changes(moved), DefinitionChanges::default());
    }

    #[test]
    fn rows_are_inserted_deleted_and_written_anew() {
        use JobStatus::{Failed, Skipped, Successful};
        let after = format!(
            "{}[jobs.d]\nrun = 'd'\n",
            BASE.replace("'x'", "'x2'").replace("[on_failure.tell]\nrun = 't'\n", "")
        );
        let handler = JobRow { is_handler: true, ..row(4, "tell", Successful) };
        let rows = [row(1, "a", Successful), row(2, "b", Failed), row(3, "c", Skipped), handler];
        let found = continuation(&changes(&after), &workflow(&after), &rows).unwrap();
        let expected = Continuation {
            inserted: vec![3],
            deleted: vec![4],
            updated: vec![(1, 0), (3, 2)],
            changed: vec![1],
            has_other_edges: true,
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn what_was_done_is_not_taken_out_of_a_run() {
        let after = BASE.replace("[jobs.b]\nrun = 'y'\nneeds = ['a']\n", "").replace("['b']", "[]");
        let refused = |row| continuation(&changes(&after), &workflow(&after), &[row]).unwrap_err();
        let reason = refused(row(2, "b", JobStatus::Successful));
        assert!(reason.contains("job `b` succeeded, and the new definition does not have it"), "{reason}");
        let started = JobRow { has_started_runs: true, ..row(2, "b", JobStatus::Failed) };
        assert!(refused(started).contains("job `b` started runs"));
    }
}
