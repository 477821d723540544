//! Retrying or cancelling several runs: a preview of how many, then the result.

pub mod read;

use askama::Template;
use windlass_engine::RunStatus;
use windlass_engine::store::Run;

use super::frame::{Frame, Reader, Section};
use super::look::Look;
use super::runs::Filter;
use super::runs::params_in_a_line;
use super::times::{Stamp, grouped};
use super::url;

/// So many runs are changed by one form at most.
pub const RUNS_OF_BATCH: i64 = 500;
/// So many runs of a batch are shown.
const RUNS_SHOWN: usize = 25;

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

/// An action for several runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// What happens.
    pub action: Action,
    /// To which runs.
    pub which: Which,
    /// The names and values of the form, to send them again.
    pairs: Vec<(String, String)>,
}

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
        let which = match (value("failed_since"), value("all")) {
            (Some(since), _) => Which::Failed {
                since_ms: since.parse().map_err(|_| format!("`{since}` is no instant in milliseconds."))?,
                workflow: value("workflow").unwrap_or_default().to_owned(),
                job: value("job").unwrap_or_default().to_owned(),
                error: value("error").unwrap_or_default().to_owned(),
            },
            (None, Some(_)) => {
                let own = ["action", "all", "run", "before"];
                let filter = pairs.iter().filter(|(name, _)| !own.contains(&name.as_str()));
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
            Which::Ids(_) | Which::Failed { .. } | Which::Matching(_) => Ok(Batch { action, which, pairs }),
        }
    }
}

/// The runs of a batch.
#[derive(Debug)]
pub struct BatchRuns {
    /// Those to which it can be done.
    pub runs: Vec<Run>,
    /// How many others were named.
    pub left_out: usize,
    /// Whether there are more than [`RUNS_OF_BATCH`].
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
    has_more: bool,
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
    // What is confirmed is what was shown: the ids, and not the conditions.
    let mut fields = vec![("action".to_owned(), batch.action.name().to_owned())];
    fields.extend(found.runs.iter().map(|run| ("run".to_owned(), run.id.to_string())));
    let rows = found.runs.iter().take(RUNS_SHOWN).map(|run| Row {
        id: run.id,
        workflow: run.workflow.clone(),
        params: params_in_a_line(&run.params),
        look: Look::of_run(run.status),
        created: reader.times.stamp(run.created_at),
    });
    let hidden = found.runs.len().saturating_sub(RUNS_SHOWN);
    BatchPage {
        is_retry,
        count: grouped(found.runs.len() as i64),
        noun: if found.runs.len() == 1 { "run" } else { "runs" },
        rows: rows.collect(),
        hidden_rows: if hidden == 0 { String::new() } else { format!("and {} more", grouped(hidden as i64)) },
        left_out: found.left_out,
        has_more: found.has_more,
        fields,
        back: match &batch.which {
            Which::Matching(filter) => format!("{}/runs{}", reader.base, filter.query()),
            Which::Ids(_) | Which::Failed { .. } => format!("{}/runs", reader.base),
        },
        frame: Frame::new(reader, Section::Runs, title),
    }
    .render()
}

/// What a batch has done.
#[derive(Debug, Default)]
pub struct BatchResult {
    /// How many runs were changed.
    pub done: usize,
    /// The others, with the reason.
    pub refused: Vec<(i64, String)>,
}

#[derive(Template)]
#[template(path = "batch_result.html")]
struct ResultPage {
    frame: Frame,
    is_retry: bool,
    done: String,
    noun: &'static str,
    refused: Vec<(i64, String)>,
}

/// The result of a batch.
///
/// # Errors
/// As of the template engine, which writes into memory.
pub fn result(action: Action, result: BatchResult, reader: &Reader) -> askama::Result<String> {
    let is_retry = action == Action::Retry;
    let title = if is_retry { "Runs retried" } else { "Runs cancelled" };
    ResultPage {
        is_retry,
        done: grouped(result.done as i64),
        noun: if result.done == 1 { "run" } else { "runs" },
        refused: result.refused,
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
