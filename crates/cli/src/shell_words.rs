//! Words as a shell reads them.

/// The word, quoted where a shell would take it apart.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+:@%,".contains(&byte);
    match !word.is_empty() && word.bytes().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_a_shell() {
        let cases = [("a/b-c.db", "a/b-c.db"), ("a b", "'a b'"), ("it's", "'it'\\''s'"), ("", "''")];
        for (word, expected) in cases {
            assert_eq!(quoted(word), expected);
        }
    }
}
