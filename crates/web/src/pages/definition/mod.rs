//! The page of a definition: a version of a workflow, or one that a run has, and what differs from another one.

mod difference;
pub mod read;
pub mod text;

use askama::Template;
use windlass_workflow::Workflow;

use super::frame::{Frame, Reader, Section};
use super::times::Stamp;
use difference::{Differences, differences};
use text::Piece;

/// The most bytes of a definition that are shown, and of what differs from another one.
const TEXT_BYTES_MAX: usize = 256 * 1024;

/// A definition among others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// Its number.
    pub number: i64,
    /// When it began to be used.
    pub at_ms: i64,
    /// Where it comes from: a file, a verb.
    pub from: String,
}

/// Whose definitions they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Of {
    /// Those of this workflow: its versions.
    Workflow(String),
    /// Those of this run of a workflow.
    Run {
        /// The run.
        run_id: i64,
        /// The name of its workflow.
        workflow: String,
    },
}

/// What the page shows.
#[derive(Debug)]
pub struct DefinitionData {
    /// Whose definitions.
    pub of: Of,
    /// The one that is shown.
    pub shown: Known,
    /// Its content.
    pub workflow: Workflow,
    /// The one with which it is compared, and its content.
    pub other: Option<(Known, Workflow)>,
    /// All of them, the newest first.
    pub all: Vec<Known>,
}

struct Row {
    number: i64,
    at: Stamp,
    from: String,
    href: String,
    is_shown: bool,
}

#[derive(Template)]
#[template(path = "definition.html")]
struct DefinitionPage {
    frame: Frame,
    workflow: String,
    workflow_href: String,
    run_id: Option<i64>,
    title: String,
    noun: &'static str,
    number: i64,
    other: Option<i64>,
    differences: Differences,
    choices: Vec<(i64, bool)>,
    rows: Vec<Row>,
    text: String,
}

/// The page.
///
/// # Errors
/// As of the template engine, which writes into memory.
pub fn page(mut data: DefinitionData, reader: &Reader) -> askama::Result<String> {
    let (workflow, run_id) = match data.of {
        Of::Workflow(name) => (name, None),
        Of::Run { run_id, workflow } => (workflow, Some(run_id)),
    };
    let workflow_href = format!("{}/workflows/{}", reader.base, super::url::encode(&workflow));
    let (section, noun) = match run_id {
        Some(_) => (Section::Runs, "definition"),
        None => (Section::Workflows, "version"),
    };
    let number = data.shown.number;
    let title = match run_id {
        Some(id) => format!("{workflow} #{id}, definition {number}"),
        None => format!("{workflow}, version {number}"),
    };
    let href = |number: i64| match run_id {
        Some(id) => format!("{}/runs/{id}/definition?number={number}", reader.base),
        None => format!("{workflow_href}/versions/{number}"),
    };
    let tables = text::tables(&mut data.workflow);
    let pieces: Vec<Piece<'_>> = text::pieces(&tables, &data.workflow).collect();
    let other = data.other.as_ref().map(|(known, _)| known.number);
    let differences = data.other.as_mut().map(|(_known, earlier)| {
        let tables = text::tables(earlier);
        let earlier: Vec<Piece<'_>> = text::pieces(&tables, earlier).collect();
        differences(&earlier, &pieces, TEXT_BYTES_MAX)
    });
    DefinitionPage {
        frame: Frame::new(reader, section, &title),
        differences: differences.unwrap_or_default(),
        choices: data
            .all
            .iter()
            .filter(|known| known.number != number)
            .map(|known| (known.number, other == Some(known.number)))
            .collect(),
        rows: data
            .all
            .iter()
            .map(|known| Row {
                number: known.number,
                at: reader.times.stamp(known.at_ms),
                from: known.from.clone(),
                href: href(known.number),
                is_shown: known.number == number,
            })
            .collect(),
        text: text::whole(pieces, TEXT_BYTES_MAX),
        workflow,
        workflow_href,
        run_id,
        title,
        noun,
        number,
        other,
    }
    .render()
}
