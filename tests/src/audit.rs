//! A record of every change of a job's state, kept by the database itself.
//!
//! A trigger, installed by a test into the database of a run that was submitted but not started, writes
//! each change in the order of its transaction. Nothing the engine does can bypass it, so what two
//! workers did to one row can be read afterwards, even if the last state looks correct.

use windlass_test_database::{Access, TestDatabase};

use crate::tables::Tables;

/// One change of one job, in the order of `seq`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Order of the changes.
    pub seq: i64,
    /// The job.
    pub job_id: i64,
    /// State before.
    pub before: String,
    /// State after.
    pub after: String,
    /// Attempt after.
    pub attempt: i64,
    /// Owner after.
    pub worker_id: Option<i64>,
}

/// Starts the record.
///
/// # Panics
/// When the database cannot be written to.
pub fn install(database: &TestDatabase) {
    database.sql(Access::Write).execute_either(
        "CREATE TABLE test_audit (
             seq INTEGER PRIMARY KEY AUTOINCREMENT,
             job_id INTEGER, before TEXT, after TEXT, attempt INTEGER, worker_id INTEGER);
         CREATE TRIGGER test_audit_jobs AFTER UPDATE ON jobs
         WHEN OLD.status <> NEW.status OR OLD.attempt <> NEW.attempt
              OR OLD.worker_id IS NOT NEW.worker_id
         BEGIN
             INSERT INTO test_audit (job_id, before, after, attempt, worker_id)
             VALUES (NEW.id, OLD.status, NEW.status, NEW.attempt, NEW.worker_id);
         END;",
        // The numbers are given in the order of the changes, not of the commits. That is the same for one
        // job, whose row is locked, and for a job and its child, which is claimed after the commit.
        "CREATE TABLE test_audit (
             seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
             job_id BIGINT, before TEXT, after TEXT, attempt BIGINT, worker_id BIGINT);
         CREATE FUNCTION test_audit_job() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN
             INSERT INTO test_audit (job_id, before, after, attempt, worker_id)
             VALUES (NEW.id, OLD.status, NEW.status, NEW.attempt, NEW.worker_id);
             RETURN NULL;
         END $$;
         CREATE TRIGGER test_audit_jobs AFTER UPDATE ON jobs FOR EACH ROW
         WHEN (OLD.status <> NEW.status OR OLD.attempt <> NEW.attempt
               OR OLD.worker_id IS DISTINCT FROM NEW.worker_id)
         EXECUTE FUNCTION test_audit_job();",
    );
}

/// The record so far.
#[must_use]
pub fn changes(tables: &Tables) -> Vec<Change> {
    tables.rows("SELECT * FROM test_audit ORDER BY seq", |row| {
        Ok(Change {
            seq: row.get("seq")?,
            job_id: row.get("job_id")?,
            before: row.get("before")?,
            after: row.get("after")?,
            attempt: row.get("attempt")?,
            worker_id: row.get("worker_id")?,
        })
    })
}
