//! Definitions of runs and of workflows, and what differs between two of them.

use windlass_engine::Store;

use super::{html, query, reader, wrong_address};
use crate::answer::Answer;
use crate::call::Call;
use crate::pages::definition::{self, read};
use crate::pages::url;
use crate::problem::Problem;

/// The numbers of the query, by their names.
fn numbers<const N: usize>(call: &Call, names: [&str; N]) -> Result<[Option<i64>; N], Problem> {
    let mut numbers = [None; N];
    for (name, value) in url::pairs(query(call)).map_err(wrong_address)? {
        let Some(place) = names.iter().position(|known| *known == name) else {
            return Err(wrong_address(format!(
                "`{name}` is unknown here. The address takes {}.",
                names.join(", ")
            )));
        };
        let number = value.parse().map_err(|_| wrong_address(format!("`{value}` is no number.")))?;
        numbers[place] = Some(number);
    }
    Ok(numbers)
}

pub(super) fn of_run(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let [number, other] = numbers(call, ["number", "from"])?;
    let data = read::of_run(store, call.id("run_id")?, number, other)?;
    html(definition::page(data, &reader(store, call)?))
}

pub(super) fn version(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let [other] = numbers(call, ["from"])?;
    let data = read::version(store, call.part("workflow"), call.id("version")?, other)?;
    html(definition::page(data, &reader(store, call)?))
}
