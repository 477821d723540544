//! What a handler answers: a status, headers and a body that is complete.

use axum::body::Body;
use axum::http::header::{
    CACHE_CONTROL, CONNECTION, CONTENT_TYPE, ETAG, IF_NONE_MATCH, LINK, LOCATION, RETRY_AFTER, SET_COOKIE,
    VARY,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::pages::assets::assets;
use crate::problem::Problem;

/// Tells nginx to pass on what comes.
const UNBUFFERED: HeaderName = HeaderName::from_static("x-accel-buffering");

/// The lowest number that a search looked at.
const SEARCHED_TO: HeaderName = HeaderName::from_static("windlass-searched-to");

const HTML: &str = "text/html; charset=utf-8";
/// With this header a page comes without its frame, which has the time of day. So its `ETag` says whether it is the same.
const FRAGMENT: HeaderName = HeaderName::from_static("x-fragment");

/// How long the page waits before it is read again, in milliseconds.
const PAUSE: HeaderName = HeaderName::from_static("x-pause");
/// The version of the files beside the pages, with a page that comes without its frame.
const ASSETS: HeaderName = HeaderName::from_static("x-assets");

/// The mark of an answer whose body does not end by itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IsStream;

/// How long a client may keep an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Caching {
    /// It must ask each time whether the answer is the same.
    AskAgain,
    /// Not at all.
    Never,
    /// As long as it likes, because the address has a hash of the content.
    Forever,
}

/// The answer to a request.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    content_type: &'static str,
    body: Vec<u8>,
    /// In place of the body: what comes as long as the connection is open.
    stream: Option<Body>,
    caching: Caching,
    headers: Vec<(HeaderName, String)>,
}

impl Answer {
    fn new(status: StatusCode, content_type: &'static str, body: Vec<u8>) -> Answer {
        Answer { status, content_type, body, stream: None, caching: Caching::AskAgain, headers: Vec::new() }
    }

    /// The view as JSON, as `-o json` prints it.
    pub(crate) fn json(view: &impl Serialize) -> Result<Answer, Problem> {
        Answer::json_with(StatusCode::OK, view)
    }

    /// The same with another status.
    pub(crate) fn json_with(status: StatusCode, view: &impl Serialize) -> Result<Answer, Problem> {
        let mut body =
            serde_json::to_vec(view).map_err(|error| Problem::defect(format!("write JSON: {error}")))?;
        body.push(b'\n');
        Ok(Answer::new(status, "application/json", body))
    }

    /// JSON that was written before.
    pub(crate) fn kept_json(status: StatusCode, body: String) -> Answer {
        Answer::new(status, "application/json", body.into_bytes())
    }

    /// The body, if it is text that is complete.
    pub(crate) fn text_of_body(&self) -> Option<&str> {
        match self.stream {
            Some(_) => None,
            None => std::str::from_utf8(&self.body).ok(),
        }
    }

    /// A problem as JSON.
    pub(crate) fn problem(problem: &Problem) -> Answer {
        let body = serde_json::to_vec(&problem.view()).unwrap_or_default();
        let answer = Answer::new(problem.status, "application/problem+json", body).never_cached();
        answer.with_retry_after(problem.retry_after_s)
    }

    /// Says when a client may try again.
    pub(crate) fn with_retry_after(self, seconds: Option<u64>) -> Answer {
        match seconds {
            Some(seconds) => self.with_header(RETRY_AFTER, seconds.to_string()),
            None => self,
        }
    }

    /// A page.
    pub(crate) fn html(html: String) -> Answer {
        Answer::new(StatusCode::OK, HTML, html.into_bytes()).with_header(VARY, FRAGMENT.as_str().to_owned())
    }

    /// Server-sent events, after which the connection ends. A proxy must not wait for more of them.
    pub(crate) fn stream(stream: Body) -> Answer {
        let answer = Answer::new(StatusCode::OK, "text/event-stream", Vec::new()).never_cached();
        let answer = answer.with_header(CONNECTION, "close".to_owned());
        Answer { stream: Some(stream), ..answer.with_header(UNBUFFERED, "no".to_owned()) }
    }

    /// Plain text.
    pub(crate) fn text(text: String) -> Answer {
        Answer::new(StatusCode::OK, "text/plain; charset=utf-8", text.into_bytes())
    }

    /// Metrics, in the text format of Prometheus.
    pub(crate) fn metrics(text: String) -> Answer {
        Answer::new(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", text.into_bytes())
            .never_cached()
    }

    /// A file of the program, whose address has a hash of its content.
    pub(crate) fn asset(content_type: &'static str, content: &'static [u8]) -> Answer {
        Answer { caching: Caching::Forever, ..Answer::new(StatusCode::OK, content_type, content.to_vec()) }
    }

    /// Sends a browser to another page.
    pub(crate) fn see_other(location: String) -> Answer {
        let answer = Answer::new(StatusCode::SEE_OTHER, "text/plain; charset=utf-8", Vec::new());
        answer.never_cached().with_header(LOCATION, location)
    }

    pub(crate) fn with_status(self, status: StatusCode) -> Answer {
        Answer { status, ..self }
    }

    pub(crate) fn never_cached(self) -> Answer {
        Answer { caching: Caching::Never, ..self }
    }

    pub(crate) fn with_cookie(self, cookie: String) -> Answer {
        self.never_cached().with_header(SET_COOKIE, cookie)
    }

    /// Names the next page of a list.
    pub(crate) fn with_next(self, address: Option<String>) -> Answer {
        match address {
            Some(address) => self.with_header(LINK, format!("<{address}>; rel=\"next\"")),
            None => self,
        }
    }

    /// Says how far a search looked that stopped before its page was full.
    pub(crate) fn with_searched_to(self, id: Option<i64>) -> Answer {
        match id {
            Some(id) => self.with_header(SEARCHED_TO, id.to_string()),
            None => self,
        }
    }

    fn with_header(mut self, name: HeaderName, value: String) -> Answer {
        self.headers.push((name, value));
        self
    }

    /// The response. A client that has the same content gets none.
    pub(crate) fn into_response(self, asked: &HeaderMap) -> Response<Body> {
        let is_fragment = asked.contains_key(FRAGMENT) && self.content_type == HTML;
        let body = match is_fragment {
            true => main_of(self.body),
            false => self.body,
        };
        let tag =
            (self.status == StatusCode::OK && self.caching == Caching::AskAgain).then(|| entity_tag(&body));
        let is_known = tag.as_deref().is_some_and(|tag| knows(asked, tag));
        let is_stream = self.stream.is_some();
        let mut response = match (is_known, self.stream) {
            (true, _) => Response::new(Body::empty()),
            (false, None) => Response::new(Body::from(body)),
            (false, Some(stream)) => Response::new(stream),
        };
        if is_stream {
            response.extensions_mut().insert(IsStream);
        }
        *response.status_mut() = if is_known { StatusCode::NOT_MODIFIED } else { self.status };
        let headers = response.headers_mut();
        if !is_known {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        }
        let caching = match self.caching {
            Caching::AskAgain => "private, no-cache",
            Caching::Never => "no-store",
            Caching::Forever => "public, max-age=31536000, immutable",
        };
        headers.insert(CACHE_CONTROL, HeaderValue::from_static(caching));
        if let Some(tag) = tag.and_then(|tag| HeaderValue::from_str(&tag).ok()) {
            headers.insert(ETAG, tag);
        }
        if is_fragment && let Ok(version) = HeaderValue::from_str(&assets().version) {
            headers.insert(ASSETS, version);
        }
        for (name, value) in self.headers {
            // A text that can't be a header is left out: a name of a user with a line break, for example.
            if let Ok(value) = HeaderValue::from_str(&value) {
                headers.append(name, value);
            }
        }
        response
    }
}

/// Whether a request asks for a page that is open already.
pub(crate) fn asks_for_fragment(asked: &HeaderMap) -> bool {
    asked.contains_key(FRAGMENT)
}

/// Says how long a page waits before it is read again.
pub(crate) fn add_pause(response: &mut Response<Body>, pause_ms: i64) {
    response.headers_mut().insert(PAUSE, HeaderValue::from(pause_ms));
}

/// The main part of a page. A `<` of its data is escaped, so the first tag that looks like it is the one.
fn main_of(page: Vec<u8>) -> Vec<u8> {
    const END: &str = "</main>";
    let text = String::from_utf8_lossy(&page);
    match (text.find("<main"), text.find(END)) {
        (Some(from), Some(until)) if from < until => text[from..until + END.len()].as_bytes().to_vec(),
        (_, _) => page,
    }
}

/// The first half of the SHA-256 of the content.
fn entity_tag(body: &[u8]) -> String {
    let hash = Sha256::digest(body);
    let hex: String = hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    format!("\"{hex}\"")
}

/// Whether the client said that it has the content with this tag.
fn knows(asked: &HeaderMap, tag: &str) -> bool {
    let known = asked.get(IF_NONE_MATCH).and_then(|value| value.to_str().ok()).unwrap_or_default();
    known == "*" || known.split(',').any(|known| known.trim().trim_start_matches("W/") == tag)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_client_that_has_the_content_gets_none() {
        let first = Answer::text("hello".to_owned()).into_response(&HeaderMap::new());
        let tag = first.headers().get(ETAG).unwrap().clone();
        let mut asked = HeaderMap::new();
        asked.insert(
            IF_NONE_MATCH,
            HeaderValue::from_str(&format!("\"x\", W/{}", tag.to_str().unwrap())).unwrap(),
        );
        let second = Answer::text("hello".to_owned()).into_response(&asked);
        assert_eq!(second.status(), StatusCode::NOT_MODIFIED);
        assert_eq!(second.headers().get(ETAG), Some(&tag));
        let other = Answer::text("hello!".to_owned()).into_response(&asked);
        assert_eq!(other.status(), StatusCode::OK);
    }

    #[test]
    fn a_problem_is_never_kept() {
        let response = Answer::problem(&Problem::busy()).into_response(&HeaderMap::new());
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(response.headers().get(CACHE_CONTROL).unwrap(), "no-store");
        assert_eq!(response.headers().get("retry-after").unwrap(), "1");
        assert!(response.headers().get(ETAG).is_none());
    }
}
