//! What all lists have in common: pages, and filters that are words.

use serde::Serialize;
use windlass_engine::store::{Cursor, Page, ParamFilter};

use crate::answer::Answer;
use crate::call::Call;
use crate::problem::Problem;
use crate::route::{QueryParameter, ValueSort};

/// The most rows of a page.
const LIMIT_MAX: i64 = 1_000;
/// The rows of a page if nothing is said.
const LIMIT: i64 = 100;

pub(super) const fn text(name: &'static str, about: &'static str) -> QueryParameter {
    QueryParameter { name, about, value: ValueSort::Text }
}

pub(super) const fn id(name: &'static str, about: &'static str) -> QueryParameter {
    QueryParameter { name, about, value: ValueSort::Integer { least: 0, most: i64::MAX } }
}

pub(super) const fn instant(name: &'static str, about: &'static str) -> QueryParameter {
    QueryParameter { name, about, value: ValueSort::Instant }
}

pub(super) const LIMIT_PARAMETER: QueryParameter = QueryParameter {
    name: "limit",
    about: "how many rows are listed at most, 100 without it",
    value: ValueSort::Integer { least: 1, most: LIMIT_MAX },
};
pub(super) const OFFSET_PARAMETER: QueryParameter =
    id("offset", "leave out so many rows: the next page of a list");
pub(super) const BEFORE_PARAMETER: QueryParameter =
    id("before", "only rows with lower numbers: the next page of a list");

/// The part of a list that is asked for.
pub(super) fn cursor(call: &Call) -> Cursor {
    Cursor { before: call.query.integer("before"), after: None, limit: limit(call) }
}

pub(super) fn limit(call: &Call) -> i64 {
    call.query.integer("limit").unwrap_or(LIMIT)
}

/// A page as a list, with the address of the next page in `Link`.
pub(super) fn page<T, V: Serialize>(
    call: &Call,
    page: &Page<T>,
    view: impl FnMut(&T) -> windlass_engine::Result<V>,
) -> Result<Answer, Problem> {
    let views = page.rows.iter().map(view).collect::<windlass_engine::Result<Vec<V>>>()?;
    page_of(call, &views, page.next, page.searched_to)
}

/// The rows of a page as a list, with the address of the next page in `Link`. A search that stopped says how far it looked.
pub(super) fn page_of<V: Serialize>(
    call: &Call,
    views: &[V],
    next: Option<i64>,
    searched_to: Option<i64>,
) -> Result<Answer, Problem> {
    let next = next.map(|before| next_address(call, "before", before));
    Ok(Answer::json(&views)?.with_next(next).with_searched_to(searched_to))
}

/// A part of rows that were all read, with the address of the next part in `Link`. Only for rows of definitions, processes and
/// tokens, of which there are as many as people have made, and of one run.
pub(super) fn part_of<T, V: Serialize>(
    call: &Call,
    rows: &[T],
    view: impl FnMut(&T) -> V,
) -> Result<Answer, Problem> {
    let offset = call.query.integer("offset").unwrap_or(0);
    let skipped = usize::try_from(offset).unwrap_or(usize::MAX).min(rows.len());
    let shown: Vec<V> =
        rows[skipped..].iter().take(usize::try_from(limit(call)).unwrap_or(usize::MAX)).map(view).collect();
    let seen = skipped + shown.len();
    let next = (!shown.is_empty() && seen < rows.len()).then(|| next_address(call, "offset", seen as i64));
    Ok(Answer::json(&shown)?.with_next(next))
}

/// The address of this list with another start.
pub(super) fn next_address(call: &Call, name: &str, value: i64) -> String {
    address_with(call, name, &value.to_string())
}

/// The address of this list with another value of a parameter.
pub(super) fn address_with(call: &Call, name: &str, value: &str) -> String {
    let path = call.target.split('?').next().unwrap_or_default();
    format!("{}{path}?{}", call.base_path, call.query.with(name, value))
}

/// The words of a parameter with commas.
pub(super) fn words<T>(
    call: &Call,
    name: &str,
    parse: impl Fn(&str) -> Option<T>,
    known: &str,
) -> Result<Vec<T>, Problem> {
    let word = |word: &str| {
        parse(word).ok_or_else(|| {
            let detail = format!("`{}` is no value of the query parameter `{name}`", word.escape_debug());
            Problem::invalid(detail, format!("it is one or more of {known}, separated by commas"))
        })
    };
    call.query.list(name).into_iter().map(word).collect()
}

/// The parameter `param`, as NAME=VALUE.
pub(super) fn param(call: &Call) -> Result<Option<ParamFilter>, Problem> {
    let Some(text) = call.query.text("param") else { return Ok(None) };
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => {
            Ok(Some(ParamFilter { name: name.to_owned(), value: value.to_owned() }))
        }
        Some(_) | None => {
            Err(Problem::invalid("`param` has no name or no value", "write param=NAME%3DVALUE"))
        }
    }
}
