//! Draws the graph in the language of Graphviz.

use std::fmt::Write;

use super::{Drawing, Node, palette};

pub(super) fn draw(drawing: &Drawing) -> String {
    let mut text = "digraph workflow {
    rankdir=LR;
    node [shape=box, style=\"rounded,filled\", fontname=\"Helvetica,Arial,sans-serif\"];
    edge [color=\"#57606a\"];
"
    .to_owned();
    for (number, (group, nodes)) in drawing.groups().into_iter().enumerate() {
        if let Some(group) = group {
            let label = escape(group);
            let _ = writeln!(text, "    subgraph cluster_{number} {{\n    label=\"{label}\"; style=dashed;");
        }
        for index in nodes {
            let node = &drawing.nodes[index];
            let style = palette::style(node.status.as_deref());
            let (fill, line) = (style.fill, style.line);
            let label = label(node);
            let _ =
                writeln!(text, "    n{index} [label=\"{label}\", fillcolor=\"{fill}\", color=\"{line}\"];");
        }
        if group.is_some() {
            text.push_str("    }\n");
        }
    }
    for (needed, job) in drawing.drawn_edges() {
        let label = match &drawing.nodes[job].when {
            Some(when) => format!(" [label=\"{}\"]", escape(when)),
            None => String::new(),
        };
        let _ = writeln!(text, "    n{needed} -> n{job}{label};");
    }
    text.push_str("}\n");
    text
}

fn label(node: &Node) -> String {
    let lines = [Some(&node.name), node.status.as_ref(), node.detail.as_ref()];
    let lines: Vec<String> = lines.into_iter().flatten().map(|line| escape(line)).collect();
    lines.join("\\n")
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' | '\\' => escaped.extend(['\\', c]),
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use crate::draw::tests::drawing;

    #[test]
    fn nodes_and_edges() {
        let text = drawing(&[("a", Some("RUNNING")), ("b", None)], &[(0, 1)]).dot();
        assert!(text.contains("n0 [label=\"a\\nRUNNING\", fillcolor=\"#ddf4ff\", color=\"#0969da\"];"));
        assert!(text.contains("    n0 -> n1;\n}\n"), "{text}");
    }

    #[test]
    fn no_character_of_a_name_ends_a_label() {
        let text = drawing(&[("x\"]; \\N\n", None)], &[]).dot();
        assert!(text.contains("[label=\"x\\\"]; \\\\N \","), "{text}");
    }
}
