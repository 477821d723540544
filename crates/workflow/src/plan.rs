//! What is known of a run before it starts: the order of its jobs, the conditions that params alone decide, and the numbers of
//! items. Pure.

use serde_json::{Map, Value as Json, json};

use crate::expression::{Expression, Lookup, Segment};
use crate::graph::Graph;
use crate::model::{Job, When, Workflow};
use crate::template::variables_read;

/// A job of a run that has not started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedJob {
    /// Its index in [`Workflow::jobs`].
    pub index: usize,
    /// Whether it will be executed.
    pub forecast: Forecast,
    /// How many items it has.
    pub items: Items,
}

/// Whether a job will be executed, as far as that is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Forecast {
    /// Yes, if the jobs that it needs end as it wants.
    Runs,
    /// Its condition reads something that only the run knows.
    Undecided,
    /// No, and this is why.
    Skipped(String),
    /// Its condition has no value, and this is why.
    Fails(String),
}

/// How many items a job has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Items {
    /// It is one job.
    None,
    /// So many.
    Count(usize),
    /// Its list comes from a job of the run, or reads variables.
    Unknown,
    /// Its list has no value, and this is why.
    Fails(String),
}

/// The jobs of a run with these params, in an order in which they can be executed; the handlers come last.
#[must_use]
pub fn plan(workflow: &Workflow, params: &Map<String, Json>) -> Vec<PlannedJob> {
    let values = json!({ "params": params, "run": { "workflow": workflow.name } });
    let mut order = Graph::new(workflow).order();
    order.sort_by_key(|index| workflow.jobs[*index].handler.map_or(0, crate::RunHandler::phase));
    let mut forecasts: Vec<Forecast> = vec![Forecast::Undecided; workflow.jobs.len()];
    let mut planned = Vec::with_capacity(order.len());
    for index in order {
        let job = &workflow.jobs[index];
        let forecast = forecast(workflow, job, &forecasts, &values);
        forecasts[index] = forecast.clone();
        planned.push(PlannedJob { index, forecast, items: items(job, &values) });
    }
    planned
}

fn forecast(workflow: &Workflow, job: &Job, forecasts: &[Forecast], values: &Json) -> Forecast {
    let is_broken = |needed: &usize| {
        matches!(forecasts[*needed], Forecast::Fails(_)) && !workflow.jobs[*needed].allow_failure
    };
    let is_skipped = |needed: &usize| matches!(forecasts[*needed], Forecast::Skipped(_));
    let is_out = |needed: &&usize| is_broken(needed) || is_skipped(needed);
    let all_are = |is: &dyn Fn(&usize) -> bool| !job.needs.is_empty() && job.needs.iter().all(is);
    let cannot_hold = match job.when {
        When::AllSuccessful => true,
        When::NoneFailed | When::AnySuccessful => all_are(&is_skipped) || job.needs.iter().any(is_broken),
        When::AnyFailed => all_are(&is_skipped),
        When::AllFinished => false,
    };
    if let (true, Some(needed)) = (cannot_hold, job.needs.iter().find(is_out)) {
        return Forecast::Skipped(format!("it needs `{}`", workflow.jobs[*needed].name));
    }
    let Some(condition) = &job.condition else { return Forecast::Runs };
    if !is_known(condition) {
        return Forecast::Undecided;
    }
    match condition.holds(values) {
        Ok(true) => Forecast::Runs,
        Ok(false) => Forecast::Skipped(format!("`if` is false: {}", condition.text())),
        Err(error) => Forecast::Fails(error.to_string()),
    }
}

fn items(job: &Job, values: &Json) -> Items {
    let Some(for_each) = &job.for_each else { return Items::None };
    if let Some(count) = for_each.written_count() {
        return Items::Count(count);
    }
    let reads_variables = |text: &&str| !variables_read(text).is_empty();
    if for_each.expression().is_some_and(|expression| !is_known(expression))
        || for_each.texts().iter().any(reads_variables)
    {
        return Items::Unknown;
    }
    match for_each.items(values) {
        Ok(items) => Items::Count(items.len()),
        Err(reason) => Items::Fails(reason),
    }
}

/// Whether an expression reads nothing but params and the name of the workflow.
fn is_known(expression: &Expression) -> bool {
    expression.lookups().iter().all(|Lookup { path, .. }| match path.as_slice() {
        [Segment::Name(root), ..] if root == "params" => true,
        [Segment::Name(root), Segment::Name(field), ..] => root == "run" && field == "workflow",
        [] | [Segment::Name(_) | Segment::Index(_) | Segment::Computed, ..] => false,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::{Source, parse};

    fn planned(jobs: &str) -> Vec<(String, Forecast, Items)> {
        let text = format!(
            "name = 'w'\n[params]\nmode = {{ default = 'delta' }}\nof = {{ type = 'list', default = ['a', 'b'] }}\n{jobs}"
        );
        let workflow = parse(&Source::new("w.toml", text.into()).unwrap()).unwrap();
        let params = crate::params::bind(&workflow.params, Vec::new()).unwrap();
        let jobs = plan(&workflow, &params).into_iter();
        jobs.map(|job| (workflow.jobs[job.index].name.clone(), job.forecast, job.items)).collect()
    }

    #[test]
    fn conditions_on_params_are_decided_and_skip_what_needs_the_job() {
        let skipped = |why: &str| Forecast::Skipped(why.to_owned());
        let found = planned(
            "[finally.end]\nrun = 'x'\n\
             [jobs.after]\nneeds = ['full']\nrun = 'x'\n\
             [jobs.full]\nneeds = ['first']\nif = \"params.mode == 'full'\"\nrun = 'x'\n\
             [jobs.first]\nif = \"run.workflow == 'w'\"\nrun = 'x'\n\
             [jobs.either]\nneeds = ['first', 'full']\nwhen = 'none_failed'\nrun = 'x'\n\
             [jobs.neither]\nneeds = ['after', 'full']\nwhen = 'any_failed'\nrun = 'x'\n\
             [jobs.always]\nneeds = ['full']\nwhen = 'all_finished'\nif = \"jobs.full.status == 'SKIPPED'\"\nrun = 'x'\n\
             [jobs.when-run]\nif = \"run.id > 3\"\nrun = 'x'\n",
        );
        let of = |name: &str| found.iter().find(|(job, ..)| job == name).unwrap().1.clone();
        assert_eq!(of("first"), Forecast::Runs);
        assert_eq!(of("full"), skipped("`if` is false: params.mode == 'full'"));
        assert_eq!(of("after"), skipped("it needs `full`"));
        assert_eq!(of("either"), Forecast::Runs);
        assert_eq!(of("neither"), skipped("it needs `after`"));
        assert_eq!((of("always"), of("when-run")), (Forecast::Undecided, Forecast::Undecided));
        let place = |name: &str| found.iter().position(|(job, ..)| job == name).unwrap();
        assert!(place("first") < place("full") && place("full") < place("after"));
        assert_eq!(place("end"), found.len() - 1);
    }

    #[test]
    fn items_are_counted_where_no_job_is_read() {
        let found = planned(
            "[jobs.list]\nrun = 'x'\noutput = 'json'\n\
             [jobs.written]\nfor_each = ['a', '{{ params.mode }}', 'c']\nrun = 'x'\n\
             [jobs.given]\nfor_each = 'params.of'\nrun = 'x'\n\
             [jobs.matrix]\nfor_each = { matrix = { a = [1, 2], b = [3, 4] }, exclude = [{ a = 1, b = 3 }] }\nrun = 'x'\n\
             [jobs.found]\nneeds = ['list']\nfor_each = 'jobs.list.output'\nrun = 'x'\n",
        );
        let of = |name: &str| found.iter().find(|(job, ..)| job == name).unwrap().2.clone();
        assert_eq!([of("list"), of("written"), of("given")], [Items::None, Items::Count(3), Items::Count(2)]);
        assert_eq!([of("matrix"), of("found")], [Items::Count(3), Items::Unknown]);
    }
}
