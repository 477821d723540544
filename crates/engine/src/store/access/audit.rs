//! The record of changes: who changed what, from where. A row is written by the transaction of the change itself, so there is
//! no change without its row, and no row of a change that was not made.

use std::any::Any;

use super::before::{self, Subject};
use crate::store::accepted::{ListedTable, TimeRange, ids_accepted_in};
use crate::store::events::Signalled;
use crate::store::page::{IdRange, SEARCH_MAX, search_text};
use crate::store::{
    Access, Applied, Cancellation, Cursor, Order, Page, QueueLimits, Rate, RegistrationChange, Setting,
    Store, Submitted,
};
use crate::trace::TraceParent;
use windlass_db::error::Result;
use windlass_db::{Connection, all, first};

/// The longest text of a column, in characters.
const TEXT_MAX: usize = 500;

/// Who makes a change, and of what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The name of the caller.
    pub caller: String,
    /// The address from which the caller asks; `None` for the command line.
    pub address: Option<String>,
    /// What is changed, for example `run 3`.
    pub subject: Subject,
    /// The caller's place in a trace. A run that is submitted continues it.
    pub traceparent: Option<TraceParent>,
}

impl Change {
    /// The name of the caller as the tables have it.
    pub(in crate::store) fn caller_name(&self) -> String {
        shortened(&self.caller)
    }
}

/// A change that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    /// Its number.
    pub id: i64,
    /// When it was made.
    pub at: i64,
    /// Who made it.
    pub caller: String,
    /// From where; `None` for the command line.
    pub address: Option<String>,
    /// What was done, for example `cancel a run`.
    pub action: String,
    /// With what.
    pub subject: String,
    /// How that was before, as a JSON object; `None` if it was not there.
    pub before: Option<String>,
    /// What came of it, if it has a result: `run 42`.
    pub result: Option<String>,
}

impl Store {
    /// The same store. What it writes is recorded as changes by this caller.
    #[must_use]
    pub fn recorded(&self, change: Change) -> Store {
        Store { change: Some(std::sync::Arc::new(change)), ..self.clone() }
    }
}

/// Which changes to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Made by this caller.
    pub caller: Option<String>,
    /// With this text in what was done, or with what. The case of ASCII letters does not matter.
    pub text: Option<String>,
    /// Made in this time.
    pub made: TimeRange,
    /// Which part of the list.
    pub cursor: Cursor,
}

impl Access<'_> {
    /// Lists the changes, the newest first. A search looks at the newest 50,000 changes of its part, and says how far it
    /// looked.
    ///
    /// # Errors
    /// [`windlass_db::Error::Invalid`] for a text that can't be searched for, and the database's.
    pub fn audit(&self, filter: &AuditFilter) -> Result<Page<AuditEntry>> {
        const LIST: &str = "list changes";
        let AuditFilter { caller, text, made, cursor } = filter;
        cursor.check(LIST)?;
        let text = text.as_ref().map(|text| search_text(LIST, text)).transpose()?;
        let (found, floor) = self.store.read(|connection| {
            let ids = cursor.ids().intersect(ids_accepted_in(connection, ListedTable::Audit, *made)?);
            let is_search = caller.is_some() || text.is_some();
            let floor = match is_search {
                true => searched_to(connection, ids)?,
                false => None,
            };
            let found = all(
                connection,
                "SELECT id, at, caller, address, action, subject, before, result FROM audit
                 WHERE id >= $1 AND id < $2 AND (CAST($4 AS TEXT) IS NULL OR caller = $4)
                   AND (CAST($5 AS TEXT) IS NULL OR {position}(lower(action || ' ' || subject), $5) > 0)
                   AND at >= $6 AND at < $7
                 ORDER BY id DESC LIMIT $3",
                &[
                    floor.unwrap_or(ids.from).into(),
                    ids.below.into(),
                    (cursor.limit + 1).into(),
                    caller.as_deref().into(),
                    text.as_deref().into(),
                    made.from_ms.unwrap_or(i64::MIN).into(),
                    made.until_ms.unwrap_or(i64::MAX).into(),
                ],
                |row| {
                    Ok(AuditEntry {
                        id: row.integer(0)?,
                        at: row.integer(1)?,
                        caller: row.text(2)?,
                        address: row.optional_text(3)?,
                        action: row.text(4)?,
                        subject: row.text(5)?,
                        before: row.optional_text(6)?,
                        result: row.optional_text(7)?,
                    })
                },
            )?;
            Ok((found, floor))
        })?;
        Ok(crate::store::page::page(found, |entry| entry.id, cursor.limit, floor))
    }
}

/// The lowest id that a search looks at, if there are more below it.
fn searched_to(connection: &mut dyn Connection, ids: IdRange) -> Result<Option<i64>> {
    first(
        connection,
        "SELECT id FROM audit WHERE id >= $1 AND id < $2 ORDER BY id DESC LIMIT 1 OFFSET $3",
        &[ids.from.into(), ids.below.into(), SEARCH_MAX.into()],
        |row| row.integer(0),
    )
}

/// Records a change in its transaction, before it is made: the last statement of some changes commits. Returns the id of the row.
pub(in crate::store) fn insert(
    connection: &mut dyn Connection,
    change: &Change,
    action: &str,
    now_ms: i64,
) -> Result<Option<i64>> {
    let before = before::read(connection, &change.subject)?;
    first(
        connection,
        "INSERT INTO audit (at, caller, address, action, subject, before) VALUES ($1, $2, $3, $4, $5, $6) RETURNING id",
        &[
            now_ms.into(),
            (&change.caller_name()).into(),
            (&change.address).into(),
            action.into(),
            shortened(&change.subject.to_string()).as_str().into(),
            (&before).into(),
        ],
        |row| row.integer(0),
    )
}

/// Adds what came of a change, if its value tells.
pub(in crate::store) fn add_result(
    connection: &mut dyn Connection,
    id: Option<i64>,
    value: &dyn Any,
) -> Result<()> {
    if let (Some(id), Some(result)) = (id, result_of(value)) {
        connection.execute("UPDATE audit SET result = $2 WHERE id = $1", &[id.into(), (&result).into()])?;
    }
    Ok(())
}

/// What the value of an operation says about it.
fn result_of(value: &dyn Any) -> Option<String> {
    if let Some(submitted) = value.downcast_ref::<Submitted>() {
        let known = if submitted.created { "" } else { ", which was there before" };
        return Some(format!("run {}{known}", submitted.run_id));
    }
    if let Some(signalled) = value.downcast_ref::<Signalled>() {
        let known = if signalled.created { "" } else { ", which was there before" };
        return Some(format!("event {}{known}", signalled.id));
    }
    if let Some(applied) = value.downcast_ref::<Applied>() {
        let known = match applied.change {
            RegistrationChange::Created | RegistrationChange::Updated => "",
            RegistrationChange::Unchanged => ", which was active before",
        };
        return Some(format!("version {}{known}", applied.version));
    }
    if let Some(job_ids) = value.downcast_ref::<Vec<i64>>() {
        let ids: Vec<String> = job_ids.iter().map(|id| format!("job {id}")).collect();
        return Some(shortened(&ids.join(", ")));
    }
    if let Some(jobs) = value.downcast_ref::<i64>() {
        return Some(counted(*jobs));
    }
    if let Some(false) = value.downcast_ref::<bool>() {
        return Some("nothing was different before".to_owned());
    }
    if let Some(limits) = value.downcast_ref::<QueueLimits>() {
        return Some(limits_of(limits));
    }
    let cancellation = value.downcast_ref::<Cancellation>()?;
    Some(format!("{} cancelled, {} stopping", counted(cancellation.cancelled), cancellation.stopping))
}

/// The settings that were changed: `at most 4 running, no rate`.
fn limits_of(limits: &QueueLimits) -> String {
    let max_running = match limits.max_running {
        Setting::Keep => None,
        Setting::Clear => Some("any number running".to_owned()),
        Setting::Set(number) => Some(format!("at most {number} running")),
    };
    let rate = match limits.rate {
        Setting::Keep => None,
        Setting::Clear => Some("no rate".to_owned()),
        Setting::Set(Rate { jobs, interval_ms }) => {
            Some(format!("at most {jobs} starting in {interval_ms} ms"))
        }
    };
    let order = match limits.order {
        Setting::Keep => None,
        Setting::Clear | Setting::Set(Order::Priority) => Some("by priority".to_owned()),
        Setting::Set(Order::Arrival) => Some("in order of arrival".to_owned()),
    };
    [max_running, rate, order].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn counted(jobs: i64) -> String {
    if jobs == 1 { "1 job".to_owned() } else { format!("{jobs} jobs") }
}

fn shortened(text: &str) -> String {
    text.chars().filter(|character| *character != '\0').take(TEXT_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular() {
        assert_eq!(result_of(&1_i64).as_deref(), Some("1 job"));
        assert_eq!(result_of(&2_i64).as_deref(), Some("2 jobs"));
        let cancellation = Cancellation { cancelled: 1, stopping: 2 };
        assert_eq!(result_of(&cancellation).as_deref(), Some("1 job cancelled, 2 stopping"));
    }
}
