//! Sentences in which commands and names stand between backticks.

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
    fn a_message_that_stands_alone_is_a_sentence() {
        assert_eq!(sentence("run 7 does not exist"), "Run 7 does not exist.");
        assert_eq!(sentence("`x` is unknown here."), "`x` is unknown here.");
        assert_eq!(sentence(""), "");
    }
}
