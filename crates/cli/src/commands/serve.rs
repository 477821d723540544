//! `windlass serve`: the one long-running process.

use clap::Args;
use windlass::workflow::Workflow;

use crate::cli::GlobalOptions;
use crate::error::Failure;
use crate::output::{self, Format};
use crate::service::{self, ConfigRead, ServiceOptions, Settings};
use crate::style::{GREEN, paint};
use crate::workflow_files::{self, Collection};
use crate::{describe, logging};

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
  windlass serve --workflows /etc/windlass/workflows --db /var/lib/windlass/windlass.db
  windlass serve --config /etc/windlass/windlass.toml
  windlass serve --check

SIGTERM drains: what runs may finish within --grace, then others take it over. SIGHUP reads the
configuration and the folder again. Any number of them may serve one database.";

/// Serves, or checks.
pub(crate) fn execute(global: GlobalOptions, args: &ServeArgs) -> Result<(), Failure> {
    let (settings, configured) = Settings::read(&args.options, ConfigRead::First)?;
    let global = global.configured(configured);
    logging::start(settings.log_level, settings.log_format);
    if global.output != Format::Text {
        return Err(Failure::usage(
            "a service prints no data, so -o does not apply",
            "--log-format json makes its log one object a line",
        ));
    }
    if args.check { check(&global, &settings) } else { service::serve(&global, &args.options, settings) }
}

/// Says what would hold, and everything that is wrong with the workflows.
fn check(global: &GlobalOptions, settings: &Settings) -> Result<(), Failure> {
    global.database().place()?;
    output::write_text(&settings.text(global))?;
    let Some(folder) = &settings.workflows else { return Ok(()) };
    workflow_files::files_below(folder)?;
    let Collection { good, broken } = workflow_files::collect(std::slice::from_ref(folder))?;
    for file in &good {
        output::write_text(&format!("{}: {}", file.path.display(), summary(&file.workflow)))?;
    }
    workflow_files::say(&broken);
    match broken.len() {
        0 => Ok(()),
        invalid => {
            let all = good.len() + invalid;
            Err(Failure::InvalidFiles { message: Some(format!("{invalid} of {all} files cannot be used")) })
        }
    }
}

fn summary(workflow: &Workflow) -> String {
    let valid = paint(GREEN, "valid");
    match workflow.schedules.is_empty() {
        true => format!("{valid}, workflow `{}`, no schedule", workflow.name),
        false => format!("{valid}, workflow `{}`, {}", workflow.name, describe::schedules(workflow)),
    }
}
