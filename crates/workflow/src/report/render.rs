//! Renders a report as text, in the style of rustc.

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{Annotation, AnnotationKind, Element, Group, Level, Origin, Renderer, Snippet};

use super::excerpt::Excerpt;
use super::{Diagnostic, Report, Severity};

/// Whether the text has terminal colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// The text is plain.
    Never,
    /// The text has ANSI escape sequences.
    Always,
}

pub(super) fn render(report: &Report, colour: Colour) -> String {
    let renderer = match colour {
        Colour::Never => Renderer::plain(),
        Colour::Always => Renderer::styled(),
    };
    let renderer = renderer.decor_style(DecorStyle::Ascii).term_width(200);
    let mut text = String::new();
    for diagnostic in &report.diagnostics {
        let rendered = renderer.render(&[group(report, diagnostic)]);
        text.push_str(&with_real_columns(rendered, diagnostic));
        text.push_str("\n\n");
    }
    text.push_str(&summary(report));
    text
}

fn group<'r>(report: &'r Report, diagnostic: &'r Diagnostic) -> Group<'r> {
    let mut elements: Vec<Element<'r>> = Vec::new();
    match diagnostic.excerpts.split_first() {
        None => elements.push(Origin::path(diagnostic.file.as_str()).into()),
        Some((first, related)) => {
            // Two excerpts of a long line may show different parts of it. Such excerpts can't share a snippet.
            let (same_line, other): (Vec<_>, Vec<_>) =
                related.iter().partition(|excerpt| is_same_line(excerpt, first));
            let same_line = same_line.into_iter().map(|excerpt| annotation(excerpt, AnnotationKind::Context));
            elements.push(snippet(first, AnnotationKind::Primary).annotations(same_line).into());
            elements
                .extend(other.into_iter().map(|excerpt| snippet(excerpt, AnnotationKind::Context).into()));
        }
    }
    elements.extend(diagnostic.help.iter().map(|help| Level::HELP.message(help.as_str()).into()));
    let level = match report.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    level.primary_title(diagnostic.message.as_str()).elements(elements)
}

fn is_same_line(one: &Excerpt, other: &Excerpt) -> bool {
    one.path == other.path && one.line == other.line && one.text == other.text
}

/// Replaces columns by those of the whole line. The renderer counts columns in the excerpt, which may be a part of a line.
fn with_real_columns(mut rendered: String, diagnostic: &Diagnostic) -> String {
    for excerpt in &diagnostic.excerpts {
        let path = &excerpt.path;
        let shown = excerpt.text[..excerpt.marked.start].chars().count() + 1;
        if shown != excerpt.column {
            let line = excerpt.line;
            let (shown, real) =
                (format!("{path}:{line}:{shown}"), format!("{path}:{line}:{}", excerpt.column));
            rendered = rendered.replacen(&shown, &real, 1);
        }
    }
    rendered
}

fn snippet<'r>(excerpt: &'r Excerpt, kind: AnnotationKind) -> Snippet<'r, Annotation<'r>> {
    Snippet::source(excerpt.text.as_str())
        .path(excerpt.path.as_str())
        .line_start(excerpt.line)
        .annotation(annotation(excerpt, kind))
}

fn annotation(excerpt: &Excerpt, kind: AnnotationKind) -> Annotation<'_> {
    kind.span(excerpt.marked.clone()).label(excerpt.label.as_deref())
}

fn summary(report: &Report) -> String {
    let total = report.diagnostics.len() + report.omitted;
    let noun = match report.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    let errors = if total == 1 { format!("1 {noun}") } else { format!("{total} {noun}s") };
    match report.omitted {
        0 => format!("{}: {errors}\n", report.path),
        omitted => format!("{}: {errors}, of which {omitted} more are not shown\n", report.path),
    }
}
