//! A run on the command line: its number, `latest`, or the name of a workflow.

use std::fmt;
use std::str::FromStr;

/// The word for the newest run of all.
const LATEST: &str = "latest";
/// How far `~N` goes back.
const BACK_MAX: u32 = 9_999;

/// An argument that names a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RunAddress {
    /// Its number: `3`.
    Number(i64),
    /// The newest run, or an earlier one: `latest`, `latest~1`, `etl`, `etl~1`.
    Newest {
        /// Only runs of this workflow.
        workflow: Option<String>,
        /// How many newer runs there are.
        back: u32,
    },
}

impl RunAddress {
    /// Reads all forms. The name of a workflow may have any characters, so nothing but a wrong number is refused.
    ///
    /// Before `~N` stands a name, so `7~0` is the newest run of the workflow `7`.
    pub(super) fn parse(text: &str) -> Result<RunAddress, String> {
        if text.trim().is_empty() {
            return Err("it is empty; write a run such as 3 or latest".to_owned());
        }
        if text.bytes().all(|byte| byte.is_ascii_digit()) {
            return number(text).map(RunAddress::Number).ok_or_else(|| {
                "the numbers of runs begin at 1 and have at most 18 digits; `windlass runs` lists them"
                    .to_owned()
            });
        }
        let is_count = |count: &str| !count.is_empty() && count.bytes().all(|byte| byte.is_ascii_digit());
        let (name, back) = match text.rsplit_once('~') {
            Some((name, count)) if !name.is_empty() && is_count(count) => {
                let back = count.parse().ok().filter(|back| *back <= BACK_MAX);
                (name, back.ok_or_else(|| format!("~ goes back at most {BACK_MAX} runs"))?)
            }
            Some(_) | None => (text, 0),
        };
        Ok(RunAddress::Newest { workflow: (name != LATEST).then(|| name.to_owned()), back })
    }
}

impl FromStr for RunAddress {
    type Err = String;

    /// Refuses what can only be a job.
    fn from_str(text: &str) -> Result<RunAddress, String> {
        if job_number(text).is_some() {
            return Err(format!("`{text}` is a job, but a run is needed; write the number of a run"));
        }
        if let Some((run, _name)) = text.split_once('/')
            && is_surely_a_run(run)
        {
            return Err(format!("`{text}` is a job, but a run is needed; its run is {run}"));
        }
        RunAddress::parse(text)
    }
}

impl fmt::Display for RunAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunAddress::Number(number) => write!(formatter, "{number}"),
            RunAddress::Newest { workflow, back } => {
                let name = workflow.as_deref().unwrap_or(LATEST);
                match back {
                    0 => write!(formatter, "{name}"),
                    back => write!(formatter, "{name}~{back}"),
                }
            }
        }
    }
}

/// Whether the text names a run and no workflow.
pub(super) fn is_surely_a_run(text: &str) -> bool {
    matches!(RunAddress::parse(text), Ok(RunAddress::Number(_) | RunAddress::Newest { workflow: None, .. }))
}

/// The id in `j42`.
pub(super) fn job_number(text: &str) -> Option<i64> {
    text.strip_prefix(['j', 'J']).and_then(number)
}

/// A positive number of at most 18 digits, written without sign or spaces.
pub(super) fn number(text: &str) -> Option<i64> {
    let plain = text.len() <= 18 && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|number| plain && *number > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn newest(workflow: Option<&str>, back: u32) -> RunAddress {
        RunAddress::Newest { workflow: workflow.map(str::to_owned), back }
    }

    #[test]
    fn a_run_has_a_number_a_place_or_a_workflow() {
        let cases = [
            ("3", RunAddress::Number(3)),
            ("latest", newest(None, 0)),
            ("latest~0", newest(None, 0)),
            ("latest~12", newest(None, 12)),
            ("etl", newest(Some("etl"), 0)),
            ("etl~1", newest(Some("etl"), 1)),
            ("team/etl~1", newest(Some("team/etl"), 1)),
            ("a~b", newest(Some("a~b"), 0)),
            ("7~0", newest(Some("7"), 0)),
            ("j42~0", newest(Some("j42"), 0)),
            ("3.5", newest(Some("3.5"), 0)),
            ("latest~", newest(Some("latest~"), 0)),
        ];
        for (text, expected) in cases {
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn wrong_numbers_and_jobs_are_refused() {
        let cases = [
            ("", "empty"),
            ("0", "begin at 1"),
            ("9999999999999999999", "18 digits"),
            ("latest~10000", "at most 9999"),
            ("j4", "is a job"),
            ("3/a", "its run is 3"),
            ("latest~1/a", "its run is latest~1"),
        ];
        for (text, expected) in cases {
            let error = text.parse::<RunAddress>().expect_err(text);
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn an_address_is_written_as_it_is_read() {
        for text in ["3", "latest", "latest~2", "etl", "etl~3"] {
            assert_eq!(text.parse::<RunAddress>().map(|address| address.to_string()), Ok(text.to_owned()));
        }
    }
}
