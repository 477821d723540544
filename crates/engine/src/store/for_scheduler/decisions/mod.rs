//! Jobs that wait for a decision: reading what the decision needs, and writing what was decided.
//!
//! The rows are read and changed in one transaction that holds the locks of their runs. So nothing that a decision depends
//! on can change in between, and of two schedulers the second one finds no row that waits.

mod calls;
mod deadline;
mod decide;
pub(in crate::store) mod ended_calls;
mod for_each;
mod parents;
mod signal;
mod sleep;
mod wait;

use std::collections::BTreeSet;

use crate::decide::{Control, Decision, EndWithoutAttempt, parts_of_event};
use crate::join_rule::{EndColumns, JoinRule, ParentEnds};
use crate::status::JobStatus;
use crate::store::claim::job::read_item;
use crate::store::claim::ready::release;
use crate::store::claim::take::start_runs;
use crate::store::events::lock_events;
use crate::store::evidence::Evidence;
use crate::store::finish::propagation::{Belonging, Ended, propagate};
use crate::store::finish::slots::admit;
use crate::store::{ForScheduler, json_ids};
use crate::values::Item;
use calls::{CalledWorkflows, Caller, NewChild, lock_runs_of_callers, retry_in_place, start_calls};
use decide::{Decided, Reading, decide};
use for_each::insert_items;
use parents::read_parents;
use signal::send;
use sleep::{Sleeper, begin_sleeps};
use wait::begin_waits;
use windlass_db::error::Result;
use windlass_db::{Connection, UpdateReturning, Value, all, all_updated};
use windlass_system::random::Random;
use windlass_system::wake_ups::WakeUps;
use windlass_workflow::template::variables_read_in;

/// How many jobs one transaction decides.
const DECISIONS_MAX: i64 = 200;

/// A job that waits for a decision.
struct WaitingJob {
    id: i64,
    run_id: Option<i64>,
    is_handler: bool,
    join_rule: JoinRule,
    parents: ParentEnds,
    caller: Caller,
    /// It was decided before, and has slept or waited since then.
    has_begun: bool,
    event_key: Option<String>,
    deadline_at: Option<i64>,
    /// What is decided, or why the row can't be read.
    control: std::result::Result<Control, String>,
    /// The names of the variables that it reads.
    variables: BTreeSet<String>,
    item: Option<Item>,
}

impl WaitingJob {
    /// When a wait of the job ends by its timeout.
    fn deadline(&self, timeout_ms: Option<i64>, now_ms: i64) -> Option<i64> {
        match self.has_begun {
            true => self.deadline_at,
            false => timeout_ms.map(|timeout_ms| now_ms.saturating_add(timeout_ms)),
        }
    }
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
                "SELECT id, CASE WHEN kind IN ('wait_for', 'signal') THEN 1 ELSE 0 END FROM jobs
                 WHERE status = 'WAITING' AND waits_for = 'decision' ORDER BY id LIMIT $1",
                &[DECISIONS_MAX.into()],
                |row| Ok((row.integer(0)?, row.integer(1)? != 0)),
            )
        })?;
        if waiting.is_empty() {
            return Ok(0);
        }
        let (now_ms, random) = (self.store.clock.now_ms(), self.store.random.clone());
        let has_events = waiting.iter().any(|(_id, has_event)| *has_event);
        let waiting: Vec<i64> = waiting.into_iter().map(|(id, _has_event)| id).collect();
        self.store.write("decide about jobs", Evidence::Repeat, move |connection| {
            if has_events {
                lock_events(connection)?;
            }
            lock_runs_of_callers(connection, &waiting)?;
            let jobs = read_waiting(connection, &waiting)?;
            let mut reading = Reading { bytes: 0, items: 0, called: CalledWorkflows::new(&random) };
            let mut decisions = Vec::new();
            for job in &jobs {
                if reading.is_full() {
                    break;
                }
                decisions.push((job, decide(connection, job, now_ms, &mut reading)?));
            }
            carry_out(connection, &decisions, &random, now_ms)?;
            Ok(decisions.len() as i64)
        })
    }
}

/// Reads those of the jobs that still wait for a decision.
fn read_waiting(connection: &mut dyn Connection, job_ids: &[i64]) -> Result<Vec<WaitingJob>> {
    let mut parents = read_parents(connection, job_ids)?;
    all(
        connection,
        "SELECT id, run_id, phase, join_rule, control, item, started_at, event, wait_ends_at, attempt,
                timeout_ms, root_run_id FROM jobs
         WHERE id {in $1} AND {guard status = 'WAITING'} AND waits_for = 'decision' ORDER BY id",
        &[(&json_ids(job_ids)).into()],
        |row| {
            let id = row.integer(0)?;
            let join_rule = match row.lossy_text(3)? {
                Some(_rule) => row.parsed(3, JoinRule::parse)?,
                None => JoinRule::AllSuccessful,
            };
            let control = row.lossy_text(4)?;
            let variables = control.as_deref().map(variables_read_in).unwrap_or_default();
            let control = match control {
                Some(json) => serde_json::from_str(&json)
                    .map_err(|error| format!("the row can't be read: its control is invalid: {error}")),
                None => Ok(Control::default()),
            };
            let (control, item) = match read_item(row, 5) {
                Ok(item) => (control, item),
                Err(error) => (Err(error), None),
            };
            Ok(WaitingJob {
                id,
                run_id: row.optional_integer(1)?,
                is_handler: row.integer(2)? > 0,
                join_rule,
                parents: parents.remove(&id).unwrap_or_default(),
                caller: Caller {
                    attempt: row.integer(9)?,
                    timeout_ms: row.optional_integer(10)?,
                    root_run_id: row.optional_integer(11)?,
                },
                has_begun: row.optional_integer(6)?.is_some(),
                event_key: row.lossy_text(7)?.map(|event| parts_of_event(&event).1.to_owned()),
                deadline_at: row.optional_integer(8)?,
                control,
                variables,
                item,
            })
        },
    )
}

fn carry_out(
    connection: &mut dyn Connection,
    decisions: &[(&WaitingJob, Decided)],
    random: &Random,
    now_ms: i64,
) -> Result<()> {
    let (mut go_on, mut ends, mut sleepers, mut waits) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut children, mut refused): (Vec<&NewChild>, _) = (Vec::new(), Vec::new());
    let mut sent = Vec::new();
    deadline::begin(connection, &deadlines_of(decisions), now_ms)?;
    for (job, decided) in decisions {
        let decision = match decided {
            Decided::Only(decision) => decision,
            Decided::Call(child) => {
                children.push(child);
                continue;
            }
            Decided::Again(child_id) => {
                retry_in_place(connection, job.id, *child_id, now_ms)?;
                continue;
            }
        };
        match decision {
            Decision::GoOn => go_on.push(job.id),
            Decision::Expand(expansion) => {
                if let Err(reason) = insert_items(connection, job, expansion, random, now_ms)? {
                    refused.push((job.id, reason));
                }
            }
            Decision::Sleep { until_ms, delay_ms } => {
                sleepers.push(Sleeper { job_id: job.id, until_ms: *until_ms, delay_ms: *delay_ms });
            }
            Decision::Wait(wait) => waits.push((job.id, wait)),
            Decision::Send(event) => {
                send(connection, job.id, event, now_ms)?;
                sent.push((job.id, event.output()));
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
    ends.extend(sent.iter().map(|(job_id, output)| DecidedEnd {
        job_id: *job_id,
        status: JobStatus::Successful,
        upstream_failed: false,
        reason: None,
        output: Some(output.as_str()),
    }));
    ends.extend(refused.iter().map(|(job_id, reason)| DecidedEnd {
        job_id: *job_id,
        status: JobStatus::Failed,
        upstream_failed: false,
        reason: Some(reason.as_str()),
        output: None,
    }));
    // The first decision of a run starts it, as a first claim does.
    start_runs(connection, decisions.iter().filter_map(|(job, _decision)| job.run_id).collect(), now_ms)?;
    let keys = let_go_on(connection, &go_on, now_ms)?;
    admit(connection, &keys, now_ms)?;
    begin_sleeps(connection, &sleepers, now_ms)?;
    begin_waits(connection, &waits, now_ms)?;
    start_calls(connection, &children, now_ms)?;
    let ended = write_ends(connection, &ends, now_ms)?;
    let propagated = propagate(connection, &ended, None, now_ms)?;
    release(connection, &propagated.promoted.ready, now_ms)?;
    connection.wake(WakeUps::PENDING | WakeUps::PROGRESS);
    Ok(())
}

/// The jobs that go on and have a deadline, each with its duration.
fn deadlines_of(decisions: &[(&WaitingJob, Decided)]) -> Vec<(i64, i64)> {
    let goes_on = |decided: &Decided| match decided {
        Decided::Only(Decision::GoOn | Decision::Expand(_)) | Decided::Call(_) | Decided::Again(_) => true,
        Decided::Only(
            Decision::Sleep { .. }
            | Decision::Wait(_)
            | Decision::Send(_)
            | Decision::Done { .. }
            | Decision::End(_),
        ) => false,
    };
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
        ("waits_for", "NULL"),
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
        "jobs.group_id",
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
            belonging: Belonging::of(row.optional_integer(6)?),
        })
    })
}
