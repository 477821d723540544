//! One step, which becomes a job.

use std::collections::BTreeSet;

use super::actions::{self, Action};
use super::calls::Call;
use super::conditions::{self, skip_line};
use super::container::Container;
use super::dag::Reader;
use super::references::{Reference, for_script, has_command, is_quoted, references, replace, unread};
use super::settings;
use super::steps::{Others, Step};
use super::values::{find, plain_key, quoted, quoted_list, table};
use crate::tree::{Entry, Node};

/// A job.
pub(super) struct Job {
    /// The table that has it.
    pub(super) table: &'static str,
    pub(super) name: String,
    pub(super) lines: Vec<String>,
    /// The workflow that it calls.
    pub(super) calls: Option<Call>,
    /// The variables that its texts name.
    pub(super) variables: BTreeSet<String>,
    /// The variable to which the step gives its output.
    pub(super) output: Option<String>,
}

/// A job under construction.
pub(super) struct Draft<'a, 'n> {
    /// Whether the job is one for each item.
    pub(super) has_items: bool,
    pub(super) lines: Vec<String>,
    pub(super) env: Vec<(String, String)>,
    pub(super) variables: BTreeSet<String>,
    pub(super) others: &'a Others<'a>,
    pub(super) reader: &'a mut Reader<'n>,
}

impl Draft<'_, '_> {
    pub(super) fn leave_out(&mut self, entry: &Entry<'_>, why: &str) {
        self.reader.leave_out(entry, why, &mut self.lines);
    }

    /// Notes that the entries with none of these keys are left out.
    pub(super) fn leave_out_others<'e, 's: 'e>(
        &mut self,
        entries: impl IntoIterator<Item = &'e Entry<'s>>,
        keys: &[&str],
        why: &str,
    ) {
        for entry in entries {
            if !keys.contains(&plain_key(entry).as_str()) {
                self.leave_out(entry, why);
            }
        }
    }

    pub(super) fn leave_out_item(&mut self, item: &Node<'_>, why: &str) {
        self.reader.leave_out_item(item, why, &mut self.lines);
    }

    /// Whether the name is one of Dagu's, and not only one of the shell's.
    pub(super) fn is_known(&self, reference: &Reference) -> bool {
        self.reader.is_known(reference) || self.others.value(reference).is_some()
    }

    /// Gives the job a container.
    pub(super) fn contain(&mut self, container: Container) {
        self.lines.push(container.line);
        self.env.extend(container.env);
    }

    /// A text for a script: names that a variable can't have are replaced by those of their variables.
    pub(super) fn script(&self, text: &str) -> String {
        for_script(text, |reference| self.is_known(reference))
    }

    /// Gives a script the variables that its text names.
    pub(super) fn give_variables(&mut self, text: &str, node: &Node<'_>) {
        for written in unread(text) {
            let what = format!("`{written}` can't be read here, nor by a shell");
            let comment = self.reader.notes.leave_out(&node.span, what);
            self.lines.push(comment);
        }
        for reference in references(text) {
            let variable = reference.variable();
            if is_quoted(text, reference.range.start) && self.is_known(&reference) {
                let written = &text[reference.range.clone()];
                let what = format!("`{written}` stands in single quotes, in which the shell puts no value");
                let comment = self.reader.notes.leave_out(&node.span, what);
                self.lines.push(comment);
            }
            if let Some(value) = self.others.value(&reference) {
                if self.env.iter().all(|(name, _)| *name != variable) {
                    self.env.push((variable, format!("{{{{ {value} | default('') }}}}")));
                }
            } else if reference.path.is_empty() {
                self.variables.insert(variable);
            } else {
                let what =
                    format!("`{}` stands for nothing that is known here", &text[reference.range.clone()]);
                let comment = self.reader.notes.leave_out(&node.span, what);
                self.lines.push(comment);
            }
        }
    }

    /// A text as a template. Nothing if a part of it is not known.
    pub(super) fn template(&self, text: &str) -> Option<String> {
        if has_command(text) || text.contains("{{") {
            return None;
        }
        replace(text, |reference| match self.others.value(reference) {
            Some(value) => Some(format!("{{{{ {value} | default('') }}}}")),
            None if self.has_items && reference.name == "ITEM" && reference.path.is_empty() => {
                Some("{{ item }}".to_owned())
            }
            None if reference.path.is_empty() => self.reader.known(&reference.name),
            None => None,
        })
    }
}

/// Makes a job of a step, in the table `place`.
pub(super) fn job(
    place: &'static str,
    step: &Step<'_, '_>,
    needs: &[&str],
    others: &Others<'_>,
    reader: &mut Reader<'_>,
) -> Job {
    let entries = table(step.node);
    let document = reader.document;
    let mut guards: Vec<String> = if needs.is_empty() { reader.guard.clone() } else { Vec::new() };
    let mut draft = Draft {
        has_items: false,
        lines: Vec::new(),
        env: Vec::new(),
        variables: BTreeSet::new(),
        others,
        reader,
    };
    for line in &guards {
        draft.give_variables(line, step.node);
    }
    if !needs.is_empty() {
        draft.lines.push(format!("needs = {}", quoted_list(needs)));
    }
    if let Some(entry) = find(entries, &["preconditions", "precondition"]) {
        conditions::leave_out_unread(&entry.node, draft.reader, &mut draft.lines);
    }
    let mut expressions: Vec<String> = Vec::new();
    for condition in conditions::of_table(entries, document) {
        let known = |name: &str| {
            let reference = Reference { range: 0..0, name: name.to_owned(), path: Vec::new() };
            let param = draft.reader.params.iter().find(|param| param.name == name);
            draft
                .others
                .value(&reference)
                .map(|value| format!("({value} | default(''))"))
                .or_else(|| Some(format!("params.{}", param?.ours)))
        };
        match condition.expression(known) {
            Some(expression) => expressions.push(expression),
            None => {
                draft.give_variables(condition.text(), step.node);
                guards.push(condition.guard(|text| draft.script(text)));
            }
        }
    }
    if !expressions.is_empty() {
        draft.lines.push(format!("if = {}", quoted(&expressions.join(" and "))));
    }
    let action = actions::read(step.node, &guards, &mut draft);
    settings::every(step, &action, &mut draft);
    if matches!(action, Action::Process) {
        if !guards.is_empty() {
            draft.lines.push(skip_line());
        }
        settings::process(step, entries, &mut draft);
    } else if !guards.is_empty() {
        let what =
            "the conditions of a job that runs no script, those of the workflow too; write them as `if`";
        let comment = draft.reader.notes.leave_out(&step.node.span, what);
        draft.lines.push(comment);
    }
    let calls = if let Action::Call(call) = action { Some(call) } else { None };
    let Draft { lines, variables, .. } = draft;
    Job { table: place, name: step.name.clone(), lines, calls, variables, output: step.output.clone() }
}
