//! `windlass serve`: a service that registers, schedules and executes workflows.

use clap::Args;
use windlass_workflow::Workflow;

use crate::arguments::GlobalOptions;
use crate::error::Failure;
use crate::service::{self, ConfigRead, ServiceOptions, Settings};
use crate::text::schedules;
use crate::text::style::{GREEN, paint};
use crate::text::values::counted;
use crate::workflow_files::{self, Collection};
use crate::{logging, output};

/// Run as a service: register, schedule and execute workflows
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    options: ServiceOptions,

    /// Only check the configuration and the workflows, and print the settings
    #[arg(long)]
    check: bool,
}

const EXAMPLES: &str = "\
Examples:
  windlass serve
  windlass serve --workflows workflows --db /var/lib/windlass/windlass.db
  windlass serve --config /etc/windlass/windlass.toml
  windlass serve --check

On SIGTERM, running jobs have the time of --grace to finish; after it they are
stopped, and another worker runs them again. On SIGHUP, the service reads the
configuration and the folder again. Any number of services can share one
database.";

/// Runs the service, or only checks its settings.
pub(crate) fn execute(global: GlobalOptions, args: &ServeArgs) -> Result<(), Failure> {
    let (settings, configured) = Settings::read(&global, &args.options, ConfigRead::First)?;
    let global = global.configured(configured);
    logging::start(logging::service_level(settings.log_level, &global), settings.log_format);
    let next_step = "use --log-format json for a log with one JSON object per line";
    output::refuse_json(&global, "serve", "a log", next_step)?;
    if args.check { check(&global, &settings) } else { service::serve(&global, &args.options, settings) }
}

/// Prints the settings, and every error of the workflows.
fn check(global: &GlobalOptions, settings: &Settings) -> Result<(), Failure> {
    global.database().address()?;
    output::write_text(&settings.text(global))?;
    let Some(folder) = &settings.workflows else { return Ok(()) };
    workflow_files::files_below(folder)?;
    let Collection { valid, invalid } = workflow_files::collect(std::slice::from_ref(folder))?;
    for file in &valid {
        output::write_text(&format!("{}: {}", file.path.display(), summary(&file.workflow)))?;
    }
    let errors = workflow_files::report_failures(&invalid, global.output);
    match invalid.len() {
        0 => Ok(()),
        invalid => {
            let all = valid.len() + invalid;
            let message = Some(format!("{invalid} of {all} files are invalid"));
            Err(Failure::InvalidFiles { message, errors })
        }
    }
}

fn summary(workflow: &Workflow) -> String {
    let valid = paint(GREEN, "valid");
    let schedules = match workflow.schedules.is_empty() {
        true => "no schedule".to_owned(),
        false => schedules::summaries(workflow),
    };
    let triggers = match workflow.triggers.len() {
        0 => String::new(),
        count => format!(", {}", counted(count as i64, "trigger", "triggers")),
    };
    format!("{valid}, workflow `{}`, {schedules}{triggers}", workflow.name)
}
