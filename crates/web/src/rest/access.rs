//! Who may enter, and what was changed by whom.

use windlass_engine::Store;
use windlass_engine::store::{AuditFilter, Role, TimeRange};
use windlass_views::{AuditView, TokenView};

use super::lists::{self, BEFORE_PARAMETER, LIMIT_PARAMETER, OFFSET_PARAMETER, instant};
use crate::answer::Answer;
use crate::call::Call;
use crate::problem::Problem;
use crate::route::{Document, QueryParameter, Route, ValueSort};

pub(crate) const ROUTES: &[Route] = &[
    Route::read(
        "/api/v1/tokens",
        Role::Admin,
        tokens,
        Document::of::<Vec<TokenView>>("List the newest 1,000 tokens, without their secrets"),
    )
    .with_query(&[OFFSET_PARAMETER, LIMIT_PARAMETER]),
    Route::read(
        "/api/v1/audit",
        Role::Admin,
        audit,
        Document::of::<Vec<AuditView>>("List what was changed by whom, newest first"),
    )
    .with_query(&[
        CALLER,
        TEXT,
        instant("since", "only changes that were made then or later"),
        instant("until", "only changes that were made before"),
        BEFORE_PARAMETER,
        LIMIT_PARAMETER,
    ]),
];

const CALLER: QueryParameter = QueryParameter {
    name: "caller",
    about: "only changes by the token or the user of this name",
    value: ValueSort::Text,
};
const TEXT: QueryParameter = QueryParameter {
    name: "text",
    about: "only changes with this text in what was done, or with what",
    value: ValueSort::Text,
};

fn tokens(store: &Store, call: &Call) -> Result<Answer, Problem> {
    lists::part_of(call, &store.access().tokens()?, TokenView::new)
}

fn audit(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let text = |name: &str| call.query.text(name).map(str::to_owned);
    let filter = AuditFilter {
        caller: text("caller"),
        text: text("text"),
        made: TimeRange { from_ms: call.query.instant_ms("since"), until_ms: call.query.instant_ms("until") },
        cursor: lists::cursor(call),
    };
    let page = store.access().audit(&filter)?;
    lists::page(call, &page, |entry| Ok(AuditView::new(entry)))
}
