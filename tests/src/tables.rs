//! The rows of the tables, read as any other program would: with plain SQL, over a read-only connection.

use std::collections::BTreeMap;
use std::rc::Rc;

use windlass_test_database::{Field, Result, Row, Sql};

/// A connection that can only read.
#[derive(Debug, Clone)]
pub struct Tables {
    connection: Rc<Sql>,
}

/// A row of `jobs`, with the columns that the checks need.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Job {
    /// Its number.
    pub id: i64,
    /// Its run.
    pub run_id: Option<i64>,
    /// Its name in the run.
    pub name: String,
    /// Its state.
    pub status: String,
    /// Claims so far.
    pub attempt: i64,
    /// The limit of `failures`.
    pub max_attempts: i64,
    /// Attempts that failed.
    pub failures: i64,
    /// Attempts whose worker died.
    pub interruptions: i64,
    /// The limit of `interruptions`.
    pub max_interruptions: i64,
    /// The worker that claimed it.
    pub worker_id: Option<i64>,
    /// Start of its last attempt.
    pub started_at: Option<i64>,
    /// Its end.
    pub finished_at: Option<i64>,
    /// The last error.
    pub last_error: Option<String>,
    /// The output, as JSON.
    pub output: Option<String>,
}

/// A row of `job_attempts`: an attempt that did not succeed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// Its job.
    pub job_id: i64,
    /// Its number.
    pub attempt: i64,
    /// The worker that claimed it.
    pub worker_id: Option<i64>,
    /// How it ended.
    pub outcome: String,
    /// The error.
    pub error: Option<String>,
}

/// A row of `job_logs`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// Its attempt.
    pub attempt: i64,
    /// Its number in the attempt.
    pub line: i64,
    /// When it was read.
    pub at: i64,
    /// `stdout`, `stderr` or `engine`.
    pub stream: String,
    /// The line.
    pub text: String,
}

impl Tables {
    /// The tables behind a connection. The methods panic when they cannot read.
    #[must_use]
    pub fn new(connection: Rc<Sql>) -> Tables {
        Tables { connection }
    }

    /// The first column of the first row.
    pub fn value<T: Field>(&self, sql: &str) -> T {
        self.connection.value(sql)
    }

    /// All rows, converted by `make`.
    pub fn rows<T>(&self, sql: &str, make: impl FnMut(&Row) -> Result<T>) -> Vec<T> {
        self.connection.rows(sql, make)
    }

    /// All jobs, in the order of their ids.
    #[must_use]
    pub fn jobs(&self) -> Vec<Job> {
        self.rows("SELECT * FROM jobs ORDER BY id", |row| {
            Ok(Job {
                id: row.get("id")?,
                run_id: row.get("run_id")?,
                name: row.get::<_, Option<String>>("name")?.unwrap_or_default(),
                status: row.get("status")?,
                attempt: row.get("attempt")?,
                max_attempts: row.get("max_attempts")?,
                failures: row.get("failures")?,
                interruptions: row.get("interruptions")?,
                max_interruptions: row.get("max_interruptions")?,
                worker_id: row.get("worker_id")?,
                started_at: row.get("started_at")?,
                finished_at: row.get("finished_at")?,
                last_error: row.get("last_error")?,
                output: row.get("output")?,
            })
        })
    }

    /// The jobs of one run by name.
    #[must_use]
    pub fn jobs_of(&self, run: i64) -> BTreeMap<String, Job> {
        let of_run = self.jobs().into_iter().filter(|job| job.run_id == Some(run));
        of_run.map(|job| (job.name.clone(), job)).collect()
    }

    /// The status of a run.
    #[must_use]
    pub fn run_status(&self, run: i64) -> String {
        self.value(&format!("SELECT status FROM runs WHERE id = {run}"))
    }

    /// Pairs of parent and child.
    #[must_use]
    pub fn dependencies(&self) -> Vec<(i64, i64)> {
        self.rows("SELECT parent_id, child_id FROM job_dependencies", |row| Ok((row.get(0)?, row.get(1)?)))
    }

    /// Attempts that did not succeed.
    #[must_use]
    pub fn attempts(&self) -> Vec<Attempt> {
        self.rows("SELECT * FROM job_attempts ORDER BY job_id, attempt", |row| {
            Ok(Attempt {
                job_id: row.get("job_id")?,
                attempt: row.get("attempt")?,
                worker_id: row.get("worker_id")?,
                outcome: row.get("outcome")?,
                error: row.get("error")?,
            })
        })
    }

    /// Captured output of a job.
    #[must_use]
    pub fn log(&self, job: i64) -> Vec<LogLine> {
        self.rows(&format!("SELECT * FROM job_logs WHERE job_id = {job} ORDER BY attempt, line"), |row| {
            Ok(LogLine {
                attempt: row.get("attempt")?,
                line: row.get("line")?,
                at: row.get("at")?,
                stream: row.get("stream")?,
                text: row.get("text")?,
            })
        })
    }
}
