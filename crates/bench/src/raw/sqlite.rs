//! The references on SQLite, and rows for the tables of Windlass.

use std::path::Path;

use rusqlite::Connection;
use windlass_db::Durability;

use super::Rows;
use crate::error::BenchError;
use crate::interruption::Interruption;

/// The rows that are inserted between two checks for an interruption.
const CHUNK: usize = 100_000;
/// How long a statement waits for another connection.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(10);

/// A file with the table of the references.
pub(crate) struct RawSqlite {
    connection: Connection,
}

impl RawSqlite {
    pub(super) fn open(path: &Path, durability: Durability) -> Result<RawSqlite, BenchError> {
        let connection = Connection::open(path)?;
        let synchronous = match durability {
            Durability::Full => "FULL",
            Durability::Normal => "NORMAL",
        };
        connection.execute_batch(&format!(
            "PRAGMA journal_mode = WAL;
             PRAGMA synchronous = {synchronous};
             CREATE TABLE work (
                 id           INTEGER PRIMARY KEY,
                 payload      TEXT NOT NULL,
                 status       TEXT NOT NULL,
                 attempt      INTEGER NOT NULL DEFAULT 0,
                 worker_id    INTEGER,
                 finished_at  INTEGER
             ) STRICT;
             CREATE INDEX work_pending ON work (id) WHERE status = 'PENDING';"
        ))?;
        Ok(RawSqlite { connection })
    }

    pub(super) fn insert(&mut self, rows: usize) -> Result<(), BenchError> {
        let transaction = self.connection.transaction()?;
        {
            let sql = "INSERT INTO work (payload, status) VALUES (?1, 'PENDING')";
            let mut insert = transaction.prepare_cached(sql)?;
            for _row in 0..rows {
                insert.execute(["null"])?;
            }
        }
        Ok(transaction.commit()?)
    }

    pub(super) fn claim(&mut self, rows: usize) -> Result<Vec<i64>, BenchError> {
        let transaction = self.connection.transaction()?;
        let ids = {
            let mut select = transaction
                .prepare_cached("SELECT id FROM work WHERE status = 'PENDING' ORDER BY id LIMIT ?1")?;
            let found = select.query_map([rows as i64], |row| row.get(0))?;
            let ids = found.collect::<rusqlite::Result<Vec<i64>>>()?;
            let mut update = transaction.prepare_cached(
                "UPDATE work SET status = 'RUNNING', attempt = attempt + 1, worker_id = ?2
                 WHERE id = ?1 AND status = 'PENDING'",
            )?;
            for id in &ids {
                update.execute([*id, 1])?;
            }
            ids
        };
        transaction.commit()?;
        Ok(ids)
    }

    pub(super) fn finish(&mut self, ids: &[i64]) -> Result<(), BenchError> {
        let transaction = self.connection.transaction()?;
        {
            let mut update = transaction.prepare_cached(
                "UPDATE work SET status = 'SUCCESSFUL', finished_at = ?2
                 WHERE id = ?1 AND status = 'RUNNING' AND worker_id = ?3",
            )?;
            for id in ids {
                update.execute([*id, 1_700_000_000_000, 1])?;
            }
        }
        Ok(transaction.commit()?)
    }
}

/// Writes rows into the tables of Windlass.
pub(crate) fn fill(path: &Path, rows: Rows, interruption: &Interruption) -> Result<(), BenchError> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(PATIENCE)?;
    // The rows need not be durable.
    connection.execute_batch("PRAGMA synchronous = NORMAL")?;
    let (count, columns) = match rows {
        Rows::NotClaimable(count) => (count, NOT_CLAIMABLE),
        Rows::Pending(count) => (count, PENDING),
    };
    for first in (0..count).step_by(CHUNK) {
        interruption.check()?;
        let last = (first + CHUNK).min(count) - 1;
        connection.execute_batch(&format!(
            "WITH RECURSIVE numbers (n) AS (SELECT {first} UNION ALL SELECT n + 1 FROM numbers WHERE n < {last})
             {columns}"
        ))?;
    }
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_row| Ok(()))?;
    Ok(())
}

const NOT_CLAIMABLE: &str = "
    INSERT INTO jobs (kind, payload, status, execute_after, finished_at, blocked_by)
    SELECT 'behind', 'null',
           CASE n % 4 WHEN 0 THEN 'SUCCESSFUL' WHEN 1 THEN 'BLOCKED' WHEN 2 THEN 'SCHEDULED' ELSE 'PENDING' END,
           CASE n % 4 WHEN 2 THEN 4102444800000 ELSE 1700000000000 END,
           CASE n % 4 WHEN 0 THEN 1700000000000 END,
           CASE n % 4 WHEN 1 THEN 1 ELSE 0 END
    FROM numbers";

const PENDING: &str = "
    INSERT INTO jobs (kind, payload, status) SELECT 'noop', 'null', 'PENDING' FROM numbers";
