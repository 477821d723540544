//! The targets of notifications, without their addresses and commands.

use super::NotificationEvent;
use crate::store::Notifications;
use crate::store::evidence::Evidence;
use windlass_db::error::{Error, Result};
use windlass_db::{Connection, all};

/// How many targets a configuration may have. A service has a thread for each.
pub const TARGETS_MAX: usize = 20;
const OPERATION: &str = "set the targets of notifications";

/// A target and what it wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTarget {
    /// Its name.
    pub name: String,
    /// The events.
    pub events: Vec<NotificationEvent>,
    /// Only runs and schedules of these workflows; none means all. A name may end with `*`.
    pub workflows: Vec<String>,
    /// Only runs and schedules of workflows with one of these tags; none means all.
    pub tags: Vec<String>,
}

impl NewTarget {
    /// The rows that say what it wants.
    fn filters(&self) -> Vec<[String; 3]> {
        let row = |sort: &str, value: &str| [self.name.clone(), sort.to_owned(), value.to_owned()];
        let events = self.events.iter().map(|event| row("event", event.as_str()));
        let workflows = self.workflows.iter().map(|name| row("workflow", name));
        let tags = self.tags.iter().map(|tag| row("tag", tag));
        let mut rows: Vec<[String; 3]> = events.chain(workflows).chain(tags).collect();
        rows.sort_unstable();
        rows.dedup();
        rows
    }
}

impl Notifications<'_> {
    /// Writes the targets of a service, and removes those that no service has: other targets that this worker or a worker
    /// that is not alive wrote last. Does nothing if the rows are as they should be.
    ///
    /// # Errors
    /// [`Error::Invalid`] if there are too many; and the database's.
    pub fn set_targets(&self, worker_id: i64, targets: &[NewTarget]) -> Result<()> {
        if targets.len() > TARGETS_MAX {
            return Err(Error::invalid(OPERATION, format!("there are more than {TARGETS_MAX} targets")));
        }
        if self.store.read(|connection| is_as_it_should_be(connection, worker_id, targets))? {
            return Ok(());
        }
        let now_ms = self.store.clock.now_ms();
        let targets = targets.to_vec();
        self.store.write(OPERATION, Evidence::Repeat, move |connection| {
            for name in unwanted(connection, worker_id, &targets)? {
                connection.execute("DELETE FROM notification_targets WHERE name = $1", &[(&name).into()])?;
            }
            for target in &targets {
                write(connection, worker_id, target, now_ms)?;
            }
            Ok(())
        })
    }
}

fn is_as_it_should_be(
    connection: &mut dyn Connection,
    worker_id: i64,
    targets: &[NewTarget],
) -> Result<bool> {
    let present = all(
        connection,
        "SELECT name FROM notification_targets WHERE worker_id = $1",
        &[worker_id.into()],
        |row| row.text(0),
    )?;
    if !unwanted(connection, worker_id, targets)?.is_empty()
        || targets.iter().any(|target| !present.contains(&target.name))
    {
        return Ok(false);
    }
    for target in targets {
        let filters = all(
            connection,
            "SELECT target, sort, value FROM notification_filters WHERE target = $1",
            &[(&target.name).into()],
            |row| Ok([row.text(0)?, row.text(1)?, row.text(2)?]),
        )?;
        let wanted = target.filters();
        if filters.len() != wanted.len() || !filters.iter().all(|filter| wanted.contains(filter)) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The names of targets that this service does not have, and that no other service is known to have.
fn unwanted(connection: &mut dyn Connection, worker_id: i64, targets: &[NewTarget]) -> Result<Vec<String>> {
    let names = all(
        connection,
        "SELECT name FROM notification_targets
         WHERE worker_id = $1
            OR worker_id NOT IN (SELECT id FROM workers WHERE status IN ('ALIVE', 'DRAINING'))
         ORDER BY name",
        &[worker_id.into()],
        |row| row.text(0),
    )?;
    Ok(names.into_iter().filter(|name| targets.iter().all(|target| target.name != *name)).collect())
}

fn write(connection: &mut dyn Connection, worker_id: i64, target: &NewTarget, now_ms: i64) -> Result<()> {
    connection.execute(
        "INSERT INTO notification_targets (name, worker_id, updated_at) VALUES ($1, $2, $3)
         ON CONFLICT (name) DO UPDATE SET worker_id = $2, updated_at = $3",
        &[(&target.name).into(), worker_id.into(), now_ms.into()],
    )?;
    connection.execute("DELETE FROM notification_filters WHERE target = $1", &[(&target.name).into()])?;
    for [name, sort, value] in &target.filters() {
        connection.execute(
            "INSERT INTO notification_filters (target, sort, value) VALUES ($1, $2, $3)",
            &[name.into(), sort.into(), value.into()],
        )?;
    }
    Ok(())
}
