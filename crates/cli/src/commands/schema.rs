//! `windlass schema`: prints the JSON Schema of workflow files.

use clap::Args;

use crate::error::Failure;
use crate::output;

/// Print the JSON Schema of workflow files, for editors
///
/// An editor with this schema completes keys, shows what they mean, and marks wrong ones. `windlass validate` checks more:
/// the names in a file, and its limits.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SchemaArgs {}

const EXAMPLES: &str = "\
Examples:
  mkdir -p .windlass && windlass schema > .windlass/schema.json
  sed -i '1i #:schema ./.windlass/schema.json' nightly.toml
  sed -i '1i # yaml-language-server: $schema=.windlass/schema.json' nightly.yaml";

/// Prints the schema.
pub(crate) fn execute(_args: &SchemaArgs) -> Result<(), Failure> {
    output::write_text(&schema_text())
}

/// The schema as a file has it.
pub(super) fn schema_text() -> String {
    let schema = serde_json::to_string_pretty(&windlass_workflow::schema::schema()).unwrap_or_default();
    format!("{schema}\n")
}
