//! What went wrong with a request, as `application/problem+json` (RFC 9457).

use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;
use windlass_engine::store::Role;
use windlass_engine::{Error, Unavailable};
use windlass_views::FileError;

use crate::threads::{NoResult, READ_MAX};

/// Why a request has no other answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) status: StatusCode,
    kind: &'static str,
    title: &'static str,
    detail: String,
    next_step: String,
    /// The errors of a definition.
    errors: Box<[FileError]>,
    pub(crate) retry_after_s: Option<u64>,
}

/// The JSON of a problem.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Problem")]
pub(crate) struct ProblemView<'p> {
    /// What sort of problem it is: `urn:windlass:` and a word.
    r#type: String,
    /// The sort in words.
    title: &'p str,
    /// The status of the answer.
    status: u16,
    /// What is wrong with this request.
    detail: &'p str,
    /// What to do about it.
    next_step: &'p str,
    /// The errors of a definition, each with its place; empty for other problems.
    errors: &'p [FileError],
}

impl Problem {
    fn new(
        status: StatusCode,
        kind: &'static str,
        title: &'static str,
        detail: impl Into<String>,
        next_step: impl Into<String>,
    ) -> Problem {
        Problem {
            status,
            kind,
            title,
            detail: detail.into(),
            next_step: next_step.into(),
            errors: Box::default(),
            retry_after_s: None,
        }
    }

    pub(crate) fn view(&self) -> ProblemView<'_> {
        ProblemView {
            r#type: format!("urn:windlass:{}", self.kind),
            title: self.title,
            status: self.status.as_u16(),
            detail: &self.detail,
            next_step: &self.next_step,
            errors: &self.errors,
        }
    }

    /// The same with the errors of a definition.
    pub(crate) fn with_errors(self, errors: Vec<FileError>) -> Problem {
        Problem { errors: errors.into(), ..self }
    }

    /// What is wrong, and the next step, for a page.
    pub(crate) fn texts(&self) -> (&'static str, &str, &str) {
        (self.title, &self.detail, &self.next_step)
    }

    /// The request itself is wrong.
    pub(crate) fn invalid(detail: impl Into<String>, next_step: impl Into<String>) -> Problem {
        Problem::new(StatusCode::BAD_REQUEST, "invalid", "The request is invalid", detail, next_step)
    }

    /// Something does not exist.
    pub(crate) fn not_found(detail: impl Into<String>, next_step: impl Into<String>) -> Problem {
        Problem::new(StatusCode::NOT_FOUND, "not_found", "Not found", detail, next_step)
    }

    /// No route has this path.
    pub(crate) fn no_route() -> Problem {
        Problem::not_found("there is nothing at this address", "see /api/v1/openapi.json for all addresses")
    }

    /// The same for a person.
    pub(crate) fn no_page() -> Problem {
        Problem::not_found("There is no page at this address.", "Begin with the list of runs.")
    }

    /// The route has another method.
    pub(crate) fn no_method() -> Problem {
        Problem::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "method_not_allowed",
            "The method is not allowed",
            "this address does not take requests with this method",
            "use one of the methods of the header Allow",
        )
    }

    /// The state of the rows does not allow it.
    pub(crate) fn conflict(detail: impl Into<String>, next_step: impl Into<String>) -> Problem {
        Problem::new(StatusCode::CONFLICT, "conflict", "The state does not allow it", detail, next_step)
    }

    /// The request names no caller, or none that is known.
    pub(crate) fn unauthorized(detail: impl Into<String>) -> Problem {
        Problem::new(
            StatusCode::UNAUTHORIZED,
            "unauthorized",
            "A caller is needed",
            detail,
            "send `Authorization: Bearer TOKEN`; `windlass token add` makes a token, and `windlass open` a session",
        )
    }

    /// A message of another service is not signed as it must be.
    pub(crate) fn unsigned(detail: impl Into<String>, next_step: impl Into<String>) -> Problem {
        Problem::new(StatusCode::UNAUTHORIZED, "unsigned", "A signature is needed", detail, next_step)
    }

    /// The caller's role is too low.
    pub(crate) fn role(has: Role, needs: Role) -> Problem {
        Problem::new(
            StatusCode::FORBIDDEN,
            "forbidden",
            "The role does not allow it",
            format!("this needs the role `{}`, and the caller has `{}`", needs.as_str(), has.as_str()),
            format!("use a token with the role: `windlass token add NAME --role {}`", needs.as_str()),
        )
    }

    /// The caller may not do this, whatever the role.
    pub(crate) fn forbidden(detail: impl Into<String>, next_step: impl Into<String>) -> Problem {
        Problem::new(StatusCode::FORBIDDEN, "forbidden", "It is not allowed", detail, next_step)
    }

    /// The name of the host is not in the list.
    pub(crate) fn unknown_host(host: &str) -> Problem {
        Problem::new(
            StatusCode::MISDIRECTED_REQUEST,
            "unknown_host",
            "The host is unknown",
            format!("this server is not known as `{}`", host.escape_debug()),
            "add the name to `hosts` under [web] in windlass.toml",
        )
    }

    /// Too many failed attempts to enter.
    pub(crate) fn too_many_failures(seconds: u64) -> Problem {
        Problem {
            retry_after_s: Some(seconds),
            ..Problem::new(
                StatusCode::TOO_MANY_REQUESTS,
                "too_many_failures",
                "Too many failures",
                "too many tokens or signatures from this address were wrong",
                "wait for the seconds of Retry-After, and use a token or secret that is valid",
            )
        }
    }

    /// The body is longer than the route takes.
    pub(crate) fn too_large(limit_bytes: usize) -> Problem {
        Problem::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "too_large",
            "The body is too large",
            format!("the body may have {limit_bytes} bytes"),
            "send less",
        )
    }

    /// The client was too slow.
    pub(crate) fn too_slow() -> Problem {
        Problem::new(
            StatusCode::REQUEST_TIMEOUT,
            "too_slow",
            "The request came too slowly",
            "the body did not arrive in time",
            "send it faster",
        )
    }

    /// The body has a type that is not read.
    pub(crate) fn media_type(expected: &str) -> Problem {
        Problem::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "media_type",
            "The type of the body is not supported",
            format!("this address reads {expected}"),
            format!("send `Content-Type: {expected}`"),
        )
    }

    /// Too many requests wait for the database.
    pub(crate) fn busy() -> Problem {
        Problem::unavailable("too many requests wait for the database")
    }

    /// A read was ended, because it took too long. Trying again would take as long.
    pub(crate) fn took_too_long() -> Problem {
        Problem {
            retry_after_s: None,
            next_step: "ask for less: a shorter time, one workflow, one state, or fewer rows; the command line has no such \
                        limit"
                .to_owned(),
            ..Problem::unavailable(format!(
                "the reads for this answer took longer than {} seconds together, so they were ended",
                READ_MAX.as_secs()
            ))
        }
    }

    /// A change goes on, and nobody waits for it any more; or the answer to its commit was lost. A repetition could do it twice.
    pub(crate) fn unknown_outcome() -> Problem {
        Problem {
            retry_after_s: None,
            kind: "unknown_outcome",
            title: "The outcome is unknown",
            next_step: "look whether it was done before you repeat it".to_owned(),
            ..Problem::unavailable("the change was accepted, and it may have been done or may still be done")
        }
    }

    /// The service ends.
    pub(crate) fn stopping() -> Problem {
        Problem::unavailable("the service is stopping")
    }

    /// No more streams may be open.
    pub(crate) fn too_many_streams(max: usize) -> Problem {
        Problem {
            retry_after_s: Some(30),
            next_step: "close other pages or streams, or ask again from time to time instead".to_owned(),
            ..Problem::unavailable(format!("{max} streams are open, and no more may be"))
        }
    }

    /// One caller may open no more streams.
    pub(crate) fn too_many_streams_of_caller(max: usize) -> Problem {
        Problem {
            retry_after_s: Some(30),
            ..Problem::new(
                StatusCode::TOO_MANY_REQUESTS,
                "too_many_streams",
                "Too many streams",
                format!(
                    "this caller has {max} streams open, counted over its token and its sessions, and may have no more"
                ),
                "close other pages or streams, use a token for each program, or ask again from time to time instead",
            )
        }
    }

    fn unavailable(detail: impl Into<String>) -> Problem {
        Problem {
            retry_after_s: Some(1),
            ..Problem::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "unavailable",
                "The service is not available",
                detail,
                "try again after the seconds of Retry-After",
            )
        }
    }

    /// A defect of this program. What it is goes to the log.
    pub(crate) fn defect(detail: impl Into<String>) -> Problem {
        let detail: String = detail.into();
        tracing::error!(detail, "a request of the web server met a defect of windlass");
        Problem::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "defect",
            "A defect of windlass",
            "the request met a defect of windlass",
            "the log of the service says more; please report it",
        )
    }
}

impl From<NoResult> for Problem {
    fn from(reason: NoResult) -> Problem {
        match reason {
            NoResult::Full => Problem::busy(),
            NoResult::Stopping => Problem::stopping(),
            NoResult::Panicked => Problem::defect("a handler panicked"),
        }
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Problem {
        let text = error.to_string();
        match error {
            Error::NotFound { .. } => Problem::not_found(text, "check the name or the number"),
            Error::Conflict { .. } => Problem::conflict(text, "look at its present state"),
            Error::Invalid { .. } => Problem::invalid(text, "correct the values"),
            Error::Unavailable { reason: Unavailable::Cancelled(_), .. } => Problem::took_too_long(),
            Error::Unavailable { reason: Unavailable::CommitUnknown, .. } => Problem::unknown_outcome(),
            Error::Unavailable { reason, .. } => {
                // The reason can name paths and servers, which are for the log only.
                tracing::warn!(%reason, "the database was not available for a request of the web server");
                Problem::unavailable(format!("the database is not available: {}", sort_of(&reason)))
            }
            Error::Internal { .. } => Problem::defect(text),
        }
    }
}

/// Why the database is not available, without names of files and servers.
fn sort_of(reason: &Unavailable) -> &'static str {
    match reason {
        Unavailable::Missing(_) | Unavailable::NoTables(_) => "it is not there",
        Unavailable::CannotOpen(_) | Unavailable::HardLinked { .. } => "it can't be opened",
        Unavailable::NotADatabase | Unavailable::Foreign { .. } => "it is not one of Windlass",
        Unavailable::NewerVersion { .. } => "a newer Windlass made its tables",
        Unavailable::Locked => "another process keeps it locked",
        Unavailable::DiskFull => "the disk is full",
        Unavailable::Incomplete(_) | Unavailable::Corrupt(_) => "it is damaged",
        Unavailable::ReadOnly => "it is read-only",
        Unavailable::InputOutput(_) => "the machine could not read or write it",
        Unavailable::Unreachable(_) => "its server can't be reached",
        Unavailable::NoConnectionFree(_) => "no connection to its server is free",
        Unavailable::Exhausted(_) => "its server is at a limit",
        Unavailable::Cancelled(_) => "its server ended the statement",
        Unavailable::Refused { .. } | Unavailable::Forbidden(_) => "its server refuses this service",
        Unavailable::Standby => "its server takes no writes now",
        Unavailable::CommitUnknown => "the answer to a commit was lost",
        Unavailable::Closed => "the service is stopping",
        Unavailable::OutOfResources(_) => "the service lacks what it needs",
    }
}
