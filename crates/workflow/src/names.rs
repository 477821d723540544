//! Which names are allowed.

use crate::limits;
use crate::report::{Finding, Findings, Span};
use crate::tree::Entry;

/// What a name is for. The allowed characters depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameKind {
    Job,
    Param,
    Queue,
    Capability,
    Schedule,
    Trigger,
    Variable,
    Secret,
    Tag,
    Event,
    Workflow,
    Output,
}

impl NameKind {
    fn noun(self) -> &'static str {
        match self {
            NameKind::Job => "job",
            NameKind::Param => "parameter",
            NameKind::Queue => "queue",
            NameKind::Capability => "capability",
            NameKind::Schedule => "schedule",
            NameKind::Trigger => "trigger",
            NameKind::Variable => "variable",
            NameKind::Secret => "secret",
            NameKind::Tag => "tag",
            NameKind::Event => "event",
            NameKind::Workflow => "workflow",
            NameKind::Output => "output",
        }
    }

    fn allows(self, c: char) -> bool {
        match self {
            NameKind::Job
            | NameKind::Queue
            | NameKind::Capability
            | NameKind::Schedule
            | NameKind::Trigger
            | NameKind::Tag
            | NameKind::Event
            | NameKind::Workflow => c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'),
            NameKind::Param | NameKind::Variable | NameKind::Secret | NameKind::Output => {
                c.is_ascii_alphanumeric() || c == '_'
            }
        }
    }

    fn chars_max(self) -> usize {
        match self {
            NameKind::Tag => limits::TAG_BYTES,
            NameKind::Job
            | NameKind::Param
            | NameKind::Queue
            | NameKind::Capability
            | NameKind::Schedule
            | NameKind::Trigger
            | NameKind::Variable
            | NameKind::Secret
            | NameKind::Event
            | NameKind::Workflow
            | NameKind::Output => limits::NAME_CHARS,
        }
    }

    /// The rule for people.
    fn rule(self) -> &'static str {
        match self {
            NameKind::Job
            | NameKind::Queue
            | NameKind::Capability
            | NameKind::Schedule
            | NameKind::Trigger
            | NameKind::Tag
            | NameKind::Event
            | NameKind::Workflow => {
                "must begin with a letter or `_`, followed by letters, digits, `_`, `-` and `.`"
            }
            NameKind::Param | NameKind::Variable | NameKind::Secret | NameKind::Output => {
                "must begin with a letter or `_`, followed by letters, digits and `_`"
            }
        }
    }
}

/// Checks the name of an event.
///
/// # Errors
/// The rule that the name breaks.
pub fn check_event_name(name: &str) -> Result<(), String> {
    let mut findings = Findings::default();
    check(name, &(0..0), NameKind::Event, &mut findings);
    match findings.into_first() {
        None => Ok(()),
        Some(finding) => {
            Err([Some(finding.message), finding.label].into_iter().flatten().collect::<Vec<_>>().join("; "))
        }
    }
}

/// Checks the name of a variable that is kept between runs.
///
/// # Errors
/// The rule that the name breaks.
pub fn check_variable_name(name: &str) -> Result<(), String> {
    let mut findings = Findings::default();
    match check(name, &(0..0), NameKind::Variable, &mut findings) {
        true => Ok(()),
        false if name.len() > limits::NAME_CHARS => {
            Err(format!("the name of a variable has at most {} characters", limits::NAME_CHARS))
        }
        false => Err(format!("the name of a variable {}", NameKind::Variable.rule())),
    }
}

/// Checks the name of a schedule.
///
/// # Errors
/// The rule that the name breaks.
pub fn check_schedule_name(name: &str) -> Result<(), String> {
    let mut findings = Findings::default();
    if name.len() > limits::NAME_CHARS {
        return Err(format!("a name has at most {} characters", limits::NAME_CHARS));
    }
    match check(name, &(0..0), NameKind::Schedule, &mut findings) {
        true => Ok(()),
        false => Err(format!("a name {}", NameKind::Schedule.rule())),
    }
}

/// Whether the name is allowed. Reports an error if it is not.
pub(crate) fn check(name: &str, span: &Span, kind: NameKind, findings: &mut Findings) -> bool {
    let noun = kind.noun();
    if name.len() > kind.chars_max() {
        let label = format!("{} characters; the limit is {}", name.chars().count(), kind.chars_max());
        findings
            .push(Finding::new(span.clone(), format!("the name of this {noun} is too long")).label(label));
        return false;
    }
    let first = name.chars().next();
    let valid =
        first.is_some_and(|c| c.is_ascii_alphabetic() || c == '_') && name.chars().all(|c| kind.allows(c));
    if !valid {
        let message = match first {
            None => format!("the name of {} is empty", with_article(noun)),
            Some(_) => {
                format!("`{}` is not a valid name for {}", name.escape_debug(), with_article(noun))
            }
        };
        let finding = Finding::new(span.clone(), message).label(kind.rule());
        let corrected = name.replace(['-', '.', ' '], "_");
        let is_possible = !kind.allows('-')
            && corrected.chars().all(|c| kind.allows(c))
            && !corrected.starts_with(|c: char| c.is_ascii_digit());
        findings.push(match kind == NameKind::Event && name.contains("{{") {
            true => finding.help("the name of an event is no template; its `key` may be one"),
            false if is_possible && first.is_some() => finding.help(format!("write `{corrected}`")),
            false => finding,
        });
    }
    valid
}

fn with_article(noun: &str) -> String {
    let article = if noun.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    format!("{article} {noun}")
}

/// Whether the key of an entry is an allowed name. Reports an error if it is not.
pub(crate) fn check_key(entry: &Entry<'_>, kind: NameKind, findings: &mut Findings) -> bool {
    check(&entry.key, &entry.key_span, kind, findings)
}

/// Why a workflow can't have the name.
pub(crate) fn workflow_name_fault(name: &str) -> Option<&'static str> {
    if name.trim().is_empty() {
        Some("it is empty")
    } else if name.trim() != name {
        Some("it begins or ends with a space")
    } else if name.chars().any(char::is_control) {
        Some("it contains a control character")
    } else if name.chars().count() > limits::NAME_CHARS {
        Some("it is longer than 200 characters")
    } else {
        None
    }
}
