//! Captured output: one row a line, in the order it was read.

use crate::store::Logs;
use windlass_db::error::Result;
use windlass_db::{Connection, Row, Value, all};

/// Where a line came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogStream {
    /// The job's standard output.
    Stdout,
    /// The job's standard error.
    Stderr,
    /// The engine, about the job.
    Engine,
}

impl LogStream {
    /// Its spelling in the tables.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            LogStream::Stdout => "stdout",
            LogStream::Stderr => "stderr",
            LogStream::Engine => "engine",
        }
    }

    /// The stream of that spelling.
    #[must_use]
    pub fn parse(text: &str) -> Option<LogStream> {
        [LogStream::Stdout, LogStream::Stderr, LogStream::Engine]
            .into_iter()
            .find(|stream| stream.as_str() == text)
    }
}

/// A line of an attempt's output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// The job.
    pub job_id: i64,
    /// The attempt that wrote it.
    pub attempt: i64,
    /// Its number in the attempt, from 1.
    pub line: i64,
    /// When it was read, in milliseconds since the Unix epoch.
    pub at: i64,
    /// Where it came from.
    pub stream: LogStream,
    /// Its text, without the line end.
    pub text: String,
}

/// Up to where a reader has read a job's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogPosition {
    /// The job.
    pub job_id: i64,
    /// The last attempt read; 0 before the first.
    pub attempt: i64,
    /// The last line read of that attempt.
    pub line: i64,
}

impl Logs<'_> {
    /// The lines of one job after a position, in order, `limit` at most.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn after(&self, position: LogPosition, limit: i64) -> Result<Vec<LogLine>> {
        self.store.read(|connection| {
            all(
                connection,
                "SELECT attempt, line, at, stream, text FROM job_logs
                 WHERE job_id = $1 AND (attempt, line) > ($2, $3)
                 ORDER BY attempt, line LIMIT $4",
                &[position.job_id.into(), position.attempt.into(), position.line.into(), limit.into()],
                |row| log_line(position.job_id, row),
            )
        })
    }

    /// The lines of one job before a position, in order: the last ones, `limit` at most.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn before(&self, position: LogPosition, limit: i64) -> Result<Vec<LogLine>> {
        self.store.read(|connection| {
            let mut lines = all(
                connection,
                "SELECT attempt, line, at, stream, text FROM job_logs
                 WHERE job_id = $1 AND (attempt, line) < ($2, $3)
                 ORDER BY attempt DESC, line DESC LIMIT $4",
                &[position.job_id.into(), position.attempt.into(), position.line.into(), limit.into()],
                |row| log_line(position.job_id, row),
            )?;
            lines.reverse();
            Ok(lines)
        })
    }

    /// The last lines of one attempt, in order.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn last(&self, job_id: i64, attempt: i64, limit: i64) -> Result<Vec<LogLine>> {
        self.store.read(|connection| {
            let mut lines = all(
                connection,
                "SELECT line, at, stream, text FROM job_logs
                 WHERE job_id = $1 AND attempt = $2 ORDER BY line DESC LIMIT $3",
                &[job_id.into(), attempt.into(), limit.into()],
                |row| {
                    Ok(LogLine {
                        job_id,
                        attempt,
                        line: row.integer(0)?,
                        at: row.integer(1)?,
                        stream: row.parsed(2, LogStream::parse)?,
                        text: row.text(3)?,
                    })
                },
            )?;
            lines.reverse();
            Ok(lines)
        })
    }
}

/// Writes lines inside the caller's transaction.
pub(super) fn append(connection: &mut dyn Connection, lines: &[&LogLine]) -> Result<()> {
    if lines.is_empty() {
        return Ok(());
    }
    let rows: Vec<[Value<'_>; 6]> = lines
        .iter()
        .map(|line| {
            let LogLine { job_id, attempt, line, at, stream, text } = line;
            [
                (*job_id).into(),
                (*attempt).into(),
                (*line).into(),
                (*at).into(),
                stream.as_str().into(),
                text.into(),
            ]
        })
        .collect();
    // A job that was pruned meanwhile takes its output with it.
    connection.execute(
        "INSERT INTO job_logs (job_id, attempt, line, at, stream, text)
         SELECT news.job_id, news.attempt, news.line, news.at, news.stream, news.text
         FROM {rows $1: job_id integer, attempt integer, line integer, at integer, stream text, text text}
              AS news
         WHERE EXISTS (SELECT 1 FROM jobs WHERE jobs.id = news.job_id)
         ON CONFLICT (job_id, attempt, line) DO NOTHING",
        &[Value::rows(&rows)],
    )?;
    Ok(())
}

/// A line of this job: its attempt, its number, when it was read, its stream and its text.
fn log_line(job_id: i64, row: &dyn Row) -> Result<LogLine> {
    Ok(LogLine {
        job_id,
        attempt: row.integer(0)?,
        line: row.integer(1)?,
        at: row.integer(2)?,
        stream: row.parsed(3, LogStream::parse)?,
        text: row.text(4)?,
    })
}
