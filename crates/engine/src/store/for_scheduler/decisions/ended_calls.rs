//! Runs that jobs have started: their ends are the ends of the jobs, and they are stopped with the jobs.
//!
//! The end of a run only leaves `call_open` in its row. The scheduler takes it from there in a transaction of its own, which
//! holds the locks of both runs. The transaction that ends the run can't do that: it holds the lock of the run already, and
//! locks are taken in the order of ids.

use std::collections::HashMap;
use std::rc::Rc;

use serde_json::Map;
use windlass_workflow::Workflow;

use super::decide::DECISION_BYTES_MAX;
use crate::decide::call::{EndedCall, outputs_text};
use crate::join_rule::EndColumns;
use crate::status::{JobStatus, RunStatus, StopReason};
use crate::store::cancel::{Urgency, stop_run};
use crate::store::claim::job::read_retry_state;
use crate::store::claim::ready::release;
use crate::store::evidence::Evidence;
use crate::store::finish::locks::lock_runs;
use crate::store::finish::propagation::{Belonging, Ended, propagate};
use crate::store::jobs::read_values;
use crate::store::registrations::versions::definition;
use crate::store::runs::read_context;
use crate::store::{ForScheduler, json_ids};
use crate::transition::{RetryState, Transition, after_attempt};
use crate::values::values;
use windlass_db::error::{Error, Result};
use windlass_db::{Connection, UpdateReturning, Value, all, all_updated, one};
use windlass_system::wake_ups::WakeUps;

/// How many runs one transaction takes.
const RUNS_MAX: i64 = 100;
/// How many failed jobs a message names.
const NAMES_MAX: i64 = 5;

/// A run that is over, and the job that has started it.
struct Over {
    call: EndedCall,
    workflow_id: i64,
    job_id: i64,
    attempt: i64,
}

impl ForScheduler<'_> {
    /// Ends jobs whose runs are over, one batch of them. Returns how many runs it took. Call it again until it returns 0.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn end_calls(&self) -> Result<i64> {
        let found = self.store.read(|connection| {
            all(
                connection,
                "SELECT runs.id, jobs.run_id FROM runs
                 LEFT JOIN jobs ON {by jobs.id = runs.parent_job_id}
                 WHERE runs.call_open = 1 AND runs.finished_at IS NOT NULL ORDER BY runs.id LIMIT $1",
                &[RUNS_MAX.into()],
                |row| Ok((row.integer(0)?, row.optional_integer(1)?)),
            )
        })?;
        if found.is_empty() {
            return Ok(0);
        }
        let (now_ms, random) = (self.store.clock.now_ms(), self.store.random.clone());
        self.store.write("end jobs that call workflows", Evidence::Repeat, move |connection| {
            let children: Vec<i64> = found.iter().map(|(run_id, _caller)| *run_id).collect();
            let callers = found.iter().filter_map(|(_run_id, caller)| *caller);
            lock_runs(connection, callers.chain(children.iter().copied()).collect())?;
            let over = read_over(connection, &children)?;
            let transitions = decide(connection, over, &mut || random.fraction())?;
            write(connection, &transitions, now_ms)?;
            connection.execute(
                "UPDATE runs SET call_open = 0 WHERE id {in $1} AND finished_at IS NOT NULL",
                &[(&json_ids(&children)).into()],
            )?;
            Ok(children.len() as i64)
        })
    }

    /// Asks the runs of jobs to stop that were asked to stop themselves, one batch of them. Returns how many. Call it again
    /// until it returns 0.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn stop_calls(&self) -> Result<i64> {
        let stopping = self.store.read(|connection| {
            all(
                connection,
                "SELECT runs.id, jobs.cancel_at_once FROM jobs
                 JOIN runs ON {by runs.parent_job_id = jobs.id} AND {by runs.parent_attempt = jobs.attempt}
                 WHERE jobs.status = 'WAITING' AND jobs.waits_for = 'run' AND jobs.cancel_requested_at IS NOT NULL
                   AND runs.parent_job_id IS NOT NULL AND {guard runs.status IN ('PENDING', 'RUNNING')}
                   AND {guard runs.stop_reason IS NULL}
                 ORDER BY runs.id LIMIT $1",
                &[RUNS_MAX.into()],
                |row| {
                    let urgency = if row.integer(1)? == 0 { Urgency::WithGrace } else { Urgency::AtOnce };
                    Ok((row.integer(0)?, urgency))
                },
            )
        })?;
        let now_ms = self.store.clock.now_ms();
        for (run_id, urgency) in &stopping {
            let (run_id, urgency) = (*run_id, *urgency);
            self.store.write("stop a called run", Evidence::Repeat, move |connection| {
                match stop_run(connection, run_id, StopReason::Cancelled, urgency, now_ms) {
                    // It has ended in between, or somebody else was first.
                    Ok(_) | Err(Error::Conflict { .. } | Error::NotFound { .. }) => Ok(()),
                    Err(error) => Err(error),
                }
            })?;
        }
        Ok(stopping.len() as i64)
    }
}

/// Reads the runs that are over still.
fn read_over(connection: &mut dyn Connection, run_ids: &[i64]) -> Result<Vec<Over>> {
    all(
        connection,
        "SELECT id, workflow, status, stop_reason, coalesce(workflow_id, 0), parent_job_id, parent_attempt FROM runs
         WHERE id {in $1} AND {guard call_open = 1} AND {guard finished_at IS NOT NULL}
           AND parent_job_id IS NOT NULL AND parent_attempt IS NOT NULL ORDER BY id",
        &[(&json_ids(run_ids)).into()],
        |row| {
            let call = EndedCall {
                run_id: row.integer(0)?,
                workflow: row.lossy_text(1)?.unwrap_or_default(),
                status: row.parsed(2, RunStatus::parse)?,
                stop_reason: row.lossy_text(3)?.as_deref().and_then(StopReason::parse),
                failed: (Vec::new(), 0),
            };
            Ok(Over { call, workflow_id: row.integer(4)?, job_id: row.integer(5)?, attempt: row.integer(6)? })
        },
    )
}

/// Decides what the ends of the runs make of the jobs that wait for them.
fn decide(
    connection: &mut dyn Connection,
    over: Vec<Over>,
    chance: &mut dyn FnMut() -> f64,
) -> Result<Vec<(i64, Transition)>> {
    let ids: Vec<i64> = over.iter().map(|over| over.job_id).collect();
    let mut waiting: HashMap<i64, RetryState> = all(
        connection,
        "SELECT id, attempt, failures, max_attempts, interruptions, max_interruptions, on_interrupt, retry FROM jobs
         WHERE id {in $1} AND {guard status = 'WAITING'} AND waits_for = 'run'",
        &[(&json_ids(&ids)).into()],
        |row| Ok((row.integer(0)?, read_retry_state(row, 1)?)),
    )?
    .into_iter()
    .collect();
    let mut definitions: HashMap<i64, Rc<Workflow>> = HashMap::new();
    let mut transitions = Vec::new();
    for Over { mut call, workflow_id, job_id, attempt } in over {
        let Some(state) = waiting.remove(&job_id).filter(|state| state.attempt == attempt) else { continue };
        let outputs = match call.status {
            RunStatus::Successful => {
                let workflow = match definitions.get(&workflow_id) {
                    Some(known) => Rc::clone(known),
                    None => Rc::new(definition(connection, workflow_id)?),
                };
                definitions.insert(workflow_id, Rc::clone(&workflow));
                read_outputs(connection, call.run_id, &workflow)?
            }
            RunStatus::Failed | RunStatus::Cancelled | RunStatus::Pending | RunStatus::Running => {
                call.failed = failed_jobs(connection, call.run_id)?;
                Ok(None)
            }
        };
        let outcome = call.outcome(|| outputs);
        transitions.push((job_id, after_attempt(&state, outcome, chance())));
    }
    Ok(transitions)
}

/// Evaluates the outputs of a run that is over, as JSON. The error says why they have no value.
pub(in crate::store) fn read_outputs(
    connection: &mut dyn Connection,
    run_id: i64,
    workflow: &Workflow,
) -> Result<std::result::Result<Option<String>, String>> {
    if workflow.outputs.is_empty() {
        return Ok(Ok(None));
    }
    let reads = workflow.outputs.values().flat_map(|expression| expression.reads());
    let mut names: Vec<String> = reads.map(|read| read.job).collect();
    names.sort_unstable();
    names.dedup();
    let jobs = read_values(connection, run_id, &names)?;
    let bytes: usize = jobs.iter().map(|job| job.output.as_ref().map_or(0, String::len)).sum();
    if bytes > DECISION_BYTES_MAX {
        let names = names.join(", ");
        return Ok(Err(format!(
            "`outputs` reads {bytes} bytes of outputs, and may read at most {DECISION_BYTES_MAX}: {names}"
        )));
    }
    let run = read_context(connection, run_id)?;
    Ok(values(&run, None, jobs, None, Map::new()).and_then(|values| outputs_text(workflow, &values)))
}

/// The names of the first failed jobs of a run, and how many there are.
fn failed_jobs(connection: &mut dyn Connection, run_id: i64) -> Result<(Vec<String>, i64)> {
    let names = all(
        connection,
        "SELECT name FROM jobs WHERE run_id = $1 AND status = 'FAILED' AND allow_failure = 0 ORDER BY id LIMIT $2",
        &[run_id.into(), NAMES_MAX.into()],
        |row| Ok(row.lossy_text(0)?.unwrap_or_default()),
    )?;
    let all = match names.len() as i64 {
        few if few < NAMES_MAX => few,
        _many => one(
            connection,
            "SELECT count(*) FROM jobs WHERE run_id = $1 AND status = 'FAILED' AND allow_failure = 0",
            &[run_id.into()],
            |row| row.integer(0),
        )?,
    };
    Ok((names, all))
}

/// Writes what the ends of runs make of the jobs. A job that was asked to stop starts no other run.
static END_CALLS: UpdateReturning = UpdateReturning {
    table: "jobs",
    set: &[
        (
            "status",
            "CASE WHEN jobs.cancel_requested_at IS NOT NULL AND news.status IN ('SCHEDULED', 'CANCELLED')
                  THEN CASE WHEN jobs.deadline_at <= jobs.cancel_requested_at THEN 'FAILED' ELSE 'CANCELLED' END
                  ELSE news.status END",
        ),
        ("waits_for", "NULL"),
        ("failures", "news.failures"),
        ("execute_after", "coalesce($2 + news.delay_ms, jobs.execute_after)"),
        ("delay_ms", "news.delay_ms"),
        (
            "last_error",
            "CASE WHEN jobs.deadline_at <= jobs.cancel_requested_at AND news.status <> 'SUCCESSFUL'
                  THEN 'it was not over at its deadline: ' || news.last_error ELSE news.last_error END",
        ),
        ("output", "news.output"),
        ("updated_at", "$2"),
        (
            "finished_at",
            "CASE WHEN news.status = 'SCHEDULED' AND jobs.cancel_requested_at IS NULL THEN NULL ELSE $2 END",
        ),
    ],
    from: Some(
        "{rows $1: id integer, attempt integer, status text, failures integer, delay_ms integer, last_error text,
                   output text} AS news",
    ),
    condition: "{by jobs.id = news.id} AND {guard jobs.status = 'WAITING'} AND jobs.waits_for = 'run'
                AND jobs.attempt = news.attempt",
    returning: &["jobs.id", "jobs.run_id", "jobs.name", "jobs.status", "jobs.allow_failure", "jobs.group_id"],
};

fn write(connection: &mut dyn Connection, transitions: &[(i64, Transition)], now_ms: i64) -> Result<()> {
    if transitions.is_empty() {
        return Ok(());
    }
    let news: Vec<[Value<'_>; 7]> = transitions
        .iter()
        .map(|(job_id, transition)| {
            [
                (*job_id).into(),
                transition.attempt.into(),
                transition.status.as_str().into(),
                transition.failures.into(),
                transition.delay_ms.into(),
                (&transition.last_error).into(),
                (&transition.output).into(),
            ]
        })
        .collect();
    let ended = all_updated(connection, &END_CALLS, &[Value::rows(&news), now_ms.into()], |row| {
        Ok(Ended {
            job_id: row.integer(0)?,
            run_id: row.optional_integer(1)?,
            name: row.lossy_text(2)?,
            columns: EndColumns {
                status: row.parsed(3, JobStatus::parse)?,
                allow_failure: row.integer(4)? != 0,
                upstream_failed: false,
            },
            belonging: Belonging::of(row.optional_integer(5)?),
        })
    })?;
    record(connection, transitions, now_ms)?;
    let propagated = propagate(connection, &ended, None, now_ms)?;
    release(connection, &propagated.promoted.ready, now_ms)?;
    connection.wake(WakeUps::PENDING | WakeUps::PROGRESS | WakeUps::DUE);
    Ok(())
}

/// Records the attempts that did not succeed.
fn record(connection: &mut dyn Connection, transitions: &[(i64, Transition)], now_ms: i64) -> Result<()> {
    let records: Vec<[Value<'_>; 4]> = transitions
        .iter()
        .filter_map(|(job_id, transition)| {
            let outcome = transition.record?.as_str();
            Some([
                (*job_id).into(),
                transition.attempt.into(),
                outcome.into(),
                (&transition.last_error).into(),
            ])
        })
        .collect();
    if records.is_empty() {
        return Ok(());
    }
    connection.execute(
        "INSERT INTO job_attempts (job_id, attempt, outcome, error, started_at, finished_at)
         SELECT news.job_id, news.attempt, news.outcome, news.error, jobs.started_at, $2
         FROM {rows $1: job_id integer, attempt integer, outcome text, error text} AS news
         JOIN jobs ON {by jobs.id = news.job_id}
         WHERE true
         ON CONFLICT (job_id, attempt) DO UPDATE
         SET outcome = excluded.outcome, error = excluded.error, finished_at = excluded.finished_at",
        &[Value::rows(&records), now_ms.into()],
    )?;
    Ok(())
}
