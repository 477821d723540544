//! Workflows that a tested workflow calls by registered names. A test has no database with registrations, so they are found in
//! the files that `apply` registers from the folder of the workflow.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use windlass_workflow::{Workflow, limits};

use crate::error::Failure;
use crate::read_file::PathOrigin;
use crate::submission::{self, LoadError, folder_of};
use crate::workflow_files;

/// Adds the workflows of the folder that are called by their names, and those that they call.
pub(super) fn embed(path: &Path, workflow: &mut Workflow) -> Result<(), LoadError> {
    let Some(first) = next_open(workflow) else { return Ok(()) };
    let folder = PathBuf::from(folder_of(path).map_err(LoadError::Unreadable)?);
    let files = workflow_files::files_below(&folder).map_err(LoadError::Unreadable)?;
    let mut found: BTreeMap<String, Vec<(PathBuf, Workflow)>> = BTreeMap::new();
    for file in files {
        // A file with errors is reported by `validate`. It matters here only if it is the one that is called.
        if let Ok(loaded) = submission::load(&file, PathOrigin::Found) {
            found.entry(loaded.name.clone()).or_default().push((file, loaded));
        }
    }
    let mut next = Some(first);
    while let Some((job, name)) = next {
        let (file, called) = match found.get(&name).map(Vec::as_slice) {
            Some([(file, called)]) => (file, called.clone()),
            Some([(one, _), (other, _), ..]) => return Err(ambiguous(&name, one, other)),
            Some([]) | None => return Err(unknown(path, &job, &name, &folder)),
        };
        let dir = folder_of(file).map_err(LoadError::Unreadable)?;
        let index = workflow.add_called(called);
        for (_scope, call) in workflow.calls_mut() {
            if call.called.is_none() && call.workflow == name {
                call.called = Some(index);
                call.dir = Some(dir.clone());
            }
        }
        // The check of the definition refuses more.
        next = next_open(workflow).filter(|_open| workflow.workflows.len() <= limits::CALLED_WORKFLOWS);
    }
    Ok(())
}

/// A job that calls a workflow which is not in the list yet, and the name of this workflow.
fn next_open(workflow: &Workflow) -> Option<(String, String)> {
    let mut open = workflow.calls().filter(|(_job, call)| call.called.is_none());
    open.next().map(|(job, call)| (job.name.clone(), call.workflow.clone()))
}

fn unknown(path: &Path, job: &str, name: &str, folder: &Path) -> LoadError {
    LoadError::Calls(Failure::usage(
        format!(
            "{}: job `{job}` calls `{name}`, and no valid workflow file of {} has this name",
            path.display(),
            folder.display()
        ),
        "a test finds registered workflows in the files of the folder and below; `windlass validate FOLDER` shows \
         invalid ones",
    ))
}

fn ambiguous(name: &str, one: &Path, other: &Path) -> LoadError {
    LoadError::Calls(Failure::usage(
        format!("{} and {} both define the workflow `{name}`", one.display(), other.display()),
        "rename one of the workflows, or move one of the files out of the folder",
    ))
}
