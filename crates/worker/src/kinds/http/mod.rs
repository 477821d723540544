//! The kind `http`: a job that is one HTTP request.
//!
//! `request` makes the request, `exchange` sends it, `body` reads the answer, and `judge` says what the answer means. Every
//! wait for the network is in `patience`, which ends when the attempt is asked to stop.

mod address;
mod body;
mod connection;
mod exchange;
mod fake;
mod judge;
mod lookup;
pub(crate) mod patience;
pub(crate) mod post;
mod redirect;
mod request;
mod save;

use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value as Json, json};
use ureq::http::{HeaderMap, StatusCode, header};
use windlass_engine::attempt_end::AttemptResult;
use windlass_engine::store::{LogStream, RunContext};
use windlass_engine::transition::{Outcome, Repeat};
use windlass_workflow::duration;
use windlass_workflow::kinds::http::Payload;

use self::body::ReadError;
use self::exchange::{Answer, Exchange, NoAnswer};
pub(super) use self::fake::start_fake;
use self::patience::{Over, Patience};
use self::save::SaveFile;
use crate::handler::{Attempt, Handler, LinkLocal, StopCause, WorkerContext, failed, failed_for_good};
use crate::kinds::secrets::Secrets;
use crate::kinds::values::{TemplateValues, read_with_retries};
use crate::kinds::workspace;

/// How much of a body is read to show its first line.
const ERROR_BODY_BYTES: u64 = 64 * 1024;

/// Makes the handler for one worker.
pub(super) fn start(worker: &WorkerContext) -> Arc<dyn Handler> {
    Arc::new(Http { link_local: worker.link_local })
}

/// Sends requests.
#[derive(Debug)]
struct Http {
    link_local: LinkLocal,
}

impl Handler for Http {
    fn execute(&self, attempt: &Attempt) -> Outcome {
        self.request(attempt).unwrap_or_else(|outcome| outcome)
    }
}

/// A whole answer.
struct WholeAnswer {
    what: String,
    status: StatusCode,
    headers: HeaderMap,
    content: Content,
}

/// The body of an answer.
enum Content {
    Bytes(Vec<u8>),
    File(SaveFile, u64),
    /// A file that a fake would have written, and how long it would be.
    Unwritten(PathBuf, u64),
}

impl Http {
    /// Makes one attempt. The error is an outcome too: that of an attempt without an answer.
    fn request(&self, attempt: &Attempt) -> Result<Outcome, Outcome> {
        let Payload { http, uses, secrets } = Payload::parse(attempt.payload()).map_err(failed_for_good)?;
        let run = read_with_retries(attempt, || attempt.run())?;
        let values = TemplateValues::of(attempt, run.as_deref(), &uses)?;
        let run_folder = run.as_deref().and_then(|run| run.dir.as_deref()).map(Path::new);
        let secrets = Secrets::resolve(attempt, &secrets, run_folder)?;
        let keys = request::Keys {
            idempotency_key: attempt.idempotency_key(),
            traceparent: run.as_deref().map(|run| attempt.traceparent(run)),
        };
        let request = request::build(&http, &values.with_secrets(&secrets), &keys)?;
        secrets.mask(attempt);
        let save =
            http.save.as_deref().map(|save| place(save, attempt, run.as_deref(), &values)).transpose()?;
        if attempt.stop().cause().is_some() {
            return Err(Outcome::Unstarted);
        }
        let lacks = |error: std::io::Error| Outcome::OutOfResources {
            reason: format!("no file for a request: {error}"),
        };
        let _file = attempt.stop().wake_file().map_err(lacks)?;
        let clock = attempt.clock().clone();
        let started_ms = clock.monotonic_ms();
        let deadline_ms = started_ms.saturating_add(http.timeout_ms);
        let patience = Patience { stop: attempt.stop().clone(), clock, deadline_ms };
        let log = |line: &str| attempt.log(LogStream::Engine, line);
        let exchange = Exchange { log: &log, patience, link_local: self.link_local };
        let end = Ending { attempt, timeout_ms: http.timeout_ms };
        let answer =
            exchange.run(request, http.follow).map_err(|(what, no_answer)| end.without(&what, no_answer))?;
        let limit = http.body_limit().unsigned_abs();
        let answer = receive(&exchange, answer, limit, save, &end)?;
        let took_ms = exchange.patience.clock.monotonic_ms() - started_ms;
        let (status, bytes) = (answer.status, answer.content.bytes());
        log(&format!("{}: {}, {bytes} bytes in {took_ms} ms", answer.what, status_text(status)));
        Ok(conclude(attempt, answer))
    }
}

/// What an attempt without a whole answer comes to.
struct Ending<'a> {
    attempt: &'a Attempt,
    timeout_ms: i64,
}

impl Ending<'_> {
    fn without(&self, what: &str, no_answer: NoAnswer) -> Outcome {
        match no_answer {
            NoAnswer::Over(Over::Stopped) => failed(format!("{}: {what} was ended", self.stopped())),
            NoAnswer::Over(Over::TimedOut) => Outcome::TimedOut {
                error: format!("{what}: no whole answer within {}", duration::to_text(self.timeout_ms)),
                repeat: Repeat::Allowed,
            },
            NoAnswer::Shortage(error) => {
                Outcome::OutOfResources { reason: format!("a request could not be sent: {error}") }
            }
            NoAnswer::Final(reason) => failed_for_good(format!("{what}: {reason}")),
            NoAnswer::Passing(reason) => failed(format!("{what}: {reason}")),
        }
    }

    fn stopped(&self) -> String {
        match (self.attempt.stop().cause(), self.attempt.job().timeout_ms) {
            (Some(StopCause::TimedOut), Some(timeout_ms)) => {
                format!("timed out after {}", duration::to_text(timeout_ms))
            }
            (Some(StopCause::TimedOut), None) => "timed out".to_owned(),
            (Some(StopCause::Cancelled | StopCause::Killed) | None, _) => "cancelled".to_owned(),
            (Some(StopCause::PastDeadline), _) => "not over at its deadline".to_owned(),
            (Some(StopCause::Leaving), _) => "stopped with its worker".to_owned(),
            (Some(StopCause::Fenced), _) => "stopped: its worker lost the lease".to_owned(),
        }
    }
}

/// Reads the body of an answer.
fn receive(
    exchange: &Exchange<'_>,
    answer: Answer,
    limit: u64,
    save: Option<PathBuf>,
    end: &Ending<'_>,
) -> Result<WholeAnswer, Outcome> {
    let Answer { what, status, headers, body } = answer;
    let (content, read) = match save {
        None => {
            let mut bytes = Vec::new();
            let read = body::copy(body, limit, &mut bytes);
            (Content::Bytes(bytes), read)
        }
        Some(place) => {
            let shown = place.display().to_string();
            let mut file =
                SaveFile::create(place, end.attempt).map_err(|error| cannot_save(&shown, &error))?;
            let read = body::copy(body, limit, &mut file.file);
            (Content::File(file, *read.as_ref().unwrap_or(&0)), read)
        }
    };
    let Err(error) = read else { return Ok(WholeAnswer { what, status, headers, content }) };
    let outcome = match error {
        ReadError::TooLarge => failed_for_good(format!(
            "{what}: {}, and its body is larger than {limit} bytes: set `max_bytes`, or `save` the body in a file",
            status_text(status)
        )),
        ReadError::File(error) => cannot_save(&content.place(), &error),
        ReadError::Network(error) => {
            let no_answer = match exchange.patience.over() {
                Some(over) => NoAnswer::Over(over),
                None => NoAnswer::Passing(format!("the answer broke off: {error}")),
            };
            end.without(&what, no_answer)
        }
    };
    (exchange.log)(&format!("{what}: {}, and the body was not read to its end", status_text(status)));
    content.discard();
    Err(outcome)
}

/// What a whole answer means for the attempt. Conditions of the job may replace that: they get the status, the headers and
/// the output of every answer.
fn conclude(attempt: &Attempt, answer: WholeAnswer) -> Outcome {
    let WholeAnswer { what, status, headers, content } = answer;
    let code = status.as_u16();
    let is_success = judge::is_success(code);
    let line = if is_success { None } else { content.first_line() };
    let output = match output(attempt, status, &headers, content) {
        Ok(output) => output,
        Err(failure) => return failure,
    };
    if attempt.has_conditions() {
        let names = names_of(status, &headers);
        attempt.record_result(AttemptResult { names, output: Ok(Some(output.clone())) });
    }
    if is_success {
        return Outcome::Successful { output: Some(output) };
    }
    let line = line.map_or(String::new(), |line| format!(": {line}"));
    let error = format!("{what}: {}{line}", status_text(status));
    Outcome::Failed { error, repeat: repeat(attempt, code, &headers) }
}

/// The output of an answer as JSON. A body that is to be saved is in its place after a success, and nowhere else.
fn output(
    attempt: &Attempt,
    status: StatusCode,
    headers: &HeaderMap,
    content: Content,
) -> Result<String, Outcome> {
    let mut output = json!({ "status": status.as_u16(), "headers": body::headers_json(headers) });
    match content {
        Content::Bytes(bytes) => output["body"] = body::body_json(headers, &bytes),
        Content::File(file, _) if !judge::is_success(status.as_u16()) => file.discard(),
        Content::Unwritten(place, bytes) if judge::is_success(status.as_u16()) => {
            output["file"] = Json::from(place.display().to_string());
            output["bytes"] = Json::from(bytes);
        }
        Content::Unwritten(..) => {}
        Content::File(file, bytes) => {
            let place = file.place.display().to_string();
            if attempt.stop().is_fenced() {
                file.discard();
                return Err(failed("stopped: its worker lost the lease"));
            }
            file.keep().map_err(|error| cannot_save(&place, &error))?;
            output["file"] = Json::from(place);
            output["bytes"] = Json::from(bytes);
        }
    }
    Ok(output.to_string())
}

/// The names of this kind that conditions can read.
fn names_of(status: StatusCode, headers: &HeaderMap) -> Map<String, Json> {
    let headers = body::headers_json(headers);
    [("status".to_owned(), Json::from(status.as_u16())), ("headers".to_owned(), headers)]
        .into_iter()
        .collect()
}

/// Whether a failed request is tried again. With `retry.if`, that condition decides about every status.
fn repeat(attempt: &Attempt, code: u16, headers: &HeaderMap) -> Repeat {
    let value = |name: header::HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let asked_ms = value(header::RETRY_AFTER).and_then(|retry_after| {
        judge::retry_after_ms(retry_after, value(header::DATE), attempt.clock().now_ms())
    });
    let conditions = attempt.job().conditions.as_ref();
    match judge::repeat(code, asked_ms) {
        Repeat::Pointless if conditions.is_some_and(|conditions| conditions.retry_if.is_some()) => {
            Repeat::Allowed
        }
        repeat @ (Repeat::Allowed | Repeat::NotWithin { .. } | Repeat::Pointless) => repeat,
    }
}

impl Content {
    fn bytes(&self) -> u64 {
        match self {
            Content::Bytes(bytes) => bytes.len() as u64,
            Content::File(_, bytes) | Content::Unwritten(_, bytes) => *bytes,
        }
    }

    fn place(&self) -> String {
        match self {
            Content::Bytes(_) => String::new(),
            Content::File(file, _) => file.place.display().to_string(),
            Content::Unwritten(place, _) => place.display().to_string(),
        }
    }

    fn first_line(&self) -> Option<String> {
        match self {
            Content::Bytes(bytes) => body::first_line(bytes),
            Content::Unwritten(..) => None,
            Content::File(file, _) => {
                let mut written = std::fs::File::open(file.beside()).ok()?;
                let mut start = Vec::new();
                written.rewind().ok()?;
                written.take(ERROR_BODY_BYTES).read_to_end(&mut start).ok()?;
                body::first_line(&start)
            }
        }
    }

    fn discard(self) {
        match self {
            Content::Bytes(_) | Content::Unwritten(..) => {}
            Content::File(file, _) => file.discard(),
        }
    }
}

/// The path of a file to save. A relative one begins at the workspace, or at the folder of the workflow file.
fn place(
    save: &str,
    attempt: &Attempt,
    run: Option<&RunContext>,
    values: &TemplateValues<'_>,
) -> Result<PathBuf, Outcome> {
    let save = values.render(save, || "http.save".to_owned())?;
    let base = || run.and_then(|run| run.dir.as_deref()).map(PathBuf::from);
    let folder = workspace::make(attempt, run)?.or_else(base).unwrap_or_default();
    let place = folder.join(&save);
    if place.file_name().is_none() || save.ends_with('/') {
        return Err(failed_for_good("`http.save` names no file"));
    }
    Ok(place)
}

fn cannot_save(place: &str, error: &std::io::Error) -> Outcome {
    use std::io::ErrorKind;
    let is_wrong_place = [
        ErrorKind::NotFound,
        ErrorKind::PermissionDenied,
        ErrorKind::IsADirectory,
        ErrorKind::NotADirectory,
        ErrorKind::ReadOnlyFilesystem,
    ];
    let message = format!("the answer could not be saved in {place}: {error}");
    match is_wrong_place.contains(&error.kind()) {
        true => failed_for_good(format!("{message}: check `save`")),
        false => failed(message),
    }
}

/// The status for people: "status 404 Not Found".
fn status_text(status: StatusCode) -> String {
    match status.canonical_reason() {
        Some(reason) => format!("status {} {reason}", status.as_u16()),
        None => format!("status {}", status.as_u16()),
    }
}
