//! Draws the graph as a picture in SVG.

use std::fmt::Write;

use super::layout::{Layout, Line, Rectangle, layout};
use super::{DrawError, Drawing, Node, palette, shorten};
use crate::limits;

/// The width of a character. The font is monospaced, so that the size of a box follows from the length of its text.
const NAME_ADVANCE: f64 = 7.8;
const SMALL_ADVANCE: f64 = 6.6;
/// The largest number of characters that are shown. The tooltip has the whole text.
const NAME_CHARS: usize = 36;
const SMALL_CHARS: usize = 42;
const PADDING: f64 = 12.0;
const MARGIN: f64 = 24.0;
const LEGEND_HEIGHT: f64 = 34.0;

pub(super) fn draw(drawing: &Drawing) -> Result<String, DrawError> {
    check_size(drawing)?;
    let sizes: Vec<(f64, f64)> = drawing.nodes.iter().map(size).collect();
    let layout = layout(drawing, &sizes)?;
    let legend = legend(drawing);
    let top = if legend.text.is_empty() { MARGIN } else { MARGIN + LEGEND_HEIGHT };
    let mut svg = head(&layout, &legend, top, drawing.nodes.len());
    svg.push_str(&legend.text);
    let _ = writeln!(svg, "<g transform=\"translate({MARGIN} {top})\">");
    for line in &layout.lines {
        let _ = writeln!(svg, "<path class=\"e\" d=\"{}\"/>", path(line));
    }
    for (node, rectangle) in drawing.nodes.iter().zip(&layout.boxes) {
        if let Some(when) = &node.when {
            let (x, y) = (rectangle.x - 6.0, rectangle.y - 3.0);
            let when = escape(when);
            let _ = writeln!(
                svg,
                "<text class=\"s\" text-anchor=\"end\" x=\"{x:.1}\" y=\"{y:.1}\">{when}</text>"
            );
        }
    }
    for (node, rectangle) in drawing.nodes.iter().zip(&layout.boxes) {
        draw_node(&mut svg, node, rectangle);
    }
    svg.push_str("</g>\n</svg>\n");
    Ok(svg)
}

pub(super) fn check_size(drawing: &Drawing) -> Result<(), DrawError> {
    let (nodes, edges) = (drawing.nodes.len(), drawing.edges.len());
    match nodes > limits::PICTURE_NODES || edges > limits::PICTURE_EDGES {
        true => Err(DrawError::TooLarge { nodes, edges }),
        false => Ok(()),
    }
}

/// The small text under the name: the status and the detail.
fn small_text(node: &Node) -> Option<String> {
    let status = node.status.as_deref().map(str::to_lowercase);
    let parts: Vec<String> =
        node.group.clone().into_iter().chain(status).chain(node.detail.clone()).collect();
    (!parts.is_empty()).then(|| shorten(&parts.join(" · "), SMALL_CHARS))
}

/// The width and height of a node's box.
fn size(node: &Node) -> (f64, f64) {
    let name = cells(&shorten(&node.name, NAME_CHARS)) * NAME_ADVANCE;
    match small_text(node) {
        Some(small) => (name.max(cells(&small) * SMALL_ADVANCE) + 2.0 * PADDING, 48.0),
        None => (name + 2.0 * PADDING, 34.0),
    }
}

/// The width of a text in characters of the font. Characters from U+1100 on may be twice as wide.
fn cells(text: &str) -> f64 {
    text.chars().map(|c| if u32::from(c) < 0x1100 || c == '…' { 1.0 } else { 2.0 }).sum()
}

fn head(layout: &Layout, legend: &Legend, top: f64, jobs: usize) -> String {
    let width = layout.width.max(legend.width) + 2.0 * MARGIN;
    let height = layout.height + top + MARGIN;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" aria-label=\"graph of {jobs} jobs\">
<style>
text {{ font-family: ui-monospace, \"DejaVu Sans Mono\", Menlo, Consolas, monospace; fill: #1f2328; }}
.n {{ font-size: 13px; }}
.s {{ font-size: 11px; fill: #57606a; }}
.e {{ fill: none; stroke: #8c959f; stroke-width: 1.3; marker-end: url(#a); }}
</style>
<defs><marker id=\"a\" viewBox=\"0 0 8 8\" refX=\"7.2\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" \
         orient=\"auto\"><path d=\"M0 0.6L8 4L0 7.4z\" fill=\"#8c959f\"/></marker></defs>
<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>
"
    )
}

/// The path of a line: horizontal within columns, and a curve between them.
pub(super) fn path(line: &Line) -> String {
    let mut path = String::new();
    for (at, (left, right, y)) in line.stops.iter().enumerate() {
        match at.checked_sub(1).map(|before| line.stops[before]) {
            None => {
                let _ = write!(path, "M{left:.1} {y:.1}");
            }
            Some((_, from, from_y)) => {
                let middle = (from + left) / 2.0;
                let _ = write!(path, "C{middle:.1} {from_y:.1} {middle:.1} {y:.1} {left:.1} {y:.1}");
            }
        }
        if right > left {
            let _ = write!(path, "H{right:.1}");
        }
    }
    path
}

fn draw_node(svg: &mut String, node: &Node, rectangle: &Rectangle) {
    let style = palette::style(node.status.as_deref());
    let Rectangle { x, y, width, height } = rectangle;
    let parts = [Some(&node.name), node.status.as_ref(), node.detail.as_ref()];
    let title: Vec<&str> = parts.into_iter().flatten().map(String::as_str).collect();
    let _ = write!(
        svg,
        "<g><title>{}</title><rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" \
         rx=\"6\" fill=\"{}\" stroke=\"{}\" stroke-width=\"1.4\"/>",
        escape(&title.join("\n")),
        style.fill,
        style.line
    );
    let small = small_text(node);
    let (text_x, name_y) = (x + PADDING, y + if small.is_some() { 20.0 } else { 21.5 });
    let name = escape(&shorten(&node.name, NAME_CHARS));
    let _ = write!(svg, "<text class=\"n\" x=\"{text_x:.1}\" y=\"{name_y:.1}\">{name}</text>");
    if let Some(small) = small {
        let small_y = y + 37.0;
        let small = escape(&small);
        let _ = write!(svg, "<text class=\"s\" x=\"{text_x:.1}\" y=\"{small_y:.1}\">{small}</text>");
    }
    svg.push_str("</g>\n");
}

/// The legend: the statuses in the graph, with their colours and numbers.
struct Legend {
    text: String,
    width: f64,
}

fn legend(drawing: &Drawing) -> Legend {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for status in drawing.nodes.iter().filter_map(|node| node.status.as_deref()) {
        match counts.iter_mut().find(|(known, _)| *known == status) {
            Some((_, count)) => *count += 1,
            None => counts.push((status, 1)),
        }
    }
    counts.sort_unstable();
    let mut text = String::new();
    let mut x = MARGIN;
    for (status, count) in counts {
        let style = palette::style(Some(status));
        let label = format!("{count} {}", status.to_lowercase());
        let _ = writeln!(
            text,
            "<rect x=\"{x:.1}\" y=\"{MARGIN}\" width=\"12\" height=\"12\" rx=\"3\" fill=\"{}\" stroke=\"{}\"/>\
             <text class=\"s\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            style.fill,
            style.line,
            x + 18.0,
            MARGIN + 10.0,
            escape(&label)
        );
        x += 18.0 + cells(&label) * SMALL_ADVANCE + 22.0;
    }
    Legend { text, width: x - MARGIN }
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push('\n'),
            // XML can't represent these characters.
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use crate::draw::tests::drawing;

    #[test]
    fn names_are_escaped_and_shortened_and_the_tooltip_has_the_whole_name() {
        let long = format!("<b>&\"{}", "x".repeat(100));
        let svg = drawing(&[(&long, None), ("\u{1}\u{ffff}", None)], &[]).svg().unwrap();
        assert!(!svg.contains("<b>"));
        assert!(svg.contains(&format!("<title>&lt;b&gt;&amp;&quot;{}</title>", "x".repeat(100))));
        assert!(svg.contains("x…</text>"));
        assert!(!svg.contains('\u{1}') && !svg.contains('\u{ffff}'));
    }

    #[test]
    fn statuses_have_colours_words_and_a_legend() {
        let jobs = [("a", Some("SUCCESSFUL")), ("b", Some("FAILED")), ("c", Some("SUCCESSFUL"))];
        let svg = drawing(&jobs, &[(0, 1)]).svg().unwrap();
        assert!(svg.contains("2 successful</text>") && svg.contains("1 failed</text>"));
        assert!(svg.contains("fill=\"#dafbe1\" stroke=\"#1a7f37\""));
        assert_eq!(svg.matches("class=\"e\"").count(), 1);
    }
}
