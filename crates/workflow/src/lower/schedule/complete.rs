//! From what the table of a schedule says to a schedule that has been checked.

use super::super::expect;
use super::params;
use super::parts::Parts;
use crate::limits;
use crate::model::{Catchup, Overlap, Rule, Schedule};
use crate::report::{Finding, Findings};
use crate::schedule::{self, Part, RuleError, Timetable};
use crate::template::{self, Scope};
use crate::tree::{Node, Value};

/// The zone of a schedule that names none.
const UTC: &str = "UTC";

pub(super) fn complete(
    name: String,
    item: &Node<'_>,
    parts: Parts<'_, '_>,
    scope: &Scope<'_>,
    findings: &mut Findings,
) -> Option<Schedule> {
    let rule = rule(&name, item, &parts, findings);
    check_catchup(&parts, findings);
    let catchup = parts.catchup.unwrap_or_default();
    let mut schedule = Schedule {
        name,
        rule: rule?,
        timezone: parts.timezone.as_ref().map_or(UTC, |(timezone, _)| timezone).to_owned(),
        overlap: parts.overlap.unwrap_or(match catchup {
            // Who wants every occurrence wants none of them skipped.
            Catchup::All => Overlap::QueueAll,
            Catchup::None | Catchup::Last => Overlap::default(),
        }),
        catchup,
        catchup_window_ms: parts.catchup_window_ms.as_ref().map(|(window_ms, _)| *window_ms),
        catchup_max: parts.catchup_max.as_ref().map_or(limits::CATCHUP_DEFAULT, |(most, _)| *most),
        start_ms: None,
        end_ms: None,
        jitter_ms: parts.jitter_ms.as_ref().map_or(0, |(jitter_ms, _)| *jitter_ms),
        params: serde_json::Map::new(),
    };
    // First without its ends: they are read in its zone.
    let is_right =
        check_rule(&schedule, item, &parts, scope, findings) && set_ends(&mut schedule, &parts, findings);
    let is_right = is_right && check_rule(&schedule, item, &parts, scope, findings);
    schedule.params = params::read(&schedule, item, &parts, scope, findings)?;
    (is_right && !parts.is_broken).then_some(schedule)
}

/// Whether both ends, as far as they are given, are instants.
fn set_ends(schedule: &mut Schedule, parts: &Parts<'_, '_>, findings: &mut Findings) -> bool {
    let mut read = |key: &str, node: Option<&Node<'_>>| match node {
        Some(node) => instant(key, node, &schedule.timezone, findings).map(Some),
        None => Some(None),
    };
    let (start_ms, end_ms) = (read("start", parts.start), read("end", parts.end));
    schedule.start_ms = start_ms.flatten();
    schedule.end_ms = end_ms.flatten();
    start_ms.is_some() && end_ms.is_some()
}

/// `cron` or `every`, exactly one of them.
fn rule(name: &str, item: &Node<'_>, parts: &Parts<'_, '_>, findings: &mut Findings) -> Option<Rule> {
    match (&parts.cron, &parts.every_ms) {
        (Some((cron, _)), None) => Some(Rule::Cron(cron.clone())),
        (None, Some((every_ms, _))) => Some(Rule::EveryMs(*every_ms)),
        (Some((_, cron)), Some((_, every))) => {
            let message = format!("schedule `{name}` has both `cron` and `every`");
            findings.push(
                Finding::new(every.clone(), message)
                    .related(cron.clone(), "the other rule")
                    .help("keep one of them, or write two schedules"),
            );
            None
        }
        (None, None) => {
            if !parts.is_broken {
                findings.push(
                    Finding::new(item.span.clone(), format!("schedule `{name}` does not say when"))
                        .label("needs `cron` or `every`")
                        .help("write cron = \"30 2 * * *\" for 02:30 every day, or every = \"90s\""),
                );
            }
            None
        }
    }
}

/// A limit on what is not done has no meaning.
fn check_catchup(parts: &Parts<'_, '_>, findings: &mut Findings) {
    let catchup = parts.catchup.unwrap_or_default();
    let window = parts.catchup_window_ms.as_ref().filter(|_| catchup == Catchup::None);
    let most = parts.catchup_max.as_ref().filter(|_| catchup != Catchup::All);
    for (key, span, help) in [
        ("catchup_window", window.map(|(_, span)| span), "write catchup = \"last\" or \"all\", or remove it"),
        ("catchup_max", most.map(|(_, span)| span), "write catchup = \"all\", or remove it"),
    ] {
        if let Some(span) = span {
            let word = match catchup {
                Catchup::None => "none",
                Catchup::Last => "last",
                Catchup::All => "all",
            };
            let message = format!("`{key}` has no meaning with catchup = \"{word}\"");
            findings.push(Finding::new(span.clone(), message).help(help));
        }
    }
}

fn instant(key: &str, node: &Node<'_>, timezone: &str, findings: &mut Findings) -> Option<i64> {
    let text = if let Value::Date(text) = &node.value {
        text.as_str()
    } else {
        expect::text(node, &format!("`{key}`"), findings)?
    };
    match schedule::parse_instant(text, timezone) {
        Ok(instant_ms) => Some(instant_ms),
        Err(reason) => {
            let message = format!("`{key}` is not an instant");
            findings.push(Finding::new(node.span.clone(), message).help(reason));
            None
        }
    }
}

/// Whether the rule can be compiled; says so at its place if not.
fn check_rule(
    schedule: &Schedule,
    item: &Node<'_>,
    parts: &Parts<'_, '_>,
    scope: &Scope<'_>,
    findings: &mut Findings,
) -> bool {
    let Err(RuleError { reason, help, part, range }) = Timetable::of(schedule) else { return true };
    let placed = match part {
        Part::Rule => {
            parts.cron.as_ref().map(|(_, span)| span).or(parts.every_ms.as_ref().map(|(_, span)| span))
        }
        Part::Timezone => parts.timezone.as_ref().map(|(_, span)| span),
        Part::Jitter => parts.jitter_ms.as_ref().map(|(_, span)| span),
        Part::End => parts.end.map(|node| &node.span),
    };
    let span = placed.unwrap_or(&item.span).clone();
    let span = match (&parts.cron, range) {
        (Some((cron, _)), Some(range)) => template::span_within(scope.text, &span, cron, &range),
        (Some(_) | None, _) => span,
    };
    findings.push(Finding::new(span, reason).help(help));
    false
}
