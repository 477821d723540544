//! `schedules`: when the workflow runs by itself.

use std::collections::HashMap;

use super::expect::{self, Least};
use super::keys;
use super::name;
use super::param;
use super::top::Top;
use crate::job_names::JobNames;
use crate::limits;
use crate::model::{Catchup, DEFAULT_SCHEDULE, Overlap, Rule, Schedule};
use crate::params::{ParamError, Supplied};
use crate::report::{Finding, Findings};
use crate::schedule::{self, Part, RuleError, Timetable};
use crate::template::{self, Reader, Scope, Templates};
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

/// The zone of a schedule that names none.
const UTC: &str = "UTC";

/// A value and its place.
type Placed<T> = Option<(T, Span)>;

/// What the table of a schedule says.
#[derive(Default)]
struct Parts<'t, 's> {
    name: Placed<String>,
    cron: Placed<String>,
    every_ms: Placed<i64>,
    timezone: Placed<String>,
    overlap: Option<Overlap>,
    catchup: Option<Catchup>,
    catchup_window_ms: Placed<i64>,
    catchup_max: Placed<i64>,
    start: Option<&'t Node<'s>>,
    end: Option<&'t Node<'s>>,
    jitter_ms: Placed<i64>,
    params: &'t [Entry<'s>],
    /// It has a name that is none.
    name_is_broken: bool,
    /// Something is wrong that was reported.
    is_broken: bool,
}

pub(super) fn read_all(
    text: &str,
    top: &Top<'_, '_>,
    names: &JobNames<'_>,
    findings: &mut Findings,
) -> Vec<Schedule> {
    let Some(entry) = top.schedules else { return Vec::new() };
    let scope = Scope { text, params: &top.params, names, reader: Reader::Schedule };
    if let Value::Table(_) = entry.node.value {
        let help = "begin each schedule with [[schedules]]; its name goes into it, as `name`";
        expect::wrong_type_help(&entry.node, "`schedules`", "a list of schedules", help, findings);
        return Vec::new();
    }
    let items = expect::list(entry, limits::SCHEDULES, "a list of schedules", findings).unwrap_or_default();
    let mut schedules = Vec::with_capacity(items.len());
    let mut seen: HashMap<String, Span> = HashMap::new();
    for item in items {
        let Some(parts) = read(item, findings) else { continue };
        let place = parts.name.as_ref().map_or(item.span.clone(), |(_, span)| span.clone());
        let name = parts.name.as_ref().map_or(DEFAULT_SCHEDULE, |(name, _)| name).to_owned();
        match seen.get(&name) {
            _ if parts.name_is_broken => (),
            Some(first) => findings.push(twice(&name, place, first.clone())),
            None => {
                seen.insert(name.clone(), place);
            }
        }
        schedules.extend(complete(name, item, parts, &scope, findings));
    }
    schedules
}

fn twice(name: &str, second: Span, first: Span) -> Finding {
    let finding = Finding::new(second, format!("two schedules have the name `{name}`"))
        .related(first, "the first one")
        .help("give each schedule a `name` of its own");
    match name {
        DEFAULT_SCHEDULE => finding.label(format!("without a `name` it is `{DEFAULT_SCHEDULE}`")),
        _ => finding,
    }
}

fn read<'t, 's>(item: &'t Node<'s>, findings: &mut Findings) -> Option<Parts<'t, 's>> {
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

fn complete(
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
    schedule.params = params(&schedule, item, &parts, scope, findings)?;
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

fn params(
    schedule: &Schedule,
    item: &Node<'_>,
    parts: &Parts<'_, '_>,
    scope: &Scope<'_>,
    findings: &mut Findings,
) -> Option<serde_json::Map<String, serde_json::Value>> {
    let mut supplied = Vec::with_capacity(parts.params.len());
    let mut is_broken = false;
    for entry in parts.params {
        let mut templates = Templates::default();
        templates.add(&entry.node);
        let before = findings.count();
        template::check(&templates, scope, findings);
        is_broken |= findings.count() > before;
        match param::scalar(&entry.node) {
            Some(value) => supplied.push((entry.key.to_string(), Supplied::Json(value))),
            None => {
                let what = format!("the value of `{}`", entry.key);
                expect::wrong_type(&entry.node, &what, "a string, a number, a boolean or a date", findings);
                is_broken = true;
            }
        }
    }
    if is_broken {
        return None;
    }
    schedule::check_params(scope.params, schedule, supplied)
        .map_err(|errors| {
            for error in errors {
                findings.push(wrong_param(error, schedule, item, parts));
            }
        })
        .ok()
}

fn wrong_param(error: ParamError, schedule: &Schedule, item: &Node<'_>, parts: &Parts<'_, '_>) -> Finding {
    let message = error.to_string();
    let entry = |name: &str| parts.params.iter().find(|entry| entry.key == name);
    match error {
        ParamError::Unknown { name, .. } | ParamError::Repeated { name } => {
            let span = entry(&name).map_or(&item.span, |entry| &entry.key_span);
            Finding::new(span.clone(), message)
        }
        ParamError::Invalid { name, reason } => {
            let span = entry(&name).map_or(&item.span, |entry| &entry.node.span);
            let message = format!("this value of `{name}` cannot be used in schedule `{}`", schedule.name);
            Finding::new(span.clone(), message).label(reason)
        }
        ParamError::Missing { name, .. } => {
            let message = format!("schedule `{}` gives no value to the parameter `{name}`", schedule.name);
            Finding::new(item.span.clone(), message).help(format!(
                "write params = {{ {name} = … }} in the schedule, or give the parameter a `default` or \
                 required = false"
            ))
        }
    }
}
