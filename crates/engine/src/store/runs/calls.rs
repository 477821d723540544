//! The workflows that a run calls by registered names: they become a part of its definition when it is submitted.

use std::collections::HashMap;

use crate::store::registrations::registered_workflow;
use windlass_db::Connection;
use windlass_db::error::Result;
use windlass_workflow::{Workflow, limits};

/// Whether some calls have no workflow yet.
pub(in crate::store) fn has_unresolved_calls(workflow: &Workflow) -> bool {
    workflow.calls().any(|(_job, call)| call.called.is_none())
}

/// Adds the registered workflows that are called, and those that they call. Names that are not registered stay as they are:
/// they are refused when the run is prepared.
pub(in crate::store) fn resolve_calls(
    connection: &mut dyn Connection,
    workflow: &mut Workflow,
) -> Result<()> {
    // Where each name is in the list, and the folder of its registration.
    let mut known: HashMap<String, Option<(usize, Option<String>)>> = HashMap::new();
    loop {
        let is_open = |name: &str| !matches!(known.get(name), Some(None));
        let open = workflow.calls().map(|(_job, call)| call);
        let open = open.filter(|call| call.called.is_none() && !call.is_of_file() && is_open(&call.workflow));
        let Some(name) = open.map(|call| call.workflow.clone()).next() else { return Ok(()) };
        if workflow.workflows.len() > limits::CALLED_WORKFLOWS {
            // The check of the definition refuses it.
            return Ok(());
        }
        if !known.contains_key(&name) {
            let registered = registered_workflow(connection, &name)?;
            let added = registered.map(|(registration, mut called)| {
                // What the called workflow says about its own runs means nothing here.
                called.schedules.clear();
                called.triggers.clear();
                (workflow.add_called(called), registration.dir)
            });
            known.insert(name.clone(), added);
        }
        let Some(Some((index, dir))) = known.get(&name) else { continue };
        for (_scope, call) in workflow.calls_mut() {
            if call.called.is_none() && call.workflow == name {
                call.called = Some(*index);
                call.dir.clone_from(dir);
            }
        }
    }
}
