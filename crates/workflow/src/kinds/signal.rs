//! The kind `signal`: a job that sends an event. The scheduler sends it, and no worker is needed.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::{
    Action, ActionKey, Defaults, Kind, Summary, SummaryText, each_text, map_texts, read_json, wait_for,
};
use crate::expression::Place;
use crate::field::{self, KnownNames, WorkflowError};
use crate::key::{Key, Table, ValueType};
use crate::limits;
use crate::names::NameKind;
use crate::report::{Finding, Findings};
use crate::template::{self, Templates};
use crate::tree::Entry;
use crate::{expect, keys, names};

pub(super) const KIND: Kind = Kind {
    name: "signal",
    action_keys: &[ActionKey { key: SIGNAL, holds: "an event to send" }],
    other_keys: &[],
    read,
    check_payload: |_payload| {
        Err("a `signal` is a job of a workflow; `windlass signal` sends an event from outside".to_owned())
    },
    summarize_payload: |payload| serde_json::from_str::<Signal>(payload).ok().map(|signal| signal.summary()),
};

const SIGNAL: Key = Key::new("signal", &[ValueType::Table(Table::Signal)], "the event that the job sends")
    .elsewhere(&["emit", "sendevent", "publish"]);

/// `payload` of `signal`.
pub(crate) const PAYLOAD: Key = Key::new("payload", &[ValueType::Json], "the payload of the event")
    .template(Place::Wait)
    .default("null")
    .elsewhere(&["data", "body"]);

/// An event that a job sends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Signal {
    /// The name of the event.
    pub event: String,
    /// The key of the event. May be a template. Nothing means an event without a key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The payload. Texts in it may be templates.
    #[serde(default, skip_serializing_if = "Json::is_null")]
    pub payload: Json,
}

impl Signal {
    /// The key of the event, with the values that its template can name. Empty for an event without a key.
    ///
    /// # Errors
    /// The template has no value, or the key is empty or longer than [`limits::EVENT_KEY_BYTES`].
    pub fn rendered_key(&self, values: &Json) -> Result<String, String> {
        wait_for::rendered_event_key(self.key.as_deref(), "signal.key", values)
    }

    /// The payload of the event, with the values that its templates can name, as JSON.
    ///
    /// # Errors
    /// A template has no value, or the payload is longer than [`limits::EVENT_PAYLOAD_BYTES`].
    pub fn rendered_payload(&self, values: &Json) -> Result<String, String> {
        let payload = map_texts(&self.payload, &mut |text| template::render(text, values).map(Json::from))
            .map_err(|error| format!("`signal.payload`: {error}"))?;
        let payload = payload.to_string();
        let (bytes, limit) = (payload.len(), limits::EVENT_PAYLOAD_BYTES);
        match bytes > limit {
            true => Err(format!("`signal.payload` has {bytes} bytes; the limit is {limit}")),
            false => Ok(payload),
        }
    }

    pub(super) fn payload(&self) -> String {
        serde_json::to_string(self).expect("a signal has only string keys")
    }

    pub(super) fn summary(&self) -> Summary {
        let key = self.key.as_ref().map(|key| format!(", key {key}")).unwrap_or_default();
        Summary { label: "signal", text: SummaryText::Lines(format!("{}{key}", self.event)) }
    }

    pub(super) fn check(&self, names: &KnownNames<'_>) -> Result<Vec<usize>, WorkflowError> {
        field::name(&self.event, "action.event", NameKind::Event)?;
        let mut read = Vec::new();
        if let Some(key) = &self.key {
            field::filled(key, "action.key")?;
            read.extend(field::outputs_read(key, "action.key", names, Place::Wait)?);
        }
        let mut texts = Vec::new();
        each_text(&self.payload, &mut |text| texts.push(text.to_owned()));
        for text in texts {
            read.extend(field::outputs_read(&text, "action.payload", names, Place::Wait)?);
        }
        read.sort_unstable();
        read.dedup();
        Ok(read)
    }
}

impl From<Signal> for Action {
    fn from(signal: Signal) -> Action {
        Action::Signal(Box::new(signal))
    }
}

fn read<'t>(
    keys: &[&'t Entry<'_>],
    _defaults: &Defaults,
    templates: &mut Templates<'t>,
    findings: &mut Findings,
) -> Option<Action> {
    let entry = keys.iter().find(|entry| entry.key == SIGNAL.name())?;
    let (mut event, mut key, mut payload) = (None, None, Some(Json::Null));
    let expected =
        "a table like { event = \"paid\", key = \"{{ params.order }}\", payload = { amount = 7 } }";
    let mut is_wrong = false;
    for part in expect::table(entry, usize::MAX, expected, findings)? {
        let Ok(found) = keys::find(part, Table::Signal, findings) else {
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
                templates.add(&part.node, &wait_for::EVENT_KEY);
            }
            _payload => payload = read_json(&part.node, &PAYLOAD, templates, findings),
        }
    }
    if event.is_none() && !is_wrong {
        let finding = Finding::new(entry.key_span.clone(), "`signal` has no `event`");
        findings.push(finding.help("add the name of the event, as in event = \"paid\""));
    }
    Some(Signal { event: event?.to_owned(), key, payload: payload? }.into())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_of_a_payload_are_rendered_and_other_values_stay() {
        let payload = json!({ "to": ["{{ params.to }}", 7], "is": { "a": true, "b": null } });
        let signal = Signal { event: "paid".to_owned(), key: Some("{{ params.to }}".to_owned()), payload };
        let values = json!({ "params": { "to": "eu" } });
        assert_eq!(signal.rendered_key(&values).unwrap(), "eu");
        let rendered: Json = serde_json::from_str(&signal.rendered_payload(&values).unwrap()).unwrap();
        assert_eq!(rendered, json!({ "to": ["eu", 7], "is": { "a": true, "b": null } }));
        let error = signal.rendered_payload(&json!({ "params": {} })).unwrap_err();
        assert!(error.starts_with("`signal.payload`: "), "{error}");
        let long = Signal { payload: json!("x".repeat(limits::EVENT_PAYLOAD_BYTES)), ..signal };
        assert!(long.rendered_payload(&values).unwrap_err().contains("the limit is 65536"));
    }
}
