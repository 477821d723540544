//! The workspaces of runs: which runs have one, and whether it is kept when the run is over.
//!
//! A row is made with its run. When the run is over, the folder is kept or removed, once. The transaction that decides this
//! holds the lock of the run's row and renames the folder, so that nobody retries the run meanwhile.

use std::io;

use windlass_db::error::{Error, Result};
use windlass_db::{Connection, all, first};
use windlass_workflow::model::KeepWorkspace;

use crate::files::RunFiles;
use crate::status::RunStatus;
use crate::store::evidence::Evidence;
use crate::store::{ForScheduler, Runs, json_ids};

/// How many workspaces one call decides about.
const RUNS_MAX: i64 = 100;

/// Whether the workspace of a run is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkspaceState {
    /// The run is unfinished, or nobody has looked since it ended.
    Open,
    /// The run is over, and the workspace stays until the run is deleted.
    Kept,
    /// The run is over, and the workspace was removed.
    Removed,
}

impl WorkspaceState {
    /// The word in the tables and in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            WorkspaceState::Open => "open",
            WorkspaceState::Kept => "kept",
            WorkspaceState::Removed => "removed",
        }
    }

    fn parse(text: &str) -> Option<WorkspaceState> {
        [WorkspaceState::Open, WorkspaceState::Kept, WorkspaceState::Removed]
            .into_iter()
            .find(|state| state.as_str() == text)
    }
}

/// The workspace of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workspace {
    /// Whether it is there.
    pub state: WorkspaceState,
    /// Its path, if this process knows the folder for files.
    pub path: Option<String>,
}

/// What was decided about the workspaces of runs that are over.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SettledWorkspaces {
    /// How many runs were looked at.
    pub runs: i64,
    /// Why a workspace could not be removed. Another call tries it again.
    pub failures: Vec<String>,
}

impl Runs<'_> {
    /// The workspace of a run, if it has one.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn workspace(&self, run_id: i64) -> Result<Option<Workspace>> {
        let state = self.store.read(|connection| state(connection, run_id))?;
        let path = self.store.files().map(|files| files.workspace(run_id).to_string_lossy().into_owned());
        Ok(state.map(|state| Workspace { state, path }))
    }
}

impl ForScheduler<'_> {
    /// Keeps or removes the workspaces of runs that are over, a limited number of them. What is removed is only renamed: see
    /// [`RunFiles::remove_discarded`].
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn settle_workspaces(&self) -> Result<SettledWorkspaces> {
        let Some(files) = self.store.files().filter(|files| files.exists()) else {
            return Ok(SettledWorkspaces::default());
        };
        let over = self.store.read(|connection| {
            all(
                connection,
                "SELECT workspaces.run_id FROM workspaces
                 JOIN runs ON {by runs.id = workspaces.run_id}
                 WHERE workspaces.state = 'open' AND {guard runs.finished_at IS NOT NULL}
                 ORDER BY workspaces.run_id LIMIT $1",
                &[RUNS_MAX.into()],
                |row| row.integer(0),
            )
        })?;
        let mut settled = SettledWorkspaces::default();
        for run_id in over {
            let files = files.clone();
            let done = self.store.write("settle a workspace", Evidence::Repeat, move |connection| {
                settle(connection, run_id, &files)
            })?;
            settled.runs += 1;
            if let Err(reason) = done {
                settled.failures.push(format!("the workspace of run {run_id}: {reason}"));
            }
        }
        Ok(settled)
    }

    /// Removes workspaces of runs that do not exist, or whose workspace was removed before: what a worker without a lease has
    /// made, or what a restored database does not know.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn discard_unknown_workspaces(&self) -> Result<Vec<String>> {
        let Some(files) = self.store.files() else { return Ok(Vec::new()) };
        // The folders first: each was made after its row.
        let found = match files.workspaces() {
            Ok(found) if found.is_empty() => return Ok(Vec::new()),
            Ok(found) => found,
            Err(error) => return Ok(vec![format!("the folder {}: {error}", files.root().display())]),
        };
        let known = self.store.read(|connection| {
            all(
                connection,
                "SELECT run_id FROM workspaces WHERE run_id {in $1} AND {guard state <> 'removed'}",
                &[(&json_ids(&found)).into()],
                |row| row.integer(0),
            )
        })?;
        let unknown = found.into_iter().filter(|run_id| !known.contains(run_id));
        let discard = |run_id: i64| files.discard_workspace(run_id).err().map(|error| (run_id, error));
        Ok(unknown
            .filter_map(discard)
            .map(|(run_id, error)| format!("the workspace of run {run_id}: {error}"))
            .collect())
    }
}

/// Inserts the row of a run's workspace, if it has one.
pub(super) fn insert(
    connection: &mut dyn Connection,
    run_id: i64,
    keep: Option<KeepWorkspace>,
) -> Result<()> {
    let Some(keep) = keep else { return Ok(()) };
    connection.execute(
        "INSERT INTO workspaces (run_id, keep) VALUES ($1, $2)",
        &[run_id.into(), keep.as_str().into()],
    )?;
    Ok(())
}

fn state(connection: &mut dyn Connection, run_id: i64) -> Result<Option<WorkspaceState>> {
    first(connection, "SELECT state FROM workspaces WHERE run_id = $1", &[run_id.into()], |row| {
        row.parsed(0, WorkspaceState::parse)
    })
}

/// Decides about the workspace of one run. The inner error is that of the file system.
fn settle(
    connection: &mut dyn Connection,
    run_id: i64,
    files: &RunFiles,
) -> Result<std::result::Result<(), String>> {
    let status = first(
        connection,
        "SELECT status FROM runs WHERE id = $1 AND finished_at IS NOT NULL {wait}",
        &[run_id.into()],
        |row| row.parsed(0, RunStatus::parse),
    )?;
    // It was retried or deleted.
    let Some(status) = status else { return Ok(Ok(())) };
    let keep = first(
        connection,
        "SELECT keep FROM workspaces WHERE run_id = $1 AND state = 'open'",
        &[run_id.into()],
        |row| row.text(0),
    )?;
    let Some(keep) = keep else { return Ok(Ok(())) };
    let state = state_after(&keep, status);
    if state == WorkspaceState::Removed
        && let Err(error) = discard(files, run_id)
    {
        return Ok(Err(error.to_string()));
    }
    connection.execute(
        "UPDATE workspaces SET state = $2 WHERE run_id = $1 AND state = 'open'",
        &[run_id.into(), state.as_str().into()],
    )?;
    Ok(Ok(()))
}

fn discard(files: &RunFiles, run_id: i64) -> io::Result<()> {
    files.discard_workspace(run_id)
}

/// What becomes of the workspace of a run that is over.
fn state_after(keep: &str, status: RunStatus) -> WorkspaceState {
    let is_kept = keep == KeepWorkspace::Always.as_str()
        || (keep == KeepWorkspace::OnFailure.as_str() && status != RunStatus::Successful);
    if is_kept { WorkspaceState::Kept } else { WorkspaceState::Removed }
}

/// Opens the workspace of a run that is retried. `reset` are the jobs that are executed again. If the workspace was removed,
/// no job may be left that could have put files there.
pub(super) fn reopen(connection: &mut dyn Connection, run_id: i64, reset: &[i64]) -> Result<()> {
    let Some(state) = state(connection, run_id)? else { return Ok(()) };
    if state == WorkspaceState::Removed {
        let other = first(
            connection,
            "SELECT name FROM jobs
             WHERE run_id = $1 AND phase = 0 AND attempt > 0 AND NOT (id {in $2}) ORDER BY id LIMIT 1",
            &[run_id.into(), (&json_ids(reset)).into()],
            |row| row.lossy_text(0),
        )?;
        if let Some(name) = other {
            let name = name.unwrap_or_default();
            let reason = format!(
                "its workspace was removed when it ended, and job `{name}`, which would not run again, may have put files \
                 there; `windlass rerun {run_id}` runs all jobs in a new run, and `workspace = {{ keep = \"on_failure\" }}` \
                 keeps the workspace of a run that fails"
            );
            return Err(Error::conflict(format!("retry run {run_id}"), reason));
        }
    }
    connection.execute("UPDATE workspaces SET state = 'open' WHERE run_id = $1", &[run_id.into()])?;
    Ok(())
}
