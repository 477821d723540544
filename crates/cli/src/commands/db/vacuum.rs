//! `windlass db vacuum`: returns free pages of the file to the disk.

use std::path::Path;
use std::thread;
use std::time::Duration;

use clap::Args;
use windlass_db::Error;
use windlass_db::sqlite::{FileSize, SqliteDatabase};
use windlass_views::VacuumedView;

use crate::arguments::{DatabaseAddress, GlobalOptions};
use crate::database::Database;
use crate::error::Failure;
use crate::output::Output;

/// Return free space in the file to the disk
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct VacuumArgs {
    /// Rewrite the whole file; this needs as much disk space again, and no worker may run
    #[arg(long)]
    full: bool,
}

const EXAMPLES: &str = "\
Examples:
  windlass db vacuum           # in small steps, while workers run
  windlass db vacuum --full    # also defragment the file

New rows use free pages first, so a file of stable size needs no vacuum.";

/// The pause between two steps, in which workers write.
const PAUSE: Duration = Duration::from_millis(10);

/// Returns free pages to the disk.
pub(crate) fn execute(global: &GlobalOptions, args: &VacuumArgs) -> Result<(), Failure> {
    let database = Database::existing(global)?;
    let path = match database.address() {
        DatabaseAddress::File(path) => path.clone(),
        #[cfg(feature = "postgres")]
        DatabaseAddress::Server { .. } => return Err(on_server()),
    };
    let Some(file) = database.windlass().file() else { return Ok(()) };
    let failed = |error| database.failure(error);
    let before = file.file_size().map_err(failed)?;
    if args.full {
        database
            .store()
            .for_restore()
            .refuse_while_used()
            .map_err(|error| in_use(&database, &path, error))?;
        refuse_without_room(&path, before)?;
        file.vacuum_whole().map_err(failed)?;
    } else if before.is_incremental {
        in_steps(file).map_err(failed)?;
    } else {
        return Err(Failure::Conflict {
            message: format!(
                "{} cannot be vacuumed in steps: it was created without incremental vacuum",
                path.display()
            ),
            help: format!("`{}` vacuums it now and allows steps afterwards", global.hint("db vacuum --full")),
        });
    }
    let is_wal_empty = file.empty_wal().map_err(failed)?;
    let after = file.file_size().map_err(failed)?;
    let view = VacuumedView {
        database: path.to_string_lossy().into_owned(),
        bytes_before: before.bytes,
        bytes: after.bytes,
        free_bytes: after.free_bytes,
        wal_bytes: after.wal_bytes,
    };
    Output { format: global.output }.object(&view, |_| {
        let rest =
            if is_wal_empty { "" } else { "; a reader keeps the write-ahead log open, so it shrinks later" };
        format!("{} has {} bytes; it had {}{rest}", path.display(), after.bytes, before.bytes)
    })
}

fn in_use(database: &Database, path: &Path, error: Error) -> Failure {
    let Error::Conflict { reason, .. } = &error else { return database.failure(error) };
    Failure::Conflict {
        message: format!("{} cannot be rewritten: {reason}", path.display()),
        help: "stop it (Ctrl-C or SIGTERM) and try again; without --full, vacuum works while others run"
            .to_owned(),
    }
}

/// Ends when no page is free, or when others free pages as fast.
fn in_steps(file: &SqliteDatabase) -> windlass_db::Result<()> {
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

/// The rewrite needs the space of the new file twice: in a temporary file and in the write-ahead log.
fn refuse_without_room(path: &Path, size: FileSize) -> Result<(), Failure> {
    let needed = u64::try_from(size.bytes - size.free_bytes).unwrap_or_default().saturating_mul(2);
    let Ok(statistics) = rustix::fs::statvfs(path) else { return Ok(()) };
    let free = statistics.f_bavail.saturating_mul(statistics.f_frsize);
    if free >= needed {
        return Ok(());
    }
    Err(Failure::Conflict {
        message: format!(
            "{} cannot be rewritten: this needs {needed} bytes, and the disk has {free} bytes free",
            path.display()
        ),
        help: "free some space, or leave --full out".to_owned(),
    })
}

#[cfg(feature = "postgres")]
fn on_server() -> Failure {
    Failure::usage(
        "`db vacuum` is for SQLite files; a PostgreSQL server does this by itself (autovacuum)",
        "VACUUM (FULL) in psql rewrites a table, and locks it meanwhile",
    )
}
