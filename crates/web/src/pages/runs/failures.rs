//! What failed since the last visit, by cause.

use windlass_engine::store::Failures;

use super::Visited;
use crate::pages::frame::Reader;
use crate::pages::url;

/// So many causes are shown; the rest is one line.
const CAUSES_SHOWN: usize = 8;

/// The card with the causes.
pub(super) struct FailuresCard {
    pub(super) title: String,
    pub(super) summary: String,
    pub(super) causes: Vec<Cause>,
    pub(super) more: Option<String>,
    pub(super) is_marked: bool,
}

/// Runs that failed in the same way.
pub(super) struct Cause {
    pub(super) runs: usize,
    pub(super) workflow: String,
    pub(super) job: String,
    pub(super) error: String,
    pub(super) when: String,
    /// The run that failed last.
    pub(super) href: String,
    /// The preview of a retry of all of them.
    pub(super) retry_href: String,
}

impl FailuresCard {
    pub(super) fn new(failures: &Failures, visited: Visited, reader: &Reader) -> FailuresCard {
        let since = reader.times.day_and_minute(failures.since_ms);
        let is_marked = visited == Visited::Marked;
        let runs = failures.runs();
        let hidden = failures.groups.len().saturating_sub(CAUSES_SHOWN);
        FailuresCard {
            title: match (is_marked, runs) {
                (true, 0) => format!("Nothing failed since {since}"),
                (false, 0) => "Nothing failed in the last 24 hours".to_owned(),
                (true, _) => format!("Failed since {since}"),
                (false, _) => "Failed in the last 24 hours".to_owned(),
            },
            summary: match runs {
                0 => String::new(),
                _ => format!("{}, {}", count(runs, "run"), count(failures.groups.len(), "cause")),
            },
            causes: failures
                .groups
                .iter()
                .take(CAUSES_SHOWN)
                .map(|group| {
                    let last = reader.times.minute(group.last_at);
                    let from = failures.since_ms.to_string();
                    let batch = [
                        ("action", "retry"),
                        ("failed_since", from.as_str()),
                        ("workflow", &group.workflow),
                        ("job", &group.job),
                        ("error", &group.error),
                    ];
                    Cause {
                        runs: group.run_ids.len(),
                        workflow: group.workflow.clone(),
                        job: group.job.clone(),
                        error: match group.error.is_empty() {
                            true => "no error was reported".to_owned(),
                            false => group.error.clone(),
                        },
                        when: if group.run_ids.len() == 1 {
                            format!("at {last}")
                        } else {
                            format!("last {last}")
                        },
                        href: format!(
                            "{}/runs/{}",
                            reader.base,
                            group.run_ids.first().copied().unwrap_or_default()
                        ),
                        retry_href: format!("{}/runs/batch{}", reader.base, url::query(batch)),
                    }
                })
                .collect(),
            more: (hidden > 0).then(|| format!("and {}", count(hidden, "more cause"))),
            is_marked,
        }
    }
}

fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}
