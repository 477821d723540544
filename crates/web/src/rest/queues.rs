//! Queues.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use windlass_engine::Store;
use windlass_engine::store::{Order, Queue, QueueLimits, Rate, Role, Setting, Subject};
use windlass_views::{ChangedQueue, QueueView};
use windlass_workflow::limits;

use super::lists::{self, LIMIT_PARAMETER, text};
use crate::answer::Answer;
use crate::call::Call;
use crate::problem::Problem;
use crate::route::{Document, Method, Route};

pub(crate) const ROUTES: &[Route] = &[
    Route::read(
        "/api/v1/queues",
        Role::View,
        list,
        Document::of::<Vec<QueueView>>("List the queues that have rules or unfinished jobs, by name"),
    )
    .with_query(&[text("after", "only queues whose names come after this one"), LIMIT_PARAMETER]),
    Route::change(
        Method::Post,
        "/api/v1/queues/{queue}/pause",
        Role::Edit,
        pause,
        Document::of::<ChangedQueue>("Pause a queue: no job of it starts; running jobs are not affected"),
    ),
    Route::change(
        Method::Post,
        "/api/v1/queues/{queue}/resume",
        Role::Edit,
        resume,
        Document::of::<ChangedQueue>("Resume a queue"),
    ),
    Route::change(
        Method::Patch,
        "/api/v1/queues/{queue}",
        Role::Edit,
        limit,
        Document::of::<ChangedQueue>(
            "Change the limits of a queue; a field that is left out is kept, and null removes one",
        )
        .with_body::<NewLimits>(),
    ),
];

fn list(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let page = store.queues().page(call.query.text("after"), lists::limit(call))?;
    let views: Vec<QueueView> = page.rows.iter().map(QueueView::new).collect();
    let next = page.next.map(|after| lists::address_with(call, "after", &after));
    Ok(Answer::json(&views)?.with_next(next))
}

/// The limits of a queue.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewLimits {
    /// How many of its jobs may run at a time, in all processes together.
    #[serde(default, deserialize_with = "given")]
    max_running: Option<Option<i64>>,
    /// How many of its jobs may start within an interval. It comes together with `rate_interval_ms`.
    #[serde(default, deserialize_with = "given")]
    rate_jobs: Option<Option<i64>>,
    /// The length of the interval.
    #[serde(default, deserialize_with = "given")]
    rate_interval_ms: Option<Option<i64>>,
    /// Whether its jobs run one at a time, in order of arrival.
    #[serde(default)]
    fifo: Option<bool>,
}

/// A field that is there, also if it is null.
fn given<'d, T: Deserialize<'d>, D: Deserializer<'d>>(
    deserializer: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

fn setting<T>(given: Option<Option<T>>) -> Setting<T> {
    match given {
        None => Setting::Keep,
        Some(None) => Setting::Clear,
        Some(Some(value)) => Setting::Set(value),
    }
}

fn rate(jobs: Option<Option<i64>>, interval_ms: Option<Option<i64>>) -> Result<Setting<Rate>, Problem> {
    match (jobs, interval_ms) {
        (None, None) => Ok(Setting::Keep),
        (Some(None), Some(None)) => Ok(Setting::Clear),
        (Some(Some(jobs)), Some(Some(interval_ms))) => Ok(Setting::Set(Rate { jobs, interval_ms })),
        (Some(_) | None, Some(_) | None) => Err(Problem::invalid(
            "`rate_jobs` and `rate_interval_ms` belong together",
            "send both, as numbers or as null",
        )),
    }
}

/// The queue of the path, if it has rules or unfinished jobs.
fn queue_of(store: &Store, call: &Call) -> Result<Option<Queue>, Problem> {
    Ok(store.queues().find(call.part("queue"))?)
}

pub(crate) fn name_of(call: &Call) -> Result<&str, Problem> {
    let name = call.part("queue");
    let is_valid = !name.is_empty() && name.trim() == name && name.chars().count() <= limits::NAME_CHARS;
    if is_valid {
        return Ok(name);
    }
    Err(Problem::invalid(
        format!("`{}` can't be the name of a queue", name.escape_debug()),
        format!("a name has 1 to {} characters, and no space at its ends", limits::NAME_CHARS),
    ))
}

fn answer(store: &Store, call: &Call, before: Option<&Queue>) -> Result<Answer, Problem> {
    let Some(queue) = queue_of(store, call)? else {
        return Err(Problem::not_found("the queue has no rules and no unfinished jobs", "check the name"));
    };
    let changed = before.is_none_or(|before| {
        (before.paused_at, before.max_running, before.rate, before.order)
            != (queue.paused_at, queue.max_running, queue.rate, queue.order)
    });
    Answer::json(&ChangedQueue { queue: QueueView::new(&queue), changed })
}

fn pause(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let (name, before) = (name_of(call)?, queue_of(store, call)?);
    call.recorded(store, Subject::Queue(name.to_owned())).queues().pause(name)?;
    answer(store, call, before.as_ref())
}

fn resume(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let (name, before) = (name_of(call)?, queue_of(store, call)?);
    call.recorded(store, Subject::Queue(name.to_owned())).queues().resume(name)?;
    answer(store, call, before.as_ref())
}

fn limit(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let (name, before) = (name_of(call)?, queue_of(store, call)?);
    let new: NewLimits = call.json()?;
    let limits = QueueLimits {
        max_running: setting(new.max_running),
        rate: rate(new.rate_jobs, new.rate_interval_ms)?,
        order: match new.fifo {
            None => Setting::Keep,
            Some(true) => Setting::Set(Order::Arrival),
            Some(false) => Setting::Clear,
        },
    };
    call.recorded(store, Subject::Queue(name.to_owned())).queues().limit(name, limits)?;
    answer(store, call, before.as_ref())
}
