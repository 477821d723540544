//! Templates: `{{ expression }}` in the texts of a workflow. The guide lists the keys that may have templates
//! (`docs/guide/workflow-file.md`).
//!
//! An expression needs at most [`limits::EXPRESSION_BYTES`] times the memory of the largest value that it can look up. A
//! rendered text has at most [`limits::TEMPLATE_OUTPUT_BYTES`].
//!
//! [`limits::EXPRESSION_BYTES`]: crate::limits::EXPRESSION_BYTES
//! [`limits::TEMPLATE_OUTPUT_BYTES`]: crate::limits::TEMPLATE_OUTPUT_BYTES

mod check;
mod render;
mod script;
mod split;
mod texts;
mod variables;

pub(crate) use check::{Read, check, span_within};
pub use render::{TemplateError, made_of_secrets, render, render_json, render_up_to};
pub(crate) use split::expressions;
pub use split::secrets_read;
pub(crate) use texts::Templates;
pub use variables::{variables_read, variables_read_in};

/// Whether the text has `{{`, `{%` or `{#`, which have a meaning in templates.
#[must_use]
pub fn is_template(text: &str) -> bool {
    text.contains("{{") || text.contains("{%") || text.contains("{#")
}
