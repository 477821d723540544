//! Notifications: as people list them, and as messages.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value as Json, json};
use windlass_engine::store::{ClaimedNotification, MessageDetails, Notification, NotificationEvent};

use crate::time::{Instant, instant, rfc3339};

/// How much of the error of a job a message has, in characters.
const ERROR_CHARS: usize = 300;

/// The targets of notifications, and what they were told.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Notify")]
pub struct NotifyView {
    /// The targets of this configuration and of the tables.
    pub targets: Vec<TargetView>,
    /// A page of notifications, the newest first.
    pub notifications: Vec<NotificationView>,
}

/// A target of notifications.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Target")]
pub struct TargetView {
    /// Its name.
    pub target: String,
    /// How it is reached, `url`, `command` or `traces`; null if this configuration does not have it.
    pub means: Option<&'static str>,
    /// Which events it wants, as far as this configuration says.
    pub on: Vec<&'static str>,
    /// Only runs and schedules of these workflows; empty for all.
    pub workflows: Vec<String>,
    /// Only runs and schedules of workflows with one of these tags; empty for all.
    pub tags: Vec<String>,
    /// A service has it, so it is told.
    pub active: bool,
    /// How many notifications it has not got yet, up to 1,000.
    pub pending: i64,
}

/// What came back from a target that was tried.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "TriedTarget")]
pub struct TriedTarget {
    /// Its name.
    pub target: String,
    /// It has taken the message.
    pub delivered: bool,
    /// A status, an exit code, or why it did not get the message.
    pub answer: String,
    /// How long that took.
    pub duration_ms: i64,
}

/// What a target is told.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Notification")]
pub struct NotificationView {
    /// Its number.
    notification_id: i64,
    /// The target.
    target: String,
    /// What happened.
    event: &'static str,
    /// The run that ended.
    run_id: Option<i64>,
    /// The schedule that was late.
    schedule_id: Option<i64>,
    /// The worker that died.
    worker_id: Option<i64>,
    /// The name of the workflow, of the schedule, or of the worker's host.
    subject: String,
    /// When the run ended, the schedule was due, or the worker was found dead.
    happened_at: Instant,
    /// `PENDING`, `DELIVERED` or `FAILED`.
    status: &'static str,
    /// How often its delivery was begun.
    attempt: i64,
    /// When it is delivered next, if it is pending.
    next_at: Option<Instant>,
    /// Why the last delivery failed.
    last_error: Option<String>,
    /// When it was delivered or given up.
    finished_at: Option<Instant>,
}

impl NotificationView {
    /// The view of a notification.
    #[must_use]
    pub fn new(note: &Notification) -> NotificationView {
        let [run_id, schedule_id, worker_id] = ids(note.event, note.subject_id);
        NotificationView {
            notification_id: note.id,
            target: note.target.clone(),
            event: note.event.as_str(),
            run_id,
            schedule_id,
            worker_id,
            subject: note.subject.clone(),
            happened_at: Instant::at(note.happened_at),
            status: note.status.as_str(),
            attempt: note.attempt,
            next_at: instant(note.finished_at.is_none().then_some(note.next_at)),
            last_error: note.last_error.clone(),
            finished_at: instant(note.finished_at),
        }
    }
}

/// The id of the subject as that of a run, a schedule or a worker.
fn ids(event: NotificationEvent, subject_id: i64) -> [Option<i64>; 3] {
    match event {
        NotificationEvent::RunFailed | NotificationEvent::RunCancelled | NotificationEvent::RunSuccessful => {
            [Some(subject_id), None, None]
        }
        NotificationEvent::ScheduleLate => [None, Some(subject_id), None],
        NotificationEvent::WorkerDead => [None, None, Some(subject_id)],
    }
}

/// The message about a notification: one line for people, and the whole as JSON.
#[must_use]
pub fn message_of(note: &ClaimedNotification, details: &MessageDetails) -> (String, Json) {
    let (id, subject) = (note.subject_id, &note.subject);
    let (text, data) = match details {
        MessageDetails::Run(run) => {
            let status = run_status(note.event);
            let mut text = format!("run {id} of workflow {subject} {status}");
            let mut data =
                json!({ "run_id": id, "workflow": subject, "finished_at": rfc3339(note.happened_at) });
            if let Some(run) = run {
                if run.timed_out {
                    text.push_str(": it reached its timeout");
                }
                let failed: Vec<Json> = run
                    .failed_jobs
                    .iter()
                    .map(|(job, error)| json!({ "job": job, "error": error.as_deref().map(shortened) }))
                    .collect();
                if let Some((job, error)) = run.failed_jobs.first() {
                    let error =
                        error.as_deref().map_or_else(String::new, |error| format!(" ({})", shortened(error)));
                    text.push_str(&format!(": job {job} failed{error}"));
                }
                data["timed_out"] = run.timed_out.into();
                data["created_at"] = rfc3339(run.created_at).into();
                data["started_at"] = run.started_at.map(rfc3339).into();
                data["total_jobs"] = run.total_jobs.into();
                data["failed_jobs"] = failed.into();
            }
            (text, data)
        }
        MessageDetails::Schedule(late) => {
            let minutes = late.late_ms / 60_000;
            let due = rfc3339(note.happened_at);
            (
                format!("schedule {subject} was due at {due}, and was not decided for {minutes} minutes"),
                json!({ "schedule_id": id, "schedule": subject, "due_at": due, "late_ms": late.late_ms }),
            )
        }
        MessageDetails::Worker(worker) => (
            format!("worker {id} on {subject} is dead; other workers execute its jobs again"),
            json!({
                "worker_id": id,
                "host": subject,
                "pid": worker.as_ref().map(|worker| worker.pid),
                "started_at": worker.as_ref().map(|worker| rfc3339(worker.started_at)),
            }),
        ),
    };
    let message = json!({
        "type": note.event.as_str(),
        "timestamp": rfc3339(note.happened_at),
        "id": note.message_id(),
        "text": text,
        "data": data,
    });
    (text, message)
}

fn run_status(event: NotificationEvent) -> &'static str {
    match event {
        NotificationEvent::RunSuccessful => "was successful",
        NotificationEvent::RunCancelled => "was cancelled",
        NotificationEvent::RunFailed | NotificationEvent::ScheduleLate | NotificationEvent::WorkerDead => {
            "failed"
        }
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(ERROR_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
