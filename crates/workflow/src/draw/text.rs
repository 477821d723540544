//! Draws the graph for a terminal, one line a job, layer by layer. Small and large graphs look the same, and `grep` finds a
//! job together with the jobs that it needs.

use std::fmt::Write;

use super::{Drawing, shorten};

/// The largest number of characters of a name that are shown.
const NAME_CHARS: usize = 48;
/// The largest number of needs that are listed. The others are counted.
const LISTED_NEEDS: usize = 6;
/// The largest number of characters of a detail that are shown.
const DETAIL_CHARS: usize = 60;

pub(super) fn draw(drawing: &Drawing) -> String {
    let needs = drawing.needs();
    let layers = drawing.layers();
    let number_width = layers.len().to_string().len();
    let name_width = width(drawing.nodes.iter().map(|node| node.name.as_str()));
    let status_width = width(drawing.nodes.iter().filter_map(|node| node.status.as_deref()));
    let mut text = String::new();
    for (group, nodes) in drawing.groups() {
        if let Some(group) = group {
            let _ = writeln!(text, "{}", one_line(group));
        }
        let is_in_group = |node: &&usize| nodes.binary_search(node).is_ok();
        for (number, layer) in layers.iter().enumerate() {
            for (position, node) in layer.iter().filter(is_in_group).enumerate() {
                let label = if position == 0 { (number + 1).to_string() } else { String::new() };
                let mut line = format!("{label:>number_width$}  {:name_width$}", name(drawing, *node));
                if status_width > 0 {
                    let status = drawing.nodes[*node].status.as_deref().unwrap_or_default();
                    let _ = write!(line, "  {:status_width$}", one_line(status));
                }
                if !needs[*node].is_empty() {
                    let _ = write!(line, "  needs {}", listed(drawing, &needs[*node]));
                    if let Some(when) = &drawing.nodes[*node].when {
                        let _ = write!(line, " when {}", one_line(when));
                    }
                }
                if let Some(detail) = &drawing.nodes[*node].detail {
                    let _ = write!(line, "  ({})", shorten(&one_line(detail), DETAIL_CHARS));
                }
                text.push_str(line.trim_end());
                text.push('\n');
            }
        }
    }
    text
}

fn name(drawing: &Drawing, node: usize) -> String {
    shorten(&one_line(&drawing.nodes[node].name), NAME_CHARS)
}

fn width<'n>(names: impl Iterator<Item = &'n str>) -> usize {
    names.map(|name| name.chars().count().min(NAME_CHARS)).max().unwrap_or(0)
}

fn listed(drawing: &Drawing, needs: &[usize]) -> String {
    let names: Vec<String> = needs.iter().take(LISTED_NEEDS).map(|need| name(drawing, *need)).collect();
    match needs.len().saturating_sub(LISTED_NEEDS) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

/// The text with spaces for control characters, which could break the line or change the terminal.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use crate::draw::tests::drawing;
    use crate::draw::{Drawing, Node};

    #[test]
    fn jobs_are_listed_by_layer_with_their_needs() {
        let drawing = drawing(
            &[("fetch", None), ("count", None), ("clean", None), ("report", None)],
            &[(0, 1), (0, 2), (1, 3), (2, 3)],
        );
        let expected =
            "1  fetch\n2  count   needs fetch\n   clean   needs fetch\n3  report  needs count, clean\n";
        assert_eq!(drawing.text(), expected);
    }

    #[test]
    fn statuses_have_a_column() {
        let drawing = drawing(&[("a", Some("SUCCESSFUL")), ("bb", Some("RUNNING"))], &[(0, 1)]);
        assert_eq!(drawing.text(), "1  a   SUCCESSFUL\n2  bb  RUNNING     needs a\n");
    }

    #[test]
    fn long_lists_and_control_characters_stay_on_one_line() {
        let mut nodes: Vec<Node> =
            (0..10).map(|at| Node { name: format!("n{at}"), ..Node::default() }).collect();
        nodes.push(Node {
            name: "evil\n\u{1b}[31m".to_owned(),
            detail: Some(format!("a\tb{}", "x".repeat(100))),
            ..Node::default()
        });
        let drawing = Drawing { nodes, edges: (0..10).map(|from| (from, 10)).collect() };
        let text = drawing.text();
        assert_eq!(text.lines().count(), 11);
        let last = text.lines().last().unwrap_or_default();
        assert!(last.contains("needs n0, n1, n2, n3, n4, n5 and 4 more"), "{last}");
        assert!(!text.contains('\u{1b}'));
    }
}
