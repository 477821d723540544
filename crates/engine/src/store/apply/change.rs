//! Changes to a registered workflow: pausing and resuming its schedules, and removing it.

use crate::store::Registrations;
use crate::store::evidence::Evidence;
use crate::store::registrations::find;
use crate::store::schedules::{advance_cursors_of_workflow, sync};
use crate::store::triggers::sync_triggers;
use windlass_db::Connection;
use windlass_db::error::{Error, Result};
use windlass_system::wake_ups::WakeUps;

impl Registrations<'_> {
    /// Removes a workflow's registration. Its versions are kept, and its runs continue.
    ///
    /// # Errors
    /// [`Error::NotFound`] and the database's.
    pub fn remove(&self, name: &str) -> Result<()> {
        let (name, now_ms) = (name.to_owned(), self.store.clock.now_ms());
        self.store.write("remove a workflow", Evidence::Token, move |connection| {
            let removed =
                connection.execute("DELETE FROM registrations WHERE name = $1", &[(&name).into()])?;
            if removed == 0 {
                return Err(not_registered(&name));
            }
            sync(connection, &name, &[], now_ms)?;
            sync_triggers(connection, &name, &[], now_ms)?;
            connection.wake(WakeUps::DUE);
            Ok(())
        })
    }

    /// Pauses the schedules of a workflow. Returns `false` if they were paused already.
    ///
    /// # Errors
    /// [`Error::NotFound`] and the database's.
    pub fn pause(&self, name: &str) -> Result<bool> {
        let (name, now_ms) = (name.to_owned(), self.store.clock.now_ms());
        self.store.write("pause a workflow", Evidence::Token, move |connection| {
            let paused = connection.execute(
                "UPDATE registrations SET paused_at = $2, updated_at = $2
                 WHERE name = $1 AND paused_at IS NULL",
                &[(&name).into(), now_ms.into()],
            )?;
            connection.wake(WakeUps::DUE);
            changed_or_missing(connection, &name, paused)
        })
    }

    /// Resumes the schedules of a workflow from now on. Returns `false` if they were not paused.
    ///
    /// # Errors
    /// [`Error::NotFound`] and the database's.
    pub fn resume(&self, name: &str) -> Result<bool> {
        let (name, now_ms) = (name.to_owned(), self.store.clock.now_ms());
        self.store.write("resume a workflow", Evidence::Token, move |connection| {
            let resumed = connection.execute(
                "UPDATE registrations SET paused_at = NULL, updated_at = $2
                 WHERE name = $1 AND paused_at IS NOT NULL",
                &[(&name).into(), now_ms.into()],
            )?;
            if resumed > 0 {
                advance_cursors_of_workflow(connection, &name, now_ms)?;
            }
            changed_or_missing(connection, &name, resumed)
        })
    }
}

fn changed_or_missing(connection: &mut dyn Connection, name: &str, changed: u64) -> Result<bool> {
    if changed == 0 && find(connection, name)?.is_none() {
        return Err(not_registered(name));
    }
    Ok(changed > 0)
}

fn not_registered(name: &str) -> Error {
    Error::not_found(format!("registered workflow `{name}`"))
}
