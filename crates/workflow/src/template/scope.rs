//! The names in a file, and the templates that are still to be checked.

use super::Place;
use crate::job_names::JobNames;
use crate::keys::{Key, TextKind};
use crate::params::Param;
use crate::report::Span;
use crate::tree::{Node, Value};

/// The names in a file that templates can look up, and the text of the file for positions in it.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'a> {
    /// The text of the file.
    pub(crate) file: &'a str,
    pub(crate) params: &'a [Param],
    pub(crate) jobs: &'a JobNames<'a>,
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
    pub(super) place: Place,
}

impl<'t> Templates<'t> {
    /// Adds the node if it is a text with a template, and if the key has templates.
    pub(crate) fn add(&mut self, node: &'t Node<'_>, key: &Key) {
        let TextKind::Template(place) = key.text else { return };
        if let Value::Text(text) = &node.value
            && super::is_template(text)
        {
            self.texts.push(TemplateText { text, span: node.span.clone(), place });
        }
    }

    /// Adds a text that is in no file. Errors in it have no position.
    pub(crate) fn add_text(&mut self, text: &'t str, place: Place) {
        self.texts.push(TemplateText { text, span: 0..0, place });
    }
}
