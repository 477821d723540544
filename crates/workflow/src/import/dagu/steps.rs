//! `steps` of Dagu: their order, their names, and what each becomes.

use std::collections::{BTreeMap, BTreeSet};

use super::actions::{self, Action};
use super::conditions::{self, skip_line};
use super::dag::{Reader, is_number};
use super::references::{Reference, has_command, references, variable_of};
use super::values::{
    find, inline_table, is_true, items, name_of, pairs, plain_key, quoted, quoted_list, scalar, table,
};
use crate::tree::{Entry, Node, Value};

/// A job.
pub(super) struct Job {
    /// The table that has it.
    pub(super) table: &'static str,
    pub(super) name: String,
    pub(super) lines: Vec<String>,
    /// The file or document that it calls.
    pub(super) calls: Option<String>,
    /// The variables that its texts name.
    pub(super) variables: BTreeSet<String>,
    /// The variable to which the step gives its output.
    pub(super) output: Option<String>,
}

/// A field of a job in an expression.
pub(super) fn job_field(name: &str, field: &str) -> String {
    let is_plain = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    match is_plain {
        true => format!("jobs.{name}.{field}"),
        false => format!("jobs['{name}'].{field}"),
    }
}

/// A step before it becomes a job.
struct Step<'t, 's> {
    node: &'t Node<'s>,
    /// Its name here.
    name: String,
    /// The names that other steps know it by.
    names: Vec<String>,
    /// Its place in a chain. Steps with the same place run side by side.
    place: usize,
    needs: Vec<usize>,
    output: Option<String>,
}

/// What a step can know of the others.
pub(super) struct Others<'a> {
    /// The outputs of earlier steps: the variable, and the job.
    outputs: BTreeMap<String, String>,
    /// The names of earlier steps, and their jobs.
    names: BTreeMap<String, String>,
    /// The jobs that call workflows or send requests, whose outputs have parts.
    with_parts: &'a BTreeMap<String, &'static str>,
}

impl Others<'_> {
    /// The value of a name that stands for something of an earlier step, as an expression.
    pub(super) fn value(&self, reference: &Reference) -> Option<String> {
        let (job, field) = match self.outputs.get(&reference.name) {
            Some(job) => (job, "output"),
            None => {
                let job = self.names.get(&reference.name)?;
                match reference.path.first().map(String::as_str) {
                    Some("exit_code" | "exitCode") => return Some(job_field(job, "exit_code")),
                    Some("output" | "outputs") => (job, "output"),
                    Some(_) | None => return None,
                }
            }
        };
        let mut path: Vec<&str> = reference.path.iter().map(String::as_str).collect();
        match self.with_parts.get(job) {
            Some(&"outputs") if path.first() == Some(&"outputs") => drop(path.remove(0)),
            Some(&"body") => path.insert(0, "body"),
            Some(_) | None if !self.outputs.contains_key(&reference.name) => drop(path.remove(0)),
            Some(_) | None => (),
        }
        let mut value = job_field(job, field);
        for part in path {
            value.push_str(&format!("['{part}']"));
        }
        Some(value)
    }
}

/// Reads the steps of a document.
pub(super) fn read(root: &[Entry<'_>], reader: &mut Reader<'_>) -> Vec<Job> {
    let Some(entry) = find(root, &["steps"]) else { return Vec::new() };
    let mut steps = collect(&entry.node, reader);
    let written_type = find(root, &["type"]).and_then(|entry| scalar(&entry.node, reader.document));
    let depends = |step: &Step<'_, '_>| find(table(step.node), &["depends", "dependson", "needs"]).is_some();
    let is_chain = match written_type.as_deref() {
        Some(text) => text == "chain",
        None => !steps.iter().any(depends),
    };
    resolve_needs(&mut steps, is_chain, reader);
    let with_parts: BTreeMap<String, &'static str> = steps
        .iter()
        .filter_map(|step| {
            Some((step.name.clone(), actions::output_part(table(step.node), reader.document)?))
        })
        .collect();
    let mut jobs: Vec<Job> = Vec::with_capacity(steps.len());
    for index in 0..steps.len() {
        let ancestors = ancestors(&steps, index);
        let of = |step: &Step<'_, '_>| step.output.clone().map(|output| (output, step.name.clone()));
        let others = Others {
            outputs: ancestors.iter().filter_map(|ancestor| of(&steps[*ancestor])).collect(),
            names: ancestors
                .iter()
                .flat_map(|ancestor| {
                    steps[*ancestor].names.iter().map(|name| (name.clone(), steps[*ancestor].name.clone()))
                })
                .collect(),
            with_parts: &with_parts,
        };
        let step = &steps[index];
        let needs: Vec<&str> = step.needs.iter().map(|need| steps[*need].name.as_str()).collect();
        jobs.push(job("jobs", step, &needs, &others, reader));
    }
    jobs
}

/// Reads a handler, which is a step that reads all the others.
pub(super) fn read_handler(
    node: &Node<'_>,
    table: &'static str,
    name: &str,
    jobs: &mut Vec<Job>,
    reader: &mut Reader<'_>,
) {
    let with_parts = BTreeMap::new();
    let others = Others {
        outputs: jobs.iter().filter_map(|job| Some((job.output.clone()?, job.name.clone()))).collect(),
        names: jobs.iter().map(|job| (job.name.clone(), job.name.clone())).collect(),
        with_parts: &with_parts,
    };
    let guard = std::mem::take(&mut reader.guard);
    let step =
        Step { node, name: name.to_owned(), names: Vec::new(), place: 0, needs: Vec::new(), output: None };
    let handler = job(table, &step, &[], &others, reader);
    reader.guard = guard;
    jobs.push(handler);
}

fn collect<'t, 's>(node: &'t Node<'s>, reader: &mut Reader<'_>) -> Vec<Step<'t, 's>> {
    let mut written: Vec<(Option<&str>, usize, &'t Node<'s>)> = Vec::new();
    match &node.value {
        Value::Table(entries) => {
            written.extend(
                entries
                    .iter()
                    .enumerate()
                    .map(|(place, entry)| (Some(entry.key.as_ref()), place, &entry.node)),
            );
        }
        Value::Text(_)
        | Value::Integer(_)
        | Value::Number(_)
        | Value::Boolean(_)
        | Value::Date(_)
        | Value::Null
        | Value::Broken
        | Value::List(_) => {
            for (place, item) in items(node).into_iter().enumerate() {
                match &item.value {
                    // A list in the list runs side by side.
                    Value::List(group) => written.extend(group.iter().map(|step| (None, place, step))),
                    Value::Text(_)
                    | Value::Integer(_)
                    | Value::Number(_)
                    | Value::Boolean(_)
                    | Value::Date(_)
                    | Value::Null
                    | Value::Broken
                    | Value::Table(_) => written.push((None, place, item)),
                }
            }
        }
    }
    let mut taken = BTreeSet::new();
    let mut steps: Vec<Step<'t, 's>> = Vec::with_capacity(written.len());
    for (index, (key, place, node)) in written.into_iter().enumerate() {
        let text =
            |keys: &[&str]| find(table(node), keys).and_then(|entry| scalar(&entry.node, reader.document));
        let names: Vec<String> =
            key.map(str::to_owned).into_iter().chain(text(&["name"])).chain(text(&["id"])).collect();
        let otherwise = format!("step-{}", index + 1);
        let base = names.first().map_or(otherwise.clone(), |name| name_of(name, "step"));
        let base = if base == "step" { otherwise } else { base };
        let numbered = (2..).map(|number| format!("{base}-{number}"));
        let free = std::iter::once(base.clone()).chain(numbered).find(|name| !taken.contains(name));
        let name = free.unwrap_or(base);
        taken.insert(name.clone());
        steps.push(Step {
            node,
            name,
            names,
            place,
            needs: Vec::new(),
            output: output_of(node, reader.document),
        });
    }
    steps
}

/// The variable in `output`.
fn output_of(node: &Node<'_>, document: &str) -> Option<String> {
    let entry = find(table(node), &["output"])?;
    let name = match find(table(&entry.node), &["name"]) {
        Some(name) => scalar(&name.node, document)?,
        None => scalar(&entry.node, document)?,
    };
    let name = name.trim_start_matches('$').trim_matches(['{', '}']).to_owned();
    (variable_of(&name) == name && !name.is_empty()).then_some(name)
}

fn resolve_needs(steps: &mut [Step<'_, '_>], is_chain: bool, reader: &mut Reader<'_>) {
    let index: BTreeMap<String, usize> = steps
        .iter()
        .enumerate()
        .flat_map(|(index, step)| step.names.iter().map(move |name| (name.clone(), index)))
        .collect();
    let places: Vec<usize> = steps.iter().map(|step| step.place).collect();
    for (own, step) in steps.iter_mut().enumerate() {
        match find(table(step.node), &["depends", "dependson", "needs"]) {
            Some(depends) => {
                for item in items(&depends.node) {
                    let Some(name) = scalar(item, reader.document) else { continue };
                    match index.get(&name) {
                        Some(needed) if *needed != own => step.needs.push(*needed),
                        Some(_) | None => {
                            let what = format!("`depends` on `{name}`; there is no such step");
                            let comment = reader.notes.leave_out(&item.span, what);
                            reader.top.push(comment);
                        }
                    }
                }
            }
            None if is_chain => {
                let before = places.iter().filter(|place| **place < step.place).max().copied();
                step.needs = (0..places.len()).filter(|other| Some(places[*other]) == before).collect();
            }
            None => (),
        }
        step.needs.sort_unstable();
        step.needs.dedup();
    }
}

/// All steps that are over before this one.
fn ancestors(steps: &[Step<'_, '_>], index: usize) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    let mut pending = steps[index].needs.clone();
    while let Some(next) = pending.pop() {
        if found.insert(next) {
            pending.extend(&steps[next].needs);
        }
    }
    found
}

/// A job under construction.
pub(super) struct Draft<'a, 'n> {
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

    /// Gives a script the variables that its text names.
    pub(super) fn give_variables(&mut self, text: &str, node: &Node<'_>) {
        for reference in references(text) {
            let variable = reference.variable();
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
        super::references::replace(text, |reference| match self.others.value(reference) {
            Some(value) => Some(format!("{{{{ {value} | default('') }}}}")),
            None if reference.path.is_empty() => self.reader.known(&reference.name),
            None => None,
        })
    }
}

fn job(
    place: &'static str,
    step: &Step<'_, '_>,
    needs: &[&str],
    others: &Others<'_>,
    reader: &mut Reader<'_>,
) -> Job {
    let entries = table(step.node);
    let document = reader.document;
    let mut guards: Vec<String> = if needs.is_empty() { reader.guard.clone() } else { Vec::new() };
    let mut draft = Draft { lines: Vec::new(), env: Vec::new(), variables: BTreeSet::new(), others, reader };
    for line in &guards {
        draft.give_variables(line, step.node);
    }
    if !needs.is_empty() {
        draft.lines.push(format!("needs = {}", quoted_list(needs)));
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
                guards.push(condition.guard());
            }
        }
    }
    if !expressions.is_empty() {
        draft.lines.push(format!("if = {}", quoted(&expressions.join(" and "))));
    }
    let action = actions::read(step.node, &guards, &mut draft);
    let is_process = matches!(action, Action::Process);
    let mut calls = None;
    match action {
        Action::Process if !guards.is_empty() => draft.lines.push(skip_line()),
        Action::Call(called) => calls = Some(called),
        Action::Process | Action::Other | Action::Nothing => (),
    }
    if !guards.is_empty() && !is_process {
        let comment =
            draft.reader.notes.leave_out(&step.node.span, "a condition of a step that is no command");
        draft.lines.push(comment);
    }
    settings(entries, is_process, &mut draft);
    if is_process {
        process_settings(step, entries, &mut draft);
    }
    let Draft { lines, variables, .. } = draft;
    Job { table: place, name: step.name.clone(), lines, calls, variables, output: step.output.clone() }
}

/// Keys that are about the process of a step.
fn process_settings(step: &Step<'_, '_>, entries: &[Entry<'_>], draft: &mut Draft<'_, '_>) {
    if let Some(env) = find(entries, &["env"]) {
        for pair in pairs(&env.node) {
            let value = scalar(&pair.node, draft.reader.document).unwrap_or_default();
            match draft.template(&value) {
                Some(value) if variable_of(&pair.key) == pair.key => {
                    draft.env.retain(|(name, _)| *name != pair.key);
                    draft.env.push((pair.key.to_string(), value));
                }
                Some(_) | None => draft.leave_out(pair, "the value is computed; set it in the script"),
            }
        }
    }
    if !draft.env.is_empty() {
        draft.lines.push(format!("env = {}", inline_table(&draft.env)));
    }
    if !draft.reader.env_files.is_empty() {
        draft.lines.push(format!("env_files = {}", quoted_list(&draft.reader.env_files)));
    }
    let secrets: Vec<String> = draft
        .reader
        .secrets
        .iter()
        .filter(|name| draft.env.iter().all(|(own, _)| own != *name))
        .cloned()
        .collect();
    if !secrets.is_empty() {
        draft.lines.push(format!("secrets = {}", quoted_list(&secrets)));
    }
    if let Some(output) = &step.output {
        let has_parts = references(draft.reader.document)
            .iter()
            .any(|reference| reference.name == *output && !reference.path.is_empty());
        draft.lines.push(format!("output = \"{}\"", if has_parts { "json" } else { "text" }));
    }
}

/// Keys that every job can have.
fn settings(entries: &[Entry<'_>], is_process: bool, draft: &mut Draft<'_, '_>) {
    for entry in entries {
        let text = scalar(&entry.node, draft.reader.document);
        match (plain_key(entry).as_str(), text) {
            // These are read elsewhere.
            (
                "name" | "id" | "depends" | "dependson" | "needs" | "preconditions" | "precondition"
                | "command" | "cmd" | "args" | "script" | "shell" | "output" | "env" | "executor" | "type"
                | "config" | "with" | "call" | "run" | "params" | "stdout" | "stderr" | "dir" | "workingdir"
                | "parallel",
                _,
            ) => (),
            ("description", Some(text)) => draft.lines.push(format!("description = {}", quoted(text.trim()))),
            ("timeoutsec", Some(seconds)) if is_number(&seconds) && is_process => {
                if seconds != "0" {
                    draft.lines.push(format!("timeout = \"{seconds}s\""));
                }
            }
            ("retrypolicy", _) if is_process => retry(entry, draft),
            ("continueon", text) => continue_on(entry, text.as_deref(), is_process, draft),
            ("mailonerror", _) => {
                draft.leave_out(entry, "no mail is sent; write a job under [on_failure] that does")
            }
            ("repeatpolicy", _) => draft.leave_out(entry, "write the repetition as a loop in the script"),
            ("signalonstop", _) => draft.leave_out(entry, "a process is stopped by SIGTERM, then by SIGKILL"),
            ("workerselector", _) => draft.leave_out(entry, "write what a worker must have as `requires`"),
            ("container", _) => draft.leave_out(entry, "start the container in the script: docker run"),
            _ => draft.leave_out(entry, "there is no equivalent"),
        }
    }
}

fn retry(entry: &Entry<'_>, draft: &mut Draft<'_, '_>) {
    let parts = table(&entry.node);
    let document = draft.reader.document;
    let text = |key: &str| find(parts, &[key]).and_then(|part| scalar(&part.node, document));
    let number =
        |key: &str| text(key).filter(|text| is_number(text)).and_then(|text| text.parse::<i64>().ok());
    let Some(limit) = number("limit") else {
        return draft.leave_out(entry, "the number of attempts is computed; write it as `retry`");
    };
    if limit == 0 {
        return;
    }
    let delay = number("intervalsec").unwrap_or(0);
    let factor = match text("backoff").as_deref() {
        Some("true") => "2".to_owned(),
        Some(factor) if factor.parse::<f64>().is_ok_and(|factor| factor >= 1.0) => factor.to_owned(),
        Some(_) | None => "1".to_owned(),
    };
    let mut fields = vec![
        format!("max_attempts = {}", limit.saturating_add(1)),
        format!("delay = \"{delay}s\""),
        format!("factor = {factor}"),
        "jitter = 0".to_owned(),
    ];
    if let Some(most) = number("maxintervalsec").filter(|most| *most >= delay) {
        fields.push(format!("max_delay = \"{most}s\""));
    }
    if let Some(codes) = find(parts, &["exitcode", "exitcodes"]) {
        let codes: Vec<String> =
            items(&codes.node).into_iter().filter_map(|code| scalar(code, document)).collect();
        if codes.iter().all(|code| is_number(code)) {
            fields.push(format!("if = \"exit_code in [{}]\"", codes.join(", ")));
        }
    }
    draft.lines.push(format!("retry = {{ {} }}", fields.join(", ")));
}

fn continue_on(entry: &Entry<'_>, text: Option<&str>, is_process: bool, draft: &mut Draft<'_, '_>) {
    if let Some(word) = text {
        match word {
            "failed" | "failure" => draft.lines.push("allow_failure = true".to_owned()),
            _ => draft.leave_out(entry, "write `when` in the steps that follow"),
        }
        return;
    }
    let parts = table(&entry.node);
    let is_set = |keys: &[&str]| find(parts, keys).is_some_and(|part| is_true(&part.node));
    if is_set(&["failure", "failed"]) {
        draft.lines.push("allow_failure = true".to_owned());
    }
    for part in parts {
        match plain_key(part).as_str() {
            "failure" | "failed" | "marksuccess" => (),
            "exitcode" if is_process => {
                let document = draft.reader.document;
                let mut codes: Vec<String> =
                    items(&part.node).into_iter().filter_map(|code| scalar(code, document)).collect();
                if codes.iter().all(|code| is_number(code)) {
                    codes.insert(0, "0".to_owned());
                    codes.dedup();
                    draft.lines.push(format!("success_if = \"exit_code in [{}]\"", codes.join(", ")));
                } else {
                    draft.leave_out(part, "write `success_if`");
                }
            }
            "skipped" if !is_true(&part.node) => (),
            "skipped" => draft.leave_out(part, "write when = \"all_finished\" in the steps that follow"),
            _ => draft.leave_out(part, "test it in the script, and exit with 0"),
        }
    }
}
