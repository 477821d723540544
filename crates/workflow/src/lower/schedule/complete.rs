//! From the table of a schedule to a checked schedule.

use super::params;
use super::table::ScheduleTable;
use crate::expression::Scope;
use crate::model::{Catchup, Overlap, Rule, Schedule};
use crate::report::{Finding, Findings};
use crate::schedule::{self, RuleError, ScheduleField, Timetable};
use crate::template;
use crate::tree::{Node, Value};
use crate::{expect, limits};

/// The zone of a schedule without `timezone`.
const DEFAULT_TIMEZONE: &str = "UTC";

pub(super) fn complete(
    name: String,
    item: &Node<'_>,
    table: ScheduleTable<'_, '_>,
    scope: &Scope<'_>,
    findings: &mut Findings,
) -> Option<Schedule> {
    let rule = rule(&name, item, &table, findings);
    let has_rule = rule.is_some();
    check_catchup(&table, findings);
    let has_effect = check_once(&table, findings);
    let catchup = table.catchup.unwrap_or_default();
    let mut schedule = Schedule {
        name,
        // The other keys are checked too when the rule is wrong, which was reported.
        rule: rule.unwrap_or(Rule::EveryMs(limits::SCHEDULE_INTERVAL_MS)),
        timezone: table.timezone.as_ref().map_or(DEFAULT_TIMEZONE, |(timezone, _)| timezone).to_owned(),
        overlap: table.overlap.unwrap_or(match catchup {
            // `catchup = "all"` asks for a run for every occurrence, so none may be skipped.
            Catchup::All => Overlap::QueueAll,
            Catchup::None | Catchup::Last => Overlap::default(),
        }),
        catchup,
        catchup_window_ms: table.catchup_window_ms.as_ref().map(|(window_ms, _)| *window_ms),
        catchup_max: table.catchup_max.as_ref().map_or(limits::CATCHUP_DEFAULT, |(most, _)| *most),
        start_ms: None,
        end_ms: None,
        jitter_ms: table.jitter_ms.as_ref().map_or(0, |(jitter_ms, _)| *jitter_ms),
        params: serde_json::Map::new(),
    };
    // `at`, `start` and `end` are read in the schedule's zone, so the zone is checked before them.
    let is_right =
        check_rule(&schedule, item, &table, scope, findings) && set_ends(&mut schedule, &table, findings);
    let is_right = is_right && check_rule(&schedule, item, &table, scope, findings);
    schedule.params = params::read(&schedule, item, &table, scope, findings)?;
    (is_right && has_effect && has_rule && !table.is_wrong).then_some(schedule)
}

/// Sets `at`, `start` and `end`, if they are given. Returns whether all could be read.
fn set_ends(schedule: &mut Schedule, table: &ScheduleTable<'_, '_>, findings: &mut Findings) -> bool {
    let mut read = |key: &str, node: Option<&Node<'_>>| match node {
        Some(node) => instant(key, node, &schedule.timezone, findings).map(Some),
        None => Some(None),
    };
    let (start_ms, end_ms) = (read("start", table.start), read("end", table.end));
    let at_ms = read("at", table.at);
    schedule.start_ms = start_ms.flatten();
    schedule.end_ms = end_ms.flatten();
    if let (Some(Some(at_ms)), Rule::AtMs(_)) = (at_ms, &schedule.rule) {
        schedule.rule = Rule::AtMs(at_ms);
    }
    start_ms.is_some() && end_ms.is_some() && at_ms.is_some()
}

/// The rule. A schedule has exactly one of `cron`, `every` and `at`. The instant of `at` is read with the other instants.
fn rule(name: &str, item: &Node<'_>, table: &ScheduleTable<'_, '_>, findings: &mut Findings) -> Option<Rule> {
    let rules = [
        table.cron.as_ref().map(|(cron, span)| ("cron", span, Rule::Cron(cron.clone()))),
        table.every_ms.as_ref().map(|(every_ms, span)| ("every", span, Rule::EveryMs(*every_ms))),
        table.at.map(|node| ("at", &node.span, Rule::AtMs(0))),
    ];
    let mut rules = rules.into_iter().flatten();
    match (rules.next(), rules.next()) {
        (Some((_key, _span, rule)), None) => Some(rule),
        (Some((first, first_span, _)), Some((second, second_span, _))) => {
            let message = format!("schedule `{name}` has both `{first}` and `{second}`");
            findings.push(
                Finding::new(second_span.clone(), message)
                    .related(first_span.clone(), "the other rule")
                    .help("keep one of them, or write two schedules"),
            );
            None
        }
        (None, _) => {
            if !table.is_wrong {
                findings.push(
                    Finding::new(item.span.clone(), format!("schedule `{name}` does not say when"))
                        .label("needs `cron`, `every` or `at`")
                        .help(
                            "write cron = \"30 2 * * *\" for 02:30 every day, every = \"90s\", or at = \
                             \"2026-11-21T02:30\" for one run",
                        ),
                );
            }
            None
        }
    }
}

/// Reports keys that have no effect on a schedule with one occurrence.
fn check_once(table: &ScheduleTable<'_, '_>, findings: &mut Findings) -> bool {
    let useless = [("start", table.start), ("end", table.end)];
    let useless = useless.into_iter().filter_map(|(key, node)| Some((key, node?)));
    let mut is_right = true;
    for (key, node) in useless.filter(|_| table.at.is_some()) {
        let message = format!("`{key}` has no effect beside `at`, which is the only instant");
        findings.push(Finding::new(node.span.clone(), message).help(format!("remove `{key}`")));
        is_right = false;
    }
    is_right
}

/// Reports limits on catching up that have no effect, because `catchup` asks for less.
fn check_catchup(table: &ScheduleTable<'_, '_>, findings: &mut Findings) {
    let catchup = table.catchup.unwrap_or_default();
    let window = table.catchup_window_ms.as_ref().filter(|_| catchup == Catchup::None);
    let most = table.catchup_max.as_ref().filter(|_| catchup != Catchup::All);
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
            let message = format!("`{key}` has no effect with catchup = \"{word}\"");
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

/// Whether the rule can be compiled. Reports the errors at the wrong keys if it can't.
fn check_rule(
    schedule: &Schedule,
    item: &Node<'_>,
    table: &ScheduleTable<'_, '_>,
    scope: &Scope<'_>,
    findings: &mut Findings,
) -> bool {
    let errors = Timetable::errors(schedule);
    for error in &errors {
        findings.push(finding(error, item, table, scope));
    }
    errors.is_empty()
}

fn finding(error: &RuleError, item: &Node<'_>, table: &ScheduleTable<'_, '_>, scope: &Scope<'_>) -> Finding {
    let RuleError { reason, help, field, range } = error;
    let wrong = match field {
        ScheduleField::Rule => {
            let cron = table.cron.as_ref().map(|(_, span)| span);
            let every = table.every_ms.as_ref().map(|(_, span)| span);
            cron.or(every).or(table.at.map(|node| &node.span))
        }
        ScheduleField::Timezone => table.timezone.as_ref().map(|(_, span)| span),
        ScheduleField::Jitter => table.jitter_ms.as_ref().map(|(_, span)| span),
        ScheduleField::End => table.end.map(|node| &node.span),
    };
    let span = wrong.unwrap_or(&item.span).clone();
    let span = match (&table.cron, range) {
        (Some((cron, _)), Some(range)) => template::span_within(scope.file, &span, cron, range),
        (Some(_) | None, _) => span,
    };
    Finding::new(span, reason.as_str()).help(help.as_str())
}
