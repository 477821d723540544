//! Reads what others do during a run: signals that are sent, and approvals.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json};
use windlass_engine::store::{NewSignal, Verdict};
use windlass_workflow::kinds::approval::Approval as Question;
use windlass_workflow::params::{self, Supplied};
use windlass_workflow::strict::Table;
use windlass_workflow::{Action, check_event_name};

use super::fake::LONGEST_MS;
use super::{Approval, Event, WorkflowJobs, case};

/// Who decides about an approval if the case does not say it.
const SOMEBODY: &str = "somebody";

pub(super) fn take_events(table: &mut Table<'_, '_>) -> Vec<Event> {
    table.tables("events", "an event", take_event).unwrap_or_default().into_iter().flatten().collect()
}

fn take_event(table: &mut Table<'_, '_>) -> Option<Event> {
    let name = table.parsed("event", |name| check_event_name(name).map(|()| name.to_owned()));
    let key = table.text("key");
    let payload = table.value("payload").unwrap_or_default().to_string();
    let event_id = table.text("id");
    let after_ms = take_after_ms(table);
    if name.is_none() {
        table.refuse_key("event", "an event needs the name of an event", "write event = \"NAME\"");
    }
    Some(Event { after_ms, signal: NewSignal { name: name?, key, payload, event_id } })
}

fn take_after_ms(table: &mut Table<'_, '_>) -> i64 {
    table.duration_ms("after", 0..=LONGEST_MS).unwrap_or(0)
}

pub(super) fn take_approvals(
    table: &mut Table<'_, '_>,
    jobs: &WorkflowJobs<'_>,
) -> BTreeMap<String, Approval> {
    let mut approvals = BTreeMap::new();
    table.named("approvals", |mut named| {
        let Some(job) = case::find(&mut named, jobs) else { return };
        let name = named.name().to_owned();
        let Action::Approval(question) = &job.action else {
            named.refuse_name(format!("`{name}` is no approval"), "name a job with `approval`");
            return;
        };
        if let Some(approval) = named.table("an approval", |table| take_approval(table, question)) {
            approvals.insert(name, approval);
        }
    });
    approvals
}

fn take_approval(table: &mut Table<'_, '_>, question: &Question) -> Approval {
    let by = table.text("by").unwrap_or_else(|| SOMEBODY.to_owned());
    let reject = table.text("reject");
    let mut given = Vec::new();
    table.named("fields", |named| {
        given.extend(named.value().map(|value| (named.name().to_owned(), Supplied::Json(value))));
    });
    let after_ms = take_after_ms(table);
    let verdict = match reject {
        Some(reason) if given.is_empty() => Verdict::Reject { by, reason },
        Some(reason) => {
            table.refuse_key("reject", "`reject` and `fields` exclude each other", "remove one of them");
            Verdict::Reject { by, reason }
        }
        None => Verdict::Approve { by, fields: bind(table, question, given) },
    };
    Approval { after_ms, verdict }
}

fn bind(table: &mut Table<'_, '_>, question: &Question, given: Vec<(String, Supplied)>) -> Map<String, Json> {
    params::bind(&question.fields, given).unwrap_or_else(|errors| {
        for error in errors {
            let message = error.to_string().replace("this workflow has no parameters", "it has no fields");
            table.refuse_key("fields", message.replace("parameter", "field"), "see `fields` of the approval");
        }
        Map::new()
    })
}
