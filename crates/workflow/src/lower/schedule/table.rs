//! Reads the table of a schedule key by key. The keys are checked against each other in [`super::complete`].

use crate::expect::{self, ShortestDuration};
use crate::keys::{self, Table};
use crate::limits;
use crate::model::{Catchup, Overlap};
use crate::names::{self, NameKind};
use crate::report::{Findings, Span};
use crate::tree::{Entry, Node, Value};

const OVERLAPS: [(&str, Overlap); 6] = [
    ("skip", Overlap::Skip),
    ("queue_one", Overlap::QueueOne),
    ("queue_all", Overlap::QueueAll),
    ("allow", Overlap::Allow),
    ("cancel_running", Overlap::CancelRunning),
    ("terminate_running", Overlap::TerminateRunning),
];
const CATCHUPS: [(&str, Catchup); 3] =
    [("none", Catchup::None), ("last", Catchup::Last), ("all", Catchup::All)];

/// A value and where the file has it.
pub(super) type WithSpan<T> = Option<(T, Span)>;

/// The values of a schedule's table.
#[derive(Default)]
pub(super) struct ScheduleTable<'t, 's> {
    pub(super) name: WithSpan<String>,
    pub(super) cron: WithSpan<String>,
    pub(super) every_ms: WithSpan<i64>,
    pub(super) at: Option<&'t Node<'s>>,
    pub(super) timezone: WithSpan<String>,
    pub(super) overlap: Option<Overlap>,
    pub(super) catchup: Option<Catchup>,
    pub(super) catchup_window_ms: WithSpan<i64>,
    pub(super) catchup_max: WithSpan<i64>,
    pub(super) start: Option<&'t Node<'s>>,
    pub(super) end: Option<&'t Node<'s>>,
    pub(super) jitter_ms: WithSpan<i64>,
    pub(super) params: &'t [Entry<'s>],
    /// The schedule is checked, and not registered.
    pub(super) is_disabled: bool,
    /// The name is wrong, which was reported.
    pub(super) name_is_wrong: bool,
    /// A value or a key is wrong, which was reported.
    pub(super) is_wrong: bool,
}

pub(super) fn read<'t, 's>(item: &'t Node<'s>, findings: &mut Findings) -> Option<ScheduleTable<'t, 's>> {
    let Value::Table(entries) = &item.value else {
        expect::wrong_type(item, "a schedule", "a table with `cron`, `every` or `at`", findings);
        return None;
    };
    let mut table = ScheduleTable::default();
    for part in entries {
        take(part, &mut table, findings);
    }
    Some(table)
}

fn take<'t, 's>(part: &'t Entry<'s>, table: &mut ScheduleTable<'t, 's>, findings: &mut Findings) {
    let span = &part.node.span;
    let Ok(key) = keys::find(part, Table::Schedule, findings) else {
        table.is_wrong = true;
        return;
    };
    let is_right = match key.name() {
        "name" => {
            let name = schedule_name(part, findings);
            table.name_is_wrong = name.is_none();
            keep(&mut table.name, name, span)
        }
        "cron" => keep(&mut table.cron, text(part, findings), span),
        "every" => keep(
            &mut table.every_ms,
            // The limits of an interval are those of the timetable.
            expect::duration_ms(part, ShortestDuration::Zero, findings),
            span,
        ),
        "enabled" => {
            let enabled = expect::boolean(part, findings);
            table.is_disabled = enabled == Some(false);
            enabled.is_some()
        }
        "timezone" => keep(&mut table.timezone, text(part, findings), span),
        "overlap" => {
            table.overlap = expect::word(part, &OVERLAPS, findings);
            table.overlap.is_some()
        }
        "catchup" => {
            table.catchup = expect::word(part, &CATCHUPS, findings);
            table.catchup.is_some()
        }
        "catchup_window" => {
            let window_ms = expect::duration_ms(part, ShortestDuration::OneMillisecond, findings);
            keep(&mut table.catchup_window_ms, window_ms, span)
        }
        "catchup_max" => {
            keep(&mut table.catchup_max, expect::integer(part, 1..=limits::CATCHUP, findings), span)
        }
        "at" => {
            table.at = Some(&part.node);
            true
        }
        "start" => {
            table.start = Some(&part.node);
            true
        }
        "end" => {
            table.end = Some(&part.node);
            true
        }
        "jitter" => {
            keep(&mut table.jitter_ms, expect::duration_ms(part, ShortestDuration::Zero, findings), span)
        }
        "params" => {
            let params = expect::table(part, limits::PARAMS, "a table of names and values", findings);
            table.params = params.unwrap_or_default();
            params.is_some()
        }
        _ => true,
    };
    table.is_wrong |= !is_right;
}

/// Stores the value with its span. Returns whether there is a value.
fn keep<T>(kept: &mut WithSpan<T>, value: Option<T>, span: &Span) -> bool {
    *kept = value.map(|value| (value, span.clone()));
    kept.is_some()
}

fn text(entry: &Entry<'_>, findings: &mut Findings) -> Option<String> {
    expect::filled_text(&entry.node, &expect::quoted(entry), findings).map(str::to_owned)
}

fn schedule_name(entry: &Entry<'_>, findings: &mut Findings) -> Option<String> {
    let text = expect::text(&entry.node, "`name`", findings)?;
    names::check(text, &entry.node.span, NameKind::Schedule, findings).then(|| text.to_owned())
}
