//! `windlass db restore`: bring a backup back, and say what may run again.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};
use windlass::store::Restored;
use windlass::{BrokenRules, Error, Unavailable, Windlass};

use crate::cli::{GlobalOptions, quoted};
use crate::database::Database;
use crate::error::Failure;
use crate::output::Output;
use crate::place::Place;

/// Replace the database by a backup, with all schedules paused
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RestoreArgs {
    /// A file made by `windlass db backup`; it is not changed
    #[arg(value_name = "BACKUP", required_unless_present = "fence")]
    backup: Option<PathBuf>,

    /// The rows were restored by another tool (pg_restore): only fence the workers of that time and pause the
    /// schedules
    #[arg(long, conflicts_with_all = ["backup", "force", "replace"])]
    fence: bool,

    /// Replace a database that has runs or jobs; they are lost
    #[arg(long)]
    replace: bool,

    /// Restore also a backup whose rows do not fit together, as `windlass db check` finds them
    #[arg(long)]
    force: bool,
}

const EXAMPLES: &str = "\
Examples:
  windlass db restore windlass-2026-11-20.db --replace
  windlass --db /var/lib/windlass/jobs.db db restore /backups/jobs.db
  windlass db restore --fence        # after pg_restore

Nothing may run in the database. The backup is checked first, and then replaces it all at once.
What was done after the backup was made is unknown to it and is done again, under the same
idempotency keys. New jobs get keys of their own. Schedules are paused.";

/// Restores, and tells what to look at next.
pub(crate) fn execute(global: &GlobalOptions, args: &RestoreArgs) -> Result<(), Failure> {
    let place = global.database().place()?;
    let (restored, from) = match &args.backup {
        Some(backup) => (from_file(global, &place, backup, args)?, Some(backup)),
        None => (Database::as_it_is(global)?.ask(|store| store.upkeep().finish_restore())?, None),
    };
    let view = view(&place, from.map(PathBuf::as_path), &restored);
    Output { format: global.output }.object(&view, |_| text(global, &place, from, &restored))
}

fn from_file(
    global: &GlobalOptions,
    place: &Place,
    backup: &Path,
    args: &RestoreArgs,
) -> Result<Restored, Failure> {
    let path = match place {
        Place::File(path) => path,
        #[cfg(feature = "postgres")]
        Place::Server { address, for_libpq } => return Err(on_server(global, address, for_libpq)),
    };
    if path.symlink_metadata().is_ok() {
        let present = Database::as_it_is(global).map_err(|failure| about_target(path, failure))?;
        if !args.replace {
            refuse_to_replace(global, &present, path, backup)?;
        }
        drop(present);
    }
    let broken = if args.force { BrokenRules::Accept } else { BrokenRules::Refuse };
    Windlass::restore(backup, path, broken).map_err(|error| failure(global, path, backup, error))
}

/// What nobody has a copy of is not deleted for a word that may have been mistyped.
fn refuse_to_replace(
    global: &GlobalOptions,
    present: &Database,
    path: &Path,
    backup: &Path,
) -> Result<(), Failure> {
    let stats = present.ask(|store| store.upkeep().stats())?;
    let (runs, jobs) = (stats.runs.iter().map(|(_status, runs)| runs).sum::<i64>(), stats.jobs.total());
    if runs == 0 && jobs == 0 {
        return Ok(());
    }
    let restore = global.hint(&format!("db restore {} --replace", quoted(&backup.to_string_lossy())));
    Err(Failure::Conflict {
        message: format!(
            "{} is not restored: it has runs ({runs}) and jobs ({jobs}), and they would be gone",
            path.display()
        ),
        help: format!("`{}` keeps a copy of it, `{restore}` replaces it", global.hint("db backup COPY")),
    })
}

fn failure(global: &GlobalOptions, path: &Path, backup: &Path, error: Error) -> Failure {
    if let Error::Conflict { reason, .. } = &error {
        let shown = quoted(&backup.to_string_lossy());
        return Failure::Conflict {
            message: format!("{} is not restored: {reason}", path.display()),
            help: if reason.starts_with("the backup") {
                format!(
                    "`windlass db check --db {shown}` shows all of them; --force restores it nevertheless"
                )
            } else {
                "end it (Ctrl-C or SIGTERM), and restore then; one that can't be seen from here counts as gone when \
                 its lease ends"
                    .to_owned()
            },
        };
    }
    if let Error::Unavailable { reason: Unavailable::Missing(_), .. } = &error {
        return Failure::not_found(
            format!("there is no backup at {}", backup.display()),
            "check the spelling, and the folder you are in",
        );
    }
    Failure::from_engine(error, &Place::File(backup.to_owned()), |verb| global.hint(verb))
}

/// A file that can't be opened can't be asked whether somebody works with it.
fn about_target(path: &Path, failure: Failure) -> Failure {
    let Failure::Database { message, help } = failure else { return failure };
    let path = quoted(&path.to_string_lossy());
    Failure::Database {
        message: format!("what is to be replaced can't be read: {message}"),
        help: format!(
            "{help}\nor stop everything that uses it (`fuser {path}`), move it away with what lies beside it, and \
             restore again:\nfor part in '' -wal -shm; do test -e {path}$part && mv {path}$part {path}.old$part; done"
        ),
    }
}

/// A server has its own tools, and this does what they can't know.
#[cfg(feature = "postgres")]
fn on_server(global: &GlobalOptions, address: &windlass::PostgresAddress, for_libpq: &str) -> Failure {
    let (schema, url) = (address.schema(), quoted(for_libpq));
    Failure::usage(
        format!("`db restore BACKUP` brings back a file, and {address} is on a server"),
        format!(
            "stop all workers, put the dump of `pg_dump --format=custom --schema={schema}` back, and then fence what \
             was alive in it:\n\
             psql --dbname={url} --command='DROP SCHEMA {schema} CASCADE'\n\
             pg_restore --single-transaction --dbname={url} windlass.dump\n\
             {}",
            global.hint("db restore --fence")
        ),
    )
}

fn view(place: &Place, backup: Option<&Path>, restored: &Restored) -> Value {
    json!({
        "database": place.to_string(),
        "backup": backup.map(|path| path.to_string_lossy()),
        "fenced_workers": restored.fenced_workers,
        "paused_schedules": restored.paused_schedules,
        "interrupted_jobs": restored.interrupted_jobs,
        "interrupted": restored.interrupted,
        "unfinished_runs": restored.unfinished_runs,
        "pending_jobs": restored.pending_jobs,
        "waiting_jobs": restored.waiting_jobs,
    })
}

fn text(global: &GlobalOptions, place: &Place, backup: Option<&PathBuf>, restored: &Restored) -> String {
    let mut text = match backup {
        Some(backup) => format!("{place} is restored from {}, which is sound\n", backup.display()),
        None => format!("{place} is fenced\n"),
    };
    let mut line = |words: String| {
        text.push_str(&words);
        text.push('\n');
    };
    line(format!("workers of that time that may do nothing any more: {}", restored.fenced_workers));
    line(format!("schedules that were paused: {}", restored.paused_schedules));
    line(format!("jobs that ran at that time: {}{}", restored.interrupted_jobs, labels(restored)));
    line(format!("runs that are not over: {}", restored.unfinished_runs));
    line(format!(
        "jobs that the next worker may start at once: {}; that wait for something: {}",
        restored.pending_jobs, restored.waiting_jobs
    ));
    line("\nnext, before any worker starts:".to_owned());
    line(format!("  {:<38}   what is not over", global.hint("runs --status RUNNING")));
    line(format!("  {:<40} what must not go on", global.hint("cancel RUN")));
    if restored.paused_schedules > 0 {
        line(format!("  {:<40} each that may start again", global.hint("schedule resume NAME")));
    }
    text
}

fn labels(restored: &Restored) -> String {
    if restored.interrupted.is_empty() {
        return String::new();
    }
    let more = restored.interrupted_jobs - restored.interrupted.len() as i64;
    let rest = if more > 0 { format!(", and {more} more") } else { String::new() };
    format!(" ({}{rest})", restored.interrupted.join(", "))
}
