//! `windlass import`: makes workflow files from files of other programs.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use windlass_workflow::import::{CrontabOptions, Imported, ImportedWorkflow, UserColumn, crontab};
use windlass_workflow::limits;

use crate::error::Failure;
use crate::output;
use crate::read_file::{self, PathOrigin};
use crate::stderr;
use crate::text::values::counted;

/// Make workflow files from a crontab
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
    Crontab(CrontabArgs),
}

/// Make a workflow of each entry of a crontab
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
struct CrontabArgs {
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
pub(crate) fn execute(args: &ImportArgs) -> Result<(), Failure> {
    let From::Crontab(args) = &args.from;
    let text = read(&args.file)?;
    let imported = crontab(&text, &options(args));
    for line in &imported.left_out {
        stderr::note(line);
    }
    write(args, &imported)?;
    match (args.strict, imported.left_out.is_empty()) {
        (true, false) => Err(Failure::InvalidFiles {
            message: Some(format!(
                "{} left out",
                counted(imported.left_out.len() as i64, "thing was", "things were")
            )),
        }),
        (true, true) | (false, _) => Ok(()),
    }
}

fn read(file: &Path) -> Result<String, Failure> {
    let path = if file.as_os_str() == "-" { Path::new("/dev/stdin") } else { file };
    let bytes = read_file::read(path, limits::FILE_BYTES, PathOrigin::Named)?;
    let unusable = |message: String| Failure::File { message, help: "name a crontab".to_owned() };
    if bytes.len() > limits::FILE_BYTES {
        let limit = limits::FILE_BYTES / (1024 * 1024);
        return Err(unusable(format!("{} is larger than {limit} MiB", file.display())));
    }
    String::from_utf8(bytes).map_err(|_error| unusable(format!("{} is not UTF-8", file.display())))
}

fn options(args: &CrontabArgs) -> CrontabOptions {
    let users = if args.system { UserColumn::Present } else { UserColumn::Absent };
    // Cron starts the commands of a user in the user's home.
    let home = std::env::var("HOME").ok().filter(|home| !home.is_empty() && !args.system);
    let timezone = args.timezone.clone().or_else(zone_of_machine).unwrap_or_else(|| {
        stderr::note("the zone of this machine is not known: the times are read as UTC; see --timezone");
        "UTC".to_owned()
    });
    CrontabOptions { timezone, home, users }
}

/// The zone of this machine: the target of `/etc/localtime`.
fn zone_of_machine() -> Option<String> {
    let target = fs::canonicalize("/etc/localtime").ok()?;
    let target = target.to_str()?;
    let (_folder, zone) = target.split_once("/zoneinfo/")?;
    Some(zone.to_owned())
}

fn write(args: &CrontabArgs, imported: &Imported) -> Result<(), Failure> {
    let Some(folder) = &args.to else { return print(&imported.workflows) };
    let path_of = |workflow: &ImportedWorkflow| folder.join(format!("{}.toml", workflow.name));
    let exists = imported.workflows.iter().map(path_of).find(|path| path.exists());
    if let Some(path) = exists {
        return Err(Failure::File {
            message: format!("{} exists already; nothing was written", path.display()),
            help: "name another folder with --to, or move the file away".to_owned(),
        });
    }
    fs::create_dir_all(folder).map_err(|error| unwritable(folder, &error))?;
    for workflow in &imported.workflows {
        let path = path_of(workflow);
        create(&path, &workflow.text).map_err(|error| unwritable(&path, &error))?;
        stderr::note(&format!("written: {}", path.display()));
    }
    Ok(())
}

/// Another program may have made the file meanwhile.
fn create(path: &Path, text: &str) -> io::Result<()> {
    fs::File::create_new(path)?.write_all(text.as_bytes())
}

fn print(workflows: &[ImportedWorkflow]) -> Result<(), Failure> {
    match workflows {
        [] => Err(Failure::InvalidFiles { message: Some("the crontab has no entry to import".to_owned()) }),
        [workflow] => output::write_text(&workflow.text),
        workflows => Err(Failure::usage(
            format!("{} entries are {0} workflows, each in a file of its own", workflows.len()),
            "name a folder for the files with --to, for example --to workflows",
        )),
    }
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    Failure::File {
        message: format!("{} cannot be written: {error}", path.display()),
        help: "check the permissions of the folder, and the disk".to_owned(),
    }
}
