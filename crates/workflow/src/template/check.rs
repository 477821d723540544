//! Checking the templates of a file when it is read.

use std::ops::Range;

use super::expression;
use super::names;
use super::split::{Piece, Refusal, split};
use crate::job_names::JobNames;
use crate::model::Param;
use crate::report::{Finding, Findings};
use crate::tree::{Node, Span, Value};

/// The texts of one job, or of the workflow, that contain templates; remembered until all names are
/// known.
#[derive(Debug, Default)]
pub(crate) struct Templates<'t> {
    texts: Vec<(&'t str, Span, Option<Reader>)>,
}

impl<'t> Templates<'t> {
    /// Remembers the node if it is a text with a template in it.
    pub(crate) fn add(&mut self, node: &'t Node<'_>) {
        self.push(node, None);
    }

    /// The same for the key of a `concurrency`, which is rendered before its job can read anything.
    pub(crate) fn add_key(&mut self, node: &'t Node<'_>) {
        self.push(node, Some(Reader::Key));
    }

    /// Remembers a text that is in no file. What is found in it has no place.
    pub(crate) fn add_text(&mut self, text: &'t str) {
        self.texts.push((text, 0..0, None));
    }

    fn push(&mut self, node: &'t Node<'_>, reader: Option<Reader>) {
        if let Value::Text(text) = &node.value
            && super::is_template(text)
        {
            self.texts.push((text, node.span.clone(), reader));
        }
    }
}

/// Who reads a template. What is known then, and so what the template may look up, follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    /// All jobs: `params` and `run`, and no outputs, because it belongs to no single job.
    Workflow,
    /// A job that starts: `params`, `run`, and outputs of the jobs that it needs, directly or not.
    Job,
    /// A run that is submitted, for a key of its jobs: `params`, and the workflow's name.
    Key,
    /// A schedule that makes a run: `scheduled_for`.
    Schedule,
}

/// What the names in templates can mean.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'a> {
    /// The text of the file.
    pub(crate) text: &'a str,
    pub(crate) params: &'a [Param],
    pub(crate) names: &'a JobNames<'a>,
    pub(crate) reader: Reader,
}

/// A place that reads the output of a job.
#[derive(Debug)]
pub(crate) struct Used {
    pub(crate) job: usize,
    pub(crate) span: Span,
}

/// Reports what is wrong in the templates, and lists the outputs that they read.
pub(crate) fn check(templates: &Templates<'_>, scope: &Scope<'_>, findings: &mut Findings) -> Vec<Used> {
    let mut used = Vec::new();
    for (text, span, reader) in &templates.texts {
        let scope = &Scope { reader: reader.unwrap_or(scope.reader), ..*scope };
        let place = Place { text, span: span.clone(), file: scope.text };
        let pieces = match split(text) {
            Ok(pieces) => pieces,
            Err(refusal) => {
                findings.push(place.finding(refusal, 0));
                continue;
            }
        };
        for piece in pieces {
            if let Piece::Expression(expression, range) = piece {
                check_expression(expression, range.start, &place, scope, &mut used, findings);
            }
        }
    }
    used
}

fn check_expression(
    expression: &str,
    offset: usize,
    place: &Place<'_>,
    scope: &Scope<'_>,
    used: &mut Vec<Used>,
    findings: &mut Findings,
) {
    let references = match expression::references(expression) {
        Ok(references) => references,
        Err(refusal) => {
            findings.push(place.finding(refusal, offset));
            return;
        }
    };
    for reference in &references {
        match names::check(reference, expression, scope, findings) {
            Ok(Some(job)) => used.push(Used { job, span: place.span_of(&reference.range, offset) }),
            Ok(None) => (),
            Err(refusal) => {
                findings.push(place.finding(refusal, offset));
                // `jobs.my-job.output` has two wrong names; one message is enough.
                return;
            }
        }
    }
}

/// A text and where the file has it.
struct Place<'t> {
    text: &'t str,
    span: Span,
    file: &'t str,
}

impl Place<'_> {
    fn finding(&self, refusal: Refusal, offset: usize) -> Finding {
        let span = self.span_of(&refusal.range, offset);
        let finding = Finding::new(span, refusal.message);
        match refusal.help {
            Some(help) => finding.help(help),
            None => finding,
        }
    }

    fn span_of(&self, range: &Range<usize>, offset: usize) -> Span {
        span_within(self.file, &self.span, self.text, &(offset + range.start..offset + range.end))
    }
}

/// The exact place of a part of a text when the file has the text as it is, without escapes; else all of the
/// text, which is at `span`.
pub(crate) fn span_within(file: &str, span: &Span, text: &str, range: &Range<usize>) -> Span {
    let written = file.get(span.clone()).unwrap_or_default();
    match written.find(text) {
        Some(start) => {
            let base = span.start + start;
            base + range.start..base + range.end
        }
        None => span.clone(),
    }
}
