//! The kind `approval`: a job that waits until a person approves or rejects it. No worker is needed.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::wait_for::{ON_TIMEOUTS, OnTimeout};
use super::{Action, ActionKey, Defaults, Kind, Summary, SummaryText};
use crate::expression::Place;
use crate::field::{self, KnownNames, WorkflowError, optional_duration, within};
use crate::key::{Key, Table, ValueType};
use crate::params::Param;
use crate::report::{Finding, Findings};
use crate::template::{self, Templates};
use crate::tree::Entry;
use crate::{expect, keys, limits, lower};

pub(super) const KIND: Kind = Kind {
    name: "approval",
    action_keys: &[ActionKey { key: APPROVAL, holds: "a question for a person" }],
    other_keys: &[],
    read,
    check_payload: |_payload| {
        Err("an `approval` is a job of a workflow, and can't be enqueued alone".to_owned())
    },
    summarize_payload: |payload| {
        serde_json::from_str::<Question>(payload).ok().map(|question| summary(question.prompt))
    },
};

const APPROVAL: Key =
    Key::new("approval", &[ValueType::Table(Table::Approval)], "what a person is asked to approve")
        .elsewhere(&["approve", "manual", "humantask", "gate"]);

/// `prompt` of `approval`.
pub(crate) const PROMPT: Key = Key::new("prompt", &[ValueType::Text], "the question")
    .template(Place::Wait)
    .elsewhere(&["message", "question", "text"]);
/// `fields` of `approval`.
pub(crate) const FIELDS: Key = Key::new(
    "fields",
    &[ValueType::Tables(Table::Param)],
    "what the person fills in; they are like parameters",
)
.elsewhere(&["inputs", "params", "input"]);

/// A job that a person approves or rejects.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Approval {
    /// The question. May be a template.
    pub prompt: String,
    /// What the person fills in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<Param>,
    /// How long the job waits at most, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<i64>,
    /// What happens after that time.
    #[serde(default)]
    pub on_timeout: OnTimeout,
}

/// The payload: what a person is asked.
#[derive(Debug, Serialize, Deserialize)]
struct Question {
    prompt: String,
}

impl Approval {
    /// The payload with the question that a person is asked, with the values that its template can name.
    ///
    /// # Errors
    /// The template has no value.
    pub fn question(&self, values: &Json) -> Result<String, String> {
        template::render(&self.prompt, values)
            .map(|prompt| payload(&prompt))
            .map_err(|error| format!("`approval.prompt`: {error}"))
    }

    pub(super) fn payload(&self) -> String {
        payload(&self.prompt)
    }

    pub(super) fn summary(&self) -> Summary {
        summary(self.prompt.clone())
    }

    pub(super) fn check(&self, names: &KnownNames<'_>) -> Result<Vec<usize>, WorkflowError> {
        field::filled(&self.prompt, "action.prompt")?;
        optional_duration(self.timeout_ms, "action.timeout_ms")?;
        within(self.fields.len(), limits::PARAMS, "action.fields")?;
        field::outputs_read(&self.prompt, "action.prompt", names, Place::Wait)
    }
}

/// The question in the payload of a job of this kind.
#[must_use]
pub fn prompt_of(payload: &str) -> Option<String> {
    serde_json::from_str::<Question>(payload).ok().map(|question| question.prompt)
}

fn payload(prompt: &str) -> String {
    serde_json::to_string(&Question { prompt: prompt.to_owned() }).expect("a question has only string keys")
}

fn summary(prompt: String) -> Summary {
    Summary { label: "approval", text: SummaryText::Lines(prompt) }
}

impl From<Approval> for Action {
    fn from(approval: Approval) -> Action {
        Action::Approval(approval)
    }
}

fn read<'t>(
    keys: &[&'t Entry<'_>],
    _defaults: &Defaults,
    templates: &mut Templates<'t>,
    findings: &mut Findings,
) -> Option<Action> {
    let entry = keys.iter().find(|entry| entry.key == APPROVAL.name())?;
    let (mut prompt, mut fields, mut timeout_ms, mut on_timeout) = (None, Vec::new(), None, OnTimeout::Fail);
    let expected = "a table like { prompt = \"Deploy?\", timeout = \"1d\" }";
    let mut is_wrong = false;
    for part in expect::table(entry, usize::MAX, expected, findings)? {
        let Ok(found) = keys::find(part, Table::Approval, findings) else {
            is_wrong = true;
            continue;
        };
        match found.name() {
            "prompt" => {
                prompt = expect::filled_text(&part.node, "`prompt`", findings).map(str::to_owned);
                is_wrong |= prompt.is_none();
                templates.add(&part.node, &PROMPT);
            }
            "fields" => fields = lower::read_params(part, findings),
            "timeout" => {
                timeout_ms = expect::duration_ms(part, expect::ShortestDuration::OneMillisecond, findings);
            }
            _on_timeout => on_timeout = expect::word(part, &ON_TIMEOUTS, findings).unwrap_or_default(),
        }
    }
    if prompt.is_none() && !is_wrong {
        let finding = Finding::new(entry.key_span.clone(), "`approval` has no `prompt`");
        findings.push(finding.help("add the question, as in prompt = \"Deploy to production?\""));
    }
    Some(Action::Approval(Approval { prompt: prompt?, fields, timeout_ms, on_timeout }))
}
