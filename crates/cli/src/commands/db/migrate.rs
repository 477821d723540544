//! `windlass db migrate`: bring the tables to the version of this program.

use clap::Args;
use serde_json::json;
use windlass::SCHEMA_VERSION;

use crate::cli::GlobalOptions;
use crate::database::Database;
use crate::error::Failure;
use crate::output::Output;

/// Create the tables, or upgrade them to the version of this program
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct MigrateArgs {}

const EXAMPLES: &str = "\
Examples:
  windlass db migrate
  windlass --db /var/lib/windlass/jobs.db db migrate

Every verb that writes does this by itself; this one is for doing it at a time of your choice.";

/// Opening is migrating; this says what came of it.
pub(crate) fn execute(global: &GlobalOptions, _args: &MigrateArgs) -> Result<(), Failure> {
    let database = Database::existing_or_new(global)?;
    let place = database.place();
    let view = json!({ "path": place.to_string(), "version": SCHEMA_VERSION });
    Output { format: global.output }
        .object(&view, |_| format!("the tables of {place} have version {SCHEMA_VERSION}"))
}
