//! Settings of a step: attempts, time limits, variables, and what a failure means.

use super::actions::Action;
use super::dag::is_number;
use super::job::Draft;
use super::references::{references, variable_of};
use super::repeat::repeat;
use super::steps::Step;
use super::values::{
    find, inline_table, is_true, items, plain_key, quoted, quoted_list, scalar, table, text, value_of,
};
use crate::tree::Entry;

/// Keys that are about the process of a step.
pub(super) fn process(step: &Step<'_, '_>, entries: &[Entry<'_>], draft: &mut Draft<'_, '_>) {
    if let Some(env) = find(entries, &["env"]) {
        variables(env, draft);
    }
    if !draft.env.is_empty() {
        draft.lines.push(format!("env = {}", inline_table(&draft.env)));
    }
    if !draft.reader.env_files.is_empty() {
        draft.lines.push(format!("env_files = {}", quoted_list(&draft.reader.env_files)));
    }
    let secrets: Vec<String> = draft
        .reader
        .secrets
        .iter()
        .filter(|name| draft.env.iter().all(|(own, _)| own != *name))
        .cloned()
        .collect();
    if !secrets.is_empty() {
        draft.lines.push(format!("secrets = {}", quoted_list(&secrets)));
    }
    if let (Some(entry), None) = (find(entries, &["output"]), &step.output) {
        draft.leave_out(entry, "write output = \"json\" and print an object with the values");
    }
    if let Some(output) = &step.output {
        let has_parts = references(draft.reader.document)
            .iter()
            .any(|reference| reference.name == *output && !reference.path.is_empty());
        draft.lines.push(format!("output = \"{}\"", if has_parts { "json" } else { "text" }));
    }
}

/// Reads `env` of a step: a table, or a list of tables and of texts with an equals sign.
fn variables(env: &Entry<'_>, draft: &mut Draft<'_, '_>) {
    let document = draft.reader.document;
    for item in items(&env.node) {
        let pairs = table(item);
        let written = text(item).and_then(|text| text.split_once('='));
        match written.map(|(name, value)| variable(name.trim(), value, draft)) {
            Some(Ok(())) => (),
            Some(Err(why)) => draft.leave_out_item(item, why),
            None if pairs.is_empty() => draft.leave_out_item(item, "a variable is written as NAME=value"),
            None => (),
        }
        for pair in pairs {
            let value = value_of(&pair.node, document).ok_or("its value is no text");
            if let Err(why) = value.and_then(|value| variable(&pair.key, &value, draft)) {
                draft.leave_out(pair, why);
            }
        }
    }
}

/// Gives the job a variable, or says why not.
fn variable(name: &str, value: &str, draft: &mut Draft<'_, '_>) -> Result<(), &'static str> {
    if name.is_empty() || variable_of(name) != name {
        return Err("a variable can't have this name");
    }
    let value = draft.template(value).ok_or("the value is computed; set it in the script")?;
    draft.env.retain(|(known, _)| known != name);
    draft.env.push((name.to_owned(), value));
    Ok(())
}

/// Keys that every job can have.
pub(super) fn every(step: &Step<'_, '_>, action: &Action, draft: &mut Draft<'_, '_>) {
    let entries = table(step.node);
    let is_process = matches!(action, Action::Process);
    for entry in entries {
        let text = scalar(&entry.node, draft.reader.document);
        match (plain_key(entry).as_str(), text) {
            ("env" | "stdout" | "stderr" | "dir" | "workingdir" | "shell", _)
                if matches!(action, Action::Other | Action::Call(_)) =>
            {
                draft.leave_out(entry, "this job has no process")
            }
            ("parallel" | "params", _) if matches!(action, Action::Process | Action::Other) => {
                draft.leave_out(entry, "only a job that calls a workflow has it")
            }
            ("command" | "cmd" | "script" | "args", _)
                if matches!(action, Action::Call(_))
                    && find(entries, &["call", "run", "action"]).is_some() =>
            {
                draft.leave_out(entry, "this job calls a workflow")
            }
            // These are read elsewhere.
            (
                "name" | "id" | "depends" | "dependson" | "needs" | "preconditions" | "precondition"
                | "command" | "cmd" | "args" | "script" | "shell" | "output" | "env" | "executor" | "type"
                | "config" | "with" | "call" | "run" | "params" | "stdout" | "stderr" | "dir" | "workingdir"
                | "parallel" | "action",
                _,
            ) => (),
            ("description", Some(text)) => draft.lines.push(format!("description = {}", quoted(text.trim()))),
            ("timeoutsec", Some(seconds)) if is_number(&seconds) && is_process => {
                if seconds != "0" {
                    draft.lines.push(format!("timeout = \"{seconds}s\""));
                }
            }
            ("retrypolicy", _) if matches!(action, Action::Process | Action::Other) => retry(entry, draft),
            ("continueon", text) => continue_on(entry, text.as_deref(), is_process, draft),
            ("mailonerror", _) => {
                draft.leave_out(entry, "no mail is sent; write a job under [on_failure] that does")
            }
            ("repeatpolicy", _) if is_process => repeat(step, entries, entry, draft),
            ("repeatpolicy", _) => draft.leave_out(entry, "write it as `repeat`"),
            ("signalonstop", _) => draft.leave_out(entry, "a process is stopped by SIGTERM, then by SIGKILL"),
            ("workerselector", _) => draft.leave_out(entry, "write what a worker must have as `requires`"),
            ("container", _) if is_process => (),
            ("container", _) => draft.leave_out(entry, "this job has no process"),
            _ => draft.leave_out(entry, "there is no equivalent"),
        }
    }
}

fn retry(entry: &Entry<'_>, draft: &mut Draft<'_, '_>) {
    let parts = table(&entry.node);
    let document = draft.reader.document;
    let part = |key: &str| find(parts, &[key]).and_then(|part| scalar(&part.node, document));
    let number =
        |key: &str| part(key).filter(|text| is_number(text)).and_then(|text| text.parse::<i64>().ok());
    let Some(limit) = number("limit") else {
        return draft.leave_out(entry, "the number of attempts is computed; write it as `retry`");
    };
    if limit == 0 {
        return;
    }
    let delay = number("intervalsec").unwrap_or(0);
    let (mut factor, mut fields) = ("1".to_owned(), Vec::new());
    for part in parts {
        let text = scalar(&part.node, document).unwrap_or_default();
        match plain_key(part).as_str() {
            "limit" => (),
            "intervalsec" if is_number(&text) => (),
            "maxintervalsec" if number("maxintervalsec").is_some_and(|most| most >= delay) => {
                fields.push(format!("max_delay = \"{text}s\""));
            }
            "backoff" => match factor_of(&text) {
                Some(written) => factor = written,
                None => draft.leave_out(part, "write `factor` in `retry`"),
            },
            "exitcode" | "exitcodes" => match codes_of(part, document) {
                Some(codes) => fields.push(format!("if = \"exit_code in [{}]\"", codes.join(", "))),
                None => draft.leave_out(part, "the exit codes are computed; write `if` in `retry`"),
            },
            "intervalsec" | "maxintervalsec" => draft.leave_out(part, "write it in `retry`"),
            _ => draft.leave_out(part, "`retry` has no such key"),
        }
    }
    let attempts = limit.saturating_add(1);
    let first = format!("max_attempts = {attempts}, delay = \"{delay}s\", factor = {factor}, jitter = 0");
    fields.insert(0, first);
    draft.lines.push(format!("retry = {{ {} }}", fields.join(", ")));
}

/// By what a pause is multiplied for the next one.
fn factor_of(backoff: &str) -> Option<String> {
    match backoff {
        "true" => Some("2".to_owned()),
        "false" | "0" => Some("1".to_owned()),
        factor => factor.parse::<f64>().is_ok_and(|factor| factor >= 1.0).then(|| factor.to_owned()),
    }
}

/// Exit codes, if all are written as numbers.
fn codes_of(part: &Entry<'_>, document: &str) -> Option<Vec<String>> {
    items(&part.node).into_iter().map(|code| scalar(code, document).filter(|code| is_number(code))).collect()
}

fn continue_on(entry: &Entry<'_>, text: Option<&str>, is_process: bool, draft: &mut Draft<'_, '_>) {
    if let Some(word) = text {
        match word {
            "failed" | "failure" => draft.lines.push("allow_failure = true".to_owned()),
            _ => draft.leave_out(entry, "write `when` in the steps that follow"),
        }
        return;
    }
    let parts = table(&entry.node);
    if parts.is_empty() {
        return draft.leave_out(entry, "write `allow_failure`, or `when` in the steps that follow");
    }
    let is_set = |keys: &[&str]| find(parts, keys).is_some_and(|part| is_true(&part.node));
    if is_set(&["failure", "failed"]) {
        draft.lines.push("allow_failure = true".to_owned());
    }
    for part in parts {
        match plain_key(part).as_str() {
            "failure" | "failed" => (),
            "marksuccess" if is_true(&part.node) && is_set(&["failure", "failed"]) => {
                draft.leave_out(part, "a failure that is allowed stays one; exit with 0 in the script");
            }
            "marksuccess" => (),
            "exitcode" if is_process => match codes_of(part, draft.reader.document) {
                Some(mut codes) => {
                    codes.insert(0, "0".to_owned());
                    codes.dedup();
                    draft.lines.push(format!("success_if = \"exit_code in [{}]\"", codes.join(", ")));
                }
                None => draft.leave_out(part, "write `success_if`"),
            },
            "skipped" if !is_true(&part.node) => (),
            "skipped" => draft.leave_out(part, "write when = \"all_finished\" in the steps that follow"),
            _ => draft.leave_out(part, "test it in the script, and exit with 0"),
        }
    }
}
