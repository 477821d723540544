//! What names may look like.

use crate::limits;
use crate::report::{Finding, Findings};
use crate::tree::{Entry, Span};

/// A kind of name and its rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    Job,
    Param,
    Queue,
    Capability,
    Schedule,
    Variable,
}

impl Rule {
    fn noun(self) -> &'static str {
        match self {
            Rule::Job => "job",
            Rule::Param => "parameter",
            Rule::Queue => "queue",
            Rule::Capability => "capability",
            Rule::Schedule => "schedule",
            Rule::Variable => "variable",
        }
    }

    fn allows(self, c: char) -> bool {
        match self {
            Rule::Job | Rule::Queue | Rule::Capability | Rule::Schedule => {
                c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')
            }
            Rule::Param | Rule::Variable => c.is_ascii_alphanumeric() || c == '_',
        }
    }

    fn reason(self) -> &'static str {
        match self {
            Rule::Job | Rule::Queue | Rule::Capability | Rule::Schedule => {
                "a letter or `_` first, then letters, digits, `_`, `-` and `.`"
            }
            Rule::Param | Rule::Variable => "a letter or `_` first, then letters, digits and `_`",
        }
    }
}

/// Whether a schedule may have the name.
///
/// # Errors
/// What is wrong with it.
pub fn check_schedule_name(name: &str) -> Result<(), String> {
    let mut findings = Findings::default();
    if name.len() > limits::NAME_CHARS {
        return Err(format!("a name has at most {} characters", limits::NAME_CHARS));
    }
    match check(name, &(0..0), Rule::Schedule, &mut findings) {
        true => Ok(()),
        false => Err(format!("a name needs {}", Rule::Schedule.reason())),
    }
}

/// Whether the name follows its rule; says so if it does not.
pub(crate) fn check(name: &str, span: &Span, rule: Rule, findings: &mut Findings) -> bool {
    let noun = rule.noun();
    if name.len() > limits::NAME_CHARS {
        let label = format!("{} characters; the limit is {}", name.chars().count(), limits::NAME_CHARS);
        findings
            .push(Finding::new(span.clone(), format!("the name of this {noun} is too long")).label(label));
        return false;
    }
    let first = name.chars().next();
    let valid =
        first.is_some_and(|c| c.is_ascii_alphabetic() || c == '_') && name.chars().all(|c| rule.allows(c));
    if !valid {
        let message = match first {
            None => format!("the name of a {noun} is empty"),
            Some(_) => format!("`{}` is not a name for a {noun}", name.escape_debug()),
        };
        findings.push(Finding::new(span.clone(), message).label(format!("needs {}", rule.reason())));
    }
    valid
}

/// The same for the key of an entry.
pub(super) fn check_key(entry: &Entry<'_>, rule: Rule, findings: &mut Findings) -> bool {
    check(&entry.key, &entry.key_span, rule, findings)
}
