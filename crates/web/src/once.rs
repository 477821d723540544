//! The header `Idempotency-Key`: a request that a program sends again, because it got no answer, is made once.
//!
//! The store makes each change of the request once, see `Store::once`. The first answer is kept, and is sent again. Requests that
//! were refused are not kept: they changed nothing, and may be sent again after what was wrong is mended.

use axum::http::StatusCode;
use sha2::{Digest, Sha256};
use windlass_engine::Store;
use windlass_engine::store::{CredentialKind, IDEMPOTENCY_KEY_BYTES_MAX, IdempotencyKey, KeptAnswer};

use crate::answer::Answer;
use crate::call::Call;
use crate::problem::Problem;
use crate::route::{Handler, Idempotency, Route};

const HEADER: &str = "idempotency-key";

/// The key of the header, if it is there.
pub(crate) fn key_of(call: &Call) -> Result<Option<String>, Problem> {
    let mut sent = call.headers.get_all(HEADER).iter();
    let key = match (sent.next(), sent.next()) {
        (None, _) => return Ok(None),
        (Some(key), None) => key.to_str().ok(),
        (Some(_), Some(_)) => None,
    };
    let is_visible = |key: &&str| key.bytes().all(|byte| byte.is_ascii_graphic());
    match key.filter(is_visible) {
        Some(key) if !key.is_empty() && key.len() <= IDEMPOTENCY_KEY_BYTES_MAX => Ok(Some(key.to_owned())),
        Some(_) | None => Err(Problem::invalid(
            "the header Idempotency-Key can't be used",
            format!("send it once, with 1 to {IDEMPOTENCY_KEY_BYTES_MAX} visible ASCII characters"),
        )),
    }
}

/// Calls the handler, or sends the answer again that the same request with the same key got.
pub(crate) fn answer(route: Route, handler: Handler, store: &Store, call: &Call) -> Result<Answer, Problem> {
    let key = match route.idempotency {
        Idempotency::NoKey | Idempotency::Own(_) => None,
        Idempotency::Kept => key_of(call)?,
    };
    let Some(key) = key else { return handler(store, call) };
    let key = IdempotencyKey { caller: owner(call), key, request: hash(route, call) };
    if let Some(kept) = store.access().kept_answer(&key)? {
        return again(kept);
    }
    let answered = handler(&store.once(key.clone()), call)?;
    let Some(body) = answered.text_of_body() else {
        return Err(Problem::defect("an answer that is kept is no text"));
    };
    let wanted = KeptAnswer { status: answered.status.as_u16(), body: body.to_owned() };
    again(store.access().keep_answer(&key, &wanted)?)
}

fn again(kept: KeptAnswer) -> Result<Answer, Problem> {
    let status = StatusCode::from_u16(kept.status)
        .map_err(|_error| Problem::defect("an answer was kept with an unknown status"))?;
    Ok(Answer::kept_json(status, kept.body))
}

/// Whose key it is. A name may belong to another token later, a number never does.
fn owner(call: &Call) -> String {
    let kind = match call.shown {
        Some((CredentialKind::Token, _)) => "token",
        Some((CredentialKind::Session, _)) => "session",
        None => "nobody",
    };
    let id = call.caller.as_ref().map_or(0, |caller| caller.credential_id);
    format!("{kind} {id}")
}

/// What makes a request the same: its method, its address and its body.
fn hash(route: Route, call: &Call) -> String {
    let mut hasher = Sha256::new();
    hasher.update(route.method.as_str());
    hasher.update(" ");
    hasher.update(&call.target);
    hasher.update("\n");
    hasher.update(&call.body);
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
