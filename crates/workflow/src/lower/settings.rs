//! What both a job and `defaults` may say.

use super::concurrency;
use super::expect::{self, Least};
use super::name::{self, Rule};
use super::requires::{self, Required};
use super::retry::{self, PartialRetry};
use crate::limits;
use crate::model::{Concurrency, OnInterrupt, OutputSource};
use crate::report::{Finding, Findings};
use crate::template::Templates;
use crate::tree::{Entry, Value};

const PRIORITIES: [(&str, i64); 4] = [("low", -10), ("normal", 0), ("high", 10), ("critical", 20)];

/// The settings that one table gives.
#[derive(Debug, Clone, Default)]
pub(super) struct Settings {
    pub(super) shell: Option<Vec<String>>,
    pub(super) dir: Option<String>,
    pub(super) retry: PartialRetry,
    pub(super) timeout_ms: Option<i64>,
    pub(super) queue: Option<String>,
    pub(super) priority: Option<i64>,
    pub(super) allow_failure: Option<bool>,
    pub(super) on_interrupt: Option<OnInterrupt>,
    pub(super) max_interruptions: Option<i64>,
    pub(super) output: Option<OutputSource>,
    pub(super) requires: Option<Vec<Required>>,
    pub(super) version: Option<i64>,
    pub(super) concurrency: Option<Concurrency>,
}

/// Whether a key was one of the settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    Yes,
    No,
}

impl Settings {
    /// Takes the entry if its key is a setting.
    pub(super) fn take<'t>(
        &mut self,
        entry: &'t Entry<'_>,
        templates: &mut Templates<'t>,
        findings: &mut Findings,
    ) -> Taken {
        match entry.key.as_ref() {
            "shell" => self.shell = read_shell(entry, findings),
            "dir" => {
                self.dir = expect::filled_text(&entry.node, "`dir`", findings).map(str::to_owned);
                templates.add(&entry.node);
            }
            "retry" => self.retry = retry::read(entry, findings),
            "timeout" => self.timeout_ms = expect::duration_ms(entry, Least::OneMillisecond, findings),
            "queue" => self.queue = read_queue(entry, findings),
            "priority" => self.priority = read_priority(entry, findings),
            "allow_failure" => self.allow_failure = expect::boolean(entry, findings),
            "on_interrupt" => {
                let words = [("rerun", OnInterrupt::Rerun), ("fail", OnInterrupt::Fail)];
                self.on_interrupt = expect::word(entry, &words, findings);
            }
            "max_interruptions" => {
                self.max_interruptions = expect::integer(entry, 0..=limits::ATTEMPTS, findings);
            }
            "output" => {
                let words = [
                    ("text", OutputSource::Text),
                    ("json", OutputSource::Json),
                    ("file", OutputSource::File),
                ];
                self.output = expect::word(entry, &words, findings);
            }
            "requires" => self.requires = requires::read(entry, findings),
            "version" => self.version = expect::integer(entry, 0..=limits::VERSION, findings),
            "concurrency" => self.concurrency = concurrency::read(entry, templates, findings),
            _ => return Taken::No,
        }
        Taken::Yes
    }
}

/// `"bash -eu"` or `["bash", "-eu"]`.
fn read_shell(entry: &Entry<'_>, findings: &mut Findings) -> Option<Vec<String>> {
    let words = if let Value::Text(text) = &entry.node.value {
        split_shell(text, entry, findings)?
    } else if let Value::List(items) = &entry.node.value {
        expect::list(entry, limits::COMMAND_ITEMS, "a list", findings)?;
        let texts = items.iter().map(|node| expect::text(node, "an item of `shell`", findings));
        texts.map(|text| text.map(str::to_owned)).collect::<Option<Vec<_>>>()?
    } else {
        let expected = "a string like \"bash -eu\" or a list like [\"bash\", \"-eu\"]";
        expect::wrong_type(&entry.node, "`shell`", expected, findings);
        return None;
    };
    if words.first().is_none_or(|program| program.trim().is_empty()) {
        let finding = Finding::new(entry.node.span.clone(), "`shell` names no program");
        findings.push(finding.help("leave it out for the default shell"));
        return None;
    }
    Some(words)
}

fn split_shell(text: &str, entry: &Entry<'_>, findings: &mut Findings) -> Option<Vec<String>> {
    expect::text(&entry.node, "`shell`", findings)?;
    if text.contains(['"', '\'', '\\', '$']) {
        let message = "`shell` as one string is split at its spaces and has no quoting";
        let help = "write a list: shell = [\"bash\", \"-eu\"]";
        findings.push(Finding::new(entry.node.span.clone(), message).help(help));
        return None;
    }
    Some(text.split_whitespace().map(str::to_owned).collect())
}

fn read_queue(entry: &Entry<'_>, findings: &mut Findings) -> Option<String> {
    let queue = expect::text(&entry.node, "`queue`", findings)?;
    name::check(queue, &entry.node.span, Rule::Queue, findings).then(|| queue.to_owned())
}

fn read_priority(entry: &Entry<'_>, findings: &mut Findings) -> Option<i64> {
    if let Value::Integer(_) = entry.node.value {
        return expect::integer(entry, -limits::PRIORITY..=limits::PRIORITY, findings);
    }
    if let Value::Text(_) = entry.node.value {
        return expect::word(entry, &PRIORITIES, findings);
    }
    let expected = "one of \"low\", \"normal\", \"high\", \"critical\", or an integer";
    expect::wrong_type(&entry.node, "`priority`", expected, findings);
    None
}
