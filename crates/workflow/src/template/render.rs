//! Evaluating the expressions of a text.

use minijinja::value::{Serde, Value};
use minijinja::{Error, ErrorKind};

use super::explain;
use super::expression::{self, Reference};
use super::filters::environment;
use super::split::{Piece, split};
use crate::limits;

/// Why a text could not be rendered. Names what is missing, never the values that are there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", place(.expression))]
pub struct TemplateError {
    /// The expression, when it is one that failed.
    pub expression: Option<String>,
    /// What is wrong.
    pub message: String,
}

fn place(expression: &Option<String>) -> String {
    expression.as_ref().map_or(String::new(), |expression| format!("{{{{ {expression} }}}}: "))
}

/// The text with the value of each expression in its place.
///
/// The context is an object with `params`, `run` and `jobs`, as in
/// `{"params": {"day": "2026-01-31"}, "run": {"id": 3}, "jobs": {"count": {"output": 5}}}`.
/// Texts come raw, numbers and booleans as in JSON, lists and objects as JSON. A missing value and
/// null are errors.
pub fn render(source: &str, context: &serde_json::Value) -> Result<String, TemplateError> {
    if !source.contains("{{") {
        return Ok(source.to_owned());
    }
    let pieces =
        split(source).map_err(|refusal| TemplateError { expression: None, message: refusal.message })?;
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
        if rendered.len() > limits::TEMPLATE_OUTPUT_BYTES {
            let message = format!("the text grows beyond {} KiB", limits::TEMPLATE_OUTPUT_BYTES / 1024);
            return Err(TemplateError { expression: None, message });
        }
    }
    if rendered.contains('\0') {
        let message = "a value contains a NUL character, which no program can be given".to_owned();
        return Err(TemplateError { expression: None, message });
    }
    Ok(rendered)
}

fn evaluate(expression: &str, values: &Value, context: &serde_json::Value) -> Result<String, String> {
    let references = expression::references(expression).map_err(|refusal| refusal.message)?;
    let explain = |error: Error| describe(&error, &references, context);
    let compiled = environment().compile_expression(expression).map_err(explain)?;
    let value = compiled.eval(values.clone()).map_err(explain)?;
    if value.is_undefined() || value.is_none() {
        return Err(explain::missing(&references, context).unwrap_or_else(|| "has no value".to_owned()));
    }
    to_text(&value)
}

/// A value as it goes into a text.
pub(super) fn to_text(value: &Value) -> Result<String, String> {
    if value.is_undefined() || value.is_none() {
        return Err("has no value".to_owned());
    }
    match value.as_str() {
        Some(text) => Ok(text.to_owned()),
        None => serde_json::to_string(value).map_err(|_| "the value cannot be written as JSON".to_owned()),
    }
}

fn describe(error: &Error, references: &[Reference], context: &serde_json::Value) -> String {
    if error.kind() == ErrorKind::OutOfFuel {
        return "takes too many steps".to_owned();
    }
    if error.kind() == ErrorKind::UndefinedError
        && let Some(reason) = explain::missing(references, context)
    {
        return reason;
    }
    error.detail().map_or_else(|| error.kind().to_string(), str::to_owned)
}

/// Characters of an expression that a message repeats.
const SHOWN: usize = 80;

fn shorten(expression: &str) -> String {
    let expression = expression.trim();
    match expression.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &expression[..end]),
        None => expression.to_owned(),
    }
}
