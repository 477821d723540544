//! The routes of the pages. Each reads what its page shows, and hands it to a function of [`crate::pages`].

mod access;
mod approvals;
mod definitions;
mod forms;
mod jobs;
mod schedules;

use serde_json::{Map, Value};
use windlass_engine::Store;
use windlass_engine::store::{
    Job, JobOrder, JobPart, JobWindow, LogLine, LogPosition, Reason, Role, WINDOW_MAX,
};

use crate::answer::Answer;
use crate::call::{Call, cookie_of};
use crate::pages::batch::{self, Batch};
use crate::pages::run::RunQuery;
use crate::pages::runs::read::LastVisit;
use crate::pages::runs::{Filter, with_instants};
use crate::pages::start::{self, Filled, Start};
use crate::pages::times::Times;
use crate::pages::{
    self, Badges, Reader, Rights, SignedIn, choose, queues, run, runs, system, url, workflows,
};
use crate::problem::Problem;
use crate::route::Route;

/// So many lines of output, and about so many bytes, are sent as a file at most. The last line of a file that is cut says
/// so.
const LINES_SENT_MAX: usize = 200_000;
const BYTES_SENT_MAX: usize = 32 * 1024 * 1024;
const LINES_OF_READ: i64 = 1_000;
const QUEUES_OF_PAGE: i64 = 100;

pub(crate) const ROUTES: &[Route] = &[
    Route::page("/", Role::View, first),
    Route::page("/runs", Role::View, list),
    Route::page("/runs/batch", Role::Run, preview),
    Route::page("/runs/{run_id}", Role::View, one),
    Route::page("/runs/{run_id}/again", Role::Run, again),
    Route::page("/runs/{run_id}/definition", Role::View, definitions::of_run),
    Route::page("/runs/{run_id}/retry-from", Role::Run, retry_from),
    Route::page("/approvals", Role::View, approvals::list),
    Route::page("/jobs/{job_id}", Role::View, jobs::one),
    Route::page("/jobs/{job_id}/log.txt", Role::View, log_text),
    Route::page("/workflows", Role::View, all_workflows),
    Route::page("/workflows/{workflow}", Role::View, one_workflow),
    Route::page("/workflows/{workflow}/start", Role::Run, start_form),
    Route::page("/workflows/{workflow}/versions/{version}", Role::View, definitions::version),
    Route::page("/queues", Role::View, all_queues),
    Route::page("/system", Role::View, show_system),
    Route::page("/system/tokens", Role::Admin, access::tokens),
    Route::page("/system/audit", Role::Admin, access::audit),
    Route::page("/zone", Role::View, zone),
    Route::page("/find", Role::View, find),
    Route::form("/runs/seen", Role::View, forms::mark_seen),
    Route::form("/zone", Role::View, forms::set_zone),
    Route::form("/runs/batch", Role::Run, forms::apply_batch),
    Route::form("/jobs/retry", Role::Run, forms::retry_jobs),
    Route::form("/runs/{run_id}/cancel", Role::Run, forms::cancel),
    Route::form("/runs/{run_id}/retry", Role::Run, forms::retry),
    Route::form("/runs/{run_id}/retry-from", Role::Run, forms::retry_from),
    Route::form("/runs/{run_id}/again", Role::Run, forms::again),
    Route::form("/workflows/{workflow}/start", Role::Run, forms::start),
    Route::form("/jobs/{job_id}/cancel", Role::Run, jobs::cancel),
    Route::form("/jobs/{job_id}/retry", Role::Run, jobs::retry),
    Route::form("/jobs/{job_id}/approve", Role::Run, approvals::decide),
    Route::form("/schedules/{schedule_id}/pause", Role::Edit, schedules::pause),
    Route::form("/schedules/{schedule_id}/resume", Role::Edit, schedules::resume),
    Route::form("/schedules/{schedule_id}/trigger", Role::Run, schedules::trigger),
    Route::form("/system/tokens", Role::Admin, access::add_token),
    Route::form("/system/tokens/revoke", Role::Admin, access::revoke_token),
    Route::form("/queues/{queue}/pause", Role::Edit, forms::pause_queue),
    Route::form("/queues/{queue}/resume", Role::Edit, forms::resume_queue),
    Route::form("/queues/{queue}/limit", Role::Edit, forms::limit_queue),
];

/// Who reads the page, and from where.
fn reader(store: &Store, call: &Call) -> Result<Reader, Problem> {
    let zone = cookie(call, "zone").unwrap_or_default();
    let rights = match call.caller.as_ref().map(|caller| caller.role) {
        None | Some(Role::Metrics | Role::View) => Rights::View,
        Some(Role::Run) => Rights::Run,
        Some(Role::Edit) => Rights::Edit,
        Some(Role::Admin) => Rights::Admin,
    };
    Ok(Reader {
        base: call.base_path.clone(),
        times: Times { zone: Times::zone(&zone), now_ms: store.clock().now_ms() },
        rights,
        form_token: call.form_token.clone().unwrap_or_default(),
        signed_in: call
            .form_token
            .as_ref()
            .and(call.caller.as_ref())
            .map(|caller| SignedIn { name: caller.name.clone(), role: caller.role.as_str() }),
        badges: Badges {
            approvals: store.jobs().count_open_approvals()?.number,
            paused_queues: store.queues().paused()?.len(),
        },
    })
}

/// The value of a cookie that the pages have set, decoded.
fn cookie(call: &Call, name: &str) -> Option<String> {
    url::decode(&cookie_of(&call.headers, name)?).ok()
}

/// Writes lines of output as the page of a run has them, for the reader's zone.
pub(crate) fn line_in_html(call: &Call) -> impl Fn(&LogLine) -> String + Send + use<> {
    let times = Times { zone: Times::zone(&cookie(call, "zone").unwrap_or_default()), now_ms: 0 };
    move |line| run::line_html(line, &times)
}

/// The query of the address, without its question mark.
fn query(call: &Call) -> &str {
    call.target.split_once('?').map_or("", |(_, query)| query)
}

/// A page that could not be written is a defect.
fn html(page: askama::Result<String>) -> Result<Answer, Problem> {
    page.map(Answer::html).map_err(|error| Problem::defect(format!("a page: {error}")))
}

fn wrong_address(detail: String) -> Problem {
    Problem::invalid(detail, "go back to the page before, or change the address")
}

/// The first page is the list of runs.
fn first(_store: &Store, call: &Call) -> Result<Answer, Problem> {
    Ok(Answer::see_other(format!("{}/runs", call.base_path)))
}

fn list(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let reader = reader(store, call)?;
    if let Some(query) = with_instants(query(call), &reader.times).map_err(wrong_address)? {
        return Ok(Answer::see_other(format!("{}/runs{query}", call.base_path)));
    }
    let filter = Filter::parse(query(call)).map_err(wrong_address)?;
    let visit = LastVisit(cookie(call, "seen").and_then(|at| at.parse().ok()));
    let findings = call.sentences.attention(store)?;
    let data = runs::read::read(store, filter, visit, findings, &call.picture, &reader.times)?;
    html(runs::page(&data, &reader))
}

fn preview(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let pairs = url::pairs(query(call)).map_err(wrong_address)?;
    let wanted = Batch::of_pairs(pairs).map_err(wrong_address)?;
    let found = batch::read::runs(store, &wanted)?;
    html(batch::preview(&wanted, &found, &reader(store, call)?))
}

fn one(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let reader = reader(store, call)?;
    let wanted = RunQuery::parse(query(call)).map_err(wrong_address)?;
    let now_ms = reader.times.now_ms;
    let sentence = |reason: &Reason, job: &Job| call.sentences.reason(reason, job, now_ms);
    let data = run::read::read(store, call.id("run_id")?, wanted, &sentence)?;
    html(run::page(&data, &reader))
}

fn again(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let run = store.runs().get(call.id("run_id")?)?;
    let workflow = store.runs().workflow(run.id)?;
    let params: Map<String, Value> = serde_json::from_str(&run.params).unwrap_or_default();
    let start = Start::Again { run_id: run.id, workflow: run.workflow, params: params.clone() };
    let filled = Filled { values: &params, errors: &[], key: &forms::new_key()? };
    html(start::page(&start, &workflow.params, &filled, &reader(store, call)?))
}

fn retry_from(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let run = store.runs().get(call.id("run_id")?)?;
    let window = JobWindow {
        statuses: vec![],
        name: None,
        part: JobPart::WithoutItems,
        order: JobOrder::Attention,
        offset: 0,
        limit: WINDOW_MAX,
    };
    let jobs = store.jobs().window(run.id, &window)?.rows;
    html(choose::retry_from(&run, &jobs, &reader(store, call)?))
}

/// The output of an attempt as a file of text.
fn log_text(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let job = store.jobs().get(call.id("job_id")?)?;
    let pairs = url::pairs(query(call)).map_err(wrong_address)?;
    let attempt = match pairs.as_slice() {
        [] => job.attempt,
        [(name, value)] if name == "attempt" => {
            value.parse().map_err(|_| wrong_address(format!("`{value}` is no number of an attempt.")))?
        }
        _ => return Err(wrong_address("This address takes attempt, and nothing else.".to_owned())),
    };
    let (mut text, mut lines, mut line) = (String::new(), 0, 0);
    let mut is_whole = false;
    while !is_whole && lines < LINES_SENT_MAX && text.len() < BYTES_SENT_MAX {
        let read = store.logs().after(LogPosition { job_id: job.id, attempt, line }, LINES_OF_READ)?;
        let own = read.iter().filter(|line| line.attempt == attempt);
        let before = lines;
        for read in own {
            text.push_str(&read.text);
            text.push('\n');
            line = read.line;
            lines += 1;
        }
        is_whole = lines == before || (read.len() as i64) < LINES_OF_READ;
    }
    let next = LogPosition { job_id: job.id, attempt, line };
    if !is_whole && store.logs().after(next, 1)?.iter().any(|line| line.attempt == attempt) {
        text.push_str(&format!(
            "[windlass] This file ends after {lines} lines. `windlass logs j{} --attempt {attempt}` writes all of them.\n",
            job.id
        ));
    }
    Ok(Answer::text(text))
}

fn all_workflows(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let pairs = url::pairs(query(call)).map_err(wrong_address)?;
    let after = match pairs.as_slice() {
        [] => None,
        [(name, value)] if name == "after" => Some(value.as_str()),
        _ => return Err(wrong_address("This address takes after, and nothing else.".to_owned())),
    };
    html(workflows::list(&workflows::read::list(store, after)?, &reader(store, call)?))
}

fn one_workflow(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let data = workflows::read::one(store, call.part("workflow"))?;
    html(workflows::page(&data, &reader(store, call)?))
}

fn start_form(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let (name, workflow) = forms::registered(store, call)?;
    let filled = Filled { values: &Map::new(), errors: &[], key: &forms::new_key()? };
    html(start::page(&Start::Workflow(name), &workflow.params, &filled, &reader(store, call)?))
}

fn all_queues(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let pairs = url::pairs(query(call)).map_err(wrong_address)?;
    let after = match pairs.as_slice() {
        [] => None,
        [(name, value)] if name == "after" => Some(value.as_str()),
        _ => return Err(wrong_address("This address takes after, and nothing else.".to_owned())),
    };
    let page = store.queues().page(after, QUEUES_OF_PAGE)?;
    let first = page.rows.first().map_or("", |queue| queue.name.as_str());
    let oldest = store.queues().oldest_jobs_from(first)?;
    let data = queues::QueuesData {
        queues: page.rows,
        next: page.next,
        is_first: after.is_none(),
        oldest,
        keys: store.queues().waiting_keys()?,
    };
    html(queues::page(&data, &reader(store, call)?))
}

fn show_system(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let health = call.sentences.health()?;
    html(system::page(&health, &store.workers().live()?, &reader(store, call)?))
}

fn zone(store: &Store, call: &Call) -> Result<Answer, Problem> {
    html(choose::zone(&reader(store, call)?))
}

/// Goes to the run, the job, the key or the workflow that a text names.
fn find(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let pairs = url::pairs(query(call)).map_err(wrong_address)?;
    let text = pairs.iter().find(|(name, _)| name == "q").map_or("", |(_, text)| text.trim());
    if text.is_empty() {
        return Ok(Answer::see_other(format!("{}/runs", call.base_path)));
    }
    let path = pages::runs::read::find(store, text)?;
    Ok(Answer::see_other(format!("{}{path}", call.base_path)))
}
