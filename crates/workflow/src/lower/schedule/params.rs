//! The params of a schedule, checked against those of the workflow.

use super::super::{expect, param};
use super::parts::Parts;
use crate::model::Schedule;
use crate::params::{ParamError, Supplied};
use crate::report::{Finding, Findings};
use crate::schedule;
use crate::template::{self, Scope, Templates};
use crate::tree::Node;

pub(super) fn read(
    schedule: &Schedule,
    item: &Node<'_>,
    parts: &Parts<'_, '_>,
    scope: &Scope<'_>,
    findings: &mut Findings,
) -> Option<serde_json::Map<String, serde_json::Value>> {
    let mut supplied = Vec::with_capacity(parts.params.len());
    let mut is_broken = false;
    for entry in parts.params {
        let mut templates = Templates::default();
        templates.add(&entry.node);
        let before = findings.count();
        template::check(&templates, scope, findings);
        is_broken |= findings.count() > before;
        match param::scalar(&entry.node) {
            Some(value) => supplied.push((entry.key.to_string(), Supplied::Json(value))),
            None => {
                let what = format!("the value of `{}`", entry.key);
                expect::wrong_type(&entry.node, &what, "a string, a number, a boolean or a date", findings);
                is_broken = true;
            }
        }
    }
    if is_broken {
        return None;
    }
    schedule::check_params(scope.params, schedule, supplied)
        .map_err(|errors| {
            for error in errors {
                findings.push(wrong_param(error, schedule, item, parts));
            }
        })
        .ok()
}

fn wrong_param(error: ParamError, schedule: &Schedule, item: &Node<'_>, parts: &Parts<'_, '_>) -> Finding {
    let message = error.to_string();
    let entry = |name: &str| parts.params.iter().find(|entry| entry.key == name);
    match error {
        ParamError::Unknown { name, .. } | ParamError::Repeated { name } => {
            let span = entry(&name).map_or(&item.span, |entry| &entry.key_span);
            Finding::new(span.clone(), message)
        }
        ParamError::Invalid { name, reason } => {
            let span = entry(&name).map_or(&item.span, |entry| &entry.node.span);
            let message = format!("this value of `{name}` cannot be used in schedule `{}`", schedule.name);
            Finding::new(span.clone(), message).label(reason)
        }
        ParamError::Missing { name, .. } => {
            let message = format!("schedule `{}` gives no value to the parameter `{name}`", schedule.name);
            Finding::new(item.span.clone(), message).help(format!(
                "write params = {{ {name} = … }} in the schedule, or give the parameter a `default` or \
                 required = false"
            ))
        }
    }
}
