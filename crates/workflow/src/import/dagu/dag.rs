//! One document of Dagu: a workflow with its jobs.

use std::collections::BTreeSet;

use super::calls::Call;
use super::container::{self, Container};
use super::job::Job;
use super::notes::Notes;
use super::params::{self, Param};
use super::references::{Reference, for_script, has_command, replace, variable_of};
use super::schedules::{self, Schedule};
use super::steps;
use super::values::{find, items, name_of, plain_key, quoted, quoted_list, scalar, table};
use super::{conditions, environment, handlers};
use crate::tree::{Entry, Node};

/// What is known while a document is read.
pub(super) struct Reader<'n> {
    pub(super) document: &'n str,
    pub(super) notes: &'n mut Notes,
    /// Comments for the top of the workflow.
    pub(super) top: Vec<String>,
    pub(super) params: Vec<Param>,
    /// The variables of the workflow: name, and value as a template.
    pub(super) env: Vec<(String, String)>,
    /// The names of the secrets.
    pub(super) secrets: Vec<String>,
    /// Files with variables, for each job with a process.
    pub(super) env_files: Vec<String>,
    /// The container in which its steps run.
    pub(super) container: Option<Container>,
    /// Lines of a script that ends a job without parents if the workflow is not to run.
    pub(super) guard: Vec<String>,
}

impl Reader<'_> {
    /// Notes that an entry is left out. The comment goes to the given lines.
    pub(super) fn leave_out(&mut self, entry: &Entry<'_>, why: &str, lines: &mut Vec<String>) {
        let what = format!("`{}: {}`; {why}", entry.key, self.beginning(&entry.node));
        lines.push(self.notes.leave_out(&entry.key_span, what));
    }

    /// Notes that an item of a list is left out.
    pub(super) fn leave_out_item(&mut self, item: &Node<'_>, why: &str, lines: &mut Vec<String>) {
        let what = format!("`{}`; {why}", self.beginning(item));
        lines.push(self.notes.leave_out(&item.span, what));
    }

    /// The beginning of a value as the file has it.
    fn beginning(&self, node: &Node<'_>) -> String {
        let written = self.document.get(node.span.clone()).unwrap_or_default();
        let line: String = written.lines().next().unwrap_or_default().chars().take(60).collect();
        line.trim().to_owned()
    }

    /// The value of a name that is the same for all jobs, as a part of a template.
    pub(super) fn known(&self, name: &str) -> Option<String> {
        if let Some(param) = self.params.iter().find(|param| param.name == name) {
            return Some(format!("{{{{ params.{} }}}}", param.ours));
        }
        if let Some((_, value)) = self.env.iter().find(|(known, _)| known == name) {
            return Some(value.clone());
        }
        match name {
            "DAG_NAME" => Some("{{ run.workflow }}".to_owned()),
            "DAG_RUN_ID" | "DAG_REQUEST_ID" => Some("{{ run.id }}".to_owned()),
            _ => None,
        }
    }

    /// Whether the name stands for something that is the same for all jobs.
    pub(super) fn is_known(&self, reference: &Reference) -> bool {
        reference.path.is_empty() && self.known(&reference.name).is_some()
    }

    /// A text as a template. Nothing if it has a name that is not known, or a command of the shell.
    pub(super) fn template(&self, text: &str) -> Option<String> {
        if has_command(text) || text.contains("{{") {
            return None;
        }
        replace(text, |reference| match reference.path.is_empty() {
            true => self.known(&reference.name),
            false => None,
        })
    }
}

/// A workflow.
pub(super) struct Dag {
    pub(super) name: String,
    /// The name that other documents call it by.
    pub(super) written_name: Option<String>,
    pub(super) lines: Vec<String>,
    pub(super) schedules: Vec<Schedule>,
    pub(super) tags: Vec<String>,
    pub(super) params: Vec<Param>,
    pub(super) env: Vec<(String, String)>,
    pub(super) defaults: Vec<String>,
    /// The secrets: name, and where the value is.
    pub(super) secrets: Vec<(String, String)>,
    pub(super) jobs: Vec<Job>,
}

/// Whether this is a number of runs that may be active.
fn is_run_limit(text: &str) -> bool {
    text.parse::<i64>().is_ok_and(|limit| (1..=crate::limits::CONCURRENCY).contains(&limit))
}

impl Dag {
    pub(super) fn read(
        root: &[Entry<'_>],
        document: &str,
        otherwise: &str,
        calls: &[Call],
        names: &mut BTreeSet<String>,
        notes: &mut Notes,
    ) -> Dag {
        let mut reader = Reader {
            document,
            notes,
            top: Vec::new(),
            params: Vec::new(),
            env: Vec::new(),
            secrets: Vec::new(),
            env_files: Vec::new(),
            container: None,
            guard: Vec::new(),
        };
        let written_name = find(root, &["name"]).and_then(|entry| scalar(&entry.node, document));
        let name = unused(name_of(written_name.as_deref().unwrap_or(otherwise), otherwise), names);
        let mut dag = Dag {
            name,
            written_name,
            lines: Vec::new(),
            schedules: Vec::new(),
            tags: Vec::new(),
            params: Vec::new(),
            env: Vec::new(),
            defaults: Vec::new(),
            secrets: Vec::new(),
            jobs: Vec::new(),
        };
        // Parameters and variables first, because everything else may name them.
        if let Some(params) = find(root, &["params"]) {
            reader.params = params::read(params, &mut reader);
        }
        let callers = calls.iter().filter(|call| Some(&call.workflow) == dag.written_name.as_ref());
        for (given, named) in params::add_given(callers.flat_map(|call| &call.params), &mut reader.params) {
            let what = format!(
                "the parameter `{named}` is given as `{given}`; write `{named}` in `params` of the caller"
            );
            let span = root.first().map_or(0..0, |entry| entry.key_span.clone());
            let comment = reader.notes.leave_out(&span, what);
            reader.top.push(comment);
        }
        if let Some(secrets) = find(root, &["secrets"]) {
            dag.secrets = environment::secrets(secrets, &mut reader);
        }
        if let Some(env) = find(root, &["env"]) {
            environment::variables(env, &mut reader);
        }
        for entry in root {
            dag.top_level(entry, &mut reader);
        }
        dag.jobs = steps::read(root, &mut reader);
        if let Some(on) = find(root, &["handleron", "handlers"]) {
            handlers::read(on, &mut dag.jobs, &mut reader);
        }
        dag.leave_out_schedules(root, &mut reader);
        dag.add_variables(&reader);
        let top = std::mem::take(&mut reader.top);
        dag.lines.splice(0..0, top);
        dag.params = reader.params;
        dag
    }

    /// Leaves out what only the first workflow of a file can have.
    pub(super) fn become_called(&mut self, root: &[Entry<'_>], notes: &mut Notes) {
        for entry in root {
            if matches!(plain_key(entry).as_str(), "schedule" | "tags" | "labels" | "group") {
                let what =
                    format!("`{}` of a workflow that others call; give it a file of its own", entry.key);
                self.lines.push(notes.leave_out(&entry.key_span, what));
            }
        }
        self.schedules.clear();
        self.tags.clear();
    }

    /// A schedule gives no values, so none can stay if a parameter needs one.
    fn leave_out_schedules(&mut self, root: &[Entry<'_>], reader: &mut Reader<'_>) {
        let required = reader.params.iter().find(|param| param.is_required());
        let (Some(param), Some(entry)) = (required, find(root, &["schedule"])) else { return };
        let name = param.ours.clone();
        for schedule in std::mem::take(&mut self.schedules) {
            let zone = schedule.timezone.map(|zone| format!("TZ={zone} ")).unwrap_or_default();
            let what = format!(
                "the schedule `{zone}{}`; `{name}` has no default: write [[schedules]] with params = {{ {name} = \"…\" }}",
                schedule.cron
            );
            let comment = reader.notes.leave_out(&entry.key_span, what);
            reader.top.push(comment);
        }
    }

    fn top_level(&mut self, entry: &Entry<'_>, reader: &mut Reader<'_>) {
        let text = scalar(&entry.node, reader.document);
        match (plain_key(entry).as_str(), text) {
            ("name" | "params" | "env" | "secrets" | "steps" | "handleron" | "handlers" | "type", _) => (),
            ("description", Some(text)) => self.lines.push(format!("description = {}", quoted(text.trim()))),
            ("group", Some(text)) => self.add_tags(&text),
            ("tags" | "labels", _) => {
                for item in items(&entry.node) {
                    let text = scalar(item, reader.document);
                    text.iter().for_each(|text| self.add_tags(text));
                    for pair in table(item) {
                        let value = scalar(&pair.node, reader.document).unwrap_or_default();
                        self.add_tags(&format!("{}-{value}", pair.key));
                    }
                }
            }
            ("schedule", _) => self.schedules = schedules::read(entry, reader),
            ("dotenv", _) => {
                let files = items(&entry.node).into_iter().filter_map(|item| scalar(item, reader.document));
                reader.env_files = files.map(|file| format!("?{file}")).collect();
            }
            ("timeoutsec", Some(seconds)) if is_number(&seconds) => {
                if seconds != "0" {
                    self.lines.push(format!("timeout = \"{seconds}s\""));
                }
            }
            ("queue", Some(text)) => {
                self.defaults.push(format!("queue = {}", quoted(&name_of(&text, "default"))));
            }
            ("workingdir", Some(text)) => match reader.template(&text) {
                Some(dir) => self.defaults.push(format!("dir = {}", quoted(&dir))),
                None => {
                    let mut lines = Vec::new();
                    reader.leave_out(entry, "write the folder as `dir` under [defaults]", &mut lines);
                    self.lines.append(&mut lines);
                }
            },
            ("shell", text) => match text {
                Some(text) => self.defaults.push(format!("shell = {}", quoted(&text))),
                None => {
                    let words: Vec<String> = items(&entry.node)
                        .into_iter()
                        .filter_map(|item| scalar(item, reader.document))
                        .collect();
                    self.defaults.push(format!("shell = {}", quoted_list(&words)));
                }
            },
            ("preconditions" | "precondition", _) => {
                conditions::leave_out_unread(&entry.node, reader, &mut self.lines);
                for condition in conditions::of_node(&entry.node, reader.document) {
                    reader.guard.push(
                        condition.guard(|text| for_script(text, |reference| reader.is_known(reference))),
                    );
                }
            }
            ("container", _) => self.container(entry, reader),
            ("maxactiveruns", Some(text)) if is_run_limit(&text) => {
                self.lines.push(format!("concurrency = {{ limit = {text} }}"));
            }
            (key, _) => {
                let why = advice(key);
                let mut lines = Vec::new();
                reader.leave_out(entry, why, &mut lines);
                self.lines.append(&mut lines);
            }
        }
    }

    /// Reads the container in which all steps of a run work.
    fn container(&mut self, entry: &Entry<'_>, reader: &mut Reader<'_>) {
        let settings: Vec<&Entry<'_>> = table(&entry.node).iter().collect();
        let read = container::read(&settings, reader.document, &|text| reader.template(text));
        let mut lines = Vec::new();
        match read {
            Some((container, left_out)) => {
                for (setting, why) in left_out {
                    reader.leave_out(setting, why, &mut lines);
                }
                let what = "one container for all steps; each job has its own, so write what they share as `volumes`";
                lines.push(reader.notes.leave_out(&entry.key_span, what));
                reader.container = Some(container);
            }
            None => reader.leave_out(entry, "write `container` with an image in the jobs", &mut lines),
        }
        self.lines.append(&mut lines);
    }

    fn add_tags(&mut self, text: &str) {
        for word in text.split([',', ' ']).filter(|word| !word.trim().is_empty()) {
            let tag = name_of(word, "tag");
            if !self.tags.contains(&tag) && self.tags.len() < crate::limits::TAGS {
                self.tags.push(tag);
            }
        }
    }

    /// Variables that scripts name: parameters, and what Dagu sets in every step.
    fn add_variables(&mut self, reader: &Reader<'_>) {
        let named: BTreeSet<String> =
            self.jobs.iter().flat_map(|job| job.variables.iter().cloned()).collect();
        for param in &reader.params {
            let variable = variable_of(&param.name);
            if named.contains(&variable) && reader.env.iter().all(|(name, _)| *name != variable) {
                self.env.push((variable, format!("{{{{ params.{} }}}}", param.ours)));
            }
        }
        for name in ["DAG_NAME", "DAG_RUN_ID", "DAG_REQUEST_ID"] {
            if named.contains(name) {
                self.env.extend(reader.known(name).map(|value| (name.to_owned(), value)));
            }
        }
        self.env.extend(reader.env.iter().cloned());
    }
}

fn unused(name: String, names: &mut BTreeSet<String>) -> String {
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    let free =
        std::iter::once(name.clone()).chain(numbered).find(|name| !names.contains(name)).unwrap_or(name);
    names.insert(free.clone());
    free
}

pub(super) fn is_number(text: &str) -> bool {
    !text.is_empty() && text.len() < 10 && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// What a person can do about a key that is left out.
fn advice(key: &str) -> &'static str {
    match key {
        "mailon" | "smtp" | "errormail" | "infomail" | "waitmail" => {
            "no mail is sent; write a job under [on_failure] or [on_success] that does"
        }
        "histretentiondays" | "histretentionruns" => "`serve` and `db prune` have the age of old runs",
        "logdir" | "logoutput" | "maxoutputsize" => "lines of output are in the database",
        "maxactiveruns" => "`concurrency` limits how many runs may be active, from 1 to 1000",
        "maxactivesteps" => "`windlass queue limit` limits how many jobs run at a time",
        "workerselector" => "write what a worker must have as `requires` under [defaults]",
        "docker" | "registryauths" => "sign in with the container program on the machine of the worker",
        "ssh" => "write `ssh` in the scripts",
        "delaysec" | "restartwaitsec" => "write a job with `sleep` at the beginning",
        "skipifsuccessful" => "a schedule starts every occurrence",
        "maxcleanuptimesec" => "`timeout` of the jobs under [on_failure] and [finally]",
        _ => "there is no equivalent",
    }
}
