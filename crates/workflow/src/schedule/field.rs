//! Checks one field of a cron expression and rewrites it for the parser of croner.
//!
//! croner accepts more than cron does, such as names of months in the hour field and empty items, and its errors say
//! little. So every item is checked here first. Ranges and steps are rewritten as lists of numbers.

use std::ops::Range;

/// A field of a cron expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    Second,
    Minute,
    Hour,
    DayOfMonth,
    Month,
    DayOfWeek,
}

/// Why a field is invalid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FieldError {
    /// The wrong part, in bytes of the field.
    pub(super) range: Range<usize>,
    pub(super) reason: String,
    pub(super) help: String,
}

const MONTHS: [&str; 12] =
    ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];
/// The second number of Sunday; the first is 0.
const SUNDAY: u16 = 7;

impl Field {
    pub(super) fn noun(self) -> &'static str {
        match self {
            Field::Second => "second",
            Field::Minute => "minute",
            Field::Hour => "hour",
            Field::DayOfMonth => "day of month",
            Field::Month => "month",
            Field::DayOfWeek => "day of week",
        }
    }

    /// The noun with its article.
    fn noun_with_article(self) -> &'static str {
        match self {
            Field::Second => "a second",
            Field::Minute => "a minute",
            Field::Hour => "an hour",
            Field::DayOfMonth => "a day of month",
            Field::Month => "a month",
            Field::DayOfWeek => "a day of week",
        }
    }

    /// The least and the greatest number that the field may have.
    fn numbers(self) -> (u16, u16) {
        match self {
            Field::Second | Field::Minute => (0, 59),
            Field::Hour => (0, 23),
            Field::DayOfMonth => (1, 31),
            Field::Month => (1, 12),
            Field::DayOfWeek => (0, SUNDAY),
        }
    }

    /// Like [`Field::numbers`], without the second number of Sunday.
    fn distinct_numbers(self) -> (u16, u16) {
        match self {
            Field::DayOfWeek => (0, SUNDAY - 1),
            Field::Second | Field::Minute | Field::Hour | Field::DayOfMonth | Field::Month => self.numbers(),
        }
    }

    /// The names of the numbers, beginning with the least.
    fn names(self) -> &'static [&'static str] {
        match self {
            Field::Month => &MONTHS,
            Field::DayOfWeek => &WEEKDAYS,
            Field::Second | Field::Minute | Field::Hour | Field::DayOfMonth => &[],
        }
    }

    fn help(self) -> String {
        let (least, most) = self.numbers();
        match self {
            Field::Second | Field::Minute | Field::Hour => {
                format!(
                    "write `*`, numbers from {least} to {most}, ranges like `1-5`, steps like `*/5`, or a list of them"
                )
            }
            Field::DayOfMonth => {
                "write `*`, numbers from 1 to 31, ranges, steps, `L` for the last day, `LW` for the \
                                  last weekday, `15W` for the weekday nearest to the 15th, or a list of them"
                    .to_owned()
            }
            Field::Month => {
                "write `*`, numbers from 1 to 12, names from `JAN` to `DEC`, ranges, steps, or a list of them"
                    .to_owned()
            }
            Field::DayOfWeek => {
                "write `*`, numbers from 0 (Sunday) to 6, names from `SUN` to `SAT`, ranges, steps, \
                                 `MON#2` for the second Monday, `FRIL` for the last Friday, or a list of them"
                    .to_owned()
            }
        }
    }

    /// The field in the form that croner expects.
    pub(super) fn normalised(self, text: &str) -> Result<String, FieldError> {
        let is_day = matches!(self, Field::DayOfMonth | Field::DayOfWeek);
        if text == "*" || text == "*/1" || text == "?" && is_day {
            return Ok("*".to_owned());
        }
        let mut items = Vec::new();
        let mut at = 0;
        for item in text.split(',') {
            items.push(self.item(item, at)?);
            at += item.len() + 1;
        }
        if items.iter().any(|item| item == "L") && items.iter().any(|item| item == "LW") {
            let reason = "`L` and `LW` can't be in one list".to_owned();
            return Err(FieldError { range: 0..text.len(), reason, help: "write two schedules".to_owned() });
        }
        Ok(items.join(","))
    }

    /// One item of the field's list, in the form that croner expects. `at` is the item's first byte.
    fn item(self, item: &str, at: usize) -> Result<String, FieldError> {
        let parsed = Item { field: self, text: item, at };
        let upper = item.to_ascii_uppercase();
        match self {
            Field::DayOfMonth if upper == "L" || upper == "LW" => return Ok(upper),
            Field::DayOfMonth if upper.ends_with('W') => {
                return Ok(format!("{}W", parsed.number(&item[..item.len() - 1])?));
            }
            Field::DayOfWeek if upper == "L" => {
                return Err(parsed.refuse("`L` needs a day of the week in front of it, as in `FRIL`"));
            }
            Field::DayOfWeek if upper.ends_with('L') => {
                return Ok(format!("{}L", parsed.number(&item[..item.len() - 1])?));
            }
            Field::DayOfWeek if item.contains('#') => return parsed.nth_weekday(),
            Field::Second
            | Field::Minute
            | Field::Hour
            | Field::DayOfMonth
            | Field::Month
            | Field::DayOfWeek => (),
        }
        parsed.range_and_step()
    }
}

/// An item of a field's list.
struct Item<'t> {
    field: Field,
    text: &'t str,
    at: usize,
}

impl Item<'_> {
    fn refuse(&self, reason: impl Into<String>) -> FieldError {
        self.refuse_with(reason, self.field.help())
    }

    fn refuse_with(&self, reason: impl Into<String>, help: impl Into<String>) -> FieldError {
        FieldError { range: self.at..self.at + self.text.len(), reason: reason.into(), help: help.into() }
    }

    /// The numbers of `*`, `3` or `1-5`, each with or without a step. A range may continue at the least number after the
    /// greatest, as in `22-2` and `FRI-MON`.
    fn range_and_step(&self) -> Result<String, FieldError> {
        let (range, step) = match self.text.split_once('/') {
            Some((range, step)) => (range, Some(self.step(step)?)),
            None => (self.text, None),
        };
        let (least, most) = self.field.distinct_numbers();
        let (first, last) = if range == "*" {
            (least, most)
        } else if let Some((first, last)) = range.split_once('-') {
            (self.number(first)?, self.number(last)?)
        } else {
            let number = self.number(range)?;
            (number, if step.is_some() { number.max(most) } else { number })
        };
        let count = most - least + 1;
        let last = if last < first { last + count } else { last };
        let numbers = (first..=last).step_by(usize::from(step.unwrap_or(1)));
        let numbers: Vec<String> =
            numbers.map(|number| (least + (number - least) % count).to_string()).collect();
        Ok(numbers.join(","))
    }

    fn step(&self, step: &str) -> Result<u16, FieldError> {
        let (least, most) = self.field.distinct_numbers();
        match plain_number(step) {
            Some(0) => Err(self.refuse("a step must be at least 1")),
            Some(step) if step <= most - least => Ok(step),
            Some(step) => {
                let reason = format!("a step of {step} is larger than the range {least} to {most}");
                let help = "for an interval of any length use `every`, like every = \"90m\"";
                Err(self.refuse_with(reason, help))
            }
            None => Err(self.refuse(format!("`{}` is not a step", step.escape_debug()))),
        }
    }

    /// The nth weekday of a month, as in `MON#2`.
    fn nth_weekday(&self) -> Result<String, FieldError> {
        let (weekday, nth) = self.text.split_once('#').unwrap_or((self.text, ""));
        let weekday = self.number(weekday)?;
        match plain_number(nth) {
            Some(nth @ 1..=5) => Ok(format!("{weekday}#{nth}")),
            _ => Err(self.refuse(format!("`{nth}` after `#` must be 1 to 5"))),
        }
    }

    fn number(&self, text: &str) -> Result<u16, FieldError> {
        let (least, most) = self.field.numbers();
        let names = self.field.names();
        if let Some(index) = names.iter().position(|name| name.eq_ignore_ascii_case(text)) {
            return Ok(least + u16::try_from(index).unwrap_or(0));
        }
        if text.is_empty() {
            return Err(match self.text.is_empty() {
                true => self.refuse("there is an empty item"),
                false => self.refuse(format!("`{}` has no number", self.text)),
            });
        }
        match plain_number(text) {
            Some(number) if (least..=most).contains(&number) => Ok(number),
            Some(_) => Err(self.refuse(format!("`{text}` is not within {least} to {most}"))),
            None => {
                let mut budget = names.len();
                let first: String = text.chars().take(3).collect();
                let near = crate::suggest::nearest(&first, names.iter().copied(), &mut budget);
                let reason = format!("`{}` is not {}", text.escape_debug(), self.field.noun_with_article());
                Err(match near {
                    Some(name) => self.refuse_with(reason, format!("did you mean `{name}`?")),
                    None => self.refuse(reason),
                })
            }
        }
    }
}

/// The number, if the text has only digits. `+5` is not a number in a cron expression.
fn plain_number(text: &str) -> Option<u16> {
    let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_plain.then(|| text.parse().unwrap_or(u16::MAX))
}
