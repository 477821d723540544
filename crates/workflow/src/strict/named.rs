//! An entry of a table whose key is a name that the author of the file chose.

use serde_json::Value as Json;

use super::{Table, taken};
use crate::expect;
use crate::report::{Finding, Findings};
use crate::tree::{Entry, Value};

/// An entry of a table of names.
pub struct Named<'t, 's> {
    entry: &'t Entry<'s>,
    findings: &'t mut Findings,
}

impl<'t, 's> Named<'t, 's> {
    pub(super) fn new(entry: &'t Entry<'s>, findings: &'t mut Findings) -> Named<'t, 's> {
        Named { entry, findings }
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.entry.key
    }

    /// Whether the value is a table.
    #[must_use]
    pub fn is_table(&self) -> bool {
        matches!(self.entry.node.value, Value::Table(_))
    }

    /// Any value, as JSON.
    #[must_use]
    pub fn value(&self) -> Option<Json> {
        self.entry.node.to_json()
    }

    /// The value as one of a few words.
    pub fn word<T: Copy>(&mut self, words: &[(&str, T)]) -> Option<T> {
        expect::word(self.entry, words, self.findings)
    }

    /// The value as a table. `noun` names it for people.
    pub fn table<T>(&mut self, noun: &str, take: impl FnOnce(&mut Table<'_, '_>) -> T) -> Option<T> {
        let Value::Table(entries) = &self.entry.node.value else {
            expect::wrong_type(&self.entry.node, &expect::quoted(self.entry), "a table", self.findings);
            return None;
        };
        Some(taken(entries, noun, self.entry.key_span.clone(), self.findings, take))
    }

    /// Reports that the name is none of `known`. `what` is for people, as in "there is no job". Suggests the nearest.
    pub fn unknown<'k>(&mut self, what: &str, known: impl IntoIterator<Item = &'k str> + Clone) {
        let message = format!("{what} `{}`", self.entry.key);
        let finding = Finding::new(self.entry.key_span.clone(), message);
        let nearest = self.findings.nearest(&self.entry.key, known.clone());
        self.findings.push(match nearest {
            Some(near) => finding.label(format!("did you mean `{near}`?")),
            None => finding.help(listed(known)),
        });
    }

    /// Reports an error about the name.
    pub fn refuse_name(&mut self, message: impl Into<String>, help: impl Into<String>) {
        self.findings.push(Finding::new(self.entry.key_span.clone(), message).help(help));
    }

    /// Reports an error about the value.
    pub fn refuse_value(&mut self, message: impl Into<String>, reason: impl Into<String>) {
        self.findings.push(Finding::new(self.entry.node.span.clone(), message).label(reason));
    }
}

/// The most names in a message.
const NAMES_SHOWN: usize = 20;

fn listed<'k>(known: impl IntoIterator<Item = &'k str>) -> String {
    let mut known = known.into_iter();
    let names: Vec<&str> = known.by_ref().take(NAMES_SHOWN).collect();
    let more = if known.next().is_some() { ", …" } else { "" };
    match names.is_empty() {
        true => "there are none".to_owned(),
        false => format!("there are {}{more}", names.join(", ")),
    }
}
