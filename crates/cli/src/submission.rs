//! The workflow and the parameters of a new run, from a file or from a registered workflow.

mod called_files;
mod parameters;
mod standard_input;

use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Map, Value as Json};
use windlass_engine::store::{DefinitionFile, NewRun, OnlyJobs};
use windlass_workflow::{Report, STANDARD_INPUT, Source, SubsetError, Workflow, hash_of_stored, limits};

use crate::arguments::GlobalOptions;
use crate::complete;
use crate::database::Database;
use crate::error::Failure;
use crate::read_file::{self, PathOrigin};
use crate::workflow_files::is_workflow_file;
use crate::{find, stderr};
pub(crate) use parameters::{describe as describe_param, invalid as invalid_params, parse_pair};
pub(crate) use standard_input::{
    STANDARD_INPUT_FORMAT_HELP, StandardInputArgs, is_standard_input, load_standard_input,
    read as read_standard_input,
};

/// The longest run key, in bytes.
const MAX_RUN_KEY_BYTES: usize = 500;
/// How many entries of a folder are compared with a mistyped name.
const FOLDER_ENTRIES_MAX: usize = 1_000;

/// A workflow and its parameters.
#[derive(Debug, Args)]
pub(crate) struct WorkflowArgs {
    /// A workflow file, TOML, YAML or JSON; the name of a registered workflow; or `-`, standard input
    #[arg(value_name = "FILE|NAME", add = complete::workflow_file_or_name())]
    workflow: PathBuf,

    #[command(flatten)]
    standard_input: StandardInputArgs,

    /// A parameter of the workflow; may be given many times
    #[arg(short, long = "param", value_name = "KEY=VALUE", add = complete::param_of_file(), value_parser = parameters::parse_pair)]
    params: Vec<(String, String)>,

    /// A JSON, TOML or YAML file with parameters, or `-`, standard input; -p overrides it
    #[arg(long, value_name = "FILE")]
    params_file: Option<PathBuf>,
}

/// The arguments of `run` and `submit`.
#[derive(Debug, Args)]
pub(crate) struct SubmissionArgs {
    #[command(flatten)]
    workflow: WorkflowArgs,

    #[command(flatten)]
    part: PartArgs,

    /// A name of your choice for this run; the same key again means the same run, not a new one
    #[arg(long, value_name = "KEY", value_parser = parse_run_key)]
    run_key: Option<String>,
}

/// The part of a workflow to run.
#[derive(Debug, Args)]
pub(crate) struct PartArgs {
    /// Run only this job, without the jobs that it needs; several with commas. Handlers are left out
    #[arg(long, value_name = "JOB", add = complete::job_of_file(), value_delimiter = ',')]
    only: Vec<String>,

    /// With --only: also run the jobs that it needs, directly or not
    #[arg(long, requires = "only")]
    with_upstream: bool,
}

impl PartArgs {
    /// The part that is named, or the whole workflow.
    pub(crate) fn of(&self, read: ReadWorkflow) -> Result<ReadWorkflow, Failure> {
        if self.only.is_empty() {
            return Ok(read);
        }
        let only = OnlyJobs { jobs: self.only.clone(), with_upstream: self.with_upstream };
        let workflow = part_of(&read.workflow, &only)?;
        let file = read.file.map(|file| DefinitionFile { only: Some(only), ..file });
        Ok(ReadWorkflow { workflow, file, ..read })
    }
}

/// A workflow that was read, and where it came from.
pub(crate) struct ReadWorkflow {
    pub(crate) workflow: Workflow,
    /// The folder against which its jobs resolve relative paths.
    pub(crate) dir: Option<String>,
    /// Nothing if it came from a registered workflow, or from a pipe.
    pub(crate) file: Option<DefinitionFile>,
}

/// A run to submit, and the file from which it came.
pub(crate) struct Submission {
    pub(crate) run: NewRun,
    pub(crate) file: Option<DefinitionFile>,
}

/// Why a workflow file cannot be used.
#[derive(Debug)]
pub(crate) enum LoadError {
    /// The file cannot be read.
    Unreadable(Failure),
    /// The file has errors.
    Invalid(Report),
    /// The workflows that it calls can't be used.
    Calls(Failure),
}

impl LoadError {
    /// The failure for a verb that needs the workflow.
    pub(crate) fn failure(&self) -> Failure {
        match self {
            LoadError::Unreadable(failure) | LoadError::Calls(failure) => failure.clone(),
            LoadError::Invalid(report) => Failure::InvalidWorkflow {
                report: Box::new(report.clone()),
                help: correction_help(report.path()),
            },
        }
    }
}

fn correction_help(path: &str) -> String {
    if path == STANDARD_INPUT {
        return format!("correct the text; {STANDARD_INPUT_FORMAT_HELP}");
    }
    format!("correct the file; `windlass validate {path}` checks it without running it")
}

/// Reads and checks a workflow file, with the files that it calls.
pub(crate) fn load(path: &Path, origin: PathOrigin) -> Result<Workflow, LoadError> {
    load_with_source(path, origin).map(|(workflow, _source)| workflow)
}

/// The same, with the text of the file.
pub(crate) fn load_with_source(path: &Path, origin: PathOrigin) -> Result<(Workflow, Source), LoadError> {
    let (workflow, source) = load_alone(path, origin)?;
    Ok((called_files::embed(path, workflow, &source)?, source))
}

/// Reads and checks a workflow file, without the files that it calls.
fn load_alone(path: &Path, origin: PathOrigin) -> Result<(Workflow, Source), LoadError> {
    let bytes = read_file::read(path, limits::FILE_BYTES, origin).map_err(LoadError::Unreadable)?;
    Source::new(path.display().to_string(), bytes)
        .map(|source| source.with_included(&mut |included| read_included(path, included)))
        .and_then(|source| Ok((windlass_workflow::parse(&source)?, source)))
        .map_err(LoadError::Invalid)
}

/// Whether the file is there for other files to include, and has no workflow of its own.
pub(crate) fn is_only_included(path: &Path) -> bool {
    let bytes = read_file::read(path, limits::INCLUDED_BYTES, PathOrigin::Found);
    let source = bytes.ok().and_then(|bytes| Source::new(path.display().to_string(), bytes).ok());
    source.is_some_and(|source| source.can_be_included())
}

/// Reads a file that another one includes. A pipe has no folder, so the current folder is used.
fn read_included(includer: &Path, included: &Path) -> Result<Vec<u8>, String> {
    let folder = includer.parent().filter(|_| includer.is_file()).unwrap_or(Path::new(""));
    read_file::read(&folder.join(included), limits::INCLUDED_BYTES, PathOrigin::Found)
        .map_err(|failure| failure.parts().map(|(message, _help)| message.to_owned()).unwrap_or_default())
}

impl SubmissionArgs {
    /// Reads the workflow from the file, or else from the registered workflow of that name.
    pub(crate) fn read(&self, global: &GlobalOptions) -> Result<Submission, Failure> {
        let ReadWorkflow { workflow, dir, file } = self.part.of(self.workflow.read(global)?)?;
        let params = self.workflow.bind(&workflow)?;
        let run = NewRun { workflow, params, dir, run_key: self.run_key.clone(), occasion: None };
        Ok(Submission { run, file })
    }
}

impl WorkflowArgs {
    /// Reads the workflow from standard input, the file, or else the registered workflow of that name.
    pub(crate) fn read(&self, global: &GlobalOptions) -> Result<ReadWorkflow, Failure> {
        self.check_standard_input()?;
        if is_standard_input(&self.workflow) {
            let (workflow, _source) = self.standard_input.load().map_err(|error| error.failure())?;
            return Ok(ReadWorkflow { workflow, dir: Some(folder_of(Path::new("."))?), file: None });
        }
        if self.workflow.exists() {
            let (workflow, source) =
                load_with_source(&self.workflow, PathOrigin::Named).map_err(|error| error.failure())?;
            let dir = Some(folder_of(&self.workflow)?);
            return Ok(ReadWorkflow { workflow, dir, file: definition_file(&self.workflow, &source) });
        }
        self.registered(global)
    }

    /// The values of the workflow's parameters.
    pub(crate) fn bind(&self, workflow: &Workflow) -> Result<Map<String, Json>, Failure> {
        let from_file = match &self.params_file {
            Some(path) if is_standard_input(path) => self.standard_input.load_params()?,
            Some(path) => parameters::read_file(path)?,
            None => Map::new(),
        };
        parameters::bind(workflow, &self.params, from_file)
    }

    /// Standard input is one thing, and `--format` is for it.
    fn check_standard_input(&self) -> Result<(), Failure> {
        let params_are_there = self.params_file.as_deref().is_some_and(is_standard_input);
        match (is_standard_input(&self.workflow), params_are_there) {
            (true, true) => Err(Failure::usage(
                "standard input can't be the workflow and the parameters at once",
                "name a file for one of them",
            )),
            (true, false) | (false, true) => Ok(()),
            (false, false) => self.standard_input.refuse(),
        }
    }

    fn registered(&self, global: &GlobalOptions) -> Result<ReadWorkflow, Failure> {
        let name = self.workflow.to_string_lossy();
        let is_path = looks_like_a_file(&self.workflow);
        let no_file = || match similar_file(&self.workflow) {
            Some(similar) => Failure::not_found_file(&self.workflow, &similar),
            None => Failure::unreadable(&self.workflow, &io::ErrorKind::NotFound.into()),
        };
        let database = match Database::if_exists(global) {
            Ok(Some(database)) => database,
            Ok(None) | Err(_) if is_path => return Err(no_file()),
            Ok(None) if similar_file(&self.workflow).is_some() => return Err(no_file()),
            Ok(None) => {
                return Err(Failure::not_found(
                    format!("there is no file `{name}`, and no database with registered workflows"),
                    "check the spelling and the current folder, or register a file with `windlass apply FILE`",
                ));
            }
            Err(failure) => return Err(failure),
        };
        match database.ask(|store| store.registrations().workflow(&name))? {
            Some((registration, workflow)) => {
                if registration.paused_at.is_some() {
                    stderr::note(&format!("workflow `{name}` is paused; this affects only its schedules"));
                }
                Ok(ReadWorkflow { workflow, dir: registration.dir, file: None })
            }
            None if is_path => Err(no_file()),
            None => {
                let registered = database.ask(|store| store.registrations().list())?;
                let names = registered.iter().map(|registration| registration.name.as_str());
                if find::nearest_name(&name, names).is_none() && similar_file(&self.workflow).is_some() {
                    return Err(no_file());
                }
                let reason = "there is no such file, and no workflow is registered under the name";
                Err(find::no_workflow(&database, &name, reason)?)
            }
        }
    }
}

/// The workflow file beside a file that is not there, with the most similar name, or with the same one and an ending.
fn similar_file(missing: &Path) -> Option<PathBuf> {
    let folder = missing.parent()?;
    let name = missing.file_name()?.to_str()?;
    let here = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let found = here.read_dir().ok()?.take(FOLDER_ENTRIES_MAX).flatten().map(|entry| entry.path());
    let names: Vec<String> = found
        .filter(|path| is_workflow_file(path))
        .filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()))
        .collect();
    let stem = |file: &&String| Path::new(file.as_str()).file_stem().is_some_and(|stem| stem == name);
    let with_ending = names.iter().find(stem).map(String::as_str);
    let similar = with_ending.or_else(|| find::nearest_name(name, names.iter().map(String::as_str)))?;
    Some(folder.join(similar))
}

/// The file from which a workflow was read. A pipe is no file, and neither is one whose path is not UTF-8.
pub(crate) fn definition_file(path: &Path, source: &Source) -> Option<DefinitionFile> {
    let absolute = path.canonicalize().ok().filter(|absolute| absolute.is_file())?;
    let (named, path) = (path.to_str()?.to_owned(), absolute.to_str()?.to_owned());
    Some(DefinitionFile { named, path, hash: hash_of_stored(&source.text), only: None })
}

/// The part of a workflow that `--only` names.
pub(crate) fn part_of(workflow: &Workflow, only: &OnlyJobs) -> Result<Workflow, Failure> {
    workflow.only(&only.jobs, only.with_upstream).map_err(|error| {
        let help = match &error {
            SubsetError::NoJob { job, .. } => {
                let names: Vec<&str> = workflow.jobs.iter().map(|job| job.name.as_str()).collect();
                let nearest = find::nearest_name(job, names.iter().copied());
                let near = nearest.map(|near| format!("did you mean `{near}`? "));
                format!("{}`windlass graph` shows its jobs", near.unwrap_or_default())
            }
            SubsetError::Handler { .. } => "name a job of `jobs`".to_owned(),
            SubsetError::ReadsLeftOut { .. } => {
                "add --with-upstream, so that the jobs that it needs run too".to_owned()
            }
        };
        Failure::usage(error.to_string(), help)
    })
}

/// Whether the text can only mean a file.
pub(crate) fn looks_like_a_file(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    path.components().count() > 1 || matches!(extension, Some("toml" | "json" | "yaml" | "yml"))
}

/// The absolute folder of the file, where relative paths of the jobs start. A pipe has no folder, so the current
/// folder is used.
pub(crate) fn folder_of(file: &Path) -> Result<String, Failure> {
    let absolute = if file.is_file() { file.canonicalize() } else { Path::new(".").canonicalize() };
    let absolute = absolute.map_err(|error| Failure::unreadable(file, &error))?;
    let folder = if file.is_file() { absolute.parent().unwrap_or(&absolute) } else { absolute.as_path() };
    folder.to_str().map(str::to_owned).ok_or_else(|| {
        Failure::usage(
            format!("the folder {} has a name that is not UTF-8", folder.display()),
            "rename it, or copy the workflow to another folder",
        )
    })
}

fn parse_run_key(text: &str) -> Result<String, String> {
    match text.len() {
        0 => Err("the key is empty".to_owned()),
        1..=MAX_RUN_KEY_BYTES => Ok(text.to_owned()),
        length => Err(format!("the key has {length} bytes; the limit is {MAX_RUN_KEY_BYTES}")),
    }
}
