//! The kind `workflow`: a job that is a run of another workflow.

mod read;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use super::{Action, ActionKey, Kind, Summary, SummaryText, each_text};
use crate::expression::Place;
use crate::field::{self, KnownNames, WorkflowError};
use crate::limits;
use crate::names::NameKind;
use crate::support::{self, Support};

pub(super) const KIND: Kind = Kind {
    name: "workflow",
    action_keys: &[ActionKey { key: read::WORKFLOW, holds: "the name or the file of a workflow" }],
    other_keys: read::OTHER_KEYS,
    read: read::read,
    check_payload: |_payload| {
        Err("a job that calls a workflow belongs to a run; submit the workflow".to_owned())
    },
    summarize_payload: summarize,
};

/// A job that is a run of another workflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// As in the file: a workflow of the same file, a path that begins with `./` or `../`, or a registered name.
    pub workflow: String,
    /// The values of the called workflow's parameters. Texts may be templates, also those in lists and objects.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub params: Map<String, Json>,
    /// The called workflow, as an index into [`Workflow::workflows`](crate::Workflow::workflows). Nothing for a file that was
    /// not read yet, and for a registered workflow that was not looked up yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub called: Option<usize>,
    /// The folder against which the called workflow resolves relative paths, if it is another one. It is relative to the
    /// caller's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dir: Option<String>,
}

impl Call {
    /// Calls a workflow without params.
    #[must_use]
    pub fn of(workflow: impl Into<String>) -> Call {
        Call { workflow: workflow.into(), params: Map::new(), called: None, dir: None }
    }

    /// Whether the called workflow is in a file of its own.
    #[must_use]
    pub fn is_of_file(&self) -> bool {
        self.workflow.starts_with("./") || self.workflow.starts_with("../")
    }

    pub(super) fn payload(&self) -> String {
        serde_json::json!({ "workflow": self.workflow }).to_string()
    }

    pub(super) fn summary(&self) -> Summary {
        Summary { label: "workflow", text: SummaryText::Lines(self.workflow.clone()) }
    }

    pub(super) fn features() -> Vec<(&'static str, Support, bool)> {
        vec![("action.workflow", support::CALLS, true)]
    }

    /// Checks the values that are given. Whether the called workflow has these parameters is checked with all calls.
    pub(super) fn check(&self, names: &KnownNames<'_>) -> Result<Vec<usize>, WorkflowError> {
        field::filled(&self.workflow, "action.workflow")?;
        field::within(self.params.len(), limits::PARAMS, "action.params")?;
        let mut read = Vec::new();
        for (name, value) in &self.params {
            let field = format!("action.params.{name}");
            field::name(name, &field, NameKind::Param)?;
            let mut texts = Vec::new();
            each_text(value, &mut |text| texts.push(text.to_owned()));
            for text in texts {
                field::plain(&text, &field)?;
                read.extend(field::outputs_read(&text, &field, names, Place::CallParams)?);
            }
        }
        Ok(read)
    }
}

fn summarize(payload: &str) -> Option<Summary> {
    #[derive(Deserialize)]
    struct Payload {
        workflow: String,
    }
    let Payload { workflow } = serde_json::from_str(payload).ok()?;
    Some(Call::of(workflow).summary())
}

impl From<Call> for Action {
    fn from(call: Call) -> Action {
        Action::Call(call)
    }
}
