//! Triggers: what starts a run of a workflow besides a person and a schedule. Whether a trigger takes an event, and the
//! parameters of the run, are decided here, purely.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use crate::expression::Expression;
use crate::params::{self, Param, ParamError, Supplied};
use crate::template;

/// The name of a trigger without `name`.
pub const DEFAULT_TRIGGER: &str = "default";

/// What starts a run of its workflow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trigger {
    /// Unique among the triggers of the workflow.
    pub name: String,
    /// What it takes.
    #[serde(flatten)]
    pub source: TriggerSource,
    /// A run starts only if this holds (`if`). It reads `event`.
    #[serde(default, rename = "if", skip_serializing_if = "Option::is_none")]
    pub condition: Option<Expression>,
    /// Values of the workflow's parameters. Texts may be templates that read `event`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub params: Map<String, Json>,
}

/// What a trigger takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum TriggerSource {
    /// An event: a signal.
    Event {
        /// The name of the event.
        event: String,
        /// The key of the event. Without it the trigger takes every key.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
    },
    /// The end of a run of another workflow.
    RunEnd {
        /// Names of workflows, in which `*` stands for any characters.
        after: Vec<String>,
        /// The states that it takes. An empty list is all of them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        status: Vec<EndStatus>,
    },
}

/// How a run can end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum EndStatus {
    /// All that counts was successful.
    Successful,
    /// A job failed.
    Failed,
    /// It was cancelled.
    Cancelled,
}

impl EndStatus {
    /// All of them.
    pub const ALL: [EndStatus; 3] = [EndStatus::Successful, EndStatus::Failed, EndStatus::Cancelled];

    /// Its spelling.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            EndStatus::Successful => "SUCCESSFUL",
            EndStatus::Failed => "FAILED",
            EndStatus::Cancelled => "CANCELLED",
        }
    }
}

impl Trigger {
    /// What it takes, for people: ``event `push` ``, or `after nightly-* (FAILED)`.
    #[must_use]
    pub fn text(&self) -> String {
        match &self.source {
            TriggerSource::Event { event, key: None } => format!("event {event}"),
            TriggerSource::Event { event, key: Some(key) } => format!("event {event}, key {key}"),
            TriggerSource::RunEnd { after, status } if status.is_empty() => {
                format!("after {}", after.join(", "))
            }
            TriggerSource::RunEnd { after, status } => {
                let status: Vec<&str> = status.iter().map(|status| status.as_str()).collect();
                format!("after {} ({})", after.join(", "), status.join(", "))
            }
        }
    }

    /// Whether it takes an event with this name and this key. An event without a key has an empty one.
    #[must_use]
    pub fn takes_event(&self, name: &str, key: &str) -> bool {
        match &self.source {
            TriggerSource::Event { event, key: wanted } => {
                event == name && wanted.as_deref().is_none_or(|wanted| wanted == key)
            }
            TriggerSource::RunEnd { .. } => false,
        }
    }

    /// Whether it takes the end of a run of this workflow. `own` is the workflow of the trigger, whose runs it never takes.
    #[must_use]
    pub fn takes_end(&self, own: &str, workflow: &str, end: EndStatus) -> bool {
        match &self.source {
            TriggerSource::RunEnd { after, status } => {
                own != workflow
                    && (status.is_empty() || status.contains(&end))
                    && after.iter().any(|pattern| matches(pattern, workflow))
            }
            TriggerSource::Event { .. } => false,
        }
    }

    /// The parameters of the run that an event starts; `None` if the condition does not hold. `values` has `event`.
    ///
    /// # Errors
    /// Why the condition can't be decided, or which parameters have no valid value.
    pub fn params_of_run(
        &self,
        declared: &[Param],
        values: &Json,
    ) -> Result<Option<Map<String, Json>>, String> {
        if let Some(condition) = &self.condition
            && !condition.holds(values).map_err(|error| format!("`if` could not be decided: {error}"))?
        {
            return Ok(None);
        }
        let mut supplied = Vec::with_capacity(self.params.len());
        for (name, value) in &self.params {
            let value = match template_of(value) {
                Some(text) => Supplied::Text(
                    template::render(text, values).map_err(|error| format!("parameter `{name}`: {error}"))?,
                ),
                None => Supplied::Json(value.clone()),
            };
            supplied.push((name.clone(), value));
        }
        params::bind(declared, supplied).map(Some).map_err(|errors| text_of(&errors))
    }

    /// The errors in the parameters that are known before an event comes.
    pub(crate) fn check_params(&self, declared: &[Param]) -> Result<(), Vec<ParamError>> {
        let is_template =
            |name: &str| self.params.get(name).is_some_and(|value| template_of(value).is_some());
        let written = self.params.iter().filter(|(name, value)| {
            template_of(value).is_none() || declared.iter().all(|param| param.name != **name)
        });
        let supplied = written.map(|(name, value)| (name.clone(), Supplied::Json(value.clone()))).collect();
        let Err(mut errors) = params::bind(declared, supplied) else { return Ok(()) };
        errors.retain(|error| !matches!(error, ParamError::Missing { name, .. } if is_template(name)));
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }
}

pub(crate) fn text_of(errors: &[ParamError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

fn template_of(value: &Json) -> Option<&str> {
    value.as_str().filter(|text| template::is_template(text))
}

/// Whether a text is as a pattern says, in which `*` stands for any characters.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = text.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn trigger(json: Json) -> Trigger {
        serde_json::from_value(json).expect("a trigger")
    }

    #[test]
    fn a_star_stands_for_any_characters() {
        for (pattern, text, expected) in [
            ("nightly-*", "nightly-etl", true),
            ("nightly-*", "nightly-", true),
            ("nightly-*", "nightly", false),
            ("*", "anything", true),
            ("a*b*c", "axxbyyc", true),
            ("a*b*c", "axxcyyb", false),
            ("*etl", "nightly-etl", true),
            ("ab*ba", "aba", false),
            ("etl", "etl", true),
            ("etl", "etl2", false),
            ("**", "x", true),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn a_trigger_takes_events_by_name_and_key_and_never_the_ends_of_its_own_runs() {
        let any = trigger(json!({ "name": "a", "event": "push" }));
        assert!(
            any.takes_event("push", "") && any.takes_event("push", "main") && !any.takes_event("pull", "")
        );
        let keyed = trigger(json!({ "name": "a", "event": "push", "key": "main" }));
        assert!(keyed.takes_event("push", "main") && !keyed.takes_event("push", ""));
        assert!(!any.takes_end("alert", "push", EndStatus::Failed));
        let all = trigger(json!({ "name": "a", "after": ["*"], "status": ["FAILED"] }));
        assert!(all.takes_end("alert", "etl", EndStatus::Failed));
        assert!(!all.takes_end("alert", "alert", EndStatus::Failed), "its own workflow");
        assert!(!all.takes_end("alert", "etl", EndStatus::Successful));
        assert!(!all.takes_event("etl", ""));
    }

    #[test]
    fn the_parameters_are_rendered_and_a_false_condition_gives_no_run() {
        let declared: Vec<Param> = serde_json::from_value(json!([
            { "name": "n", "type": "integer", "required": true },
            { "name": "mode", "type": "string", "default": "x", "required": false },
        ]))
        .expect("parameters");
        let json = json!({ "name": "a", "event": "e", "if": "event.payload.n > 1", "params": { "n": "{{ event.payload.n }}" } });
        let trigger = trigger(json);
        let of =
            |payload: Json| trigger.params_of_run(&declared, &json!({ "event": { "payload": payload } }));
        let bound = of(json!({ "n": 7 })).map(|params| params.map(Json::from));
        assert_eq!(bound, Ok(Some(json!({ "n": 7, "mode": "x" }))));
        assert_eq!(of(json!({ "n": 1 })), Ok(None));
        let error = of(json!({})).expect_err("there is no `n`");
        assert!(error.starts_with("`if` could not be decided: `event.payload.n > 1`"), "{error}");
        let error = of(json!({ "n": 1.5 })).expect_err("no integer");
        assert!(error.contains("parameter `n`"), "{error}");
        assert_eq!(trigger.check_params(&declared), Ok(()));
    }
}
