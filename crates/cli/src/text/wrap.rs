//! Breaks lines between words, so that a narrow terminal does not break them inside words.

use console::{measure_text_width, strip_ansi_codes};

/// How far the rest of a line without an indent is indented.
const HANGING_INDENT: usize = 2;
/// What stands before a line of the output of a job.
const OUTPUT_MARK: &str = "| ";

/// The text with its longer lines broken at spaces. The rest of a line is indented as its beginning is, and a line of output
/// keeps its `|`. A longer word stays whole. Without a width the text stays as it is.
pub(crate) fn fit(text: &str, width: Option<usize>) -> String {
    let Some(width) = width else { return text.to_owned() };
    let lines: Vec<String> = text.split('\n').map(|line| fit_line(line, width)).collect();
    lines.join("\n")
}

fn fit_line(line: &str, width: usize) -> String {
    if measure_text_width(line) <= width {
        return line.to_owned();
    }
    let plain = strip_ansi_codes(line);
    let written = plain.trim_start_matches(' ');
    let indent = plain.len() - written.len();
    let indent = if indent == 0 || indent > width / 2 { HANGING_INDENT } else { indent };
    let mark = if written.starts_with(OUTPUT_MARK) { OUTPUT_MARK } else { "" };
    let (mut fitted, mut length) = (String::new(), 0);
    for piece in line.split_inclusive(' ') {
        let word = measure_text_width(piece.trim_end_matches(' '));
        if word > 0 && length > indent && length + word > width {
            fitted.truncate(fitted.trim_end_matches(' ').len());
            fitted.push_str(&format!("\n{:indent$}{mark}", ""));
            length = indent + mark.len();
        }
        fitted.push_str(piece);
        length += measure_text_width(piece);
    }
    fitted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_between_words_and_keep_their_indent() {
        assert_eq!(fit("one two three", Some(7)), "one two\n  three");
        assert_eq!(fit("  one two three\nx", Some(9)), "  one two\n  three\nx");
        assert_eq!(fit("a-very-long-word b", Some(5)), "a-very-long-word\n  b");
        assert_eq!(fit("    | one two", Some(9)), "    | one\n    | two");
        assert_eq!(fit("\u{1b}[2m  | one two\u{1b}[0m", Some(7)), "\u{1b}[2m  | one\n  | two\u{1b}[0m");
        assert_eq!(fit("one two three", None), "one two three");
        assert_eq!(fit("\u{1b}[31mone\u{1b}[0m two", Some(7)), "\u{1b}[31mone\u{1b}[0m two");
    }
}
