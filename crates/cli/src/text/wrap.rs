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

/// How far a comment is indented that does not fit beside its command.
const COMMENT_INDENT: usize = 6;

/// The end of a help text in this width: paragraphs are broken anew, and the comment of an example gets a line of its own if
/// it does not fit. A command is not broken, so that it can be copied.
pub(crate) fn refit(text: &str, width: Option<usize>) -> String {
    let Some(width) = width else { return text.to_owned() };
    let (mut lines, mut paragraph) = (Vec::new(), String::new());
    for line in text.split('\n') {
        if line.is_empty() || line.starts_with(' ') {
            end_paragraph(&mut paragraph, &mut lines, width);
            lines.push(fit_example(line, width));
            continue;
        }
        if !paragraph.is_empty() {
            paragraph.push(' ');
        }
        paragraph.push_str(line);
    }
    end_paragraph(&mut paragraph, &mut lines, width);
    lines.join("\n")
}

fn end_paragraph(paragraph: &mut String, lines: &mut Vec<String>, width: usize) {
    if paragraph.is_empty() {
        return;
    }
    let mut line = String::new();
    for word in std::mem::take(paragraph).split(' ') {
        if !line.is_empty() && measure_text_width(&line) + 1 + measure_text_width(word) > width {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
}

fn fit_example(line: &str, width: usize) -> String {
    match line.split_once("  # ") {
        Some((command, comment)) if measure_text_width(line) > width => {
            format!("{}\n{:COMMENT_INDENT$}# {comment}", command.trim_end(), "")
        }
        Some(_) | None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_help_text_fits_a_narrow_terminal() {
        let text = "Examples:\n  windlass a b c   # what it does\n\nOne two\nthree four five.\n";
        let narrow = "Examples:\n  windlass a b c\n      # what it does\n\nOne two three four\nfive.\n";
        assert_eq!(refit(text, Some(20)), narrow);
        assert_eq!(refit(text, Some(80)), text.replace("two\nthree", "two three"));
        assert_eq!(refit(text, None), text);
    }

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
