//! Finds what the templates and expressions of a file read, with positions. The list of keys says which texts these are.

use crate::expression::{self, IfAbsent, Segment};
use crate::key::{Key, Table, TextKind, ValueType};
use crate::report::Span;
use crate::template;
use crate::tree::{Entry, Node, Value};

use super::entries;

/// A look-up in a template or an expression.
pub(super) struct TextRead {
    /// The names that begin it, up to the first part that is no name.
    pub(super) path: Vec<String>,
    pub(super) if_absent: IfAbsent,
    /// The key of the job in which it stands.
    pub(super) key: &'static str,
    /// Where the file has it.
    pub(super) span: Span,
}

impl TextRead {
    /// The name after this root, as `day` of `params.day`.
    pub(super) fn name_after(&self, root: &str) -> Option<&str> {
        match self.path.as_slice() {
            [first, name, ..] if first == root => Some(name),
            _ => None,
        }
    }
}

pub(super) fn of_job(file: &str, job: &Entry<'_>) -> Vec<TextRead> {
    let mut collector = Collector { file, key: "", reads: Vec::new() };
    collector.table(entries(job), Table::Job, Level::Outer);
    collector.reads
}

/// What the workflow itself reads, outside of its jobs and schedules.
pub(super) fn of_workflow(file: &str, root: &[Entry<'_>]) -> Vec<TextRead> {
    let mut collector = Collector { file, key: "", reads: Vec::new() };
    for entry in root {
        if entry.key == "defaults" {
            collector.table(entries(entry), Table::Defaults, Level::Outer);
        } else if let Some(key) = Table::Workflow.keys().find(|key| key.name() == entry.key) {
            collector.key = key.name();
            collector.value(entry, key);
        }
    }
    collector.reads
}

/// Whether a table is a job's own, or a table in it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Outer,
    Inner,
}

struct Collector<'f> {
    file: &'f str,
    key: &'static str,
    reads: Vec<TextRead>,
}

impl Collector<'_> {
    fn table(&mut self, table: &[Entry<'_>], keys: Table, level: Level) {
        for entry in table {
            let Some(key) = keys.keys().find(|key| key.name() == entry.key) else { continue };
            if level == Level::Outer {
                self.key = key.name();
            }
            self.value(entry, key);
        }
    }

    fn value(&mut self, entry: &Entry<'_>, key: &Key) {
        let inner = key.types.iter().find_map(|value_type| {
            let ValueType::Table(table) = value_type else { return None };
            Some(*table)
        });
        match (&entry.node.value, inner) {
            (Value::Table(table), Some(keys)) => self.table(table, keys, Level::Inner),
            _ => self.texts(&entry.node, key.text),
        }
    }

    /// The texts in a value. Those in a list of a key for expressions are templates.
    fn texts(&mut self, node: &Node<'_>, kind: TextKind) {
        match (&node.value, kind) {
            (_, TextKind::Plain) => (),
            (Value::Text(text), TextKind::Template(_)) => self.template(text, node),
            (Value::Text(text), TextKind::Expression(_) | TextKind::Value(_)) => {
                self.expression(text, 0, text, node)
            }
            (
                Value::List(items),
                TextKind::Template(place) | TextKind::Expression(place) | TextKind::Value(place),
            ) => {
                items.iter().for_each(|item| self.texts(item, TextKind::Template(place)));
            }
            (Value::Table(entries), kind) => entries.iter().for_each(|entry| self.texts(&entry.node, kind)),
            (
                Value::Integer(_)
                | Value::Number(_)
                | Value::Boolean(_)
                | Value::Date(_)
                | Value::Null
                | Value::Broken,
                _,
            ) => (),
        }
    }

    fn template(&mut self, text: &str, node: &Node<'_>) {
        for (expression, range) in template::expressions(text) {
            self.expression(expression, range.start, text, node);
        }
    }

    /// The look-ups of an expression, which begins at byte `offset` of a text of the file.
    fn expression(&mut self, expression: &str, offset: usize, text: &str, node: &Node<'_>) {
        for lookup in expression::lookups(expression).unwrap_or_default() {
            let names = lookup.path.iter().map_while(|segment| match segment {
                Segment::Name(name) => Some(name.clone()),
                Segment::Index(_) | Segment::Computed => None,
            });
            let part = offset + lookup.range.start..offset + lookup.range.end;
            self.reads.push(TextRead {
                path: names.collect(),
                if_absent: lookup.if_absent,
                key: self.key,
                span: template::span_within(self.file, &node.span, text, &part),
            });
        }
    }
}
