//! Whether the process lives and can work, for load balancers and service managers.

use windlass_engine::Store;

use crate::answer::Answer;
use crate::call::Call;
use crate::problem::Problem;
use crate::route::{Allowed, Client, Idempotency, Method, QueryRule, Route, Work};

pub(crate) const ROUTES: &[Route] = &[
    route("/healthz", "it says nothing but that the process answers", Work::AtOnce(lives)),
    route("/readyz", "it says nothing but that the database answers", Work::Read(is_ready)),
];

const fn route(path: &'static str, because: &'static str, work: Work) -> Route {
    Route {
        method: Method::Get,
        path,
        allowed: Allowed::Everybody { because },
        client: Client::Program,
        work,
        query: QueryRule::Known(&[]),
        body_max: 0,
        idempotency: Idempotency::NoKey,
        document: None,
    }
}

fn lives(_call: &Call) -> Result<Answer, Problem> {
    Ok(Answer::text("ok\n".to_owned()).never_cached())
}

fn is_ready(store: &Store, _call: &Call) -> Result<Answer, Problem> {
    store.instance()?;
    Ok(Answer::text("ok\n".to_owned()).never_cached())
}
