//! Jobs, their attempts and their output.

use windlass_engine::store::{Job, JobFilter, LogPosition, Reason, Role, TimeRange};
use windlass_engine::{JobStatus, Store};
use windlass_views::{AttemptView, InspectedJob, JobView, LogView, WhyView, names_of_needed_jobs};

use super::lists::{self, BEFORE_PARAMETER, LIMIT_PARAMETER, id, instant, text};
use crate::answer::Answer;
use crate::call::Call;
use crate::problem::Problem;
use crate::route::{Document, QueryParameter, Route};

const STATUS: &str = "BLOCKED, SCHEDULED, PENDING, RUNNING, WAITING, SUCCESSFUL, FAILED, SKIPPED, CANCELLED";

const FILTERS: &[QueryParameter] = &[
    text("status", "only jobs in these states, separated by commas"),
    text("queue", "only jobs of this queue"),
    text("kind", "only jobs of this kind"),
    text("name", "only jobs with this name in their run"),
    text("workflow", "only jobs of runs of this workflow"),
    text("param", "only jobs of runs with this value of a parameter, as NAME=VALUE"),
    text("error", "only jobs with this text in their last error"),
    instant("since", "only jobs that were accepted then or later"),
    instant("until", "only jobs that were accepted before"),
    BEFORE_PARAMETER,
    LIMIT_PARAMETER,
];

pub(crate) const ROUTES: &[Route] = &[
    Route::read("/api/v1/jobs", Role::View, list, Document::of::<Vec<JobView>>("List jobs, newest first"))
        .with_query(FILTERS),
    Route::read(
        "/api/v1/jobs/{job_id}",
        Role::View,
        show,
        Document::of::<InspectedJob>("Show a job with its input and the attempts that did not succeed"),
    ),
    Route::read(
        "/api/v1/jobs/{job_id}/attempts",
        Role::View,
        attempts,
        Document::of::<Vec<AttemptView>>(
            "List the attempts that did not succeed, and those that a retry has replaced",
        ),
    ),
    Route::read(
        "/api/v1/jobs/{job_id}/logs",
        Role::View,
        logs,
        Document::of::<Vec<LogView>>("List lines of the output of a job, in order"),
    )
    .with_query(&[
        id("attempt", "only lines of this attempt and of later ones"),
        id("after", "with `attempt`: only lines of the attempt with higher numbers"),
        LIMIT_PARAMETER,
    ]),
    Route::read(
        "/api/v1/jobs/{job_id}/why",
        Role::View,
        why,
        Document::of::<WhyView>("Explain why a job does not run, or why it ended as it did"),
    ),
];

fn list(store: &Store, call: &Call) -> Result<Answer, Problem> {
    list_jobs(store, call, None)
}

/// Lists jobs, of one run or of all.
pub(super) fn list_jobs(store: &Store, call: &Call, run_id: Option<i64>) -> Result<Answer, Problem> {
    let given = |name: &str| call.query.text(name).map(str::to_owned);
    let filter = JobFilter {
        statuses: lists::words(call, "status", JobStatus::parse, STATUS)?,
        queue: given("queue"),
        kind: given("kind"),
        run_id,
        name: given("name"),
        created: TimeRange {
            from_ms: call.query.instant_ms("since"),
            until_ms: call.query.instant_ms("until"),
        },
        workflow: given("workflow"),
        params: lists::param(call)?.into_iter().collect(),
        error: given("error"),
        cursor: lists::cursor(call),
    };
    let page = store.jobs().list_full(&filter)?;
    lists::page_of(call, &JobView::read_all(store, &page.rows)?, page.next, page.searched_to)
}

pub(super) fn job_of(store: &Store, call: &Call) -> Result<Job, Problem> {
    Ok(store.jobs().get(call.id("job_id")?)?)
}

fn show(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let mut job = job_of(store, call)?;
    store.jobs().collect_outputs(std::slice::from_mut(&mut job))?;
    let needs = names_of_needed_jobs(store, &job)?;
    let rounds = store.jobs().rounds(job.id)?;
    let attempts = store.jobs().attempts(job.id)?;
    Answer::json(&InspectedJob::new(&job, needs, rounds.as_ref(), &attempts))
}

fn attempts(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let job = job_of(store, call)?;
    let attempts = store.jobs().attempts(job.id)?;
    let views: Vec<AttemptView> = attempts.iter().map(AttemptView::new).collect();
    Answer::json(&views)
}

fn logs(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let job = job_of(store, call)?;
    let attempt = call.query.integer("attempt");
    let line = call.query.integer("after").unwrap_or(0);
    if line > 0 && attempt.is_none() {
        return Err(Problem::invalid("`after` is a line of an attempt", "send `attempt` too"));
    }
    let position = LogPosition { job_id: job.id, attempt: attempt.unwrap_or(0), line };
    let limit = lists::limit(call);
    let lines = store.logs().after(position, limit)?;
    let is_full = i64::try_from(lines.len()).is_ok_and(|count| count == limit);
    let last = lines.last().filter(|_| is_full).map(|line| (line.attempt, line.line));
    let next = last.map(|(attempt, line)| {
        let path = call.target.split('?').next().unwrap_or_default();
        format!("{}{path}?attempt={attempt}&after={line}&limit={limit}", call.base_path)
    });
    let view = |line| LogView::new(job.run_id, job.name.as_deref(), line);
    let views: Vec<LogView> = lines.into_iter().map(view).collect();
    Ok(Answer::json(&views)?.with_next(next))
}

fn why(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let now_ms = store.clock().now_ms();
    let sentence = |reason: &Reason, job: &Job| call.sentences.reason(reason, job, now_ms);
    let (_job, view) = WhyView::read(store, call.id("job_id")?, &sentence)?;
    Answer::json(&view)
}
