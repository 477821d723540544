//! `windlass import dagu`: makes a workflow of a file of Dagu.

use std::path::{Path, PathBuf};

use clap::Args;
use windlass_workflow::import::{DaguOptions, ImportedWorkflow, dagu};

use super::{create, exists_already, finish, read, tell_left_out, timezone_or_machine, unwritable};
use crate::arguments::GlobalOptions;
use crate::error::Failure;
use crate::stderr;

/// Make a workflow of a file of Dagu
///
/// What has no equivalent is a comment in its place, and is named on standard error.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct DaguArgs {
    /// The file in YAML; `-` is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// The workflow file to write; without it the file is printed
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,

    /// The zone of schedules that name none [default: that of this machine]
    #[arg(long, value_name = "ZONE")]
    timezone: Option<String>,

    /// Exit with 2 if anything was left out
    #[arg(long)]
    strict: bool,
}

const EXAMPLES: &str = "\
Examples:
  windlass import dagu etl.yaml --to workflows/etl.toml
  windlass import dagu etl.yaml --strict > etl.toml
  windlass import dagu - --timezone Europe/Berlin < etl.yaml";

/// Makes the file.
pub(super) fn execute(global: &GlobalOptions, args: &DaguArgs) -> Result<(), Failure> {
    let text = read(&args.file, "a file of Dagu in YAML")?;
    let options =
        DaguOptions { name: name_of(&args.file), timezone: timezone_or_machine(args.timezone.as_ref()) };
    let path = if args.file.as_os_str() == "-" {
        "standard input".to_owned()
    } else {
        args.file.display().to_string()
    };
    let imported = dagu(&path, &text, &options).map_err(|report| Failure::InvalidWorkflow {
        report: Box::new(report),
        help: "correct the file; nothing was written".to_owned(),
    })?;
    tell_left_out(&imported);
    for workflow in &imported.workflows {
        write(args.to.as_deref(), workflow)?;
    }
    finish(global, &imported, |_workflow| args.to.clone(), args.strict)
}

/// The workflow's name if the file has none: that of the file.
fn name_of(file: &Path) -> String {
    let stem = file.file_stem().and_then(|stem| stem.to_str()).filter(|stem| *stem != "-");
    stem.unwrap_or("workflow").to_owned()
}

fn write(to: Option<&Path>, workflow: &ImportedWorkflow) -> Result<(), Failure> {
    let Some(path) = to else { return Ok(()) };
    if path.exists() {
        return Err(exists_already(path, "file"));
    }
    create(path, &workflow.text).map_err(|error| unwritable(path, &error))?;
    stderr::note(&format!("written: {}", path.display()));
    Ok(())
}
