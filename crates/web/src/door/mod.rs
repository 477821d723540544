//! The door: what happens to every request before a handler sees it. Each route goes through it, because [`router`] makes
//! each of them from [`Door::answer`].
//!
//! In this order: the name of the host; the caller; the role; for changes by a browser, the page that they come from; the
//! body; the query parameters. Nothing of a body is read before the caller is known, except by the login.

mod address;
mod body;
mod credentials;
mod failures;
mod hosts;
mod security_headers;

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRequestParts, RawPathParams, Request, State};
use axum::http::header::ACCEPT;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Response, StatusCode, Uri};
use axum::middleware::{Next, from_fn_with_state};
use axum::routing::{MethodFilter, MethodRouter, on};
use axum::{Extension, Router};
use windlass_engine::Store;
use windlass_engine::store::{Caller, CredentialKind, Role};
use windlass_system::Clock;

use crate::answer::{self, Answer};
use crate::call::{Call, Query};
use crate::connections::{ConnectionWork, OwnConnection};
use crate::hooks::{Hook, Hooks};
use crate::live::Viewers;
use crate::metrics::Metrics;
use crate::once;
use crate::options::WebOptions;
use crate::pages::runs::Picture;
use crate::problem::Problem;
use crate::route::{self, Allowed, Client, Method, Prepared, QueryRule, Route, Streams, Work};
use crate::sentences::Sentences;
use crate::sign_in;
use crate::threads::{Access, DatabaseThreads};
use credentials::{Credentials, form_token};
use failures::Failures;
use hosts::{Hosts, is_from_own_page};

pub(crate) use address::Peer;
pub(crate) use credentials::cookie_name;

/// How long a request waits for a handler.
const HANDLER_MAX: Duration = Duration::from_secs(30);
/// The field of a form, and the header, that has the token of the session.
pub(crate) const FORM_TOKEN_FIELD: &str = "form_token";
const FORM_TOKEN_HEADER: &str = "x-form-token";

/// What measurements call the route of an answer that no route gave: 404, 405 and 421.
const NO_ROUTE: &str = "none";

/// The path of the route that answered.
#[derive(Debug, Clone, Copy)]
struct AnsweredBy(&'static str);

/// What all requests share.
pub(crate) struct Door {
    pub(crate) options: WebOptions,
    sentences: Sentences,
    hosts: Hosts,
    failures: Failures,
    threads: Arc<DatabaseThreads>,
    streams: Streams,
    clock: Clock,
    hooks: Mutex<Hooks>,
    metrics: Arc<Metrics>,
    picture: Arc<Picture>,
}

/// A caller, and the token of the forms of its session.
struct Entered {
    caller: Caller,
    /// The sort and the hash of the secret.
    shown: (CredentialKind, String),
    /// `None` for a caller with a header, whose requests no other page can make.
    form_token: Option<String>,
}

impl Door {
    pub(crate) fn new(
        options: WebOptions,
        sentences: Sentences,
        threads: DatabaseThreads,
        viewers: Arc<Viewers>,
        clock: Clock,
    ) -> Door {
        let hosts = Hosts::new(&options.hosts);
        let threads = Arc::new(threads);
        let streams = Streams { viewers, threads: Arc::clone(&threads) };
        let hooks = Mutex::new(options.hooks.clone().into());
        Door {
            options,
            sentences,
            hosts,
            failures: Failures::default(),
            threads,
            streams,
            clock,
            hooks,
            metrics: Arc::default(),
            picture: Arc::default(),
        }
    }

    /// Takes messages of other services from now on.
    pub(crate) fn set_hooks(&self, hooks: Vec<Hook>) {
        *self.hooks.lock().unwrap_or_else(PoisonError::into_inner) = hooks.into();
    }

    /// Answers a request to a route.
    async fn answer(&self, route: Route, peer: Peer, request: Request) -> Response<Body> {
        let (mut parts, body) = request.into_parts();
        let began_us = self.clock.monotonic_us();
        let answered = self.call(route, peer, &mut parts, body).await;
        let answer = answered.unwrap_or_else(|problem| self.refuse(route, &parts, &problem));
        let mut response = answer.into_response(&parts.headers);
        // A refusal took no time of a page.
        let is_page = matches!(response.status(), StatusCode::OK | StatusCode::NOT_MODIFIED);
        if is_page && answer::asks_for_fragment(&parts.headers) {
            self.streams.viewers.observe_page_us(self.clock.monotonic_us() - began_us);
            answer::add_pause(&mut response, self.streams.viewers.page_pause_ms());
        }
        response.extensions_mut().insert(AnsweredBy(route.path));
        response
    }

    async fn call(&self, route: Route, peer: Peer, parts: &mut Parts, body: Body) -> Result<Answer, Problem> {
        let address = peer.client(&parts.headers, &self.options.trusted_proxies);
        let entered = match route.allowed {
            Allowed::Role(role) => Some(self.enter_with_role(address, parts, role).await?),
            Allowed::WithSecret { because: _ } | Allowed::Everybody { because: _ } => None,
        };
        let has_form_token = entered.as_ref().is_some_and(|entered| entered.form_token.is_some());
        // No other page can send a header with a token.
        let is_change_by_browser = route.method.changes()
            && (has_form_token || (entered.is_none() && route.client == Client::Browser));
        if is_change_by_browser && !is_from_own_page(&parts.headers) {
            return Err(Problem::forbidden(
                "the request does not come from a page of this server",
                "use the pages of this server, or send a token in the header Authorization",
            ));
        }
        let path = path_parts(parts).await?;
        let connection = parts.extensions.get::<OwnConnection>().cloned();
        // Who sends a body slowly must not keep others out.
        let set_work = |work| {
            if let Some(connection) = &connection {
                connection.set_work(work);
            }
        };
        set_work(ConnectionWork::Waiting);
        let body = body::read(body, &parts.headers, route).await?;
        set_work(ConnectionWork::Busy);
        let query = query_of(route, parts)?;
        let call = self.new_call(entered, address, parts, (path, query, body));
        if route.method.changes() {
            check_form_token(&call)?;
        }
        if route.takes_no_fields() {
            call.no_fields()?;
        }
        let answered = self.work(route, call).await;
        // A name that no hook has is a failure too: otherwise names could be tried without end.
        let is_failure = |status| matches!(status, StatusCode::UNAUTHORIZED | StatusCode::NOT_FOUND);
        let has_failed = answered.as_ref().is_err_and(|problem| is_failure(problem.status));
        if has_failed && matches!(route.allowed, Allowed::WithSecret { .. }) {
            self.count_failure(address)?;
        }
        answered
    }

    /// The request as handlers see it: the path, the query and the body were read.
    fn new_call(
        &self,
        entered: Option<Entered>,
        address: IpAddr,
        parts: &Parts,
        (path, query, body): (Vec<(String, String)>, Query, Vec<u8>),
    ) -> Call {
        Call {
            shown: entered.as_ref().map(|entered| entered.shown.clone()),
            form_token: entered.as_ref().and_then(|entered| entered.form_token.clone()),
            caller: entered.map(|entered| entered.caller),
            connection: parts.extensions.get::<OwnConnection>().and_then(OwnConnection::task),
            address,
            path,
            target: parts.uri.path_and_query().map(ToString::to_string).unwrap_or_default(),
            query,
            headers: parts.headers.clone(),
            body,
            base_path: self.options.base_path.clone(),
            definitions: self.options.definitions,
            sentences: self.sentences.clone(),
            metrics: Arc::clone(&self.metrics),
            picture: Arc::clone(&self.picture),
            hooks: Arc::clone(&self.hooks.lock().unwrap_or_else(PoisonError::into_inner)),
            is_secure: self.options.is_secure(),
            cookie: cookie_name(&self.options),
        }
    }

    async fn work(&self, route: Route, call: Call) -> Result<Answer, Problem> {
        let (access, handler) = match route.work {
            Work::AtOnce(handler) => return handler(&call),
            Work::Stream { prepare: None, open } => return open(&self.streams, &call, Prepared::Nothing),
            Work::Stream { prepare: Some(prepare), open } => {
                let call = Arc::new(call);
                let asked = Arc::clone(&call);
                let prepared = self.on_thread(Access::Read, move |store| prepare(store, &asked)).await?;
                return open(&self.streams, &call, prepared);
            }
            Work::CheckedWrite { check, write } => {
                let call = Arc::new(call);
                let asked = Arc::clone(&call);
                self.on_thread(Access::Read, move |store| check(store, &asked)).await?;
                return self.on_thread(Access::Write, move |store| write(store, &call)).await;
            }
            Work::Read(handler) => (Access::Read, handler),
            Work::Write(handler) => (Access::Write, handler),
        };
        self.on_thread(access, move |store| once::answer(route, handler, store, &call)).await
    }

    /// Calls the store, and waits for the result, but not for ever. A write that was accepted goes on all the same.
    async fn on_thread<T: Send + 'static>(
        &self,
        access: Access,
        call: impl FnOnce(&Store) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let answered = tokio::time::timeout(HANDLER_MAX, self.threads.call(access, call));
        answered.await.map_err(|_late| late(access))??
    }

    /// Finds the caller of a request, who needs a role.
    async fn enter_with_role(&self, address: IpAddr, parts: &Parts, role: Role) -> Result<Entered, Problem> {
        let entered = self.enter(address, parts).await?;
        match entered.caller.role < role {
            true => Err(Problem::role(entered.caller.role, role)),
            false => Ok(entered),
        }
    }

    /// Finds the caller of a request.
    async fn enter(&self, address: IpAddr, parts: &Parts) -> Result<Entered, Problem> {
        let credentials = Credentials::read(&parts.headers, &cookie_name(&self.options))?;
        let hash = credentials.hash();
        let kind = credentials.kind();
        let shown = (kind, hash.clone());
        let found = self.threads.call(Access::Read, move |store| store.access().caller(kind, &hash)).await?;
        match (found?, credentials) {
            (Some(caller), Credentials::Token(_)) => Ok(Entered { caller, shown, form_token: None }),
            (Some(caller), Credentials::Session(secret)) => {
                Ok(Entered { caller, shown, form_token: Some(form_token(&secret)) })
            }
            (None, Credentials::Token(_)) => {
                self.count_failure(address)?;
                Err(Problem::unauthorized("the token is unknown, has expired or was revoked"))
            }
            // Sessions end by themselves, and a page that is open then goes on asking: no attack, so it is not counted.
            (None, Credentials::Session(_)) => Err(Problem::unauthorized("the session has ended")),
        }
    }

    /// Counts a wrong secret or signature. After too many the answer says so, whatever was wrong. A valid one is recognized
    /// before, so the failures of others behind the same address don't keep its owner out.
    fn count_failure(&self, address: IpAddr) -> Result<(), Problem> {
        let now_ms = self.clock.now_ms();
        match self.failures.refused_for_s(address, now_ms) {
            Some(seconds) => Err(Problem::too_many_failures(seconds)),
            None => {
                self.failures.add(address, now_ms);
                Ok(())
            }
        }
    }

    /// The answer to a request that is refused: a problem as JSON, or a page.
    fn refuse(&self, route: Route, parts: &Parts, problem: &Problem) -> Answer {
        let base = self.options.base_path.as_str();
        let has_no_caller = problem.status == StatusCode::UNAUTHORIZED;
        match (route.client, route.allowed) {
            (Client::Program, _) => Answer::problem(problem),
            (Client::Browser, Allowed::WithSecret { .. }) if has_no_caller => {
                sign_in::form_after_failure(base, problem)
            }
            (Client::Browser, Allowed::Role(_)) if has_no_caller && !route.method.changes() => {
                sign_in::redirect(base, &parts.uri)
            }
            (Client::Browser, _) => sign_in::problem_page(base, problem),
        }
    }
}

/// What is told about a call that takes too long. Nobody reads its result; but what it writes stays.
fn late(access: Access) -> Problem {
    match access {
        Access::Read => Problem::busy(),
        Access::Write => Problem::unknown_outcome(),
    }
}

/// The query parameters of a request, if its route knows them.
fn query_of(route: Route, parts: &Parts) -> Result<Query, Problem> {
    let QueryRule::Known(known) = route.query else { return Ok(Query::default()) };
    let query = Query::parse(parts.uri.query().unwrap_or_default())?;
    match route.client {
        Client::Browser => query.without_empty(known).check(known),
        Client::Program => query.check(known),
    }
}

/// Refuses a change of a session without its token. Another site can't read the token.
fn check_form_token(call: &Call) -> Result<(), Problem> {
    let Some(expected) = &call.form_token else { return Ok(()) };
    let sent = match call.header(FORM_TOKEN_HEADER) {
        Some(sent) => Some(sent.to_owned()),
        None => call.form().ok().and_then(|form| form.text(FORM_TOKEN_FIELD).map(str::to_owned)),
    };
    if sent.is_some_and(|sent| credentials::are_equal(&sent, expected)) {
        return Ok(());
    }
    Err(Problem::forbidden(
        "the request has no token of this session",
        "reload the page and try again; a program sends its token in the header Authorization instead",
    ))
}

/// The variable parts of the path, decoded.
async fn path_parts(parts: &mut Parts) -> Result<Vec<(String, String)>, Problem> {
    let invalid = || Problem::invalid("the path can't be read", "encode the path as UTF-8");
    let raw = RawPathParams::from_request_parts(parts, &()).await.map_err(|_error| invalid())?;
    let parts: Vec<(String, String)> =
        raw.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    if parts.iter().any(|(_name, value)| value.contains('\0')) {
        return Err(invalid());
    }
    Ok(parts)
}

/// The service: each route of [`route::all`], and nothing else.
pub(crate) fn router(door: &Arc<Door>) -> Router {
    let mut router = Router::new();
    for route in route::all() {
        router = router.route(route.path, answered_by(door, route, |_request| {}));
    }
    let router = match door.options.base_path.as_str() {
        "" => router,
        base_path => {
            let nested = Router::new().nest(base_path, router);
            // The first page has a slash at its end, which nesting takes away.
            route::all().into_iter().filter(|route| route.path == "/").fold(nested, |nested, first| {
                let at_root = |request: &mut Request| *request.uri_mut() = Uri::from_static("/");
                nested.route(&format!("{base_path}/"), answered_by(door, first, at_root))
            })
        }
    };
    let no_method = || async { Answer::problem(&Problem::no_method()).into_response(&Default::default()) };
    let base_path = door.options.base_path.clone();
    let no_route = move |headers: HeaderMap| async move { no_route(&base_path, &headers) };
    router
        .method_not_allowed_fallback(no_method)
        .fallback(no_route)
        .layer(from_fn_with_state(Arc::clone(door), before_all))
}

/// Answers requests to a route by the door. `prepare` changes them before.
fn answered_by(door: &Arc<Door>, route: Route, prepare: fn(&mut Request)) -> MethodRouter {
    let filter = match route.method {
        Method::Get => MethodFilter::GET,
        Method::Post => MethodFilter::POST,
        Method::Put => MethodFilter::PUT,
        Method::Patch => MethodFilter::PATCH,
    };
    let door = Arc::clone(door);
    on(filter, move |Extension(peer): Extension<Peer>, mut request: Request| {
        let door = Arc::clone(&door);
        prepare(&mut request);
        async move { door.answer(route, peer, request).await }
    })
}

/// The answer about an address that no route has: a page for a person, JSON for a program.
fn no_route(base_path: &str, headers: &HeaderMap) -> Response<Body> {
    let accepted = headers.get(ACCEPT).and_then(|accepted| accepted.to_str().ok()).unwrap_or_default();
    let answer = if accepted.contains("text/html") {
        sign_in::problem_page(base_path, &Problem::no_page())
    } else {
        Answer::problem(&Problem::no_route())
    };
    answer.into_response(&HeaderMap::new())
}

/// Refuses other hosts, adds the headers for browsers to every answer, and measures it.
async fn before_all(State(door): State<Arc<Door>>, request: Request, next: Next) -> Response<Body> {
    let began_us = door.clock.monotonic_us();
    let mut response = match door.hosts.unknown(request.headers(), request.uri()) {
        None => next.run(request).await,
        Some(host) => Answer::problem(&Problem::unknown_host(&host)).into_response(request.headers()),
    };
    security_headers::add(response.headers_mut());
    let route = response.extensions().get::<AnsweredBy>().map_or(NO_ROUTE, |route| route.0);
    let took_us = door.clock.monotonic_us() - began_us;
    door.metrics.observe_request(route, response.status().as_u16(), took_us);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_that_takes_too_long_is_not_to_be_repeated() {
        let written = late(Access::Write);
        assert_eq!((written.status, written.retry_after_s), (StatusCode::SERVICE_UNAVAILABLE, None));
        let (_title, detail, next_step) = written.texts();
        assert!(
            detail.contains("may still be done") && next_step.contains("before you repeat"),
            "{written:?}"
        );
        assert_eq!(late(Access::Read).retry_after_s, Some(1));
    }
}
