//! Notifications and targets for people.

use super::{NotificationEvent, NotificationStatus};
use crate::store::Notifications;
use windlass_db::error::Result;
use windlass_db::{Connection, all, one};

/// Up to this number, notifications of a state are counted.
const COUNT_MAX: i64 = 1_000;

/// A notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notification {
    /// Its id.
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
    /// Its state.
    pub status: NotificationStatus,
    /// How often it was taken for delivery.
    pub attempt: i64,
    /// When it is taken next, if it is pending.
    pub next_at: i64,
    /// Why the last delivery failed.
    pub last_error: Option<String>,
    /// When it was delivered or given up.
    pub finished_at: Option<i64>,
}

/// Which notifications to list, the newest first.
#[derive(Debug, Clone, Default)]
pub struct NotificationFilter {
    /// Only of this target.
    pub target: Option<String>,
    /// Only with ids below this one.
    pub before: Option<i64>,
    /// How many.
    pub limit: i64,
}

/// A target in the tables, and how many notifications it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetSummary {
    /// Its name.
    pub name: String,
    /// Whether it is in the tables. Otherwise there are only pending notifications of it.
    pub is_wanted: bool,
    /// How many are pending; counting stops at 1,000.
    pub pending: i64,
}

impl Notifications<'_> {
    /// Lists notifications, the newest first.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn list(&self, filter: &NotificationFilter) -> Result<Vec<Notification>> {
        let before = filter.before.unwrap_or(i64::MAX);
        self.store.read(|connection| {
            all(
                connection,
                "SELECT id, target, event, subject_id, subject, happened_at, status, attempt, next_at, last_error,
                        finished_at
                 FROM notifications
                 WHERE id < $1 AND (CAST($2 AS TEXT) IS NULL OR target = $2)
                 ORDER BY id DESC LIMIT $3",
                &[before.into(), (&filter.target).into(), filter.limit.into()],
                |row| {
                    Ok(Notification {
                        id: row.integer(0)?,
                        target: row.lossy_text(1)?.unwrap_or_default(),
                        event: row.parsed(2, NotificationEvent::parse)?,
                        subject_id: row.integer(3)?,
                        subject: row.lossy_text(4)?.unwrap_or_default(),
                        happened_at: row.integer(5)?,
                        status: row.parsed(6, NotificationStatus::parse)?,
                        attempt: row.integer(7)?,
                        next_at: row.integer(8)?,
                        last_error: row.lossy_text(9)?,
                        finished_at: row.optional_integer(10)?,
                    })
                },
            )
        })
    }

    /// Lists the targets in the tables, and other targets that have pending notifications.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn targets(&self) -> Result<Vec<TargetSummary>> {
        self.store.read(|connection| {
            let wanted = all(connection, "SELECT DISTINCT name FROM notification_targets ORDER BY name", &[], |row| {
                row.lossy_text(0).map(Option::unwrap_or_default)
            })?;
            // Steps from one target to the next, because one of them may have many.
            let with_pending = all(
                connection,
                "WITH RECURSIVE names (target) AS (
                     SELECT (SELECT target FROM notifications WHERE status = 'PENDING' ORDER BY target LIMIT 1)
                     UNION ALL
                     SELECT (SELECT notifications.target FROM notifications
                             WHERE notifications.status = 'PENDING' AND notifications.target > names.target
                             ORDER BY notifications.target LIMIT 1)
                     FROM names WHERE names.target IS NOT NULL
                 )
                 SELECT target FROM names WHERE target IS NOT NULL LIMIT $1",
                &[COUNT_MAX.into()],
                |row| row.lossy_text(0).map(Option::unwrap_or_default),
            )?;
            let mut names = [wanted.clone(), with_pending].concat();
            names.sort_unstable();
            names.dedup();
            names.into_iter().map(|name| summary(connection, name, &wanted)).collect()
        })
    }

    /// How many notifications were given up after this instant; counting stops at 1,000.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn failed_since(&self, since_ms: i64) -> Result<i64> {
        self.store.read(|connection| {
            one(
                connection,
                "SELECT count(*) FROM (SELECT finished_at FROM notifications
                                       WHERE status = 'FAILED' ORDER BY id DESC LIMIT $2) AS newest
                 WHERE finished_at > $1",
                &[since_ms.into(), COUNT_MAX.into()],
                |row| row.integer(0),
            )
        })
    }
}

fn summary(connection: &mut dyn Connection, name: String, wanted: &[String]) -> Result<TargetSummary> {
    let pending = one(
        connection,
        "SELECT count(*) FROM (SELECT 1 AS found FROM notifications
                               WHERE status = 'PENDING' AND target = $1 LIMIT $2) AS counted",
        &[(&name).into(), COUNT_MAX.into()],
        |row| row.integer(0),
    )?;
    Ok(TargetSummary { is_wanted: wanted.contains(&name), name, pending })
}
