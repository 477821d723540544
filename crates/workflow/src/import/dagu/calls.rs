//! Steps that call other workflows.

use super::actions::{Action, nothing};
use super::dag::is_number;
use super::job::Draft;
use super::params::words;
use super::values::{find, list, pairs, quoted, quoted_list, scalar, table, text, toml_key};
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
    if let Some(parallel) = find(entries, &["parallel"]) {
        match for_each(parallel, draft) {
            Some(line) => {
                draft.lines.push(line);
                draft.has_items = true;
            }
            None => draft.leave_out(parallel, "write the items as `for_each`"),
        }
    }
    let mut names = Vec::new();
    let mut params: Vec<String> = Vec::new();
    let mut given = given(entries, document);
    if given.is_empty() && draft.has_items {
        // Without parameters the workflow gets the item as its first one.
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
fn given(entries: &[Entry<'_>], document: &str) -> Vec<(Option<String>, String)> {
    let with = find(entries, &["action"]).and_then(|_| find(entries, &["with"]));
    let of_action = with.and_then(|with| find(table(&with.node), &["params"]));
    let Some(entry) = find(entries, &["params"]).or(of_action) else { return Vec::new() };
    match text(&entry.node) {
        Some(text) => words(text),
        None => pairs(&entry.node)
            .into_iter()
            .filter_map(|pair| Some((Some(pair.key.to_string()), scalar(&pair.node, document)?)))
            .collect(),
    }
}
