//! How a person enters: with a token in a form, or with a link of `windlass open`. Both begin a session.

use askama::Template;
use axum::http::Uri;
use windlass_engine::Store;
use windlass_engine::store::{Role, Secret, secret_hash};

use crate::answer::Answer;
use crate::call::Call;
use crate::pages::assets::assets;
use crate::pages::url::encode;
use crate::problem::Problem;
use crate::route::{Allowed, BODY_MAX, Client, Method, QueryParameter, QueryRule, Route, ValueSort, Work};

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
        document: None,
    },
    Route {
        method: Method::Post,
        path: "/login",
        allowed: Allowed::WithSecret { because: "the form has a token" },
        client: Client::Browser,
        work: Work::Write(enter_with_token),
        query: QueryRule::Known(&[]),
        body_max: BODY_MAX,
        document: None,
    },
    Route {
        method: Method::Get,
        path: "/open",
        allowed: Allowed::WithSecret { because: "the link has a code that works once" },
        client: Client::Browser,
        work: Work::Write(enter_with_link),
        query: QueryRule::Known(&[CODE]),
        body_max: 0,
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
    detail: &'p str,
    next_step: &'p str,
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
        detail,
        next_step,
    };
    let answer = render(&page).unwrap_or_else(|problem| Answer::problem(&problem));
    answer.with_status(problem.status).never_cached().with_retry_after(problem.retry_after_s)
}

/// Sends a browser without a session to the login, and back afterwards.
pub(crate) fn redirect(base: &str, wanted: &Uri) -> Answer {
    let wanted = wanted.path_and_query().map(ToString::to_string).unwrap_or_default();
    Answer::see_other(format!("{base}/login?next={}", encode(&wanted)))
}

/// A path of this server, or the first page. Browsers take `//host` and `/\host` for addresses of other servers.
fn own_path(path: &str) -> &str {
    let is_own = path.starts_with('/')
        && !path.starts_with("//")
        && !path.contains(['\\', '\n', '\r', '\t'])
        && path.len() <= 2_000;
    if is_own { path } else { "/" }
}

fn enter_with_token(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let form = call.form()?;
    let next = form.text("next").unwrap_or_default();
    let token = form.text("token").unwrap_or_default().trim();
    let session = Secret::generate().map_err(|error| Problem::defect(format!("a secret: {error}")))?;
    let expires_at = store.clock().now_ms() + SESSION_S * 1_000;
    let began = call.recorded(store, "a session").access().begin_session(
        &secret_hash(token),
        &session.hash(),
        expires_at,
    )?;
    if began.is_none() {
        return Err(Problem::unauthorized("the token is unknown, has expired or was revoked"));
    }
    Ok(Answer::see_other(format!("{}{}", call.base_path, own_path(next))).with_cookie(cookie(
        call,
        session.text(),
        SESSION_S,
    )))
}

fn enter_with_link(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let code = call.query.text("code").unwrap_or_default();
    let session = Secret::generate().map_err(|error| Problem::defect(format!("a secret: {error}")))?;
    let expires_at = store.clock().now_ms() + SESSION_S * 1_000;
    let began = call.recorded(store, "a session").access().use_link(
        &secret_hash(code),
        &session.hash(),
        expires_at,
    )?;
    if !began {
        return Err(Problem::unauthorized("the link was used before, or is older than a minute"));
    }
    Ok(Answer::see_other(format!("{}/", call.base_path)).with_cookie(cookie(call, session.text(), SESSION_S)))
}

fn leave(store: &Store, call: &Call) -> Result<Answer, Problem> {
    if let (Some(caller), true) = (&call.caller, call.form_token.is_some()) {
        call.recorded(store, "a session").access().end_session(caller.credential_id)?;
    }
    Ok(Answer::see_other(format!("{}/login", call.base_path)).with_cookie(cookie(call, "", 0)))
}

/// The cookie of a session. `Lax` sends it with links of other sites, such as those in alerts, but not with their forms.
fn cookie(call: &Call, secret: &str, seconds: i64) -> String {
    let path = if call.base_path.is_empty() { "/" } else { &call.base_path };
    let secure = if call.is_secure { "; Secure" } else { "" };
    format!("{}={secret}; Path={path}; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}", call.cookie)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_login_leads_only_to_pages_of_this_server() {
        assert_eq!(own_path("/runs?status=failed"), "/runs?status=failed");
        for path in
            ["", "runs", "//evil.example", "/\\evil.example", "https://evil.example", "/a\nb", "/a\\b"]
        {
            assert_eq!(own_path(path), "/", "{path:?}");
        }
    }
}
