//! Reads `workspace`, the folder of each run.

use crate::expect;
use crate::keys::{self, Table};
use crate::model::KeepWorkspace;
use crate::report::Findings;
use crate::tree::{Entry, Value};

/// Reads `true`, `false` or a table.
pub(super) fn read(entry: &Entry<'_>, findings: &mut Findings) -> Option<KeepWorkspace> {
    if let Value::Boolean(is_wanted) = entry.node.value {
        return is_wanted.then_some(KeepWorkspace::Never);
    }
    let Value::Table(parts) = &entry.node.value else {
        let expected = "`true`, or a table like { keep = \"on_failure\" }";
        expect::wrong_type(&entry.node, "`workspace`", expected, findings);
        return None;
    };
    let mut keep = KeepWorkspace::Never;
    for part in parts {
        let Ok(_keep) = keys::find(part, Table::Workspace, findings) else { continue };
        let words = [KeepWorkspace::Never, KeepWorkspace::OnFailure, KeepWorkspace::Always];
        keep = expect::word(part, &words.map(|word| (word.as_str(), word)), findings).unwrap_or(keep);
    }
    Some(keep)
}
