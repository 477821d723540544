//! The page of one job. A job of a run is shown by the page of the run.

use windlass_engine::store::{Job, Reason, Subject};
use windlass_engine::{Error, Store};

use super::forms::to;
use super::{html, query, reader, wrong_address};
use crate::answer::Answer;
use crate::call::Call;
use crate::pages::run::{RunQuery, read, single};
use crate::problem::Problem;

pub(super) fn one(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let job_id = call.id("job_id")?;
    let wanted = RunQuery::parse_of_job(query(call), job_id).map_err(wrong_address)?;
    let reader = reader(store, call)?;
    let now_ms = reader.times.now_ms;
    let sentence = |reason: &Reason, job: &Job| call.sentences.reason(reason, job, now_ms);
    match read::single(store, job_id, wanted.clone(), &sentence)? {
        Some(data) => html(single::page(&data, &reader)),
        None => Ok(to(call, &path_of(&store.jobs().get(job_id)?, &wanted))),
    }
}

/// The place of a job: in the page of its run, or its own page.
fn path_of(job: &Job, query: &RunQuery) -> String {
    match job.run_id {
        Some(run_id) => {
            let place = query.line.map_or_else(|| "job".to_owned(), |line| format!("L{line}"));
            format!("/runs/{run_id}{}#{place}", query.to_query())
        }
        None => format!("/jobs/{}", job.id),
    }
}

fn to_job(call: &Call, job: &Job) -> Answer {
    to(call, &path_of(job, &RunQuery::default().of_job(job.id)))
}

pub(super) fn cancel(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let job = store.jobs().get(call.id("job_id")?)?;
    // Who presses twice wants it cancelled once.
    if !job.status.is_terminal() && job.cancel_requested_at.is_none() {
        call.recorded(store, Subject::Job(job.id)).jobs().cancel(job.id)?;
    }
    Ok(to_job(call, &job))
}

pub(super) fn retry(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let job = store.jobs().get(call.id("job_id")?)?;
    match call.recorded(store, Subject::Job(job.id)).jobs().retry(job.id) {
        Ok(()) => {}
        // Who presses twice wants it retried once: an unfinished job is retried already.
        Err(Error::Conflict { .. }) if !store.jobs().get(job.id)?.status.is_terminal() => {}
        Err(error) => return Err(error.into()),
    }
    Ok(to_job(call, &job))
}
