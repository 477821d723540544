//! The pages for administrators: the tokens, and what was changed by whom.

use askama::Template;
use windlass_engine::store::{AuditEntry, Page, Role, Token};

use super::frame::{Frame, Reader, Section};
use super::runs::params_in_a_line;
use super::times::Stamp;
use super::url;

struct TokenRow {
    name: String,
    role: &'static str,
    added: Stamp,
    state: String,
    can_be_revoked: bool,
}

/// A token that was added just now, with its secret.
#[derive(Debug)]
pub struct Added {
    /// Its name.
    pub name: String,
    /// The secret, which is shown only now.
    pub secret: String,
}

#[derive(Template)]
#[template(path = "tokens.html")]
struct TokensPage {
    frame: Frame,
    rows: Vec<TokenRow>,
    roles: Vec<&'static str>,
    added: Option<Added>,
    error: Option<String>,
    older: Option<String>,
}

/// What came of the form that adds a token.
#[derive(Debug, Default)]
pub struct Form {
    /// The token that was added.
    pub added: Option<Added>,
    /// What is wrong with the form.
    pub error: Option<String>,
}

/// A page of the tokens, with what came of the form.
///
/// # Errors
/// As of the template engine, which writes into memory.
pub fn tokens(tokens: &Page<Token>, form: Form, reader: &Reader) -> askama::Result<String> {
    let older = tokens.next.map(|before| format!("{}/system/tokens?before={before}", reader.base));
    TokensPage {
        frame: Frame::new(reader, Section::System, "Tokens"),
        rows: tokens.rows.iter().map(|token| row(token, reader)).collect(),
        roles: Role::ALL.into_iter().map(Role::as_str).collect(),
        added: form.added,
        error: form.error,
        older,
    }
    .render()
}

fn row(token: &Token, reader: &Reader) -> TokenRow {
    let at = |at_ms| reader.times.minute(at_ms);
    let state = match (token.revoked_at, token.expires_at) {
        (Some(revoked_at), _) => format!("revoked {}", at(revoked_at)),
        (None, Some(ends_at)) if ends_at <= reader.times.now_ms => format!("expired {}", at(ends_at)),
        (None, Some(ends_at)) => format!("valid until {}", at(ends_at)),
        (None, None) => "valid".to_owned(),
    };
    let (name, role) = (token.name.clone(), token.role.as_str());
    // An expired one keeps its name until it is revoked.
    let can_be_revoked = token.revoked_at.is_none();
    TokenRow { name, role, added: reader.times.stamp(token.created_at), state, can_be_revoked }
}

struct AuditRow {
    id: i64,
    at: Stamp,
    caller: String,
    address: String,
    action: String,
    subject: String,
    before: String,
    result: String,
    subject_href: Option<String>,
    result_href: Option<String>,
}

#[derive(Template)]
#[template(path = "audit.html")]
struct AuditPage {
    frame: Frame,
    caller: String,
    text: String,
    rows: Vec<AuditRow>,
    found: String,
    newest: Option<String>,
    older: Option<String>,
}

/// What is looked for in the changes.
#[derive(Debug, Default)]
pub struct AuditQuery {
    /// Who made them.
    pub caller: Option<String>,
    /// A text in what was done, or with what.
    pub text: Option<String>,
    /// Only changes before this one.
    pub before: Option<i64>,
}

impl AuditQuery {
    /// Reads the query of an address.
    ///
    /// # Errors
    /// A sentence about the first part that is unknown.
    pub fn parse(query: &str) -> Result<AuditQuery, String> {
        let mut parsed = AuditQuery::default();
        for (name, value) in url::filled_pairs(query)? {
            match name.as_str() {
                "caller" => parsed.caller = Some(value),
                "text" => parsed.text = Some(value),
                "before" => {
                    let id = value.parse().map_err(|_| format!("`{value}` is no number of a change."))?;
                    parsed.before = Some(id);
                }
                _ => {
                    return Err(format!(
                        "`{name}` is unknown here. The address takes caller, text and before."
                    ));
                }
            }
        }
        Ok(parsed)
    }

    fn href(&self, before: Option<i64>, reader: &Reader) -> String {
        let before = before.map(|before| before.to_string());
        let pairs = [("caller", &self.caller), ("text", &self.text), ("before", &before)];
        let pairs = pairs.into_iter().filter_map(|(name, value)| Some((name, value.as_deref()?)));
        format!("{}/system/audit{}", reader.base, url::query(pairs))
    }
}

/// The page of what a change names: a run, a job or a workflow.
fn href_of(text: &str, reader: &Reader) -> Option<String> {
    let (noun, name) = text.split_once(' ')?;
    let is_number = || !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
    match noun {
        "run" if is_number() => Some(format!("{}/runs/{name}", reader.base)),
        "job" if is_number() => Some(format!("{}/jobs/{name}", reader.base)),
        "workflow" => Some(format!("{}/workflows/{}", reader.base, url::encode(name))),
        _ => None,
    }
}

/// What was changed, the newest first.
///
/// # Errors
/// As of the template engine, which writes into memory.
pub fn audit(page: &Page<AuditEntry>, query: &AuditQuery, reader: &Reader) -> askama::Result<String> {
    let rows = page.rows.iter().map(|entry| AuditRow {
        id: entry.id,
        at: reader.times.stamp(entry.at),
        caller: entry.caller.clone(),
        address: entry.address.clone().unwrap_or_else(|| "command line".to_owned()),
        action: entry.action.clone(),
        subject: entry.subject.clone(),
        before: entry.before.as_deref().map_or_else(String::new, params_in_a_line),
        result_href: entry.result.as_deref().and_then(|result| href_of(result, reader)),
        subject_href: href_of(&entry.subject, reader),
        result: entry.result.clone().unwrap_or_default(),
    });
    AuditPage {
        frame: Frame::new(reader, Section::System, "Changes"),
        rows: rows.collect(),
        found: match (page.rows.is_empty(), page.searched_to) {
            (true, Some(id)) => format!("None found down to change {id}"),
            (true, None) => "No change".to_owned(),
            (false, Some(id)) => format!("Found down to change {id}"),
            (false, None) => String::new(),
        },
        newest: query.before.map(|_before| query.href(None, reader)),
        older: page.next.map(|before| query.href(Some(before), reader)),
        caller: query.caller.clone().unwrap_or_default(),
        text: query.text.clone().unwrap_or_default(),
    }
    .render()
}
