//! Checks the templates of a file when the file is read.

use std::ops::Range;

use super::scope::{Scope, TemplateText, Templates};
use super::split::{Fault, Piece, split};
use super::{expression, names};
use crate::report::{Finding, Findings, Span};

/// A template that reads the output of a job.
#[derive(Debug)]
pub(crate) struct OutputRead {
    /// The index of the job whose output is read.
    pub(crate) job: usize,
    pub(crate) span: Span,
}

/// Reports the errors in the templates, and lists the outputs that the templates read.
pub(crate) fn check(
    templates: &Templates<'_>,
    scope: &Scope<'_>,
    findings: &mut Findings,
) -> Vec<OutputRead> {
    let mut outputs = Vec::new();
    for text in &templates.texts {
        let pieces = match split(text.text) {
            Ok(pieces) => pieces,
            Err(fault) => {
                findings.push(finding(fault, text, scope, 0));
                continue;
            }
        };
        for piece in pieces {
            if let Piece::Expression(expression, range) = piece {
                check_expression(expression, range.start, text, scope, &mut outputs, findings);
            }
        }
    }
    outputs
}

/// Checks one expression, which begins at byte `offset` of the text.
fn check_expression(
    expression: &str,
    offset: usize,
    text: &TemplateText<'_>,
    scope: &Scope<'_>,
    outputs: &mut Vec<OutputRead>,
    findings: &mut Findings,
) {
    let lookups = match expression::lookups(expression) {
        Ok(lookups) => lookups,
        Err(fault) => {
            findings.push(finding(fault, text, scope, offset));
            return;
        }
    };
    for lookup in &lookups {
        match names::check(lookup, expression, text.place, scope, findings) {
            Ok(Some(job)) => {
                outputs.push(OutputRead { job, span: span_of(&lookup.range, text, scope, offset) });
            }
            Ok(None) => (),
            Err(fault) => {
                findings.push(finding(fault, text, scope, offset));
                // `jobs.my-job.output` has two wrong names, `jobs.my` and `job`. One message is enough.
                return;
            }
        }
    }
}

fn finding(fault: Fault, text: &TemplateText<'_>, scope: &Scope<'_>, offset: usize) -> Finding {
    let span = span_of(&fault.range, text, scope, offset);
    let finding = Finding::new(span, fault.message);
    match fault.help {
        Some(help) => finding.help(help),
        None => finding,
    }
}

/// The position in the file of a range in an expression, which begins at byte `offset` of the text.
fn span_of(range: &Range<usize>, text: &TemplateText<'_>, scope: &Scope<'_>, offset: usize) -> Span {
    span_within(scope.file, &text.span, text.text, &(offset + range.start..offset + range.end))
}

/// The position in the file of a part of a text. `span` is the position of the whole text.
///
/// The file may have the text with escapes. Then the part can't be found, and the result is the whole text.
pub(crate) fn span_within(file: &str, span: &Span, text: &str, part: &Range<usize>) -> Span {
    let written = file.get(span.clone()).unwrap_or_default();
    match written.find(text) {
        Some(start) => {
            let base = span.start + start;
            base + part.start..base + part.end
        }
        None => span.clone(),
    }
}
