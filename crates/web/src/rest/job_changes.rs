//! Deciding about jobs, cancelling and retrying them, enqueueing jobs of their own, and sending events.

use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use windlass_engine::Store;
use windlass_engine::store::{Cancellation, DEFAULT_MAX_ATTEMPTS, NewJob, NewSignal, Role, Subject, Verdict};
use windlass_views::{CancelledJob, EnqueuedView, JobView, SignalView};
use windlass_workflow::params::{self, Supplied};

use super::jobs::job_of;
use super::run_changes::{names_of, wrong_values};
use crate::answer::Answer;
use crate::call::Call;
use crate::once;
use crate::problem::Problem;
use crate::route::{Document, Idempotency, Method, Route};

/// The largest body with a payload.
const PAYLOAD_BYTES: usize = 1024 * 1024;

pub(crate) const ROUTES: &[Route] = &[
    Route::change(
        Method::Post,
        "/api/v1/jobs",
        Role::Run,
        enqueue,
        Document::of::<EnqueuedView>(
            "Enqueue a job without a run; one of a built-in kind needs the role `edit`, and `allow_definitions`",
        )
        .with_body::<EnqueuedJob>(),
    )
    .with_body_max(PAYLOAD_BYTES)
    .with_key(Idempotency::Kept),
    Route::change(
        Method::Post,
        "/api/v1/jobs/{job_id}/approve",
        Role::Run,
        approve,
        Document::of::<JobView>("Approve a job that waits for it").with_body::<Approval>(),
    ),
    Route::change(
        Method::Post,
        "/api/v1/jobs/{job_id}/reject",
        Role::Run,
        reject,
        Document::of::<JobView>("Reject a job that waits for an approval").with_body::<Rejection>(),
    ),
    Route::change(
        Method::Post,
        "/api/v1/jobs/{job_id}/cancel",
        Role::Run,
        cancel,
        Document::of::<CancelledJob>("Stop a job; jobs that need it are skipped"),
    ),
    Route::change(
        Method::Post,
        "/api/v1/jobs/{job_id}/retry",
        Role::Run,
        retry,
        Document::of::<JobView>("Run a job again that belongs to no run"),
    )
    .with_key(Idempotency::Kept),
    Route::change(
        Method::Post,
        "/api/v1/events",
        Role::Run,
        signal,
        Document::of::<SignalView>("Send an event to jobs that wait for it and to triggers").with_body::<Event>(),
    )
    .with_body_max(2 * windlass_workflow::limits::EVENT_PAYLOAD_BYTES)
    .with_key(Idempotency::Own(
        "It is the id of the event: whoever sends it again sends the same event, as long as that is kept.",
    )),
];

/// A job to enqueue.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EnqueuedJob {
    /// What executes it.
    #[schemars(length(min = 1))]
    kind: String,
    /// Its input.
    #[serde(default)]
    payload: Value,
    /// The queue it waits in.
    #[serde(default)]
    queue: Option<String>,
    /// Higher is claimed first.
    #[serde(default)]
    priority: i64,
    /// A delay before it may start.
    #[serde(default)]
    delay_ms: Option<i64>,
    /// How many attempts may fail.
    #[serde(default)]
    max_attempts: Option<i64>,
    /// While a job with this key is unfinished, no other one with it is accepted.
    #[serde(default)]
    unique_key: Option<String>,
}

/// An approval.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Approval {
    /// Values of the fields of the approval.
    #[serde(default)]
    fields: Map<String, Value>,
}

/// A rejection.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Rejection {
    /// Why.
    #[schemars(length(min = 1))]
    reason: String,
}

/// An event.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Event {
    /// Its name.
    #[schemars(regex(pattern = "^[A-Za-z_][A-Za-z0-9_.-]*$"))]
    event: String,
    /// Its key.
    #[serde(default)]
    key: Option<String>,
    /// Its payload.
    #[serde(default)]
    payload: Value,
}

/// Refuses a job that is a command or a request, unless the configuration allows them.
fn check_kind(call: &Call, kind: &str) -> Result<(), Problem> {
    if !windlass_workflow::kinds::is_built_in(kind) {
        return Ok(());
    }
    super::definitions::check_commands(call, &format!("jobs of kind `{}`", kind.escape_debug()))
}

fn enqueue(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let wanted: EnqueuedJob = call.json()?;
    check_kind(call, &wanted.kind)?;
    let plain = NewJob::new(wanted.kind, wanted.payload.to_string());
    windlass_workflow::kinds::check_payload(&plain.kind, &plain.payload)
        .map_err(|reason| Problem::invalid(format!("the payload can't be used: {reason}"), "correct it"))?;
    let job = NewJob {
        queue: wanted.queue.unwrap_or_else(|| plain.queue.clone()),
        priority: wanted.priority,
        delay_ms: wanted.delay_ms,
        max_attempts: wanted.max_attempts.unwrap_or(DEFAULT_MAX_ATTEMPTS),
        unique_key: wanted.unique_key,
        ..plain
    };
    let subject = format!("a job of kind {}", job.kind);
    let ids = call.recorded(store, subject).jobs().enqueue(vec![job])?;
    let job_id = *ids.first().ok_or_else(|| Problem::defect("the job has no id"))?;
    Answer::json_with(StatusCode::CREATED, &EnqueuedView { job_id })
}

fn approve(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let job = job_of(store, call)?;
    let wanted: Approval = call.json()?;
    let declared = store.jobs().approval(job.id)?.map(|approval| approval.fields).unwrap_or_default();
    let given = wanted.fields.into_iter().map(|(name, value)| (name, Supplied::Json(value))).collect();
    let fields = params::bind(&declared, given).map_err(|errors| {
        let next_step = match names_of(&declared) {
            None => "the approval has no fields; leave them out".to_owned(),
            Some(names) => format!("the fields are: {names}"),
        };
        wrong_values(&errors, next_step)
    })?;
    decide(store, call, job.id, Verdict::Approve { by: call.caller_name(), fields })
}

fn reject(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let job = job_of(store, call)?;
    let wanted: Rejection = call.json()?;
    if wanted.reason.trim().is_empty() {
        return Err(Problem::invalid("the reason is empty", "say why the job is rejected"));
    }
    decide(store, call, job.id, Verdict::Reject { by: call.caller_name(), reason: wanted.reason })
}

fn decide(store: &Store, call: &Call, job_id: i64, verdict: Verdict) -> Result<Answer, Problem> {
    call.recorded(store, Subject::Job(job_id)).jobs().decide_approval(job_id, verdict)?;
    Answer::json(&JobView::read(store, &store.jobs().get(job_id)?)?)
}

fn cancel(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let job = job_of(store, call)?;
    let done = if job.status.is_terminal() || job.cancel_requested_at.is_some() {
        None
    } else {
        Some(call.recorded(store, Subject::Job(job.id)).jobs().cancel(job.id)?)
    };
    let Cancellation { cancelled, stopping } = done.unwrap_or(Cancellation { cancelled: 0, stopping: 0 });
    let job = JobView::read(store, &store.jobs().get(job.id)?)?;
    Answer::json(&CancelledJob {
        job,
        changed: done.is_some(),
        cancelled_jobs: cancelled,
        stopping_jobs: stopping,
    })
}

fn retry(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let job = job_of(store, call)?;
    call.recorded(store, Subject::Job(job.id)).jobs().retry(job.id)?;
    Answer::json(&JobView::read(store, &store.jobs().get(job.id)?)?)
}

fn signal(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let wanted: Event = call.json()?;
    let event_id = once::key_of(call)?;
    let signal = NewSignal {
        name: wanted.event.clone(),
        key: wanted.key,
        payload: wanted.payload.to_string(),
        event_id: event_id.clone(),
    };
    let sent = (signal.name.clone(), signal.key.clone().unwrap_or_default(), wanted.payload);
    let signalled = call.recorded(store, format!("event {}", wanted.event)).events().signal(signal)?;
    if !signalled.created && !is_event(store, signalled.id, &sent)? {
        return Err(Problem::conflict(
            format!("the id belongs to event {}, which has another name, key or payload", signalled.id),
            "use another id for another event",
        ));
    }
    let status = if signalled.created { StatusCode::CREATED } else { StatusCode::OK };
    let view =
        SignalView { event: wanted.event, event_number: signalled.id, event_id, created: signalled.created };
    Answer::json_with(status, &view)
}

/// Whether the event has this name, key and payload.
fn is_event(
    store: &Store,
    number: i64,
    (name, key, payload): &(String, String, Value),
) -> Result<bool, Problem> {
    let Some(known) = store.events().get(number)? else { return Ok(true) };
    let is_same_payload = serde_json::from_str::<Value>(&known.payload).is_ok_and(|known| known == *payload);
    Ok(known.name == *name && known.key.unwrap_or_default() == *key && is_same_payload)
}
