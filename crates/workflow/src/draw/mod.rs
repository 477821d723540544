//! Draws a graph of jobs: as text, for Mermaid, for Graphviz, and as SVG.

mod dot;
mod layout;
mod mermaid;
mod palette;
mod svg;
mod text;

pub use palette::ALLOWED_FAILURE;

use crate::graph::Graph;
use crate::kinds::Action;
use crate::limits;
use crate::model::{Job, When, Workflow};

/// A graph to draw: the jobs of a workflow, or the jobs of a run with their statuses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Drawing {
    /// The jobs.
    pub nodes: Vec<Node>,
    /// Pairs of a job and a job that needs it, as indices of [`Drawing::nodes`]. A pair with an index that does not exist is
    /// not drawn.
    pub edges: Vec<(usize, usize)>,
}

/// A job in a drawing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Node {
    /// The name of the job.
    pub name: String,
    /// The status, such as `RUNNING`, if the job belongs to a run. It chooses the colour.
    pub status: Option<String>,
    /// More about the job, in a few words.
    pub detail: Option<String>,
    /// How the needed jobs must have ended, such as `any_failed`. It labels the edges to this job.
    pub when: Option<String>,
    /// The table of the job, such as `finally`, if the job is drawn apart from the jobs of `jobs`.
    pub group: Option<String>,
}

/// Where the parts of a picture are.
#[derive(Debug, Clone, PartialEq)]
pub struct Positions {
    /// The upper left corner of the box of each node.
    pub boxes: Vec<(f64, f64)>,
    /// The lines: the needed node and the one that needs it, and the path in the form of SVG.
    pub lines: Vec<((usize, usize), String)>,
    /// The width of the picture.
    pub width: f64,
    /// The height of the picture.
    pub height: f64,
}

/// Why a picture can't be drawn.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DrawError {
    /// There are too many jobs or needs.
    #[error(
        "{nodes} jobs with {edges} needs are too many for a picture; the limits are {} and {}; use the format dot with a \
         tool for large graphs, or the format text",
        limits::PICTURE_NODES,
        limits::PICTURE_EDGES
    )]
    TooLarge {
        /// The number of jobs.
        nodes: usize,
        /// The number of needs.
        edges: usize,
    },
    /// The lines would have too many bends around jobs.
    #[error(
        "too many needs skip layers of the graph, so the lines would be unreadable; use the format dot with a tool for \
         large graphs, or the format text"
    )]
    TooTangled,
}

impl Drawing {
    /// A drawing of the jobs of a workflow, without statuses.
    pub fn of(workflow: &Workflow) -> Drawing {
        let nodes = workflow
            .jobs
            .iter()
            .map(|job| Node {
                name: job.name.clone(),
                status: None,
                detail: called(job)
                    .or_else(|| job.description.clone())
                    .or_else(|| job.for_each.is_some().then(|| "for each item".to_owned())),
                when: (job.when != When::default()).then(|| job.when.name().to_owned()),
                group: job.handler.map(|handler| handler.key().to_owned()),
            })
            .collect();
        let edges = workflow
            .jobs
            .iter()
            .enumerate()
            .flat_map(|(index, job)| job.needs.iter().map(move |needed| (*needed, index)))
            .collect();
        Drawing { nodes, edges }
    }

    /// The graph as text for a terminal: the jobs layer by layer, each with the jobs that it needs.
    pub fn text(&self) -> String {
        text::draw(self)
    }

    /// The graph as a flowchart for Mermaid.
    pub fn mermaid(&self) -> String {
        mermaid::draw(self)
    }

    /// The graph as a directed graph for Graphviz.
    pub fn dot(&self) -> String {
        dot::draw(self)
    }

    /// The graph as a picture in SVG.
    ///
    /// # Errors
    /// There are more than [`limits::PICTURE_NODES`] jobs or [`limits::PICTURE_EDGES`] needs, or the lines would have too many
    /// bends.
    pub fn svg(&self) -> Result<String, DrawError> {
        svg::draw(self)
    }

    /// Where the boxes and lines of a picture are, if all boxes have the same width and height.
    ///
    /// # Errors
    /// As of [`Drawing::svg`].
    pub fn positions(&self, width: f64, height: f64) -> Result<Positions, DrawError> {
        svg::check_size(self)?;
        let layout = layout::layout(self, &vec![(width, height); self.nodes.len()])?;
        Ok(Positions {
            boxes: layout.boxes.iter().map(|rectangle| (rectangle.x, rectangle.y)).collect(),
            lines: layout.lines.iter().map(|line| (line.edge, svg::path(line))).collect(),
            width: layout.width,
            height: layout.height,
        })
    }

    /// The needs of each node, ascending, without duplicates, of the edges that are drawn.
    fn needs(&self) -> Vec<Vec<usize>> {
        let mut needs = vec![Vec::new(); self.nodes.len()];
        for (needed, job) in self.drawn_edges() {
            needs[job].push(needed);
        }
        for list in &mut needs {
            list.sort_unstable();
            list.dedup();
        }
        needs
    }

    /// The edges between two different nodes that exist.
    fn drawn_edges(&self) -> impl Iterator<Item = (usize, usize)> {
        let count = self.nodes.len();
        self.edges
            .iter()
            .copied()
            .filter(move |(needed, job)| *needed < count && *job < count && needed != job)
    }

    /// The groups of the drawing in the order of their first nodes, each with the indices of its nodes. Nodes without a group
    /// come first.
    fn groups(&self) -> Vec<(Option<&str>, Vec<usize>)> {
        let mut groups: Vec<(Option<&str>, Vec<usize>)> = vec![(None, Vec::new())];
        for (index, node) in self.nodes.iter().enumerate() {
            let group = node.group.as_deref();
            match groups.iter_mut().find(|(known, _)| *known == group) {
                Some((_, nodes)) => nodes.push(index),
                None => groups.push((group, vec![index])),
            }
        }
        groups
    }

    /// The layers of the graph. Nodes in a cycle come last; a checked workflow has none.
    fn layers(&self) -> Vec<Vec<usize>> {
        let needs = self.needs();
        let mut layers = Graph::from_needs(needs.iter().map(Vec::as_slice)).layers();
        let mut is_placed = vec![false; self.nodes.len()];
        layers.iter().flatten().for_each(|node| is_placed[*node] = true);
        let rest: Vec<usize> = (0..self.nodes.len()).filter(|node| !is_placed[*node]).collect();
        if !rest.is_empty() {
            layers.push(rest);
        }
        layers
    }
}

/// What a job calls, in place of its description.
fn called(job: &Job) -> Option<String> {
    match &job.action {
        Action::Call(call) => Some(format!("workflow {}", call.workflow)),
        Action::Shell(_)
        | Action::Http(_)
        | Action::Sleep(_)
        | Action::WaitFor(_)
        | Action::Approval(_)
        | Action::Signal(_) => None,
    }
}

/// The first `most` characters. If there are more, the last of these is `…`.
fn shorten(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some(_) => text.chars().take(most - 1).chain(['…']).collect(),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    pub(super) fn drawing(nodes: &[(&str, Option<&str>)], edges: &[(usize, usize)]) -> Drawing {
        let node = |(name, status): &(&str, Option<&str>)| Node {
            name: (*name).to_owned(),
            status: status.map(str::to_owned),
            ..Node::default()
        };
        Drawing { nodes: nodes.iter().map(node).collect(), edges: edges.to_vec() }
    }

    #[test]
    fn edges_to_missing_nodes_and_cycles_do_no_harm() {
        let drawing =
            drawing(&[("a", None), ("b", None), ("c", None)], &[(0, 1), (1, 0), (2, 9), (9, 2), (2, 2)]);
        assert_eq!(drawing.layers(), vec![vec![2], vec![0, 1]]);
        assert!(drawing.text().contains("needs a"));
        assert!(drawing.svg().unwrap().contains("</svg>"));
        assert!(!drawing.dot().contains("n9"));
        assert!(!drawing.mermaid().contains("n9"));
        let empty = Drawing::default();
        assert_eq!(empty.text(), "");
        assert!(empty.svg().unwrap().contains("</svg>"));
    }

    #[test]
    fn a_picture_has_limits() {
        let names = vec![("a", None); limits::PICTURE_NODES + 1];
        let message = drawing(&names, &[]).svg().unwrap_err().to_string();
        assert!(message.contains("2001") && message.contains("dot"), "{message}");
        let edges = vec![(0, 1); limits::PICTURE_EDGES + 1];
        assert!(matches!(drawing(&names[..2], &edges).svg(), Err(DrawError::TooLarge { .. })));
    }

    #[test]
    fn handlers_are_drawn_apart_and_a_rule_labels_the_edges() {
        let text = "[jobs.a]\nrun = 'x'\n[jobs.b]\nneeds = 'a'\nwhen = 'any_failed'\nrun = 'x'\n\
                    [finally.c]\nrun = 'x'\n[finally.d]\nneeds = 'c'\nrun = 'x'\n";
        let source = crate::Source::new("w.toml", text.into()).unwrap();
        let drawing = Drawing::of(&crate::parse_accepting(&source, crate::Accepted::Everything).unwrap());
        assert_eq!(drawing.text(), "1  a\n2  b  needs a when any_failed\nfinally\n1  c\n2  d  needs c\n");
        let mermaid = drawing.mermaid();
        assert!(mermaid.contains("n0 -->|\"any_failed\"| n1\n    n2 --> n3"), "{mermaid}");
        assert!(
            mermaid.contains("subgraph g1[\"finally\"]\n    n2[\"c\"]\n    n3[\"d\"]\n    end\n"),
            "{mermaid}"
        );
        let dot = drawing.dot();
        assert!(dot.contains("n0 -> n1 [label=\"any_failed\"];\n    n2 -> n3;"), "{dot}");
        assert!(dot.contains("subgraph cluster_1 {\n    label=\"finally\";"), "{dot}");
        let svg = drawing.svg().unwrap();
        assert!(svg.contains(">any_failed</text>") && svg.contains(">finally</text>"), "{svg}");
    }
}
