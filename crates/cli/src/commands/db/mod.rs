//! `windlass db`: maintains the database.

mod backup;
mod check;
mod copy;
mod migrate;
mod prune;
mod restore;
mod vacuum;

use clap::{Args, Subcommand};

use crate::arguments::GlobalOptions;
use crate::error::Failure;

/// Maintain the database: back up, restore, check, copy, prune
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DbArgs {
    #[command(subcommand)]
    command: DbCommand,
}

#[derive(Debug, Subcommand)]
enum DbCommand {
    Backup(backup::BackupArgs),
    Check(check::CheckArgs),
    Copy(copy::CopyArgs),
    Migrate(migrate::MigrateArgs),
    Prune(prune::PruneArgs),
    Restore(restore::RestoreArgs),
    Vacuum(vacuum::VacuumArgs),
}

const EXAMPLES: &str = "\
Examples:
  windlass db check
  windlass db backup /backups/windlass-$(date +%F).db
  windlass db restore /backups/windlass-2026-11-20.db --replace
  windlass db prune --older-than 30d";

/// Calls the subcommand.
pub(crate) fn execute(global: &GlobalOptions, args: &DbArgs) -> Result<(), Failure> {
    match &args.command {
        DbCommand::Backup(args) => backup::execute(global, args),
        DbCommand::Check(args) => check::execute(global, args),
        DbCommand::Copy(args) => copy::execute(global, args),
        DbCommand::Migrate(args) => migrate::execute(global, args),
        DbCommand::Prune(args) => prune::execute(global, args),
        DbCommand::Restore(args) => restore::execute(global, args),
        DbCommand::Vacuum(args) => vacuum::execute(global, args),
    }
}
