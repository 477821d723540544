//! Reads `outputs`: what a run gives to the job that called the workflow.

use std::collections::BTreeMap;

use crate::expression::Expression;
use crate::keys::OUTPUTS;
use crate::names::{self, NameKind};
use crate::report::Findings;
use crate::template::Templates;
use crate::tree::Entry;
use crate::{expect, limits};

/// The outputs of a workflow.
#[derive(Debug, Default)]
pub(super) struct Outputs<'t> {
    pub(super) expressions: BTreeMap<String, Expression>,
    /// The same expressions, to be checked when the names of the jobs are known.
    pub(super) templates: Templates<'t>,
}

pub(super) fn read<'t>(entry: &'t Entry<'_>, findings: &mut Findings) -> Outputs<'t> {
    let mut outputs = Outputs::default();
    let expected = "a table of names and expressions";
    for output in expect::table(entry, limits::OUTPUTS, expected, findings).unwrap_or_default() {
        if !names::check_key(output, NameKind::Output, findings) {
            continue;
        }
        if let Some(expression) = expect::expression(output, &OUTPUTS, &mut outputs.templates, findings) {
            outputs.expressions.insert(output.key.to_string(), expression);
        }
    }
    outputs
}
