//! `windlass db restore`: replaces the database with a backup.

use std::path::{Path, PathBuf};

use clap::Args;
use windlass::{BrokenRules, Windlass};
use windlass_db::{Error, Unavailable};
use windlass_engine::store::Restored;
use windlass_views::RestoredView;

use crate::arguments::{DatabaseAddress, GlobalOptions};
use crate::database::Database;
use crate::engine_errors;
use crate::error::Failure;
use crate::output::Output;
use crate::shell_words::quoted;

/// Replace the database with a backup, and pause all schedules
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RestoreArgs {
    /// A file made by `windlass db backup`; it stays unchanged
    #[arg(value_name = "BACKUP", required_unless_present = "fence")]
    backup: Option<PathBuf>,

    /// Only fence the former workers and pause the schedules, after another tool (pg_restore) restored the rows
    #[arg(long, conflicts_with_all = ["backup", "force", "replace"])]
    fence: bool,

    /// Replace a database that has runs or jobs, and lose them
    #[arg(long)]
    replace: bool,

    /// Restore the backup even if `windlass db check` finds problems in it
    #[arg(long)]
    force: bool,
}

const EXAMPLES: &str = "\
Examples:
  windlass db restore windlass-2026-11-20.db --replace
  windlass --db /var/lib/windlass/jobs.db db restore /backups/jobs.db
  windlass db restore --fence        # after pg_restore

No worker may use the database. The backup is checked first, and then replaces
everything at once. Jobs that ran after the backup was made are executed
again, with the same idempotency keys. New jobs get new keys. All schedules
are paused.";

/// Restores the backup and prints the next steps.
pub(crate) fn execute(global: &GlobalOptions, args: &RestoreArgs) -> Result<(), Failure> {
    let address = global.database().address()?;
    let (restored, from) = match &args.backup {
        Some(backup) => (from_file(global, &address, backup, args)?, Some(backup)),
        None => (
            Database::existing_without_rescue(global)?.ask(|store| store.for_restore().finish_restore())?,
            None,
        ),
    };
    let view = view(&address, from.map(PathBuf::as_path), &restored);
    Output { format: global.output }.object(&view, |_| text(global, &address, from, &restored))
}

fn from_file(
    global: &GlobalOptions,
    address: &DatabaseAddress,
    backup: &Path,
    args: &RestoreArgs,
) -> Result<Restored, Failure> {
    let path = match address {
        DatabaseAddress::File(path) => path,
        #[cfg(feature = "postgres")]
        DatabaseAddress::Server { address, for_libpq } => return Err(on_server(global, address, for_libpq)),
    };
    if path.symlink_metadata().is_ok() {
        let present =
            Database::existing_without_rescue(global).map_err(|failure| about_target(path, failure))?;
        if !args.replace {
            refuse_to_replace(global, &present, path, backup)?;
        }
        drop(present);
    }
    let broken = if args.force { BrokenRules::Accept } else { BrokenRules::Refuse };
    Windlass::restore(backup, path, broken).map_err(|error| failure(global, path, backup, error))
}

/// Refuses to delete existing runs and jobs without `--replace`.
fn refuse_to_replace(
    global: &GlobalOptions,
    present: &Database,
    path: &Path,
    backup: &Path,
) -> Result<(), Failure> {
    let stats = present.ask(|store| store.upkeep().exact_stats())?;
    let runs: i64 = stats.runs.iter().map(|(_status, count)| count.number).sum();
    let jobs = stats.jobs.total();
    if runs == 0 && jobs == 0 {
        return Ok(());
    }
    let restore = global.hint(&format!("db restore {} --replace", quoted(&backup.to_string_lossy())));
    Err(Failure::Conflict {
        message: format!(
            "{} is not replaced: its runs ({runs}) and jobs ({jobs}) would be lost",
            path.display()
        ),
        help: format!(
            "make a copy with `{}`, then replace it with `{restore}`",
            global.hint("db backup COPY")
        ),
    })
}

fn failure(global: &GlobalOptions, path: &Path, backup: &Path, error: Error) -> Failure {
    if let Error::Conflict { reason, .. } = &error {
        let shown = quoted(&backup.to_string_lossy());
        return Failure::Conflict {
            message: format!("{} is not restored: {reason}", path.display()),
            help: if reason.starts_with("the backup") {
                format!(
                    "`windlass db check --db {shown}` shows all problems; --force restores the backup anyway"
                )
            } else {
                "stop it (Ctrl-C or SIGTERM), then try again; a worker on another machine counts as gone when its \
                 lease ends"
                    .to_owned()
            },
        };
    }
    if let Error::Unavailable { reason: Unavailable::Missing(_), .. } = &error {
        return Failure::not_found(
            format!("there is no backup at {}", backup.display()),
            "check the spelling and the current folder",
        );
    }
    engine_errors::failure(error, &DatabaseAddress::File(backup.to_owned()), |verb| global.hint(verb))
}

/// The existing database cannot be opened, so it is unknown whether a worker uses it.
fn about_target(path: &Path, failure: Failure) -> Failure {
    let Failure::Database { message, help } = failure else { return failure };
    let path = quoted(&path.to_string_lossy());
    Failure::Database {
        message: format!("the existing database cannot be read: {message}"),
        help: format!(
            "{help}\nor stop all programs that use it (`fuser {path}`), move it and its -wal and -shm files away, and \
             restore again:\nfor part in '' -wal -shm; do test -e {path}$part && mv {path}$part {path}.old$part; done"
        ),
    }
}

/// For a server, pg_restore restores the rows, and `--fence` does the rest.
#[cfg(feature = "postgres")]
fn on_server(
    global: &GlobalOptions,
    address: &windlass_db::postgres::PostgresAddress,
    for_libpq: &str,
) -> Failure {
    let (schema, url) = (address.schema(), quoted(for_libpq));
    Failure::usage(
        format!("`db restore BACKUP` restores a SQLite file, and {address} is on a server"),
        format!(
            "stop all workers, restore the dump of `pg_dump --format=custom --schema={schema}`, then fence the former \
             workers:\n\
             psql --dbname={url} --command='DROP SCHEMA {schema} CASCADE'\n\
             pg_restore --single-transaction --dbname={url} windlass.dump\n\
             {}",
            global.hint("db restore --fence")
        ),
    )
}

fn view(address: &DatabaseAddress, backup: Option<&Path>, restored: &Restored) -> RestoredView {
    RestoredView {
        database: address.to_string(),
        backup: backup.map(|path| path.to_string_lossy().into_owned()),
        fenced_workers: restored.fenced_workers,
        paused_schedules: restored.paused_schedules,
        interrupted_jobs: restored.interrupted_jobs,
        interrupted: restored.interrupted.clone(),
        unfinished_runs: restored.unfinished_runs,
        unfinished: restored.unfinished.clone(),
        undispatched: restored.undispatched,
        pending_jobs: restored.pending_jobs,
        waiting_jobs: restored.waiting_jobs,
    }
}

fn text(
    global: &GlobalOptions,
    address: &DatabaseAddress,
    backup: Option<&PathBuf>,
    restored: &Restored,
) -> String {
    let mut text = match backup {
        Some(backup) => {
            format!("{address} is restored from {}, which was checked and is sound\n", backup.display())
        }
        None => format!("the former workers of {address} are fenced\n"),
    };
    let mut line = |words: String| {
        text.push_str(&words);
        text.push('\n');
    };
    line(format!("former workers that were fenced: {}", restored.fenced_workers));
    line(format!("schedules that were paused: {}", restored.paused_schedules));
    line(format!("jobs that were running: {}{}", restored.interrupted_jobs, labels(restored)));
    line(format!("unfinished runs: {}{}", restored.unfinished_runs, run_ids(restored)));
    line(format!(
        "jobs that the next worker starts: {}; jobs that wait: {}",
        restored.pending_jobs, restored.waiting_jobs
    ));
    if restored.undispatched > 0 {
        line(format!("events and ends of runs for which triggers may start runs: {}", restored.undispatched));
    }
    line("\nnext steps, before you start a worker:".to_owned());
    line(format!("  {:<38}   list unfinished runs", global.hint("runs --status RUNNING")));
    line(format!("  {:<40} cancel runs that must not continue", global.hint("cancel RUN")));
    if restored.undispatched > 0 {
        line(format!(
            "  {:<40} let the triggers of a workflow start nothing",
            global.hint("workflows pause NAME")
        ));
    }
    if restored.paused_schedules > 0 {
        line(format!(
            "  {:<40} resume each schedule that may fire again",
            global.hint("schedule resume NAME")
        ));
    }
    text
}

/// Which runs to look at.
fn run_ids(restored: &Restored) -> String {
    if restored.unfinished.is_empty() {
        return String::new();
    }
    let ids: Vec<String> = restored.unfinished.iter().map(i64::to_string).collect();
    let more = restored.unfinished_runs - ids.len() as i64;
    let rest = if more > 0 { format!(", and {more} more") } else { String::new() };
    format!(" ({}{rest})", ids.join(", "))
}

fn labels(restored: &Restored) -> String {
    if restored.interrupted.is_empty() {
        return String::new();
    }
    let more = restored.interrupted_jobs - restored.interrupted.len() as i64;
    let rest = if more > 0 { format!(", and {more} more") } else { String::new() };
    format!(" ({}{rest})", restored.interrupted.join(", "))
}
