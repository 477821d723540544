//! Compares what was seen of a run with what its case expects. Pure.

use serde_json::Value as Json;

use crate::file::{Case, ExpectedJob};
use crate::run::{Observed, ObservedJob};

/// Something that is not as it was expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The job; the run, if there is none.
    pub job: Option<String>,
    /// What differs: `status`, `attempts`, `error`, `output`, `variable` or `fake`.
    pub aspect: &'static str,
    /// What was expected.
    pub expected: String,
    /// What was found.
    pub actual: String,
    /// The last error of the job.
    pub error: Option<String>,
}

/// What is not as the case expects it.
#[must_use]
pub fn check(case: &Case, observed: &Observed) -> Vec<Difference> {
    let mut differences = Vec::new();
    for name in &observed.without_fake {
        differences.push(of_job(name, "fake", "a fake".to_owned(), "none, and the job began".to_owned()));
    }
    for (name, waits_for) in &observed.stuck {
        let actual = format!("waits for {}, and nothing comes", waits_for_text(waits_for));
        differences.push(of_job(name, "end", "an end".to_owned(), actual));
    }
    let expected = case.expect.status;
    if observed.status != expected && observed.stuck.is_empty() {
        differences.push(Difference {
            job: None,
            aspect: "status",
            expected: expected.to_string(),
            actual: observed.status.to_string(),
            error: first_error(observed),
        });
    }
    for (name, expected) in &case.expect.jobs {
        match observed.jobs.get(name) {
            Some(job) => check_job(name, expected, job, &mut differences),
            None => differences.push(of_job(
                name,
                "job",
                "a job".to_owned(),
                "the run has no such job".to_owned(),
            )),
        }
    }
    check_outputs(case, observed, &mut differences);
    check_variables(case, observed, &mut differences);
    differences
}

fn check_outputs(case: &Case, observed: &Observed, differences: &mut Vec<Difference>) {
    for (name, expected) in &case.expect.outputs {
        let (actual, error) = match &observed.outputs {
            Some(Ok(outputs)) => (outputs.get(name), None),
            Some(Err(error)) => (None, Some(error.clone())),
            None => (None, None),
        };
        if actual != Some(expected) {
            differences.push(Difference {
                job: None,
                aspect: "output",
                expected: format!("{name} = {expected}"),
                actual: output_text(actual),
                error,
            });
        }
    }
}

fn check_variables(case: &Case, observed: &Observed, differences: &mut Vec<Difference>) {
    for (name, expected) in &case.expect.variables {
        let actual = observed.variables.get(name);
        if actual != Some(expected) {
            differences.push(Difference {
                job: None,
                aspect: "variable",
                expected: format!("{name} = {expected}"),
                actual: output_text(actual),
                error: None,
            });
        }
    }
}

fn check_job(name: &str, expected: &ExpectedJob, job: &ObservedJob, differences: &mut Vec<Difference>) {
    let ExpectedJob { status, attempts, error, output } = expected;
    let mut differs = |aspect, expected: String, actual: String| {
        let difference = of_job(name, aspect, expected, actual);
        differences.push(Difference { error: job.error.clone(), ..difference });
    };
    if let Some(status) = status.filter(|status| *status != job.status) {
        differs("status", status.to_string(), job.status.to_string());
    }
    if let Some(attempts) = attempts.filter(|attempts| *attempts != job.attempts) {
        differs("attempts", attempts.to_string(), job.attempts.to_string());
    }
    if let Some(error) =
        error.as_ref().filter(|error| !job.error.as_deref().unwrap_or("").contains(error.as_str()))
    {
        differs("error", error.clone(), job.error.clone().unwrap_or_else(|| "none".to_owned()));
    }
    if let Some(output) = output.as_ref().filter(|output| Some(*output) != job.output.as_ref()) {
        differs("output", output.to_string(), output_text(job.output.as_ref()));
    }
}

/// An output for people.
pub(crate) fn output_text(output: Option<&Json>) -> String {
    output.map_or_else(|| "none".to_owned(), Json::to_string)
}

fn of_job(name: &str, aspect: &'static str, expected: String, actual: String) -> Difference {
    Difference { job: Some(name.to_owned()), aspect, expected, actual, error: None }
}

fn waits_for_text(waits_for: &str) -> &str {
    match waits_for {
        "event" => "an event",
        "approval" => "an approval",
        "slot" => "a slot of its concurrency key",
        other => other,
    }
}

/// The error of the first job that failed, with its name.
fn first_error(observed: &Observed) -> Option<String> {
    let failed: Vec<(&str, &str)> = observed
        .jobs
        .iter()
        .filter(|(_, job)| job.status == windlass_engine::JobStatus::Failed)
        .filter_map(|(name, job)| Some((name.as_str(), job.error.as_deref()?)))
        .collect();
    // A job with `for_each`, and one that calls a workflow, only says which of its own failed.
    let is_below = |name: &str, other: &str| {
        other.strip_prefix(name).is_some_and(|rest| rest.starts_with('[') || rest.starts_with('/'))
    };
    let (name, error) =
        failed.iter().find(|(name, _)| !failed.iter().any(|(other, _)| is_below(name, other)))?;
    Some(format!("{name}: {error}"))
}
