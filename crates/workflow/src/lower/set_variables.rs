//! Reads `set_variables`: variables that get a value when the job succeeds.

use std::collections::BTreeMap;

use crate::expression::Expression;
use crate::keys::SET_VARIABLES;
use crate::names::{self, NameKind};
use crate::report::Findings;
use crate::template::Templates;
use crate::tree::Entry;
use crate::{expect, limits};

pub(super) fn read<'t>(
    entry: &'t Entry<'_>,
    templates: &mut Templates<'t>,
    findings: &mut Findings,
) -> BTreeMap<String, Expression> {
    let mut expressions = BTreeMap::new();
    let expected = "a table of names and expressions, like { cursor = \"output.last_id\" }";
    let entries = expect::table(entry, limits::SET_VARIABLES, expected, findings);
    for variable in entries.unwrap_or_default() {
        if !names::check_key(variable, NameKind::Variable, findings) {
            continue;
        }
        if let Some(expression) = expect::expression(variable, &SET_VARIABLES, templates, findings) {
            expressions.insert(variable.key.to_string(), expression);
        }
    }
    expressions
}
