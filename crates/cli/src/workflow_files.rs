//! Collects workflow files from files and folders on the command line. All of them are read and checked first,
//! so that every error is known before anything changes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use windlass_engine::store::NewRegistration;
use windlass_views::FileError;
use windlass_workflow::Workflow;

use crate::arguments::OutputFormat;
use crate::commands::test::is_test_file;
use crate::error::Failure;
use crate::read_file::PathOrigin;
use crate::submission;

/// The largest number of workflow files.
pub(crate) const FILES_MAX: usize = 10_000;
/// The deepest nesting of folders.
const DEPTH_MAX: usize = 16;
/// The configuration of `serve`. It may be in the folder of the workflows.
pub(crate) const CONFIG_FILE: &str = "windlass.toml";

/// A valid workflow file.
#[derive(Debug, Clone)]
pub(crate) struct WorkflowFile {
    /// The path as it was named, or below the named folder.
    pub(crate) path: PathBuf,
    /// The absolute path. Links are not resolved, because their targets may be replaced.
    pub(crate) absolute: String,
    /// The folder of `absolute`, where relative paths of the jobs start.
    pub(crate) dir: String,
    pub(crate) workflow: Workflow,
}

impl WorkflowFile {
    /// The registration for the store.
    pub(crate) fn registration(&self) -> NewRegistration {
        NewRegistration {
            workflow: self.workflow.clone(),
            file: Some(self.absolute.clone()),
            dir: Some(self.dir.clone()),
        }
    }
}

/// A file that cannot be used.
#[derive(Debug, Clone)]
pub(crate) struct InvalidFile {
    pub(crate) path: PathBuf,
    /// As [`WorkflowFile::absolute`], if it is known.
    pub(crate) absolute: Option<String>,
    /// The name of its workflow, if it is known.
    pub(crate) name: Option<String>,
    pub(crate) failure: Failure,
}

/// All files that were found.
#[derive(Debug, Clone, Default)]
pub(crate) struct Collection {
    /// In the order of the arguments. The files of a folder are in the order of their paths.
    pub(crate) valid: Vec<WorkflowFile>,
    pub(crate) invalid: Vec<InvalidFile>,
}

/// Reads and checks the files and the files of the folders. Files in folders that have nothing but tables for other files to
/// include are left out.
pub(crate) fn collect(paths: &[PathBuf]) -> Result<Collection, Failure> {
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            files.extend(files_below(path)?.into_iter().map(|path| (path, PathOrigin::Found)));
        } else if !is_test_file(path) {
            files.push((path.clone(), PathOrigin::Named));
        }
        if files.len() > FILES_MAX {
            return Err(too_many());
        }
    }
    let mut collection = Collection::default();
    for (path, origin) in files {
        match read(&path, origin) {
            Ok(file) => collection.valid.push(file),
            Err(_) if origin == PathOrigin::Found && submission::is_only_included(&path) => (),
            Err(invalid) => collection.invalid.push(*invalid),
        }
    }
    refuse_equal_names(&mut collection);
    Ok(collection)
}

/// Prints the errors of each file for people, and returns them for programs. An error that several files share is there
/// once.
pub(crate) fn report_failures(invalid: &[InvalidFile], format: OutputFormat) -> Vec<FileError> {
    let mut errors = Vec::new();
    for (index, file) in invalid.iter().enumerate() {
        if !invalid[..index].iter().any(|before| before.failure == file.failure) {
            errors.extend(file.failure.report(format));
        }
    }
    errors
}

/// The files below a folder that may be workflows, in the order of their paths: `*.toml`, `*.json`, `*.yaml` and `*.yml`, without hidden files and
/// the configuration.
pub(crate) fn files_below(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    walk(folder, &mut |path, kind| {
        if kind == EntryKind::WorkflowFile {
            files.push(path.to_owned());
        }
        if files.len() > FILES_MAX { Err(too_many()) } else { Ok(()) }
    })?;
    files.sort();
    Ok(files)
}

/// The folder itself and all folders below it that are not hidden.
pub(crate) fn folders_below(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut folders = vec![folder.to_owned()];
    walk(folder, &mut |path, kind| {
        if kind == EntryKind::Folder {
            folders.push(path.to_owned());
        }
        if folders.len() > FILES_MAX { Err(too_many()) } else { Ok(()) }
    })?;
    Ok(folders)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EntryKind {
    Folder,
    WorkflowFile,
}

fn walk(
    folder: &Path,
    visit: &mut dyn FnMut(&Path, EntryKind) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut waiting = vec![(folder.to_owned(), 0)];
    while let Some((folder, depth)) = waiting.pop() {
        let entries = match fs::read_dir(&folder) {
            // The folder was removed after its parent was read.
            Err(error) if depth > 0 && error.kind() == std::io::ErrorKind::NotFound => continue,
            entries => entries.map_err(|error| unreadable_folder(&folder, &error))?,
        };
        for entry in entries {
            let path = entry.map_err(|error| Failure::unreadable(&folder, &error))?.path();
            if is_hidden(&path) {
                continue;
            }
            // Links are followed, because the volumes of containers consist of links.
            if path.is_dir() {
                if depth + 1 > DEPTH_MAX {
                    return Err(too_deep(&path));
                }
                visit(&path, EntryKind::Folder)?;
                waiting.push((path, depth + 1));
            } else if is_workflow_file(&path) {
                visit(&path, EntryKind::WorkflowFile)?;
            }
        }
    }
    Ok(())
}

fn unreadable_folder(folder: &Path, error: &std::io::Error) -> Failure {
    let shown = folder.display();
    let (message, help) = if error.kind() == std::io::ErrorKind::NotFound {
        let help = format!("check the spelling, or create it: `mkdir -p {shown}`");
        (format!("the folder {shown} does not exist"), help)
    } else if error.kind() == std::io::ErrorKind::NotADirectory {
        let help = "name the folder of the file; `windlass apply FILE` registers a single file";
        (format!("{shown} is a file, not a folder"), help.to_owned())
    } else {
        return Failure::unreadable(folder, error);
    };
    Failure::File { message, help }
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'))
}

/// Whether the name of the file is one of a workflow file.
pub(crate) fn is_workflow_file(path: &Path) -> bool {
    if is_test_file(path) {
        return false;
    }
    let extension = path.extension().and_then(|extension| extension.to_str());
    let is_known = extension.is_some_and(|extension| matches!(extension, "toml" | "json" | "yaml" | "yml"));
    is_known && path.file_name().is_some_and(|name| name != CONFIG_FILE)
}

fn read(path: &Path, origin: PathOrigin) -> Result<WorkflowFile, Box<InvalidFile>> {
    let absolute = absolute(path);
    let invalid = |failure| {
        let absolute = absolute.as_ref().ok().map(|(absolute, _dir)| absolute.clone());
        Box::new(InvalidFile { path: path.to_owned(), absolute, name: None, failure })
    };
    let workflow = submission::load(path, origin).map_err(|error| invalid(error.failure()))?;
    match &absolute {
        Ok((absolute, dir)) => {
            Ok(WorkflowFile { path: path.to_owned(), absolute: absolute.clone(), dir: dir.clone(), workflow })
        }
        Err(failure) => Err(invalid(failure.clone())),
    }
}

/// The absolute path and its folder.
fn absolute(path: &Path) -> Result<(String, String), Failure> {
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        Some(_) | None => Path::new("."),
    };
    let folder = folder.canonicalize().map_err(|error| Failure::unreadable(path, &error))?;
    let absolute = path.file_name().map_or_else(|| folder.clone(), |name| folder.join(name));
    match (absolute.to_str(), folder.to_str()) {
        (Some(absolute), Some(folder)) => Ok((absolute.to_owned(), folder.to_owned())),
        (None, _) | (_, None) => Err(Failure::usage(
            format!("{} has a name that is not UTF-8", absolute.display()),
            "rename it, or copy the workflow to another folder",
        )),
    }
}

/// The files with the name of another file's workflow, by their index, in ascending order. It is unknown which one is meant.
pub(crate) fn equal_names(files: &[(&Path, &str)]) -> Vec<(usize, Failure)> {
    let mut by_name: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (index, (_path, name)) in files.iter().enumerate() {
        by_name.entry(name).or_default().push(index);
    }
    let mut refused: Vec<(usize, Failure)> = Vec::new();
    for (name, indices) in by_name.iter().filter(|(_name, indices)| indices.len() > 1) {
        let paths: Vec<String> = indices.iter().map(|index| files[*index].0.display().to_string()).collect();
        let all = if paths.len() == 2 { "both" } else { "all" };
        let failure = Failure::usage(
            format!("{} {all} define the workflow `{name}`", paths.join(" and ")),
            "give each workflow its own `name`, or remove one of the files",
        );
        refused.extend(indices.iter().map(|index| (*index, failure.clone())));
    }
    refused.sort_unstable_by_key(|(index, _failure)| *index);
    refused
}

/// Makes files with the same workflow name invalid.
fn refuse_equal_names(collection: &mut Collection) {
    let files: Vec<(&Path, &str)> =
        collection.valid.iter().map(|file| (file.path.as_path(), file.workflow.name.as_str())).collect();
    for (index, failure) in equal_names(&files).into_iter().rev() {
        let file = collection.valid.remove(index);
        collection.invalid.push(InvalidFile {
            path: file.path,
            absolute: Some(file.absolute),
            name: Some(file.workflow.name),
            failure,
        });
    }
}

/// The failure for folders without workflow files.
pub(crate) fn none_found() -> Failure {
    Failure::usage(
        "there are no workflow files in that folder",
        "the name of a workflow file ends in .toml, .json, .yaml or .yml; hidden files and windlass.toml are ignored",
    )
}

pub(crate) fn too_many() -> Failure {
    Failure::usage(
        format!("there are more than {FILES_MAX} workflow files"),
        "name a folder that contains only workflows",
    )
}

fn too_deep(path: &Path) -> Failure {
    Failure::usage(
        format!("{} is more than {DEPTH_MAX} folders deep", path.display()),
        "a link may point to a folder above it; name a folder that contains only workflows",
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const JOB: &str = "[jobs.a]\nrun = 'true'\n";

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    #[test]
    fn the_files_of_a_folder_come_in_the_order_of_their_paths() {
        let folder = folder(&[
            ("b.toml", JOB),
            ("a/c.json", r#"{"jobs": {"a": {"run": "true"}}}"#),
            ("d.yaml", "jobs: { a: { run: x } }"),
            ("e.yml", "jobs: { a: { run: x } }"),
            ("b.test.toml", "case = []"),
            (".hidden.toml", JOB),
            (".git/x.toml", JOB),
            ("windlass.toml", "threads = 1"),
            ("notes.md", "x"),
        ]);
        let collection = collect(&[folder.path().to_owned()]).unwrap();
        let names: Vec<&str> = collection.valid.iter().map(|file| file.workflow.name.as_str()).collect();
        assert_eq!(names, ["c", "b", "d", "e"]);
        assert_eq!(
            collection.valid[0].dir,
            folder.path().canonicalize().unwrap().join("a").to_str().unwrap()
        );
        assert!(collection.invalid.is_empty());
    }

    #[test]
    fn files_to_be_included_are_left_out_unless_they_are_named() {
        let including = format!("include = 'common.toml'\n{JOB}");
        let folder = folder(&[
            ("a.toml", &including),
            ("common.toml", "include = 'sub/env.yaml'\n[secrets]\nTOKEN = {}\n"),
            ("sub/env.yaml", "env: { A: b }"),
            ("misspelled.toml", "[secrets]\nTOKEN = {}\n[jbos.a]\nrun = 'x'\n"),
        ]);
        let collection = collect(&[folder.path().to_owned()]).unwrap();
        let names: Vec<&str> = collection.valid.iter().map(|file| file.workflow.name.as_str()).collect();
        assert_eq!(names, ["a"]);
        assert_eq!(collection.valid[0].workflow.env["A"], "b");
        assert_eq!(collection.valid[0].workflow.secrets.len(), 1);
        let invalid: Vec<_> = collection.invalid.iter().map(|file| file.path.file_name().unwrap()).collect();
        assert_eq!(invalid, ["misspelled.toml"]);
        assert_eq!(collect(&[folder.path().join("common.toml")]).unwrap().invalid.len(), 1);
    }

    #[test]
    fn two_files_with_the_same_name_are_both_invalid() {
        let named = format!("name = 'same'\n{JOB}");
        let folder = folder(&[("a.toml", &named), ("b.toml", &named), ("c.toml", JOB)]);
        let collection = collect(&[folder.path().to_owned()]).unwrap();
        assert_eq!(collection.valid.len(), 1);
        assert_eq!(collection.invalid.len(), 2);
        for invalid in &collection.invalid {
            let (message, _help) = invalid.failure.parts().unwrap();
            assert!(message.contains("a.toml and ") && message.contains("b.toml both define"), "{message}");
            assert_eq!(invalid.name.as_deref(), Some("same"));
        }
    }

    #[test]
    fn a_circle_of_links_is_an_error() {
        let folder = folder(&[("a/b.toml", JOB)]);
        std::os::unix::fs::symlink(folder.path(), folder.path().join("a/back")).unwrap();
        let error = collect(&[folder.path().to_owned()]).unwrap_err();
        assert!(error.parts().unwrap().0.contains("folders deep"), "{error:?}");
    }

    #[test]
    fn a_linked_file_keeps_the_path_of_its_link() {
        let folder = folder(&[("..data/a.toml", JOB)]);
        std::os::unix::fs::symlink("..data/a.toml", folder.path().join("a.toml")).unwrap();
        let collection = collect(&[folder.path().to_owned()]).unwrap();
        let expected = folder.path().canonicalize().unwrap().join("a.toml");
        assert_eq!(collection.valid[0].absolute, expected.to_str().unwrap());
    }
}
