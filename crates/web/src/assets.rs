//! Sends the files of the pages.

use crate::answer::Answer;
use crate::call::Call;
use crate::pages::assets::find;
use crate::problem::Problem;
use crate::route::{Allowed, Client, Idempotency, Method, QueryRule, Route, Work};

pub(crate) const ROUTES: &[Route] = &[Route {
    method: Method::Get,
    path: "/assets/{name}",
    allowed: Allowed::Everybody { because: "the login needs them, and they are the same for everybody" },
    client: Client::Program,
    work: Work::AtOnce(send),
    query: QueryRule::Known(&[]),
    body_max: 0,
    idempotency: Idempotency::NoKey,
    document: None,
}];

/// The name must be the whole name of a file of the program, so that no path is made of it.
fn send(call: &Call) -> Result<Answer, Problem> {
    match find(call.part("name")) {
        Some(asset) => Ok(Answer::asset(asset.content_type, asset.bytes)),
        None => Err(Problem::not_found("there is no such file", "reload the page")),
    }
}
