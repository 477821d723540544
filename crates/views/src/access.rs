//! Who may use the web interface, and what was changed by whom, as JSON.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use windlass_engine::store::{AuditEntry, Token};

use crate::time::{Instant, instant};

/// A token, without its secret.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Token")]
pub struct TokenView {
    /// Its number.
    token_id: i64,
    /// Its name.
    name: String,
    /// What its owner may do.
    #[schemars(extend("enum" = ["metrics", "view", "run", "edit", "admin"]))]
    role: &'static str,
    /// When it was added.
    created_at: Option<Instant>,
    /// When it ends by itself.
    expires_at: Option<Instant>,
    /// When it was revoked.
    revoked_at: Option<Instant>,
}

impl TokenView {
    /// From the row of the token.
    pub fn new(token: &Token) -> TokenView {
        TokenView {
            token_id: token.id,
            name: token.name.clone(),
            role: token.role.as_str(),
            created_at: instant(Some(token.created_at)),
            expires_at: instant(token.expires_at),
            revoked_at: instant(token.revoked_at),
        }
    }
}

/// A token that was added, with its secret.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "NewToken")]
pub struct NewTokenView {
    /// The token.
    #[serde(flatten)]
    pub added: TokenView,
    /// The secret. It is shown once.
    pub secret: String,
}

impl NewTokenView {
    /// From the row of the token and its secret.
    pub fn new(token: &Token, secret: &str) -> NewTokenView {
        NewTokenView { added: TokenView::new(token), secret: secret.to_owned() }
    }
}

/// A link that signs a person in.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Opened")]
pub struct OpenedView {
    /// The link. It works once.
    pub url: String,
    /// What the session may do.
    #[schemars(extend("enum" = ["metrics", "view", "run", "edit", "admin"]))]
    pub role: &'static str,
    /// Until when it works.
    pub expires_at: Instant,
}

/// A change that somebody made.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "AuditEntry")]
pub struct AuditView {
    /// Its number.
    audit_id: i64,
    /// When it was made.
    at: Option<Instant>,
    /// The token or the user.
    caller: String,
    /// The address from which it came; null for the command line.
    address: Option<String>,
    /// What was done.
    action: String,
    /// With what.
    subject: String,
    /// How that was before, as far as it can be changed; null if it was not there.
    before: Option<Value>,
    /// What came of it.
    result: Option<String>,
}

impl AuditView {
    /// From the row of the change.
    pub fn new(entry: &AuditEntry) -> AuditView {
        AuditView {
            audit_id: entry.id,
            at: instant(Some(entry.at)),
            caller: entry.caller.clone(),
            address: entry.address.clone(),
            action: entry.action.clone(),
            subject: entry.subject.clone(),
            before: entry.before.as_deref().map(crate::json),
            result: entry.result.clone(),
        }
    }
}
