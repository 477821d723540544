//! Names of other tools in expressions, and the ones that stand for them here.

use super::lookup::Segment;

/// What to write instead of a look-up that begins with a name of another tool.
pub(super) fn instead_of(path: &[Segment]) -> Option<String> {
    let names: Vec<&str> = path
        .iter()
        .map_while(|segment| match segment {
            Segment::Name(name) => Some(name.as_str()),
            Segment::Index(_) | Segment::Computed => None,
        })
        .collect();
    Some(match names.as_slice() {
        ["env", name, ..] => {
            format!("a script has it as ${name}; a file reads no environment, so declare a parameter")
        }
        ["inputs" | "input", name, ..] => format!("write params.{name}"),
        ["vars" | "kv", name, ..] => format!("write variables.{name}"),
        ["secret", name, ..] => format!("write secrets.{name}, and declare it under [secrets]"),
        ["matrix" | "each", name, ..] => format!("write item.{name}"),
        ["steps" | "tasks" | "needs" | "outputs", job, rest @ ..] => {
            let field = match rest {
                ["result" | "status" | "outcome" | "conclusion" | "state", ..] => "status".to_owned(),
                ["outputs" | "output", name, ..] => format!("output.{name}"),
                _ => "output".to_owned(),
            };
            format!("write jobs.{job}.{field}")
        }
        [
            "github"
            | "trigger"
            | "workflow"
            | "execution"
            | "flow"
            | "dag_run"
            | "ti"
            | "ds"
            | "data_interval_start",
            ..,
        ] => {
            "a trigger or a schedule sets a parameter in its `params`, and `params.NAME` reads it".to_owned()
        }
        _ => return None,
    })
}
