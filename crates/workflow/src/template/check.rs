//! Checks the templates of a file when the file is read.

use std::ops::Range;

use super::script;
use super::split::{Piece, split};
use super::texts::{LookingUpText, Templates, TextForm};
use crate::expression::{self, Fault, Form, JobField, Lookup, Place, Scope, Site};
use crate::report::{Finding, Findings, Span};

/// A template or an expression that reads a job.
#[derive(Debug)]
pub(crate) struct Read {
    /// The index of the job that is read.
    pub(crate) job: usize,
    pub(crate) field: JobField,
    pub(crate) form: Form,
    pub(crate) span: Span,
}

/// Reports the errors in the templates and expressions, and lists what they read of jobs.
pub(crate) fn check(templates: &Templates<'_>, scope: &Scope<'_>, findings: &mut Findings) -> Vec<Read> {
    let mut reads = Vec::new();
    for text in &templates.texts {
        match text.form {
            TextForm::Template => check_template(text, scope, &mut reads, findings),
            TextForm::Bare | TextForm::Value => check_bare(text, scope, &mut reads, findings),
            TextForm::Script => script::check(text, scope, findings),
        }
    }
    for (input, span) in &templates.inputs {
        let span = span.clone();
        match scope.jobs.index(&input.job) {
            Some(job) => reads.push(Read { job, field: JobField::Artifacts, form: Form::Bare, span }),
            None => {
                let finding = Finding::new(span, format!("there is no job `{}`", input.job.escape_debug()));
                let nearest = findings.nearest(&input.job, scope.jobs.iter());
                findings.push(match nearest {
                    Some(near) => finding.help(format!("did you mean \"jobs.{near}/{}\"?", input.path)),
                    None => finding.help("it is not defined in this file"),
                });
            }
        }
    }
    reads
}

fn check_template(
    text: &LookingUpText<'_>,
    scope: &Scope<'_>,
    reads: &mut Vec<Read>,
    findings: &mut Findings,
) {
    let pieces = match split(text.text) {
        Ok(pieces) => pieces,
        Err(fault) => {
            findings.push(finding(fault, text, scope, 0));
            return;
        }
    };
    for piece in pieces {
        let Piece::Expression(expression, range) = piece else { continue };
        match expression::lookups(expression) {
            Ok(lookups) => {
                let before = findings.count();
                check_names(&lookups, expression, range.start, text, scope, reads, findings);
                // A name that does not exist has no type.
                if findings.count() == before
                    && let Err(fault) = expression::check_arithmetic(expression, scope)
                {
                    findings.push(finding(fault, text, scope, range.start));
                }
            }
            Err(fault) => findings.push(finding(fault, text, scope, range.start)),
        }
    }
}

fn check_bare(text: &LookingUpText<'_>, scope: &Scope<'_>, reads: &mut Vec<Read>, findings: &mut Findings) {
    let lookups = match expression::parse(text.text) {
        Ok(lookups) => lookups,
        Err(fault) => {
            findings.push(finding(fault, text, scope, 0));
            return;
        }
    };
    let before = findings.count();
    check_names(&lookups, text.text, 0, text, scope, reads, findings);
    // A name that does not exist has no type.
    if findings.count() == before
        && let Err(fault) = check_type(text, scope)
    {
        findings.push(finding(fault, text, scope, 0));
    }
}

/// Checks what an expression gives, as far as that is known.
fn check_type(text: &LookingUpText<'_>, scope: &Scope<'_>) -> Result<(), Fault> {
    if text.form == TextForm::Value {
        return Ok(());
    }
    match text.place {
        Place::Items => expression::check_list(text.text, scope),
        // It may give anything.
        Place::Outputs => Ok(()),
        Place::Workflow
        | Place::Command
        | Place::Path
        | Place::Environment
        | Place::Condition
        | Place::Wait
        | Place::CallParams
        | Place::AttemptEnd
        | Place::RequestEnd
        | Place::ConcurrencyKey
        | Place::Schedule
        | Place::Trigger
        | Place::RunEndTrigger => expression::check_condition(text.text, scope),
    }
}

/// Checks the names in one expression, which begins at byte `offset` of the text.
fn check_names(
    lookups: &[Lookup],
    expression: &str,
    offset: usize,
    text: &LookingUpText<'_>,
    scope: &Scope<'_>,
    reads: &mut Vec<Read>,
    findings: &mut Findings,
) {
    let form = text.form.of_expressions();
    let site = Site { expression, place: text.place, form };
    for lookup in lookups {
        match expression::check(lookup, &site, scope, findings) {
            Ok(Some((job, field))) => {
                let span = span_of(&lookup.range, text, scope, offset);
                reads.push(Read { job, field, form, span });
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

fn finding(fault: Fault, text: &LookingUpText<'_>, scope: &Scope<'_>, offset: usize) -> Finding {
    let span = span_of(&fault.range, text, scope, offset);
    let finding = Finding::new(span, fault.message);
    match fault.help {
        Some(help) => finding.help(help),
        None => finding,
    }
}

/// The position in the file of a range in an expression, which begins at byte `offset` of the text.
fn span_of(range: &Range<usize>, text: &LookingUpText<'_>, scope: &Scope<'_>, offset: usize) -> Span {
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
