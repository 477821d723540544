//! `POST /hooks/{hook}`: makes an event of a message. Triggers and waits of the workflow files do the rest.

use axum::http::StatusCode;
use windlass_engine::Store;
use windlass_engine::store::{Change, NewSignal};
use windlass_workflow::limits;

use super::Hook;
use super::message::{Checked, check, check_for_nobody, payload};
use crate::answer::Answer;
use crate::call::Call;
use crate::problem::Problem;
use crate::route::{Allowed, Client, Idempotency, Method, QueryRule, Route, Work};

pub(crate) const ROUTES: &[Route] = &[Route {
    method: Method::Post,
    path: "/hooks/{hook}",
    allowed: Allowed::WithSecret { because: "each message is signed" },
    client: Client::Program,
    work: Work::CheckedWrite { check: check_message, write: receive },
    query: QueryRule::Known(&[]),
    body_max: limits::EVENT_PAYLOAD_BYTES,
    idempotency: Idempotency::NoKey,
    document: None,
}];

/// Checks a message on a thread that reads, so that unsigned ones begin no write. A body has at most 64 KiB, four threads check
/// at a time, and 64 messages wait for them.
fn check_message(store: &Store, call: &Call) -> Result<(), Problem> {
    signed(store, call).map(drop)
}

/// The hook of a message, and the id of the message, if it is signed.
fn signed<'c>(store: &Store, call: &'c Call) -> Result<(&'c Hook, String), Problem> {
    call.check_json_type()?;
    let now_ms = store.clock().now_ms();
    let name = call.part("hook");
    let Some(hook) = call.hooks.iter().find(|hook| hook.name == name) else {
        check_for_nobody(call, now_ms);
        return Err(Problem::not_found(
            "there is no hook with this name",
            "use the name of a [hooks.NAME] of windlass.toml",
        ));
    };
    match check(hook, call, now_ms) {
        Checked::Signed { id } => Ok((hook, id)),
        Checked::Late => Err(Problem::unsigned(
            "the message was sent more than five minutes from now",
            "set the clocks of both machines, or send it again with the present time",
        )),
        Checked::Unsigned => Err(Problem::unsigned(
            "no signature of the message fits",
            "sign it with the secret of this hook; docs/guide/webhooks.md says how",
        )),
    }
}

/// Inserts the event, unless a message with the same id has done so. The answer is the same.
fn receive(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let (hook, id) = signed(store, call)?;
    let done = || Ok(Answer::text(String::new()).with_status(StatusCode::NO_CONTENT).never_cached());
    // A repeat leaves no line in the audit.
    if is_known(store, hook, &id)? {
        return done();
    }
    let payload = payload(hook, call)?;
    if payload.len() > limits::EVENT_PAYLOAD_BYTES {
        return Err(Problem::too_large(limits::EVENT_PAYLOAD_BYTES));
    }
    let signal = NewSignal { name: hook.event.clone(), key: None, payload, event_id: Some(id.clone()) };
    let recorded = store.recorded(Change {
        caller: format!("hook {}", hook.name),
        address: Some(call.address.to_string()),
        subject: format!("event {}", hook.event).into(),
        traceparent: None,
    });
    let signalled = recorded.events().signal(signal)?;
    // Another message with the id may have been faster.
    if !signalled.created {
        is_known(store, hook, &id)?;
    }
    done()
}

/// Whether the event of the message exists. An event of another name with the id is somebody else's: to take the message for its
/// repetition would lose it.
fn is_known(store: &Store, hook: &Hook, id: &str) -> Result<bool, Problem> {
    match store.events().name_of(id)? {
        None => Ok(false),
        Some(name) if name == hook.event => Ok(true),
        Some(_other) => Err(Problem::conflict(
            "an event of another name has the id of this message",
            "send it with an id that no other sender uses",
        )),
    }
}
