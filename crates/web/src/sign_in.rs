//! How a person enters: with a token in a form, or with a link of `windlass open`. Both begin a session.

use askama::Template;
use axum::http::Uri;
use windlass_engine::store::{Change, CredentialKind, Role, Secret, secret_hash};
use windlass_engine::{Error, Store};

use crate::answer::Answer;
use crate::call::Call;
use crate::pages::assets::assets;
use crate::pages::prose;
use crate::pages::url::encode;
use crate::problem::Problem;
use crate::route::{
    Allowed, BODY_MAX, Client, Idempotency, Method, QueryParameter, QueryRule, Route, ValueSort, Work,
};

/// How long a session lasts.
const SESSION_S: i64 = 12 * 3600;

const NEXT: QueryParameter =
    QueryParameter { name: "next", about: "the page after the login", value: ValueSort::Text };
const CODE: QueryParameter =
    QueryParameter { name: "code", about: "the code of the link", value: ValueSort::Text };

pub(crate) const ROUTES: &[Route] = &[
    Route {
        method: Method::Get,
        path: "/login",
        allowed: Allowed::Everybody { because: "a person enters here" },
        client: Client::Browser,
        work: Work::AtOnce(form),
        query: QueryRule::Known(&[NEXT]),
        body_max: 0,
        idempotency: Idempotency::NoKey,
        document: None,
    },
    Route {
        method: Method::Post,
        path: "/login",
        allowed: Allowed::WithSecret { because: "the form has a token" },
        client: Client::Browser,
        work: Work::CheckedWrite { check: check_token, write: enter_with_token },
        query: QueryRule::Known(&[]),
        body_max: BODY_MAX,
        idempotency: Idempotency::NoKey,
        document: None,
    },
    Route {
        method: Method::Get,
        path: "/open",
        allowed: Allowed::WithSecret { because: "the link has a code that works once" },
        client: Client::Browser,
        work: Work::CheckedWrite { check: check_link, write: enter_with_link },
        query: QueryRule::Known(&[CODE]),
        body_max: 0,
        idempotency: Idempotency::NoKey,
        document: None,
    },
    Route::form("/logout", Role::View, leave),
];

#[derive(Template)]
#[template(path = "sign_in.html")]
struct SignIn<'p> {
    base: &'p str,
    style: &'p str,
    icon: &'p str,
    next: &'p str,
    failure: Option<&'p str>,
}

#[derive(Template)]
#[template(path = "problem.html")]
struct ProblemPage<'p> {
    base: &'p str,
    style: &'p str,
    icon: &'p str,
    title: &'p str,
    detail: Vec<prose::Part>,
    next_step: Vec<prose::Part>,
}

fn form(call: &Call) -> Result<Answer, Problem> {
    show_form(&call.base_path, call.query.text("next").unwrap_or_default(), None)
}

fn show_form(base: &str, next: &str, failure: Option<&str>) -> Result<Answer, Problem> {
    let page = SignIn {
        base,
        style: &assets().style.name,
        icon: &assets().icon.name,
        next: own_path(next),
        failure,
    };
    render(&page).map(Answer::never_cached)
}

/// The form again, after a secret that is not valid.
pub(crate) fn form_after_failure(base: &str, problem: &Problem) -> Answer {
    let (_title, detail, _next_step) = problem.texts();
    let answer = show_form(base, "", Some(detail)).unwrap_or_else(|problem| Answer::problem(&problem));
    answer.with_status(problem.status)
}

fn render(page: &impl Template) -> Result<Answer, Problem> {
    page.render().map(Answer::html).map_err(|error| Problem::defect(format!("a page: {error}")))
}

/// The page about a problem.
pub(crate) fn problem_page(base: &str, problem: &Problem) -> Answer {
    let (title, detail, next_step) = problem.texts();
    let page = ProblemPage {
        base,
        style: &assets().style.name,
        icon: &assets().icon.name,
        title,
        detail: prose::parts(&prose::sentence(detail)),
        next_step: prose::parts(&prose::sentence(next_step)),
    };
    let answer = render(&page).unwrap_or_else(|problem| Answer::problem(&problem));
    answer.with_status(problem.status).never_cached().with_retry_after(problem.retry_after_s)
}

/// Sends a browser without a session to the login, and back afterwards.
pub(crate) fn redirect(base: &str, wanted: &Uri) -> Answer {
    let wanted = wanted.path_and_query().map(ToString::to_string).unwrap_or_default();
    Answer::see_other(format!("{base}/login?next={}", encode(&wanted)))
}

/// A path of this server, or the first page. Browsers take `//host` and `/\host` for addresses of other servers, and leave out
/// some characters that can't be seen.
fn own_path(path: &str) -> &str {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b'\\';
    let is_own =
        path.starts_with('/') && !path.starts_with("//") && path.bytes().all(is_plain) && path.len() <= 2_000;
    if is_own { path } else { "/" }
}

/// The page after the login. The first page only leads to the list of runs, so that is where the reader goes.
fn landing(base: &str, next: &str) -> String {
    match own_path(next) {
        "/" => format!("{base}/runs"),
        path => format!("{base}{path}"),
    }
}

/// The hash of the token in the form.
fn token_hash(call: &Call) -> Result<String, Problem> {
    Ok(secret_hash(call.form()?.text("token").unwrap_or_default().trim()))
}

fn owner_of_token(store: &Store, call: &Call) -> Result<String, Problem> {
    let caller = store.access().caller(CredentialKind::Token, &token_hash(call)?)?;
    caller.map(|caller| caller.name).ok_or_else(unknown_token)
}

fn owner_of_link(store: &Store, call: &Call) -> Result<String, Problem> {
    store.access().link_owner(&link_hash(call))?.ok_or_else(used_link)
}

fn link_hash(call: &Call) -> String {
    secret_hash(call.query.text("code").unwrap_or_default())
}

fn unknown_token() -> Problem {
    Problem::unauthorized("the token is unknown, has expired or was revoked")
}

fn used_link() -> Problem {
    Problem::unauthorized("the link was used before, or is older than a minute")
}

fn check_token(store: &Store, call: &Call) -> Result<(), Problem> {
    owner_of_token(store, call).map(drop)
}

fn check_link(store: &Store, call: &Call) -> Result<(), Problem> {
    owner_of_link(store, call).map(drop)
}

/// The secret of a new session, and when it ends.
fn new_session(store: &Store) -> Result<(Secret, i64), Problem> {
    let secret = Secret::generate().map_err(|error| Problem::defect(format!("a secret: {error}")))?;
    Ok((secret, store.clock().now_ms() + SESSION_S * 1_000))
}

/// The store that records the beginning of a session with the name of its owner.
fn recorded(store: &Store, call: &Call, owner: String) -> Store {
    let address = Some(call.address.to_string());
    store.recorded(Change { caller: owner, address, subject: "a session".into(), traceparent: None })
}

/// A secret that is not valid any more is refused inside the write, so that nothing of it is kept.
fn begun(result: windlass_engine::Result<()>, refused: fn() -> Problem) -> Result<(), Problem> {
    match result {
        Err(Error::NotFound { .. }) => Err(refused()),
        result => Ok(result?),
    }
}

fn enter_with_token(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let owner = owner_of_token(store, call)?;
    let (session, expires_at) = new_session(store)?;
    let recorded = recorded(store, call, owner);
    let result = recorded.access().begin_session(&token_hash(call)?, &session.hash(), expires_at);
    begun(result, unknown_token)?;
    let form = call.form()?;
    let answer = Answer::see_other(landing(&call.base_path, form.text("next").unwrap_or_default()));
    Ok(answer.with_cookie(cookie(call, session.text(), SESSION_S)))
}

fn enter_with_link(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let owner = owner_of_link(store, call)?;
    let (session, expires_at) = new_session(store)?;
    let recorded = recorded(store, call, owner);
    let result = recorded.access().use_link(&link_hash(call), &session.hash(), expires_at);
    begun(result, used_link)?;
    let answer = Answer::see_other(landing(&call.base_path, "/"));
    Ok(answer.with_cookie(cookie(call, session.text(), SESSION_S)))
}

fn leave(store: &Store, call: &Call) -> Result<Answer, Problem> {
    if let (Some(caller), true) = (&call.caller, call.form_token.is_some()) {
        call.recorded(store, "a session").access().end_session(caller.credential_id)?;
    }
    Ok(Answer::see_other(format!("{}/login", call.base_path)).with_cookie(cookie(call, "", 0)))
}

/// The cookie of a session. No script reads it.
fn cookie(call: &Call, secret: &str, seconds: i64) -> String {
    let secure = if call.is_secure { "; Secure" } else { "" };
    format!("{}; HttpOnly{secure}", call.new_cookie(&call.cookie, secret, seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_login_leads_only_to_pages_of_this_server() {
        assert_eq!(own_path("/runs?status=failed"), "/runs?status=failed");
        for path in [
            "",
            "runs",
            "//evil.example",
            "/\\evil.example",
            "https://evil.example",
            "/a\nb",
            "/a\\b",
            "/\u{b}/a",
            "/ü",
        ] {
            assert_eq!(own_path(path), "/", "{path:?}");
        }
    }
}
