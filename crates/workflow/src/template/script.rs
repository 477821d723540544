//! Finds templates in scripts, which are no templates.

use std::ops::Range;

use super::check::span_within;
use super::texts::LookingUpText;
use crate::expression::{HasItems, Scope};
use crate::params;
use crate::report::{Finding, Findings};

/// Reports the first part of a script that looks like a template of ours. Braces of other programs, as in `docker inspect
/// --format '{{.State}}'`, go to the shell.
pub(super) fn check(text: &LookingUpText<'_>, scope: &Scope<'_>, findings: &mut Findings) {
    let is_ours = |(expression, _range): &(&str, Range<usize>)| reads_values(expression, scope.has_items);
    let Some((expression, range)) = braces(text.text).find(is_ours) else { return };
    let span = span_within(scope.file, &text.span, text.text, &range);
    let message = "`run` is no template, so the braces would go to the shell as they are";
    let help = instead(expression, scope, findings);
    findings.push(Finding::new(span, message).help(help));
}

/// The texts between `{{` and `}}`, with the ranges of both together with the braces.
fn braces(text: &str) -> impl Iterator<Item = (&str, Range<usize>)> {
    text.match_indices("{{").filter_map(|(open, _braces)| {
        let rest = &text[open + 2..];
        let end = rest.find("}}")?;
        Some((rest[..end].trim(), open..open + 2 + end + 2))
    })
}

/// Whether the expression begins with a name that templates know.
fn reads_values(expression: &str, has_items: HasItems) -> bool {
    const TABLES: [&str; 4] = ["params.", "jobs.", "run.", "secrets."];
    let is_item = |name: &str| {
        let rest = expression.strip_prefix(name);
        rest.is_some_and(|rest| {
            rest.is_empty() || rest.starts_with(['.', '[']) || rest.trim_start().starts_with('|')
        })
    };
    TABLES.iter().any(|table| expression.starts_with(table))
        || (has_items == HasItems::Yes && (is_item("item") || is_item("index")))
}

/// How a script gets the value.
fn instead(expression: &str, scope: &Scope<'_>, findings: &mut Findings) -> String {
    let is_name = |name: &&str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let known = || scope.params.iter().map(|param| param.name.as_str());
    match expression.strip_prefix("params.").filter(is_name) {
        Some(param) if known().any(|name| name == param) => {
            format!("write \"${}\", which every job has", params::env_name(param))
        }
        Some(param) => match findings.nearest(param, known()) {
            Some(near) => format!("write \"${}\"; there is no parameter `{param}`", params::env_name(near)),
            None => format!(
                "declare the parameter, as in params = {{ {param} = {{}} }}, and write \"${}\"",
                params::env_name(param)
            ),
        },
        None => {
            format!(
                "write env = {{ VALUE = \"{{{{ {expression} }}}}\" }} in the job, and \"$VALUE\" in the script"
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_templates_count() {
        for ours in ["params.x", "jobs.a.output | json", "run.id", "secrets.TOKEN"] {
            assert!(reads_values(ours, HasItems::No), "{ours}");
        }
        for item in ["item", "item.name", "item[0]", "index", "item | json"] {
            assert!(reads_values(item, HasItems::Yes) && !reads_values(item, HasItems::No), "{item}");
        }
        for other in [".State", "index .Config.Env 0", "range .Mounts", "items", "param", "$x", "jobs", ""] {
            assert!(!reads_values(other, HasItems::Yes), "{other}");
        }
    }

    #[test]
    fn braces_are_found_between_other_braces() {
        let found: Vec<&str> =
            braces("${#a[@]} {{.State}} {{ params.x }} {{").map(|(text, _)| text).collect();
        assert_eq!(found, [".State", "params.x"]);
    }
}
