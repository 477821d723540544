//! Reasons as JSON.

use serde::Serialize;

use super::JobView;

/// A job and why it is where it is.
#[derive(Debug, Serialize)]
pub(crate) struct WhyView {
    pub(crate) job: JobView,
    pub(crate) reasons: Vec<ReasonView>,
}

/// One reason: a word for programs and a sentence for people.
#[derive(Debug, Serialize)]
pub(crate) struct ReasonView {
    pub(crate) kind: &'static str,
    pub(crate) text: String,
}
