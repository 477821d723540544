//! Retrying or cancelling several runs: a preview of how many, then the result.

pub mod read;

use askama::Template;
use windlass_engine::RunStatus;
use windlass_engine::store::{FAILURES_MAX, Run};

use super::frame::{Frame, Reader, Section};
use super::look::Look;
use super::runs::Filter;
use super::runs::params_in_a_line;
use super::times::{Stamp, grouped};
use super::url;

/// So many runs are changed by one form, also on a slow disk in the time that a request has. A form that goes on changes the
/// next ones.
pub const RUNS_OF_STEP: usize = 100;
/// So many runs are changed by a batch at most.
pub const RUNS_OF_BATCH: usize = 10_000;
/// So many runs of a batch are shown.
pub const RUNS_SHOWN: usize = 25;

/// What happens to the runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// What failed is repeated.
    Retry,
    /// They are cancelled.
    Cancel,
}

impl Action {
    /// Whether it can be done to a run in a state.
    #[must_use]
    pub fn fits(self, status: RunStatus) -> bool {
        match self {
            Action::Retry => matches!(status, RunStatus::Failed | RunStatus::Cancelled),
            Action::Cancel => !status.is_terminal(),
        }
    }

    /// The states of runs to which it can be done.
    #[must_use]
    pub fn statuses(self) -> Vec<RunStatus> {
        RunStatus::ALL.into_iter().filter(|status| self.fits(*status)).collect()
    }

    fn name(self) -> &'static str {
        match self {
            Action::Retry => "retry",
            Action::Cancel => "cancel",
        }
    }
}

/// Which runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    /// These.
    Ids(Vec<i64>),
    /// Those of a group of failures.
    Failed {
        /// Since when.
        since_ms: i64,
        /// The workflow.
        workflow: String,
        /// The job that failed first.
        job: String,
        /// The first line of its error.
        error: String,
    },
    /// All that match a filter of the list.
    Matching(Filter),
}

/// How far a batch is that takes several steps. It goes from the newest run to the oldest, so that no run is changed twice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// When it was confirmed, in milliseconds: a time up to now ends there.
    pub at_ms: Option<i64>,
    /// Only runs with lower ids are left.
    pub below: Option<i64>,
    /// How many runs were changed.
    pub done: usize,
    /// How many runs stayed as they were.
    pub refused: usize,
}

/// An action for several runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// What happens.
    pub action: Action,
    /// To which runs.
    pub which: Which,
    /// What the steps before have done.
    pub progress: Progress,
    /// The names and values that say which runs, to send them again.
    pairs: Vec<(String, String)>,
}

/// The names and values of a form that say how far a batch is.
const PROGRESS: [&str; 4] = ["at", "below", "done", "refused"];

impl Batch {
    /// Reads the fields of the form or the query of the address.
    ///
    /// # Errors
    /// A sentence about what is missing or wrong.
    pub fn of_pairs(pairs: Vec<(String, String)>) -> Result<Batch, String> {
        let pairs: Vec<(String, String)> =
            pairs.into_iter().filter(|(name, value)| name != "form_token" && !value.is_empty()).collect();
        let value =
            |name: &str| pairs.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        let action = match value("action") {
            Some("retry") => Action::Retry,
            Some("cancel") => Action::Cancel,
            Some(_) | None => return Err("The action is missing: it is retry or cancel.".to_owned()),
        };
        let number = |name: &str| match value(name) {
            None => Ok(None),
            Some(text) => {
                text.parse::<i64>().map(Some).map_err(|_| format!("`{text}` is no value of `{name}`."))
            }
        };
        let count =
            |name: &str| number(name).map(|found| found.and_then(|found| usize::try_from(found).ok()));
        let progress = Progress {
            at_ms: number("at")?,
            below: number("below")?,
            done: count("done")?.unwrap_or(0),
            refused: count("refused")?.unwrap_or(0),
        };
        let which = match (value("failed_since"), value("all")) {
            (Some(since), _) => Which::Failed {
                since_ms: since.parse().map_err(|_| format!("`{since}` is no instant in milliseconds."))?,
                workflow: value("workflow").unwrap_or_default().to_owned(),
                job: value("job").unwrap_or_default().to_owned(),
                error: value("error").unwrap_or_default().to_owned(),
            },
            (None, Some(_)) => {
                let own = ["action", "all", "run", "before"];
                let is_own = |name: &str| own.contains(&name) || PROGRESS.contains(&name);
                let filter = pairs.iter().filter(|(name, _)| !is_own(name));
                let query = url::query(filter.map(|(name, value)| (name.as_str(), value.as_str())));
                Which::Matching(Filter::parse(query.trim_start_matches('?'))?)
            }
            (None, None) => {
                let ids = pairs.iter().filter(|(name, _)| name == "run");
                let ids: Result<Vec<i64>, String> = ids
                    .map(|(_, id)| id.parse().map_err(|_| format!("`{id}` is no number of a run.")))
                    .collect();
                Which::Ids(ids?)
            }
        };
        match &which {
            Which::Ids(ids) if ids.is_empty() => Err("No run is selected.".to_owned()),
            Which::Ids(ids) if ids.len() > RUNS_OF_STEP => Err(format!(
                "{} runs are selected, and {RUNS_OF_STEP} may be. Choose all that match a filter instead.",
                ids.len()
            )),
            Which::Ids(_) | Which::Failed { .. } | Which::Matching(_) => {
                let pairs = pairs
                    .iter()
                    .filter(|(name, _)| name != "run" && !PROGRESS.contains(&name.as_str()))
                    .cloned()
                    .collect();
                Ok(Batch { action, which, progress, pairs })
            }
        }
    }

    /// The names and values of a form that does it to the runs that are left.
    fn fields(&self, progress: Progress) -> Vec<(String, String)> {
        let numbers = [
            ("at", progress.at_ms),
            ("below", progress.below),
            ("done", i64::try_from(progress.done).ok()),
            ("refused", i64::try_from(progress.refused).ok()),
        ];
        let numbers =
            numbers.into_iter().filter_map(|(name, number)| Some((name.to_owned(), number?.to_string())));
        self.pairs.iter().cloned().chain(numbers).collect()
    }
}

/// The runs of a batch, before it is confirmed.
#[derive(Debug)]
pub struct BatchRuns {
    /// Those to which it can be done, up to [`RUNS_OF_BATCH`], the newest first.
    pub ids: Vec<i64>,
    /// The first of them.
    pub shown: Vec<Run>,
    /// How many others were named.
    pub left_out: usize,
    /// Whether more runs match.
    pub has_more: bool,
}

struct Row {
    id: i64,
    workflow: String,
    params: String,
    look: Look,
    created: Stamp,
}

#[derive(Template)]
#[template(path = "batch.html")]
struct BatchPage {
    frame: Frame,
    is_retry: bool,
    count: String,
    noun: &'static str,
    rows: Vec<Row>,
    hidden_rows: String,
    left_out: usize,
    limit: Option<String>,
    steps: Option<String>,
    fields: Vec<(String, String)>,
    back: String,
}

/// The preview: how many runs, and which.
///
/// # Errors
/// As of the template engine, which writes into memory.
pub fn preview(batch: &Batch, found: &BatchRuns, reader: &Reader) -> askama::Result<String> {
    let is_retry = batch.action == Action::Retry;
    let title = if is_retry { "Retry runs" } else { "Cancel runs" };
    let count = found.ids.len();
    // What is confirmed is what was shown: the ids. If they are too many for a form, it is the conditions, for the runs that
    // are there now.
    let fields = match count <= RUNS_OF_STEP {
        true => {
            let action = [("action".to_owned(), batch.action.name().to_owned())];
            let ids = found.ids.iter().map(|id| ("run".to_owned(), id.to_string()));
            action.into_iter().chain(ids).collect()
        }
        false => batch.fields(Progress {
            at_ms: Some(reader.times.now_ms),
            below: found.ids.first().map(|newest| newest + 1),
            ..Progress::default()
        }),
    };
    let rows = found.shown.iter().map(|run| Row {
        id: run.id,
        workflow: run.workflow.clone(),
        params: params_in_a_line(&run.params),
        look: Look::of_run(run.status),
        created: reader.times.stamp(run.created_at),
    });
    let hidden = count.saturating_sub(found.shown.len());
    BatchPage {
        is_retry,
        count: grouped(count as i64),
        noun: if count == 1 { "run" } else { "runs" },
        rows: rows.collect(),
        hidden_rows: if hidden == 0 { String::new() } else { format!("and {} more", grouped(hidden as i64)) },
        left_out: found.left_out,
        limit: found.has_more.then(|| match &batch.which {
            Which::Failed { .. } => format!(
                "Only the newest {} failed jobs were looked at. Do the same again for older ones.",
                grouped(FAILURES_MAX)
            ),
            Which::Ids(_) | Which::Matching(_) => format!(
                "More than {0} runs match. These are the newest {0}; do the same again for the others.",
                grouped(count as i64)
            ),
        }),
        steps: (count > RUNS_OF_STEP).then(|| {
            format!("They are changed in steps of {RUNS_OF_STEP} runs, from the newest to the oldest.")
        }),
        fields,
        back: match &batch.which {
            Which::Matching(filter) => format!("{}/runs{}", reader.base, filter.query()),
            Which::Ids(_) | Which::Failed { .. } => format!("{}/runs", reader.base),
        },
        frame: Frame::new(reader, Section::Runs, title),
    }
    .render()
}

/// What a step of a batch has done.
#[derive(Debug, Default)]
pub struct BatchResult {
    /// The runs that were changed.
    pub changed: Vec<i64>,
    /// The others, with the reason.
    pub refused: Vec<(i64, String)>,
    /// The lowest id that was looked at, if more runs are left.
    pub next: Option<i64>,
}

#[derive(Template)]
#[template(path = "batch_result.html")]
struct ResultPage {
    frame: Frame,
    is_retry: bool,
    done: String,
    noun: &'static str,
    stayed: usize,
    changed: Vec<i64>,
    refused: Vec<(i64, String)>,
    /// The fields of the form that goes on.
    more: Option<Vec<(String, String)>>,
    /// Whether more runs match than a batch changes.
    has_reached_limit: bool,
}

/// The result of a batch, or of a step of it with a form that goes on.
///
/// # Errors
/// As of the template engine, which writes into memory.
pub fn result(batch: &Batch, result: BatchResult, reader: &Reader) -> askama::Result<String> {
    let is_retry = batch.action == Action::Retry;
    let title = if is_retry { "Runs retried" } else { "Runs cancelled" };
    let progress = Progress {
        at_ms: batch.progress.at_ms.or(Some(reader.times.now_ms)),
        below: result.next,
        done: batch.progress.done + result.changed.len(),
        refused: batch.progress.refused + result.refused.len(),
    };
    let has_reached_limit = result.next.is_some() && progress.done + progress.refused >= RUNS_OF_BATCH;
    ResultPage {
        is_retry,
        done: grouped(progress.done as i64),
        noun: if progress.done == 1 { "run" } else { "runs" },
        stayed: progress.refused,
        changed: result.changed.into_iter().take(RUNS_SHOWN).collect(),
        refused: result.refused,
        more: (result.next.is_some() && !has_reached_limit).then(|| batch.fields(progress)),
        has_reached_limit,
        frame: Frame::new(reader, Section::Runs, title),
    }
    .render()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn batch(query: &str) -> Result<Batch, String> {
        Batch::of_pairs(url::pairs(query).unwrap())
    }

    #[test]
    fn the_runs_are_selected_or_a_group_or_all_that_match() {
        assert_eq!(batch("action=retry&run=3&run=5&workflow=w").unwrap().which, Which::Ids(vec![3, 5]));
        let Which::Failed { since_ms, error, .. } =
            batch("action=retry&failed_since=7&workflow=w&job=j&error=e").unwrap().which
        else {
            panic!("a group");
        };
        assert_eq!((since_ms, error.as_str()), (7, "e"));
        let Which::Matching(filter) =
            batch("action=cancel&all=1&run=3&state=running&workflow=w&before=9").unwrap().which
        else {
            panic!("all that match");
        };
        assert_eq!((filter.workflow.as_deref(), filter.before), (Some("w"), None));
    }

    #[test]
    fn a_step_goes_on_below_the_one_before() {
        let first = batch("action=cancel&all=1&state=running&form_token=t").unwrap();
        let progress = Progress { at_ms: Some(7), below: Some(400), done: 500, refused: 2 };
        let fields = first.fields(progress);
        let pairs = fields.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let next = batch(&url::query(pairs)[1..]).unwrap();
        assert_eq!((next.which, next.progress), (first.which, progress));
        assert!(batch("action=cancel&all=1&below=x").is_err());
        let many: Vec<String> = (0..101).map(|id| format!("&run={id}")).collect();
        assert!(batch(&format!("action=cancel{}", many.concat())).unwrap_err().contains("101 runs"));
    }

    #[test]
    fn nothing_is_changed_by_half_an_address() {
        for query in [
            "run=3",
            "action=delete&run=3",
            "action=retry",
            "action=retry&run=x",
            "action=retry&all=1&stat=x",
        ] {
            assert!(batch(query).is_err(), "{query}");
        }
    }
}
