//! Templates: `{{ expression }}` inside the items of `command`, values of `env`, `dir`, the key of a
//! `concurrency`, and the params of a schedule.
//!
//! Expressions are those of minijinja, cut down to what can neither run for long nor grow without
//! bound: look-ups, comparisons, sums and a few filters. There are no statements, no loops, no
//! functions, no repetition. [`expression`] holds that list; it is applied when a file is read and
//! again when a text is rendered. Memory is bounded by [`limits::EXPRESSION_BYTES`] times the largest
//! value that can be looked up, and what comes out by [`limits::TEMPLATE_OUTPUT_BYTES`].
//!
//! [`limits::EXPRESSION_BYTES`]: crate::limits::EXPRESSION_BYTES
//! [`limits::TEMPLATE_OUTPUT_BYTES`]: crate::limits::TEMPLATE_OUTPUT_BYTES

mod check;
mod date;
mod explain;
mod expression;
mod filters;
mod key;
mod names;
mod render;
mod split;

pub(crate) use check::{Reader, Scope, Templates, check, span_within};
pub use render::{TemplateError, render};

/// Whether the text has anything that the template language would look at.
#[must_use]
pub fn is_template(text: &str) -> bool {
    text.contains("{{") || text.contains("{%") || text.contains("{#")
}
