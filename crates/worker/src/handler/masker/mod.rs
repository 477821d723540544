//! Replaces the values of secrets by `***` in everything that leaves an attempt: its output, its lines, its errors.
//!
//! A value is found as it is, in base64, and with the escapes of URLs and of JSON. A masker looks for patterns: each value,
//! each of its longer lines, and their forms in base64. It reads the text in several ways (see `escapes`), so that the
//! patterns need no form for every program that escapes.

mod base64;
mod escapes;
mod stream;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value as Json};

use escapes::{Decoded, Escapes};
pub(crate) use stream::StreamMasker;

/// What stands in place of a secret.
pub(crate) const MASK: &[u8] = b"***";
/// A value with fewer characters would be found in texts that have nothing to do with it. It can't be a secret, and a line of
/// a value that is shorter is not looked for alone.
pub(crate) const SECRET_MIN_CHARS: usize = 8;

/// The first bytes of a pattern, by which it is found.
const KEY: usize = 8;
/// A line break inside base64 is skipped after so many characters of a pattern.
const WRAPPED_AFTER: usize = KEY;

/// Finds the values of the secrets of one attempt.
#[derive(Default)]
pub(crate) struct Masker {
    patterns: Vec<Pattern>,
    /// The patterns by their first bytes, the longest first.
    by_key: HashMap<[u8; KEY], Vec<usize>>,
    /// All true beginnings of the keys.
    beginnings: HashSet<Vec<u8>>,
    /// The first bytes of the patterns.
    first: ByteSet,
}

/// A set of bytes.
#[derive(Debug, Default)]
struct ByteSet([u64; 4]);

impl ByteSet {
    fn insert(&mut self, byte: u8) {
        self.0[usize::from(byte / 64)] |= 1 << (byte % 64);
    }

    fn contains(&self, byte: u8) -> bool {
        self.0[usize::from(byte / 64)] & (1 << (byte % 64)) != 0
    }
}

struct Pattern {
    bytes: Vec<u8>,
    /// Programs that write base64 break it into lines.
    is_base64: bool,
}

impl std::fmt::Debug for Masker {
    /// Writes no secret.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Masker of {} patterns", self.patterns.len())
    }
}

/// What is at a position of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    Nothing,
    /// A secret that ends before this position.
    Secret(usize),
    /// The text ends before it can be known.
    Incomplete,
}

/// Whether more of a text may follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rest {
    MayFollow,
    Nothing,
}

impl Masker {
    /// A masker for these texts. Shorter ones than [`SECRET_MIN_CHARS`] are left out.
    #[must_use]
    pub(crate) fn new<'t>(texts: impl IntoIterator<Item = &'t str>) -> Masker {
        let mut masker = Masker::default();
        let mut seen = HashSet::new();
        for text in texts {
            let lines = text.lines().flat_map(|line| [line, line.trim()]);
            for part in [text, text.trim()].into_iter().chain(lines) {
                if part.chars().count() >= SECRET_MIN_CHARS && seen.insert(part) {
                    masker.add(part.as_bytes().to_vec(), false);
                    base64::forms(part.as_bytes()).into_iter().for_each(|form| masker.add(form, true));
                }
            }
        }
        let patterns = &masker.patterns;
        for found in masker.by_key.values_mut() {
            found.sort_by_key(|index| std::cmp::Reverse(patterns[*index].bytes.len()));
        }
        masker
    }

    fn add(&mut self, bytes: Vec<u8>, is_base64: bool) {
        let Some(key) = bytes.first_chunk::<KEY>() else { return };
        self.first.insert(key[0]);
        self.by_key.entry(*key).or_default().push(self.patterns.len());
        self.beginnings.extend((0..KEY).map(|length| key[..length].to_vec()));
        self.patterns.push(Pattern { bytes, is_base64 });
    }

    /// The text without secrets.
    #[must_use]
    pub(crate) fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.bytes(text.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            // A secret begins and ends with a whole character, so the rest is text.
            Cow::Owned(masked) => Cow::Owned(String::from_utf8_lossy(&masked).into_owned()),
        }
    }

    /// The bytes without secrets.
    #[must_use]
    pub(crate) fn bytes<'t>(&self, bytes: &'t [u8]) -> Cow<'t, [u8]> {
        let mut masked = Vec::new();
        let mut has_secret = false;
        let mut on_part = |part: &[u8], is_mask: bool| {
            has_secret |= is_mask;
            masked.extend_from_slice(part);
        };
        self.scan(bytes, Rest::Nothing, &mut on_part);
        if has_secret { Cow::Owned(masked) } else { Cow::Borrowed(bytes) }
    }

    /// A text that is JSON, without secrets. It stays JSON.
    #[must_use]
    pub(crate) fn json(&self, json: String) -> String {
        let Ok(mut value) = serde_json::from_str(&json) else { return self.text(&json).into_owned() };
        self.value(&mut value);
        let walked = value.to_string();
        match self.text(&walked) {
            Cow::Borrowed(_) => walked,
            // A secret that is not inside one text, such as a list.
            Cow::Owned(masked) if serde_json::from_str::<Json>(&masked).is_ok() => masked,
            Cow::Owned(_) => Json::from(String::from_utf8_lossy(MASK)).to_string(),
        }
    }

    fn value(&self, value: &mut Json) {
        match value {
            Json::Null | Json::Bool(_) => {}
            Json::Number(number) => {
                if let Cow::Owned(masked) = self.text(&number.to_string()) {
                    *value = masked.into();
                }
            }
            Json::String(text) => {
                if let Cow::Owned(masked) = self.text(text) {
                    *text = masked;
                }
            }
            Json::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Json::Object(fields) => {
                let masked: Map<String, Json> = std::mem::take(fields)
                    .into_iter()
                    .map(|(name, mut value)| {
                        self.value(&mut value);
                        (self.text(&name).into_owned(), value)
                    })
                    .collect();
                *fields = masked;
            }
        }
    }

    /// Hands out the text in parts, with masks in place of the secrets, and returns how many bytes it has handed out. The
    /// rest can't be decided before more of the text is there.
    fn scan(&self, text: &[u8], rest: Rest, on_part: &mut dyn FnMut(&[u8], bool)) -> usize {
        let (mut done, mut at) = (0, 0);
        while at < text.len() {
            match self.secret_at(text, at, rest) {
                Found::Nothing => at += 1,
                Found::Secret(end) => {
                    on_part(&text[done..at], false);
                    on_part(MASK, true);
                    (done, at) = (end, end);
                }
                Found::Incomplete => break,
            }
        }
        on_part(&text[done..at], false);
        at
    }

    /// The secret at a position, with all others that begin inside it.
    fn secret_at(&self, text: &[u8], start: usize, rest: Rest) -> Found {
        let Found::Secret(mut end) = self.find_at(text, start, rest) else {
            return self.find_at(text, start, rest);
        };
        let mut at = start + 1;
        while at < end {
            match self.find_at(text, at, rest) {
                Found::Nothing => {}
                Found::Secret(later) => end = end.max(later),
                Found::Incomplete => return Found::Incomplete,
            }
            at += 1;
        }
        Found::Secret(end)
    }

    /// The longest secret that begins at a position.
    fn find_at(&self, text: &[u8], at: usize, rest: Rest) -> Found {
        if !self.first.contains(text[at]) && !escapes::may_begin(text[at]) {
            return Found::Nothing;
        }
        let mut longest = Found::Nothing;
        for escapes in Escapes::ALL {
            match self.find_read(&text[at..], escapes, rest) {
                Found::Nothing => {}
                Found::Secret(length) => {
                    let before = if let Found::Secret(before) = longest { before } else { 0 };
                    longest = Found::Secret(before.max(at + length));
                }
                Found::Incomplete => return Found::Incomplete,
            }
        }
        longest
    }

    /// The longest secret at the beginning of a text, read in one way.
    fn find_read(&self, text: &[u8], escapes: Escapes, rest: Rest) -> Found {
        let mut key = Vec::with_capacity(KEY);
        let mut at = 0;
        while key.len() < KEY {
            match escapes.decode(&text[at..], rest == Rest::Nothing) {
                Some(Decoded { bytes, length }) => {
                    key.extend_from_slice(bytes.as_slice());
                    at += length;
                }
                None if rest == Rest::MayFollow && self.beginnings.contains(&key) => {
                    return Found::Incomplete;
                }
                None => return Found::Nothing,
            }
            let beginning = key.len().min(KEY - 1);
            if !self.beginnings.contains(&key[..beginning]) {
                return Found::Nothing;
            }
        }
        let key = key.first_chunk::<KEY>().copied().unwrap_or_default();
        for index in self.by_key.get(&key).into_iter().flatten() {
            match compare(&self.patterns[*index], text, escapes, rest) {
                Found::Nothing => {}
                found @ (Found::Secret(_) | Found::Incomplete) => return found,
            }
        }
        Found::Nothing
    }
}

/// Whether a text begins with the pattern.
fn compare(pattern: &Pattern, text: &[u8], escapes: Escapes, rest: Rest) -> Found {
    let (mut matched, mut at) = (0, 0);
    while matched < pattern.bytes.len() {
        if pattern.is_base64 && matched >= WRAPPED_AFTER {
            at += text[at..].iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        }
        match escapes.decode(&text[at..], rest == Rest::Nothing) {
            Some(Decoded { bytes, length }) if pattern.bytes[matched..].starts_with(bytes.as_slice()) => {
                matched += bytes.as_slice().len();
                at += length;
            }
            Some(_) => return Found::Nothing,
            None if rest == Rest::MayFollow => return Found::Incomplete,
            None => return Found::Nothing,
        }
    }
    Found::Secret(at)
}
