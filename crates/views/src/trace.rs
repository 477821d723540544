//! Runs as spans of OpenTelemetry: what is posted to a collector, in the JSON form of OTLP. Pure.
//!
//! A run is a span, each of its jobs is one below it, and each attempt is one below its job. Names of attributes are those of the
//! semantic conventions where there is one.

use serde_json::{Value as Json, json};
use windlass_engine::store::{Attempt, TracedJob, TracedRun, first_line};
use windlass_engine::trace::{RunTrace, SpanId};
use windlass_engine::{JobStatus, RunStatus, StopReason};

/// A span inside of a process, in the numbers of the protocol.
const KIND_INTERNAL: u8 = 1;
/// The status of a span of something that failed.
const STATUS_ERROR: u8 = 2;
/// The flag that says that the next one is known, and the flag of a span whose parent is in another process.
const FLAG_HAS_IS_REMOTE: u32 = 0x100;
const FLAG_IS_REMOTE: u32 = 0x200;

/// Whether a trace has all spans of its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpansLeftOut {
    /// It has all.
    None,
    /// The run has more than one trace may have.
    Some,
}

/// The body of a request with these spans.
#[must_use]
pub fn trace_request(spans: Vec<Json>) -> Json {
    let version = env!("CARGO_PKG_VERSION");
    let resource = [attribute("service.name", "windlass"), attribute("service.version", version)];
    json!({ "resourceSpans": [{
        "resource": { "attributes": resource },
        "scopeSpans": [{ "scope": { "name": "windlass", "version": version }, "spans": spans }],
    }] })
}

/// The span of a run.
#[must_use]
pub fn run_span(trace: &RunTrace, run: &TracedRun, left_out: SpansLeftOut) -> Json {
    let (parent, flags) = match (run.caller, trace.caller) {
        (Some(job), _) => (Some(SpanId::of_job(job)), FLAG_HAS_IS_REMOTE),
        (None, Some(caller)) => (Some(caller), FLAG_HAS_IS_REMOTE | FLAG_IS_REMOTE),
        (None, None) => (None, FLAG_HAS_IS_REMOTE),
    };
    let mut attributes = vec![
        attribute("windlass.run.id", run.id),
        attribute("windlass.workflow", &*run.workflow),
        attribute("windlass.run.status", run.status.as_str()),
        attribute("windlass.run.jobs", run.total_jobs),
    ];
    let reason = run.stop_reason.map(StopReason::as_str);
    attributes.extend(reason.map(|reason| attribute("windlass.run.stop_reason", reason)));
    if left_out == SpansLeftOut::Some {
        attributes.push(attribute("windlass.spans_left_out", true));
    }
    let error = match run.status {
        RunStatus::Failed => Some(reason.unwrap_or_default()),
        RunStatus::Pending | RunStatus::Running | RunStatus::Successful | RunStatus::Cancelled => None,
    };
    span(&Span {
        trace,
        id: SpanId::of_run(run.key),
        parent,
        flags,
        name: &run.workflow,
        times: (run.key.created_at, run.finished_at),
        attributes,
        error,
    })
}

/// The span of a job with all its attempts. A job that no attempt was made of, and that waited for nothing, has no duration.
#[must_use]
pub fn job_span(trace: &RunTrace, run: &TracedRun, job: &TracedJob) -> Json {
    let first = [job.first_started_at, job.started_at, job.decided_at].into_iter().flatten().min();
    let mut attributes = of_job(run, job);
    attributes.push(attribute("windlass.job.status", job.status.as_str()));
    let error = match job.status {
        JobStatus::Failed => Some(job.error.as_deref().map_or("", first_line)),
        JobStatus::Blocked
        | JobStatus::Scheduled
        | JobStatus::Pending
        | JobStatus::Waiting
        | JobStatus::Running
        | JobStatus::Successful
        | JobStatus::Skipped
        | JobStatus::Cancelled => None,
    };
    span(&Span {
        trace,
        id: SpanId::of_job(job.key),
        parent: Some(job.group.map_or(SpanId::of_run(run.key), SpanId::of_job)),
        flags: FLAG_HAS_IS_REMOTE,
        name: &job.name,
        times: (first.unwrap_or(job.finished_at), job.finished_at),
        attributes,
        error,
    })
}

/// The span of an attempt that did not succeed, or that a retry has replaced. `None` if nobody knows when it began.
#[must_use]
pub fn attempt_span(trace: &RunTrace, run: &TracedRun, job: &TracedJob, attempt: &Attempt) -> Option<Json> {
    let mut attributes = of_attempt(run, job, attempt.attempt, &attempt.outcome);
    attributes.extend(attempt.worker_id.map(|worker_id| attribute("windlass.worker.id", worker_id)));
    let error = match attempt.outcome.as_str() {
        "cancelled" | "successful" => None,
        outcome => {
            attributes.push(attribute("error.type", outcome));
            Some(attempt.error.as_deref().map_or("", first_line))
        }
    };
    Some(span(&Span {
        trace,
        id: SpanId::of_attempt(job.key, attempt.attempt),
        parent: Some(SpanId::of_job(job.key)),
        flags: FLAG_HAS_IS_REMOTE,
        name: &format!("attempt {}", attempt.attempt),
        times: (attempt.started_at?, attempt.finished_at),
        attributes,
        error,
    }))
}

/// The span of the attempt with which a job succeeded. `None` if it did not, or if no attempt was made of it.
#[must_use]
pub fn successful_attempt_span(trace: &RunTrace, run: &TracedRun, job: &TracedJob) -> Option<Json> {
    if job.status != JobStatus::Successful || job.attempt == 0 {
        return None;
    }
    Some(span(&Span {
        trace,
        id: SpanId::of_attempt(job.key, job.attempt),
        parent: Some(SpanId::of_job(job.key)),
        flags: FLAG_HAS_IS_REMOTE,
        name: &format!("attempt {}", job.attempt),
        times: (job.started_at?, job.finished_at),
        attributes: of_attempt(run, job, job.attempt, "successful"),
        error: None,
    }))
}

/// The attributes that a job and its attempts share.
fn of_job(run: &TracedRun, job: &TracedJob) -> Vec<Json> {
    vec![
        attribute("windlass.run.id", run.id),
        attribute("windlass.workflow", &*run.workflow),
        attribute("windlass.job", &*job.name),
        attribute("windlass.job.id", job.id),
        attribute("windlass.kind", &*job.kind),
        attribute("windlass.queue", &*job.queue),
    ]
}

fn of_attempt(run: &TracedRun, job: &TracedJob, attempt: i64, outcome: &str) -> Vec<Json> {
    let mut attributes = of_job(run, job);
    attributes.push(attribute("windlass.attempt", attempt));
    attributes.push(attribute("windlass.outcome", outcome));
    // The job has the exit code of its last attempt.
    let exit_code = job.exit_code.filter(|_code| attempt == job.attempt);
    attributes.extend(exit_code.map(|code| attribute("process.exit.code", code)));
    attributes
}

struct Span<'s> {
    trace: &'s RunTrace,
    id: SpanId,
    parent: Option<SpanId>,
    flags: u32,
    name: &'s str,
    times: (i64, i64),
    attributes: Vec<Json>,
    /// Why it failed, if it did.
    error: Option<&'s str>,
}

fn span(span: &Span<'_>) -> Json {
    // The clock may have been set back in between.
    let (started_at, finished_at) = (span.times.0.min(span.times.1), span.times.1);
    let mut json = json!({
        "traceId": span.trace.trace_id.to_string(),
        "spanId": span.id.to_string(),
        "flags": span.flags | u32::from(span.trace.flags()),
        "name": span.name,
        "kind": KIND_INTERNAL,
        "startTimeUnixNano": nanoseconds(started_at),
        "endTimeUnixNano": nanoseconds(finished_at),
        "attributes": span.attributes,
        "status": {},
    });
    if let Some(parent) = span.parent {
        json["parentSpanId"] = parent.to_string().into();
    }
    if let Some(error) = span.error {
        json["status"] = json!({ "code": STATUS_ERROR, "message": error });
    }
    json
}

/// An instant as the protocol has it: a number of 64 bits is a text.
fn nanoseconds(instant_ms: i64) -> String {
    (i128::from(instant_ms.max(0)) * 1_000_000).to_string()
}

/// A name and a value. A number of 64 bits is a text.
fn attribute(name: &str, value: impl Into<Json>) -> Json {
    let value: Json = value.into();
    let value = match value {
        Json::Bool(value) => json!({ "boolValue": value }),
        Json::Number(number) => json!({ "intValue": number.to_string() }),
        Json::String(text) => json!({ "stringValue": text }),
        Json::Null | Json::Array(_) | Json::Object(_) => json!({ "stringValue": value.to_string() }),
    };
    json!({ "key": name, "value": value })
}

#[cfg(test)]
mod tests {
    use windlass_engine::trace::{RowKey, TraceParent};

    use super::*;

    const KEY: RowKey = RowKey { created_at: 1_000, token: 7 };

    fn trace() -> RunTrace {
        RunTrace::of_top(KEY, None)
    }

    fn run() -> TracedRun {
        TracedRun {
            id: 3,
            key: KEY,
            workflow: "nightly".to_owned(),
            status: RunStatus::Successful,
            stop_reason: None,
            total_jobs: 1,
            finished_at: 9_000,
            caller: None,
        }
    }

    fn job() -> TracedJob {
        TracedJob {
            id: 5,
            key: RowKey { created_at: 1_000, token: 8 },
            name: "load".to_owned(),
            kind: "shell".to_owned(),
            queue: "default".to_owned(),
            status: JobStatus::Successful,
            attempt: 2,
            exit_code: Some(0),
            error: None,
            first_started_at: Some(2_000),
            started_at: Some(4_000),
            decided_at: None,
            finished_at: 5_000,
            group: None,
        }
    }

    fn attempt(outcome: &str) -> Attempt {
        Attempt {
            attempt: 1,
            worker_id: Some(4),
            outcome: outcome.to_owned(),
            error: Some("\n no disk \nmore".to_owned()),
            ready_at: None,
            started_at: Some(2_000),
            finished_at: 3_000,
            retried_at: None,
        }
    }

    fn value<'s>(span: &'s Json, key: &str) -> Option<&'s Json> {
        let attributes = span["attributes"].as_array()?;
        attributes.iter().find(|attribute| attribute["key"] == key).map(|attribute| &attribute["value"])
    }

    /// What a collector gets, as a whole.
    #[test]
    fn a_request_is_as_the_protocol_says() {
        let request = trace_request(vec![run_span(&trace(), &run(), SpansLeftOut::None)]);
        let version = env!("CARGO_PKG_VERSION");
        let text = |key: &str, value: &str| json!({ "key": key, "value": { "stringValue": value } });
        let number = |key: &str, value: &str| json!({ "key": key, "value": { "intValue": value } });
        assert_eq!(
            request,
            json!({ "resourceSpans": [{
                "resource": { "attributes": [text("service.name", "windlass"), text("service.version", version)] },
                "scopeSpans": [{
                    "scope": { "name": "windlass", "version": version },
                    "spans": [{
                        "traceId": trace().trace_id.to_string(),
                        "spanId": SpanId::of_run(KEY).to_string(),
                        "flags": 0x101,
                        "name": "nightly",
                        "kind": 1,
                        "startTimeUnixNano": "1000000000",
                        "endTimeUnixNano": "9000000000",
                        "attributes": [
                            number("windlass.run.id", "3"),
                            text("windlass.workflow", "nightly"),
                            text("windlass.run.status", "SUCCESSFUL"),
                            number("windlass.run.jobs", "1"),
                        ],
                        "status": {},
                    }],
                }],
            }] })
        );
    }

    #[test]
    fn spans_hang_together() {
        let group = RowKey { created_at: 1, token: 1 };
        let parent = |span: &Json| span["parentSpanId"].as_str().map(str::to_owned);
        let is = |id: SpanId| Some(id.to_string());
        assert_eq!(parent(&job_span(&trace(), &run(), &job())), is(SpanId::of_run(KEY)));
        let item = TracedJob { group: Some(group), ..job() };
        assert_eq!(parent(&job_span(&trace(), &run(), &item)), is(SpanId::of_job(group)));
        let below = TracedRun { caller: Some(group), ..run() };
        let caller = TraceParent::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
        let continued = RunTrace::of_top(KEY, caller);
        assert_eq!(parent(&run_span(&continued, &below, SpansLeftOut::None)), is(SpanId::of_job(group)));
        let top = run_span(&continued, &run(), SpansLeftOut::Some);
        assert_eq!(parent(&top), caller.map(|caller| caller.span_id.to_string()));
        assert_eq!(
            (&top["flags"], value(&top, "windlass.spans_left_out")),
            (&json!(0x301), Some(&json!({ "boolValue": true })))
        );
        let attempt = attempt_span(&trace(), &run(), &job(), &attempt("failed")).unwrap_or_default();
        assert_eq!(parent(&attempt), is(SpanId::of_job(job().key)));
    }

    #[test]
    fn a_failure_has_the_first_line_of_its_error() {
        let failed = attempt_span(&trace(), &run(), &job(), &attempt("timed_out")).unwrap_or_default();
        assert_eq!(failed["status"], json!({ "code": 2, "message": "no disk" }));
        assert_eq!(value(&failed, "error.type"), Some(&json!({ "stringValue": "timed_out" })));
        assert_eq!(value(&failed, "process.exit.code"), None, "it is that of the last attempt");
        let cancelled = attempt_span(&trace(), &run(), &job(), &attempt("cancelled")).unwrap_or_default();
        assert_eq!((&cancelled["status"], value(&cancelled, "error.type")), (&json!({}), None));
        let replaced = attempt_span(&trace(), &run(), &job(), &attempt("successful")).unwrap_or_default();
        assert_eq!((&replaced["status"], value(&replaced, "error.type")), (&json!({}), None));
        let stopped =
            TracedRun { status: RunStatus::Failed, stop_reason: Some(StopReason::TimedOut), ..run() };
        let stopped = run_span(&trace(), &stopped, SpansLeftOut::None);
        assert_eq!(stopped["status"], json!({ "code": 2, "message": "timed_out" }));
    }

    #[test]
    fn a_job_begins_with_its_first_attempt() {
        let times = |job: &TracedJob| {
            let span = job_span(&trace(), &run(), job);
            (span["startTimeUnixNano"].clone(), span["endTimeUnixNano"].clone())
        };
        assert_eq!(times(&job()), (json!("2000000000"), json!("5000000000")));
        let skipped = TracedJob {
            status: JobStatus::Skipped,
            attempt: 0,
            first_started_at: None,
            started_at: None,
            ..job()
        };
        assert_eq!(times(&skipped), (json!("5000000000"), json!("5000000000")));
        assert_eq!(successful_attempt_span(&trace(), &run(), &skipped), None);
        let set_back = TracedJob { finished_at: 1_500, ..job() };
        assert_eq!(times(&set_back), (json!("1500000000"), json!("1500000000")));
        let successful = successful_attempt_span(&trace(), &run(), &job()).unwrap_or_default();
        assert_eq!(
            (&successful["name"], &successful["startTimeUnixNano"]),
            (&json!("attempt 2"), &json!("4000000000"))
        );
    }
}
