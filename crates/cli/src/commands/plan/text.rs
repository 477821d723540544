//! The plan for people.

use serde_json::Value;
use windlass_views::{PlanView, PlannedJobView, PlannedLimitView, PlannedSecretView};
use windlass_workflow::When;

use super::times::median;
use crate::text::style::{DIM, RED, YELLOW, headline, paint, printable};
use crate::text::table::{Column, Table, stdout_width};
use crate::text::time::duration;
use crate::text::values::{self, counted};

/// The width of a line if it goes to no terminal.
const COLUMNS: usize = 400;
/// The most jobs of the critical path that are shown.
const PATH_SHOWN: usize = 12;

/// The plan as a table, and lines below it.
pub(super) fn plan(view: &PlanView) -> String {
    let width = stdout_width();
    let columns = [
        Column::Left("JOB"),
        Column::Left("KIND"),
        Column::Optional("NEEDS"),
        Column::Right("ITEMS"),
        Column::Right("TIME"),
        Column::Shrinking("NOTE"),
    ];
    let mut table = Table::new(&columns);
    for job in &view.jobs {
        table.row([
            job.job.clone(),
            job.calls.as_ref().map_or_else(|| job.kind.to_owned(), |calls| format!("{} {calls}", job.kind)),
            job.needs.join(", "),
            items(job),
            job.duration_ms.map(duration).unwrap_or_default(),
            note(job),
        ]);
    }
    let mut lines = vec![heading(view)];
    lines.extend(params(view).map(|params| headline(&params, width.unwrap_or(COLUMNS))));
    lines
        .extend(view.concurrency.as_ref().map(|limit| headline(&run_limit(limit), width.unwrap_or(COLUMNS))));
    lines.push(table.render(width).trim_end().to_owned());
    lines.extend(view.secrets.iter().filter_map(secret));
    let mut line = |text: String| lines.push(headline(&text, width.unwrap_or(COLUMNS)));
    if let Some(past) = past(view) {
        line(past);
    }
    if let Some(path) = &view.critical_path {
        let more = if path.jobs.len() > PATH_SHOWN { " → …" } else { "" };
        let shown: Vec<&str> = path.jobs.iter().take(PATH_SHOWN).map(String::as_str).collect();
        let took = duration(path.duration_ms);
        line(format!("critical path, about {took}: {}{more}", shown.join(" → ")));
    }
    lines.join("\n")
}

/// A secret that is not there. The line is not cut, because it says what to do.
fn secret(secret: &PlannedSecretView) -> Option<String> {
    let PlannedSecretView { secret: name, found, reason } = secret;
    match (found, reason) {
        (Some(false), reason) => {
            let reason = printable(reason.as_deref().unwrap_or_default()).into_owned();
            Some(format!("secret {name} is missing: {reason}"))
        }
        (None, _) => Some(format!("secret {name} is given by a program, which was not started")),
        (Some(true), _) => None,
    }
}

fn heading(view: &PlanView) -> String {
    let handlers = view.jobs.iter().filter(|job| job.handler.is_some()).count();
    let jobs = counted((view.jobs.len() - handlers) as i64, "job", "jobs");
    match handlers as i64 {
        0 => format!("{}: {jobs}", view.workflow),
        handlers => format!("{}: {jobs}, {}", view.workflow, counted(handlers, "handler", "handlers")),
    }
}

fn params(view: &PlanView) -> Option<String> {
    let params = values::params(&Value::Object(view.params.clone()).to_string());
    (!params.is_empty()).then(|| format!("params: {params}"))
}

/// As in `at most 1 active run with the key etl; one more is skipped`.
fn run_limit(PlannedLimitView { key, limit, on_full }: &PlannedLimitView) -> String {
    let key = key.as_deref().map(|key| format!(" with the key {}", printable(key))).unwrap_or_default();
    let next = match *on_full {
        "skip" => "is skipped",
        "cancel_oldest" => "cancels the oldest",
        _wait => "waits",
    };
    format!("at most {}{key}; one more {next}", counted(*limit, "active run", "active runs"))
}

fn items(job: &PlannedJobView) -> String {
    job.items.map(|items| items.to_string()).unwrap_or_default()
}

fn note(job: &PlannedJobView) -> String {
    let reason = job.reason.as_deref().unwrap_or_default();
    let handler = job.handler.map(|handler| paint(DIM, handler));
    let forecast = match job.forecast {
        "skipped" => Some(paint(YELLOW, format!("skipped: {reason}"))),
        "fails" => Some(paint(RED, format!("fails: {reason}"))),
        "undecided" => Some(format!("if {reason}")),
        _runs => None,
    };
    let rule = (job.when != When::default().name()).then(|| format!("when {}", job.when));
    let failure = job.allow_failure.then(|| "may fail".to_owned());
    [handler, rule, forecast, failure].into_iter().flatten().collect::<Vec<String>>().join("  ")
}

fn past(view: &PlanView) -> Option<String> {
    let times: Vec<i64> = view.runs.iter().filter_map(|run| run.duration_ms).collect();
    let listed: Vec<String> = times.iter().map(|ms| duration(*ms)).collect();
    let middle = duration(median(times)?);
    let runs = counted(listed.len() as i64, "run", "runs");
    Some(format!("last {runs}, median {middle}: {}", listed.join(", ")))
}
