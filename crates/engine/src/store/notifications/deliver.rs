//! Delivering: a service takes a notification for the time of a lease, and writes what came of it. The number of the attempt
//! guards both, so that of two services one delivers, and a service that was too slow changes nothing.

use super::NotificationEvent;
use crate::store::Notifications;
use crate::store::evidence::Evidence;
use windlass_db::error::Result;
use windlass_db::{Connection, all, first};

/// How often a notification is taken for delivery before it is given up.
pub const DELIVERY_ATTEMPTS_MAX: i64 = 15;
/// The pause after the first failed delivery, in milliseconds. Each further one doubles it.
const BACKOFF_MS: i64 = 5_000;
/// The longest pause after a failed delivery, in milliseconds.
const BACKOFF_MAX_MS: i64 = 3_600_000;
/// A notification that waits for longer is given up, in milliseconds: no service has its target.
const WAIT_MAX_MS: i64 = 48 * 3_600_000;
/// How many one step gives up.
const GIVEN_UP_MAX: i64 = 200;
/// How many failed jobs a message names.
const JOBS_MAX: i64 = 10;

/// A notification that this service delivers now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedNotification {
    /// Its id in this database.
    pub id: i64,
    /// The name of its target.
    pub target: String,
    /// What happened.
    pub event: NotificationEvent,
    /// The id of the run, the schedule or the worker.
    pub subject_id: i64,
    /// The name of the workflow, of the schedule, or of the worker's host.
    pub subject: String,
    /// When it happened.
    pub happened_at: i64,
    /// The number of this attempt to deliver it.
    pub attempt: i64,
    created_at: i64,
    token: i64,
}

impl ClaimedNotification {
    /// The id of the message: the same in all deliveries, also by a copy of the database.
    #[must_use]
    pub fn message_id(&self) -> String {
        format!("msg_{}_{}", self.created_at, self.token)
    }
}

/// What came of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeliveryResult {
    /// The target has taken it.
    Delivered,
    /// It has not, for this reason. The reason contains no address and no command.
    Failed(String),
    /// It has not and never will, for this reason: a repetition would get the same answer.
    Refused(String),
    /// The service ended meanwhile.
    Interrupted,
}

/// What a message says besides the row of the notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MessageDetails {
    /// Of the run, if it is still there and has not been retried.
    Run(Option<RunDetails>),
    /// Of a late schedule.
    Schedule(LateSchedule),
    /// Of the worker, if it is still there.
    Worker(Option<WorkerDetails>),
}

/// A late schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LateSchedule {
    /// How late it was when that was noticed, in milliseconds.
    pub late_ms: i64,
}

/// A run that ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunDetails {
    /// Whether it reached its timeout.
    pub timed_out: bool,
    /// When it was submitted.
    pub created_at: i64,
    /// When its first job was claimed.
    pub started_at: Option<i64>,
    /// How many jobs it has.
    pub total_jobs: i64,
    /// The first of its failed jobs, with their errors.
    pub failed_jobs: Vec<(String, Option<String>)>,
}

/// A worker that was found dead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerDetails {
    /// The number of its process.
    pub pid: i64,
    /// When it started.
    pub started_at: i64,
}

impl Notifications<'_> {
    /// Takes the next notification of a target, for the time of the lease. Returns `None` if there is none that is due.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn claim(&self, target: &str, lease_ms: i64) -> Result<Option<ClaimedNotification>> {
        let now_ms = self.store.clock.now_ms();
        let Some(found) = self.store.read(|connection| next(connection, target, now_ms))? else {
            return Ok(None);
        };
        let (id, attempt) = (found.id, found.attempt);
        let taken = self.store.write("take a notification", Evidence::Token, move |connection| {
            connection.execute(
                "UPDATE notifications SET attempt = attempt + 1, next_at = $3
                 WHERE id = $1 AND {guard status = 'PENDING'} AND {guard attempt = $2}",
                &[id.into(), attempt.into(), (now_ms + lease_ms).into()],
            )
        })?;
        // Otherwise another service has taken it.
        Ok((taken == 1).then(|| ClaimedNotification { attempt: attempt + 1, ..found }))
    }

    /// Writes what came of a delivery. Returns false if the lease had ended and another service has taken the notification.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn record(&self, claimed: &ClaimedNotification, result: &DeliveryResult) -> Result<bool> {
        let now_ms = self.store.clock.now_ms();
        let (status, next_at, error) = match result {
            DeliveryResult::Delivered => ("DELIVERED", now_ms, None),
            DeliveryResult::Interrupted => ("PENDING", now_ms, None),
            DeliveryResult::Refused(error) => ("FAILED", now_ms, Some(error.clone())),
            DeliveryResult::Failed(error) if claimed.attempt >= DELIVERY_ATTEMPTS_MAX => {
                ("FAILED", now_ms, Some(error.clone()))
            }
            DeliveryResult::Failed(error) => {
                ("PENDING", now_ms + backoff_ms(claimed.attempt), Some(error.clone()))
            }
        };
        let (id, attempt) = (claimed.id, claimed.attempt);
        let written = self.store.write("write a delivery", Evidence::Token, move |connection| {
            connection.execute(
                "UPDATE notifications
                 SET status = $3, next_at = $4, last_error = coalesce(CAST($5 AS TEXT), last_error),
                     finished_at = CASE WHEN CAST($3 AS TEXT) = 'PENDING' THEN NULL ELSE CAST($6 AS BIGINT) END
                 WHERE id = $1 AND {guard status = 'PENDING'} AND {guard attempt = $2}",
                &[id.into(), attempt.into(), status.into(), next_at.into(), (&error).into(), now_ms.into()],
            )
        })?;
        Ok(written == 1)
    }

    /// Gives up what has waited for too long, because no service has its target. Returns how many.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn give_up_old(&self) -> Result<i64> {
        let now_ms = self.store.clock.now_ms();
        let before_ms = now_ms.saturating_sub(WAIT_MAX_MS);
        let old = self.store.read(|connection| {
            all(
                connection,
                "SELECT id FROM notifications WHERE status = 'PENDING' AND created_at < $1 AND next_at < $2
                 ORDER BY created_at LIMIT $3",
                &[before_ms.into(), now_ms.into(), GIVEN_UP_MAX.into()],
                |row| row.integer(0),
            )
        })?;
        if old.is_empty() {
            return Ok(0);
        }
        let ids = crate::store::json_ids(&old);
        let given_up = self.store.write("give up notifications", Evidence::Repeat, move |connection| {
            connection.execute(
                "UPDATE notifications
                 SET status = 'FAILED', finished_at = $2, last_error = coalesce(last_error, 'no service has this target')
                 WHERE id {in $1} AND {guard status = 'PENDING'} AND {guard next_at < $2}",
                &[(&ids).into(), now_ms.into()],
            )
        })?;
        Ok(i64::try_from(given_up).unwrap_or(i64::MAX))
    }

    /// Reads what the message of a notification says besides its row.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn details(&self, claimed: &ClaimedNotification) -> Result<MessageDetails> {
        let (id, happened_at) = (claimed.subject_id, claimed.happened_at);
        match claimed.event {
            NotificationEvent::RunFailed
            | NotificationEvent::RunCancelled
            | NotificationEvent::RunSuccessful => self
                .store
                .read(|connection| run_details(connection, id, happened_at))
                .map(MessageDetails::Run),
            NotificationEvent::ScheduleLate => {
                let late_ms = claimed.created_at - happened_at;
                Ok(MessageDetails::Schedule(LateSchedule { late_ms }))
            }
            NotificationEvent::WorkerDead => {
                self.store.read(|connection| worker_details(connection, id)).map(MessageDetails::Worker)
            }
        }
    }
}

/// The pause after the failed attempt of this number.
fn backoff_ms(attempt: i64) -> i64 {
    let doublings = u32::try_from(attempt.clamp(1, 30) - 1).unwrap_or(0);
    BACKOFF_MS.saturating_mul(1 << doublings).min(BACKOFF_MAX_MS)
}

fn next(connection: &mut dyn Connection, target: &str, now_ms: i64) -> Result<Option<ClaimedNotification>> {
    first(
        connection,
        "SELECT id, event, subject_id, subject, happened_at, attempt, created_at, token FROM notifications
         WHERE status = 'PENDING' AND target = $1 AND next_at <= $2 ORDER BY next_at, id LIMIT 1",
        &[target.into(), now_ms.into()],
        |row| {
            Ok(ClaimedNotification {
                id: row.integer(0)?,
                target: target.to_owned(),
                event: row.parsed(1, NotificationEvent::parse)?,
                subject_id: row.integer(2)?,
                subject: row.lossy_text(3)?.unwrap_or_default(),
                happened_at: row.integer(4)?,
                attempt: row.integer(5)?,
                created_at: row.integer(6)?,
                token: row.integer(7)?,
            })
        },
    )
}

fn run_details(connection: &mut dyn Connection, run_id: i64, finished_at: i64) -> Result<Option<RunDetails>> {
    let found = first(
        connection,
        "SELECT stop_reason, created_at, started_at, total_jobs FROM runs WHERE id = $1 AND finished_at = $2",
        &[run_id.into(), finished_at.into()],
        |row| {
            Ok(RunDetails {
                timed_out: row.lossy_text(0)?.as_deref() == Some("timed_out"),
                created_at: row.integer(1)?,
                started_at: row.optional_integer(2)?,
                total_jobs: row.integer(3)?,
                failed_jobs: Vec::new(),
            })
        },
    )?;
    let Some(run) = found else { return Ok(None) };
    let failed_jobs = all(
        connection,
        "SELECT name, last_error FROM jobs
         WHERE run_id IS NOT NULL AND run_id = $1 AND CASE status WHEN 'FAILED' THEN allow_failure ELSE 1 END = 0
         ORDER BY name LIMIT $2",
        &[run_id.into(), JOBS_MAX.into()],
        |row| Ok((row.lossy_text(0)?.unwrap_or_default(), row.lossy_text(1)?)),
    )?;
    Ok(Some(RunDetails { failed_jobs, ..run }))
}

fn worker_details(connection: &mut dyn Connection, worker_id: i64) -> Result<Option<WorkerDetails>> {
    first(connection, "SELECT pid, started_at FROM workers WHERE id = $1", &[worker_id.into()], |row| {
        Ok(WorkerDetails { pid: row.integer(0)?, started_at: row.integer(1)? })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pauses_double_up_to_an_hour() {
        let pauses: Vec<i64> = [1, 2, 3, 10, 11, 99].into_iter().map(backoff_ms).collect();
        assert_eq!(pauses, [5_000, 10_000, 20_000, 2_560_000, 3_600_000, 3_600_000]);
    }
}
