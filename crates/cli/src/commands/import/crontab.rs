//! `windlass import crontab`: makes a workflow of each entry.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use windlass_workflow::import::{CrontabOptions, Imported, ImportedWorkflow, UserColumn, crontab};

use super::{create, exists_already, finish, read, tell_left_out, timezone_or_machine, unwritable};
use crate::arguments::GlobalOptions;
use crate::error::Failure;
use crate::stderr;

/// Make a workflow of each entry of a crontab
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct CrontabArgs {
    /// The crontab; `-` is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// The folder for the workflow files, which is made if it is missing; without it the file of a single entry is printed
    #[arg(long, value_name = "FOLDER")]
    to: Option<PathBuf>,

    /// The zone in which cron reads the times [default: that of this machine]
    #[arg(long, value_name = "ZONE")]
    timezone: Option<String>,

    /// The entries name a user after the times, as in /etc/crontab
    #[arg(long)]
    system: bool,

    /// Exit with 2 if anything was left out
    #[arg(long)]
    strict: bool,
}

const EXAMPLES: &str = "\
Examples:
  crontab -l | windlass import crontab - --to workflows
  windlass import crontab /etc/crontab --system --to workflows
  windlass import crontab one-line.txt > nightly.toml";

/// Makes the files.
pub(super) fn execute(global: &GlobalOptions, args: &CrontabArgs) -> Result<(), Failure> {
    let text = read(&args.file, "a crontab")?;
    let imported = crontab(&text, &options(args));
    tell_left_out(&imported);
    write(args, &imported)?;
    let path_of = |workflow: &ImportedWorkflow| args.to.as_deref().map(|folder| path_in(folder, workflow));
    finish(global, &imported, path_of, args.strict)
}

fn options(args: &CrontabArgs) -> CrontabOptions {
    let users = if args.system { UserColumn::Present } else { UserColumn::Absent };
    // Cron starts the commands of a user in the user's home.
    let home = std::env::var("HOME").ok().filter(|home| !home.is_empty() && !args.system);
    let timezone = timezone_or_machine(args.timezone.as_ref());
    CrontabOptions { timezone, home, users }
}

fn path_in(folder: &Path, workflow: &ImportedWorkflow) -> PathBuf {
    folder.join(format!("{}.toml", workflow.name))
}

fn write(args: &CrontabArgs, imported: &Imported) -> Result<(), Failure> {
    let Some(folder) = &args.to else { return refuse_to_print_several(&imported.workflows) };
    let mut paths = imported.workflows.iter().map(|workflow| path_in(folder, workflow));
    let exists = paths.find(|path| path.exists());
    if let Some(path) = exists {
        return Err(exists_already(&path, "folder"));
    }
    fs::create_dir_all(folder).map_err(|error| unwritable(folder, &error))?;
    for workflow in &imported.workflows {
        let path = path_in(folder, workflow);
        create(&path, &workflow.text).map_err(|error| unwritable(&path, &error))?;
        stderr::note(&format!("written: {}", path.display()));
    }
    Ok(())
}

fn refuse_to_print_several(workflows: &[ImportedWorkflow]) -> Result<(), Failure> {
    match workflows {
        [] => Err(Failure::InvalidFiles {
            message: Some("the crontab has no entry to import".to_owned()),
            errors: Vec::new(),
        }),
        [_only] => Ok(()),
        workflows => Err(Failure::usage(
            format!("{} entries are {0} workflows, each in a file of its own", workflows.len()),
            "name a folder for the files with --to, for example --to workflows",
        )),
    }
}
