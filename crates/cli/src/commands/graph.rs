//! `windlass graph`: draws which job needs which.

use std::collections::HashMap;
use std::path::Path;

use clap::{Args, ValueEnum};
use windlass_engine::JobStatus;
use windlass_engine::store::Job;
use windlass_workflow::draw::{self, Drawing, Node};
use windlass_workflow::kinds;

use crate::arguments::{GlobalOptions, OutputFormat, parse_run_id};
use crate::database::Database;
use crate::error::Failure;
use crate::read_file::PathOrigin;
use crate::text::runs_and_jobs;
use crate::{find, output, submission};

/// Draw the graph of a file or a run
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct GraphArgs {
    /// A workflow file, or the number of a run
    #[arg(value_name = "FILE|RUN")]
    target: String,

    /// The form of the drawing
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: GraphFormat,
}

/// The form of a drawing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum GraphFormat {
    /// Lines of text for a terminal.
    Text,
    /// Mermaid, for Markdown pages.
    Mermaid,
    /// Graphviz DOT.
    Dot,
    /// A picture.
    Svg,
}

const EXAMPLES: &str = "\
Examples:
  windlass graph nightly.toml
  windlass graph nightly.toml --format svg > nightly.svg
  windlass graph 3 --format mermaid";

/// Prints the drawing.
pub(crate) fn execute(global: &GlobalOptions, args: &GraphArgs) -> Result<(), Failure> {
    if global.output != OutputFormat::Text {
        return Err(Failure::usage(
            "`graph` prints a drawing, so -o does not apply",
            "use --format text, mermaid, dot or svg; `windlass inspect RUN -o json` lists the dependencies as `needs`",
        ));
    }
    let drawing = match run_id(&args.target) {
        Some(run_id) => of_run(&Database::existing(global)?, run_id)?,
        None => {
            let path = Path::new(&args.target);
            Drawing::of(&submission::load(path, PathOrigin::Named).map_err(|error| error.failure())?)
        }
    };
    match args.format {
        GraphFormat::Text => output::write_text(&drawing.text()),
        GraphFormat::Mermaid => output::write_text(&drawing.mermaid()),
        GraphFormat::Dot => output::write_text(&drawing.dot()),
        GraphFormat::Svg => {
            let picture = drawing.svg().map_err(|error| {
                let target = &args.target;
                Failure::usage(error.to_string(), format!("`windlass graph {target} --format dot`"))
            })?;
            output::write_text(&picture)
        }
    }
}

/// A plain number is a run, unless a file has that name.
fn run_id(target: &str) -> Option<i64> {
    parse_run_id(target).ok().filter(|_| !Path::new(target).exists())
}

fn status(job: &Job) -> &'static str {
    let is_allowed = job.status == JobStatus::Failed && job.allow_failure;
    if is_allowed { draw::ALLOWED_FAILURE } else { job.status.as_str() }
}

/// What a job calls.
fn called(job: &Job) -> Option<String> {
    let summary = kinds::summarize_payload(&job.kind, &job.payload).filter(|_| job.kind == "workflow")?;
    Some(format!("workflow {}", summary.text))
}

fn of_run(database: &Database, run_id: i64) -> Result<Drawing, Failure> {
    let run = find::run(database, run_id)?;
    let jobs = database.ask(|store| store.jobs().of_run(run.id))?;
    // The items of a job with `for_each` are counted, because a picture of thousands of jobs shows nothing.
    let mut items: HashMap<i64, (usize, usize)> = HashMap::new();
    for item in &jobs {
        let Some(group_id) = item.group_id else { continue };
        let (ended, all) = items.entry(group_id).or_default();
        *all += 1;
        *ended += usize::from(item.status.is_terminal());
    }
    let jobs: Vec<_> = jobs.into_iter().filter(|job| job.group_id.is_none()).collect();
    let indices: HashMap<i64, usize> = jobs.iter().enumerate().map(|(index, job)| (job.id, index)).collect();
    let nodes = jobs
        .iter()
        .map(|job| Node {
            name: runs_and_jobs::job_name(job),
            status: Some(status(job).to_owned()),
            detail: (items.get(&job.id).map(|(ended, all)| format!("{ended} of {all} items ended")))
                .or_else(|| called(job)),
            ..Node::default()
        })
        .collect();
    let edges = database
        .ask(|store| store.jobs().dependencies(run.id))?
        .into_iter()
        .filter_map(|(parent, child)| Some((*indices.get(&parent)?, *indices.get(&child)?)))
        .collect();
    Ok(Drawing { nodes, edges })
}
