//! Which variables the texts of a job read.

use std::collections::BTreeSet;

use serde_json::Value as Json;

use super::split::expressions;
use crate::expression::{self, Lookup};

/// What a text must contain to read a variable.
const ROOT: &str = "variables";

/// The names of the variables that the templates in a text read. A text that is no valid template reads none.
#[must_use]
pub fn variables_read(text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    add_names(text, &mut names);
    names
}

/// The names of the variables that the texts in a JSON value may read: its templates, and its texts that are expressions. A
/// text that is neither reads none. A plain text that looks like an expression may give a name that nobody reads.
#[must_use]
pub fn variables_read_in(json: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    // Most rows name none, and are not parsed.
    if json.contains(ROOT)
        && let Ok(json) = serde_json::from_str::<Json>(json)
    {
        add_all(&json, &mut names);
    }
    names
}

fn add_all(json: &Json, names: &mut BTreeSet<String>) {
    match json {
        Json::String(text) => add_names(text, names),
        Json::Array(items) => items.iter().for_each(|item| add_all(item, names)),
        Json::Object(fields) => fields.values().for_each(|value| add_all(value, names)),
        Json::Null | Json::Bool(_) | Json::Number(_) => {}
    }
}

fn add_names(text: &str, names: &mut BTreeSet<String>) {
    if !text.contains(ROOT) {
        return;
    }
    let mut add = |lookups: Vec<Lookup>| {
        names.extend(lookups.iter().filter_map(Lookup::variable).map(str::to_owned));
    };
    if text.contains("{{") {
        for (expression, _range) in expressions(text) {
            add(expression::lookups(expression).unwrap_or_default());
        }
    } else {
        // It checks the length before it parses.
        add(expression::parse(text).unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(json: &str) -> Vec<String> {
        variables_read_in(json).into_iter().collect()
    }

    #[test]
    fn templates_and_expressions_anywhere_in_a_value_read_variables() {
        let json = r#"{"command": ["x", "{{ variables.b }}-{{ variables['a'] | upper }}"],
                       "if": "params.x == variables.c.field", "run": "echo variables.no-name {{ variables. }}"}"#;
        assert_eq!(names(json), ["a", "b", "c"]);
    }

    #[test]
    fn other_texts_read_none() {
        for json in
            ["{}", "no JSON: variables.a", r#"{"run": "if variables.a then"}"#, r#"["params.variables"]"#]
        {
            assert!(names(json).is_empty(), "{json}");
        }
        assert!(variables_read("variables.a").contains("a"));
    }
}
