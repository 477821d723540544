//! Comparisons that are always false, because a value that has a few texts only is compared with another text.

use minijinja::machinery::ast::{BinOpKind, Expr};

use super::scope::Scope;
use crate::params::ParamKind;

/// The states of a job that has ended, the only ones that an expression sees.
const ENDS_OF_JOBS: [&str; 4] = ["SUCCESSFUL", "FAILED", "SKIPPED", "CANCELLED"];
/// What the jobs of a run can come to, without its handlers.
const OUTCOMES: [&str; 3] = ["SUCCESSFUL", "FAILED", "CANCELLED"];

/// The only texts that a value can be. `path` has its names, as in `["jobs", "load", "status"]`.
pub(super) fn texts_of<'s>(path: &[String], scope: &Scope<'s>) -> Option<Vec<&'s str>> {
    match path.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["jobs", _, "status"] => Some(ENDS_OF_JOBS.to_vec()),
        ["run", "outcome"] => Some(OUTCOMES.to_vec()),
        ["params", name] => {
            let param = scope.params.iter().find(|param| param.name == *name)?;
            let is_choice = param.kind == ParamKind::Choice;
            is_choice.then(|| param.choices.iter().map(String::as_str).collect())
        }
        _ => None,
    }
}

/// The written texts that an operand is compared with: itself, or the items of a list after `in`.
pub(super) fn written_texts<'e>(operator: BinOpKind, operand: &'e Expr<'e>) -> Vec<(&'e Expr<'e>, &'e str)> {
    let is_equality = matches!(operator, BinOpKind::Eq | BinOpKind::Ne);
    if let Expr::List(list) = operand
        && matches!(operator, BinOpKind::In)
    {
        list.items.iter().filter_map(written_text).collect()
    } else {
        written_text(operand).filter(|_| is_equality).into_iter().collect()
    }
}

fn written_text<'e>(part: &'e Expr<'e>) -> Option<(&'e Expr<'e>, &'e str)> {
    let Expr::Const(constant) = part else { return None };
    constant.value.as_str().map(|text| (part, text))
}
