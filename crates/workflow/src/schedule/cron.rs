//! A cron expression, read and compiled.

use std::ops::Range;

use croner::parser::{CronParser, Seconds, Year};

use super::RuleError;
use super::field::{Field, Refused};
use super::local::LocalTimes;
use crate::limits;

/// The times of a cron expression, and how they follow changes of the clock.
#[derive(Debug, Clone)]
pub(super) struct Cron {
    pub(super) times: LocalTimes,
    pub(super) pace: Pace,
}

/// How a rule follows changes of the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pace {
    /// Some hours of the day are meant: each of its times occurs once, whatever the clock does.
    Fixed,
    /// Every hour of the day is meant: it occurs whenever the clock shows one of its times.
    EveryHour,
}

const FIVE: [Field; 5] = [Field::Minute, Field::Hour, Field::DayOfMonth, Field::Month, Field::DayOfWeek];
const SIX: [Field; 6] =
    [Field::Second, Field::Minute, Field::Hour, Field::DayOfMonth, Field::Month, Field::DayOfWeek];

/// Words for whole expressions.
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
                       in front is the second";

impl Cron {
    /// # Errors
    /// What is wrong and where in the text; also when the expression matches no day at all.
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
        if !times.ever() {
            let reason = format!("`{}` never occurs: there is no such day in any year", text.trim());
            return Err(RuleError::new(reason, "`L` as the day of month is the last day of each month"));
        }
        let pace = if times.every_hour() { Pace::EveryHour } else { Pace::Fixed };
        Ok(Cron { times, pace })
    }
}

fn word(text: &str) -> Result<&'static str, RuleError> {
    let known = WORDS.iter().find(|(word, _)| word.eq_ignore_ascii_case(text));
    if let Some((_, expression)) = known {
        return Ok(expression);
    }
    let mut budget = WORDS.len();
    let near = crate::suggest::nearest(text, WORDS.iter().map(|(word, _)| *word), &mut budget);
    let help = match near {
        Some(near) => format!("did you mean `{near}`?"),
        None if text.starts_with("@every") => "write every = \"90s\" instead of `cron`".to_owned(),
        None => format!("there are {}", WORDS.map(|(word, _)| word).join(", ")),
    };
    Err(RuleError::new(format!("there is no `{}`", text.escape_debug()), help))
}

/// The expression with six fields of numbers.
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
        normalised.push(field.normalised(text).map_err(|refused| in_field(*field, start, refused))?);
    }
    Ok(normalised.join(" "))
}

/// The fields, and where each begins.
fn split(expression: &str) -> Vec<(usize, &str)> {
    let start = |field: &str| field.as_ptr().addr() - expression.as_ptr().addr();
    expression.split_ascii_whitespace().map(|field| (start(field), field)).collect()
}

fn in_field(field: Field, start: usize, refused: Refused) -> RuleError {
    let Range { start: from, end } = refused.range;
    let reason = format!("in the {} field, {}", field.noun(), refused.reason);
    RuleError { range: Some(start + from..start + end), ..RuleError::new(reason, refused.help) }
}
