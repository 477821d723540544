//! The forms of the pages. Each changes something and sends the browser to a page that shows it.

use axum::http::StatusCode;
use serde_json::{Map, Value};
use windlass_engine::store::{
    DefinitionVerb, FailureGroup, NewRun, Order, QueueLimits, RetrySelection, Secret, Setting, Subject,
    secret_hash,
};
use windlass_engine::{Error, Store};
use windlass_views::parse_rate;
use windlass_workflow::Workflow;
use windlass_workflow::params::{self, Param, ParamError, Supplied};

use super::{html, reader, wrong_address};
use crate::answer::Answer;
use crate::call::Call;
use crate::pages::batch::{self, Batch, BatchResult};
use crate::pages::fields::{FORM_KEY, VALUE_BYTES_MAX, supplied};
use crate::pages::start::{self, Start};
use crate::pages::times::Times;
use crate::pages::url;
use crate::problem::Problem;

/// The length of the key of a form.
const KEY_CHARS: usize = 32;
/// How long a browser keeps what the reader has chosen: a year.
const CHOICE_S: i64 = 365 * 24 * 3_600;

pub(super) fn to(call: &Call, path: &str) -> Answer {
    Answer::see_other(format!("{}{path}", call.base_path))
}

pub(super) fn to_run(call: &Call, run_id: i64) -> Answer {
    to(call, &format!("/runs/{run_id}"))
}

/// Failures up to an instant are known to the reader.
pub(super) fn mark_seen(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let at_ms = call.form()?.integer("at").unwrap_or_else(|| store.clock().now_ms());
    Ok(to(call, "/runs").with_cookie(call.new_cookie("seen", &at_ms.to_string(), CHOICE_S)))
}

/// The reader chooses a zone.
pub(super) fn set_zone(_store: &Store, call: &Call) -> Result<Answer, Problem> {
    let form = call.form()?;
    let zone = Times::zone(form.text("zone").unwrap_or_default());
    Ok(to(call, "/runs").with_cookie(call.new_cookie("zone", &url::encode(zone.name()), CHOICE_S)))
}

pub(super) fn apply_batch(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let wanted = Batch::of_pairs(call.form()?.pairs).map_err(wrong_address)?;
    let (ids, next) = batch::read::step(store, &wanted)?;
    let recorded = |run_id: i64| call.recorded(store, Subject::Run(run_id));
    let result = batch::read::apply(recorded, wanted.action, &ids)?;
    let result = BatchResult { next, ..result };
    html(batch::result(&wanted, result, &reader(store, call)?)).map(Answer::never_cached)
}

/// The jobs without a run of a group of failures are retried, each in a transaction of its own.
pub(super) fn retry_jobs(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let form = call.form()?;
    let Some(since_ms) = form.integer("since") else {
        return Err(wrong_address("The instant since when they failed is missing.".to_owned()));
    };
    let text = |name: &str| form.text(name).unwrap_or_default();
    let groups = store.runs().failures_since(since_ms)?.groups;
    let of_kind = |group: &&FailureGroup| group.job == text("kind") && group.error == text("error");
    let found = groups.iter().filter(|group| !group.job_ids.is_empty()).find(of_kind);
    for job_id in found.map_or(&[][..], |group| group.job_ids.as_slice()) {
        match call.recorded(store, Subject::Job(*job_id)).jobs().retry(*job_id) {
            // Somebody else was faster, or an unfinished job has its unique key.
            Ok(()) | Err(Error::Conflict { .. } | Error::NotFound { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(to(call, "/runs"))
}

pub(super) fn cancel(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let run = store.runs().get(call.id("run_id")?)?;
    // Who presses twice wants it cancelled once.
    if !run.status.is_terminal() && run.stop_reason.is_none() {
        call.recorded(store, Subject::Run(run.id)).runs().cancel(run.id)?;
    }
    Ok(to_run(call, run.id))
}

pub(super) fn retry(store: &Store, call: &Call) -> Result<Answer, Problem> {
    retry_jobs_of(store, call, RetrySelection::Failed)
}

pub(super) fn retry_from(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let form = call.form()?;
    let Some(job) = form.text("job") else {
        return Err(wrong_address("No job is chosen.".to_owned()));
    };
    retry_jobs_of(store, call, RetrySelection::From(job.to_owned()))
}

fn retry_jobs_of(store: &Store, call: &Call, selection: RetrySelection) -> Result<Answer, Problem> {
    let run_id = call.id("run_id")?;
    match call.recorded(store, Subject::Run(run_id)).runs().retry(run_id, selection) {
        Ok(_jobs) => {}
        // Who presses twice wants it retried once: an unfinished run is retried already.
        Err(Error::Conflict { .. }) if !store.runs().get(run_id)?.status.is_terminal() => {}
        Err(error) => return Err(error.into()),
    }
    Ok(to_run(call, run_id))
}

/// The registered workflow of the address.
pub(super) fn registered(store: &Store, call: &Call) -> Result<(String, Workflow), Problem> {
    let name = call.part("workflow");
    let Some((_registration, workflow)) = store.registrations().workflow(name)? else {
        return Err(Error::not_found(format!("the workflow {name}")).into());
    };
    Ok((name.to_owned(), workflow))
}

pub(super) fn start(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let name = call.part("workflow");
    let Some((registration, workflow)) = store.registrations().workflow(name)? else {
        return Err(Error::not_found(format!("the workflow {name}")).into());
    };
    let sent = sent(call)?;
    let start = Start::Workflow(name.to_owned());
    let params = match bound_to_start(store, call, &start, &workflow.params, &sent)? {
        Ok(params) => params,
        Err(page) => return Ok(page),
    };
    let run_key = run_key(call, &params)?;
    let run = NewRun { workflow, params, dir: registration.dir, run_key, occasion: None };
    let submitted = call.recorded(store, format!("workflow {name}")).runs().submit(run)?;
    Ok(to_run(call, submitted.run_id))
}

pub(super) fn again(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let before = store.runs().get(call.id("run_id")?)?;
    let workflow = store.runs().workflow(before.id)?;
    let sent = sent(call)?;
    let kept: Map<String, Value> = serde_json::from_str(&before.params).unwrap_or_default();
    let start = Start::Again { run_id: before.id, workflow: before.workflow, params: kept };
    let params = match bound_to_start(store, call, &start, &workflow.params, &sent)? {
        Ok(params) => params,
        Err(page) => return Ok(page),
    };
    let run_key = run_key(call, &params)?;
    let run = NewRun { workflow, params, dir: before.dir, run_key, occasion: None };
    let file = store.runs().definitions(before.id)?.pop().and_then(|last| last.file);
    let file = file.map(|file| (DefinitionVerb::Rerun, file));
    let submitted = call.recorded(store, format!("run {}", before.id)).runs().submit_from(run, file)?;
    Ok(to_run(call, submitted.run_id))
}

/// A key for a form that starts a run.
pub(super) fn new_key() -> Result<String, Problem> {
    let secret = Secret::generate().map_err(|error| Problem::defect(format!("no random bytes: {error}")))?;
    Ok(secret.hash()[..KEY_CHARS].to_owned())
}

/// The key of the run that a form starts: the same form with the same values starts it once, however often it is sent.
fn run_key(call: &Call, params: &Map<String, Value>) -> Result<Option<String>, Problem> {
    let form = call.form()?;
    let Some(key) = form.text("form_key") else { return Ok(None) };
    if key.len() != KEY_CHARS || !key.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(wrong_address("The key of the form is wrong.".to_owned()));
    }
    let values = Value::from(params.clone()).to_string();
    Ok(Some(key_of_form(&format!("{key} {values}"))))
}

/// The key of a run that is started by a form, which `text` identifies.
pub(super) fn key_of_form(text: &str) -> String {
    format!("{FORM_KEY}{}", &secret_hash(text)[..KEY_CHARS])
}

/// The values of params that a form sent.
pub(super) fn sent(call: &Call) -> Result<Vec<(String, String)>, Problem> {
    let sent = supplied(&call.form()?.pairs);
    match sent.iter().find(|(_, value)| value.len() > VALUE_BYTES_MAX) {
        Some((name, _)) => {
            Err(wrong_address(format!("The value of `{name}` is longer than {VALUE_BYTES_MAX} bytes.")))
        }
        None => Ok(sent),
    }
}

pub(super) fn bound(
    params: &[Param],
    sent: &[(String, String)],
) -> Result<Map<String, Value>, Vec<ParamError>> {
    let given = sent.iter().map(|(name, value)| (name.clone(), Supplied::Text(value.clone())));
    params::bind(params, given.collect())
}

/// What is wrong, each with the name of its field.
pub(super) fn by_field(errors: &[ParamError]) -> Vec<(Option<String>, String)> {
    let name = |error: &ParamError| match error {
        ParamError::Missing { name, .. }
        | ParamError::Invalid { name, .. }
        | ParamError::Repeated { name } => Some(name.clone()),
        ParamError::Unknown { .. } => None,
    };
    errors.iter().map(|error| (name(error), error.to_string())).collect()
}

/// The values for a run, or the form again: if something is wrong with it, or if only its command is asked for.
fn bound_to_start(
    store: &Store,
    call: &Call,
    start: &Start,
    params: &[Param],
    sent: &[(String, String)],
) -> Result<Result<Map<String, Value>, Answer>, Problem> {
    let form = call.form()?;
    let is_shown_only = form.text("show").is_some();
    let (values, errors) = match bound(params, sent) {
        Ok(params) if !is_shown_only => return Ok(Ok(params)),
        Ok(params) => (params, Vec::new()),
        Err(errors) => {
            let texts = sent.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str())));
            (texts.collect(), by_field(&errors))
        }
    };
    let key = form.text("form_key").unwrap_or_default();
    let filled = start::Filled { values: &values, errors: &errors, key };
    let page = html(start::page(start, params, &filled, &reader(store, call)?))?.never_cached();
    let status = if is_shown_only { StatusCode::OK } else { StatusCode::BAD_REQUEST };
    Ok(Err(page.with_status(status)))
}

pub(super) fn pause_queue(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let name = crate::rest::name_of_queue(call)?;
    call.recorded(store, Subject::Queue(name.to_owned())).queues().pause(name)?;
    Ok(to(call, "/queues"))
}

pub(super) fn resume_queue(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let name = crate::rest::name_of_queue(call)?;
    call.recorded(store, Subject::Queue(name.to_owned())).queues().resume(name)?;
    Ok(to(call, "/queues"))
}

/// An empty field means no limit.
pub(super) fn limit_queue(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let name = crate::rest::name_of_queue(call)?;
    let form = call.form()?;
    // What the form does not have is kept.
    let field =
        |name: &str| form.pairs.iter().find(|(known, _)| known == name).map(|(_, value)| value.trim());
    let limits = QueueLimits {
        max_running: match field("max_running") {
            None => Setting::Keep,
            Some("") => Setting::Clear,
            Some(text) => match text.parse() {
                Ok(max) => Setting::Set(max),
                Err(_no_number) => return Err(wrong_address(format!("`{text}` is no number of jobs."))),
            },
        },
        rate: match field("rate") {
            None => Setting::Keep,
            Some("") => Setting::Clear,
            Some(text) => Setting::Set(
                parse_rate(text).map_err(|wrong| wrong_address(format!("`{text}` is no rate: {wrong}.")))?,
            ),
        },
        order: match field("order") {
            None => Setting::Keep,
            Some("priority") => Setting::Clear,
            Some("arrival") => Setting::Set(Order::Arrival),
            Some(text) => return Err(wrong_address(format!("`{text}` is no order of jobs."))),
        },
    };
    call.recorded(store, Subject::Queue(name.to_owned())).queues().limit(name, limits)?;
    Ok(to(call, "/queues"))
}
