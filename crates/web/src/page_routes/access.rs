//! The tokens, and what was changed by whom.

use axum::http::StatusCode;
use windlass_engine::store::{AuditFilter, Cursor, NewToken, Role, Secret, Subject};
use windlass_engine::{Error, Store};

use super::forms::to;
use super::{html, query, reader, wrong_address};
use crate::answer::Answer;
use crate::call::Call;
use crate::pages::access::{self, Added, AuditQuery, Form};
use crate::pages::url;
use crate::problem::Problem;

/// The most changes of a page.
const CHANGES_OF_PAGE: i64 = 100;
/// The most tokens of a page.
const TOKENS_OF_PAGE: i64 = 200;
const NAME_CHARS_MAX: usize = 100;
const DAYS_MAX: i64 = 3_650;
const DAY_MS: i64 = 24 * 3_600_000;

pub(super) fn tokens(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let pairs = url::pairs(query(call)).map_err(wrong_address)?;
    let before = match pairs.as_slice() {
        [] => None,
        [(name, value)] if name == "before" => {
            let id =
                value.parse().map_err(|_| wrong_address(format!("`{value}` is no number of a token.")))?;
            Some(id)
        }
        _ => return Err(wrong_address("This address takes before, and nothing else.".to_owned())),
    };
    let cursor = Cursor { before, after: None, limit: TOKENS_OF_PAGE };
    let tokens = store.access().tokens_of_page(cursor)?;
    html(access::tokens(&tokens, Form::default(), &reader(store, call)?)).map(Answer::never_cached)
}

/// The newest tokens, with what came of the form.
fn newest(store: &Store, call: &Call, form: Form) -> Result<Answer, Problem> {
    let tokens = store.access().tokens_of_page(Cursor::newest(TOKENS_OF_PAGE))?;
    html(access::tokens(&tokens, form, &reader(store, call)?)).map(Answer::never_cached)
}

/// Adds a token. The answer has its secret, which is nowhere else.
pub(super) fn add_token(store: &Store, call: &Call) -> Result<Answer, Problem> {
    match wanted_token(store, call)? {
        Ok((token, secret)) => {
            let name = token.name.clone();
            match call.recorded(store, format!("the token {name}")).access().add_token(token) {
                Ok(_added) => {
                    let added = Added { name, secret: secret.text().to_owned() };
                    newest(store, call, Form { added: Some(added), error: None })
                }
                Err(Error::Conflict { reason, .. }) => again(store, call, reason),
                Err(error) => Err(error.into()),
            }
        }
        Err(wrong) => again(store, call, wrong),
    }
}

fn again(store: &Store, call: &Call, wrong: String) -> Result<Answer, Problem> {
    let page = newest(store, call, Form { added: None, error: Some(wrong) })?;
    Ok(page.with_status(StatusCode::BAD_REQUEST))
}

/// The token that the form asks for, or what is wrong with the form.
fn wanted_token(store: &Store, call: &Call) -> Result<Result<(NewToken, Secret), String>, Problem> {
    let form = call.form()?;
    let name = form.text("name").unwrap_or_default().trim();
    if name.is_empty() || name.chars().count() > NAME_CHARS_MAX {
        return Ok(Err(format!("A name has 1 to {NAME_CHARS_MAX} characters.")));
    }
    let Some(role) = form.text("role").and_then(Role::parse) else {
        return Ok(Err(format!("A role is one of {}.", Role::ALL.map(Role::as_str).join(", "))));
    };
    let expires_at = match form.text("days").map(|days| days.trim().parse::<i64>()) {
        None => None,
        Some(Ok(days)) if (1..=DAYS_MAX).contains(&days) => Some(store.clock().now_ms() + days * DAY_MS),
        Some(Ok(_) | Err(_)) => return Ok(Err(format!("The number of days is from 1 to {DAYS_MAX}."))),
    };
    let secret = Secret::generate().map_err(|error| Problem::defect(format!("no random bytes: {error}")))?;
    Ok(Ok((NewToken { name: name.to_owned(), hash: secret.hash(), role, expires_at }, secret)))
}

pub(super) fn revoke_token(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let form = call.form()?;
    let name = form.text("name").unwrap_or_default();
    call.recorded(store, Subject::Token(name.to_owned())).access().revoke_token(name)?;
    Ok(to(call, "/system/tokens"))
}

pub(super) fn audit(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let wanted = AuditQuery::parse(query(call)).map_err(wrong_address)?;
    let cursor = Cursor { before: wanted.before, after: None, limit: CHANGES_OF_PAGE };
    let filter = AuditFilter {
        caller: wanted.caller.clone(),
        text: wanted.text.clone(),
        cursor,
        ..AuditFilter::default()
    };
    html(access::audit(&store.access().audit(&filter)?, &wanted, &reader(store, call)?))
        .map(Answer::never_cached)
}
