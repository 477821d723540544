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
    /// Writes the targets of a service, as rows of its own, and removes the rows of services that are not alive. So a target
    /// stays as long as one living service has it. Does nothing if the rows are as they should be.
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
            for (name, owner) in unwanted(connection, worker_id, &targets)? {
                connection.execute(
                    "DELETE FROM notification_targets WHERE name = $1 AND worker_id = $2",
                    &[(&name).into(), owner.into()],
                )?;
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
            "SELECT target, sort, value FROM notification_filters WHERE target = $1 AND worker_id = $2",
            &[(&target.name).into(), worker_id.into()],
            |row| Ok([row.text(0)?, row.text(1)?, row.text(2)?]),
        )?;
        let wanted = target.filters();
        if filters.len() != wanted.len() || !filters.iter().all(|filter| wanted.contains(filter)) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The rows that nobody needs: other targets of this service, and all of services that are not alive.
fn unwanted(
    connection: &mut dyn Connection,
    worker_id: i64,
    targets: &[NewTarget],
) -> Result<Vec<(String, i64)>> {
    let rows = all(
        connection,
        "SELECT name, worker_id FROM notification_targets
         WHERE worker_id = $1
            OR worker_id NOT IN (SELECT id FROM workers WHERE status IN ('ALIVE', 'DRAINING'))
         ORDER BY name, worker_id",
        &[worker_id.into()],
        |row| Ok((row.text(0)?, row.integer(1)?)),
    )?;
    let is_wanted =
        |name: &str, owner| owner == worker_id && targets.iter().any(|target| target.name == name);
    Ok(rows.into_iter().filter(|(name, owner)| !is_wanted(name, *owner)).collect())
}

fn write(connection: &mut dyn Connection, worker_id: i64, target: &NewTarget, now_ms: i64) -> Result<()> {
    connection.execute(
        "INSERT INTO notification_targets (name, worker_id, updated_at) VALUES ($1, $2, $3)
         ON CONFLICT (name, worker_id) DO UPDATE SET updated_at = $3",
        &[(&target.name).into(), worker_id.into(), now_ms.into()],
    )?;
    connection.execute(
        "DELETE FROM notification_filters WHERE target = $1 AND worker_id = $2",
        &[(&target.name).into(), worker_id.into()],
    )?;
    for [name, sort, value] in &target.filters() {
        connection.execute(
            "INSERT INTO notification_filters (target, worker_id, sort, value) VALUES ($1, $2, $3, $4)",
            &[name.into(), worker_id.into(), sort.into(), value.into()],
        )?;
    }
    Ok(())
}
