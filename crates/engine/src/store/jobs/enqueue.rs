//! Enqueueing standalone jobs, which belong to no run.

use crate::status::JobStatus;
use crate::store::evidence::{Evidence, job_was_inserted, job_with_token};
use crate::store::finish::slots::{CONCURRENCY_LIMIT_MAX, admit};
use crate::store::{Jobs, json_list};
use crate::transition::DELAY_MAX_MS;
use std::borrow::Cow;
use std::sync::Arc;
use windlass_db::error::{Error, Result};
use windlass_db::{CommitOutcome, Connection, Value};
use windlass_system::wake_ups::WakeUps;
use windlass_workflow::limits;
use windlass_workflow::model::Concurrency;

/// How often a standalone job is attempted, unless it says otherwise.
pub const DEFAULT_MAX_ATTEMPTS: i64 = 3;
/// How many jobs one call may enqueue.
pub const ENQUEUE_MAX: usize = 100_000;
/// Rows in one statement.
const CHUNK: usize = 2_000;
const OPERATION: &str = "enqueue jobs";

/// A job to enqueue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewJob {
    /// What executes it.
    pub kind: String,
    /// Its input, as JSON.
    pub payload: String,
    /// The queue it waits in.
    pub queue: String,
    /// Higher is claimed first.
    pub priority: i64,
    /// The earliest time to start it; `None` means at once.
    pub execute_after: Option<i64>,
    /// A delay before it may start, in milliseconds. Not allowed together with `execute_after`.
    pub delay_ms: Option<i64>,
    /// How many attempts may fail, at least 1.
    pub max_attempts: i64,
    /// How long one attempt may take, in milliseconds.
    pub timeout_ms: Option<i64>,
    /// While a job with this key is unfinished, no other job with the same key is accepted.
    pub unique_key: Option<String>,
    /// Capabilities that a worker must have to claim it.
    pub requires: Vec<String>,
    /// The lowest version of the code on a worker that may claim it.
    pub code_version: i64,
    /// How many jobs with the same key may run at a time. The key is not rendered as a template.
    pub concurrency: Option<Concurrency>,
}

impl NewJob {
    /// A job with default settings.
    pub fn new(kind: impl Into<String>, payload: impl Into<String>) -> NewJob {
        NewJob {
            kind: kind.into(),
            payload: payload.into(),
            queue: windlass_workflow::model::DEFAULT_QUEUE.to_owned(),
            priority: 0,
            execute_after: None,
            delay_ms: None,
            max_attempts: DEFAULT_MAX_ATTEMPTS,
            timeout_ms: None,
            unique_key: None,
            requires: Vec::new(),
            code_version: 0,
            concurrency: None,
        }
    }
}

impl Jobs<'_> {
    /// Enqueues all of the jobs or none, and returns their ids in the same order.
    ///
    /// # Errors
    /// [`Error::Invalid`] for too many jobs or an invalid one; [`Error::Conflict`] if an unfinished job has the same
    /// unique key; and the database's.
    pub fn enqueue(&self, jobs: Vec<NewJob>) -> Result<Vec<i64>> {
        if jobs.len() > ENQUEUE_MAX {
            let reason = format!("{} jobs in one call; the limit is {ENQUEUE_MAX}", jobs.len());
            return Err(Error::invalid(OPERATION, reason));
        }
        jobs.iter().try_for_each(check)?;
        // Read only once: the time is a part of the idempotency keys and must not change if the transaction is
        // repeated.
        let now_ms = self.store.clock.now_ms();
        let tokens: Arc<Vec<i64>> = Arc::new(jobs.iter().map(|_job| self.store.random.token()).collect());
        // The record of a change says which job it made, so more statements follow.
        if let ([NewJob { concurrency: None, .. }], [token], false) =
            (jobs.as_slice(), tokens.as_slice(), self.store.is_recorded())
        {
            let token = *token;
            let evidence = Evidence::reread(move |connection| {
                Ok(job_with_token(connection, token, now_ms)?.map(|id| vec![id]))
            });
            return self.store.write(OPERATION, evidence, move |connection| {
                wake_for_new_jobs(connection);
                insert(connection, &jobs, &[token], now_ms, AfterInsert::Commit)
            });
        }
        let written = Arc::clone(&tokens);
        let evidence = Evidence::rows(move |connection, ids: &Vec<i64>| match ids.first() {
            Some(job_id) => job_was_inserted(connection, *job_id, &written),
            None => Ok(CommitOutcome::NotKept),
        });
        self.store
            .write(OPERATION, evidence, move |connection| insert_all(connection, &jobs, &tokens, now_ms))
    }
}

/// What new jobs wake.
fn wake_for_new_jobs(connection: &mut dyn Connection) {
    connection.wake(WakeUps::PENDING | WakeUps::DUE | WakeUps::PROGRESS);
}

/// What follows in the transaction after the rows are inserted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AfterInsert {
    /// Other statements.
    MoreStatements,
    /// Nothing: it is committed together with them, in one round trip.
    Commit,
}

/// Inserts jobs in the caller's transaction, each with its token. Returns their ids in the same order.
fn insert_all(
    connection: &mut dyn Connection,
    jobs: &[NewJob],
    tokens: &[i64],
    now_ms: i64,
) -> Result<Vec<i64>> {
    let mut ids = Vec::with_capacity(jobs.len());
    for (jobs, tokens) in jobs.chunks(CHUNK).zip(tokens.chunks(CHUNK)) {
        ids.extend(insert(connection, jobs, tokens, now_ms, AfterInsert::MoreStatements)?);
    }
    let keys: Vec<String> = jobs
        .iter()
        .filter(|job| !is_future(job, now_ms))
        .filter_map(|job| Some(job.concurrency.as_ref()?.key.clone()))
        .collect();
    admit(connection, &keys, now_ms)?;
    wake_for_new_jobs(connection);
    Ok(ids)
}

fn check(job: &NewJob) -> Result<()> {
    let operation = || format!("enqueue a job of kind `{}`", job.kind);
    if job.kind.is_empty() {
        return Err(Error::invalid(operation(), "the kind is empty"));
    }
    for (field, value, allowed) in [
        ("max_attempts", job.max_attempts, 1..=limits::ATTEMPTS),
        ("timeout_ms", job.timeout_ms.unwrap_or(1), 1..=limits::DURATION_MS),
        ("priority", job.priority, -limits::PRIORITY..=limits::PRIORITY),
        ("code_version", job.code_version, 0..=limits::CODE_VERSION),
    ] {
        if !allowed.contains(&value) {
            let reason = format!("{field} is {value}; it must be {} to {}", allowed.start(), allowed.end());
            return Err(Error::invalid(operation(), reason));
        }
    }
    if job.queue.is_empty() {
        return Err(Error::invalid(operation(), "the queue is empty"));
    }
    if job.requires.len() > limits::CAPABILITIES {
        let reason =
            format!("it requires {} capabilities; the limit is {}", job.requires.len(), limits::CAPABILITIES);
        return Err(Error::invalid(operation(), reason));
    }
    if job.execute_after.is_some() && job.delay_ms.is_some() {
        return Err(Error::invalid(operation(), "it has both an instant and a delay; use only one of them"));
    }
    if job.delay_ms.is_some_and(|delay_ms| !(0..=DELAY_MAX_MS).contains(&delay_ms)) {
        return Err(Error::invalid(operation(), "its delay must be 0 to 100 years"));
    }
    if let Some(concurrency) = &job.concurrency
        && !(1..=CONCURRENCY_LIMIT_MAX).contains(&concurrency.limit)
    {
        let reason = format!("the limit of its concurrency key must be 1 to {CONCURRENCY_LIMIT_MAX}");
        return Err(Error::invalid(operation(), reason));
    }
    serde_json::from_str::<serde::de::IgnoredAny>(&job.payload)
        .map(|_valid| ())
        .map_err(|error| Error::invalid(operation(), format!("the payload is not JSON: {error}")))
}

fn is_future(job: &NewJob, now_ms: i64) -> bool {
    job.execute_after.is_some_and(|at_ms| at_ms > now_ms) || job.delay_ms.is_some_and(|delay_ms| delay_ms > 0)
}

const INSERT: &str =
    "INSERT INTO jobs (kind, queue, priority, status, execute_after, payload, max_attempts, timeout_ms,
                           unique_key, created_at, updated_at, requires, code_version, concurrency_key,
                           concurrency_limit, on_full, token, delay_ms, waits_for)
         SELECT kind, queue,
                {priority},
                status, execute_after, payload, max_attempts, timeout_ms,
                unique_key, $2, $2, requires, code_version, concurrency_key, concurrency_limit, on_full, token,
                delay_ms, CASE WHEN concurrency_key IS NOT NULL AND status = 'WAITING' THEN 'slot' END
         FROM {rows $1: kind text, queue text, priority integer, status text, execute_after integer,
                        payload text, max_attempts integer, timeout_ms integer, unique_key text,
                        requires text, code_version integer, concurrency_key text, concurrency_limit integer,
                        on_full text, token integer, delay_ms integer} AS news";

fn insert(
    connection: &mut dyn Connection,
    jobs: &[NewJob],
    tokens: &[i64],
    now_ms: i64,
    end: AfterInsert,
) -> Result<Vec<i64>> {
    let requirements: Vec<Cow<'static, str>> = jobs.iter().map(requirements).collect::<Result<_>>()?;
    let rows: Vec<[Value<'_>; 16]> = jobs
        .iter()
        .zip(tokens)
        .zip(&requirements)
        .map(|((job, token), requires)| row(job, *token, requires, now_ms))
        .collect();
    let parameters = [Value::rows(&rows), now_ms.into()];
    match end {
        AfterInsert::MoreStatements => connection.insert_returning_ids(INSERT, &parameters),
        AfterInsert::Commit => connection.insert_returning_ids_and_commit(INSERT, &parameters),
    }
}

/// The capabilities that a job requires, as a sorted JSON list.
fn requirements(job: &NewJob) -> Result<Cow<'static, str>> {
    if job.requires.is_empty() {
        return Ok(Cow::Borrowed("[]"));
    }
    let mut requires = job.requires.clone();
    requires.sort_unstable();
    requires.dedup();
    json_list("enqueue jobs", &requires).map(Cow::Owned)
}

/// The values for a row of `jobs`, in the order of the columns in the statement.
fn row<'a>(job: &'a NewJob, token: i64, requires: &'a str, now_ms: i64) -> [Value<'a>; 16] {
    let concurrency = job.concurrency.as_ref();
    let status = if is_future(job, now_ms) {
        JobStatus::Scheduled
    } else if concurrency.is_some() {
        JobStatus::Waiting
    } else {
        JobStatus::Pending
    };
    [
        (&job.kind).into(),
        (&job.queue).into(),
        job.priority.into(),
        status.as_str().into(),
        job.execute_after.unwrap_or_else(|| now_ms.saturating_add(job.delay_ms.unwrap_or(0))).into(),
        (&job.payload).into(),
        job.max_attempts.into(),
        job.timeout_ms.into(),
        (&job.unique_key).into(),
        requires.into(),
        job.code_version.into(),
        concurrency.map(|concurrency| concurrency.key.as_str()).into(),
        concurrency.map(|concurrency| concurrency.limit).into(),
        concurrency.map_or("wait", |concurrency| concurrency.on_full.as_str()).into(),
        token.into(),
        job.delay_ms.filter(|delay_ms| *delay_ms > 0).into(),
    ]
}
