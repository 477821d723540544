//! Puts the trees of a file and of those that it includes together.

use super::INCLUDE;
use crate::expect;
use crate::report::{Finding, Findings};
use crate::source::Source;
use crate::tree::{self, Entry, Node, Value};

/// The tables that can be included.
const TABLES: [&str; 4] = ["workflows", "secrets", "env", "defaults"];

/// Reads the tree of a file together with those that it includes. As [`tree::read`].
pub(crate) fn read<'s>(source: &'s Source, findings: &mut Findings) -> Option<Vec<Entry<'s>>> {
    let (text, format, _start) = source.part(None);
    let mut root = tree::read_text(text, format, findings)?;
    check_were_read(source, &root, findings);
    for unread in &source.unread {
        findings.push(unread.clone());
        findings.miss_included();
    }
    for index in 0..source.included.len() {
        let (text, format, start) = source.part(Some(index));
        let mut own = Findings::default();
        let entries = tree::read_text(text, format, &mut own);
        findings.take_all(own, start);
        let Some(entries) = entries else {
            findings.miss_included();
            continue;
        };
        for mut entry in entries {
            shift(&mut entry, start);
            merge(entry, &mut root, findings);
        }
    }
    Some(root)
}

/// Whether a file has no jobs and nothing else that can't be included, so that it is there to be included.
pub(crate) fn can_be_included(source: &Source) -> bool {
    let entries = tree::read(source, &mut Findings::default()).unwrap_or_default();
    let known = keys_of_included_files();
    !entries.is_empty() && entries.iter().all(|entry| known.contains(&entry.key.as_ref()))
}

/// The keys of a file that others include.
pub(crate) fn keys_of_included_files() -> Vec<&'static str> {
    [INCLUDE.name()].into_iter().chain(TABLES).collect()
}

/// Reports files that the caller did not read.
fn check_were_read(source: &Source, root: &[Entry<'_>], findings: &mut Findings) {
    let include = root.iter().find(|entry| entry.key == INCLUDE.name());
    let nothing_was_read = source.included.is_empty() && source.unread.is_empty();
    let Some(include) = include.filter(|_| nothing_was_read) else { return };
    if let Some(first) = super::items(include).iter().find(|node| super::text_of(node).is_some()) {
        findings.push(
            Finding::new(first.span.clone(), "no file can be included here")
                .help("write the tables into this file"),
        );
    }
}

/// Adds an entry of an included file.
fn merge<'s>(entry: Entry<'s>, root: &mut Vec<Entry<'s>>, findings: &mut Findings) {
    if entry.key == INCLUDE.name() {
        super::check(&entry, findings);
        return;
    }
    if !TABLES.contains(&entry.key.as_ref()) {
        findings.push(
            Finding::new(entry.key_span.clone(), format!("`{}` can't be included", entry.key.escape_debug()))
                .help("an included file has `include`, `workflows`, `secrets`, `env` and `defaults`"),
        );
        return;
    }
    let Some(known) = root.iter_mut().find(|known| known.key == entry.key) else {
        root.push(entry);
        return;
    };
    // A value of a wrong type is reported where the table is read.
    let Value::Table(known) = &mut known.node.value else { return };
    let Value::Table(more) = entry.node.value else {
        expect::wrong_type(&entry.node, &expect::quoted(&entry), "a table", findings);
        return;
    };
    for added in more {
        match known.iter().find(|known| known.key == added.key) {
            Some(first) => findings.push(
                Finding::new(added.key_span.clone(), format!("`{}` has `{}` twice", entry.key, added.key))
                    .related(first.key_span.clone(), "the first one")
                    .help(
                        "the names of a file and of those that it includes must differ; remove one of them",
                    ),
            ),
            None => known.push(added),
        }
    }
}

fn shift(entry: &mut Entry<'_>, by: usize) {
    entry.key_span = entry.key_span.start + by..entry.key_span.end + by;
    shift_node(&mut entry.node, by);
}

// The depth of a tree is limited.
fn shift_node(node: &mut Node<'_>, by: usize) {
    node.span = node.span.start + by..node.span.end + by;
    match &mut node.value {
        Value::List(items) => items.iter_mut().for_each(|item| shift_node(item, by)),
        Value::Table(entries) => entries.iter_mut().for_each(|entry| shift(entry, by)),
        Value::Text(_)
        | Value::Integer(_)
        | Value::Number(_)
        | Value::Boolean(_)
        | Value::Date(_)
        | Value::Null
        | Value::Broken => (),
    }
}
