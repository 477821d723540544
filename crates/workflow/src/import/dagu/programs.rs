//! Steps that become command lines of other programs, `jq` and `ssh`, and the settings of a shell.

use super::job::Draft;
use super::references::references;
use super::script::{Script, text_of};
use super::values::{find, is_true, items, plain_key, scalar, shell_word};
use crate::tree::Entry;

/// The setting with one of these keys.
fn setting<'t, 's>(settings: &[&'t Entry<'s>], keys: &[&str]) -> Option<&'t Entry<'s>> {
    settings.iter().copied().find(|setting| keys.contains(&plain_key(setting).as_str()))
}

fn setting_text(settings: &[&Entry<'_>], keys: &[&str], document: &str) -> Option<String> {
    setting(settings, keys).and_then(|setting| scalar(&setting.node, document))
}

/// Why other settings of these programs are left out.
pub(super) const NO_EQUIVALENT: &str = "there is no equivalent";

/// The shell in the settings of a step, with its arguments.
pub(super) fn shell_of(settings: &[&Entry<'_>], document: &str) -> Option<String> {
    let words = |key: &str| -> Vec<String> {
        let written = setting(settings, &[key]).map(|setting| items(&setting.node)).unwrap_or_default();
        written.into_iter().filter_map(|word| scalar(word, document)).collect()
    };
    let (mut shell, arguments) = (words("shell"), words("shellargs"));
    if shell.is_empty() && !arguments.is_empty() {
        shell.push("/bin/sh".to_owned());
    }
    shell.extend(arguments);
    (!shell.is_empty()).then(|| shell.join(" "))
}

/// A step that puts its `script` through a query.
pub(super) fn jq(
    command: Option<String>,
    entries: &[Entry<'_>],
    settings: &[&Entry<'_>],
    draft: &mut Draft<'_, '_>,
) -> Script {
    let document = draft.reader.document;
    let is_raw = setting(settings, &["raw"]).is_some_and(|setting| is_true(&setting.node));
    let read: &[&str] = if command.is_some() { &["raw"] } else { &["raw", "query", "filter"] };
    draft.leave_out_others(settings.iter().copied(), read, NO_EQUIVALENT);
    let query = command.or_else(|| setting_text(settings, &["query", "filter"], document));
    let query = query.unwrap_or_else(|| ".".to_owned());
    let input = text_of(entries, &["script"], document).unwrap_or_default();
    let option = if is_raw { " -r" } else { "" };
    // The shell puts values into the input if it names any.
    let end = if references(&input).is_empty() { "'WINDLASS_END'" } else { "WINDLASS_END" };
    let text = format!("jq{option} {} <<{end}\n{}\nWINDLASS_END", shell_word(&query), input.trim_end());
    Script { text, shell: None }
}

/// The settings that [`ssh`] reads.
const OF_SSH: [&str; 8] =
    ["host", "ip", "user", "key", "port", "stricthostkeychecking", "stricthostkey", "command"];

/// A step that runs a command on another machine. Nothing if the machine is not known.
pub(super) fn ssh(
    command: Option<String>,
    entries: &[Entry<'_>],
    settings: &[&Entry<'_>],
    draft: &mut Draft<'_, '_>,
) -> Option<Script> {
    let document = draft.reader.document;
    let text = |keys: &[&str]| setting_text(settings, keys, document);
    let host = text(&["host", "ip"])?;
    let mut words = vec!["ssh".to_owned()];
    for (option, value) in [("-i", text(&["key"])), ("-p", text(&["port"]))] {
        words.extend(value.map(|value| format!("{option} {}", shell_word(&value))));
    }
    if text(&["stricthostkeychecking", "stricthostkey"]).is_some_and(|value| value == "false") {
        words.push("-o StrictHostKeyChecking=no".to_owned());
    }
    words.push(shell_word(&text(&["user"]).map_or(host.clone(), |user| format!("{user}@{host}"))));
    draft.leave_out_others(settings.iter().copied(), &OF_SSH, NO_EQUIVALENT);
    let script = find(entries, &["script"]);
    if let Some(script) = script.filter(|_| command.is_some()) {
        draft.leave_out(script, "the step has a command too; write them as one script");
    }
    let remote = command
        .or_else(|| script.and_then(|script| scalar(&script.node, document)))
        .or_else(|| text(&["command"]));
    words.push(shell_word(&remote.unwrap_or_default()));
    Some(Script { text: words.join(" "), shell: None })
}
