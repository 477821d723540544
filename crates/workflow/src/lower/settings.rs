//! Reads the keys that a job and `[defaults]` may have, whatever the kind of the job.

use super::concurrency;
use super::requires::{self, Requirement};
use super::retry::{self, PartialRetry};
use crate::expect::{self, ShortestDuration};
use crate::limits;
use crate::model::{Concurrency, OnInterrupt};
use crate::names::{self, NameKind};
use crate::report::Findings;
use crate::template::Templates;
use crate::tree::{Entry, Value};

const PRIORITIES: [(&str, i64); 4] = [("low", -10), ("normal", 0), ("high", 10), ("critical", 20)];

/// The settings in one table. A setting that the table does not have is `None`.
#[derive(Debug, Clone, Default)]
pub(super) struct Settings {
    pub(super) retry: PartialRetry,
    pub(super) timeout_ms: Option<i64>,
    pub(super) queue: Option<String>,
    pub(super) priority: Option<i64>,
    pub(super) allow_failure: Option<bool>,
    pub(super) on_interrupt: Option<OnInterrupt>,
    pub(super) max_interruptions: Option<i64>,
    pub(super) requires: Option<Vec<Requirement>>,
    pub(super) code_version: Option<i64>,
    pub(super) concurrency: Option<Concurrency>,
}

impl Settings {
    /// The settings that have an effect on a job whose attempts are runs.
    pub(super) fn of_runs(self) -> Settings {
        let Settings { retry, timeout_ms, allow_failure, .. } = self;
        Settings { retry: retry.without_condition(), timeout_ms, allow_failure, ..Settings::default() }
    }

    /// Reads an entry whose key is in the list.
    pub(super) fn take<'t>(
        &mut self,
        entry: &'t Entry<'_>,
        templates: &mut Templates<'t>,
        findings: &mut Findings,
    ) {
        match entry.key.as_ref() {
            "retry" => self.retry = retry::read(entry, templates, findings),
            "timeout" => {
                self.timeout_ms = expect::duration_ms(entry, ShortestDuration::OneMillisecond, findings)
            }
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
            "requires" => self.requires = requires::read(entry, findings),
            "code_version" => self.code_version = expect::integer(entry, 0..=limits::CODE_VERSION, findings),
            "concurrency" => self.concurrency = concurrency::read(entry, templates, findings),
            _ => (),
        }
    }
}

fn read_queue(entry: &Entry<'_>, findings: &mut Findings) -> Option<String> {
    let queue = expect::text(&entry.node, "`queue`", findings)?;
    names::check(queue, &entry.node.span, NameKind::Queue, findings).then(|| queue.to_owned())
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
