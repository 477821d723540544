//! `schedule` of Dagu.

use super::dag::Reader;
use super::values::{items, plain_key, quoted, scalar, table};
use crate::schedule::check_cron;
use crate::tree::{Entry, Value};

/// A schedule: its expression and its zone, if it names one.
#[derive(Debug, Clone)]
pub(super) struct Schedule {
    pub(super) cron: String,
    pub(super) timezone: Option<String>,
}

impl Schedule {
    /// The lines of the table.
    pub(super) fn lines(&self, index: usize, timezone: &str) -> Vec<String> {
        let mut lines = vec!["[[schedules]]".to_owned()];
        if index > 0 {
            lines.push(format!("name = \"schedule-{}\"", index + 1));
        }
        lines.push(format!("cron = {}", quoted(&self.cron)));
        lines.push(format!("timezone = {}", quoted(self.timezone.as_deref().unwrap_or(timezone))));
        // Dagu starts no run for a time at which it was not running.
        lines.push("catchup = \"none\"".to_owned());
        lines
    }
}

/// Reads `schedule`: an expression, a list of them, or a table with the times of starts and stops.
pub(super) fn read(entry: &Entry<'_>, reader: &mut Reader<'_>) -> Vec<Schedule> {
    let mut schedules = Vec::new();
    let starts = match &entry.node.value {
        Value::Table(parts) => {
            for part in parts.iter().filter(|part| plain_key(part) != "start") {
                let what =
                    format!("the times of `{}` in `schedule`; only starts are scheduled here", part.key);
                let comment = reader.notes.leave_out(&part.key_span, what);
                reader.top.push(comment);
            }
            parts.iter().filter(|part| plain_key(part) == "start").map(|part| &part.node).collect()
        }
        Value::Text(_)
        | Value::Integer(_)
        | Value::Number(_)
        | Value::Boolean(_)
        | Value::Date(_)
        | Value::Null
        | Value::Broken
        | Value::List(_) => vec![&entry.node],
    };
    for item in starts.into_iter().flat_map(items) {
        let fields = table(item);
        let is_cron = |field: &&Entry<'_>| matches!(plain_key(field).as_str(), "expression" | "cron");
        let node = fields.iter().find(is_cron).map_or(item, |field| &field.node);
        let mut lines = Vec::new();
        let Some(text) = scalar(node, reader.document) else {
            reader.leave_out_item(item, "only times of a cron expression are scheduled here", &mut lines);
            reader.top.append(&mut lines);
            continue;
        };
        for field in fields.iter().filter(|field| !is_cron(field)) {
            reader.leave_out(field, "write it in [[schedules]]", &mut lines);
        }
        reader.top.append(&mut lines);
        let (timezone, cron) = split_zone(text.trim());
        match check_cron(cron, timezone.as_deref().unwrap_or("UTC")) {
            Ok(()) => schedules.push(Schedule { cron: cron.to_owned(), timezone }),
            Err(reason) => {
                let comment = reader.notes.leave_out(&item.span, format!("the schedule `{text}`: {reason}"));
                reader.top.push(comment);
            }
        }
    }
    schedules
}

fn split_zone(text: &str) -> (Option<String>, &str) {
    let zoned = text.strip_prefix("CRON_TZ=").or(text.strip_prefix("TZ="));
    match zoned.and_then(|rest| rest.split_once(' ')) {
        Some((zone, cron)) => (Some(zone.to_owned()), cron.trim()),
        None => (None, text),
    }
}
