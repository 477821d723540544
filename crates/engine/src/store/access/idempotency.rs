//! Requests that are made once, however often a program sends them: by the key that it sends with them.
//!
//! The transaction of a change writes what the change returned into the row of the key. Who asks for the same change again
//! gets that value, and nothing is changed. So a crash between a change and its answer repeats nothing. A request of several
//! transactions goes on where it was interrupted.

use std::any::Any;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value as Json};
use windlass_db::error::{Error, Result};
use windlass_db::{Connection, Row, first, one};

use crate::store::evidence::Evidence;
use crate::store::{Access, Cancellation, Store, Submitted};

/// The longest key, in bytes.
pub const IDEMPOTENCY_KEY_BYTES_MAX: usize = 500;
/// The longest answer that is kept, in bytes. Another one is made again of what the changes returned.
pub const KEPT_ANSWER_BYTES_MAX: usize = 256 * 1024;
/// How long a key is kept at least, in milliseconds: a day.
pub(in crate::store) const KEYS_KEPT_MS: i64 = 24 * 3_600 * 1_000;

/// The key of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// Whose key it is. Two callers may use the same one.
    pub caller: String,
    /// The key.
    pub key: String,
    /// The SHA-256 of the request. Another request can't have the key.
    pub request: String,
}

/// An answer that was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptAnswer {
    /// The status of HTTP.
    pub status: u16,
    /// The body.
    pub body: String,
}

impl Store {
    /// The same store for one request. Each change that was made with this key already is not made again, and returns what it
    /// returned then.
    #[must_use]
    pub fn once(&self, key: IdempotencyKey) -> Store {
        Store { key: Some(Arc::new(key)), ..self.clone() }
    }
}

impl Access<'_> {
    /// The answer to the request with this key, if it was kept.
    ///
    /// # Errors
    /// [`Error::Conflict`] if the key belongs to another request; and the database's.
    pub fn kept_answer(&self, key: &IdempotencyKey) -> Result<Option<KeptAnswer>> {
        let found = self.store.read(|connection| {
            first(
                connection,
                "SELECT id, request, status, answer FROM idempotency_keys WHERE caller = $1 AND request_key = $2",
                &[(&key.caller).into(), (&key.key).into()],
                |row| Ok((row.text(1)?, answer(row)?)),
            )
        })?;
        let Some((request, answer)) = found else { return Ok(None) };
        check(key, &request)?;
        Ok(answer)
    }

    /// Keeps the answer to the request with this key. Returns the first one that was kept, which is the one to send.
    ///
    /// # Errors
    /// [`Error::Conflict`] if the key belongs to another request; and the database's.
    pub fn keep_answer(&self, key: &IdempotencyKey, wanted: &KeptAnswer) -> Result<KeptAnswer> {
        if wanted.body.len() > KEPT_ANSWER_BYTES_MAX {
            return Ok(wanted.clone());
        }
        let (key, wanted, now_ms) = (key.clone(), wanted.clone(), self.store.clock.now_ms());
        self.store.write("keep an answer", Evidence::Repeat, move |connection| {
            let row = lock(connection, &key, now_ms)?;
            let kept = first(
                connection,
                "UPDATE idempotency_keys SET status = $2, answer = $3 WHERE id = $1 AND answer IS NULL
                 RETURNING id, request, status, answer",
                &[row.id.into(), i64::from(wanted.status).into(), (&wanted.body).into()],
                answer,
            )?;
            let kept = match kept {
                Some(kept) => kept,
                None => one(
                    connection,
                    "SELECT id, request, status, answer FROM idempotency_keys WHERE id = $1",
                    &[row.id.into()],
                    answer,
                )?,
            };
            kept.ok_or_else(|| Error::internal("keep an answer", "the row has none"))
        })
    }
}

/// The answer in a row of: id, request, status, answer.
fn answer(row: &dyn Row) -> Result<Option<KeptAnswer>> {
    let (status, body) = (row.optional_integer(2)?, row.optional_text(3)?);
    let status = status.and_then(|status| u16::try_from(status).ok());
    Ok(status.zip(body).map(|(status, body)| KeptAnswer { status, body }))
}

fn check(key: &IdempotencyKey, request: &str) -> Result<()> {
    match key.request == request {
        true => Ok(()),
        false => Err(Error::conflict(
            "repeat a request",
            "its idempotency key belongs to another request; send a new key with a new request",
        )),
    }
}

/// The row of a key, which is locked until the end of the transaction.
pub(in crate::store) struct KeyRow {
    id: i64,
    /// What the changes of the request returned, by their names.
    results: Map<String, Json>,
}

/// Locks the row of the key, and makes it if it is not there. Another transaction with the key waits.
pub(in crate::store) fn lock(
    connection: &mut dyn Connection,
    key: &IdempotencyKey,
    now_ms: i64,
) -> Result<KeyRow> {
    let (id, request, results) = one(
        connection,
        "INSERT INTO idempotency_keys (caller, request_key, request, results, created_at)
         VALUES ($1, $2, $3, '{}', $4)
         ON CONFLICT (caller, request_key) DO UPDATE SET created_at = idempotency_keys.created_at
         RETURNING id, request, results",
        &[(&key.caller).into(), (&key.key).into(), (&key.request).into(), now_ms.into()],
        |row| Ok((row.integer(0)?, row.text(1)?, row.text(2)?)),
    )?;
    check(key, &request)?;
    let results = serde_json::from_str(&results)
        .map_err(|error| Error::internal("read what a change returned", error.to_string()))?;
    Ok(KeyRow { id, results })
}

impl KeyRow {
    /// What the change returned, if it was made before.
    pub(in crate::store) fn value<T: 'static>(&self, change: &str) -> Result<Option<T>> {
        let Some(written) = self.results.get(change) else { return Ok(None) };
        match value_of(written) {
            Some(value) => Ok(Some(value)),
            None => Err(Error::internal("read what a change returned", "it has another type")),
        }
    }

    /// Adds what a change returned that was made now.
    pub(in crate::store) fn add(
        mut self,
        connection: &mut dyn Connection,
        change: String,
        value: &dyn Any,
    ) -> Result<()> {
        let written = written(value)
            .ok_or_else(|| Error::internal("keep what a change returned", format!("of `{change}`")))?;
        self.results.insert(change, written);
        connection.execute(
            "UPDATE idempotency_keys SET results = $2 WHERE id = $1",
            &[self.id.into(), (&Json::Object(self.results).to_string()).into()],
        )?;
        Ok(())
    }
}

/// What a change returned, as the table has it: for the changes that can be made with a key.
fn written(value: &dyn Any) -> Option<Json> {
    fn one<V: Serialize + 'static>(value: &dyn Any) -> Option<Json> {
        serde_json::to_value(value.downcast_ref::<V>()?).ok()
    }
    one::<()>(value)
        .or_else(|| one::<i64>(value))
        .or_else(|| one::<Vec<i64>>(value))
        .or_else(|| one::<Submitted>(value))
        .or_else(|| one::<Cancellation>(value))
}

/// The value that was written so.
fn value_of<T: 'static>(written: &Json) -> Option<T> {
    fn one<V: DeserializeOwned + 'static, T: 'static>(written: &Json) -> Option<T> {
        let value: Box<dyn Any> = Box::new(serde_json::from_value::<V>(written.clone()).ok()?);
        value.downcast().ok().map(|value| *value)
    }
    one::<(), T>(written)
        .or_else(|| one::<i64, T>(written))
        .or_else(|| one::<Vec<i64>, T>(written))
        .or_else(|| one::<Submitted, T>(written))
        .or_else(|| one::<Cancellation, T>(written))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn again<T: Clone + PartialEq + std::fmt::Debug + 'static>(value: T) {
        let read = written(&value).and_then(|written| value_of::<T>(&written));
        assert_eq!(read, Some(value));
    }

    #[test]
    fn what_a_change_returned_is_read_as_it_was_written() {
        again(());
        again(7_i64);
        again(vec![1_i64, 2]);
        again(Submitted { run_id: 3, created: true });
        again(Cancellation { cancelled: 1, stopping: 2 });
        assert_eq!(value_of::<i64>(&Json::from(vec![1])), None, "another type");
        assert_eq!(written(&"a text"), None);
    }
}
