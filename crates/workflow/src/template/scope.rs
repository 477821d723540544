//! What a template may look up, and the templates that are still to be checked.

use crate::job_names::JobNames;
use crate::params::Param;
use crate::report::Span;
use crate::tree::{Node, Value};

/// What a template belongs to. It decides which names the template can look up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TemplateOwner {
    /// The whole workflow: `params` and `run`. No outputs, because the template belongs to no single job.
    Workflow,
    /// A job: `params`, `run`, and the outputs of the jobs that it needs, directly or not.
    Job,
    /// A concurrency key, which is rendered before the run exists: `params` and `run.workflow`.
    ConcurrencyKey,
    /// A schedule, which makes the params of a run: `scheduled_for`.
    Schedule,
}

/// The names that a template can look up, and the text of the file for positions in it.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'a> {
    /// The text of the file.
    pub(crate) file: &'a str,
    pub(crate) params: &'a [Param],
    pub(crate) jobs: &'a JobNames<'a>,
    pub(crate) owner: TemplateOwner,
}

/// The templates of one job or of the workflow. They are checked when all names of the file are known.
#[derive(Debug, Default)]
pub(crate) struct Templates<'t> {
    pub(super) texts: Vec<TemplateText<'t>>,
}

/// A text with templates.
#[derive(Debug)]
pub(super) struct TemplateText<'t> {
    pub(super) text: &'t str,
    /// Where the file has the text.
    pub(super) span: Span,
    /// The owner, if it is another than that of the other templates.
    pub(super) owner: Option<TemplateOwner>,
}

impl<'t> Templates<'t> {
    /// Adds the node if it is a text with a template.
    pub(crate) fn add(&mut self, node: &'t Node<'_>) {
        self.add_node(node, None);
    }

    /// Adds a concurrency key if it has a template.
    pub(crate) fn add_concurrency_key(&mut self, node: &'t Node<'_>) {
        self.add_node(node, Some(TemplateOwner::ConcurrencyKey));
    }

    /// Adds a text that is in no file. Errors in it have no position.
    pub(crate) fn add_text(&mut self, text: &'t str) {
        self.texts.push(TemplateText { text, span: 0..0, owner: None });
    }

    fn add_node(&mut self, node: &'t Node<'_>, owner: Option<TemplateOwner>) {
        if let Value::Text(text) = &node.value
            && super::is_template(text)
        {
            self.texts.push(TemplateText { text, span: node.span.clone(), owner });
        }
    }
}
