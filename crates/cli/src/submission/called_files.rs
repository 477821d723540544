//! The files that a workflow calls: they become a part of its definition when its file is read.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use windlass_workflow::{FileCalls, Source, Workflow, limits};

use super::{LoadError, load_alone};
use crate::error::Failure;
use crate::read_file::PathOrigin;

/// Workflows of one file, whose paths start in the folder of this file.
struct FileScope {
    source: Source,
    folder: PathBuf,
    /// The indices of the workflows, that of the file first. Nothing is the workflow at the top.
    workflows: Vec<Option<usize>>,
}

/// Reads the files that the workflow of a file calls, and those that they call. Each file is read once.
pub(super) fn embed(path: &Path, mut workflow: Workflow, source: &Source) -> Result<Workflow, LoadError> {
    if workflow.calls().all(|(_job, call)| !call.is_of_file()) {
        return Ok(workflow);
    }
    let locals = (0..workflow.workflows.len()).map(Some);
    let mut scopes = vec![FileScope {
        source: source.clone(),
        folder: folder_of(path),
        workflows: [None].into_iter().chain(locals).collect(),
    }];
    let mut known: HashMap<PathBuf, usize> = HashMap::new();
    while let Some(scope) = scopes.pop() {
        let mut unreadable: BTreeMap<String, String> = BTreeMap::new();
        for written in files_called(&mut workflow, &scope) {
            let called: PathBuf = scope.folder.join(&written).components().collect();
            let real = called.canonicalize().ok();
            let index = match real.as_ref().and_then(|real| known.get(real)) {
                Some(index) => *index,
                None => {
                    let (added, source) = match load_alone(&called, PathOrigin::Found) {
                        Ok(loaded) => loaded,
                        Err(LoadError::Unreadable(failure)) => {
                            let reason = failure.parts().map(|(message, _help)| message.to_owned());
                            unreadable.insert(written, reason.unwrap_or_default());
                            continue;
                        }
                        Err(error @ (LoadError::Invalid(_) | LoadError::Calls(_))) => return Err(error),
                    };
                    let index = workflow.add_called(added);
                    let of_file = (index..workflow.workflows.len()).map(Some).collect();
                    scopes.push(FileScope { source, folder: folder_of(&called), workflows: of_file });
                    known.extend(real.map(|real| (real, index)));
                    index
                }
            };
            if workflow.workflows.len() > limits::CALLED_WORKFLOWS {
                return Err(too_many(path));
            }
            resolve(&mut workflow, &scope, &written, index);
        }
        check(&scope, &workflow, &unreadable)?;
    }
    match workflow.check() {
        Ok(()) => Ok(workflow),
        Err(error) => Err(LoadError::Calls(Failure::usage(
            format!("{}: {}", path.display(), error.reason),
            "correct the calls in the file, or the files that it calls",
        ))),
    }
}

/// Checks the calls of a file, whose called files are in the list.
fn check(scope: &FileScope, top: &Workflow, unreadable: &BTreeMap<String, String>) -> Result<(), LoadError> {
    let own: Vec<&Workflow> = scope
        .workflows
        .iter()
        .filter_map(|index| index.map_or(Some(top), |index| top.workflows.get(index)))
        .collect();
    FileCalls { source: &scope.source, own: &own, all: &top.workflows, unreadable }
        .check()
        .map_err(LoadError::Invalid)
}

/// The paths that the workflows of a file call, in order.
fn files_called(workflow: &mut Workflow, scope: &FileScope) -> Vec<String> {
    let mut paths: Vec<String> = Vec::new();
    for (of, call) in workflow.calls_mut() {
        if call.is_of_file() && scope.workflows.contains(&of) && !paths.contains(&call.workflow) {
            paths.push(call.workflow.clone());
        }
    }
    paths
}

fn resolve(workflow: &mut Workflow, scope: &FileScope, written: &str, index: usize) {
    let folder = Path::new(written).parent().and_then(Path::to_str).unwrap_or_default();
    let folder = folder.strip_prefix("./").unwrap_or(folder);
    let dir = (!folder.is_empty() && folder != ".").then(|| folder.to_owned());
    for (of, call) in workflow.calls_mut() {
        if call.workflow == written && scope.workflows.contains(&of) {
            call.called = Some(index);
            call.dir.clone_from(&dir);
        }
    }
}

/// The folder of a file. A pipe has none, so the current folder is used.
fn folder_of(path: &Path) -> PathBuf {
    let real = path.canonicalize().ok().filter(|real| real.is_file());
    let folder = real.as_deref().and_then(Path::parent);
    folder.map_or_else(|| PathBuf::from("."), Path::to_owned)
}

fn too_many(path: &Path) -> LoadError {
    let limit = limits::CALLED_WORKFLOWS;
    LoadError::Calls(Failure::usage(
        format!("{} calls more than {limit} workflows", path.display()),
        "register some of them with `windlass apply`, and call them from fewer files",
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::fs;

    use super::super::load;
    use super::*;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    fn error(folder: &tempfile::TempDir) -> String {
        let failure = load(&folder.path().join("top.toml"), PathOrigin::Named).unwrap_err().failure();
        format!("{failure:?}")
    }

    #[test]
    fn files_are_found_from_the_folder_of_the_file_that_calls_them() {
        let folder = folder(&[
            ("top.toml", "[jobs.a]\nworkflow = './sub/b.toml'\n[jobs.c]\nworkflow = './c.toml'"),
            (
                "sub/b.toml",
                "[jobs.x]\nworkflow = '../c.toml'\n[jobs.y]\nworkflow = 'own'\n[workflows.own.jobs.z]\nrun = 'z'",
            ),
            ("c.toml", "[jobs.c]\nrun = 'c'"),
        ]);
        let workflow = load(&folder.path().join("top.toml"), PathOrigin::Named).unwrap();
        workflow.check_calls_are_complete().unwrap();
        let names: Vec<&str> = workflow.workflows.iter().map(|called| called.name.as_str()).collect();
        assert_eq!(names, ["b", "own", "c"], "each file once");
        let calls: Vec<_> = workflow.calls().map(|(_job, call)| (call.called, call.dir.as_deref())).collect();
        let expected = [(Some(0), Some("sub")), (Some(2), None), (Some(2), Some("..")), (Some(1), None)];
        assert_eq!(calls, expected);
    }

    #[test]
    fn a_circle_of_files_a_missing_file_and_an_invalid_one_are_errors() {
        let circle = folder(&[
            ("top.toml", "[jobs.a]\nworkflow = './load.toml'"),
            ("load.toml", "[jobs.x]\nworkflow = './fix.toml'"),
            ("fix.toml", "[jobs.x]\nworkflow = './load.toml'"),
        ]);
        assert!(error(&circle).contains("`load` calls itself: load → fix → load"), "{}", error(&circle));
        let missing = folder(&[("top.toml", "[jobs.a]\nworkflow = './nobody.toml'")]);
        assert!(error(&missing).contains("`./nobody.toml` can't be read"), "{}", error(&missing));
        assert!(error(&missing).contains("nobody.toml does not exist"), "{}", error(&missing));
        let invalid =
            folder(&[("top.toml", "[jobs.a]\nworkflow = './b.toml'"), ("b.toml", "[jobs.x]\nrum = 'x'")]);
        assert!(error(&invalid).contains("b.toml"), "{}", error(&invalid));
    }

    #[test]
    fn all_wrong_calls_of_a_file_are_reported_with_their_positions() {
        let folder = folder(&[
            (
                "top.toml",
                "[jobs.a]\nworkflow = './b.toml'\nparams = { dya = 'x' }
[jobs.b]\nworkflow = './nobody.toml'
[workflows.own.jobs.c]\nworkflow = './b.toml'\nparams = { day = ['x'] }
[finally.d]\nworkflow = './c.toml'",
            ),
            ("b.toml", "params = { day = {} }\n[jobs.x]\nrun = 'x'"),
            ("c.toml", "[jobs.x]\nworkflow = './b.toml'"),
        ]);
        let report = |name: &str| {
            let error = load(&folder.path().join(name), PathOrigin::Named).unwrap_err();
            let LoadError::Invalid(report) = error else { panic!("{error:?}") };
            let found = report.diagnostics().iter();
            found.map(|found| (found.line, found.column, found.message.clone())).collect::<Vec<_>>()
        };
        let missing = "gives no value to the parameter `day` of `./b.toml`";
        let expected = [
            (2, 12, format!("job `a` {missing}")),
            (3, 12, "`./b.toml`: there is no parameter `dya`; did you mean `day`?".to_owned()),
            (5, 12, "the workflow `./nobody.toml` can't be read".to_owned()),
            (8, 18, "this value of `day` cannot be given to `./b.toml`".to_owned()),
        ];
        assert_eq!(report("top.toml"), expected);
        assert_eq!(report("c.toml"), [(2, 12, format!("job `x` {missing}"))]);
    }
}
