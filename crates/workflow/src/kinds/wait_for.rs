//! The kind `wait_for`: a job that waits for an event. The scheduler ends it, and no worker is needed.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::{Action, ActionKey, Defaults, Kind, Summary, SummaryText};
use crate::expression::Place;
use crate::field::{self, KnownNames, WorkflowError, optional_duration};
use crate::key::{Key, Table, ValueType};
use crate::limits;
use crate::names::NameKind;
use crate::report::{Finding, Findings};
use crate::template::{self, Templates};
use crate::tree::Entry;
use crate::{expect, keys, names};

pub(super) const KIND: Kind = Kind {
    name: "wait_for",
    action_keys: &[ActionKey { key: WAIT_FOR, holds: "an event" }],
    other_keys: &[],
    read,
    check_payload: |_payload| {
        Err("a `wait_for` is a job of a workflow, and can't be enqueued alone".to_owned())
    },
    summarize_payload: |payload| serde_json::from_str::<WaitFor>(payload).ok().map(|wait| wait.summary()),
};

const WAIT_FOR: Key =
    Key::new("wait_for", &[ValueType::Table(Table::WaitFor)], "the event that the job waits for")
        .elsewhere(&["waitfor", "waitforevent", "sensor"]);

/// `event` of `wait_for`.
pub(crate) const EVENT: Key =
    Key::new("event", &[ValueType::Text], "the name of the event").elsewhere(&["name", "signal"]);
/// `key` of `wait_for`.
pub(crate) const EVENT_KEY: Key =
    Key::new("key", &[ValueType::Text], "the key of the event").template(Place::Wait);
/// `timeout` of `wait_for` and of `approval`.
pub(crate) const TIMEOUT: Key =
    Key::new("timeout", &[ValueType::Duration], "how long the job waits at most").default("no limit");
/// `on_timeout` of `wait_for` and of `approval`.
pub(crate) const ON_TIMEOUT: Key =
    Key::new("on_timeout", &[ValueType::Word], "what happens to the job after that time")
        .words(&["fail", "skip"])
        .default("fail");

/// What happens to a job whose wait took too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnTimeout {
    /// It fails.
    #[default]
    Fail,
    /// It is skipped as not needed.
    Skip,
}

pub(super) const ON_TIMEOUTS: [(&str, OnTimeout); 2] = [("fail", OnTimeout::Fail), ("skip", OnTimeout::Skip)];

/// A wait for an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitFor {
    /// The name of the event.
    pub event: String,
    /// The key of the event. May be a template. Nothing means an event without a key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// How long the job waits at most, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<i64>,
    /// What happens after that time.
    #[serde(default)]
    pub on_timeout: OnTimeout,
}

impl WaitFor {
    /// The key of the event, with the values that its template can name. Empty for an event without a key.
    ///
    /// # Errors
    /// The template has no value, or the key is empty or longer than [`limits::EVENT_KEY_BYTES`].
    pub fn rendered_key(&self, values: &Json) -> Result<String, String> {
        rendered_event_key(self.key.as_deref(), "wait_for.key", values)
    }

    pub(super) fn payload(&self) -> String {
        serde_json::to_string(self).expect("a wait has only string keys")
    }

    pub(super) fn summary(&self) -> Summary {
        let key = self.key.as_ref().map(|key| format!(", key {key}")).unwrap_or_default();
        Summary { label: "event", text: SummaryText::Lines(format!("{}{key}", self.event)) }
    }

    pub(super) fn check(&self, names: &KnownNames<'_>) -> Result<Vec<usize>, WorkflowError> {
        field::name(&self.event, "action.event", NameKind::Event)?;
        optional_duration(self.timeout_ms, "action.timeout_ms")?;
        match &self.key {
            None => Ok(Vec::new()),
            Some(key) => {
                field::filled(key, "action.key")?;
                field::outputs_read(key, "action.key", names, Place::Wait)
            }
        }
    }
}

/// The key of an event, with the values that its template can name. Empty for an event without a key. `name` is the key of the
/// file, for people.
pub(super) fn rendered_event_key(key: Option<&str>, name: &str, values: &Json) -> Result<String, String> {
    let Some(key) = key else { return Ok(String::new()) };
    let key = template::render(key, values).map_err(|error| format!("`{name}`: {error}"))?;
    match key.len() {
        0 => Err(format!("`{name}` is empty; remove it for an event without a key")),
        bytes if bytes > limits::EVENT_KEY_BYTES => {
            Err(format!("`{name}` has {bytes} bytes; the limit is {}", limits::EVENT_KEY_BYTES))
        }
        _fits => Ok(key),
    }
}

impl From<WaitFor> for Action {
    fn from(wait: WaitFor) -> Action {
        Action::WaitFor(wait)
    }
}

fn read<'t>(
    keys: &[&'t Entry<'_>],
    _defaults: &Defaults,
    templates: &mut Templates<'t>,
    findings: &mut Findings,
) -> Option<Action> {
    let entry = keys.iter().find(|entry| entry.key == WAIT_FOR.name())?;
    let (mut event, mut key, mut timeout_ms, mut on_timeout) = (None, None, None, OnTimeout::Fail);
    let expected = "a table like { event = \"paid\", key = \"{{ params.order }}\", timeout = \"3d\" }";
    let mut is_wrong = false;
    for part in expect::table(entry, usize::MAX, expected, findings)? {
        let Ok(found) = keys::find(part, Table::WaitFor, findings) else {
            is_wrong = true;
            continue;
        };
        match found.name() {
            "event" => {
                let name = expect::text(&part.node, "`event`", findings);
                event = name.filter(|name| names::check(name, &part.node.span, NameKind::Event, findings));
                is_wrong |= event.is_none();
            }
            "key" => {
                key = expect::filled_text(&part.node, "`key`", findings).map(str::to_owned);
                templates.add(&part.node, &EVENT_KEY);
            }
            "timeout" => {
                timeout_ms = expect::duration_ms(part, expect::ShortestDuration::OneMillisecond, findings);
            }
            _on_timeout => on_timeout = expect::word(part, &ON_TIMEOUTS, findings).unwrap_or_default(),
        }
    }
    if event.is_none() && !is_wrong {
        let finding = Finding::new(entry.key_span.clone(), "`wait_for` has no `event`");
        findings.push(finding.help("add the name of the event, as in event = \"paid\""));
    }
    Some(Action::WaitFor(WaitFor { event: event?.to_owned(), key, timeout_ms, on_timeout }))
}
