//! The streams as server-sent events.

use std::collections::BTreeSet;
use std::time::Duration;

use axum::body::{Body, Bytes};
use futures_util::stream::unfold;
use schemars::JsonSchema;
use serde::Serialize;
use windlass_engine::store::Role;

use super::viewers::{NewViewer, News, Opened, Topic};
use crate::answer::Answer;
use crate::call::Call;
use crate::problem::Problem;
use crate::route::{Document, QueryParameter, Route, Streams, ValueSort};

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

pub(crate) const ROUTES: &[Route] = &[Route::stream(
    "/api/v1/stream",
    Role::View,
    changes,
    Document::of::<ChangedView>(
        "Follow what changes, as server-sent events: only the names of what has changed",
    ),
)
.with_query(&[RUN])];

/// The data of an event `changed`.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Changed")]
struct ChangedView {
    /// `runs`, `run 12`, `queues`, `workflows`, `system`, or `everything`, with which each stream begins.
    changed: Vec<String>,
}

fn changes(streams: &Streams, call: &Call) -> Result<Answer, Problem> {
    let Some(shown) = &call.shown else { return Err(Problem::unauthorized("the request names no caller")) };
    let opened = streams.viewers.open(NewViewer {
        caller: shown.clone(),
        expires_at: call.caller.as_ref().and_then(|caller| caller.expires_at),
        run_id: call.query.integer("run"),
    })?;
    if let Some(connection) = call.connection.clone() {
        let viewer = std::sync::Arc::clone(&opened.viewer);
        tokio::spawn(async move {
            viewer.closed().await;
            tokio::time::sleep(END_MAX).await;
            connection.abort();
        });
    }
    let messages = unfold((opened, Some(FIRST.to_owned())), |(opened, first)| async move {
        let message = match first {
            Some(first) => first,
            None => next_message(&opened).await?,
        };
        Some((Ok::<Bytes, std::convert::Infallible>(Bytes::from(message)), (opened, None)))
    });
    Ok(Answer::stream(Body::from_stream(messages)))
}

/// The next message; `None` at the end.
async fn next_message(opened: &Opened) -> Option<String> {
    match tokio::time::timeout(SILENCE_MAX, opened.viewer.news()).await {
        Ok(News::Changed(topics)) => Some(changed(&topics)),
        Ok(News::Closed) => None,
        Err(_silence) => Some(":\n\n".to_owned()),
    }
}

fn changed(topics: &BTreeSet<Topic>) -> String {
    let names = match topics.contains(&Topic::Everything) {
        true => vec![Topic::Everything.name()],
        false => topics.iter().map(|topic| topic.name()).collect(),
    };
    let data = serde_json::to_string(&ChangedView { changed: names }).unwrap_or_default();
    format!("event: changed\ndata: {data}\n\n")
}
