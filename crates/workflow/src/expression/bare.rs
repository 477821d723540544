//! Expressions that stand bare in a key of the file, without braces.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::evaluate::evaluate;
use super::fault::Fault;
use super::lookup::Lookup;
use super::reads::JobRead;
use super::types::kind_of;
use super::{lookups, missing};
use crate::limits;

/// An expression that was parsed. The stored form is its text.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Expression {
    /// A job has several expressions, and a file many jobs: this is smaller than a `String`.
    text: Box<str>,
}

/// Why an expression can't be used or has no value. The message has names and no values, because values may be secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{expression}`: {message}")]
pub struct ExpressionError {
    /// The expression.
    pub expression: String,
    /// What is wrong.
    pub message: String,
}

impl Expression {
    /// Parses an expression. The names in it are checked when its workflow is checked.
    ///
    /// # Errors
    /// The text is no expression, has a part that is not allowed, or is longer than [`limits::EXPRESSION_BYTES`].
    pub fn parse(text: impl Into<String>) -> Result<Expression, ExpressionError> {
        let text: String = text.into();
        match parse(&text) {
            Ok(_lookups) => Ok(Expression { text: text.into_boxed_str() }),
            Err(fault) => {
                let message =
                    [Some(fault.message), fault.help].into_iter().flatten().collect::<Vec<_>>().join("; ");
                Err(ExpressionError { expression: shorten(&text), message })
            }
        }
    }

    /// An expression whose text is checked later, with the names of the file.
    pub(crate) fn unchecked(text: &str) -> Expression {
        Expression { text: text.into() }
    }

    /// The text, as in the file.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What the expression reads of other jobs, sorted, without duplicates.
    #[must_use]
    pub fn reads(&self) -> Vec<JobRead> {
        let mut reads: Vec<JobRead> = self.lookups().iter().filter_map(JobRead::of).collect();
        reads.sort_unstable();
        reads.dedup();
        reads
    }

    /// The names of the variables that the expression reads, sorted, without duplicates.
    #[must_use]
    pub fn variables_read(&self) -> Vec<String> {
        let mut names: Vec<String> =
            self.lookups().iter().filter_map(Lookup::variable).map(str::to_owned).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Whether the condition holds for these values: an object with `params`, `run`, `jobs` and the names of the place.
    ///
    /// Null is unequal to everything, and neither less nor greater. So `exit_code != 64` holds for an attempt that has no
    /// exit code, and neither `exit_code < 64` nor `exit_code > 64` does.
    ///
    /// # Errors
    /// The result is neither true nor false, a look-up finds nothing, or the evaluation takes more than
    /// [`limits::TEMPLATE_FUEL`] steps.
    pub fn holds(&self, values: &Json) -> Result<bool, ExpressionError> {
        match self.value(values)? {
            Json::Bool(holds) => Ok(holds),
            Json::Null => {
                let reason = missing::explain(&self.lookups(), values);
                Err(self.error(reason.unwrap_or_else(|| "it has no value".to_owned())))
            }
            other @ (Json::Number(_) | Json::String(_) | Json::Array(_) | Json::Object(_)) => {
                Err(self.error(format!("it gives {}, not true or false", kind_of(&other))))
            }
        }
    }

    /// The value of the expression for these values.
    ///
    /// # Errors
    /// As [`Expression::holds`], but every value is allowed.
    pub fn value(&self, values: &Json) -> Result<Json, ExpressionError> {
        evaluate(&self.text, values).map_err(|message| self.error(message))
    }

    /// The value of the expression, which must not be null because of a look-up.
    ///
    /// # Errors
    /// As [`Expression::value`], and the reason why it is null.
    pub fn known_value(&self, values: &Json) -> Result<Json, ExpressionError> {
        let value = self.value(values)?;
        match missing::explain(&self.lookups(), values).filter(|_| value.is_null()) {
            Some(reason) => Err(self.error(reason)),
            None => Ok(value),
        }
    }

    /// The names that the expression reads.
    pub(crate) fn lookups(&self) -> Vec<Lookup> {
        lookups(&self.text).unwrap_or_default()
    }

    fn error(&self, message: String) -> ExpressionError {
        ExpressionError { expression: shorten(&self.text), message }
    }
}

impl TryFrom<String> for Expression {
    type Error = ExpressionError;

    fn try_from(text: String) -> Result<Expression, ExpressionError> {
        Expression::parse(text)
    }
}

impl From<Expression> for String {
    fn from(expression: Expression) -> String {
        expression.text.into_string()
    }
}

/// What to do about an expression that is too long.
pub(crate) const TOO_LONG_HELP: &str = "calculate a part of it in a job, and read the output of this job";

/// Checks the length and the form of a text, and gives its look-ups.
pub(crate) fn parse(text: &str) -> Result<Vec<Lookup>, Fault> {
    if text.len() > limits::EXPRESSION_BYTES {
        let message = format!("an expression may have at most {} bytes", limits::EXPRESSION_BYTES);
        return Err(Fault::new(0..text.len(), message).help(TOO_LONG_HELP));
    }
    lookups(text).map_err(|fault| match text.contains("{{") {
        true => Fault::new(0..text.len(), "an expression stands without braces").help("remove the braces"),
        false => fault,
    })
}

/// The number of characters of an expression that a message repeats.
const SHOWN: usize = 80;

/// The expression for a message.
pub(crate) fn shorten(expression: &str) -> String {
    let expression = expression.trim();
    match expression.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &expression[..end]),
        None => expression.to_owned(),
    }
}
