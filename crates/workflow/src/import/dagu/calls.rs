//! Steps that call other workflows.

use super::actions::{Action, nothing};
use super::dag::is_number;
use super::job::Draft;
use super::params::words;
use super::values::{find, items, list, quoted, quoted_list, scalar, table, toml_key, value_of};
use crate::tree::{Entry, Node};

/// The workflow that a job calls: a file, or a document of the same file.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) workflow: String,
    /// The names of the parameters that it gives.
    pub(super) params: Vec<String>,
}

/// A job that calls another workflow, once or for each item of `parallel`.
pub(super) fn call(
    called: String,
    entries: &[Entry<'_>],
    node: &Node<'_>,
    draft: &mut Draft<'_, '_>,
) -> Action {
    let document = draft.reader.document;
    if called.contains('$') {
        return nothing("a step that calls a computed workflow", node, draft);
    }
    if let Some(entry) = find(entries, &["parallel"]) {
        parallel(entry, draft);
    }
    let mut names = Vec::new();
    let mut params: Vec<String> = Vec::new();
    let with = find(entries, &["action"]).and_then(|_| find(entries, &["with"]));
    if let Some(with) = with {
        draft.leave_out_others(table(&with.node), &["dag", "params"], "a call has no such key");
    }
    let mut given = given(entries, draft);
    if given.is_empty() && draft.has_items {
        // Without parameters the workflow gets the item as its first one.
        if let Some(entry) = find(entries, &["parallel"]).filter(|entry| has_named(entry, document)) {
            draft.leave_out(entry, "its items name parameters; write them in `params` of the job");
        }
        given.push((None, "${ITEM}".to_owned()));
    }
    for (index, (name, value)) in given.into_iter().enumerate() {
        let name = name.unwrap_or_else(|| format!("p{}", index + 1));
        match draft.template(&value) {
            Some(value) => {
                params.push(format!("{} = {}", toml_key(&name), quoted(&value)));
                names.push(name);
            }
            None => {
                let what = format!("the value of parameter `{name}` is computed: `{value}`");
                let comment = draft.reader.notes.leave_out(&node.span, what);
                draft.lines.push(comment);
            }
        }
    }
    if !params.is_empty() {
        draft.lines.push(format!("params = {{ {} }}", params.join(", ")));
    }
    Action::Call(Call { workflow: called, params: names })
}

/// Writes the items of `parallel`, and names what is left out.
fn parallel(entry: &Entry<'_>, draft: &mut Draft<'_, '_>) {
    match for_each(entry, draft) {
        Some(line) => {
            draft.lines.push(line);
            draft.has_items = true;
        }
        None => draft.leave_out(entry, "write the items as `for_each`"),
    }
    let document = draft.reader.document;
    let is_written = |most: &Entry<'_>| scalar(&most.node, document).is_some_and(|most| is_number(&most));
    let most = find(table(&entry.node), &["maxconcurrent"]);
    if let Some(most) = most.filter(|most| draft.has_items && !is_written(most)) {
        draft.leave_out(most, "the number is computed; write it as `max_parallel`");
    }
    draft.leave_out_others(table(&entry.node), &["items", "maxconcurrent"], "`for_each` has no such key");
}

/// Whether an item of `parallel` gives parameters by their names, such as `A=1 B=2`.
fn has_named(parallel: &Entry<'_>, document: &str) -> bool {
    let listed = find(table(&parallel.node), &["items"]).unwrap_or(parallel);
    let names = |item: &Node<'_>| {
        let text = scalar(item, document).unwrap_or_default();
        words(&text).iter().any(|(name, _)| name.is_some())
    };
    list(&listed.node).is_some_and(|items| items.iter().any(names))
}

/// The line for the items of `parallel`. Nothing if they are computed, or are tables.
fn for_each(parallel: &Entry<'_>, draft: &Draft<'_, '_>) -> Option<String> {
    let document = draft.reader.document;
    let parts = table(&parallel.node);
    let listed = find(parts, &["items"]).unwrap_or(parallel);
    let template = |item: &Node<'_>| draft.template(&scalar(item, document)?);
    let items: Vec<String> = list(&listed.node)?.iter().map(template).collect::<Option<_>>()?;
    let most = find(parts, &["maxconcurrent"]).and_then(|most| scalar(&most.node, document));
    let most = most.filter(|most| is_number(most)).map(|most| format!(", max_parallel = {most}"));
    Some(format!("for_each = {{ in = {}{} }}", quoted_list(&items), most.unwrap_or_default()))
}

/// The parameters that a step gives, some of them with names.
fn given(entries: &[Entry<'_>], draft: &mut Draft<'_, '_>) -> Vec<(Option<String>, String)> {
    let document = draft.reader.document;
    let with = find(entries, &["action"]).and_then(|_| find(entries, &["with"]));
    let of_action = with.and_then(|with| find(table(&with.node), &["params"]));
    let Some(entry) = find(entries, &["params"]).or(of_action) else { return Vec::new() };
    let mut given = Vec::new();
    for item in items(&entry.node) {
        let pairs = table(item);
        match scalar(item, document) {
            Some(text) => given.extend(words(&text)),
            None if pairs.is_empty() => draft.leave_out_item(item, "a parameter is written as NAME=value"),
            None => (),
        }
        for pair in pairs {
            match value_of(&pair.node, document) {
                Some(value) => given.push((Some(pair.key.to_string()), value)),
                None => draft.leave_out(pair, "a parameter is a text, a number or a boolean"),
            }
        }
    }
    given
}
