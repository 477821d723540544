//! `windlass schema`: prints JSON Schemas: of workflow files, and of what the verbs print.

mod outputs;

use clap::{Args, ValueEnum};

use crate::arguments::GlobalOptions;
use crate::error::Failure;
use crate::find::nearest_name;
use crate::output;

/// Print the JSON Schema of workflow files, or of what verbs print
///
/// An editor with the schema of workflow files completes keys, shows what they mean, and marks wrong ones. `windlass
/// validate` checks more: the names in a file, and its limits.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SchemaArgs {
    /// Of what
    #[arg(value_name = "WHAT", default_value = "workflow", hide_default_value = true)]
    subject: Subject,

    /// Only what this verb prints, for example `schedule list`; `error` is the error on standard error
    #[arg(value_name = "VERB", num_args = 0..=2)]
    verb: Vec<String>,
}

/// What the schema describes. The comments are the help.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Subject {
    /// Workflow files (the default)
    Workflow,
    /// What each verb prints with `-o json`
    Output,
}

const EXAMPLES: &str = "\
Examples:
  mkdir -p .windlass && windlass schema > .windlass/schema.json
  sed -i '1i #:schema ./.windlass/schema.json' nightly.toml
  sed -i '1i # yaml-language-server: $schema=.windlass/schema.json' nightly.yaml
  windlass schema output                    # of all verbs
  windlass schema output schedule list";

/// Prints the schema.
pub(crate) fn execute(_global: &GlobalOptions, args: &SchemaArgs) -> Result<(), Failure> {
    let verb = args.verb.join(" ");
    match (args.subject, verb.as_str()) {
        (Subject::Workflow, "") => output::write_text(&schema_text()),
        (Subject::Workflow, verb) => Err(Failure::usage(
            format!("the schema of workflow files has no part `{verb}`"),
            format!("`windlass schema output {verb}` describes what a verb prints"),
        )),
        (Subject::Output, "") => output::write_text(&pretty(&outputs::of_all_verbs())),
        (Subject::Output, verb) => match outputs::of_verb(verb) {
            Some(schema) => output::write_text(&pretty(&schema)),
            None => Err(unknown(verb)),
        },
    }
}

fn unknown(verb: &str) -> Failure {
    let near = nearest_name(verb, outputs::verbs().into_iter());
    let hint = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
    Failure::not_found(
        format!("there is no verb `{verb}` that prints JSON"),
        format!("{hint}`windlass schema output` has all of them, under `properties`"),
    )
}

/// The schema of workflow files, as a file has it.
pub(super) fn schema_text() -> String {
    pretty(&windlass_workflow::schema::schema())
}

fn pretty(schema: &serde_json::Value) -> String {
    let schema = serde_json::to_string_pretty(schema).unwrap_or_default();
    format!("{schema}\n")
}
