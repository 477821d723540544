//! Sentences in which commands and names stand between backticks.

use chrono::DateTime;

use super::times::Times;

/// A part of a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Its text, without backticks.
    pub text: String,
    /// Whether it is a command or a name, written as code.
    pub is_code: bool,
}

/// Splits a sentence at its backticks. With one that has no partner, the sentence stays as it is.
#[must_use]
pub fn parts(sentence: &str) -> Vec<Part> {
    if !sentence.matches('`').count().is_multiple_of(2) {
        return vec![Part { text: sentence.to_owned(), is_code: false }];
    }
    sentence
        .split('`')
        .enumerate()
        .map(|(at, text)| Part { text: text.to_owned(), is_code: at % 2 == 1 })
        .filter(|part| !part.text.is_empty())
        .collect()
}

/// The same with instants in the zone of the reader: the command line writes them in the zone of the server, such as
/// `2026-11-21 02:36:00 +00:00`. Commands stay as they are.
#[must_use]
pub fn parts_for(sentence: &str, times: &Times) -> Vec<Part> {
    let mut parts = parts(sentence);
    for part in parts.iter_mut().filter(|part| !part.is_code) {
        part.text = in_zone(&part.text, times);
    }
    parts
}

fn in_zone(text: &str, times: &Times) -> String {
    const DATE_AND_TIME: usize = "2026-11-21 02:36:00".len();
    let mut words = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let instant = ["UTC", "+00:00"].iter().find_map(|zone| {
            let candidate = rest.get(..DATE_AND_TIME + 1 + zone.len())?;
            let offset = candidate.replace("UTC", "+00:00");
            let at = DateTime::parse_from_str(&offset, "%Y-%m-%d %H:%M:%S %:z").ok()?;
            Some((candidate.len(), at.timestamp_millis()))
        });
        let read = match instant {
            Some((read, at_ms)) => {
                words.push_str(&times.stamp(at_ms).short);
                read
            }
            None => {
                words.push(first);
                first.len_utf8()
            }
        };
        rest = &rest[read..];
    }
    words
}

/// What a message says, as a sentence that stands alone: with a capital and a full stop, unless it begins with a name.
#[must_use]
pub fn sentence(message: &str) -> String {
    let mut chars = message.trim().chars();
    let mut sentence: String = chars.next().map(|first| first.to_ascii_uppercase()).into_iter().collect();
    sentence.push_str(chars.as_str());
    if !sentence.is_empty() && !sentence.ends_with(['.', '!', '?', '…']) {
        sentence.push('.');
    }
    sentence
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_between_backticks_is_code() {
        let of = |sentence| -> Vec<(String, bool)> {
            parts(sentence).into_iter().map(|part| (part.text, part.is_code)).collect()
        };
        let owned = |parts: &[(&str, bool)]| -> Vec<(String, bool)> {
            parts.iter().map(|(text, is_code)| ((*text).to_owned(), *is_code)).collect()
        };
        assert_eq!(
            of("`a b` runs it; so does `c`"),
            owned(&[("a b", true), (" runs it; so does ", false), ("c", true)])
        );
        assert_eq!(of("one ` alone"), owned(&[("one ` alone", false)]));
        assert_eq!(of(""), owned(&[]));
    }

    #[test]
    fn instants_are_in_the_zone_of_the_reader() {
        let times = Times { zone: Times::zone("Europe/Berlin"), now_ms: 1_795_647_600_000 };
        let of = |sentence| -> String {
            parts_for(sentence, &times).into_iter().map(|part| part.text).collect::<Vec<_>>().concat()
        };
        let utc = "It waits until 2026-11-28 23:04:01 +00:00 (in 2d), ü.";
        assert_eq!(of(utc), "It waits until 29 Nov 00:04 (in 2d), ü.");
        assert_eq!(of("at 2026-11-28 23:04:01 UTC"), "at 29 Nov 00:04");
        assert_eq!(of("at 2026-11-28 18:04:01 -05:00"), "at 29 Nov 00:04");
        let command = "`windlass change j7 --at '2026-11-28 23:04:01 +00:00'` moves 2026-11-28";
        assert_eq!(of(command), command.replace('`', ""));
    }

    #[test]
    fn a_message_that_stands_alone_is_a_sentence() {
        assert_eq!(sentence("run 7 does not exist"), "Run 7 does not exist.");
        assert_eq!(sentence("`x` is unknown here."), "`x` is unknown here.");
        assert_eq!(sentence(""), "");
    }
}
