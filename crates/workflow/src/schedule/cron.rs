//! Parses and compiles cron expressions.

use std::ops::Range;

use croner::parser::{CronParser, Seconds, Year};

use super::RuleError;
use super::field::{Field, FieldError};
use super::local::LocalTimes;
use crate::limits;

/// A compiled cron expression.
#[derive(Debug, Clone)]
pub(super) struct Cron {
    pub(super) times: LocalTimes,
    pub(super) clock_changes: ClockChangeRule,
}

/// What happens to the times of a rule when the clock is put forward or back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClockChangeRule {
    /// The rule names hours of the day. Each of its local times occurs exactly once, even if the clock skips or repeats
    /// it.
    OncePerLocalTime,
    /// The rule allows every hour. It occurs whenever the clock shows one of its times.
    WheneverShown,
}

const FIVE: [Field; 5] = [Field::Minute, Field::Hour, Field::DayOfMonth, Field::Month, Field::DayOfWeek];
const SIX: [Field; 6] =
    [Field::Second, Field::Minute, Field::Hour, Field::DayOfMonth, Field::Month, Field::DayOfWeek];

/// Words that stand for whole expressions.
const WORDS: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

const EXAMPLE: &str = "write minute, hour, day of month, month and day of week, like `30 2 * * MON-FRI`; a sixth field \
                       in front of them is the second";

impl Cron {
    /// Parses an expression of five or six fields, or a word like `@daily`.
    ///
    /// # Errors
    /// The text is no such expression, or no day matches it.
    pub(super) fn parse(text: &str) -> Result<Cron, RuleError> {
        if text.len() > limits::CRON_BYTES {
            let reason =
                format!("the cron expression has {} bytes; the limit is {}", text.len(), limits::CRON_BYTES);
            return Err(RuleError::new(reason, "use ranges and steps, or several schedules"));
        }
        let expression = if text.trim().starts_with('@') { word(text.trim())? } else { text };
        let normalised = normalise(expression)?;
        let parser = CronParser::builder().seconds(Seconds::Required).year(Year::Disallowed).build();
        let parsed = parser.parse(&normalised).map_err(|error| RuleError::new(error.to_string(), EXAMPLE))?;
        let times = LocalTimes::of(parsed.pattern);
        if !times.has_any() {
            let reason = format!("`{}` never occurs, because no year has such a day", text.trim());
            return Err(RuleError::new(
                reason,
                "for the last day of each month write `L` as the day of month",
            ));
        }
        let clock_changes = match times.every_hour() {
            true => ClockChangeRule::WheneverShown,
            false => ClockChangeRule::OncePerLocalTime,
        };
        Ok(Cron { times, clock_changes })
    }
}

/// The expression that a word like `@daily` stands for.
fn word(text: &str) -> Result<&'static str, RuleError> {
    let known = WORDS.iter().find(|(word, _)| word.eq_ignore_ascii_case(text));
    if let Some((_, expression)) = known {
        return Ok(expression);
    }
    let mut budget = WORDS.len();
    let near = crate::suggest::nearest(text, WORDS.iter().map(|(word, _)| *word), &mut budget);
    let help = match near {
        Some(near) => format!("did you mean `{near}`?"),
        _ if text.eq_ignore_ascii_case("@once") => {
            "write at = \"2026-11-21T02:30\" instead of `cron`".to_owned()
        }
        None if text.starts_with("@every") => "write every = \"90s\" instead of `cron`".to_owned(),
        None => format!("the words are {}", WORDS.map(|(word, _)| word).join(", ")),
    };
    Err(RuleError::new(format!("there is no `{}`", text.escape_debug()), help))
}

/// The expression with six fields, which have numbers instead of names.
fn normalise(expression: &str) -> Result<String, RuleError> {
    let fields = split(expression);
    let kinds: &[Field] = match fields.len() {
        5 => &FIVE,
        6 => &SIX,
        0 => return Err(RuleError::new("the cron expression is empty", EXAMPLE)),
        7 => {
            let reason = "a cron expression has five or six fields, and this one has seven";
            return Err(RuleError::new(reason, "there is no field for years; use `start` and `end`"));
        }
        count => {
            let reason = format!("a cron expression has five or six fields, and this one has {count}");
            return Err(RuleError::new(reason, EXAMPLE));
        }
    };
    let mut normalised = if kinds.len() == 5 { vec!["0".to_owned()] } else { Vec::new() };
    for (field, (start, text)) in kinds.iter().zip(fields) {
        normalised.push(field.normalised(text).map_err(|error| in_field(*field, start, error))?);
    }
    Ok(normalised.join(" "))
}

/// The fields of an expression, each with its first byte.
fn split(expression: &str) -> Vec<(usize, &str)> {
    let start = |field: &str| field.as_ptr().addr() - expression.as_ptr().addr();
    expression.split_ascii_whitespace().map(|field| (start(field), field)).collect()
}

/// The error of a field that begins at byte `start` of the expression.
fn in_field(field: Field, start: usize, error: FieldError) -> RuleError {
    let Range { start: from, end } = error.range;
    let reason = format!("in the {} field, {}", field.noun(), error.reason);
    RuleError { range: Some(start + from..start + end), ..RuleError::new(reason, error.help) }
}
