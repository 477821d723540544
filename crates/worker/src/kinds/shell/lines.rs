//! Cuts bytes into lines, and cleans them so that they are safe to show on a terminal.

use windlass_system::terminal_text::{LineCleaner, plain};

/// A longer line is cut into several.
pub(super) const LINE_MAX_BYTES: usize = 16 * 1024;

/// Collects the bytes of one stream and hands out whole lines.
#[derive(Debug, Default)]
pub(super) struct LineSplitter {
    partial: Vec<u8>,
    cleaner: LineCleaner,
}

impl LineSplitter {
    /// Adds bytes, and hands every line that they complete to `on_line`.
    pub(super) fn push(&mut self, bytes: &[u8], on_line: &mut dyn FnMut(String)) {
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            self.extend(&rest[..end], on_line);
            let line = std::mem::take(&mut self.partial);
            on_line(clean(&mut self.cleaner, &line));
            rest = &rest[end + 1..];
        }
        self.extend(rest, on_line);
    }

    /// Hands out the last line if it has no line end.
    pub(super) fn finish(&mut self, on_line: &mut dyn FnMut(String)) {
        if !self.partial.is_empty() {
            let line = std::mem::take(&mut self.partial);
            on_line(clean(&mut self.cleaner, &line));
        }
    }

    fn extend(&mut self, mut bytes: &[u8], on_line: &mut dyn FnMut(String)) {
        while self.partial.len() + bytes.len() > LINE_MAX_BYTES {
            let (now, later) = bytes.split_at(LINE_MAX_BYTES - self.partial.len());
            self.partial.extend_from_slice(now);
            bytes = later;
            let cut = character_boundary(&self.partial);
            let tail = self.partial.split_off(cut);
            let line = std::mem::replace(&mut self.partial, tail);
            on_line(clean(&mut self.cleaner, &line));
        }
        self.partial.extend_from_slice(bytes);
    }
}

/// The last index at which no UTF-8 character is cut in two.
fn character_boundary(bytes: &[u8]) -> usize {
    let last = bytes.len().saturating_sub(4);
    (last..bytes.len())
        .rev()
        .find(|index| bytes[*index] & 0b1100_0000 != 0b1000_0000)
        .filter(|index| bytes[*index] >= 0b1100_0000)
        .unwrap_or(bytes.len())
        .max(1)
}

/// The line with its colours, and without other escape sequences and control characters. Bytes that are not UTF-8 become
/// U+FFFD. A line that would be too long with its colours loses them.
fn clean(cleaner: &mut LineCleaner, line: &[u8]) -> String {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let text = String::from_utf8_lossy(line);
    let cleaned = cleaner.clean(&text);
    if cleaned.len() > LINE_MAX_BYTES { plain(&cleaned).into_owned() } else { cleaned.into_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(chunks: &[&[u8]]) -> Vec<String> {
        let mut found = Vec::new();
        let mut splitter = LineSplitter::default();
        for chunk in chunks {
            splitter.push(chunk, &mut |line| found.push(line));
        }
        splitter.finish(&mut |line| found.push(line));
        found
    }

    #[test]
    fn lines_are_found_however_the_bytes_arrive() {
        assert_eq!(lines(&[b"a\nb", b"c\r\n", b"\n", b"end"]), ["a", "bc", "", "end"]);
        assert_eq!(lines(&[]), Vec::<String>::new());
    }

    #[test]
    fn colours_stay_and_control_characters_and_other_escape_sequences_are_removed() {
        let found = lines(&[b"\x1b[2J\x1b[31mred\x1b[0m \x07\x00tab\there\n"]);
        assert_eq!(found, ["\x1b[31mred\x1b[0m tab\there"]);
        let found = lines(&[b"\x1b[3", b"1mred\nred\n\x1b[", b"0mplain\n"]);
        assert_eq!(found, ["\x1b[31mred\x1b[0m", "\x1b[31mred\x1b[0m", "plain"]);
        assert_eq!(lines(&[b" 10%\r 50%\r100%\n"]), ["100%"]);
        assert_eq!(lines(&[b"caf\xe9 \xff\n"]), ["caf\u{fffd} \u{fffd}"]);
    }

    #[test]
    fn a_long_line_is_cut_between_characters() {
        let endless = "é".repeat(LINE_MAX_BYTES);
        for chunk in [1, 7, 4_096, 100_000] {
            let chunks: Vec<&[u8]> = endless.as_bytes().chunks(chunk).collect();
            let found = lines(&chunks);
            assert!(found.iter().all(|line| line.len() <= LINE_MAX_BYTES && !line.contains('\u{fffd}')));
            assert_eq!(found.concat(), endless);
        }
    }

    #[test]
    fn colours_make_no_line_too_long() {
        let text = "\x1b[1mx\x1b[31my\x1b[0m".repeat(LINE_MAX_BYTES / 16);
        let found = lines(&[text.as_bytes()]);
        assert!(found.iter().all(|line| line.len() <= LINE_MAX_BYTES), "{}", found[0].len());
        let letters: String = found.iter().map(|line| plain(line).into_owned()).collect();
        assert_eq!(letters, "xy".repeat(LINE_MAX_BYTES / 16));
    }
}
