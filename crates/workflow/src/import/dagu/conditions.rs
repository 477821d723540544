//! `preconditions` of Dagu: commands, and values with what they must be.

use super::dag::Reader;
use super::references::{has_command, references};
use super::values::{find, items, plain_key, quoted, scalar, shell_word, table, text};
use crate::tree::Node;

/// The exit code with which a script says that its condition does not hold.
pub(super) const NOT_TO_RUN: i64 = 99;

/// A condition for a step.
#[derive(Debug, Clone)]
pub(super) struct Condition {
    condition: String,
    expected: Option<String>,
    is_negated: bool,
}

pub(super) fn of_node(node: &Node<'_>, document: &str) -> Vec<Condition> {
    items(node).into_iter().filter_map(|item| read(item, document)).collect()
}

/// The keys of a condition that [`read`] reads.
const KEYS: [&str; 4] = ["condition", "command", "expected", "negate"];

fn read(item: &Node<'_>, document: &str) -> Option<Condition> {
    let is_written = |text: &String| !text.is_empty();
    if let Some(text) = text(item) {
        let condition = Some(text.to_owned()).filter(is_written)?;
        return Some(Condition { condition, expected: None, is_negated: false });
    }
    let entries = table(item);
    let field = |key: &str| find(entries, &[key]).and_then(|entry| scalar(&entry.node, document));
    let condition = field("condition").or_else(|| field("command")).filter(is_written)?;
    let expected = match find(entries, &["expected"]) {
        Some(entry) => Some(scalar(&entry.node, document)?),
        None => None,
    };
    let is_negated = field("negate").is_some_and(|negate| negate == "true");
    Some(Condition { condition, expected, is_negated })
}

/// Names what [`of_node`] does not read.
pub(super) fn leave_out_unread(node: &Node<'_>, reader: &mut Reader<'_>, lines: &mut Vec<String>) {
    for item in items(node) {
        if read(item, reader.document).is_none() {
            reader.leave_out_item(item, "without this condition it always runs; write it as `if`", lines);
            continue;
        }
        for entry in table(item).iter().filter(|entry| !KEYS.contains(&plain_key(entry).as_str())) {
            reader.leave_out(entry, "a condition has no such key", lines);
        }
    }
}

impl Condition {
    /// The texts that may name variables.
    pub(super) fn text(&self) -> &str {
        &self.condition
    }

    /// The condition as an expression, if it compares one known name with a text. `known` gives the look-up of a name.
    pub(super) fn expression(&self, known: impl Fn(&str) -> Option<String>) -> Option<String> {
        let expected = self
            .expected
            .as_ref()
            .filter(|text| !text.starts_with("re:") && !text.contains(['$', '`', '\'']))?;
        let found = references(&self.condition);
        let [reference] = found.as_slice() else { return None };
        if reference.range != (0..self.condition.len())
            || !reference.path.is_empty()
            || has_command(&self.condition)
        {
            return None;
        }
        let operator = if self.is_negated { "!=" } else { "==" };
        Some(format!("{} {operator} '{expected}'", known(&reference.name)?))
    }

    /// A line of a script that ends it if the condition does not hold.
    pub(super) fn guard(&self, for_script: impl Fn(&str) -> String) -> String {
        let condition = for_script(self.condition.trim());
        let test = match &self.expected {
            None => format!("{{ {condition}; }}"),
            Some(expected) => {
                let value = match has_command(&condition) || !references(&condition).is_empty() {
                    true => format!("\"{}\"", condition.replace('"', "\\\"")),
                    false => shell_word(&condition),
                };
                match expected.strip_prefix("re:") {
                    Some(pattern) => format!("printf '%s' {value} | grep -Eq -- {}", shell_word(pattern)),
                    None => format!("[ {value} = {} ]", shell_word(&for_script(expected))),
                }
            }
        };
        match self.is_negated {
            true => format!("! {test} || exit {NOT_TO_RUN}"),
            false => format!("{test} || exit {NOT_TO_RUN}"),
        }
    }
}

/// The line that makes the guard's exit code a skip.
pub(super) fn skip_line() -> String {
    format!("skip_if = {}", quoted(&format!("exit_code == {NOT_TO_RUN}")))
}

/// The conditions of a step, from the table of the step.
pub(super) fn of_table(entries: &[crate::tree::Entry<'_>], document: &str) -> Vec<Condition> {
    let entry = find(entries, &["preconditions", "precondition"]);
    entry.map(|entry| of_node(&entry.node, document)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condition(condition: &str, expected: Option<&str>) -> Condition {
        Condition {
            condition: condition.to_owned(),
            expected: expected.map(str::to_owned),
            is_negated: false,
        }
    }

    #[test]
    fn a_known_name_becomes_an_expression_and_everything_else_a_guard() {
        let known = |name: &str| (name == "MODE").then(|| "params.MODE".to_owned());
        let expression = |text: &str, expected| condition(text, expected).expression(known);
        assert_eq!(expression("$MODE", Some("full")).as_deref(), Some("params.MODE == 'full'"));
        assert_eq!(expression("${MODE}", Some("re:f.*")), None);
        assert_eq!(expression("$OTHER", Some("x")), None);
        assert_eq!(expression("$MODE", None), None);
        assert_eq!(condition("test -f x", None).guard(str::to_owned), "{ test -f x; } || exit 99");
        assert_eq!(
            condition("`date +%d`", Some("01")).guard(str::to_owned),
            "[ \"`date +%d`\" = 01 ] || exit 99"
        );
        assert_eq!(
            condition("$A", Some("re:^x")).guard(str::to_owned),
            "printf '%s' \"$A\" | grep -Eq -- '^x' || exit 99"
        );
    }
}
