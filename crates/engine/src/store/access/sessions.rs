//! Sessions of browsers. One begins with a token, or as a link that works once and then becomes the session.

use super::Role;
use crate::store::Access;
use crate::store::evidence::Evidence;
use windlass_db::error::{Error, Result};
use windlass_db::{Connection, first};
use windlass_system::wake_ups::WakeUps;

/// How many sessions that are over are removed when one begins.
const REMOVED_MAX: i64 = 100;

impl Access<'_> {
    /// Makes a link of its hash. Who uses it before `expires_at` gets a session with the role.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn add_link(&self, hash: &str, name: &str, role: Role, expires_at: i64) -> Result<()> {
        let (hash, name, now_ms) = (hash.to_owned(), name.to_owned(), self.store.clock.now_ms());
        self.store.write("make a link", Evidence::Token, move |connection| {
            remove_old(connection, now_ms)?;
            connection.execute(
                "INSERT INTO sessions (hash, kind, name, role, created_at, expires_at)
                 VALUES ($1, 'link', $2, $3, $4, $5)",
                &[(&hash).into(), (&name).into(), role.as_str().into(), now_ms.into(), expires_at.into()],
            )?;
            Ok(())
        })
    }

    /// The name of who made the link with this hash. `None` if there is none, or not any more.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn link_owner(&self, hash: &str) -> Result<Option<String>> {
        let now_ms = self.store.clock.now_ms();
        self.store.read(|connection| {
            first(
                connection,
                "SELECT name FROM sessions WHERE hash = $1 AND kind = 'link' AND expires_at > $2",
                &[hash.into(), now_ms.into()],
                |row| row.text(0),
            )
        })
    }

    /// Makes a link a session, which works once.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is no such link, or not any more: nothing is written then. And the database's.
    pub fn use_link(&self, hash: &str, session_hash: &str, expires_at: i64) -> Result<()> {
        let (hash, session_hash) = (hash.to_owned(), session_hash.to_owned());
        let now_ms = self.store.clock.now_ms();
        self.store.write("begin a session", Evidence::Token, move |connection| {
            let used = connection.execute(
                "UPDATE sessions SET hash = $2, kind = 'session', created_at = $3, expires_at = $4
                 WHERE hash = $1 AND kind = 'link' AND expires_at > $3",
                &[(&hash).into(), (&session_hash).into(), now_ms.into(), expires_at.into()],
            )?;
            match used {
                0 => Err(Error::not_found("a link that works")),
                _used => Ok(()),
            }
        })
    }

    /// Begins a session with a token.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is no valid token with the hash: nothing is written then. And the database's.
    pub fn begin_session(&self, token_hash: &str, hash: &str, expires_at: i64) -> Result<()> {
        let (token_hash, hash) = (token_hash.to_owned(), hash.to_owned());
        let now_ms = self.store.clock.now_ms();
        self.store.write("begin a session", Evidence::Token, move |connection| {
            remove_old(connection, now_ms)?;
            let begun = connection.execute(
                "INSERT INTO sessions (hash, kind, name, role, token_id, created_at, expires_at)
                 SELECT $2, 'session', name, role, id, $3, $4 FROM tokens
                 WHERE hash = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $3)",
                &[(&token_hash).into(), (&hash).into(), now_ms.into(), expires_at.into()],
            )?;
            match begun {
                0 => Err(Error::not_found("a valid token")),
                _begun => Ok(()),
            }
        })
    }

    /// Ends a session.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn end_session(&self, session_id: i64) -> Result<()> {
        self.store.write("end a session", Evidence::Token, move |connection| {
            connection.wake(WakeUps::PROGRESS);
            connection.execute("DELETE FROM sessions WHERE id = $1", &[session_id.into()])?;
            Ok(())
        })
    }
}

/// Removes sessions and links that are over, so that the table stays small.
fn remove_old(connection: &mut dyn Connection, now_ms: i64) -> Result<()> {
    connection.execute(
        "DELETE FROM sessions
         WHERE id {in SELECT id FROM sessions WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2}",
        &[now_ms.into(), REMOVED_MAX.into()],
    )?;
    Ok(())
}
