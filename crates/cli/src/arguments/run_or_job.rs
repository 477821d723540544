//! A run or a job on the command line: `3`, `j42`, `3/build`.

use std::fmt;
use std::str::FromStr;

/// An argument that names a run or a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RunOrJob {
    /// A plain number: a run, or a job for verbs that take only jobs.
    Number(i64),
    /// A job by its id.
    Job(i64),
    /// A job by its run and its name.
    Named { run_id: i64, name: String },
}

impl FromStr for RunOrJob {
    type Err = String;

    fn from_str(text: &str) -> Result<RunOrJob, String> {
        if let Some((run, name)) = text.split_once('/') {
            let run_id = id(run)
                .ok_or_else(|| format!("`{run}` is not a number; write RUN/NAME, for example 3/build"))?;
            if name.is_empty() {
                return Err(format!("the job's name is missing after `{run}/`"));
            }
            return Ok(RunOrJob::Named { run_id, name: name.to_owned() });
        }
        if let Some(job_id) = text.strip_prefix(['j', 'J']).and_then(id) {
            return Ok(RunOrJob::Job(job_id));
        }
        id(text).map(RunOrJob::Number).ok_or_else(|| {
            "write a number such as 3, the id of a job such as j42, or RUN/NAME such as 3/build".to_owned()
        })
    }
}

impl fmt::Display for RunOrJob {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunOrJob::Number(number) => write!(formatter, "{number}"),
            RunOrJob::Job(job_id) => write!(formatter, "j{job_id}"),
            RunOrJob::Named { run_id, name } => write!(formatter, "{run_id}/{name}"),
        }
    }
}

/// Reads the number of a run; for clap.
pub(crate) fn parse_run_id(text: &str) -> Result<i64, String> {
    match text.parse::<RunOrJob>() {
        Ok(RunOrJob::Number(run_id)) => Ok(run_id),
        Ok(RunOrJob::Job(_)) => {
            Err(format!("`{text}` is a job, but a run is needed; write the number of a run"))
        }
        Ok(RunOrJob::Named { run_id, .. }) => {
            Err(format!("`{text}` is a job, but a run is needed; its run is {run_id}"))
        }
        Err(_) => Err("a run is a number such as 3; `windlass runs` lists them".to_owned()),
    }
}

/// Reads the number of a job, as `42` or `j42`; for clap.
pub(crate) fn parse_job_id(text: &str) -> Result<i64, String> {
    match text.parse::<RunOrJob>() {
        Ok(RunOrJob::Number(job_id) | RunOrJob::Job(job_id)) => Ok(job_id),
        Ok(RunOrJob::Named { .. }) | Err(_) => {
            Err("this takes the number of a job such as j42; `windlass jobs` lists them".to_owned())
        }
    }
}

/// A positive number of at most 18 digits, written without sign or spaces.
fn id(text: &str) -> Option<i64> {
    let plain = text.len() <= 18 && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|number| plain && *number > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_forms() {
        let named = |run_id, name: &str| RunOrJob::Named { run_id, name: name.to_owned() };
        let cases = [
            ("3", RunOrJob::Number(3)),
            ("j42", RunOrJob::Job(42)),
            ("J42", RunOrJob::Job(42)),
            ("3/build", named(3, "build")),
            ("3/a/b", named(3, "a/b")),
            ("3/j4", named(3, "j4")),
        ];
        for (text, expected) in cases {
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn other_texts_are_refused() {
        let cases = [
            "",
            "0",
            "-1",
            "+3",
            " 3",
            "j",
            "j0",
            "build",
            "3/",
            "/build",
            "x/build",
            "3.5",
            "9999999999999999999",
        ];
        for text in cases {
            assert!(text.parse::<RunOrJob>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_run_is_a_plain_number() {
        assert_eq!(parse_run_id("3"), Ok(3));
        for (text, expected) in [("j4", "is a job"), ("3/a", "its run is 3"), ("x", "windlass runs")] {
            let error = parse_run_id(text).expect_err(text);
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
