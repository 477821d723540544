//! Refuses what this version does not support yet, in a workflow that a program made.

use crate::field::{Checked, refuse};
use crate::model::{Job, When, Workflow};
use crate::support::{self, Accepted, Support};

/// A feature: the field, whether it is supported, and whether it is used.
type Feature = (&'static str, Support, bool);

pub(super) fn check_workflow(workflow: &Workflow, accepted: Accepted) -> Checked {
    refuse_unsupported(
        &[
            ("secrets", support::SECRETS, !workflow.secrets.is_empty()),
            ("outputs", support::CALLS, !workflow.outputs.is_empty()),
        ],
        accepted,
    )
}

pub(super) fn check_job(job: &Job, accepted: Accepted) -> Checked {
    refuse_unsupported(
        &[
            ("handler", support::HANDLERS, job.handler.is_some()),
            ("when", support::CONDITIONS, job.when != When::default()),
            ("condition", support::CONDITIONS, job.condition.is_some()),
            ("success_if", support::RESULT_CONDITIONS, job.success_if.is_some()),
            ("skip_if", support::RESULT_CONDITIONS, job.skip_if.is_some()),
            ("retry.condition", support::RESULT_CONDITIONS, job.retry.condition.is_some()),
            ("deadline_ms", support::DEADLINE, job.deadline_ms.is_some()),
            ("secrets", support::SECRETS, !job.secrets.is_empty()),
        ],
        accepted,
    )?;
    refuse_unsupported(&job.action.features(), accepted)
}

fn refuse_unsupported(features: &[Feature], accepted: Accepted) -> Checked {
    let is_refused = |(_, support, is_used): &&Feature| *is_used && !accepted.accepts(*support);
    match features.iter().find(is_refused) {
        Some((field, _, _)) => refuse(*field, "this version does not support it"),
        None => Ok(()),
    }
}
