//! `windlass graph`: draws which job needs which.

use std::collections::HashMap;
use std::path::Path;

use clap::{Args, ValueEnum};
use windlass_engine::JobStatus;
use windlass_engine::store::{Job, Run};
use windlass_workflow::draw::{self, Drawing, Node};
use windlass_workflow::kinds;

use crate::arguments::{GlobalOptions, RunAddress};
use crate::complete;
use crate::database::Database;
use crate::error::Failure;
use crate::read_file::PathOrigin;
use crate::text::runs_and_jobs;
use crate::{find, output, submission};

/// Draw the graph of a file, a registered workflow or a run
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct GraphArgs {
    /// A workflow file, `-` for standard input, the name of a registered workflow, or a run (3, latest, nightly~0)
    #[arg(value_name = "FILE|NAME|RUN", add = complete::workflow_file_or_run(), default_value = "latest")]
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
  windlass graph                         # the newest run
  windlass graph nightly.toml
  windlass graph nightly                 # the registered workflow
  windlass graph nightly.toml --format svg > nightly.svg
  windlass graph 3 --format mermaid";

/// Prints the drawing.
pub(crate) fn execute(global: &GlobalOptions, args: &GraphArgs) -> Result<(), Failure> {
    let next_step = "use --format text, mermaid, dot or svg; `windlass inspect RUN -o json` lists the dependencies as `needs`";
    output::refuse_json(global, "graph", "a drawing", next_step)?;
    let drawing = drawing(global, &args.target)?;
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

/// A file comes before a run and a workflow, and a registered workflow before the runs of its name.
fn drawing(global: &GlobalOptions, target: &str) -> Result<Drawing, Failure> {
    let path = Path::new(target);
    if submission::is_standard_input(path) {
        let (workflow, _source) = submission::load_standard_input(None).map_err(|error| error.failure())?;
        return Ok(Drawing::of(&workflow));
    }
    if path.exists() || submission::looks_like_a_file(path) {
        return Ok(Drawing::of(&submission::load(path, PathOrigin::Named).map_err(|error| error.failure())?));
    }
    let address: RunAddress =
        target.parse().map_err(|reason| Failure::usage(reason, "name a file, a workflow or a run"))?;
    let database = Database::existing(global)?;
    if let RunAddress::Newest { workflow: Some(name), .. } = &address
        && let Some((_registration, workflow)) =
            database.ask(|store| store.registrations().workflow(target))?.filter(|_| name == target)
    {
        return Ok(Drawing::of(&workflow));
    }
    of_run(&database, &find::named_run(&database, &address)?)
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

fn of_run(database: &Database, run: &Run) -> Result<Drawing, Failure> {
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
