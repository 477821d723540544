//! Who may enter, and what was changed by whom.

use windlass_engine::Store;
use windlass_engine::store::Role;
use windlass_views::{AuditView, TokenView};

use super::lists::{self, BEFORE_PARAMETER, LIMIT_PARAMETER};
use crate::answer::Answer;
use crate::call::Call;
use crate::problem::Problem;
use crate::route::{Document, Route};

pub(crate) const ROUTES: &[Route] = &[
    Route::read(
        "/api/v1/tokens",
        Role::Admin,
        tokens,
        Document::of::<Vec<TokenView>>("List the tokens, without their secrets"),
    ),
    Route::read(
        "/api/v1/audit",
        Role::Admin,
        audit,
        Document::of::<Vec<AuditView>>("List what was changed by whom, newest first"),
    )
    .with_query(&[BEFORE_PARAMETER, LIMIT_PARAMETER]),
];

fn tokens(store: &Store, _call: &Call) -> Result<Answer, Problem> {
    let views: Vec<TokenView> = store.access().tokens()?.iter().map(TokenView::new).collect();
    Answer::json(&views)
}

fn audit(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let page = store.access().audit(lists::cursor(call))?;
    lists::page(call, &page, |entry| Ok(AuditView::new(entry)))
}
