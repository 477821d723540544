//! A run or a job on the command line: `3`, `latest`, `etl~1`, `j42`, `3/build`, `latest/build`.

use std::fmt;
use std::str::FromStr;

use super::RunAddress;
use super::run_address::{job_number, number};

/// An argument that names a run or a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RunOrJob {
    /// A run.
    Run(RunAddress),
    /// A job by its id.
    Job(i64),
    /// A job by its run and its name. The name of a workflow may have a slash, so this may also be a run: see
    /// [`RunOrJob::as_run`].
    Named { run: RunAddress, name: String },
}

impl RunOrJob {
    /// The run that `team/etl` means if the workflow `team` has no runs.
    pub(crate) fn as_run(&self) -> Option<RunAddress> {
        match self {
            RunOrJob::Named { run: RunAddress::Newest { workflow: Some(_), .. }, .. } => {
                RunAddress::parse(&self.to_string()).ok()
            }
            RunOrJob::Run(_) | RunOrJob::Job(_) | RunOrJob::Named { .. } => None,
        }
    }
}

impl FromStr for RunOrJob {
    type Err = String;

    fn from_str(text: &str) -> Result<RunOrJob, String> {
        if let Some((run, name)) = text.split_once('/') {
            if job_number(run).is_some() {
                return Err(format!("`{run}` is a job; write {run} alone, or RUN/NAME such as 3/build"));
            }
            let missing = |what: &str| format!("{what}; write RUN/NAME, for example 3/build or latest/build");
            if run.is_empty() {
                return Err(missing(&format!("the run is missing before `/{name}`")));
            }
            if name.is_empty() {
                return Err(missing(&format!("the job's name is missing after `{run}/`")));
            }
            return Ok(RunOrJob::Named { run: RunAddress::parse(run)?, name: name.to_owned() });
        }
        match job_number(text) {
            Some(job_id) => Ok(RunOrJob::Job(job_id)),
            None => RunAddress::parse(text).map(RunOrJob::Run),
        }
    }
}

impl fmt::Display for RunOrJob {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunOrJob::Run(run) => run.fmt(formatter),
            RunOrJob::Job(job_id) => write!(formatter, "j{job_id}"),
            RunOrJob::Named { run, name } => write!(formatter, "{run}/{name}"),
        }
    }
}

/// Reads the number of a run that a list ends before; for clap.
pub(crate) fn parse_run_id(text: &str) -> Result<i64, String> {
    number(text).ok_or_else(|| "a run is a number such as 3; `windlass runs` lists them".to_owned())
}

/// Reads the number of a job that a list ends before, as `42` or `j42`; for clap.
pub(crate) fn parse_job_id(text: &str) -> Result<i64, String> {
    job_number(text)
        .or_else(|| number(text))
        .ok_or_else(|| "this takes the number of a job such as j42; `windlass jobs` lists them".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(text: &str) -> RunAddress {
        RunAddress::parse(text).expect("a run")
    }

    #[test]
    fn the_forms_of_runs_and_jobs() {
        let named = |address: &str, name: &str| RunOrJob::Named { run: run(address), name: name.to_owned() };
        let cases = [
            ("3", RunOrJob::Run(RunAddress::Number(3))),
            ("latest~1", RunOrJob::Run(run("latest~1"))),
            ("build", RunOrJob::Run(run("build"))),
            ("j42", RunOrJob::Job(42)),
            ("J42", RunOrJob::Job(42)),
            ("j0", RunOrJob::Run(run("j0"))),
            ("3/build", named("3", "build")),
            ("3/a/b", named("3", "a/b")),
            ("3/j4", named("3", "j4")),
            ("latest/build", named("latest", "build")),
            ("etl~1/build", named("etl~1", "build")),
        ];
        for (text, expected) in cases {
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "0", "3/", "/build", "0/build", "j3/build", "9999999999999999999"] {
            assert!(text.parse::<RunOrJob>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn only_the_name_of_a_workflow_may_have_a_slash() {
        let as_run = |text: &str| text.parse::<RunOrJob>().ok().and_then(|address| address.as_run());
        assert_eq!(as_run("team/etl~1"), Some(run("team/etl~1")));
        for text in ["3/build", "latest/build", "etl", "j3"] {
            assert_eq!(as_run(text), None, "{text}");
        }
    }

    #[test]
    fn a_list_ends_before_a_number() {
        assert_eq!((parse_run_id("3"), parse_job_id("j3"), parse_job_id("3")), (Ok(3), Ok(3), Ok(3)));
        for text in ["j4", "3/a", "x", "-3", "+3"] {
            assert!(parse_run_id(text).is_err_and(|error| error.contains("windlass runs")), "{text}");
        }
    }
}
