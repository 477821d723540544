//! Draws the graph as a flowchart of Mermaid.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::palette::{self, Style};
use super::{Drawing, Node};

pub(super) fn draw(drawing: &Drawing) -> String {
    let mut text = "flowchart LR\n".to_owned();
    let mut classes: BTreeMap<&'static str, (Style, Vec<String>)> = BTreeMap::new();
    for (number, (group, nodes)) in drawing.groups().into_iter().enumerate() {
        if let Some(group) = group {
            let _ = writeln!(text, "    subgraph g{number}[\"{}\"]", escape(group));
        }
        for index in nodes {
            let node = &drawing.nodes[index];
            let _ = writeln!(text, "    n{index}[\"{}\"]", label(node));
            let style = palette::style(node.status.as_deref());
            if !style.word.is_empty() {
                classes.entry(style.word).or_insert((style, Vec::new())).1.push(format!("n{index}"));
            }
        }
        if group.is_some() {
            text.push_str("    end\n");
        }
    }
    for (needed, job) in drawing.drawn_edges() {
        let label = match &drawing.nodes[job].when {
            Some(when) => format!("|\"{}\"|", escape(when)),
            None => String::new(),
        };
        let _ = writeln!(text, "    n{needed} -->{label} n{job}");
    }
    for (word, (style, nodes)) in classes {
        let (fill, line) = (style.fill, style.line);
        let _ = writeln!(text, "    classDef {word} fill:{fill},stroke:{line},color:#1f2328");
        let _ = writeln!(text, "    class {} {word}", nodes.join(","));
    }
    text
}

fn label(node: &Node) -> String {
    let mut label = escape(&node.name);
    for more in [&node.status, &node.detail].into_iter().flatten() {
        label.push_str("<br/>");
        label.push_str(&escape(more));
    }
    label
}

/// Replaces special characters by Mermaid's entity codes, so that no character ends a label or begins markup.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if c.is_alphanumeric() || matches!(c, ' ' | '_' | '-' | '.' | ',') => escaped.push(c),
            c if c.is_control() => escaped.push(' '),
            c => {
                let _ = write!(escaped, "#{};", u32::from(c));
            }
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use crate::draw::tests::drawing;

    #[test]
    fn nodes_edges_and_classes() {
        let drawing = drawing(&[("a.b-c", Some("FAILED")), ("d", None), ("e", Some("FAILED"))], &[(0, 1)]);
        let expected = "flowchart LR
    n0[\"a.b-c<br/>FAILED\"]
    n1[\"d\"]
    n2[\"e<br/>FAILED\"]
    n0 --> n1
    classDef failed fill:#ffebe9,stroke:#cf222e,color:#1f2328
    class n0,n2 failed
";
        assert_eq!(drawing.mermaid(), expected);
    }

    #[test]
    fn no_character_of_a_name_ends_a_label() {
        let text = drawing(&[("x\"]; click n0 `<b>` #1;\n%%", None)], &[]).mermaid();
        assert_eq!(
            text,
            "flowchart LR\n    n0[\"x#34;#93;#59; click n0 #96;#60;b#62;#96; #35;1#59; #37;#37;\"]\n"
        );
    }
}
