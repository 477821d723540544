//! Keys, from the bytes that a terminal sends for them: pure.

use super::state::Key;

/// The keys of bytes that came together. Bytes that mean no key here are left out.
pub(super) fn keys_of(bytes: &[u8]) -> Vec<Key> {
    let text = String::from_utf8_lossy(bytes);
    let mut rest: &str = &text;
    let mut keys = Vec::new();
    while let Some(first) = rest.chars().next() {
        let after = &rest[first.len_utf8()..];
        let (key, left) = match first {
            '\u{1b}' => escaped(after),
            other => (plain(other), after),
        };
        keys.extend(key);
        rest = left;
    }
    keys
}

fn plain(character: char) -> Option<Key> {
    match character {
        '\u{3}' => Some(Key::Interrupt),
        '\r' | '\n' => Some(Key::Enter),
        '\t' => Some(Key::Tab),
        '\u{8}' | '\u{7f}' => Some(Key::Backspace),
        char::REPLACEMENT_CHARACTER => None,
        other => (!other.is_control()).then_some(Key::Character(other)),
    }
}

/// The key of a sequence, without the escape at its beginning, and what comes after it.
fn escaped(text: &str) -> (Option<Key>, &str) {
    let Some(body) = text.strip_prefix(['[', 'O']) else {
        // Alone it is the key Escape. With a character it is that key with Alt, which means nothing here.
        let mut rest = text.chars();
        return match rest.next() {
            None | Some('\u{1b}') => (Some(Key::Escape), text),
            Some(_) => (None, rest.as_str()),
        };
    };
    let end = body.find(|c: char| c.is_ascii_alphabetic() || c == '~');
    let Some(end) = end else { return (None, "") };
    let (numbers, verb) = (&body[..end], body.as_bytes()[end]);
    let key = match (verb, numbers) {
        (b'A', _) => Some(Key::Up),
        (b'B', _) => Some(Key::Down),
        (b'C', _) => Some(Key::Right),
        (b'D', _) => Some(Key::Left),
        (b'H', _) | (b'~', "1" | "7") => Some(Key::Home),
        (b'F', _) | (b'~', "4" | "8") => Some(Key::End),
        (b'Z', _) => Some(Key::BackTab),
        (b'~', "5") => Some(Key::PageUp),
        (b'~', "6") => Some(Key::PageDown),
        (b'M', _) => Some(Key::Enter),
        _ => None,
    };
    (key, &body[end + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_keys() {
        let cases: [(&[u8], &[Key]); 16] = [
            (b"q", &[Key::Character('q')]),
            ("jä漢".as_bytes(), &[Key::Character('j'), Key::Character('ä'), Key::Character('漢')]),
            (b"\x03", &[Key::Interrupt]),
            (b"\r\t\x7f", &[Key::Enter, Key::Tab, Key::Backspace]),
            (b"\x1b", &[Key::Escape]),
            (b"\x1b\x1b[A", &[Key::Escape, Key::Up]),
            (b"\x1b[A\x1bOB\x1b[1;5C\x1b[D", &[Key::Up, Key::Down, Key::Right, Key::Left]),
            (b"\x1b[H\x1b[1~\x1b[F\x1bOF", &[Key::Home, Key::Home, Key::End, Key::End]),
            (b"\x1b[5~\x1b[6~\x1b[Z", &[Key::PageUp, Key::PageDown, Key::BackTab]),
            (b"\x1bx", &[]),
            (b"\x1b[15~", &[]),
            (b"\x1b[200", &[]),
            (b"\x1b[", &[]),
            (b"\x00\x1a\xff", &[]),
            (b"", &[]),
            (b"\x1b[3~j", &[Key::Character('j')]),
        ];
        for (bytes, keys) in cases {
            assert_eq!(keys_of(bytes), keys, "{bytes:?}");
        }
    }
}
