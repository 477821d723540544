//! `windlass rerun`: a new run with the definition and the parameters of another run.

use clap::Args;
use windlass_engine::store::{DefinitionVerb, NewRun};
use windlass_workflow::params::{self, Supplied};

use super::submit;
use crate::arguments::{GlobalOptions, RunAddress, ShowOptions, WorkOptions};
use crate::complete;
use crate::database::Database;
use crate::error::Failure;
use crate::execution::{self, OutputShape};
use crate::find;
use crate::submission::{Submission, invalid_params, parse_pair};

/// Start a new run like another one, with the same parameters
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RerunArgs {
    /// The run: its number, `latest`, or the name of its workflow
    #[arg(value_name = "RUN", add = complete::run())]
    run: RunAddress,

    /// Another value for a parameter; may be given many times
    #[arg(short, long = "param", value_name = "KEY=VALUE", value_parser = parse_pair)]
    params: Vec<(String, String)>,

    /// Only submit the run and let a worker execute it
    #[arg(long)]
    detach: bool,
    #[command(flatten)]
    show: ShowOptions,
    #[command(flatten)]
    work: WorkOptions,
}

const EXAMPLES: &str = "\
Examples:
  windlass rerun 3                    # the same again, as a new run
  windlass rerun 3 -p day=2026-11-21
  windlass rerun 3 --detach           # let a worker execute it

`windlass retry` repeats the failed part of the same run.";

/// Submits the new run, and executes it here unless `--detach` is given.
pub(crate) fn execute(global: &GlobalOptions, args: &RerunArgs) -> Result<(), Failure> {
    let database = Database::existing(global)?;
    let run = find::named_run(&database, &args.run)?;
    let workflow = database.ask(|store| store.runs().workflow(run.id))?;
    let is_given = |name: &str| args.params.iter().any(|(given, _value)| given == name);
    let before: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(&run.params).unwrap_or_default();
    // A parameter without a value is null in the run.
    let kept = before.into_iter().filter(|(name, value)| !value.is_null() && !is_given(name));
    let kept = kept.map(|(name, value)| (name, Supplied::Json(value)));
    let given = args.params.iter().map(|(name, value)| (name.clone(), Supplied::Text(value.clone())));
    let params = params::bind(&workflow.params, kept.chain(given).collect())
        .map_err(|errors| invalid_params(&workflow, &errors))?;
    let new_run = NewRun { workflow, params, dir: run.dir, run_key: None, occasion: None };
    let file = database.ask(|store| store.runs().definitions(run.id))?.pop().and_then(|last| last.file);
    if args.detach {
        return submit::submit(global, Submission { run: new_run, file }, DefinitionVerb::Rerun);
    }
    execution::check_files(&database)?;
    let file = file.map(|file| (DefinitionVerb::Rerun, file));
    let submitted = database
        .change(format!("run {}", run.id), |store| store.runs().submit_from(new_run.clone(), file.clone()))?;
    execution::execute(global, &database, &[submitted.run_id], &args.work, args.show, OutputShape::One)
}
