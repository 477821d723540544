//! The references: minimal programs that do the same work through the same library. All SQL of this crate is here.
//!
//! A reference is a table with the few columns that a queue needs, and one partial index for claiming. It has the durability of
//! Windlass, and uses prepared statements. Inserting, claiming and finishing are timed separately, in transactions of a group
//! of rows. On SQLite a claim selects the lowest pending ids and updates each row by its id; a finish updates each row by its
//! id. On PostgreSQL each of the three is one statement for a whole group.

#[cfg(feature = "postgres")]
pub(crate) mod postgres;
mod spawn;
pub(crate) mod sqlite;

use std::path::Path;
use std::time::{Duration, Instant};

use windlass_db::Durability;

use crate::error::BenchError;
use crate::interruption::Interruption;

use spawn::spawn;
pub(crate) use spawn::{spawn_chain, spawn_fan};

/// A database with the table of the references.
pub(crate) enum Raw {
    Sqlite(sqlite::RawSqlite),
    #[cfg(feature = "postgres")]
    Postgres(Box<postgres::RawPostgres>),
}

/// The times for a number of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RawTimes {
    pub(crate) rows: usize,
    pub(crate) insert: Duration,
    pub(crate) claim: Duration,
    pub(crate) finish: Duration,
}

/// Rows that are inserted into the table `jobs` by SQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rows {
    /// A quarter each of finished, blocked and delayed rows, and of pending rows of a kind that no worker executes.
    NotClaimable(usize),
    /// No-op jobs that can be claimed.
    Pending(usize),
}

impl Raw {
    pub(crate) fn file(path: &Path, durability: Durability) -> Result<Raw, BenchError> {
        Ok(Raw::Sqlite(sqlite::RawSqlite::open(path, durability)?))
    }

    #[cfg(feature = "postgres")]
    pub(crate) fn server(url: &str, schema: &str, durability: Durability) -> Result<Raw, BenchError> {
        Ok(Raw::Postgres(Box::new(postgres::RawPostgres::open(url, schema, durability)?)))
    }

    /// The name and version of the database, and why its commits would not survive a power cut, if that is so.
    pub(crate) fn describe(&mut self) -> Result<(String, Option<String>), BenchError> {
        match self {
            Raw::Sqlite(_) => Ok((format!("SQLite {}", rusqlite::version()), None)),
            #[cfg(feature = "postgres")]
            Raw::Postgres(raw) => raw.describe(),
        }
    }

    /// Inserts, claims and finishes `rows` rows in transactions of `group`.
    pub(crate) fn rows(
        &mut self,
        rows: usize,
        group: usize,
        interruption: &Interruption,
    ) -> Result<RawTimes, BenchError> {
        let insert = self.inserts(rows, group, interruption)?;
        let mut times = RawTimes { rows, insert, claim: Duration::ZERO, finish: Duration::ZERO };
        for first in (0..rows).step_by(group) {
            interruption.check()?;
            let began = Instant::now();
            let claimed = self.claim(group.min(rows - first))?;
            times.claim += began.elapsed();
            let began = Instant::now();
            self.finish(&claimed)?;
            times.finish += began.elapsed();
        }
        Ok(times)
    }

    /// Inserts `rows` rows in transactions of `group`.
    pub(crate) fn inserts(
        &mut self,
        rows: usize,
        group: usize,
        interruption: &Interruption,
    ) -> Result<Duration, BenchError> {
        let began = Instant::now();
        for first in (0..rows).step_by(group) {
            interruption.check()?;
            self.insert(group.min(rows - first))?;
        }
        Ok(began.elapsed())
    }

    /// Inserts one row a transaction.
    pub(crate) fn commits(&mut self, commits: usize) -> Result<Duration, BenchError> {
        let began = Instant::now();
        for _commit in 0..commits {
            self.insert(1)?;
        }
        Ok(began.elapsed())
    }

    /// Alternately starts `true` and waits for its end, and inserts a row in a transaction; after every second process it
    /// inserts another row. So each process starts after a flush, as in a chain.
    pub(crate) fn processes_and_commits(
        &mut self,
        processes: usize,
        interruption: &Interruption,
    ) -> Result<Duration, BenchError> {
        let began = Instant::now();
        for process in 0..processes {
            interruption.check()?;
            spawn()?;
            self.insert(1)?;
            if process % 2 == 1 {
                self.insert(1)?;
            }
        }
        Ok(began.elapsed())
    }

    fn insert(&mut self, rows: usize) -> Result<(), BenchError> {
        match self {
            Raw::Sqlite(raw) => raw.insert(rows),
            #[cfg(feature = "postgres")]
            Raw::Postgres(raw) => raw.insert(rows),
        }
    }

    fn claim(&mut self, rows: usize) -> Result<Vec<i64>, BenchError> {
        match self {
            Raw::Sqlite(raw) => raw.claim(rows),
            #[cfg(feature = "postgres")]
            Raw::Postgres(raw) => raw.claim(rows),
        }
    }

    fn finish(&mut self, ids: &[i64]) -> Result<(), BenchError> {
        match self {
            Raw::Sqlite(raw) => raw.finish(ids),
            #[cfg(feature = "postgres")]
            Raw::Postgres(raw) => raw.finish(ids),
        }
    }
}

impl RawTimes {
    /// Rows a second through claim and finish.
    pub(crate) fn without_insert(self) -> f64 {
        self.rate(self.claim + self.finish)
    }

    /// Rows a second through insert, claim and finish.
    pub(crate) fn with_insert(self) -> f64 {
        self.rate(self.insert + self.claim + self.finish)
    }

    fn rate(self, time: Duration) -> f64 {
        self.rows as f64 / time.as_secs_f64()
    }
}
