//! Who may use the web interface: tokens of programs, sessions of browsers, the record of what was changed by whom, and the
//! keys of requests that are made once. Of a secret the tables have only its SHA-256.

pub(in crate::store) mod audit;
mod before;
pub(in crate::store) mod idempotency;
pub(in crate::store) mod record;
mod secret;
mod sessions;
mod tokens;

pub use audit::{AuditEntry, AuditFilter, Change};
pub use before::Subject;
pub use idempotency::{IDEMPOTENCY_KEY_BYTES_MAX, IdempotencyKey, KEPT_ANSWER_BYTES_MAX, KeptAnswer};
pub use secret::{Secret, secret_hash};
pub use tokens::{NewToken, Token};

use crate::store::Access;
use windlass_db::error::Result;
use windlass_db::{Row, first};

/// What a caller may do. Each role may do what the roles before it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Read the metrics, and nothing else.
    Metrics,
    /// Look.
    View,
    /// Start, retry and cancel runs and jobs, and decide about approvals.
    Run,
    /// Change queues, schedules and definitions.
    Edit,
    /// See who may enter, and what was changed by whom.
    Admin,
}

impl Role {
    /// All roles, the lowest first.
    pub const ALL: [Role; 5] = [Role::Metrics, Role::View, Role::Run, Role::Edit, Role::Admin];

    /// Its spelling in the tables and on the command line.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Metrics => "metrics",
            Role::View => "view",
            Role::Run => "run",
            Role::Edit => "edit",
            Role::Admin => "admin",
        }
    }

    /// The role with that spelling.
    #[must_use]
    pub fn parse(text: &str) -> Option<Role> {
        Role::ALL.into_iter().find(|role| role.as_str() == text)
    }
}

/// Somebody who may use the web interface now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The name of the token, or of who opened the session.
    pub name: String,
    /// What the caller may do.
    pub role: Role,
    /// The id of the token or of the session.
    pub credential_id: i64,
    /// When the caller ends by itself, or the token with which the session began.
    pub expires_at: Option<i64>,
}

/// What a caller shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CredentialKind {
    /// A token.
    Token,
    /// The secret of a session.
    Session,
}

impl Access<'_> {
    /// The caller that shows the secret with this hash. `None` if there is none, or not any more.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn caller(&self, kind: CredentialKind, hash: &str) -> Result<Option<Caller>> {
        let now_ms = self.store.clock.now_ms();
        let sql = match kind {
            CredentialKind::Token => {
                "SELECT id, name, role, expires_at FROM tokens
                 WHERE hash = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $2)"
            }
            CredentialKind::Session => {
                "SELECT sessions.id, sessions.name, sessions.role,
                        CASE WHEN tokens.expires_at < sessions.expires_at THEN tokens.expires_at
                             ELSE sessions.expires_at END
                 FROM sessions LEFT JOIN tokens ON tokens.id = sessions.token_id
                 WHERE sessions.hash = $1 AND sessions.kind = 'session' AND sessions.expires_at > $2
                   AND tokens.revoked_at IS NULL AND (tokens.expires_at IS NULL OR tokens.expires_at > $2)"
            }
        };
        self.store.read(|connection| first(connection, sql, &[hash.into(), now_ms.into()], read_caller))
    }
}

fn read_caller(row: &dyn Row) -> Result<Caller> {
    Ok(Caller {
        credential_id: row.integer(0)?,
        name: row.text(1)?,
        role: row.parsed(2, Role::parse)?,
        expires_at: row.optional_integer(3)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_role_may_more_than_the_one_before() {
        assert!(Role::ALL.is_sorted());
        for role in Role::ALL {
            assert_eq!(Role::parse(role.as_str()), Some(role));
        }
        assert_eq!(Role::parse("root"), None);
    }
}
