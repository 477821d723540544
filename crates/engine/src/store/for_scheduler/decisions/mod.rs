//! Jobs that wait for a decision: reading what the decision needs, and writing what was decided.
//!
//! The rows are read and changed in one transaction that holds the locks of their runs. So nothing that a decision depends
//! on can change in between, and of two schedulers the second one finds no row that waits.

mod calls;
mod deadline;
pub(in crate::store) mod ended_calls;
mod sleep;

use std::collections::HashMap;

use crate::decide::{
    Control, Decision, EndWithoutAttempt, Then, begin_sleep, decide_by_condition, decide_by_parents,
};
use crate::join_rule::{EndColumns, JobEnd, JoinRule, ParentEnds};
use crate::status::JobStatus;
use crate::store::claim::ready::release;
use crate::store::claim::take::start_runs;
use crate::store::evidence::Evidence;
use crate::store::finish::locks::lock_runs_of;
use crate::store::finish::propagation::{Ended, propagate};
use crate::store::finish::slots::admit;
use crate::store::jobs::read_values;
use crate::store::runs::{read_context, read_end};
use crate::store::{ForScheduler, json_ids};
use crate::values::values;
use calls::{CalledWorkflows, Caller, NewChild, start_calls};
use serde_json::Value as Json;
use sleep::{Sleeper, begin_sleeps};
use windlass_db::error::Result;
use windlass_db::{Connection, UpdateReturning, Value, all, all_updated};
use windlass_system::wake_ups::WakeUps;

/// How many jobs one transaction decides.
const DECISIONS_MAX: i64 = 200;
/// After it has read so many bytes of values, a transaction leaves the other jobs to the next one.
const TRANSACTION_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How many bytes of outputs a decision may read.
const DECISION_BYTES_MAX: usize = 1024 * 1024;

/// A job that waits for a decision.
struct WaitingJob {
    id: i64,
    run_id: Option<i64>,
    is_handler: bool,
    join_rule: JoinRule,
    parents: ParentEnds,
    caller: Caller,
    /// It was decided before, and has slept since then.
    has_begun: bool,
    /// What is decided, or why the row can't be read.
    control: std::result::Result<Control, String>,
}

impl ForScheduler<'_> {
    /// Decides about jobs that wait for a decision, one batch of them. Returns how many. Call it again until it returns 0.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn decide_waiting(&self) -> Result<i64> {
        let waiting = self.store.read(|connection| {
            all(
                connection,
                "SELECT id FROM jobs WHERE status = 'WAITING' AND waits_for = 'decision' ORDER BY id LIMIT $1",
                &[DECISIONS_MAX.into()],
                |row| row.integer(0),
            )
        })?;
        if waiting.is_empty() {
            return Ok(0);
        }
        let (now_ms, random) = (self.store.clock.now_ms(), self.store.random.clone());
        self.store.write("decide about jobs", Evidence::Repeat, move |connection| {
            lock_runs_of(connection, &waiting)?;
            let jobs = read_waiting(connection, &waiting)?;
            let mut reading = Reading { bytes: 0, called: CalledWorkflows::new(&random) };
            let mut decisions = Vec::new();
            for job in &jobs {
                if reading.bytes >= TRANSACTION_BYTES_MAX || reading.called.is_full() {
                    break;
                }
                decisions.push((job, decide(connection, job, now_ms, &mut reading)?));
            }
            carry_out(connection, &decisions, now_ms)?;
            Ok(decisions.len() as i64)
        })
    }
}

/// Reads those of the jobs that still wait for a decision.
fn read_waiting(connection: &mut dyn Connection, job_ids: &[i64]) -> Result<Vec<WaitingJob>> {
    let mut parents = read_parents(connection, job_ids)?;
    all(
        connection,
        "SELECT id, run_id, phase, join_rule, control, started_at, attempt, timeout_ms, root_run_id FROM jobs
         WHERE id {in $1} AND {guard status = 'WAITING'} AND waits_for = 'decision' ORDER BY id",
        &[(&json_ids(job_ids)).into()],
        |row| {
            let id = row.integer(0)?;
            let join_rule = match row.lossy_text(3)? {
                Some(_rule) => row.parsed(3, JoinRule::parse)?,
                None => JoinRule::AllSuccessful,
            };
            let control = match row.lossy_text(4)? {
                Some(json) => serde_json::from_str(&json).map_err(|error| error.to_string()),
                None => Ok(Control::default()),
            };
            Ok(WaitingJob {
                id,
                run_id: row.optional_integer(1)?,
                is_handler: row.integer(2)? > 0,
                join_rule,
                parents: parents.remove(&id).unwrap_or_default(),
                caller: Caller {
                    attempt: row.integer(6)?,
                    timeout_ms: row.optional_integer(7)?,
                    root_run_id: row.optional_integer(8)?,
                },
                has_begun: row.optional_integer(5)?.is_some(),
                control,
            })
        },
    )
}

/// What one transaction has read.
struct Reading<'r> {
    /// The bytes of values.
    bytes: usize,
    called: CalledWorkflows<'r>,
}

/// What happens to a job, with the run that it starts.
enum Decided {
    Only(Decision),
    Call(Box<NewChild>),
}

/// Decides about a job.
fn decide(
    connection: &mut dyn Connection,
    job: &WaitingJob,
    now_ms: i64,
    reading: &mut Reading<'_>,
) -> Result<Decided> {
    let only = |decision: Decision| Ok(Decided::Only(decision));
    let failed = |reason: String| only(Decision::End(EndWithoutAttempt::failed(reason)));
    let control = match &job.control {
        Ok(control) => control,
        Err(error) => return failed(format!("the row can't be read: its control is invalid: {error}")),
    };
    if !job.has_begun
        && let Some(end) = decide_by_parents(job.join_rule, job.parents)
    {
        return only(Decision::End(end));
    }
    let Some(run_id) = job.run_id else { return only(Decision::GoOn) };
    if !job.has_begun
        && let Some(condition) = &control.condition
    {
        let mut names: Vec<String> = condition.reads().into_iter().map(|read| read.job).collect();
        names.dedup();
        let decision = match read_values_of(connection, job, run_id, "`if`", &names, reading)? {
            Ok(values) => decide_by_condition(condition, &values),
            Err(reason) => return failed(reason),
        };
        if decision != Decision::GoOn {
            return only(decision);
        }
    }
    match &control.then {
        None => only(Decision::GoOn),
        Some(Then::Call(call)) => {
            match read_values_of(connection, job, run_id, "`params`", &control.uses, reading)? {
                Ok(values) => {
                    let child = reading.called.prepare(connection, job, run_id, call, &values)?;
                    Ok(child.map_or_else(
                        |end| Decided::Only(Decision::End(end)),
                        |child| Decided::Call(Box::new(child)),
                    ))
                }
                Err(reason) => failed(reason),
            }
        }
        Some(Then::Sleep(_)) if job.has_begun => only(Decision::Done { output: None }),
        Some(Then::Sleep(sleep)) => {
            match read_values_of(connection, job, run_id, "`sleep`", &control.uses, reading)? {
                Ok(values) => only(begin_sleep(sleep, &values, now_ms)),
                Err(reason) => failed(reason),
            }
        }
    }
}

/// Reads the values that a decision may name: those of the run, and those of these jobs. The inner error is for people.
fn read_values_of(
    connection: &mut dyn Connection,
    job: &WaitingJob,
    run_id: i64,
    reader: &str,
    names: &[String],
    reading: &mut Reading<'_>,
) -> Result<std::result::Result<Json, String>> {
    let jobs = read_values(connection, run_id, names)?;
    let read: usize = jobs.iter().map(|job| job.output.as_ref().map_or(0, String::len)).sum();
    reading.bytes += read;
    if read > DECISION_BYTES_MAX {
        let names = names.join(", ");
        return Ok(Err(format!(
            "{reader} reads {read} bytes of outputs, and may read at most {DECISION_BYTES_MAX}: {names}"
        )));
    }
    let run = read_context(connection, run_id)?;
    let end = if job.is_handler { read_end(connection, run_id)? } else { None };
    Ok(values(&run, end.as_ref(), jobs))
}

/// Counts how the parents of each job ended.
fn read_parents(connection: &mut dyn Connection, job_ids: &[i64]) -> Result<HashMap<i64, ParentEnds>> {
    let mut ends: HashMap<i64, ParentEnds> = HashMap::new();
    connection.query(
        "SELECT edges.child_id, parent.status, parent.allow_failure, parent.upstream_failed, count(*)
         FROM job_dependencies AS edges
         JOIN jobs AS parent ON {by parent.id = edges.parent_id}
         WHERE edges.child_id {in $1}
         GROUP BY edges.child_id, parent.status, parent.allow_failure, parent.upstream_failed",
        &[(&json_ids(job_ids)).into()],
        &mut |row| {
            let columns = EndColumns {
                status: row.parsed(1, JobStatus::parse)?,
                allow_failure: row.integer(2)? != 0,
                upstream_failed: row.integer(3)? != 0,
            };
            let counted = ends.entry(row.integer(0)?).or_default();
            match columns.end() {
                Some(JobEnd::Passed) => counted.passed += row.integer(4)?,
                Some(JobEnd::Broken) => counted.broken += row.integer(4)?,
                Some(JobEnd::NotNeeded) => counted.not_needed += row.integer(4)?,
                // Another program has changed the parent. The job waits until the run is reconciled.
                None => {}
            }
            Ok(())
        },
    )?;
    Ok(ends)
}

fn carry_out(
    connection: &mut dyn Connection,
    decisions: &[(&WaitingJob, Decided)],
    now_ms: i64,
) -> Result<()> {
    let (mut go_on, mut ends, mut sleepers) = (Vec::new(), Vec::new(), Vec::new());
    let mut children: Vec<&NewChild> = Vec::new();
    for (job, decided) in decisions {
        let decision = match decided {
            Decided::Only(decision) => decision,
            Decided::Call(child) => {
                children.push(child);
                continue;
            }
        };
        match decision {
            Decision::GoOn => go_on.push(job.id),
            Decision::Sleep { until_ms, delay_ms } => {
                sleepers.push(Sleeper { job_id: job.id, until_ms: *until_ms, delay_ms: *delay_ms });
            }
            Decision::Done { output } => ends.push(DecidedEnd {
                job_id: job.id,
                status: JobStatus::Successful,
                upstream_failed: false,
                reason: None,
                output: output.as_deref(),
            }),
            Decision::End(EndWithoutAttempt { status, upstream_failed, reason }) => ends.push(DecidedEnd {
                job_id: job.id,
                status: *status,
                upstream_failed: *upstream_failed,
                reason: Some(reason),
                output: None,
            }),
        }
    }
    // The first decision of a run starts it, as a first claim does.
    start_runs(connection, decisions.iter().filter_map(|(job, _decision)| job.run_id).collect(), now_ms)?;
    deadline::begin(connection, &deadlines_of(decisions), now_ms)?;
    let keys = let_go_on(connection, &go_on, now_ms)?;
    admit(connection, &keys, now_ms)?;
    begin_sleeps(connection, &sleepers, now_ms)?;
    start_calls(connection, &children, now_ms)?;
    let ended = write_ends(connection, &ends, now_ms)?;
    let propagated = propagate(connection, &ended, None, now_ms)?;
    release(connection, &propagated.promoted.ready, now_ms)?;
    connection.wake(WakeUps::PENDING | WakeUps::PROGRESS);
    Ok(())
}

/// The jobs that go on and have a deadline, each with its duration.
fn deadlines_of(decisions: &[(&WaitingJob, Decided)]) -> Vec<(i64, i64)> {
    let goes_on = |decided: &Decided| matches!(decided, Decided::Only(Decision::GoOn));
    let going_on = decisions.iter().filter(|(_job, decided)| goes_on(decided));
    let deadline =
        |(job, _decided): &(&WaitingJob, Decided)| Some((job.id, job.control.as_ref().ok()?.deadline_ms?));
    going_on.filter_map(deadline).collect()
}

/// Moves decided jobs on.
static LET_GO_ON: UpdateReturning = UpdateReturning {
    table: "jobs",
    set: &[
        ("status", "CASE WHEN concurrency_key IS NULL THEN 'PENDING' ELSE 'WAITING' END"),
        ("waits_for", "CASE WHEN concurrency_key IS NOT NULL THEN 'slot' END"),
        ("priority", "{priority}"),
        ("decided_at", "$2"),
        ("updated_at", "$2"),
    ],
    from: None,
    condition: "id {in $1} AND {guard status = 'WAITING'} AND waits_for = 'decision'",
    returning: &["concurrency_key"],
};

/// Lets jobs go on. Returns the concurrency keys that they want a slot of.
fn let_go_on(connection: &mut dyn Connection, ids: &[i64], now_ms: i64) -> Result<Vec<String>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let keys = all_updated(connection, &LET_GO_ON, &[(&json_ids(ids)).into(), now_ms.into()], |row| {
        row.lossy_text(0)
    })?;
    Ok(keys.into_iter().flatten().collect())
}

/// The end of a job that the scheduler ends.
struct DecidedEnd<'a> {
    job_id: i64,
    status: JobStatus,
    upstream_failed: bool,
    reason: Option<&'a str>,
    output: Option<&'a str>,
}

/// Ends jobs that no worker executes.
static END: UpdateReturning = UpdateReturning {
    table: "jobs",
    set: &[
        ("status", "news.status"),
        ("upstream_failed", "news.upstream_failed"),
        ("last_error", "news.reason"),
        ("output", "news.output"),
        ("updated_at", "$2"),
        ("finished_at", "$2"),
    ],
    from: Some(
        "{rows $1: id integer, status text, upstream_failed integer, reason text, output text} AS news",
    ),
    condition: "{by jobs.id = news.id} AND {guard jobs.status = 'WAITING'} AND jobs.waits_for = 'decision'",
    returning: &[
        "jobs.id",
        "jobs.run_id",
        "jobs.name",
        "jobs.status",
        "jobs.allow_failure",
        "jobs.upstream_failed",
    ],
};

fn write_ends(connection: &mut dyn Connection, ends: &[DecidedEnd<'_>], now_ms: i64) -> Result<Vec<Ended>> {
    if ends.is_empty() {
        return Ok(Vec::new());
    }
    let news: Vec<[Value<'_>; 5]> = ends
        .iter()
        .map(|end| {
            let upstream_failed = i64::from(end.upstream_failed);
            [
                end.job_id.into(),
                end.status.as_str().into(),
                upstream_failed.into(),
                end.reason.into(),
                end.output.into(),
            ]
        })
        .collect();
    all_updated(connection, &END, &[Value::rows(&news), now_ms.into()], |row| {
        Ok(Ended {
            job_id: row.integer(0)?,
            run_id: row.optional_integer(1)?,
            name: row.lossy_text(2)?,
            columns: EndColumns {
                status: row.parsed(3, JobStatus::parse)?,
                allow_failure: row.integer(4)? != 0,
                upstream_failed: row.integer(5)? != 0,
            },
        })
    })
}
