//! Files with variables, one `NAME=VALUE` in a line.
//!
//! A value may be in quotes. Between `'` nothing has a meaning. Between `"`, `\n`, `\r`, `\t`, `\"`, `\\` and `\$` have their
//! usual one. A value in quotes may have several lines. No variable is replaced by its value.

use std::path::Path;
use std::process::Command;

use windlass_engine::transition::Outcome;
use windlass_system::files::{Links, ReadError, read_regular};
use windlass_system::shortage::is_shortage;
use windlass_workflow::kinds::shell::{EnvFile, IfMissing};

use super::refusal::{self, Refused};
use crate::handler::failed_for_good;

/// Bytes of a file, at most.
const FILE_MAX_BYTES: u64 = 1024 * 1024;
/// Variables whose names begin with this are set by Windlass.
const RESERVED: &str = "WINDLASS_";

/// Adds the variables of a file to the environment of a command. `dir` is the folder of the run.
pub(super) fn add(command: &mut Command, file: &EnvFile, dir: Option<&Path>) -> Result<(), Outcome> {
    let path = dir.unwrap_or(Path::new("")).join(&file.path);
    let bytes = match read_regular(&path, Links::Follow, FILE_MAX_BYTES) {
        Ok(bytes) => bytes,
        Err(error) if error.is_absent() && file.if_missing == IfMissing::Ignore => return Ok(()),
        Err(error) if error.is_absent() => {
            return Err(failed_for_good(format!(
                "the file {} of `env_files` does not exist; write \"?{}\" if it may be missing",
                path.display(),
                file.path
            )));
        }
        Err(ReadError::Io(error)) if is_shortage(&error) => {
            return Err(refusal::outcome(Refused::Files, "no file to read `env_files`", &error));
        }
        Err(error) => {
            return Err(failed_for_good(format!("the file {} of `env_files` {error}", path.display())));
        }
    };
    let wrong = |line: usize, reason: &str| {
        failed_for_good(format!("the file {} of `env_files`, line {line}: {reason}", path.display()))
    };
    let Ok(text) = String::from_utf8(bytes) else { return Err(wrong(1, "it is not UTF-8 text")) };
    let variables = parse(&text).map_err(|Wrong { line, reason }| wrong(line, reason))?;
    command.envs(variables);
    Ok(())
}

/// What is wrong with a file. It names no value, because values may be secret.
#[derive(Debug, PartialEq, Eq)]
struct Wrong {
    line: usize,
    reason: &'static str,
}

fn parse(text: &str) -> Result<Vec<(String, String)>, Wrong> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut variables = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let line = 1 + text[..text.len() - rest.len()].matches('\n').count();
        let wrong = |reason| Wrong { line, reason };
        let (content, after) = rest.split_once('\n').unwrap_or((rest, ""));
        let content = content.trim();
        if content.is_empty() || content.starts_with('#') {
            rest = after;
            continue;
        }
        let (name, value) = rest.split_once('=').ok_or_else(|| wrong("it is not NAME=VALUE"))?;
        if name.contains('\n') {
            return Err(wrong("it is not NAME=VALUE"));
        }
        let name = name.trim();
        let name = name.strip_prefix("export ").map_or(name, str::trim);
        check_name(name).map_err(wrong)?;
        let (value, after) = read_value(value).map_err(wrong)?;
        if value.contains('\0') {
            return Err(wrong("the value contains a NUL character, which no process can be given"));
        }
        variables.push((name.to_owned(), value));
        rest = after;
    }
    Ok(variables)
}

fn check_name(name: &str) -> Result<(), &'static str> {
    let is_letter = |c: char| c.is_ascii_alphabetic() || c == '_';
    if !name.starts_with(is_letter) || !name.chars().all(|c| is_letter(c) || c.is_ascii_digit()) {
        return Err("the name before `=` must be letters, digits and `_`, and begin with no digit");
    }
    match name.starts_with(RESERVED) {
        true => Err("Windlass sets the variables whose names begin with WINDLASS_"),
        false => Ok(()),
    }
}

/// Reads the value behind `=`. Returns it, and what follows after its line.
fn read_value(text: &str) -> Result<(String, &str), &'static str> {
    let text = text.trim_start_matches([' ', '\t']);
    let (value, rest) = match text.chars().next() {
        Some('\'') => {
            let (value, rest) = text[1..].split_once('\'').ok_or("a quote `'` is not closed")?;
            (value.to_owned(), rest)
        }
        Some('"') => read_double_quoted(&text[1..])?,
        Some(_) | None => {
            let (line, after) = text.split_once('\n').unwrap_or((text, ""));
            let comment = if line.starts_with('#') { Some(0) } else { find_comment(line) };
            return Ok((line[..comment.unwrap_or(line.len())].trim_end().to_owned(), after));
        }
    };
    let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
    let is_comment = find_comment(line).is_some_and(|at| line[..at].trim().is_empty());
    match line.trim().is_empty() || is_comment {
        true => Ok((value, after)),
        false => Err("something follows the closing quote"),
    }
}

/// Where a comment begins: at a `#` after white space.
fn find_comment(line: &str) -> Option<usize> {
    line.match_indices('#').map(|(at, _)| at).find(|at| line[..*at].ends_with([' ', '\t']))
}

fn read_double_quoted(text: &str) -> Result<(String, &str), &'static str> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Ok((value, &text[at + 1..])),
            '\\' => match characters.next().map(|(_, escaped)| escaped) {
                Some('n') => value.push('\n'),
                Some('r') => value.push('\r'),
                Some('t') => value.push('\t'),
                Some(escaped @ ('"' | '\\' | '$')) => value.push(escaped),
                Some(other) => value.extend(['\\', other]),
                None => break,
            },
            other => value.push(other),
        }
    }
    Err("a quote `\"` is not closed")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Vec<(String, String)> {
        parse(text).unwrap_or_else(|wrong| panic!("{text:?}: {wrong:?}"))
    }

    #[test]
    fn a_line_is_a_name_and_a_value() {
        for (text, value) in [
            ("A=b", "b"),
            ("  export A = b c  \r\n", "b c"),
            ("A=", ""),
            ("A= # nothing", ""),
            ("A=b#c # comment", "b#c"),
            ("A=$HOME `x` \\n", "$HOME `x` \\n"),
            ("A=b=c", "b=c"),
            ("A='b \\n $x \"'  # comment", "b \\n $x \""),
            ("A=\"b\\n\\t\\\"\\\\\\$x \\q # no comment\"", "b\n\t\"\\$x \\q # no comment"),
            ("A=\"one\ntwo\"\n", "one\ntwo"),
            ("\u{feff}# comment\n\n A=b", "b"),
        ] {
            assert_eq!(parsed(text), [("A".to_owned(), value.to_owned())], "{text:?}");
        }
        assert_eq!(parsed(" \n# only comments"), []);
        let several = parsed("A='1\n2'\nB=3\nA=4\n");
        assert_eq!(several.iter().map(|(_, value)| value.as_str()).collect::<Vec<_>>(), ["1\n2", "3", "4"]);
    }

    #[test]
    fn an_error_names_the_line_and_no_value() {
        for (text, line, reason) in [
            ("A=1\n\nhunter2", 3, "not NAME=VALUE"),
            ("hunter2\nA=1", 1, "not NAME=VALUE"),
            ("A='1\n2'\n1B=hunter2", 3, "the name"),
            ("=hunter2", 1, "the name"),
            ("WINDLASS_RUN_ID=7", 1, "Windlass sets"),
            ("A='hunter2\nB=1", 1, "not closed"),
            ("A=\"hunter2\\", 1, "not closed"),
            ("A='hunter2' x", 1, "follows the closing quote"),
            ("A=\"hunter2\"#x", 1, "follows the closing quote"),
            ("A=hun\0ter2", 1, "NUL"),
        ] {
            let wrong = parse(text).expect_err(text);
            assert_eq!(wrong.line, line, "{text:?}");
            assert!(wrong.reason.contains(reason) && !wrong.reason.contains("hunter2"), "{wrong:?}");
        }
    }
}
