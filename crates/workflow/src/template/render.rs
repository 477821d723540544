//! Renders a text: replaces each expression by its value.

use minijinja::value::{Serde, Value};
use minijinja::{Error, ErrorKind};

use super::split::{Piece, expressions, reads_secrets, split};
use crate::expression::{Lookup, environment, explain, lookups, shorten, to_text};
use crate::limits;

/// Why a text could not be rendered. The message has names and no values, because values may be secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", prefix(.expression))]
pub struct TemplateError {
    /// The expression that failed, if the error belongs to one.
    pub expression: Option<String>,
    /// What is wrong.
    pub message: String,
}

fn prefix(expression: &Option<String>) -> String {
    expression.as_ref().map_or(String::new(), |expression| format!("{{{{ {expression} }}}}: "))
}

/// Replaces each expression in the text by its value.
///
/// The context is an object with `params`, `run` and `jobs`, as in
/// `{"params": {"day": "2026-01-31"}, "run": {"id": 3}, "jobs": {"count": {"output": 5}}}`.
/// A text is inserted as it is, and any other value as JSON.
///
/// # Errors
/// A look-up finds nothing or null, an expression is not allowed or fails, or the result is too long.
pub fn render(source: &str, context: &serde_json::Value) -> Result<String, TemplateError> {
    render_up_to(source, context, limits::TEMPLATE_OUTPUT_BYTES)
}

/// As [`render`], with another limit for the result.
///
/// # Errors
/// As [`render`].
pub fn render_up_to(
    source: &str,
    context: &serde_json::Value,
    bytes_max: usize,
) -> Result<String, TemplateError> {
    if !source.contains("{{") {
        return Ok(source.to_owned());
    }
    let pieces = split(source).map_err(|fault| TemplateError { expression: None, message: fault.message })?;
    let values = Value::from(Serde(context));
    let mut rendered = String::with_capacity(source.len());
    for piece in pieces {
        match piece {
            Piece::Literal(text) => rendered.push_str(text),
            Piece::Expression(expression, _) => {
                let text = evaluate(expression, &values, context)
                    .map_err(|message| TemplateError { expression: Some(shorten(expression)), message })?;
                rendered.push_str(&text);
            }
        }
        if rendered.len() > bytes_max {
            let message = format!("the text grows beyond {} KiB", bytes_max / 1024);
            return Err(TemplateError { expression: None, message });
        }
    }
    if rendered.contains('\0') {
        let message = "a value contains a NUL character, which no process can be given".to_owned();
        return Err(TemplateError { expression: None, message });
    }
    Ok(rendered)
}

/// The value of a text in a JSON value. A text that is one expression has the value of the expression, with its type.
/// Every other text is rendered.
///
/// # Errors
/// Those of [`render`].
pub fn render_json(source: &str, context: &serde_json::Value) -> Result<serde_json::Value, TemplateError> {
    let pieces = split(source).map_err(|fault| TemplateError { expression: None, message: fault.message })?;
    let [Piece::Expression(expression, _)] = pieces.as_slice() else {
        return render(source, context).map(serde_json::Value::from);
    };
    let value = value_of(expression, &Value::from(Serde(context)), context)
        .and_then(|value| serde_json::to_value(&value).map_err(|_| "the value is no JSON".to_owned()));
    value.map_err(|message| TemplateError { expression: Some(shorten(expression)), message })
}

/// The most texts in one value that [`made_of_secrets`] lists.
const TEXTS_OF_SECRETS: usize = 1_000;

/// The texts and numbers in the values of those expressions of a text that read secrets: of `{{ (secrets.LOGIN |
/// fromjson).password }}` the password. An expression without a value gives none.
#[must_use]
pub fn made_of_secrets(source: &str, context: &serde_json::Value) -> Vec<String> {
    let values = Value::from(Serde(context));
    let mut texts = Vec::new();
    for (expression, _range) in expressions(source) {
        if !reads_secrets(expression) {
            continue;
        }
        let value = value_of(expression, &values, context).ok();
        let mut waiting: Vec<serde_json::Value> =
            value.and_then(|value| serde_json::to_value(&value).ok()).into_iter().collect();
        while let Some(value) = waiting.pop().filter(|_| texts.len() < TEXTS_OF_SECRETS) {
            match value {
                serde_json::Value::Null | serde_json::Value::Bool(_) => (),
                serde_json::Value::Number(number) => texts.push(number.to_string()),
                serde_json::Value::String(text) => texts.push(text),
                serde_json::Value::Array(items) => waiting.extend(items),
                serde_json::Value::Object(fields) => {
                    waiting.extend(fields.into_iter().map(|(_, value)| value))
                }
            }
        }
    }
    texts
}

fn evaluate(expression: &str, values: &Value, context: &serde_json::Value) -> Result<String, String> {
    to_text(&value_of(expression, values, context)?)
}

/// The value of an expression, which must have one.
fn value_of(expression: &str, values: &Value, context: &serde_json::Value) -> Result<Value, String> {
    let lookups = lookups(expression).map_err(|fault| fault.message)?;
    let described = |error: Error| describe(&error, &lookups, context);
    let compiled = environment().compile_expression(expression).map_err(described)?;
    let value = compiled.eval(values.clone()).map_err(described)?;
    if value.is_undefined() || value.is_none() {
        return Err(explain(&lookups, context).unwrap_or_else(|| "has no value".to_owned()));
    }
    Ok(value)
}

fn describe(error: &Error, lookups: &[Lookup], context: &serde_json::Value) -> String {
    if error.kind() == ErrorKind::OutOfFuel {
        return "takes too many steps".to_owned();
    }
    if error.kind() == ErrorKind::UndefinedError
        && let Some(reason) = explain(lookups, context)
    {
        return reason;
    }
    error.detail().map_or_else(|| error.kind().to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    #[test]
    fn the_deepest_expression_fits_a_small_stack() {
        // The two braces count.
        let limit = crate::limits::EXPRESSION_BYTES - 2;
        let expressions = [
            "(".repeat(limit),
            "[".repeat(limit),
            "-".repeat(limit),
            "not ".repeat(limit / 4),
            format!("a{}", "+a".repeat(limit / 2 - 1)),
            format!("a{}", ".a".repeat(limit / 2 - 1)),
            format!("a{}", "|lower".repeat(limit / 6 - 1)),
            format!("a{}", " if a else a".repeat(limit / 12 - 1)),
            format!("{}a{}", "a[".repeat(limit / 3 - 1), "]".repeat(limit / 3 - 1)),
        ];
        let check = move || {
            for expression in expressions {
                let source = format!("{{{{{expression}}}}}");
                let _ = super::render(&source, &serde_json::json!({"a": 1}));
            }
        };
        // A thread has twice this stack by default, and a release build needs less.
        std::thread::Builder::new().stack_size(1024 * 1024).spawn(check).unwrap().join().unwrap();
    }
}
