//! A fake of the kind `http`: nothing is sent. Templates are filled in, and the answer means what it always means.

use std::collections::BTreeMap;
use std::sync::Arc;

use ureq::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use windlass_engine::transition::Outcome;
use windlass_workflow::kinds::http::Payload;

use super::exchange::{NoAnswer, what};
use super::patience::Over;
use super::{Content, Ending, WholeAnswer, conclude, place, request};
use crate::handler::{Attempt, Handler, failed, failed_for_good};
use crate::kinds::fake::{FakeEnd, FakeEnds, HowItEnds};
use crate::kinds::secrets::Secrets;
use crate::kinds::values::{TemplateValues, read_with_retries};

/// Makes the handler.
pub(crate) fn start_fake(ends: Arc<FakeEnds>) -> impl Handler {
    FakeHttp { ends }
}

struct FakeHttp {
    ends: Arc<FakeEnds>,
}

impl Handler for FakeHttp {
    fn execute(&self, attempt: &Attempt) -> Outcome {
        execute(attempt, &self.ends).unwrap_or_else(|outcome| outcome)
    }

    fn longest_ms(&self, attempt: &Attempt) -> Option<i64> {
        Payload::parse(attempt.payload()).ok().map(|payload| payload.http.timeout_ms)
    }
}

fn execute(attempt: &Attempt, ends: &Arc<FakeEnds>) -> Result<Outcome, Outcome> {
    let Payload { http, uses, secrets } = Payload::parse(attempt.payload()).map_err(failed_for_good)?;
    let run = read_with_retries(attempt, || attempt.run())?;
    let run = run.as_deref();
    let values = TemplateValues::of(attempt, run, &uses)?;
    let secrets = Secrets::fake(&secrets);
    let keys = request::Keys {
        idempotency_key: attempt.idempotency_key(),
        traceparent: run.map(|run| attempt.traceparent(run)),
    };
    let request = request::build(&http, &values.with_secrets(&secrets), &keys)?;
    secrets.mask(attempt);
    let saved = http.save.as_deref().map(|save| place(save, attempt, run, &values)).transpose()?;
    let what = what(&request);
    let end = Ending { attempt, timeout_ms: http.timeout_ms };
    let FakeEnd { how, output, error } = ends(attempt);
    let output = output.unwrap_or_default();
    if attempt.stop().cause().is_some() {
        return Err(end.without(&what, NoAnswer::Over(Over::Stopped)));
    }
    match how {
        HowItEnds::Answer { status, headers } => {
            let (status, headers) = head(status, &headers)?;
            let content = match saved {
                Some(place) => Content::Unwritten(place, output.len() as u64),
                None => Content::Bytes(output),
            };
            Ok(conclude(attempt, WholeAnswer { what, status, headers, content }))
        }
        HowItEnds::NoAnswer => {
            let no_answer = match error {
                Some(error) => NoAnswer::Passing(error),
                None => NoAnswer::Over(Over::TimedOut),
            };
            Err(end.without(&what, no_answer))
        }
        HowItEnds::Exit(_) | HowItEnds::Signal(_) => {
            Err(failed("its fake has the end of a process, and it is a request"))
        }
    }
}

fn head(status: u16, headers: &BTreeMap<String, String>) -> Result<(StatusCode, HeaderMap), Outcome> {
    let wrong = |what: &str| failed_for_good(format!("its fake has {what}"));
    let status = StatusCode::from_u16(status).map_err(|_| wrong("a status that does not exist"))?;
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let known =
            HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong("an invalid name of a header"))?;
        let value = HeaderValue::from_str(value).map_err(|_| wrong("an invalid value of a header"))?;
        map.append(known, value);
    }
    Ok((status, map))
}
