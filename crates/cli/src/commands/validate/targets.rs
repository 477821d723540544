//! What is checked: files, the files of folders, standard input.

use std::path::{Path, PathBuf};

use crate::error::Failure;
use crate::read_file::PathOrigin;
use crate::submission::is_standard_input;
use crate::workflow_files::{self, FILES_MAX};
use windlass_workflow::STANDARD_INPUT;

/// One thing to check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Target {
    StandardInput,
    File { path: PathBuf, origin: PathOrigin },
}

impl Target {
    /// What messages call it.
    pub(super) fn title(&self) -> String {
        match self {
            Target::StandardInput => STANDARD_INPUT.to_owned(),
            Target::File { path, .. } => path.display().to_string(),
        }
    }

    /// The path, if it was found in a folder.
    pub(super) fn found(&self) -> Option<&Path> {
        match self {
            Target::File { path, origin: PathOrigin::Found } => Some(path),
            Target::File { origin: PathOrigin::Named, .. } | Target::StandardInput => None,
        }
    }
}

/// The files of folders are those that `apply` and `serve` find.
pub(super) fn targets(paths: &[PathBuf]) -> Result<Vec<Target>, Failure> {
    let mut targets = Vec::new();
    for path in paths {
        if is_standard_input(path) {
            // It can be read only once.
            if !targets.contains(&Target::StandardInput) {
                targets.push(Target::StandardInput);
            }
        } else if path.is_dir() {
            let files = workflow_files::files_below(path)?;
            targets.extend(files.into_iter().map(|path| Target::File { path, origin: PathOrigin::Found }));
        } else {
            targets.push(Target::File { path: path.clone(), origin: PathOrigin::Named });
        }
        if targets.len() > FILES_MAX {
            return Err(workflow_files::too_many());
        }
    }
    Ok(targets)
}
