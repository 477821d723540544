//! The errors of a file, for people and for programs.
//!
//! The parser and the checks collect findings, whose positions are bytes of the text. A [`Report`] has lines and columns
//! instead, and does not need the text any more.

mod excerpt;
mod finding;
mod render;

use excerpt::{Excerpt, Lines};
pub(crate) use finding::{Finding, Findings, Span};
pub use render::Colour;

use crate::limits;
use crate::source::Source;

/// Whether a file can be used in spite of what a report says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// It can't.
    Error,
    /// It can, and its author can hardly have meant it.
    Warning,
}

/// All errors or all warnings of a file, in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    path: String,
    severity: Severity,
    diagnostics: Vec<Diagnostic>,
    omitted: usize,
}

/// One error in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// What is wrong, in one sentence.
    pub message: String,
    /// The path of the file that has the error: the file of the report, or one that it includes.
    pub file: String,
    /// The line, counted from 1. It is 1 if the error has no position.
    pub line: usize,
    /// The column in characters, counted from 1.
    pub column: usize,
    /// How to correct the error.
    pub help: Option<String>,
    excerpts: Vec<Excerpt>,
}

impl Report {
    pub(crate) fn new(path: impl Into<String>, text: &str, findings: Findings) -> Report {
        let path = path.into();
        let texts = [Text { path: &path, start: 0, lines: Lines::of(text) }];
        let (diagnostics, omitted) = diagnostics(&texts, findings);
        Report { path, severity: Severity::Error, diagnostics, omitted }
    }

    /// The report on a file with those that it includes.
    pub(crate) fn of_source(source: &Source, severity: Severity, findings: Findings) -> Report {
        let parts = std::iter::once(None).chain((0..source.included.len()).map(Some));
        let texts = parts.map(|part| {
            let (text, _format, start) = source.part(part);
            let path = part.map_or(source.path.as_str(), |part| &source.included[part].path);
            Text { path, start, lines: Lines::of(text) }
        });
        let (diagnostics, omitted) = diagnostics(&texts.collect::<Vec<_>>(), findings);
        Report { path: source.path.clone(), severity, diagnostics, omitted }
    }

    pub(crate) fn of_one(path: impl Into<String>, text: &str, finding: Finding) -> Report {
        let mut findings = Findings::default();
        findings.push(finding);
        Report::new(path, text, findings)
    }

    /// The path of the file, as the caller gave it.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The errors, at most [`limits::ERRORS_SHOWN`], in the order of the file.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    /// The number of errors that are not among [`Report::diagnostics`].
    pub fn omitted(&self) -> usize {
        self.omitted
    }

    /// The report as text. It shows the position of each error, the line with a caret, the reason and the help.
    pub fn render(&self, colour: Colour) -> String {
        render::render(self, colour)
    }
}

impl std::fmt::Display for Report {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.render(Colour::Never))
    }
}

impl std::error::Error for Report {}

/// A text in which findings have their positions.
struct Text<'t> {
    path: &'t str,
    /// The byte at which positions in the text begin.
    start: usize,
    lines: Lines<'t>,
}

/// The findings to show, in the order of their positions, and the number of the others.
fn diagnostics(texts: &[Text<'_>], findings: Findings) -> (Vec<Diagnostic>, usize) {
    let (mut findings, mut omitted) = findings.into_parts();
    findings.sort_by_key(Finding::start);
    omitted += findings.len().saturating_sub(limits::ERRORS_SHOWN);
    findings.truncate(limits::ERRORS_SHOWN);
    (findings.into_iter().map(|finding| Diagnostic::new(finding, texts)).collect(), omitted)
}

/// The text that has a byte. There is at least one text.
fn text_at<'a, 't>(texts: &'a [Text<'t>], at: usize) -> &'a Text<'t> {
    let index = texts.partition_point(|text| text.start <= at).saturating_sub(1);
    &texts[index]
}

impl Diagnostic {
    fn new(finding: Finding, texts: &[Text<'_>]) -> Diagnostic {
        let excerpt = |span: Span, label: Option<String>| {
            let text = text_at(texts, span.start);
            text.lines.excerpt(text.path, span.start - text.start..span.end - text.start, label)
        };
        let start = finding.start();
        let text = text_at(texts, start);
        let (line, column) = match &finding.span {
            Some(_) => text.lines.position(start - text.start),
            None => (1, 1),
        };
        let mut excerpts = Vec::new();
        if let Some(span) = finding.span {
            excerpts.push(excerpt(span, finding.label));
        }
        excerpts.extend(finding.related.into_iter().map(|(span, label)| excerpt(span, Some(label))));
        let file = text.path.to_owned();
        Diagnostic { message: finding.message, file, line, column, help: finding.help, excerpts }
    }

    /// How to correct the error, for output that does not show the line: the help, or the label at the caret.
    pub fn advice(&self) -> Option<&str> {
        self.help.as_deref().or_else(|| self.excerpts.first()?.label.as_deref())
    }
}
