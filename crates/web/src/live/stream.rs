//! The streams as server-sent events.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use futures_util::stream::unfold;
use schemars::JsonSchema;
use serde::Serialize;
use windlass_engine::Store;
use windlass_engine::store::{LogLine, LogPosition, Role};
use windlass_views::LogView;

use super::follow::{Follower, Format, Next, id_of, position};
use super::viewers::{NewViewer, News, Opened, Topic};
use crate::answer::Answer;
use crate::call::Call;
use crate::page_routes::line_in_html;
use crate::problem::Problem;
use crate::route::{Document, Prepared, QueryParameter, Route, Streams, ValueSort};

/// A comment is sent after such a silence, so that nobody on the way ends the connection.
const SILENCE_MAX: Duration = Duration::from_secs(15);
/// How long a client may take to read the end of a stream. Then its connection is cut.
const END_MAX: Duration = Duration::from_secs(1);
/// How long a browser waits before it opens the stream again.
const FIRST: &str = "retry: 2000\n\n";

const RUN: QueryParameter = QueryParameter {
    name: "run",
    about: "the number of a run whose changes are told too",
    value: ValueSort::Integer { least: 0, most: i64::MAX },
};
const JOB: QueryParameter = QueryParameter {
    name: "job",
    about: "the number of a job whose output is told too",
    value: ValueSort::Integer { least: 0, most: i64::MAX },
};
const AFTER: QueryParameter = QueryParameter {
    name: "after",
    about: "only lines after this one, as ATTEMPT.LINE; `Last-Event-ID` says the same",
    value: ValueSort::Text,
};

pub(crate) const ROUTES: &[Route] = &[
    Route::stream(
        "/api/v1/stream",
        Role::View,
        None,
        changes,
        Some(Document::of::<ChangedView>(
            "Follow what changes, as server-sent events: only the names of what has changed",
        )),
    )
    .with_query(&[RUN]),
    Route::stream(
        "/api/v1/jobs/{job_id}/logs/stream",
        Role::View,
        Some(prepare_output),
        output,
        Some(Document::of::<LogView>("Follow the output of a job, as server-sent events: one for each line")),
    )
    .with_query(&[AFTER]),
    Route::stream("/live", Role::View, None, page, None).with_query(&[RUN, JOB, AFTER]),
];

/// The data of an event `changed`.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Changed")]
struct ChangedView {
    /// `runs`, `run 12`, `queues`, `workflows`, `system`, or `everything`, with which each stream begins.
    changed: Vec<String>,
}

/// The data of an event `line` for a page.
#[derive(Serialize)]
struct LineOfPage {
    attempt: i64,
    line: i64,
    html: String,
}

/// Which parts of the news a stream tells.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Told {
    Changes,
    /// The stream ends with the job.
    Output,
    Both,
}

fn changes(streams: &Streams, call: &Call, _prepared: Prepared) -> Result<Answer, Problem> {
    let opened = open(streams, call, call.query.integer("run"), None)?;
    Ok(answer(opened, None, Told::Changes))
}

/// What a page shows: its changes, and the output of one job as it is written in the page.
fn page(streams: &Streams, call: &Call, _prepared: Prepared) -> Result<Answer, Problem> {
    let job_id = call.query.integer("job");
    let opened = open(streams, call, call.query.integer("run"), job_id)?;
    let follower = match job_id {
        None => None,
        Some(job_id) => {
            let in_html = line_in_html(call);
            let format = move |line: LogLine| {
                let (id, attempt, number) = (id_of(&line), line.attempt, line.line);
                message("line", Some(&id), &LineOfPage { attempt, line: number, html: in_html(&line) })
            };
            Some(follower(streams, after(call, job_id)?, Box::new(format)))
        }
    };
    Ok(answer(opened, follower, Told::Both))
}

/// Finds the job. A client that has all lines of a job that is over is told not to come back.
fn prepare_output(store: &Store, call: &Call) -> Result<Prepared, Problem> {
    let job = store.jobs().get(call.id("job_id")?)?;
    let position = after(call, job.id)?;
    let is_back = call.header("last-event-id").is_some();
    if is_back && job.status.is_terminal() && store.logs().after(position, 1)?.is_empty() {
        return Ok(Prepared::Finished);
    }
    Ok(Prepared::Job(Box::new(job)))
}

fn output(streams: &Streams, call: &Call, prepared: Prepared) -> Result<Answer, Problem> {
    let job = match prepared {
        Prepared::Job(job) => job,
        Prepared::Finished | Prepared::Nothing => {
            return Ok(Answer::text(String::new()).with_status(StatusCode::NO_CONTENT).never_cached());
        }
    };
    let opened = open(streams, call, None, Some(job.id))?;
    let (run_id, name, is_over) = (job.run_id, job.name.clone(), job.status.is_terminal());
    let format = move |line: LogLine| {
        let id = id_of(&line);
        message("line", Some(&id), &LogView::new(run_id, name.as_deref(), line))
    };
    let follower = follower(streams, after(call, job.id)?, Box::new(format)).with_end(is_over);
    Ok(answer(opened, Some(follower), Told::Output))
}

fn follower(streams: &Streams, position: LogPosition, format: Format) -> Follower {
    Follower::new(Arc::clone(&streams.threads), position, format)
}

/// After which line the client goes on. What it saw last counts more than the address, which is that of its first request.
fn after(call: &Call, job_id: i64) -> Result<LogPosition, Problem> {
    let Some(id) = call.header("last-event-id").or(call.query.text("after")) else {
        return Ok(LogPosition { job_id, attempt: 0, line: 0 });
    };
    position(job_id, id).ok_or_else(|| {
        Problem::invalid(format!("`{}` names no line", id.escape_debug()), "write ATTEMPT.LINE, such as 1.20")
    })
}

fn open(streams: &Streams, call: &Call, run_id: Option<i64>, job_id: Option<i64>) -> Result<Opened, Problem> {
    let (Some(caller), Some(known)) = (call.shown.clone(), &call.caller) else {
        return Err(Problem::unauthorized("the request names no caller"));
    };
    let (name, expires_at) = (known.name.clone(), known.expires_at);
    let opened = streams.viewers.open(NewViewer { caller, name, expires_at, run_id, job_id })?;
    if let Some(connection) = call.connection.clone() {
        let viewer = Arc::clone(&opened.viewer);
        tokio::spawn(async move {
            viewer.closed().await;
            tokio::time::sleep(END_MAX).await;
            connection.abort();
        });
    }
    Ok(opened)
}

/// A stream that is being sent.
struct Sending {
    opened: Opened,
    follower: Option<Follower>,
    told: Told,
    is_first: bool,
    is_ended: bool,
}

fn answer(opened: Opened, follower: Option<Follower>, told: Told) -> Answer {
    let sending = Sending { opened, follower, told, is_first: true, is_ended: false };
    Answer::stream(Body::from_stream(unfold(sending, |mut sending| async move {
        let message = sending.next().await?;
        Some((Ok::<Bytes, std::convert::Infallible>(Bytes::from(message)), sending))
    })))
}

impl Sending {
    /// The next messages; `None` at the end.
    async fn next(&mut self) -> Option<String> {
        if std::mem::take(&mut self.is_first) {
            return Some(FIRST.to_owned());
        }
        if self.is_ended {
            return None;
        }
        loop {
            if let Some(follower) = &mut self.follower {
                match follower.next(&self.opened.viewer).await {
                    Next::Lines(messages) => return Some(messages),
                    Next::Wait => {}
                    Next::End if self.told == Told::Output => {
                        self.is_ended = true;
                        return Some("event: end\ndata: {}\n\n".to_owned());
                    }
                    Next::End => self.follower = None,
                }
            }
            match tokio::time::timeout(SILENCE_MAX, self.opened.viewer.news()).await {
                Ok(News::Told(untold)) => {
                    let mut messages = String::new();
                    if self.told != Told::Output && !untold.topics.is_empty() {
                        messages.push_str(&changed(&untold.topics));
                    }
                    let lines = self.follower.as_mut().and_then(|follower| follower.take(untold.output));
                    messages.push_str(&lines.unwrap_or_default());
                    if !messages.is_empty() {
                        return Some(messages);
                    }
                }
                Ok(News::Closed) => return None,
                Err(_silence) => return Some(":\n\n".to_owned()),
            }
        }
    }
}

fn changed(topics: &BTreeSet<Topic>) -> String {
    let names = match topics.contains(&Topic::Everything) {
        true => vec![Topic::Everything.name()],
        false => topics.iter().map(|topic| topic.name()).collect(),
    };
    message("changed", None, &ChangedView { changed: names })
}

/// An event. JSON has no line breaks, which would end its data.
fn message(event: &str, id: Option<&str>, data: &impl Serialize) -> String {
    let id = id.map_or_else(String::new, |id| format!("id: {id}\n"));
    let data = serde_json::to_string(data).unwrap_or_default();
    format!("{id}event: {event}\ndata: {data}\n\n")
}
