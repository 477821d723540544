//! Settings of a step: attempts, time limits, variables, and what a failure means.

use super::actions::Action;
use super::dag::is_number;
use super::job::Draft;
use super::references::{references, variable_of};
use super::repeat::repeat;
use super::steps::Step;
use super::values::{
    find, inline_table, is_true, items, pairs, plain_key, quoted, quoted_list, scalar, table,
};
use crate::tree::Entry;

/// Keys that are about the process of a step.
pub(super) fn process(step: &Step<'_, '_>, entries: &[Entry<'_>], draft: &mut Draft<'_, '_>) {
    if let Some(env) = find(entries, &["env"]) {
        for pair in pairs(&env.node) {
            let value = scalar(&pair.node, draft.reader.document).unwrap_or_default();
            match draft.template(&value) {
                Some(value) if variable_of(&pair.key) == pair.key => {
                    draft.env.retain(|(name, _)| *name != pair.key);
                    draft.env.push((pair.key.to_string(), value));
                }
                Some(_) | None => draft.leave_out(pair, "the value is computed; set it in the script"),
            }
        }
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
    let text = |key: &str| find(parts, &[key]).and_then(|part| scalar(&part.node, document));
    let number =
        |key: &str| text(key).filter(|text| is_number(text)).and_then(|text| text.parse::<i64>().ok());
    let Some(limit) = number("limit") else {
        return draft.leave_out(entry, "the number of attempts is computed; write it as `retry`");
    };
    if limit == 0 {
        return;
    }
    let delay = number("intervalsec").unwrap_or(0);
    let factor = match text("backoff").as_deref() {
        Some("true") => "2".to_owned(),
        Some(factor) if factor.parse::<f64>().is_ok_and(|factor| factor >= 1.0) => factor.to_owned(),
        Some(_) | None => "1".to_owned(),
    };
    let mut fields = vec![
        format!("max_attempts = {}", limit.saturating_add(1)),
        format!("delay = \"{delay}s\""),
        format!("factor = {factor}"),
        "jitter = 0".to_owned(),
    ];
    if let Some(most) = number("maxintervalsec").filter(|most| *most >= delay) {
        fields.push(format!("max_delay = \"{most}s\""));
    }
    if let Some(codes) = find(parts, &["exitcode", "exitcodes"]) {
        let codes: Vec<String> =
            items(&codes.node).into_iter().filter_map(|code| scalar(code, document)).collect();
        if codes.iter().all(|code| is_number(code)) {
            fields.push(format!("if = \"exit_code in [{}]\"", codes.join(", ")));
        }
    }
    draft.lines.push(format!("retry = {{ {} }}", fields.join(", ")));
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
    let is_set = |keys: &[&str]| find(parts, keys).is_some_and(|part| is_true(&part.node));
    if is_set(&["failure", "failed"]) {
        draft.lines.push("allow_failure = true".to_owned());
    }
    for part in parts {
        match plain_key(part).as_str() {
            "failure" | "failed" | "marksuccess" => (),
            "exitcode" if is_process => {
                let document = draft.reader.document;
                let mut codes: Vec<String> =
                    items(&part.node).into_iter().filter_map(|code| scalar(code, document)).collect();
                if codes.iter().all(|code| is_number(code)) {
                    codes.insert(0, "0".to_owned());
                    codes.dedup();
                    draft.lines.push(format!("success_if = \"exit_code in [{}]\"", codes.join(", ")));
                } else {
                    draft.leave_out(part, "write `success_if`");
                }
            }
            "skipped" if !is_true(&part.node) => (),
            "skipped" => draft.leave_out(part, "write when = \"all_finished\" in the steps that follow"),
            _ => draft.leave_out(part, "test it in the script, and exit with 0"),
        }
    }
}
