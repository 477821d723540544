//! `repeatPolicy` of Dagu: which of them are rounds here.
//!
//! Dagu repeats a step whatever its exit code was, and what the last execution came to is what the step comes to, also at
//! `limit`. A round here is an execution that succeeded, and a job that reaches `max` has failed. So the exit codes that go
//! on are made successes, and a policy whose limit is no failure is left out.

use super::dag::is_number;
use super::job::Draft;
use super::references::references;
use super::steps::Step;
use super::values::{find, is_true, items, plain_key, quoted, scalar, table};
use crate::limits::ROUNDS;
use crate::tree::Entry;

/// When a step is repeated.
enum Rounds {
    /// While it exits with one of these.
    WhileCodes(Vec<String>),
    /// Until it exits with 0.
    UntilSuccess,
    /// While its output is so, as an expression.
    While(String),
    /// Until its output is so, as an expression.
    Until(String),
}

/// Writes `repeat`, or says why it is left out.
pub(super) fn repeat(
    step: &Step<'_, '_>,
    entries: &[Entry<'_>],
    entry: &Entry<'_>,
    draft: &mut Draft<'_, '_>,
) {
    let parts = table(&entry.node);
    match read(step, entries, parts, draft.reader.document) {
        Ok(None) => (),
        Ok(Some(written)) => {
            draft.lines.extend(written.lines);
            for (key, note) in written.notes {
                draft.leave_out(find(parts, &[key]).unwrap_or(entry), note);
            }
        }
        Err(why) => draft.leave_out(entry, why),
    }
}

struct Written {
    lines: Vec<String>,
    /// What differs, each with the key that it is about.
    notes: Notes,
}

type Notes = Vec<(&'static str, &'static str)>;

fn read(
    step: &Step<'_, '_>,
    entries: &[Entry<'_>],
    parts: &[Entry<'_>],
    document: &str,
) -> Result<Option<Written>, &'static str> {
    let Some(rounds) = rounds(step, parts, document)? else { return Ok(None) };
    let has_codes = |entry: &Entry<'_>| find(table(&entry.node), &["exitcode"]).is_some();
    if find(entries, &["continueon"]).is_some_and(has_codes) || find(entries, &["retrypolicy"]).is_some() {
        return Err("beside `retryPolicy` or exit codes of `continueOn`, write it as `repeat`");
    }
    let limit = number(parts, "limit", document)?.filter(|limit| *limit > 0);
    let (success_if, until, is_failure_at_limit) = match &rounds {
        Rounds::WhileCodes(codes) => {
            let go_on = format!("exit_code in [{}]", codes.join(", "));
            let fails = !codes.iter().any(|code| code == "0");
            let all: Vec<&str> = codes.iter().map(String::as_str).chain(fails.then_some("0")).collect();
            (format!("exit_code in [{}]", all.join(", ")), format!("not ({go_on})"), fails)
        }
        Rounds::UntilSuccess => ("true".to_owned(), "exit_code == 0".to_owned(), true),
        Rounds::While(condition) => {
            (format!("exit_code == 0 or ({condition})"), format!("not ({condition})"), false)
        }
        Rounds::Until(condition) => (format!("exit_code == 0 or not ({condition})"), condition.clone(), true),
    };
    if limit.is_some() && !is_failure_at_limit {
        return Err("it succeeds when it reaches its limit; write it as a loop in the script");
    }
    let (every_s, mut notes) = pause(parts, document)?;
    match (limit, &rounds) {
        (Some(_), Rounds::Until(_)) => {
            notes.push(("limit", "here the job fails when it reaches the limit; there it succeeds"));
        }
        (None, _) => notes.push(("", "it goes on for ever there; here the job fails after 1,000,000 rounds")),
        (Some(_), Rounds::WhileCodes(_) | Rounds::UntilSuccess | Rounds::While(_)) => (),
    }
    let max = limit.unwrap_or(ROUNDS).min(ROUNDS);
    let until = quoted(&until);
    let lines = vec![
        format!("success_if = {}", quoted(&success_if)),
        format!("repeat = {{ until = {until}, every = \"{every_s}s\", max = {max} }}"),
    ];
    Ok(Some(Written { lines, notes }))
}

/// The pause after a round in seconds, and what is to be said about it.
fn pause(parts: &[Entry<'_>], document: &str) -> Result<(i64, Notes), &'static str> {
    let every_s = number(parts, "intervalsec", document)?.unwrap_or(0).max(1);
    let backoff = find(parts, &["backoff"]).and_then(|part| scalar(&part.node, document));
    if backoff.is_none_or(|backoff| backoff == "false" || backoff == "0") {
        return Ok((every_s, Vec::new()));
    }
    match number(parts, "maxintervalsec", document)? {
        Some(longest_s) if longest_s > 0 => Ok((
            longest_s.max(every_s),
            vec![("backoff", "every pause here has the length of `maxIntervalSec`")],
        )),
        Some(_) | None => Err("its pauses grow without a limit; write it as `repeat` with a fixed pause"),
    }
}

/// What decides about the next round. Nothing if Dagu would not repeat the step either.
fn rounds(step: &Step<'_, '_>, parts: &[Entry<'_>], document: &str) -> Result<Option<Rounds>, &'static str> {
    let text = |key: &str| find(parts, &[key]).and_then(|part| scalar(&part.node, document));
    let codes: Vec<String> = find(parts, &["exitcode"])
        .map(|part| items(&part.node).into_iter().filter_map(|code| scalar(code, document)).collect())
        .unwrap_or_default();
    let (condition, expected) = (text("condition"), text("expected"));
    let is_written_true = find(parts, &["repeat"]).is_some_and(|part| is_true(&part.node));
    let is_while = match text("repeat").as_deref() {
        Some("while") => true,
        Some("until") => false,
        Some(_) | None if is_written_true => true,
        // Without a mode, a value that is expected is waited for.
        Some(_) | None => !(condition.is_some() && expected.is_some()),
    };
    if let Some(unknown) = parts.iter().map(plain_key).find(|key| !KEYS.contains(&key.as_str())) {
        return Err(match unknown.as_str() {
            "eval" => "a command decides; test its output in the script",
            _ => "it has a key that is not known here; write it as `repeat`",
        });
    }
    match (condition, expected) {
        (Some(condition), Some(expected)) => {
            let so = is_output(step, &condition)
                .then(|| comparison(&expected))
                .flatten()
                .ok_or("only the output of the step itself can decide; test other values in the script")?;
            Ok(Some(if is_while { Rounds::While(so) } else { Rounds::Until(so) }))
        }
        (Some(_), None) => {
            Err("a command decides; test it in the script, and write what that prints as `until`")
        }
        (None, _) if codes.is_empty() && !is_written_true => Ok(None),
        (None, _) if codes.is_empty() => Err("it goes on until it fails; write a schedule with `every`"),
        (None, _) if !codes.iter().all(|code| is_number(code)) => Err("its exit codes are computed"),
        (None, _) if is_while => Ok(Some(Rounds::WhileCodes(codes))),
        (None, _) if codes == ["0"] => Ok(Some(Rounds::UntilSuccess)),
        (None, _) => Err("it ends with an exit code that is a failure; test the code in the script"),
    }
}

/// The keys that are read here.
const KEYS: [&str; 8] =
    ["repeat", "condition", "expected", "exitcode", "intervalsec", "limit", "backoff", "maxintervalsec"];

/// Whether a text is the output of the step and nothing else.
fn is_output(step: &Step<'_, '_>, text: &str) -> bool {
    match references(text).as_slice() {
        [reference] => {
            reference.range == (0..text.len())
                && reference.path.is_empty()
                && step.output.as_ref() == Some(&reference.name)
        }
        [] | [_, ..] => false,
    }
}

/// An expression that compares the output with a text, or with words of which it has one.
fn comparison(expected: &str) -> Option<String> {
    let Some(pattern) = expected.strip_prefix("re:") else {
        let is_plain = !expected.contains(['$', '`', '\'', '\\', '\n']);
        return is_plain.then(|| format!("output == '{expected}'"));
    };
    let words: Vec<&str> = pattern.split('|').collect();
    let is_word = |word: &&str| {
        !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "_- ".contains(c))
    };
    let tests: Vec<String> = words.iter().map(|word| format!("'{word}' in output")).collect();
    words.iter().all(is_word).then(|| tests.join(" or "))
}

fn number(parts: &[Entry<'_>], key: &str, document: &str) -> Result<Option<i64>, &'static str> {
    let Some(part) = find(parts, &[key]) else { return Ok(None) };
    let text = scalar(&part.node, document).filter(|text| is_number(text));
    let number = text.and_then(|text| text.parse().ok());
    number.map(Some).ok_or("a number of it is computed; write it as `repeat`")
}
