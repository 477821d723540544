//! One POST outside of a job: a message to another system. It has the limits of jobs' requests, and follows no redirects.

use ureq::Body;
use ureq::http::header::CONTENT_TYPE;
use ureq::http::{HeaderMap, HeaderName, HeaderValue};
use windlass_workflow::kinds::http::Method;

use super::exchange::{Exchange, text};
use super::patience::{Over, Patience};
use super::request::Request;
use super::{ERROR_BODY_BYTES, NoAnswer, body, redirect, status_text};
use crate::handler::LinkLocal;
use crate::kinds::messages::{JsonAnswer, MessageOutput, NotSent};

/// An answer with a success.
pub(crate) struct Accepted {
    status: String,
    body: Body,
}

impl Accepted {
    /// The status, for people.
    pub(crate) fn status(self) -> String {
        self.status
    }

    /// The status with the body. The recipient has taken the request, so a body that can't be read is no error.
    pub(crate) fn read(self) -> JsonAnswer {
        let mut body = Vec::new();
        let is_read = body::copy(self.body, ERROR_BODY_BYTES, &mut body).is_ok();
        JsonAnswer { status: self.status, body: is_read.then_some(body) }
    }
}

/// Sends JSON and waits for the answer. Any answer but a success is an error, which has no part of the address but its host.
pub(crate) fn post(
    url: &str,
    headers: &[(&str, String)],
    json: &str,
    patience: Patience,
    link_local: LinkLocal,
    output: MessageOutput,
) -> Result<Accepted, NotSent> {
    let uri = redirect::parse(url).map_err(NotSent::Failed)?;
    let request =
        Request { method: Method::Post, uri, headers: head(headers)?, body: Some(json.as_bytes().to_vec()) };
    let exchange = Exchange { log: &|_line| {}, patience, link_local };
    let answer = exchange.run(request, false).map_err(|(_what, no_answer)| match no_answer {
        NoAnswer::Over(Over::Stopped) => NotSent::Interrupted,
        NoAnswer::Over(Over::TimedOut) => NotSent::Failed("no answer in time".to_owned()),
        other @ (NoAnswer::Shortage(_) | NoAnswer::Final(_) | NoAnswer::Passing(_)) => {
            NotSent::Failed(text(&other))
        }
    })?;
    let status = status_text(answer.status);
    let code = answer.status.as_u16();
    // Not the success of a job's request, which a redirect that leads nowhere is too.
    if (200..300).contains(&code) {
        return Ok(Accepted { status, body: answer.body });
    }
    let redirected = if (300..400).contains(&code) { "; redirects are not followed" } else { "" };
    let said = match output {
        // The answer may repeat what is secret in the address.
        MessageOutput::Discarded => None,
        MessageOutput::Shown => {
            let mut start = Vec::new();
            let _broken_off = body::copy(answer.body, ERROR_BODY_BYTES, &mut start);
            body::first_line(&start)
        }
    };
    let said = said.map_or_else(String::new, |line| format!(": {line}"));
    Err(NotSent::Answered { status: code, reason: format!("{status}{redirected}{said}") })
}

/// Whether a message can be sent to the address.
///
/// # Errors
/// The reason, which does not repeat the address.
pub fn check_url(url: &str) -> Result<(), String> {
    redirect::parse(url).map(|_uri| ())
}

fn head(headers: &[(&str, String)]) -> Result<HeaderMap, NotSent> {
    let mut map = HeaderMap::new();
    map.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    for (name, value) in headers {
        let value = HeaderValue::from_str(value)
            .map_err(|_error| NotSent::Failed(format!("the header `{name}` can't be sent")))?;
        let name = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_error| NotSent::Failed(format!("a header can't be named `{name}`")))?;
        map.insert(name, value);
    }
    Ok(map)
}
