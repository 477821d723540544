//! Copying a whole database into another one, of the same kind or the other.
//!
//! One snapshot of the source becomes one transaction in the target, so that an interrupted copy leaves nothing
//! behind and can be started again. Ids stay the same, so that links, keys and people's notes remain valid.
//!
//! The invariants are checked outside the time in which both transactions are open. Reading a whole large database
//! takes long, and a server ends a transaction that is silent for some seconds.

mod tables;

use crate::files::RunFiles;
use crate::store::Upkeep;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Store;
use super::check::broken_rules;
use super::evidence::Evidence;
use tables::{CHUNK, COPIED_TABLES, Table};
use windlass_db::error::{Error, Result};
use windlass_db::{Connection, Database, one};

const OPERATION: &str = "copy a database";
/// How many broken rules of a database are shown.
const SHOWN_MAX: usize = 3;

/// How many rows were copied.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Copied {
    /// (table, rows), in the order of copying.
    pub tables: Vec<(&'static str, i64)>,
}

/// Why nothing was copied, and which database is to blame.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CopyError {
    /// The database to copy.
    #[error("the source: {0}")]
    Source(Error),
    /// The database to fill.
    #[error("the target: {0}")]
    Target(Error),
}

/// Remembers which of the two databases was used last, because an error comes from that one.
#[derive(Default)]
struct LastUsed {
    is_source: AtomicBool,
}

impl LastUsed {
    fn set_source(&self, is_source: bool) {
        self.is_source.store(is_source, Ordering::Relaxed);
    }

    /// Uses the target for a moment while reading from the source.
    fn with_target<T>(&self, action: impl FnOnce() -> Result<T>) -> Result<T> {
        self.set_source(false);
        let answer = action()?;
        self.set_source(true);
        Ok(answer)
    }

    fn error(&self, error: Error) -> CopyError {
        match self.is_source.load(Ordering::Relaxed) {
            true => CopyError::Source(error),
            false => CopyError::Target(error),
        }
    }
}

impl Upkeep<'_> {
    /// Copies everything into another, empty database. Unfinished runs can be continued there.
    ///
    /// # Errors
    /// [`Error::Conflict`] if the target is not empty, or if the source has live workers or breaks an invariant; and
    /// the errors of both databases. Each error says which database it comes from. The target is unchanged.
    pub fn copy_to(&self, target: &Store) -> std::result::Result<Copied, CopyError> {
        let source = Arc::clone(&self.store.database);
        let now_ms = self.store.clock.now_ms();
        self.store.read(|from| refuse_if_broken(from, "source", now_ms)).map_err(CopyError::Source)?;
        let last_used = Arc::new(LastUsed::default());
        let in_write = Arc::clone(&last_used);
        let files = (self.store.files().cloned(), target.files().cloned());
        let copied = target.write(OPERATION, Evidence::Token, move |to| {
            in_write.set_source(false);
            let copied = copy(&*source, to, &in_write)?;
            copy_files(&files)?;
            analyze(to)?;
            verify(to, &copied, now_ms)?;
            Ok(copied)
        });
        copied.map_err(|error| last_used.error(error))
    }
}

/// Copies the files of runs. If the transaction is not kept, no row names them, and they are removed.
fn copy_files((source, target): &(Option<RunFiles>, Option<RunFiles>)) -> Result<()> {
    let Some(source) = source.as_ref().filter(|files| files.exists()) else { return Ok(()) };
    let Some(target) = target else {
        let reason = "it needs a folder for files of runs: set `dir` under [files] in windlass.toml, or WINDLASS_FILES";
        return Err(Error::invalid(OPERATION, reason));
    };
    source.copy_to(target).map_err(|error| Error::conflict(OPERATION, format!("a file of a run: {error}")))
}

fn copy(source: &dyn Database, to: &mut dyn Connection, last_used: &LastUsed) -> Result<Copied> {
    refuse_if_not_empty(to)?;
    let mut has_begun = false;
    let mut copied = Ok(Copied::default());
    last_used.set_source(true);
    source.read(&mut |from| {
        // This is a second attempt in a new snapshot, which does not fit what was copied from the first one.
        if has_begun {
            return Ok(());
        }
        refuse_if_in_use(from, "source")?;
        // Until now the source's transaction may be started again.
        has_begun = true;
        copied = copy_all(from, to, last_used);
        copied.as_ref().map(|_copied| ()).map_err(Error::clone)
    })?;
    last_used.set_source(copied.is_err());
    copied
}

fn copy_all(from: &mut dyn Connection, to: &mut dyn Connection, last_used: &LastUsed) -> Result<Copied> {
    let mut copied = Copied::default();
    for table in COPIED_TABLES {
        let rows = copy_table(table, from, to, last_used)?;
        copied.tables.push((table.name, rows));
    }
    // The target keeps its own name.
    continue_ids(from, to, last_used)?;
    Ok(copied)
}

/// Refuses a database that is in use: a live worker may change any row at any moment, even while it has no job.
fn refuse_if_in_use(connection: &mut dyn Connection, which: &str) -> Result<()> {
    let (workers, jobs) = one(
        connection,
        "SELECT (SELECT count(*) FROM workers WHERE status IN ('ALIVE', 'DRAINING')),
                (SELECT count(*) FROM jobs WHERE worker_id IS NOT NULL AND status = 'RUNNING')",
        &[],
        |row| Ok((row.integer(0)?, row.integer(1)?)),
    )?;
    if workers == 0 && jobs == 0 {
        return Ok(());
    }
    let reason = format!("{workers} workers are alive and {jobs} jobs run in the {which}; stop them first");
    Err(Error::conflict(OPERATION, reason))
}

fn refuse_if_broken(connection: &mut dyn Connection, which: &str, now_ms: i64) -> Result<()> {
    refuse_if_in_use(connection, which)?;
    let problems = broken_rules(connection, now_ms)?;
    if problems.is_empty() {
        return Ok(());
    }
    let shown: Vec<&str> = problems.iter().take(SHOWN_MAX).map(|problem| problem.detail.as_str()).collect();
    let reason = format!("the {which} breaks {} rules: {}", problems.len(), shown.join("; "));
    Err(Error::conflict(OPERATION, reason))
}

fn refuse_if_not_empty(to: &mut dyn Connection) -> Result<()> {
    for table in COPIED_TABLES {
        let rows = table.count(to)?;
        if rows > 0 {
            let reason = format!("the target is not empty: it has {rows} {}", table.name);
            return Err(Error::conflict(OPERATION, reason));
        }
    }
    Ok(())
}

fn copy_table(
    table: &Table,
    from: &mut dyn Connection,
    to: &mut dyn Connection,
    last_used: &LastUsed,
) -> Result<i64> {
    let mut key = table.before_first();
    let mut copied = 0;
    loop {
        let rows = table.rows_after(from, &key)?;
        let Some(last) = rows.last() else { return Ok(copied) };
        key = table.key_of(last);
        let written = last_used.with_target(|| table.write(to, &rows))?;
        if written != rows.len() as u64 {
            let detail = format!("of {} rows of {} {written} were written", rows.len(), table.name);
            return Err(Error::internal(OPERATION, detail));
        }
        copied += rows.len() as i64;
        if rows.len() < CHUNK {
            return Ok(copied);
        }
    }
}

/// Continues the sequences of ids, so that no id is used twice, not even one whose row was pruned.
fn continue_ids(from: &mut dyn Connection, to: &mut dyn Connection, last_used: &LastUsed) -> Result<()> {
    const NEXT_IDS: &[(&str, &str)] = &[
        ("workflows", "SELECT {next_id workflows}"),
        ("schedules", "SELECT {next_id schedules}"),
        ("runs", "SELECT {next_id runs}"),
        ("jobs", "SELECT {next_id jobs}"),
        ("workers", "SELECT {next_id workers}"),
    ];
    for (table, sql) in NEXT_IDS {
        let next_id = one(from, sql, &[], |row| row.integer(0))?;
        let continue_from = to.dialect().continue_ids(table, next_id);
        last_used.with_target(|| to.batch(&continue_from))?;
    }
    Ok(())
}

/// Updates the server's statistics, because only an explicit ANALYZE counts the rows of an open transaction. Old
/// statistics may come from an interrupted copy, with many pages and no rows, and the server would then read all of
/// `jobs` for each edge.
fn analyze(to: &mut dyn Connection) -> Result<()> {
    match to.dialect().analyze(&COPIED_TABLES.iter().map(|table| table.name).collect::<Vec<_>>()) {
        Some(sql) => to.batch(&sql),
        None => Ok(()),
    }
}

fn verify(to: &mut dyn Connection, copied: &Copied, now_ms: i64) -> Result<()> {
    for (table, (name, read)) in COPIED_TABLES.iter().zip(&copied.tables) {
        let written = table.count(to)?;
        if written != *read {
            let detail = format!("{name} has {read} rows in the source and {written} in the target");
            return Err(Error::internal(OPERATION, detail));
        }
    }
    let problems = broken_rules(to, now_ms)?;
    match problems.first() {
        None => Ok(()),
        Some(problem) => {
            Err(Error::internal(OPERATION, format!("the copy breaks a rule: {}", problem.detail)))
        }
    }
}

/// The columns of every table, to compare them with the schema.
#[cfg(test)]
pub(super) fn columns() -> Vec<(&'static str, Vec<&'static str>)> {
    COPIED_TABLES
        .iter()
        .map(|table| (table.name, table.columns.iter().map(|(name, _kind)| *name).collect()))
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use windlass_db::all;
    use windlass_db::sqlite::{SqliteDatabase, SqliteOptions};

    #[test]
    fn every_column_of_every_table_is_copied() {
        let folder = tempfile::tempdir().unwrap();
        let database = SqliteDatabase::open(
            &folder.path().join("windlass.db"),
            &crate::TABLES,
            &SqliteOptions::default(),
        )
        .unwrap();
        let mut found = Vec::new();
        database
            .read(&mut |connection| {
                found = all(
                    connection,
                    "SELECT tables.name, group_concat(columns.name)
                     FROM sqlite_master AS tables JOIN pragma_table_info(tables.name) AS columns
                     WHERE tables.type = 'table' AND tables.name NOT LIKE 'sqlite_%'
                       AND tables.name NOT IN ('schema_migrations', 'instance', 'commit_tokens')
                     GROUP BY tables.name ORDER BY tables.name",
                    &[],
                    |row| Ok((row.text(0)?, row.text(1)?)),
                )?;
                Ok(())
            })
            .unwrap();
        let mut copied: Vec<(String, String)> =
            columns().into_iter().map(|(table, columns)| (table.to_owned(), columns.join(","))).collect();
        copied.sort();
        assert_eq!(copied, found);
    }
}
