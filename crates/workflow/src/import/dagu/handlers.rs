//! `handlerOn` of Dagu: jobs for the end of a run.

use super::dag::Reader;
use super::job::Job;
use super::steps;
use super::values::plain_key;
use crate::tree::{Entry, Value};

/// Adds the handlers to the jobs.
pub(super) fn read(entry: &Entry<'_>, jobs: &mut Vec<Job>, reader: &mut Reader<'_>) {
    let Value::Table(handlers) = &entry.node.value else { return };
    for handler in handlers {
        let (table, name) = match plain_key(handler).as_str() {
            "success" => ("on_success", "when-successful"),
            "failure" => ("on_failure", "when-failed"),
            "cancel" | "abort" => ("on_cancel", "when-cancelled"),
            "exit" => ("finally", "at-the-end"),
            _ => {
                let mut lines = Vec::new();
                reader.leave_out(handler, "write it as a job that the others need", &mut lines);
                reader.top.append(&mut lines);
                continue;
            }
        };
        steps::read_handler(&handler.node, table, name, jobs, reader);
    }
}
