//! The forms of schedules.

use windlass_engine::Store;
use windlass_engine::store::{Schedule, Subject};

use super::forms::{key_of_form, to, to_run};
use crate::answer::Answer;
use crate::call::Call;
use crate::pages::url;
use crate::problem::Problem;

/// The schedule of the address, and the store that records its changes.
fn schedule(store: &Store, call: &Call) -> Result<(Schedule, Store), Problem> {
    let schedule = store.schedules().get(call.id("schedule_id")?)?;
    let recorded = call.recorded(store, Subject::Schedule { id: schedule.id, key: schedule.key() });
    Ok((schedule, recorded))
}

fn to_workflow(call: &Call, schedule: &Schedule) -> Answer {
    to(call, &format!("/workflows/{}", url::encode(&schedule.workflow)))
}

pub(super) fn pause(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let (schedule, recorded) = schedule(store, call)?;
    recorded.schedules().pause(schedule.id)?;
    Ok(to_workflow(call, &schedule))
}

pub(super) fn resume(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let (schedule, recorded) = schedule(store, call)?;
    recorded.schedules().resume(schedule.id)?;
    Ok(to_workflow(call, &schedule))
}

pub(super) fn trigger(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let (schedule, recorded) = schedule(store, call)?;
    // The page names the newest run that it knew. Sent again from the same page, it is the same run.
    let (form, session) = (call.form()?, call.form_token.as_deref().unwrap_or_default());
    let key = form.text("after").map(|after| key_of_form(&format!("{session} {} {after}", schedule.id)));
    let submitted = recorded.schedules().fire_with_key(schedule.id, key)?;
    Ok(to_run(call, submitted.run_id))
}
