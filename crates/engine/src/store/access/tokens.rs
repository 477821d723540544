//! Tokens: who has one may use the web interface, with its role, until it expires or is revoked.

use super::Role;
use crate::store::evidence::Evidence;
use crate::store::page::page;
use crate::store::{Access, Cursor, Page};
use windlass_db::error::{Error, Result};
use windlass_db::{Row, all, first};
use windlass_system::wake_ups::WakeUps;

/// How many tokens are listed, the newest first.
const LIST_MAX: i64 = 1_000;

/// A token to add.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewToken {
    /// Its name. Two valid tokens can't have the same.
    pub name: String,
    /// The SHA-256 of the secret.
    pub hash: String,
    /// What its owner may do.
    pub role: Role,
    /// When it ends by itself.
    pub expires_at: Option<i64>,
}

/// A token, without its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// Its id.
    pub id: i64,
    /// Its name.
    pub name: String,
    /// What its owner may do.
    pub role: Role,
    /// When it was added.
    pub created_at: i64,
    /// When it ends by itself.
    pub expires_at: Option<i64>,
    /// When it was revoked.
    pub revoked_at: Option<i64>,
}

impl Access<'_> {
    /// Adds a token.
    ///
    /// # Errors
    /// [`Error::Conflict`] if a token with the name is there and not revoked; and the database's.
    pub fn add_token(&self, token: NewToken) -> Result<Token> {
        let now_ms = self.store.clock.now_ms();
        self.store.write("add a token", Evidence::Token, move |connection| {
            let added = first(
                connection,
                "INSERT INTO tokens (name, hash, role, created_at, expires_at) VALUES ($1, $2, $3, $4, $5)
                 ON CONFLICT (name) WHERE revoked_at IS NULL DO NOTHING
                 RETURNING id, name, role, created_at, expires_at, revoked_at",
                &[
                    (&token.name).into(),
                    (&token.hash).into(),
                    token.role.as_str().into(),
                    now_ms.into(),
                    token.expires_at.into(),
                ],
                read_token,
            )?;
            added.ok_or_else(|| {
                Error::conflict(format!("add the token `{}`", token.name), "there is a token with this name")
            })
        })
    }

    /// Revokes a token, and with it the sessions that began with it.
    ///
    /// # Errors
    /// [`Error::NotFound`] if no valid token has the name; and the database's.
    pub fn revoke_token(&self, name: &str) -> Result<Token> {
        let (name, now_ms) = (name.to_owned(), self.store.clock.now_ms());
        self.store.write("revoke a token", Evidence::Token, move |connection| {
            // Streams that were opened with it end.
            connection.wake(WakeUps::PROGRESS);
            let revoked = first(
                connection,
                "UPDATE tokens SET revoked_at = $2 WHERE name = $1 AND revoked_at IS NULL
                 RETURNING id, name, role, created_at, expires_at, revoked_at",
                &[(&name).into(), now_ms.into()],
                read_token,
            )?;
            revoked.ok_or_else(|| Error::not_found(format!("a valid token `{name}`")))
        })
    }

    /// Lists the tokens, the newest first.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn tokens(&self) -> Result<Vec<Token>> {
        Ok(self.tokens_of_page(Cursor::newest(LIST_MAX))?.rows)
    }

    /// A page of the tokens, the newest first.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a limit that is out of bounds, and the database's.
    pub fn tokens_of_page(&self, cursor: Cursor) -> Result<Page<Token>> {
        cursor.check("list tokens")?;
        let ids = cursor.ids();
        let found = self.store.read(|connection| {
            all(
                connection,
                "SELECT id, name, role, created_at, expires_at, revoked_at FROM tokens
                 WHERE id >= $1 AND id < $2 ORDER BY id DESC LIMIT $3",
                &[ids.from.into(), ids.below.into(), (cursor.limit + 1).into()],
                read_token,
            )
        })?;
        Ok(page(found, |token| token.id, cursor.limit, None))
    }
}

fn read_token(row: &dyn Row) -> Result<Token> {
    Ok(Token {
        id: row.integer(0)?,
        name: row.text(1)?,
        role: row.parsed(2, Role::parse)?,
        created_at: row.integer(3)?,
        expires_at: row.optional_integer(4)?,
        revoked_at: row.optional_integer(5)?,
    })
}
