//! What a write does besides its operation, if a person or a program asked for it: it records who, and makes it once.

use std::sync::Arc;

use super::audit::{self, Change};
use super::idempotency::{self, IdempotencyKey};
use windlass_db::Connection;
use windlass_db::error::Result;
use windlass_system::wake_ups::WakeUps;

/// What is recorded of a write.
pub(in crate::store) struct Record {
    /// What the write does, for example `cancel a run`.
    pub(in crate::store) action: &'static str,
    /// Who makes it, and of what.
    pub(in crate::store) change: Option<Arc<Change>>,
    /// The key of the request.
    pub(in crate::store) key: Option<Arc<IdempotencyKey>>,
    pub(in crate::store) now_ms: i64,
}

impl Record {
    /// Runs the operation in the caller's transaction, unless the same change was made with the same key before.
    pub(in crate::store) fn run<T: 'static>(
        &self,
        connection: &mut dyn Connection,
        operation: &mut impl FnMut(&mut dyn Connection) -> Result<T>,
    ) -> Result<T> {
        let Some(key) = &self.key else { return self.run_with_audit(connection, operation) };
        let row = idempotency::lock(connection, key, self.now_ms)?;
        let change = self.name_of_the_change();
        if let Some(value) = row.value(&change)? {
            return Ok(value);
        }
        let value = self.run_with_audit(connection, operation)?;
        row.add(connection, change, &value)?;
        Ok(value)
    }

    fn run_with_audit<T: 'static>(
        &self,
        connection: &mut dyn Connection,
        operation: &mut impl FnMut(&mut dyn Connection) -> Result<T>,
    ) -> Result<T> {
        let Some(change) = &self.change else { return operation(connection) };
        // Pages that are open show it.
        connection.wake(WakeUps::PROGRESS);
        let line = audit::insert(connection, change, self.action, self.now_ms)?;
        let value = operation(connection)?;
        audit::add_result(connection, line, &value)?;
        Ok(value)
    }

    /// Tells the changes of one request apart.
    fn name_of_the_change(&self) -> String {
        match &self.change {
            Some(change) => format!("{}: {}", self.action, change.subject),
            None => self.action.to_owned(),
        }
    }
}
