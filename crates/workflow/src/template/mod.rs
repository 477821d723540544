//! Templates: `{{ expression }}` in the texts of a workflow. The guide lists the keys that may have templates
//! (`docs/guide/workflow-file.md`).
//!
//! The expressions are those of minijinja, restricted so that none can run for long or fill the memory: look-ups,
//! comparisons, sums and a few filters. There are no statements, loops, functions or repetition. `expression` has the
//! list of what is allowed. It is applied when a file is read, and again when a text is rendered.
//!
//! An expression needs at most [`limits::EXPRESSION_BYTES`] times the memory of the largest value that it can look up. A
//! rendered text has at most [`limits::TEMPLATE_OUTPUT_BYTES`].
//!
//! [`limits::EXPRESSION_BYTES`]: crate::limits::EXPRESSION_BYTES
//! [`limits::TEMPLATE_OUTPUT_BYTES`]: crate::limits::TEMPLATE_OUTPUT_BYTES

mod check;
mod date;
mod expression;
mod filters;
mod lookup;
mod missing;
mod names;
mod place;
mod render;
mod scope;
mod split;
mod text;

pub(crate) use check::{check, span_within};
pub use place::Place;
pub use render::{TemplateError, render};
pub(crate) use scope::{Scope, Templates};

/// Whether the text has `{{`, `{%` or `{#`, which have a meaning in templates.
#[must_use]
pub fn is_template(text: &str) -> bool {
    text.contains("{{") || text.contains("{%") || text.contains("{#")
}
