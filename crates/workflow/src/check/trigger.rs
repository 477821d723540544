//! Checks the triggers of a workflow that a program made.

use std::collections::HashSet;

use crate::expression::Place;
use crate::field::{self, Checked, KnownNames, refuse, within};
use crate::limits;
use crate::lower::pattern_fault;
use crate::model::Workflow;
use crate::names::NameKind;
use crate::trigger::{Trigger, TriggerSource, text_of};

pub(super) fn check_all(workflow: &Workflow, names: &KnownNames<'_>) -> Checked {
    within(workflow.triggers.len(), limits::TRIGGERS, "triggers")?;
    let mut seen = HashSet::new();
    for (index, trigger) in workflow.triggers.iter().enumerate() {
        let field = format!("triggers[{index}] (`{}`)", trigger.name);
        check(trigger, &workflow.name, names).map_err(|error| error.inside(&field))?;
        if !seen.insert(&trigger.name) {
            return refuse(format!("{field}.name"), "another trigger has the same name");
        }
    }
    Ok(())
}

fn check(trigger: &Trigger, workflow: &str, names: &KnownNames<'_>) -> Checked {
    field::name(&trigger.name, "name", NameKind::Trigger)?;
    let place = match &trigger.source {
        TriggerSource::Event { event, key } => {
            field::name(event, "event", NameKind::Event)?;
            within(key.as_ref().map_or(0, String::len), limits::EVENT_KEY_BYTES, "key")?;
            Place::Trigger
        }
        TriggerSource::RunEnd { after, status: _ } => {
            within(after.len(), limits::TRIGGER_PATTERNS, "after")?;
            if after.is_empty() {
                return refuse("after", "the list is empty");
            }
            for (at, pattern) in after.iter().enumerate() {
                if let Some(fault) = pattern_fault(pattern, workflow) {
                    return refuse(format!("after[{at}]"), fault);
                }
            }
            Place::RunEndTrigger
        }
    };
    field::condition(trigger.condition.as_ref(), "condition", names, place)?;
    for (name, value) in &trigger.params {
        let field = format!("params[{name:?}]");
        if let Some(value) = value.as_str() {
            field::plain(value, &field)?;
            field::outputs_read(value, &field, names, place)?;
        }
    }
    trigger.check_params(names.params).or_else(|errors| refuse("params", text_of(&errors)))
}
