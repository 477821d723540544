//! `windlass approve` and `windlass reject`: a person decides about a job that waits for an approval.

use clap::Args;
use windlass_engine::store::{Job, Subject, Verdict};
use windlass_views::JobView;
use windlass_workflow::params::{self, Supplied};

use crate::arguments::{GlobalOptions, OutputFormat, RunOrJob};
use crate::complete;
use crate::database::{Database, present_user};
use crate::error::Failure;
use crate::output::Output;
use crate::submission::{describe_param, parse_pair};
use crate::{find, stderr};

/// Approve a job that waits for it
#[derive(Debug, Args)]
#[command(after_help = APPROVE_EXAMPLES)]
pub(crate) struct ApproveArgs {
    /// The run (3, latest, nightly), or the job itself (3/release, j42)
    #[arg(value_name = "RUN|JOB", add = complete::run_or_job())]
    address: RunOrJob,

    /// The job of the run, by its name
    #[arg(value_name = "JOB", add = complete::job_of_run("address"))]
    job: Option<String>,

    /// A field of the approval, as NAME=VALUE
    #[arg(short = 'p', long = "param", value_name = "NAME=VALUE", value_parser = parse_pair)]
    fields: Vec<(String, String)>,

    /// Who approves [default: the user of this process]
    #[arg(long, value_name = "NAME", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    by: Option<String>,
}

const APPROVE_EXAMPLES: &str = "\
Examples:
  windlass approve 3/release
  windlass approve latest release
  windlass approve 3 release -p version=1.4 --by ada

Who approves is recorded, and not proved.";

/// Reject a job that waits for an approval
#[derive(Debug, Args)]
#[command(after_help = REJECT_EXAMPLES)]
pub(crate) struct RejectArgs {
    /// The run (3, latest, nightly), or the job itself (3/release, j42)
    #[arg(value_name = "RUN|JOB", add = complete::run_or_job())]
    address: RunOrJob,

    /// The job of the run, by its name
    #[arg(value_name = "JOB", add = complete::job_of_run("address"))]
    job: Option<String>,

    /// Why
    #[arg(long, value_name = "TEXT", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    reason: String,

    /// Who rejects [default: the user of this process]
    #[arg(long, value_name = "NAME", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    by: Option<String>,
}

const REJECT_EXAMPLES: &str = "\
Examples:
  windlass reject 3 release --reason 'the tests of ada are red'

The job fails, and is not tried again.";

/// Checks the fields and approves.
pub(crate) fn approve(global: &GlobalOptions, args: &ApproveArgs) -> Result<(), Failure> {
    let database = Database::existing(global)?;
    let job = find::job(&database, &args.address, args.job.as_deref())?;
    let approval = database.ask(|store| store.jobs().approval(job.id))?;
    let declared = approval.map(|approval| approval.fields).unwrap_or_default();
    let given =
        args.fields.iter().map(|(name, value)| (name.clone(), Supplied::Text(value.clone()))).collect();
    let fields = params::bind(&declared, given).map_err(|errors| {
        let lines: Vec<String> =
            declared.iter().map(|field| format!("\n  {}", describe_param(field))).collect();
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        let help = match lines.is_empty() {
            true => "this approval has no fields; leave them out".to_owned(),
            false => format!("the fields are:{}", lines.concat()),
        };
        let message = errors.join("; ").replace("this workflow has no parameters", "it has no fields");
        Failure::InvalidParameters { message: message.replace("parameter", "field"), help }
    })?;
    let by = args.by.clone().unwrap_or_else(present_user);
    decide(global, &database, &job, Verdict::Approve { by, fields }, "approved")
}

/// Rejects.
pub(crate) fn reject(global: &GlobalOptions, args: &RejectArgs) -> Result<(), Failure> {
    let database = Database::existing(global)?;
    let job = find::job(&database, &args.address, args.job.as_deref())?;
    let by = args.by.clone().unwrap_or_else(present_user);
    decide(global, &database, &job, Verdict::Reject { by, reason: args.reason.clone() }, "rejected")
}

fn decide(
    global: &GlobalOptions,
    database: &Database,
    job: &Job,
    verdict: Verdict,
    done: &str,
) -> Result<(), Failure> {
    match database.change(Subject::Job(job.id), |store| store.jobs().decide_approval(job.id, verdict.clone()))
    {
        Err(Failure::Conflict { message, .. }) => {
            let why = global.hint(&format!("why j{}", job.id));
            return Err(Failure::Conflict { message, help: format!("`{why}` says what it waits for") });
        }
        answer => answer?,
    }
    stderr::note(&format!("job {} is {done}", job.label()));
    if global.output == OutputFormat::Text {
        return Ok(());
    }
    let view = database.ask(|store| JobView::read(store, &store.jobs().get(job.id)?))?;
    Output { format: global.output }.object(&view, |_| String::new())
}
