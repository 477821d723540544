//! What waits for a person, and the forms that decide.

use axum::http::StatusCode;
use serde_json::Value;
use windlass_engine::store::{OpenApproval, Subject, Verdict};
use windlass_engine::{Error, Store};
use windlass_workflow::params::ParamError;

use super::forms::{bound, by_field, sent, to};
use super::{html, query, reader, wrong_address};
use crate::answer::Answer;
use crate::call::Call;
use crate::pages::approvals::{self, REASON_CHARS_MAX, Sent};
use crate::pages::url;
use crate::problem::Problem;

pub(super) fn list(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let pairs = url::pairs(query(call)).map_err(wrong_address)?;
    let after = match pairs.as_slice() {
        [] => None,
        [(name, value)] if name == "after" => {
            let id = value.parse().map_err(|_| wrong_address(format!("`{value}` is no number of a job.")))?;
            Some(id)
        }
        _ => return Err(wrong_address("This address takes after, and nothing else.".to_owned())),
    };
    html(approvals::page(&approvals::read::read(store, after)?, &reader(store, call)?))
}

/// A person approves or rejects.
pub(super) fn decide(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let job = store.jobs().get(call.id("job_id")?)?;
    let Some(open) = store.jobs().open_approval(job.id)? else {
        let reason = format!("it is {}, and does not wait for a person", job.status);
        return Err(Error::conflict(format!("decide about job {}", job.label()), reason).into());
    };
    let verdict = match verdict(call, &open)? {
        Ok(verdict) => verdict,
        Err(wrong) => {
            let answer = html(approvals::again(&open, &wrong, &reader(store, call)?))?;
            return Ok(answer.with_status(StatusCode::BAD_REQUEST).never_cached());
        }
    };
    call.recorded(store, Subject::Job(job.id)).jobs().decide_approval(job.id, verdict)?;
    Ok(match (call.form()?.text("to"), job.run_id) {
        (Some("approvals"), _) => to(call, "/approvals"),
        (_, None) => to(call, &format!("/jobs/{}", job.id)),
        (_, Some(run_id)) => to(call, &format!("/runs/{run_id}?job={}#job", job.id)),
    })
}

/// What the form says, or what is wrong with it.
fn verdict(call: &Call, open: &OpenApproval) -> Result<Result<Verdict, Sent>, Problem> {
    let form = call.form()?;
    let by = call.caller_name();
    match form.text("verdict") {
        Some("approve") => {
            let declared = open.approval.as_ref().map_or(&[][..], |approval| approval.fields.as_slice());
            let sent = sent(call)?;
            Ok(bound(declared, &sent)
                .map(|fields| Verdict::Approve { by, fields })
                .map_err(|errors| sent_again(&sent, &errors)))
        }
        Some("reject") => Ok(reason(form.text("comment").unwrap_or_default())
            .map(|reason| Verdict::Reject { by, reason })
            .map_err(|error| Sent { reason_error: Some(error), ..Sent::default() })),
        Some(_) | None => Err(wrong_address("The verdict is missing.".to_owned())),
    }
}

fn sent_again(sent: &[(String, String)], errors: &[ParamError]) -> Sent {
    let errors = by_field(errors).into_iter().map(|(name, error)| {
        let error = error.replace("this workflow has no parameters", "it has no fields");
        (name, error.replace("parameter", "field"))
    });
    let values = sent.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str())));
    Sent { values: values.collect(), errors: errors.collect(), reason_error: None }
}

/// The reason of a rejection.
fn reason(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("say why: the job fails with this reason".to_owned()),
        text if text.chars().count() > REASON_CHARS_MAX => {
            Err(format!("the reason may have {REASON_CHARS_MAX} characters"))
        }
        text => Ok(text.to_owned()),
    }
}
