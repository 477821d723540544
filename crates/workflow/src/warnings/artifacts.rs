//! Artifacts of items that are in the way of each other.

use super::WorkflowInFile;
use crate::kinds::Action;
use crate::report::{Finding, Findings};

/// Warns of artifacts of jobs with `for_each` whose path and folder have nothing of the item. The items run side by side in one
/// folder, so an item keeps what another one has written.
pub(super) fn check(file: &WorkflowInFile<'_, '_>, findings: &mut Findings) {
    for found in &file.jobs {
        let (Some(for_each), Action::Shell(shell)) = (&found.job.for_each, &found.job.action) else {
            continue;
        };
        let Some(entry) = found.key("artifacts") else { continue };
        let names_item = found.reads.iter().any(|read| {
            ["artifacts", "dir"].contains(&read.key)
                && read.path.first().is_some_and(|root| ["item", "index"].contains(&root.as_str()))
        });
        if names_item || shell.artifacts.is_empty() || for_each.max_parallel == Some(1) {
            continue;
        }
        let message = format!("the items of job `{}` keep files of each other", found.job.name);
        findings.push(
            Finding::new(entry.node.span.clone(), message)
                .label("the items run side by side in one folder, and no path has the item in it")
                .help(
                    "put {{ index }} or {{ item }} into the path of the artifacts or into `dir`, or write max_parallel = 1 in \
                     `for_each`",
                ),
        );
    }
}
