//! What the table of a schedule says, before it is looked at as a whole.

use super::super::expect::{self, Least};
use super::super::{keys, name};
use crate::limits;
use crate::model::{Catchup, Overlap};
use crate::report::Findings;
use crate::tree::{Entry, Node, Span, Value};

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

/// A value and its place.
pub(super) type Placed<T> = Option<(T, Span)>;

/// What the table of a schedule says.
#[derive(Default)]
pub(super) struct Parts<'t, 's> {
    pub(super) name: Placed<String>,
    pub(super) cron: Placed<String>,
    pub(super) every_ms: Placed<i64>,
    pub(super) timezone: Placed<String>,
    pub(super) overlap: Option<Overlap>,
    pub(super) catchup: Option<Catchup>,
    pub(super) catchup_window_ms: Placed<i64>,
    pub(super) catchup_max: Placed<i64>,
    pub(super) start: Option<&'t Node<'s>>,
    pub(super) end: Option<&'t Node<'s>>,
    pub(super) jitter_ms: Placed<i64>,
    pub(super) params: &'t [Entry<'s>],
    /// It has a name that is none.
    pub(super) name_is_broken: bool,
    /// Something is wrong that was reported.
    pub(super) is_broken: bool,
}

pub(super) fn read<'t, 's>(item: &'t Node<'s>, findings: &mut Findings) -> Option<Parts<'t, 's>> {
    let Value::Table(entries) = &item.value else {
        expect::wrong_type(item, "a schedule", "a table with `cron` or `every`", findings);
        return None;
    };
    let mut parts = Parts::default();
    for part in entries {
        take(part, &mut parts, findings);
    }
    Some(parts)
}

fn take<'t, 's>(part: &'t Entry<'s>, parts: &mut Parts<'t, 's>, findings: &mut Findings) {
    let span = &part.node.span;
    let is_right = match part.key.as_ref() {
        "name" => {
            let name = schedule_name(part, findings);
            parts.name_is_broken = name.is_none();
            keep(&mut parts.name, name, span)
        }
        "cron" => keep(&mut parts.cron, text(part, findings), span),
        "every" => {
            keep(&mut parts.every_ms, expect::duration_ms(part, Least::OneMillisecond, findings), span)
        }
        "timezone" => keep(&mut parts.timezone, text(part, findings), span),
        "overlap" => {
            parts.overlap = expect::word(part, &OVERLAPS, findings);
            parts.overlap.is_some()
        }
        "catchup" => {
            parts.catchup = expect::word(part, &CATCHUPS, findings);
            parts.catchup.is_some()
        }
        "catchup_window" => {
            let window_ms = expect::duration_ms(part, Least::OneMillisecond, findings);
            keep(&mut parts.catchup_window_ms, window_ms, span)
        }
        "catchup_max" => {
            keep(&mut parts.catchup_max, expect::integer(part, 1..=limits::CATCHUP, findings), span)
        }
        "start" => {
            parts.start = Some(&part.node);
            true
        }
        "end" => {
            parts.end = Some(&part.node);
            true
        }
        "jitter" => keep(&mut parts.jitter_ms, expect::duration_ms(part, Least::Zero, findings), span),
        "params" => {
            let params = expect::table(part, limits::PARAMS, "a table of names and values", findings);
            parts.params = params.unwrap_or_default();
            params.is_some()
        }
        _ => {
            keys::unknown(part, "a schedule", &keys::SCHEDULE, findings);
            false
        }
    };
    parts.is_broken |= !is_right;
}

/// Keeps the value and its place; whether there is one.
fn keep<T>(kept: &mut Placed<T>, value: Option<T>, span: &Span) -> bool {
    *kept = value.map(|value| (value, span.clone()));
    kept.is_some()
}

fn text(entry: &Entry<'_>, findings: &mut Findings) -> Option<String> {
    expect::filled_text(&entry.node, &expect::quoted(entry), findings).map(str::to_owned)
}

fn schedule_name(entry: &Entry<'_>, findings: &mut Findings) -> Option<String> {
    let text = expect::text(&entry.node, "`name`", findings)?;
    name::check(text, &entry.node.span, name::Rule::Schedule, findings).then(|| text.to_owned())
}
