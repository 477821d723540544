//! What a route is. A route can't be written without saying who may use it, and the server answers nothing that is not in
//! [`all`].

use std::sync::Arc;

use schemars::generate::SchemaGenerator;
use schemars::{JsonSchema, Schema};
use windlass_engine::Store;
use windlass_engine::store::{Job, Role};

use crate::answer::Answer;
use crate::call::Call;
use crate::live::Viewers;
use crate::problem::Problem;
use crate::threads::DatabaseThreads;
use crate::{assets, health, hooks, live, metrics, page_routes, rest, sign_in};

/// The largest body if a route has no need for more.
pub(crate) const BODY_MAX: usize = 64 * 1024;

/// A method of HTTP. `HEAD` is answered like `GET`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    Get,
    Post,
    Put,
    Patch,
}

impl Method {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Post => "POST",
            Method::Put => "PUT",
            Method::Patch => "PATCH",
        }
    }

    /// Whether a request with it changes something.
    pub(crate) fn changes(self) -> bool {
        match self {
            Method::Get => false,
            Method::Post | Method::Put | Method::Patch => true,
        }
    }
}

/// Who may use a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Allowed {
    /// A caller with this role or a higher one.
    Role(Role),
    /// Everybody. A route of this sort says why.
    Everybody { because: &'static str },
    /// Everybody who sends a secret, which the handler checks. Failures are counted. A route of this sort says which secret.
    WithSecret { because: &'static str },
}

/// Who asks: what an answer to a request without a caller looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Client {
    /// A program. It gets a problem as JSON.
    Program,
    /// A browser. It gets a page, and is sent to the login.
    Browser,
}

/// A function that answers.
pub(crate) type Handler = fn(&Store, &Call) -> Result<Answer, Problem>;

/// A function that refuses a request.
pub(crate) type Check = fn(&Store, &Call) -> Result<(), Problem>;

/// What streams are made of.
pub(crate) struct Streams {
    pub(crate) viewers: Arc<Viewers>,
    pub(crate) threads: Arc<DatabaseThreads>,
}

/// What was read before a stream is opened.
pub(crate) enum Prepared {
    Nothing,
    Job(Box<Job>),
    /// The client has everything.
    Finished,
}

/// A function that opens a stream.
pub(crate) type Opener = fn(&Streams, &Call, Prepared) -> Result<Answer, Problem>;
/// A function that reads what is needed to open a stream.
pub(crate) type Preparation = fn(&Store, &Call) -> Result<Prepared, Problem>;

/// Where a request is answered.
#[derive(Clone, Copy)]
pub(crate) enum Work {
    /// At once. The function has no store.
    AtOnce(fn(&Call) -> Result<Answer, Problem>),
    /// By a stream that goes on after the answer.
    Stream { prepare: Option<Preparation>, open: Opener },
    /// On a thread that reads.
    Read(Handler),
    /// On a thread that writes.
    Write(Handler),
    /// The same, after a check on a thread that reads. What is refused there begins no write.
    CheckedWrite { check: Check, write: Handler },
}

/// A query parameter that a route knows. Others are refused.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QueryParameter {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) value: ValueSort,
}

/// How the query of a route is checked.
#[derive(Debug, Clone, Copy)]
pub(crate) enum QueryRule {
    /// It has these parameters, and no other.
    Known(&'static [QueryParameter]),
    /// The handler reads and checks it.
    ByHandler,
}

/// The values of a query parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ValueSort {
    Text,
    Integer {
        least: i64,
        most: i64,
    },
    /// An instant in RFC 3339.
    Instant,
    /// `true` or `false`.
    Boolean,
}

/// What the header `Idempotency-Key` means to a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Idempotency {
    /// Nothing: it changes nothing, or the same request again leaves everything as it is.
    NoKey,
    /// The server makes the same request once, and sends the same answer: see `once`.
    Kept,
    /// The handler makes it a part of what it makes. The text says of what.
    Own(&'static str),
}

/// What the OpenAPI document says about a route.
#[derive(Clone, Copy)]
pub(crate) struct Document {
    pub(crate) summary: &'static str,
    pub(crate) answer: fn(&mut SchemaGenerator) -> Schema,
    pub(crate) body: Option<fn(&mut SchemaGenerator) -> Schema>,
    /// The other types of the body, which are text.
    pub(crate) text_bodies: &'static [&'static str],
}

impl Document {
    /// A route that answers with `T`.
    pub(crate) const fn of<T: JsonSchema>(summary: &'static str) -> Document {
        Document { summary, answer: SchemaGenerator::subschema_for::<T>, body: None, text_bodies: &[] }
    }

    /// The same with a body.
    pub(crate) const fn with_body<B: JsonSchema>(self) -> Document {
        Document { body: Some(SchemaGenerator::subschema_for::<B>), ..self }
    }

    /// The same, and the body may be text of these types.
    pub(crate) const fn with_text_bodies(self, text_bodies: &'static [&'static str]) -> Document {
        Document { text_bodies, ..self }
    }
}

/// A route: a method and a path, who may use it, and what answers.
#[derive(Clone, Copy)]
pub(crate) struct Route {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    pub(crate) allowed: Allowed,
    pub(crate) client: Client,
    pub(crate) work: Work,
    pub(crate) query: QueryRule,
    pub(crate) body_max: usize,
    pub(crate) idempotency: Idempotency,
    /// What the OpenAPI document says. `None` for pages and files.
    pub(crate) document: Option<Document>,
}

impl Route {
    /// A route that reads for programs.
    pub(crate) const fn read(path: &'static str, role: Role, handler: Handler, document: Document) -> Route {
        Route {
            method: Method::Get,
            path,
            allowed: Allowed::Role(role),
            client: Client::Program,
            work: Work::Read(handler),
            query: QueryRule::Known(&[]),
            body_max: 0,
            idempotency: Idempotency::NoKey,
            document: Some(document),
        }
    }

    /// A route that changes something, for programs.
    pub(crate) const fn change(
        method: Method,
        path: &'static str,
        role: Role,
        handler: Handler,
        document: Document,
    ) -> Route {
        Route {
            method,
            path,
            allowed: Allowed::Role(role),
            client: Client::Program,
            work: Work::Write(handler),
            query: QueryRule::Known(&[]),
            body_max: BODY_MAX,
            idempotency: Idempotency::NoKey,
            document: Some(document),
        }
    }

    /// A stream.
    pub(crate) const fn stream(
        path: &'static str,
        role: Role,
        prepare: Option<Preparation>,
        open: Opener,
        document: Option<Document>,
    ) -> Route {
        Route {
            method: Method::Get,
            path,
            allowed: Allowed::Role(role),
            client: Client::Program,
            work: Work::Stream { prepare, open },
            query: QueryRule::Known(&[]),
            body_max: 0,
            idempotency: Idempotency::NoKey,
            document,
        }
    }

    /// A page.
    pub(crate) const fn page(path: &'static str, role: Role, handler: Handler) -> Route {
        Route {
            method: Method::Get,
            path,
            allowed: Allowed::Role(role),
            client: Client::Browser,
            work: Work::Read(handler),
            query: QueryRule::ByHandler,
            body_max: 0,
            idempotency: Idempotency::NoKey,
            document: None,
        }
    }

    /// A form of a page.
    pub(crate) const fn form(path: &'static str, role: Role, handler: Handler) -> Route {
        Route {
            method: Method::Post,
            path,
            allowed: Allowed::Role(role),
            client: Client::Browser,
            work: Work::Write(handler),
            query: QueryRule::Known(&[]),
            body_max: BODY_MAX,
            idempotency: Idempotency::NoKey,
            document: None,
        }
    }

    /// Whether it is a change that has no fields, so that its body is empty or `{}`.
    pub(crate) fn takes_no_fields(&self) -> bool {
        self.method.changes() && self.document.is_some_and(|document| document.body.is_none())
    }

    /// The same with a larger body.
    pub(crate) const fn with_body_max(self, body_max: usize) -> Route {
        Route { body_max, ..self }
    }

    /// The same, and the header `Idempotency-Key` means something.
    pub(crate) const fn with_key(self, idempotency: Idempotency) -> Route {
        Route { idempotency, ..self }
    }

    /// The same with query parameters.
    pub(crate) const fn with_query(self, query: &'static [QueryParameter]) -> Route {
        Route { query: QueryRule::Known(query), ..self }
    }
}

/// All routes. The server is built from this list, and the tests and the OpenAPI document read it.
pub(crate) fn all() -> Vec<Route> {
    let mut routes = [
        health::ROUTES,
        sign_in::ROUTES,
        hooks::ROUTES,
        metrics::ROUTES,
        assets::ROUTES,
        page_routes::ROUTES,
    ]
    .concat();
    routes.extend(rest::ROUTES.concat());
    routes.extend(live::ROUTES);
    routes
}
