//! What people decide about jobs that wait for them.

use crate::decide::{Control, Then};
use crate::join_rule::EndColumns;
use crate::status::{JobStatus, WaitsFor};
use crate::store::Jobs;
use crate::store::claim::ready::release;
use crate::store::evidence::Evidence;
use crate::store::finish::locks::lock_runs_of;
use crate::store::finish::propagation::{Belonging, Ended, propagate};
use crate::store::jobs::label;
use crate::values::instant_text;
use serde_json::{Map, Value as Json, json};
use windlass_db::error::{Error, Result};
use windlass_db::{Connection, first};
use windlass_system::wake_ups::WakeUps;
use windlass_workflow::kinds::approval::Approval;

/// What a person decides about a job that waits for an approval. Who it is is recorded, and not proved.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// The job is successful.
    Approve {
        /// Who approves.
        by: String,
        /// The values of the fields, bound and complete.
        fields: Map<String, Json>,
    },
    /// The job fails.
    Reject {
        /// Who rejects.
        by: String,
        /// Why.
        reason: String,
    },
}

impl Verdict {
    fn verb(&self) -> &'static str {
        match self {
            Verdict::Approve { .. } => "approve",
            Verdict::Reject { .. } => "reject",
        }
    }
}

impl Jobs<'_> {
    /// The approval that a job is for; `None` if it is another kind of job.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn approval(&self, job_id: i64) -> Result<Option<Approval>> {
        self.store.read(|connection| {
            let sql = "SELECT control FROM jobs WHERE id = $1";
            let control = first(connection, sql, &[job_id.into()], |row| row.lossy_text(0))?.flatten();
            Ok(control.and_then(|control| approval_in(&control)))
        })
    }

    /// Ends a job that waits for an approval.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Conflict`] if it does not wait for an approval; and the database's.
    pub fn decide_approval(&self, job_id: i64, verdict: Verdict) -> Result<()> {
        let now_ms = self.store.clock.now_ms();
        self.store.write("decide about an approval", Evidence::Token, move |connection| {
            end(connection, job_id, &verdict, now_ms)
        })
    }
}

/// The approval in the `control` of a job.
pub(super) fn approval_in(control: &str) -> Option<Approval> {
    match serde_json::from_str::<Control>(control).ok()?.then? {
        Then::Approval(approval) => Some(approval),
        Then::ForEach(_) | Then::Call(_) | Then::Sleep(_) | Then::WaitFor(_) | Then::Signal(_) => None,
    }
}

fn end(connection: &mut dyn Connection, job_id: i64, verdict: &Verdict, now_ms: i64) -> Result<()> {
    lock_runs_of(connection, &[job_id])?;
    let (status, output, error) = match verdict {
        Verdict::Approve { by, fields } => {
            let output = json!({ "by": by, "at": instant_text(now_ms), "fields": fields });
            (JobStatus::Successful, Some(output.to_string()), None)
        }
        Verdict::Reject { by, reason } => {
            (JobStatus::Failed, None, Some(format!("rejected by {by}: {reason}")))
        }
    };
    let ended = first(
        connection,
        "UPDATE jobs SET status = $2, waits_for = NULL, output = $3, last_error = $4, updated_at = $5,
                         finished_at = $5
         WHERE id = $1 AND status = 'WAITING' AND waits_for = 'approval'
         RETURNING run_id, name, allow_failure, group_id",
        &[job_id.into(), status.as_str().into(), (&output).into(), (&error).into(), now_ms.into()],
        |row| {
            let columns = EndColumns { status, allow_failure: row.integer(2)? != 0, upstream_failed: false };
            Ok(Ended {
                job_id,
                run_id: row.optional_integer(0)?,
                name: row.lossy_text(1)?,
                columns,
                belonging: Belonging::of(row.optional_integer(3)?),
            })
        },
    )?;
    let Some(ended) = ended else { return Err(why_not(connection, job_id, verdict)?) };
    let propagated = propagate(connection, &[ended], None, now_ms)?;
    release(connection, &propagated.promoted.ready, now_ms)?;
    connection.wake(WakeUps::PENDING | WakeUps::PROGRESS | WakeUps::DUE);
    Ok(())
}

fn why_not(connection: &mut dyn Connection, job_id: i64, verdict: &Verdict) -> Result<Error> {
    let known = first(
        connection,
        "SELECT status, run_id, name, waits_for, kind FROM jobs WHERE id = $1",
        &[job_id.into()],
        |row| {
            let label = label(job_id, row.optional_integer(1)?, row.lossy_text(2)?.as_deref());
            Ok((row.parsed(0, JobStatus::parse)?, label, row.lossy_text(3)?, row.lossy_text(4)?))
        },
    )?;
    let Some((status, label, waits_for, kind)) = known else {
        return Ok(Error::not_found(format!("job j{job_id}")));
    };
    let is_decision = waits_for.as_deref() == Some(WaitsFor::Decision.as_str());
    let reason = if kind.as_deref() != Some("approval") {
        "it is no approval".to_owned()
    } else if status == JobStatus::Waiting && is_decision {
        "the scheduler has not asked for the approval yet; try again".to_owned()
    } else if status == JobStatus::Blocked {
        "the jobs that it needs have not ended".to_owned()
    } else {
        format!("it is {status}")
    };
    Ok(Error::conflict(format!("{} job {label}", verdict.verb()), reason))
}
