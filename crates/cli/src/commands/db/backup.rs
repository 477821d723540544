//! `windlass db backup`: copies the database while workers run.

use std::path::PathBuf;

use clap::Args;
use windlass_views::BackupView;

use crate::arguments::{DatabaseAddress, GlobalOptions};
use crate::database::Database;
use crate::engine_errors;
use crate::error::Failure;
use crate::output::Output;
#[cfg(feature = "postgres")]
use crate::shell_words::quoted;

/// Copy the database into a new file while workers run
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
  windlass --db windlass-2026-11-20.db runs    # list the runs of the copy";

/// Copies the database.
pub(crate) fn execute(global: &GlobalOptions, args: &BackupArgs) -> Result<(), Failure> {
    let target = args.path.display();
    if args.path.exists() {
        return Err(Failure::File {
            message: format!("{target} exists already, and a backup never overwrites a file"),
            help: "choose a name that does not exist, or remove the file first".to_owned(),
        });
    }
    let folder = args.path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        return Err(Failure::Database {
            message: format!("{target} cannot be written: the folder {} does not exist", folder.display()),
            help: "choose an existing folder, or create it with `mkdir -p`".to_owned(),
        });
    }
    let target_address = match global.database().address()? {
        DatabaseAddress::File(_) => DatabaseAddress::File(args.path.clone()),
        #[cfg(feature = "postgres")]
        DatabaseAddress::Server { address, for_libpq } => return Err(on_server(&address, &for_libpq)),
    };
    let database = Database::existing_without_rescue(global)?;
    database
        .windlass()
        .backup(&args.path)
        .map_err(|error| engine_errors::failure(error, &target_address, |verb| global.hint(verb)))?;
    let bytes = std::fs::metadata(&args.path).map(|metadata| metadata.len()).unwrap_or_default();
    let view = BackupView {
        database: database.address().to_string(),
        backup: args.path.to_string_lossy().into_owned(),
        bytes,
    };
    Output { format: global.output }.object(&view, |_| {
        format!("{} is copied to {target} ({bytes} bytes); the copy is checked and sound", database.address())
    })
}

/// For a server, pg_dump makes the backup.
#[cfg(feature = "postgres")]
fn on_server(address: &windlass_db::postgres::PostgresAddress, for_libpq: &str) -> Failure {
    let (schema, url) = (address.schema(), quoted(for_libpq));
    Failure::usage(
        format!("`db backup` copies a SQLite file, and {address} is on a server"),
        format!(
            "use pg_dump, which works while workers run:\n\
             pg_dump --format=custom --schema={schema} --file=windlass.dump --dbname={url}\n\
             to restore it into a database without that schema:\n\
             pg_restore --single-transaction --dbname={url} windlass.dump"
        ),
    )
}
