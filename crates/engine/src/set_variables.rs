//! The variables that a job sets when it succeeds (`set_variables`). Pure: the one who has the result evaluates them, and the
//! transaction that ends the job writes them.

use std::collections::BTreeMap;

use serde_json::Value as Json;
use windlass_workflow::{Expression, limits};

/// A variable with its new value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetVariable {
    /// Its name.
    pub name: String,
    /// Its value, as JSON.
    pub value: String,
}

/// The new values. The error is for people, and has no values.
pub(crate) fn evaluate(
    expressions: &BTreeMap<String, Expression>,
    values: &Json,
) -> Result<Vec<SetVariable>, String> {
    let set = |(name, expression): (&String, &Expression)| {
        let refuse = |reason: String| format!("`set_variables.{name}` could not be evaluated: {reason}");
        let value = expression.known_value(values).map_err(|error| refuse(error.to_string()))?.to_string();
        check_size(&value).map_err(refuse)?;
        Ok(SetVariable { name: name.clone(), value })
    };
    expressions.iter().map(set).collect()
}

/// Checks the size of a value, given as JSON.
pub(crate) fn check_size(value: &str) -> Result<(), String> {
    match value.len() <= limits::VARIABLE_BYTES {
        true => Ok(()),
        false => Err(format!(
            "the value has {} bytes; the limit is {}; keep a large value in a file, and the name of the file in the \
             variable",
            value.len(),
            limits::VARIABLE_BYTES
        )),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn evaluated(expression: &str, values: &Json) -> Result<String, String> {
        let expression = Expression::parse(expression).expect("an expression");
        let all = evaluate(&BTreeMap::from([("cursor".to_owned(), expression)]), values)?;
        assert_eq!((all.len(), all[0].name.as_str()), (1, "cursor"));
        Ok(all[0].value.clone())
    }

    #[test]
    fn a_value_keeps_its_type_and_its_size_is_limited() {
        let values = json!({ "output": { "id": 7, "rows": [1, 2] }, "variables": { "n": 1 } });
        assert_eq!(evaluated("output.id", &values).as_deref(), Ok("7"));
        assert_eq!(evaluated("output.rows", &values).as_deref(), Ok("[1,2]"));
        assert_eq!(evaluated("variables.n + 1", &values).as_deref(), Ok("2"));
        assert_eq!(evaluated("variables.m | default('x')", &values).as_deref(), Ok("\"x\""));
        let large = json!({ "output": "x".repeat(limits::VARIABLE_BYTES - 2) });
        assert_eq!(evaluated("output", &large).map(|value| value.len()), Ok(limits::VARIABLE_BYTES));
        let larger = json!({ "output": "x".repeat(limits::VARIABLE_BYTES - 1) });
        let error = evaluated("output", &larger).expect_err("it is too large");
        assert!(error.contains("has 65537 bytes; the limit is 65536"), "{error}");
    }

    #[test]
    fn an_output_that_is_missing_is_no_value() {
        let error = evaluated("output.id", &json!({ "output": null })).expect_err("it has no value");
        let expected = "`set_variables.cursor` could not be evaluated: `output.id`: `output` is null";
        assert_eq!(error, expected);
        assert!(evaluated("output", &json!({ "output": null })).is_err());
    }
}
