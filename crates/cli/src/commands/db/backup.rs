//! `windlass db backup`: a consistent copy while others work.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use crate::cli::GlobalOptions;
#[cfg(feature = "postgres")]
use crate::cli::quoted;
use crate::database::Database;
use crate::error::Failure;
use crate::output::Output;
use crate::place::Place;

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
    let folder = args.path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        return Err(Failure::Database {
            message: format!("{target} can't be written: there is no folder {}", folder.display()),
            help: "choose a folder that exists, or make it with `mkdir -p`".to_owned(),
        });
    }
    let target_place = match global.database().place()? {
        Place::File(_) => Place::File(args.path.clone()),
        #[cfg(feature = "postgres")]
        Place::Server { address, for_libpq } => return Err(on_server(&address, &for_libpq)),
    };
    let database = Database::as_it_is(global)?;
    database
        .windlass()
        .backup(&args.path)
        .map_err(|error| Failure::from_engine(error, &target_place, |verb| global.hint(verb)))?;
    let bytes = std::fs::metadata(&args.path).map(|metadata| metadata.len()).unwrap_or_default();
    let view = json!({ "path": args.path.to_string_lossy(), "bytes": bytes });
    Output { format: global.output }.object(&view, |_| {
        format!("{} is copied to {target} ({bytes} bytes), and the copy is sound", database.place())
    })
}

/// A server's own tools do it better, and while everybody works.
#[cfg(feature = "postgres")]
fn on_server(address: &windlass::PostgresAddress, for_libpq: &str) -> Failure {
    let (schema, url) = (address.schema(), quoted(for_libpq));
    Failure::usage(
        format!("`db backup` copies a file, and {address} is on a server"),
        format!(
            "PostgreSQL's own program does it while others work:\n\
             pg_dump --format=custom --schema={schema} --file=windlass.dump --dbname={url}\n\
             and this brings it back, into a database without it:\n\
             pg_restore --single-transaction --dbname={url} windlass.dump"
        ),
    )
}
