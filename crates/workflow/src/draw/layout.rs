//! Computes the positions of the boxes and lines of a picture. The layers of the graph are columns, from left to right.
//!
//! rust-sugiyama chooses the order within a column so that few lines cross. A line that passes a column gets a bend there. A
//! bend is an invisible vertex of the layout, so the line goes around the boxes of the column.

use std::collections::HashMap;

use rust_sugiyama::configure::{Config, RankingType};
use rust_sugiyama::from_vertices_and_edges;

use super::{DrawError, Drawing};

/// Space between two columns.
const COLUMN_GAP: f64 = 64.0;
/// Space between two boxes of a column.
const ROW_GAP: f64 = 18.0;
/// The height of a bend.
const BEND_HEIGHT: f64 = 4.0;
/// Space between unconnected parts of the graph.
const PART_GAP: f64 = 28.0;
/// The largest number of bends in all lines together.
const BENDS: usize = 20_000;
/// The width of the rows of boxes without lines. The rows are wider if the rest of the picture is.
const ROW_WIDTH: f64 = 900.0;

/// The position and size of a box. The position is that of its upper left corner.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Rectangle {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

/// A line from the right side of a box to the left side of another box.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Line {
    /// The two boxes.
    pub(super) edge: (usize, usize),
    /// The straight part in each column: `(left, right, y)`. Between columns the line is a curve.
    pub(super) stops: Vec<(f64, f64, f64)>,
}

/// The positions of everything in a picture.

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Layout {
    /// One box for each node.
    pub(super) boxes: Vec<Rectangle>,
    pub(super) lines: Vec<Line>,
    pub(super) width: f64,
    pub(super) height: f64,
}

/// Lays out boxes of the given sizes (width, height).
pub(super) fn layout(drawing: &Drawing, sizes: &[(f64, f64)]) -> Result<Layout, DrawError> {
    let mut plan = Plan::new(drawing, sizes);
    plan.add_bends()?;
    let (rows, connected_height) = plan.rows();
    let columns = plan.columns();
    let mut boxes: Vec<Rectangle> = sizes
        .iter()
        .map(|(width, height)| Rectangle { width: *width, height: *height, ..Rectangle::default() })
        .collect();
    let mut unconnected = Vec::new();
    for (node, rectangle) in boxes.iter_mut().enumerate() {
        match rows.get(&node) {
            Some(middle) => {
                rectangle.x = columns[plan.layer_of[node]].0;
                rectangle.y = middle - rectangle.height / 2.0;
            }
            None => unconnected.push(node),
        }
    }
    let lines = plan.lines(&rows, &columns, &boxes);
    let connected_width = match rows.is_empty() {
        true => 0.0,
        false => columns.last().map_or(0.0, |(_, right)| *right),
    };
    let (width, height) = place_unconnected(&unconnected, &mut boxes, connected_width, connected_height);
    Ok(Layout { boxes, lines, width, height })
}

/// The graph with bends as additional vertices. The nodes come first in their numbering.
struct Plan<'a> {
    sizes: &'a [(f64, f64)],
    layer_of: Vec<usize>,
    layer_count: usize,
    /// The edges of the drawing that lead to a later layer.
    edges: Vec<(usize, usize)>,
    /// The same edges, split at the bends. Each step connects two neighbouring layers.
    steps: Vec<(usize, usize)>,
    /// The vertex of the bend in a layer, for the lines that begin at a node. All lines of a node share the bend.
    bends: HashMap<(usize, usize), usize>,
}

impl<'a> Plan<'a> {
    fn new(drawing: &Drawing, sizes: &'a [(f64, f64)]) -> Plan<'a> {
        let layers = drawing.layers();
        let mut layer_of = vec![0; drawing.nodes.len()];
        for (number, layer) in layers.iter().enumerate() {
            layer.iter().for_each(|node| layer_of[*node] = number);
        }
        let mut edges: Vec<(usize, usize)> =
            drawing.drawn_edges().filter(|(from, to)| layer_of[*from] < layer_of[*to]).collect();
        edges.sort_unstable();
        edges.dedup();
        Plan { sizes, layer_of, layer_count: layers.len(), edges, steps: Vec::new(), bends: HashMap::new() }
    }

    /// Splits the edges that pass a layer.
    fn add_bends(&mut self) -> Result<(), DrawError> {
        for (from, to) in self.edges.clone() {
            let mut at = from;
            for layer in self.layer_of[from] + 1..self.layer_of[to] {
                let next = self.sizes.len() + self.bends.len();
                let bend = *self.bends.entry((from, layer)).or_insert(next);
                self.steps.push((at, bend));
                at = bend;
                if self.bends.len() > BENDS {
                    return Err(DrawError::TooTangled);
                }
            }
            self.steps.push((at, to));
        }
        self.steps.sort_unstable();
        self.steps.dedup();
        Ok(())
    }

    /// The vertical centre of each vertex that has a line, and the height of all together.
    fn rows(&self) -> (HashMap<usize, f64>, f64) {
        let mut used: Vec<usize> = self.steps.iter().flat_map(|(from, to)| [*from, *to]).collect();
        used.sort_unstable();
        used.dedup();
        // The library lays out from top to bottom, so its widths are our heights. It numbers the vertices in the given order.
        let heights: Vec<f64> = used
            .iter()
            .map(|vertex| self.sizes.get(*vertex).map_or(BEND_HEIGHT, |(_, height)| *height))
            .collect();
        let vertices: Vec<(u32, (f64, f64))> =
            (0_u32..).zip(&heights).map(|(number, height)| (number, (*height, 1.0))).collect();
        let number_of: HashMap<usize, u32> = used.iter().copied().zip(0_u32..).collect();
        let edges: Vec<(u32, u32)> =
            self.steps.iter().map(|(from, to)| (number_of[from], number_of[to])).collect();
        let config = Config {
            vertex_spacing: ROW_GAP,
            ranking_type: RankingType::Up,
            transpose: used.len() < 500,
            ..Config::default()
        };
        let mut rows = HashMap::new();
        let mut top = 0.0;
        for (part, _, _) in from_vertices_and_edges(&vertices, &edges, &config) {
            let least =
                part.iter().map(|(number, (x, _))| x - heights[*number] / 2.0).fold(f64::MAX, f64::min);
            let most =
                part.iter().map(|(number, (x, _))| x + heights[*number] / 2.0).fold(f64::MIN, f64::max);
            rows.extend(part.iter().map(|(number, (x, _))| (used[*number], x - least + top)));
            top += most - least + PART_GAP;
        }
        (rows, (top - PART_GAP).max(0.0))
    }

    /// The left and right side of each column.
    fn columns(&self) -> Vec<(f64, f64)> {
        let mut widths = vec![0.0_f64; self.layer_count];
        for (from, to) in &self.edges {
            for node in [from, to] {
                let layer = self.layer_of[*node];
                widths[layer] = widths[layer].max(self.sizes[*node].0);
            }
        }
        let mut left = 0.0;
        let mut columns = Vec::with_capacity(widths.len());
        for width in widths {
            columns.push((left, left + width));
            left += width + COLUMN_GAP;
        }
        columns
    }

    fn lines(&self, rows: &HashMap<usize, f64>, columns: &[(f64, f64)], boxes: &[Rectangle]) -> Vec<Line> {
        let mut lines = Vec::with_capacity(self.edges.len());
        for (from, to) in &self.edges {
            let (start, end) = (&boxes[*from], &boxes[*to]);
            let first = self.layer_of[*from];
            let mut stops = vec![(start.x + start.width, columns[first].1, start.y + start.height / 2.0)];
            let between = columns.iter().enumerate().take(self.layer_of[*to]).skip(first + 1);
            for (layer, (left, right)) in between {
                let bend = self.bends.get(&(*from, layer)).and_then(|bend| rows.get(bend));
                stops.extend(bend.map(|y| (*left, *right, *y)));
            }
            stops.push((end.x, end.x, end.y + end.height / 2.0));
            lines.push(Line { edge: (*from, *to), stops });
        }
        lines
    }
}

/// Positions the boxes without lines in rows below the rest. Returns the width and height of the whole picture.
fn place_unconnected(unconnected: &[usize], boxes: &mut [Rectangle], width: f64, height: f64) -> (f64, f64) {
    let widest = unconnected.iter().map(|node| boxes[*node].width).fold(0.0, f64::max);
    let tallest = unconnected.iter().map(|node| boxes[*node].height).fold(0.0, f64::max);
    let in_a_row = ((width.max(ROW_WIDTH) + ROW_GAP) / (widest + ROW_GAP)).floor().max(1.0) as usize;
    let top = if height > 0.0 { height + PART_GAP } else { 0.0 };
    for (at, node) in unconnected.iter().enumerate() {
        boxes[*node].x = (at % in_a_row) as f64 * (widest + ROW_GAP);
        boxes[*node].y = top + (at / in_a_row) as f64 * (tallest + ROW_GAP);
    }
    match unconnected.len() {
        0 => (width, height),
        count => {
            let rows = count.div_ceil(in_a_row) as f64;
            let row_width = count.min(in_a_row) as f64 * (widest + ROW_GAP) - ROW_GAP;
            (width.max(row_width), top + rows * (tallest + ROW_GAP) - ROW_GAP)
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::draw::Node;
    use crate::limits;

    fn laid_out(count: usize, edges: Vec<(usize, usize)>) -> Layout {
        let drawing = Drawing { nodes: vec![Node::default(); count], edges };
        layout(&drawing, &vec![(80.0, 34.0); count]).unwrap()
    }

    fn assert_no_overlap(layout: &Layout) {
        for (at, a) in layout.boxes.iter().enumerate() {
            assert!(a.x >= 0.0 && a.x + a.width <= layout.width + 0.1, "{a:?} {}", layout.width);
            assert!(a.y >= -0.1 && a.y + a.height <= layout.height + 0.1, "{a:?} {}", layout.height);
            for b in &layout.boxes[at + 1..] {
                let apart = a.x + a.width <= b.x
                    || b.x + b.width <= a.x
                    || a.y + a.height <= b.y
                    || b.y + b.height <= a.y;
                assert!(apart, "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn boxes_do_not_overlap_and_lines_go_right() {
        let edges = vec![(0, 1), (1, 2), (0, 3), (3, 4), (4, 2), (0, 2), (5, 6)];
        let layout = laid_out(9, edges.clone());
        assert_no_overlap(&layout);
        for (from, to) in edges {
            assert!(layout.boxes[from].x + layout.boxes[from].width < layout.boxes[to].x);
        }
        assert_eq!(layout.lines.len(), 7);
    }

    #[test]
    fn a_line_that_skips_a_layer_goes_around_its_boxes() {
        let layout = laid_out(3, vec![(0, 1), (1, 2), (0, 2)]);
        let long = layout.lines.iter().find(|line| line.stops.len() == 3).unwrap();
        let (_, _, y) = long.stops[1];
        let between = layout.boxes[1];
        assert!(y < between.y || y > between.y + between.height, "{y} {between:?}");
    }

    #[test]
    fn unconnected_boxes_are_in_rows() {
        let layout = laid_out(100, Vec::new());
        assert_no_overlap(&layout);
        assert!(layout.width < 1_000.0 && layout.height < 1_000.0);
    }

    #[test]
    fn the_largest_graphs_have_a_layout() {
        let count = limits::PICTURE_NODES;
        let chain = laid_out(count, (1..count).map(|node| (node - 1, node)).collect());
        assert!(chain.height < 100.0);
        let fan = laid_out(count, (1..count).map(|node| (0, node)).collect());
        assert_no_overlap(&fan);
    }

    #[test]
    fn needs_that_skip_too_many_layers_are_refused() {
        let count = limits::PICTURE_NODES;
        let mut edges: Vec<_> = (1..count).map(|node| (node - 1, node)).collect();
        edges.extend((0..100).map(|node| (node, count - 1)));
        let drawing = Drawing { nodes: vec![Node::default(); count], edges };
        assert_eq!(layout(&drawing, &vec![(80.0, 34.0); count]), Err(DrawError::TooTangled));
    }
}
