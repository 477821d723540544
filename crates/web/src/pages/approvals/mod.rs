//! What waits for a person: the questions, and the forms that answer them.

pub mod read;

use askama::Template;
use serde_json::{Map, Value as Json};
use windlass_engine::store::OpenApproval;
use windlass_workflow::kinds::wait_for::OnTimeout;

use super::fields::{Field, FieldErrors, FieldSort, fields};
use super::frame::{Frame, Reader, Section};
use super::times::{Stamp, rough_duration};

/// The most approvals of a page.
pub const APPROVALS_OF_PAGE: i64 = 50;
/// The longest reason of a rejection, in characters.
pub const REASON_CHARS_MAX: usize = 1_000;

/// What the page shows.
#[derive(Debug, Default)]
pub struct ApprovalsData {
    /// The approvals of the page.
    pub approvals: Vec<OpenApproval>,
    /// The id of a job after which the next page begins.
    pub next: Option<i64>,
    /// Whether it is the first page.
    pub is_first: bool,
}

/// A form that was sent and could not be used.
#[derive(Debug, Default)]
pub struct Sent {
    /// The values of the fields.
    pub values: Map<String, Json>,
    /// What is wrong with them.
    pub errors: Vec<(Option<String>, String)>,
    /// What is wrong with the reason of a rejection.
    pub reason_error: Option<String>,
}

/// Where a form leads when it was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LeadsTo {
    /// The list of approvals.
    List,
    /// The run.
    Run,
}

/// A question with its forms.
pub(super) struct Decision {
    pub(super) job_id: i64,
    pub(super) run_id: Option<i64>,
    pub(super) workflow: String,
    pub(super) job: String,
    pub(super) prompt: String,
    pub(super) since: Stamp,
    pub(super) waited: String,
    pub(super) ends: Option<(Stamp, &'static str)>,
    pub(super) action: String,
    pub(super) leads_to: &'static str,
    pub(super) fields: Vec<Field>,
    pub(super) error: Option<String>,
    pub(super) reason_error: Option<String>,
}

impl Decision {
    pub(super) fn new(open: &OpenApproval, sent: &Sent, leads_to: LeadsTo, reader: &Reader) -> Decision {
        let declared = open.approval.as_ref().map_or(&[][..], |approval| approval.fields.as_slice());
        let on_timeout = open.approval.as_ref().map(|approval| approval.on_timeout).unwrap_or_default();
        let errors: &FieldErrors = &sent.errors;
        Decision {
            job_id: open.job_id,
            run_id: open.run_id,
            workflow: open.workflow.clone(),
            job: open.job.clone(),
            prompt: open.prompt.clone(),
            since: reader.times.stamp(open.since),
            waited: rough_duration((reader.times.now_ms - open.since).max(0)),
            ends: open.ends_at.map(|at| {
                let then = match on_timeout {
                    OnTimeout::Fail => "then it fails",
                    OnTimeout::Skip => "then it is skipped",
                };
                (reader.times.stamp(at), then)
            }),
            action: format!("{}/jobs/{}/approve", reader.base, open.job_id),
            leads_to: match leads_to {
                LeadsTo::List => "approvals",
                LeadsTo::Run => "run",
            },
            fields: fields(&format!("j{}-", open.job_id), declared, &sent.values, errors),
            error: errors.iter().find(|(name, _)| name.is_none()).map(|(_, error)| error.clone()),
            reason_error: sent.reason_error.clone(),
        }
    }
}

#[derive(Template)]
#[template(path = "approvals.html")]
struct ApprovalsPage {
    frame: Frame,
    is_again: bool,
    decisions: Vec<Decision>,
    first: Option<String>,
    next: Option<String>,
}

/// The approvals that wait, those that wait longest first.
///
/// # Errors
/// As of the template engine, which writes into memory.
pub fn page(data: &ApprovalsData, reader: &Reader) -> askama::Result<String> {
    let mut waiting: Vec<&OpenApproval> = data.approvals.iter().collect();
    waiting.sort_by_key(|open| (open.since, open.job_id));
    let sent = Sent::default();
    let decisions = waiting.iter().map(|open| Decision::new(open, &sent, LeadsTo::List, reader));
    ApprovalsPage {
        frame: Frame::new(reader, Section::Approvals, "Approvals"),
        is_again: false,
        decisions: decisions.collect(),
        first: (!data.is_first).then(|| format!("{}/approvals", reader.base)),
        next: data.next.map(|after| format!("{}/approvals?after={after}", reader.base)),
    }
    .render()
}

/// One approval with what was sent, and what is wrong with it.
///
/// # Errors
/// As of the template engine, which writes into memory.
pub fn again(open: &OpenApproval, sent: &Sent, reader: &Reader) -> askama::Result<String> {
    ApprovalsPage {
        frame: Frame::new(reader, Section::Approvals, "Not decided"),
        is_again: true,
        decisions: vec![Decision::new(open, sent, LeadsTo::List, reader)],
        first: Some(format!("{}/approvals", reader.base)),
        next: None,
    }
    .render()
}
