//! Decides about one job: reads the values that the decision needs, and asks the pure functions.

use serde_json::Value as Json;
use windlass_workflow::Expression;

use super::WaitingJob;
use super::calls::{CalledWorkflows, NewChild, run_to_retry};
use super::for_each::TRANSACTION_ITEMS_MAX;
use super::wait::find_event;
use crate::decide::call::Call;
use crate::decide::{
    Decision, EndWithoutAttempt, Then, Wait, begin_sleeping, decide_approval, decide_by_condition,
    decide_by_parents, decide_signal, decide_wait_for, expand,
};
use crate::status::WaitsFor;
use crate::store::jobs::read_values;
use crate::store::runs::{read_context, read_end};
use crate::store::variables::read_variables;
use crate::values::values;
use windlass_db::Connection;
use windlass_db::error::Result;

/// After it has read so many bytes of values, a transaction leaves the other jobs to the next one.
const TRANSACTION_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How many bytes of outputs a decision may read.
pub(super) const DECISION_BYTES_MAX: usize = 1024 * 1024;

/// What one transaction has read.
pub(super) struct Reading<'r> {
    /// The bytes of values.
    pub(super) bytes: usize,
    /// The items of groups.
    pub(super) items: usize,
    pub(super) called: CalledWorkflows<'r>,
}

impl Reading<'_> {
    /// Whether the other jobs are left to the next transaction.
    pub(super) fn is_full(&self) -> bool {
        self.bytes >= TRANSACTION_BYTES_MAX || self.items >= TRANSACTION_ITEMS_MAX || self.called.is_full()
    }
}

/// What happens to a job, with the run that it starts.
pub(super) enum Decided {
    Only(Decision),
    Call(Box<NewChild>),
    /// The job's last run is retried.
    Again(i64),
}

/// Decides about a job.
pub(super) fn decide(
    connection: &mut dyn Connection,
    job: &WaitingJob,
    now_ms: i64,
    reading: &mut Reading<'_>,
) -> Result<Decided> {
    let only = |decision: Decision| Ok(Decided::Only(decision));
    let failed = |reason: String| only(Decision::End(EndWithoutAttempt::failed(reason)));
    let control = match &job.control {
        Ok(control) => control,
        Err(error) => return failed(error.clone()),
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
        let names = names_read(condition);
        let decision = match read_values_of(connection, job, run_id, "`if`", &names, reading)? {
            Ok(values) => decide_by_condition(condition, &values),
            Err(reason) => return failed(reason),
        };
        if decision != Decision::GoOn {
            return only(decision);
        }
    }
    let uses = &control.uses;
    match &control.then {
        None => only(Decision::GoOn),
        Some(Then::ForEach(group)) => {
            let names = group.for_each.expression().map(names_read).unwrap_or_default();
            match read_values_of(connection, job, run_id, "`for_each`", &names, reading)? {
                Ok(values) => {
                    let decision = expand(group, uses, &values);
                    if let Decision::Expand(expansion) = &decision {
                        reading.items += expansion.items.len();
                    }
                    only(decision)
                }
                Err(reason) => failed(reason),
            }
        }
        Some(Then::Call(call)) => call_workflow(connection, job, run_id, call, uses, reading),
        Some(Then::Sleep(_)) if job.has_begun => only(Decision::Done { output: None }),
        Some(Then::Sleep(sleep)) => {
            match read_values_of(connection, job, run_id, "`sleep`", uses, reading)? {
                Ok(values) => only(begin_sleeping(sleep, &values, now_ms)),
                Err(reason) => failed(reason),
            }
        }
        Some(Then::WaitFor(wait_for)) => {
            let key = match &job.event_key {
                Some(key) => Ok(key.clone()),
                None => read_values_of(connection, job, run_id, "`wait_for`", uses, reading)?
                    .and_then(|values| wait_for.rendered_key(&values)),
            };
            let key = match key {
                Ok(key) => key,
                Err(reason) => return failed(reason),
            };
            let found = find_event(connection, run_id, &wait_for.event, &key)?;
            reading.bytes += found.as_ref().map_or(0, |event| event.payload.len());
            let wait = Wait {
                waits_for: WaitsFor::Event,
                event_name: Some(wait_for.event.clone()),
                event_key: Some(key),
                deadline_at: job.deadline(wait_for.timeout_ms, now_ms),
                payload: None,
            };
            only(decide_wait_for(wait_for, wait, found.as_ref(), now_ms))
        }
        Some(Then::Signal(signal)) => {
            match read_values_of(connection, job, run_id, "`signal`", uses, reading)?
                .and_then(|values| decide_signal(signal, &values))
            {
                Ok(event) => only(Decision::Send(event)),
                Err(reason) => failed(reason),
            }
        }
        Some(Then::Approval(approval)) => {
            let payload = if job.has_begun {
                None
            } else {
                match read_values_of(connection, job, run_id, "`approval`", uses, reading)?
                    .and_then(|values| approval.question(&values))
                {
                    Ok(question) => Some(question),
                    Err(reason) => return failed(reason),
                }
            };
            let wait = Wait {
                waits_for: WaitsFor::Approval,
                event_name: None,
                event_key: None,
                deadline_at: job.deadline(approval.timeout_ms, now_ms),
                payload,
            };
            only(decide_approval(approval, wait, now_ms))
        }
    }
}

/// Decides about a job that calls a workflow: it starts a run, or goes on with the one that a retry has chosen.
fn call_workflow(
    connection: &mut dyn Connection,
    job: &WaitingJob,
    run_id: i64,
    call: &Call,
    uses: &[String],
    reading: &mut Reading<'_>,
) -> Result<Decided> {
    if let Some(child_id) = run_to_retry(connection, job)? {
        return Ok(Decided::Again(child_id));
    }
    match read_values_of(connection, job, run_id, "`params`", uses, reading)? {
        Ok(values) => {
            let child = reading.called.prepare(connection, job, run_id, call, &values)?;
            Ok(child
                .map_or_else(|end| Decided::Only(Decision::End(end)), |child| Decided::Call(Box::new(child))))
        }
        Err(reason) => Ok(Decided::Only(Decision::End(EndWithoutAttempt::failed(reason)))),
    }
}

/// The names of the jobs that an expression reads.
fn names_read(expression: &Expression) -> Vec<String> {
    let mut names: Vec<String> = expression.reads().into_iter().map(|read| read.job).collect();
    names.dedup();
    names
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
    let variables = read_variables(connection, &job.variables)?;
    let run = read_context(connection, run_id)?;
    let end = if job.is_handler { read_end(connection, run_id)? } else { None };
    Ok(values(&run, end.as_ref(), jobs, job.item.as_ref(), variables))
}
