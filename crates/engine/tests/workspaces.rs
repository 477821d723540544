//! Workspaces: when they are kept, removed and made anew.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use support::{Bench, graph, success};
use windlass_engine::store::{NewRegistration, Prune, RetrySelection, RunFolder, WorkspaceState};
use windlass_engine::{RunFiles, Store};
use windlass_workflow::Workflow;
use windlass_workflow::model::KeepWorkspace::{self, Always, Never, OnFailure};

/// A bench whose store knows a folder for files.
struct Files {
    bench: Bench,
    store: Store,
    files: RunFiles,
}

impl Files {
    fn new() -> Files {
        let bench = Bench::new();
        let files = RunFiles::at(bench.folder.path().join("files"));
        Files { store: bench.store.clone().with_files(files.clone()), bench, files }
    }

    /// A run of two jobs, one after the other, whose workspace is made. The second job fails or succeeds, if it is not left
    /// out.
    fn run(&self, keep: KeepWorkspace, ends: &[bool]) -> i64 {
        let workflow = Workflow { workspace: Some(keep), ..graph(vec![vec![], vec![0]]) };
        let run_id = support::submit(&self.store, workflow);
        std::fs::write(self.files.make_workspace(run_id).unwrap().join("a"), "a").unwrap();
        self.end(ends);
        run_id
    }

    fn end(&self, ends: &[bool]) {
        let worker = self.bench.worker();
        for is_success in ends {
            let job = self.bench.claim(worker, 1).remove(0);
            let outcome = if *is_success { success() } else { support::failure() };
            self.bench.finish(worker, &job, outcome);
        }
    }

    fn settle(&self) {
        let settled = self.store.for_scheduler().settle_workspaces().unwrap();
        assert_eq!(settled.failures, Vec::<String>::new());
    }

    fn state(&self, run_id: i64) -> (WorkspaceState, bool) {
        let state = self.store.runs().workspace(run_id).unwrap().unwrap().state;
        (state, self.files.workspace(run_id).join("a").exists())
    }
}

#[test]
fn a_workspace_is_kept_or_removed_when_its_run_is_over() {
    let files = Files::new();
    let (kept, removed) = ((WorkspaceState::Kept, true), (WorkspaceState::Removed, false));
    for (keep, is_success, expected) in [
        (Never, true, removed),
        (Never, false, removed),
        (OnFailure, true, removed),
        (OnFailure, false, kept),
        (Always, true, kept),
        (Always, false, kept),
    ] {
        let run_id = files.run(keep, &[true]);
        files.settle();
        assert_eq!(files.state(run_id), (WorkspaceState::Open, true), "it is unfinished");
        files.end(&[is_success]);
        assert_eq!(files.state(run_id), (WorkspaceState::Open, true), "nobody looked");
        files.settle();
        assert_eq!(files.state(run_id), expected, "{keep:?}, {is_success}");
        files.settle();
        assert_eq!(files.state(run_id), expected, "once");
    }
    files.bench.assert_sound();
}

#[test]
fn a_run_without_its_workspace_is_retried_only_if_all_its_jobs_run_again() {
    let files = Files::new();
    let removed = files.run(Never, &[true, false]);
    files.settle();
    let refused = files.store.runs().retry(removed, RetrySelection::Failed).unwrap_err();
    assert!(refused.to_string().contains("workspace was removed when it ended, and job `j0`"), "{refused}");
    assert_eq!(files.state(removed), (WorkspaceState::Removed, false));
    files.store.runs().retry(removed, RetrySelection::From("j0".to_owned())).unwrap();
    assert_eq!(files.state(removed), (WorkspaceState::Open, false));
    std::fs::write(files.files.make_workspace(removed).unwrap().join("a"), "a").unwrap();
    files.settle();
    assert_eq!(files.state(removed), (WorkspaceState::Open, true), "it is unfinished again");
    files.end(&[true, true]);
    files.settle();
    assert_eq!(files.state(removed), (WorkspaceState::Removed, false));
    let kept = files.run(OnFailure, &[true, false]);
    files.settle();
    files.store.runs().retry(kept, RetrySelection::Failed).unwrap();
    assert_eq!(files.state(kept), (WorkspaceState::Open, true));
    files.end(&[true]);
    files.settle();
    assert_eq!(files.state(kept), (WorkspaceState::Removed, false));
    files.bench.assert_sound();
}

#[test]
fn a_retry_before_anybody_looked_keeps_the_workspace() {
    let files = Files::new();
    let run_id = files.run(Never, &[true, false]);
    files.store.runs().retry(run_id, RetrySelection::Failed).unwrap();
    files.settle();
    assert_eq!(files.state(run_id), (WorkspaceState::Open, true));
}

#[test]
fn workspaces_that_no_row_names_are_removed() {
    let files = Files::new();
    let (open, kept, removed) =
        (files.run(Always, &[]), files.run(Always, &[true, true]), files.run(Never, &[true, true]));
    files.end(&[true, true]);
    files.settle();
    files.files.make_workspace(removed).unwrap();
    files.files.make_workspace(4_711).unwrap();
    let running = files.run(Never, &[]);
    assert_eq!(files.store.for_scheduler().discard_unknown_workspaces().unwrap(), Vec::<String>::new());
    let mut left = files.files.workspaces().unwrap();
    left.sort_unstable();
    assert_eq!(left, [open, kept, running]);
    let prune = Prune { before_ms: Some(i64::MAX), keep_runs: None, ..Prune::default() };
    files.store.for_scheduler().prune_step(prune).unwrap();
    files.store.for_scheduler().discard_unknown_workspaces().unwrap();
    assert_eq!(files.files.workspaces().unwrap(), [running], "with the runs that were deleted");
}

#[test]
fn a_store_without_a_folder_refuses_the_workflow_and_a_job_learns_why() {
    let files = Files::new();
    let workflow = Workflow { workspace: Some(Never), ..graph(vec![vec![]]) };
    let new = windlass_engine::store::NewRun {
        workflow: workflow.clone(),
        params: Default::default(),
        dir: None,
        run_key: None,
        occasion: None,
    };
    let refused = files.bench.store.runs().submit(new).unwrap_err().to_string();
    assert!(refused.contains("set `dir` under [files] in windlass.toml"), "{refused}");
    let registration = NewRegistration { workflow: workflow.clone(), file: None, dir: None };
    let refused = files.bench.store.registrations().apply(registration).unwrap_err().to_string();
    assert!(refused.contains("register workflow `graph`: `workspace` needs a folder"), "{refused}");
    let run_id = support::submit(&files.store, workflow);
    assert_eq!(files.bench.store.runs().context(run_id).unwrap().workspace, RunFolder::Unknown);
    let path = files.files.workspace(run_id).to_str().unwrap().to_owned();
    assert_eq!(files.store.runs().context(run_id).unwrap().workspace, RunFolder::At(path));
    let without = files.bench.submit(graph(vec![vec![]]));
    assert_eq!(files.store.runs().context(without).unwrap().workspace, RunFolder::None);
}
