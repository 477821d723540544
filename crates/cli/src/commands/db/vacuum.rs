//! `windlass db vacuum`: give space that pruning freed back to the disk.

use std::path::Path;
use std::thread;
use std::time::Duration;

use clap::Args;
use serde_json::json;
use windlass::{Error, FileSize, SqliteDatabase};

use crate::cli::GlobalOptions;
use crate::database::Database;
use crate::error::Failure;
use crate::output::Output;
use crate::place::Place;

/// Return free space in the file to the disk
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct VacuumArgs {
    /// Rewrite the whole file: needs as much disk space again, and no worker may run
    #[arg(long)]
    full: bool,
}

const EXAMPLES: &str = "\
Examples:
  windlass db vacuum           # in small steps, while others work
  windlass db vacuum --full    # also makes the rest of the file compact

New rows take free pages first: a file that has reached its size stays at it without this verb.";

/// Others write between two steps.
const PAUSE: Duration = Duration::from_millis(10);

/// Gives free pages back.
pub(crate) fn execute(global: &GlobalOptions, args: &VacuumArgs) -> Result<(), Failure> {
    let database = Database::existing(global)?;
    let path = match database.place() {
        Place::File(path) => path.clone(),
        #[cfg(feature = "postgres")]
        Place::Server { .. } => return Err(on_server()),
    };
    let Some(file) = database.windlass().file() else { return Ok(()) };
    let failed = |error| database.failure(error);
    let before = file.file_size().map_err(failed)?;
    if args.full {
        database.store().upkeep().refuse_while_used().map_err(|error| in_use(&database, &path, error))?;
        refuse_without_room(&path, before)?;
        file.vacuum_whole().map_err(failed)?;
    } else if before.is_incremental {
        in_steps(file).map_err(failed)?;
    } else {
        return Err(Failure::Conflict {
            message: format!("{} was not made to give space back in steps", path.display()),
            help: format!("`{}` does it once, and makes it so", global.hint("db vacuum --full")),
        });
    }
    let is_wal_empty = file.empty_wal().map_err(failed)?;
    let after = file.file_size().map_err(failed)?;
    let view = json!({
        "path": path.to_string_lossy(),
        "bytes_before": before.bytes, "bytes": after.bytes, "free_bytes": after.free_bytes, "wal_bytes": after.wal_bytes,
    });
    Output { format: global.output }.object(&view, |_| {
        let rest = if is_wal_empty { "" } else { "; somebody reads: the write-ahead log shrinks later" };
        format!("{} has {} bytes; it had {}{rest}", path.display(), after.bytes, before.bytes)
    })
}

fn in_use(database: &Database, path: &Path, error: Error) -> Failure {
    let Error::Conflict { reason, .. } = &error else { return database.failure(error) };
    Failure::Conflict {
        message: format!("{} can't be written anew: {reason}", path.display()),
        help: "end it (Ctrl-C or SIGTERM) and try again; without --full the vacuum works beside it"
            .to_owned(),
    }
}

/// Until nothing is free, or others make free as fast.
fn in_steps(file: &SqliteDatabase) -> windlass::Result<()> {
    let mut free_bytes = file.file_size()?.free_bytes;
    while free_bytes > 0 {
        file.vacuum_step()?;
        let left = file.file_size()?.free_bytes;
        if left >= free_bytes {
            break;
        }
        free_bytes = left;
        thread::sleep(PAUSE);
    }
    Ok(())
}

/// The new file lies beside the old one for a while, and passes through the write-ahead log.
fn refuse_without_room(path: &Path, size: FileSize) -> Result<(), Failure> {
    let needed = u64::try_from(size.bytes - size.free_bytes).unwrap_or_default().saturating_mul(2);
    let Ok(statistics) = rustix::fs::statvfs(path) else { return Ok(()) };
    let free = statistics.f_bavail.saturating_mul(statistics.f_frsize);
    if free >= needed {
        return Ok(());
    }
    Err(Failure::Conflict {
        message: format!(
            "{} can't be written anew: that takes {needed} bytes, and {free} are free",
            path.display()
        ),
        help: "make room, or leave --full out".to_owned(),
    })
}

#[cfg(feature = "postgres")]
fn on_server() -> Failure {
    Failure::usage(
        "`db vacuum` is for files; a server does it by itself (autovacuum)",
        "VACUUM (FULL) in psql writes a table anew, and locks it while it does",
    )
}
