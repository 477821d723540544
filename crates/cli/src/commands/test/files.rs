//! Finds test files and their workflows, and reads them.

use std::path::{Path, PathBuf};

use windlass_testing::TestFile;
use windlass_testing::file::{self, EXTENSION};
use windlass_workflow::{Colour, Source, Workflow, limits};

use super::registered;
use crate::arguments::OutputFormat;
use crate::error::Failure;
use crate::read_file::{self, PathOrigin};
use crate::submission::{self, LoadError, folder_of};

/// The endings of workflow files.
const WORKFLOW_EXTENSIONS: [&str; 4] = ["toml", "yaml", "yml", "json"];

/// A test file and its workflow.
pub(super) struct LoadedTest {
    pub(super) path: PathBuf,
    pub(super) file: TestFile,
    pub(super) workflow: Workflow,
    /// The folder of the workflow file.
    pub(super) folder: Option<String>,
}

/// Whether the file is a test file, by its name.
pub(crate) fn is_test_file(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(EXTENSION))
}

/// Checks a test file against its workflow.
pub(crate) fn check_test_file(path: &Path) -> Result<(), LoadError> {
    load(path).map(drop)
}

/// Reads all files. The errors of all of them are printed.
pub(super) fn load_all(paths: &[PathBuf], format: OutputFormat) -> Result<Vec<LoadedTest>, Failure> {
    let mut test_paths: Vec<PathBuf> = Vec::new();
    for path in paths {
        let test_path = if is_test_file(path) { path.clone() } else { path.with_extension(&EXTENSION[1..]) };
        if !test_paths.contains(&test_path) {
            test_paths.push(test_path);
        }
    }
    let mut tests = Vec::new();
    let (mut invalid, mut errors) = (0, Vec::new());
    for path in &test_paths {
        match load(path) {
            Ok(test) => tests.push(test),
            Err(error) => {
                match &error {
                    LoadError::Invalid(report) if format == OutputFormat::Text => {
                        crate::stderr::note(&report.render(Colour::Always));
                    }
                    LoadError::Unreadable(failure) | LoadError::Calls(failure) => {
                        failure.report(format);
                    }
                    LoadError::Invalid(_) => {}
                }
                errors.extend(error.failure().file_errors());
                invalid += 1;
            }
        }
    }
    match (invalid, test_paths.len()) {
        (0, _) => Ok(tests),
        (1, 1) => Err(Failure::InvalidFiles { message: None, errors }),
        (_, all) => Err(Failure::InvalidFiles {
            message: Some(format!("{invalid} of {all} files are invalid; no case was run")),
            errors,
        }),
    }
}

fn load(path: &Path) -> Result<LoadedTest, LoadError> {
    if !path.exists() {
        return Err(LoadError::Unreadable(Failure::File {
            message: format!("there is no test file {}", path.display()),
            help: "write it beside the workflow file; `windlass test --help` shows a case".to_owned(),
        }));
    }
    let workflow_path = workflow_of(path).map_err(LoadError::Unreadable)?;
    let mut workflow = submission::load(&workflow_path, PathOrigin::Named)?;
    registered::embed(&workflow_path, &mut workflow)?;
    let folder = folder_of(&workflow_path).map_err(LoadError::Unreadable)?;
    let bytes =
        read_file::read(path, limits::FILE_BYTES, PathOrigin::Named).map_err(LoadError::Unreadable)?;
    let file = Source::new(path.display().to_string(), bytes)
        .and_then(|source| file::read(&source, &workflow))
        .map_err(LoadError::Invalid)?;
    Ok(LoadedTest { path: path.to_owned(), file, workflow, folder: Some(folder) })
}

/// The workflow file of a test file.
fn workflow_of(path: &Path) -> Result<PathBuf, Failure> {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let stem = name.strip_suffix(EXTENSION).unwrap_or(&name);
    let candidates = WORKFLOW_EXTENSIONS.map(|extension| path.with_file_name(format!("{stem}.{extension}")));
    candidates.iter().find(|candidate| candidate.exists()).cloned().ok_or_else(|| Failure::File {
        message: format!("there is no workflow file for {}", path.display()),
        help: format!("a test file stands beside its workflow: {} beside {stem}.toml", name),
    })
}
