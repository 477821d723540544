//! Reads the `params` of a schedule and checks them against those of the workflow.

use super::super::param;
use super::table::ScheduleTable;
use crate::expression::Scope;
use crate::keys::SCHEDULE_PARAMS;
use crate::model::Schedule;
use crate::params::{ParamError, Supplied};
use crate::report::{Finding, Findings};
use crate::template::{self, Templates};
use crate::tree::Node;
use crate::{expect, schedule};

pub(super) fn read(
    schedule: &Schedule,
    item: &Node<'_>,
    table: &ScheduleTable<'_, '_>,
    scope: &Scope<'_>,
    findings: &mut Findings,
) -> Option<serde_json::Map<String, serde_json::Value>> {
    let mut supplied = Vec::with_capacity(table.params.len());
    let mut is_wrong = false;
    for entry in table.params {
        let mut templates = Templates::default();
        templates.add(&entry.node, &SCHEDULE_PARAMS);
        let before = findings.count();
        template::check(&templates, scope, findings);
        param::refuse_templates_in_list(&entry.node, findings);
        is_wrong |= findings.count() > before;
        match param::value(&entry.node) {
            Some(value) => supplied.push((entry.key.to_string(), Supplied::Json(value))),
            None => {
                let what = format!("the value of `{}`", entry.key);
                expect::wrong_type(
                    &entry.node,
                    &what,
                    "a string, a number, a boolean, a date or a list",
                    findings,
                );
                is_wrong = true;
            }
        }
    }
    if is_wrong {
        return None;
    }
    match schedule::check_params(scope.params, schedule, supplied) {
        Ok(params) => Some(params),
        Err(errors) => {
            for error in errors {
                findings.push(wrong_param(error, schedule, item, table));
            }
            None
        }
    }
}

fn wrong_param(
    error: ParamError,
    schedule: &Schedule,
    item: &Node<'_>,
    table: &ScheduleTable<'_, '_>,
) -> Finding {
    let message = error.to_string();
    let entry = |name: &str| table.params.iter().find(|entry| entry.key == name);
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
