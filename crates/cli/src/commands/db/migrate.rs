//! `windlass db migrate`: creates or upgrades the tables.

use clap::Args;
use windlass_engine::SCHEMA_VERSION;
use windlass_views::MigratedView;

use crate::arguments::GlobalOptions;
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

Every verb that writes does this when it starts. Use this verb to choose the
time yourself.";

/// Opening the database migrates it. Prints the version.
pub(crate) fn execute(global: &GlobalOptions, _args: &MigrateArgs) -> Result<(), Failure> {
    let database = Database::existing_or_new(global)?;
    let address = database.address();
    let view = MigratedView { database: address.to_string(), schema_version: SCHEMA_VERSION };
    Output { format: global.output }
        .object(&view, |_| format!("the tables of {address} have version {SCHEMA_VERSION}"))
}
