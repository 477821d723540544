//! The routes of the pages. Each reads views and hands them to a function of [`crate::pages`].

use windlass_engine::Store;
use windlass_engine::store::Role;

use crate::answer::Answer;
use crate::call::Call;
use crate::problem::Problem;
use crate::route::Route;

pub(crate) const ROUTES: &[Route] = &[Route::page("/", Role::View, first)];

/// The first page is the list of runs.
fn first(_store: &Store, call: &Call) -> Result<Answer, Problem> {
    Ok(Answer::see_other(format!("{}/runs", call.base_path)))
}
