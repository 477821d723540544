//! Moving everything from one database to another, whichever they are.
//!
//! One snapshot of the source becomes one transaction of the target: a copy that dies leaves nothing behind
//! and is simply made again. Ids stay what they are, so that links, keys and people's notes stay right.
//!
//! The rules are checked before and after the two transactions stand open together: a server ends a transaction
//! that says nothing for some seconds, and to read a large database as a whole takes longer.

mod tables;

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
/// Rules shown that a database breaks, at most.
const SHOWN_MAX: usize = 3;

/// What was copied: (table, rows), in the order of copying.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Copied {
    /// A row for each table.
    pub tables: Vec<(&'static str, i64)>,
}

/// Why nothing was copied, by the database that stands in the way.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CopyError {
    /// The one to copy.
    #[error("the source: {0}")]
    Source(Error),
    /// The one to fill.
    #[error("the target: {0}")]
    Target(Error),
}

/// Which of the two databases was asked last: an error is its.
#[derive(Default)]
struct Asked {
    is_source: AtomicBool,
}

impl Asked {
    fn set_source(&self, is_source: bool) {
        self.is_source.store(is_source, Ordering::Relaxed);
    }

    /// Asks the target something, in the middle of questions to the source.
    fn target<T>(&self, ask: impl FnOnce() -> Result<T>) -> Result<T> {
        self.set_source(false);
        let answer = ask()?;
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
    /// Copies everything into another database that holds nothing yet. Runs in the middle go on there.
    ///
    /// # Errors
    /// [`Error::Conflict`] when something runs in the source, when the target is not empty, or when the source
    /// breaks a rule; and the databases', each with whose it is. Then the target is as it was.
    pub fn copy_to(&self, target: &Store) -> std::result::Result<Copied, CopyError> {
        let source = Arc::clone(&self.store.database);
        let now_ms = self.store.clock.now_ms();
        self.store.read(|from| refuse_broken(from, "source", now_ms)).map_err(CopyError::Source)?;
        let asked = Arc::new(Asked::default());
        let of_write = Arc::clone(&asked);
        let copied = target.write(OPERATION, Evidence::Token, move |to| {
            of_write.set_source(false);
            let copied = copy(&*source, to, &of_write)?;
            analyze(to)?;
            verify(to, &copied, now_ms)?;
            Ok(copied)
        });
        copied.map_err(|error| asked.error(error))
    }
}

fn copy(source: &dyn Database, to: &mut dyn Connection, asked: &Asked) -> Result<Copied> {
    refuse_rows(to)?;
    let mut has_begun = false;
    let mut copied = Ok(Copied::default());
    asked.set_source(true);
    source.read(&mut |from| {
        // The snapshot is gone: what another one shows does not fit what was copied.
        if has_begun {
            return Ok(());
        }
        refuse_what_runs(from, "source")?;
        // Before that the source's transaction may not have begun, and is begun again.
        has_begun = true;
        copied = copy_all(from, to, asked);
        copied.as_ref().map(|_copied| ()).map_err(Error::clone)
    })?;
    asked.set_source(copied.is_err());
    copied
}

fn copy_all(from: &mut dyn Connection, to: &mut dyn Connection, asked: &Asked) -> Result<Copied> {
    let mut copied = Copied::default();
    for table in COPIED_TABLES {
        let rows = copy_table(table, from, to, asked)?;
        copied.tables.push((table.name, rows));
    }
    // The target has a name of its own.
    continue_ids(from, to, asked)?;
    Ok(copied)
}

/// A worker that lives may change any row at any moment, also while it has no job.
fn refuse_what_runs(connection: &mut dyn Connection, which: &str) -> Result<()> {
    let (workers, jobs) = one(
        connection,
        "SELECT (SELECT count(*) FROM workers WHERE status IN ('ALIVE', 'DRAINING')),
                (SELECT count(*) FROM jobs WHERE status = 'RUNNING')",
        &[],
        |row| Ok((row.integer(0)?, row.integer(1)?)),
    )?;
    if workers == 0 && jobs == 0 {
        return Ok(());
    }
    let reason = format!("{workers} workers are alive and {jobs} jobs run in the {which}; stop them first");
    Err(Error::conflict(OPERATION, reason))
}

fn refuse_broken(connection: &mut dyn Connection, which: &str, now_ms: i64) -> Result<()> {
    refuse_what_runs(connection, which)?;
    let problems = broken_rules(connection, now_ms)?;
    if problems.is_empty() {
        return Ok(());
    }
    let shown: Vec<&str> = problems.iter().take(SHOWN_MAX).map(|problem| problem.detail.as_str()).collect();
    let reason = format!("the {which} breaks {} rules: {}", problems.len(), shown.join("; "));
    Err(Error::conflict(OPERATION, reason))
}

fn refuse_rows(to: &mut dyn Connection) -> Result<()> {
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
    asked: &Asked,
) -> Result<i64> {
    let mut key = table.before_first();
    let mut copied = 0;
    loop {
        let rows = table.rows_after(from, &key)?;
        let Some(last) = rows.last() else { return Ok(copied) };
        key = table.key_of(last);
        let written = asked.target(|| table.write(to, &rows))?;
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

/// No id is given out twice, also none whose row was pruned before.
fn continue_ids(from: &mut dyn Connection, to: &mut dyn Connection, asked: &Asked) -> Result<()> {
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
        asked.target(|| to.batch(&continue_from))?;
    }
    Ok(())
}

/// Tells the server how many rows there are now. It sees the rows of this transaction only when it is told to look, and what
/// it knows may be from an interrupted copy: many pages and no rows, for which it would read all of `jobs` for each edge.
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

/// The columns of every table, for the comparison with the schema.
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
