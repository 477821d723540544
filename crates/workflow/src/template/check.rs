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
    texts: Vec<(&'t str, Span)>,
}

impl<'t> Templates<'t> {
    /// Remembers the node if it is a text with a template in it.
    pub(crate) fn add(&mut self, node: &'t Node<'_>) {
        if let Value::Text(text) = &node.value
            && super::is_template(text)
        {
            self.texts.push((text, node.span.clone()));
        }
    }
}

/// Which outputs a template may read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outputs {
    /// None: it belongs to no single job.
    Unknown,
    /// Those of the jobs that its job needs, directly or not.
    OfAncestors,
}

/// What the names in templates can mean.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'a> {
    /// The text of the file.
    pub(crate) text: &'a str,
    pub(crate) params: &'a [Param],
    pub(crate) names: &'a JobNames<'a>,
    pub(crate) outputs: Outputs,
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
    for (text, span) in &templates.texts {
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

    /// The exact place when the file has the text as it is, without escapes; else all of the text.
    fn span_of(&self, range: &Range<usize>, offset: usize) -> Span {
        let written = self.file.get(self.span.clone()).unwrap_or_default();
        match written.find(self.text) {
            Some(start) => {
                let base = self.span.start + start + offset;
                base + range.start..base + range.end
            }
            None => self.span.clone(),
        }
    }
}
