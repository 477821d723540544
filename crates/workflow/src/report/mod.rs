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
        Report::of(Severity::Error, path, text, findings)
    }

    pub(crate) fn of_warnings(path: impl Into<String>, text: &str, findings: Findings) -> Report {
        Report::of(Severity::Warning, path, text, findings)
    }

    fn of(severity: Severity, path: impl Into<String>, text: &str, findings: Findings) -> Report {
        let (mut findings, mut omitted) = findings.into_parts();
        findings.sort_by_key(Finding::start);
        omitted += findings.len().saturating_sub(limits::ERRORS_SHOWN);
        findings.truncate(limits::ERRORS_SHOWN);
        let lines = Lines::of(text);
        let diagnostics = findings.into_iter().map(|finding| Diagnostic::new(finding, &lines)).collect();
        Report { path: path.into(), severity, diagnostics, omitted }
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

impl Diagnostic {
    fn new(finding: Finding, lines: &Lines<'_>) -> Diagnostic {
        let (line, column) = match &finding.span {
            Some(span) => lines.position(span.start),
            None => (1, 1),
        };
        let mut excerpts = Vec::new();
        if let Some(span) = finding.span {
            excerpts.push(lines.excerpt(span, finding.label));
        }
        excerpts.extend(finding.related.into_iter().map(|(span, label)| lines.excerpt(span, Some(label))));
        Diagnostic { message: finding.message, line, column, help: finding.help, excerpts }
    }

    /// How to correct the error, for output that does not show the line: the help, or the label at the caret.
    pub fn advice(&self) -> Option<&str> {
        self.help.as_deref().or_else(|| self.excerpts.first()?.label.as_deref())
    }
}
