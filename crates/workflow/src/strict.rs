//! Reads other files in TOML or JSON as strictly as a workflow file. All errors are reported at once, each with its line,
//! and unknown keys are errors.

mod named;

use std::ops::RangeInclusive;

pub use named::Named;

use crate::expect::{self, ShortestDuration};
use crate::key::{self, KeyName};
use crate::report::{Finding, Findings, Report, Span};
use crate::source::Source;
use crate::tree::{self, Entry, Value};

/// The largest number of items in a list.
pub const LIST_ITEMS: usize = 1_000;

/// Reads a file. `take` asks for each key that the file may have; keys that it does not ask for are errors. `noun` names
/// the file for people, as in "the configuration".
///
/// # Errors
/// All errors of the file.
pub fn read<T>(
    source: &Source,
    noun: &'static str,
    take: impl FnOnce(&mut Table<'_, '_>) -> T,
) -> Result<T, Report> {
    let mut findings = Findings::default();
    let entries = tree::read(source, &mut findings);
    let value = entries.as_deref().map(|entries| taken(entries, noun, 0..0, &mut findings, take));
    match value {
        Some(value) if findings.is_empty() => Ok(value),
        Some(_) | None => Err(Report::new(source.path.as_str(), &source.text, findings)),
    }
}

/// A table of a file. A missing key gives nothing. A wrong value gives nothing, after the error was reported.
pub struct Table<'t, 's> {
    entries: &'t [Entry<'s>],
    /// The keys that were asked for so far.
    asked: Vec<KeyName>,
    /// Where the table is.
    span: Span,
    findings: &'t mut Findings,
}

fn taken<T>(
    entries: &[Entry<'_>],
    noun: &str,
    span: Span,
    findings: &mut Findings,
    take: impl FnOnce(&mut Table<'_, '_>) -> T,
) -> T {
    let mut table = Table { entries, asked: Vec::new(), span, findings };
    let value = take(&mut table);
    let Table { asked, findings, .. } = table;
    for entry in entries.iter().filter(|entry| asked.iter().all(|key| key.name != entry.key)) {
        key::report_unknown(entry, noun, &asked, findings);
    }
    value
}

impl<'t, 's> Table<'t, 's> {
    fn entry(&mut self, key: &'static str) -> Option<&'t Entry<'s>> {
        self.asked.push(KeyName::new(key));
        self.entries.iter().find(|entry| entry.key == key)
    }

    /// The value as a text that is not empty.
    pub fn text(&mut self, key: &'static str) -> Option<String> {
        let entry = self.entry(key)?;
        expect::filled_text(&entry.node, &format!("`{key}`"), self.findings).map(str::to_owned)
    }

    /// The value as a text that `parse` accepts. The error of `parse` is shown as the reason.
    pub fn parsed<T>(
        &mut self,
        key: &'static str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        let entry = self.entry(key)?;
        let text = expect::filled_text(&entry.node, &format!("`{key}`"), self.findings)?;
        match parse(text) {
            Ok(value) => Some(value),
            Err(reason) => {
                let message = format!("`{key}` can't be used");
                self.findings.push(Finding::new(entry.node.span.clone(), message).label(reason));
                None
            }
        }
    }

    /// The value as a list of at most [`LIST_ITEMS`] texts, each of which `check` accepts.
    pub fn texts(
        &mut self,
        key: &'static str,
        check: impl Fn(&str) -> Result<(), String>,
    ) -> Option<Vec<String>> {
        let entry = self.entry(key)?;
        let items = expect::list(entry, LIST_ITEMS, "a list of strings", self.findings)?;
        let mut texts = Vec::with_capacity(items.len());
        for item in items {
            let Some(text) = expect::filled_text(item, &format!("an item of `{key}`"), self.findings) else {
                continue;
            };
            if let Err(reason) = check(text) {
                let message = format!("an item of `{key}` can't be used");
                self.findings.push(Finding::new(item.span.clone(), message).label(reason));
            }
            texts.push(text.to_owned());
        }
        Some(texts)
    }

    /// `true` or `false`.
    pub fn boolean(&mut self, key: &'static str) -> Option<bool> {
        let entry = self.entry(key)?;
        expect::boolean(entry, self.findings)
    }

    /// The value as a whole number.
    pub fn integer(&mut self, key: &'static str, allowed: RangeInclusive<i64>) -> Option<i64> {
        let entry = self.entry(key)?;
        expect::integer(entry, allowed, self.findings)
    }

    /// The value as a duration, in milliseconds. The file writes it with a unit.
    pub fn duration_ms(&mut self, key: &'static str, allowed: RangeInclusive<i64>) -> Option<i64> {
        let entry = self.entry(key)?;
        let duration_ms = expect::duration_ms(entry, ShortestDuration::Zero, self.findings)?;
        if allowed.contains(&duration_ms) {
            return Some(duration_ms);
        }
        let text = crate::duration::to_text;
        let bounds = format!("must be between {} and {}", text(*allowed.start()), text(*allowed.end()));
        let message = format!("`{key}` is out of range");
        self.findings.push(Finding::new(entry.node.span.clone(), message).label(bounds));
        None
    }

    /// The value as one of a few words.
    pub fn word<T: Copy>(&mut self, key: &'static str, words: &[(&str, T)]) -> Option<T> {
        let entry = self.entry(key)?;
        expect::word(entry, words, self.findings)
    }

    /// The value as a table.
    pub fn table<T>(&mut self, key: &'static str, take: impl FnOnce(&mut Table<'_, '_>) -> T) -> Option<T> {
        let entry = self.entry(key)?;
        let Value::Table(entries) = &entry.node.value else {
            expect::wrong_type(&entry.node, &format!("`{key}`"), "a table", self.findings);
            return None;
        };
        Some(taken(entries, &format!("`{key}`"), entry.key_span.clone(), self.findings, take))
    }

    /// The value as a list of at most [`LIST_ITEMS`] tables. `noun` names one of them for people, as in "a case".
    pub fn tables<T>(
        &mut self,
        key: &'static str,
        noun: &str,
        mut take: impl FnMut(&mut Table<'_, '_>) -> T,
    ) -> Option<Vec<T>> {
        let entry = self.entry(key)?;
        let items = expect::list(entry, LIST_ITEMS, "a list of tables", self.findings)?;
        let mut taken_items = Vec::with_capacity(items.len());
        for item in items {
            let Value::Table(entries) = &item.value else {
                expect::wrong_type(item, &format!("an item of `{key}`"), "a table", self.findings);
                continue;
            };
            taken_items.push(taken(entries, noun, item.span.clone(), self.findings, &mut take));
        }
        Some(taken_items)
    }

    /// The entries of a table whose keys are names that the author of the file chose.
    pub fn named(&mut self, key: &'static str, mut take: impl FnMut(Named<'_, '_>)) {
        let Some(entry) = self.entry(key) else { return };
        let expected = "a table of names and values";
        for entry in expect::table(entry, LIST_ITEMS, expected, self.findings).unwrap_or_default() {
            take(Named::new(entry, self.findings));
        }
    }

    /// Any value, as JSON.
    pub fn value(&mut self, key: &'static str) -> Option<serde_json::Value> {
        self.entry(key)?.node.to_json()
    }

    /// An instant: a date or a time of TOML, or a text. Without an offset it is in UTC.
    pub fn instant_ms(&mut self, key: &'static str) -> Option<i64> {
        let entry = self.entry(key)?;
        let text = match &entry.node.value {
            Value::Date(text) => text.clone(),
            Value::Text(text) => text.to_string(),
            Value::Integer(_)
            | Value::Number(_)
            | Value::Boolean(_)
            | Value::Null
            | Value::Broken
            | Value::List(_)
            | Value::Table(_) => {
                expect::wrong_type(&entry.node, &format!("`{key}`"), "a time", self.findings);
                return None;
            }
        };
        match crate::schedule::parse_instant(&text, "UTC") {
            Ok(instant_ms) => Some(instant_ms),
            Err(reason) => {
                let message = format!("`{key}` is not a time");
                self.findings.push(Finding::new(entry.node.span.clone(), message).label(reason));
                None
            }
        }
    }

    /// Reports an error about the table itself, for example that a key is missing.
    pub fn refuse(&mut self, message: impl Into<String>, help: impl Into<String>) {
        self.findings.push(Finding::new(self.span.clone(), message).help(help));
    }

    /// Reports an error about the value of a key. If the table does not have the key, the error is about the table.
    pub fn refuse_key(&mut self, key: &'static str, message: impl Into<String>, help: impl Into<String>) {
        let span = self.entries.iter().find(|entry| entry.key == key).map(|entry| entry.node.span.clone());
        self.findings.push(Finding::new(span.unwrap_or(self.span.clone()), message).help(help));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[derive(Debug, PartialEq)]
    struct Pet {
        name: Option<String>,
        legs: Option<i64>,
        sleep_ms: Option<i64>,
        toys: Option<Vec<String>>,
        size: Option<u8>,
        weight: Option<i64>,
    }

    fn pet(text: &str) -> Result<Pet, String> {
        let source = Source::new("pet.toml", text.into()).unwrap();
        read(&source, "a pet", |table| Pet {
            name: table.text("name"),
            legs: table.integer("legs", 0..=8),
            sleep_ms: table.duration_ms("sleep", 1_000..=60_000),
            toys: table.texts("toys", |toy| match toy {
                "knife" => Err("it is sharp".to_owned()),
                _ => Ok(()),
            }),
            size: table.word("size", &[("small", 1), ("large", 2)]),
            weight: table.table("body", |body| body.integer("weight", 1..=100)).flatten(),
        })
        .map_err(|report| report.to_string())
    }

    #[test]
    fn values_are_read_and_missing_keys_give_none() {
        let text =
            "name = 'Rex'\nlegs = 4\nsleep = '30s'\ntoys = ['ball']\nsize = 'large'\n[body]\nweight = 9\n";
        let rex = Pet {
            name: Some("Rex".to_owned()),
            legs: Some(4),
            sleep_ms: Some(30_000),
            toys: Some(vec!["ball".to_owned()]),
            size: Some(2),
            weight: Some(9),
        };
        assert_eq!(pet(text), Ok(rex));
        let nobody = Pet { name: None, legs: None, sleep_ms: None, toys: None, size: None, weight: None };
        assert_eq!(pet(""), Ok(nobody));
    }

    #[test]
    fn every_error_is_reported_with_its_position() {
        let text =
            "nmae = 'Rex'\nlegs = 9\nsleep = '2m'\ntoys = ['knife', 3]\nsize = 'larg'\n[body]\nwieght = 1\n";
        let report = pet(text).unwrap_err();
        let parts = [
            "unknown key `nmae` in a pet",
            "pet.toml:1:1",
            "did you mean `name`?",
            "`legs` is out of range",
            "pet.toml:2:8",
            "must be between 0 and 8",
            "`sleep` is out of range",
            "must be between 1s and 1m",
            "an item of `toys` can't be used",
            "it is sharp",
            "an item of `toys` must be a string",
            "did you mean \"large\"?",
            "unknown key `wieght` in `body`",
            "did you mean `weight`?",
            "pet.toml: 7 errors",
        ];
        let mut rest = report.as_str();
        for part in parts {
            let place = rest.find(part).unwrap_or_else(|| panic!("{part:?} is missing in\n{report}"));
            rest = &rest[place..];
        }
        assert!(pet("body = 3").unwrap_err().contains("`body` must be a table"));
        assert!(pet("legs = ").unwrap_err().contains("not valid TOML"));
    }
}
