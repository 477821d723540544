//! `windlass import`: makes workflow files from files of other programs.

mod crontab;
mod dagu;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use windlass_views::{ImportView, ImportedFile};
use windlass_workflow::import::{Imported, ImportedWorkflow};
use windlass_workflow::limits;

use crate::arguments::GlobalOptions;
use crate::error::Failure;
use crate::output::Output;
use crate::read_file::{self, PathOrigin};
use crate::stderr;
use crate::text::values::counted;

/// Make workflow files from a crontab or a file of Dagu
///
/// What has no equivalent is named on standard error.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ImportArgs {
    #[command(subcommand)]
    from: From,
}

#[derive(Debug, Subcommand)]
enum From {
    Crontab(crontab::CrontabArgs),
    Dagu(dagu::DaguArgs),
}

const EXAMPLES: &str = "\
Examples:
  crontab -l | windlass import crontab - --to workflows
  windlass import dagu etl.yaml --to workflows/etl.toml";

/// Makes the files.
pub(crate) fn execute(global: &GlobalOptions, args: &ImportArgs) -> Result<(), Failure> {
    match &args.from {
        From::Crontab(args) => crontab::execute(global, args),
        From::Dagu(args) => dagu::execute(global, args),
    }
}

/// Reads a file of another program; `-` is standard input.
fn read(file: &Path, expected: &str) -> Result<String, Failure> {
    let path = if file.as_os_str() == "-" { Path::new("/dev/stdin") } else { file };
    let bytes = read_file::read(path, limits::FILE_BYTES, PathOrigin::Named)?;
    let unusable = |message: String| Failure::File { message, help: format!("name {expected}") };
    if bytes.len() > limits::FILE_BYTES {
        let limit = limits::FILE_BYTES / (1024 * 1024);
        return Err(unusable(format!("{} is larger than {limit} MiB", file.display())));
    }
    String::from_utf8(bytes).map_err(|_error| unusable(format!("{} is not UTF-8", file.display())))
}

/// The named zone, or that of this machine.
fn timezone_or_machine(named: Option<&String>) -> String {
    named.cloned().or_else(zone_of_machine).unwrap_or_else(|| {
        stderr::note("the zone of this machine is not known: the times are read as UTC; see --timezone");
        "UTC".to_owned()
    })
}

/// The zone of this machine: the target of `/etc/localtime`.
fn zone_of_machine() -> Option<String> {
    let target = fs::canonicalize("/etc/localtime").ok()?;
    let target = target.to_str()?;
    let (_folder, zone) = target.split_once("/zoneinfo/")?;
    Some(zone.to_owned())
}

fn tell_left_out(imported: &Imported) {
    for line in &imported.left_out {
        stderr::note(line);
    }
}

/// The end of an import. `path_of` is the file of a workflow that was written; without it the text is printed.
fn finish(
    global: &GlobalOptions,
    imported: &Imported,
    path_of: impl Fn(&ImportedWorkflow) -> Option<PathBuf>,
    strict: bool,
) -> Result<(), Failure> {
    let file = |workflow: &ImportedWorkflow| {
        let file = path_of(workflow).map(|path| path.display().to_string());
        let text = file.is_none().then(|| workflow.text.clone());
        ImportedFile { workflow: workflow.name.clone(), file, text }
    };
    let files = imported.workflows.iter().map(file).collect();
    let view = ImportView { files, left_out: imported.left_out.clone() };
    Output { format: global.output }
        .object(&view, |view| view.files.iter().filter_map(|file| file.text.as_deref()).collect())?;
    match (strict, imported.left_out.is_empty()) {
        (true, false) => Err(Failure::InvalidFiles {
            errors: Vec::new(),
            message: Some(format!(
                "{} left out",
                counted(imported.left_out.len() as i64, "thing was", "things were")
            )),
        }),
        (true, true) | (false, _) => Ok(()),
    }
}

/// Another program may have made the file meanwhile.
fn create(path: &Path, text: &str) -> io::Result<()> {
    fs::File::create_new(path)?.write_all(text.as_bytes())
}

/// `other` is what `--to` names: a file or a folder.
fn exists_already(path: &Path, other: &str) -> Failure {
    Failure::File {
        message: format!("{} exists already; nothing was written", path.display()),
        help: format!("name another {other} with --to, or move the file away"),
    }
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    Failure::File {
        message: format!("{} cannot be written: {error}", path.display()),
        help: "check the permissions of the folder, and the disk".to_owned(),
    }
}
