//! `windlass db backup`: a consistent copy while others work.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use crate::cli::GlobalOptions;
use crate::database::Database;
use crate::error::Failure;
use crate::output::Output;

/// Copy the database into a new file while others work with it
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct BackupArgs {
    /// The new file; it must not exist
    #[arg(value_name = "PATH")]
    path: PathBuf,
}

const EXAMPLES: &str = "\
Examples:
  windlass db backup windlass-2026-11-20.db
  windlass --db windlass-2026-11-20.db runs    # look into the copy";

/// Copies the database.
pub(crate) fn execute(global: &GlobalOptions, args: &BackupArgs) -> Result<(), Failure> {
    let target = args.path.display();
    if args.path.exists() {
        return Err(Failure::File {
            message: format!("{target} exists already, and a backup never overwrites"),
            help: "choose a name that does not exist, or remove the file first".to_owned(),
        });
    }
    let database = Database::as_it_is(global)?;
    database
        .windlass()
        .backup(&args.path)
        .map_err(|error| Failure::from_engine(error, &args.path, |verb| global.hint(verb)))?;
    let bytes = std::fs::metadata(&args.path).map(|metadata| metadata.len()).unwrap_or_default();
    let view = json!({ "path": args.path.to_string_lossy(), "bytes": bytes });
    Output { format: global.output }.object(&view, |_| {
        format!("{} is copied to {target} ({bytes} bytes), and the copy is sound", database.path().display())
    })
}
