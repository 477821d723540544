//! One form for workflow files in TOML: the spaces, the blank lines and the quotes.
//!
//! The text is taken apart into tokens and put together again. Only spaces and quotes change, so every comment stays, and
//! the file means the same as before.

mod line;
mod quotes;

use line::{Line, lines};

use crate::report::{Finding, Findings, Report};
use crate::source::{Format, Source};
use crate::tree;

/// Formats a file in TOML. Formatting the result again changes nothing.
///
/// # Errors
/// The file is not TOML, or its syntax is wrong. The keys and values are not checked.
pub fn format(source: &Source) -> Result<String, Report> {
    let report = |finding: Finding| Report::of_one(source.path.as_str(), &source.text, finding);
    match source.format {
        Format::Toml => {}
        Format::Json => {
            let finding = Finding::without_position("only TOML is formatted, and this file is JSON");
            return Err(report(finding.help("for JSON use a formatter of your editor, or `jq .`")));
        }
        Format::Yaml => {
            let finding = Finding::without_position("only TOML is formatted, and this file is YAML");
            return Err(report(finding.help("for YAML use a formatter of your editor")));
        }
    }
    let mut findings = Findings::default();
    let _tree = tree::read(source, &mut findings);
    if !findings.is_empty() {
        return Err(Report::new(source.path.as_str(), &source.text, findings));
    }
    let formatted = join(&lines(&source.text));
    if means_the_same(&source.text, &formatted) {
        Ok(formatted)
    } else {
        let finding =
            Finding::without_position("formatting would change what the file means, so it is left as it is");
        Err(report(finding.help("please report this file as a defect of Windlass")))
    }
}

/// A guard against a defect of the formatter.
fn means_the_same(before: &str, after: &str) -> bool {
    let (before, after) = (before.parse::<toml::Table>(), after.parse::<toml::Table>());
    matches!((before, after), (Ok(before), Ok(after)) if before == after)
}

/// Puts lines together, with one blank line before each table, and nowhere more than one.
fn join(lines: &[Line]) -> String {
    let mut out: Vec<&str> = Vec::with_capacity(lines.len());
    for (at, line) in lines.iter().enumerate() {
        match line {
            Line::Blank => {
                let is_inside = out.last().is_some_and(|last| !last.is_empty() && !ends_open(last));
                let next = lines[at..].iter().find(|line| !matches!(line, Line::Blank));
                let closes = matches!(next, None | Some(Line::Closing(_)));
                if is_inside && !closes {
                    out.push("");
                }
            }
            Line::Header(text) => {
                separate(&mut out);
                out.push(text);
            }
            Line::Comment(text) | Line::Other(text) | Line::Closing(text) => out.push(text),
        }
    }
    let mut text = out.join("\n");
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

/// Whether the line opens an array that goes on in the next line.
fn ends_open(line: &str) -> bool {
    line.ends_with(['[', '{']) && !line.trim_start().starts_with('#')
}

/// Puts a blank line before a table and the comments that stand directly above it.
fn separate(out: &mut Vec<&str>) {
    let comments = out.iter().rev().take_while(|line| line.starts_with('#')).count();
    let begin = out.len() - comments;
    let is_first = begin == 0;
    if !is_first && !out[begin - 1].is_empty() {
        out.insert(begin, "");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn formatted(text: &str) -> String {
        let source = Source::new("file.toml", text.as_bytes().to_vec()).expect("a source");
        let once = format(&source).expect("valid TOML");
        let again = Source::new("file.toml", once.clone().into_bytes()).expect("a source");
        assert_eq!(format(&again).expect("valid TOML"), once, "twice is once");
        once
    }

    #[test]
    fn spaces_and_blank_lines_have_one_form() {
        let text = "\n\nname='a'   # the name\n  timeout  =  \"5m\"\n\n\n[jobs.a]\nrun=\"x\"\n# for b\n  [ jobs . b ]   \nneeds=[ \"a\" ,'c' ]\nenv={A='1',B=\"2\"}\n\n\n";
        assert_eq!(
            formatted(text),
            "name = \"a\"  # the name\ntimeout = \"5m\"\n\n[jobs.a]\nrun = \"x\"\n\n# for b\n[jobs.b]\nneeds = [\"a\", \"c\"]\nenv = { A = \"1\", B = \"2\" }\n"
        );
    }

    #[test]
    fn lists_over_several_lines_are_indented() {
        let text = "a=[\n\n1,# one\n   [2,\n3],\n{b=1,\nc=[\n4]}\n\n]\nd=[{\ne=1\n}]\n";
        assert_eq!(
            formatted(text),
            "a = [\n    1,  # one\n    [2,\n        3],\n    { b = 1,\n        c = [\n            4] }\n]\nd = [{\n    e = 1\n}]\n"
        );
    }

    #[test]
    fn texts_and_dates_keep_their_content() {
        for value in [
            "'''\n  a = 1   # no comment\n\n\n'''",
            "\"\"\"\na\\\n   b\"\"\"",
            "'say \"hi\"'",
            r"'C:\folder'",
            r#""a\tb""#,
            "1979-05-27 07:32:00.5",
            "1979-05-27T00:32:00.999-07:00",
            "-1.5e10",
            "[[1, 2], []]",
            "{}",
        ] {
            assert_eq!(formatted(&format!("a={value}")), format!("a = {value}\n"));
        }
    }

    #[test]
    fn keys_lose_quotes_that_they_do_not_need() {
        assert_eq!(
            formatted("\"a\"=1\n'b c'=2\n\"d.e\".'f'=3\n[\"jobs\".\"g\"]\nx={'y'='z'}"),
            "a = 1\n'b c' = 2\n\"d.e\".f = 3\n\n[jobs.g]\nx = { y = \"z\" }\n"
        );
    }

    #[test]
    fn a_file_of_comments_keeps_them() {
        assert_eq!(formatted("#:schema ./a.json  \n\n\n#\n# b"), "#:schema ./a.json\n\n#\n# b\n");
        assert_eq!(formatted(""), "");
        assert_eq!(formatted("\r\n# a\r\nb=1\r\n"), "# a\nb = 1\n");
    }

    #[test]
    fn wrong_syntax_and_json_are_errors() {
        let report = |path: &str, text: &str| {
            let source = Source::new(path, text.as_bytes().to_vec()).expect("a source");
            format(&source).expect_err("an error").to_string()
        };
        assert!(report("a.toml", "a = b").contains("not valid TOML"));
        assert!(report("a.json", "{}").contains("only TOML"));
    }
}
