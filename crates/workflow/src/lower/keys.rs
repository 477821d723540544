//! Which keys there are, and what to say about one that there is not.

use crate::report::{Finding, Findings};
use crate::tree::Entry;

pub(super) const WORKFLOW: [&str; 7] =
    ["name", "description", "timeout", "params", "env", "defaults", "jobs"];
pub(super) const PARAM: [&str; 5] = ["type", "description", "default", "required", "choices"];
pub(super) const SETTINGS: [&str; 10] = [
    "shell",
    "dir",
    "retry",
    "timeout",
    "queue",
    "priority",
    "allow_failure",
    "on_interrupt",
    "max_interruptions",
    "output",
];
pub(super) const JOB_ONLY: [&str; 5] = ["run", "command", "needs", "env", "description"];
pub(super) const RETRY: [&str; 5] = ["max_attempts", "delay", "factor", "max_delay", "jitter"];

pub(super) fn of_a_job() -> Vec<&'static str> {
    JOB_ONLY.iter().chain(&SETTINGS).copied().collect()
}

/// Keys of plans: right, but not here yet.
const NOT_YET: [&str; 5] = ["schedules", "schedule", "cron", "when", "if"];

/// What other tools call our keys.
const ELSEWHERE: [(&str, &str); 24] = [
    ("depends_on", "needs"),
    ("depends", "needs"),
    ("dependencies", "needs"),
    ("requires", "needs"),
    ("after", "needs"),
    ("script", "run"),
    ("shell_command", "run"),
    ("exec", "command"),
    ("cmd", "command"),
    ("args", "command"),
    ("cwd", "dir"),
    ("workdir", "dir"),
    ("working_directory", "dir"),
    ("working_dir", "dir"),
    ("directory", "dir"),
    ("environment", "env"),
    ("variables", "env"),
    ("retries", "retry"),
    ("attempts", "max_attempts"),
    ("backoff", "delay"),
    ("continue_on_error", "allow_failure"),
    ("tasks", "jobs"),
    ("steps", "jobs"),
    ("parameters", "params"),
];

/// Reports a key that nothing here knows. `place` is where, as in "a job". Returns the key that was
/// probably meant.
pub(crate) fn unknown<'k>(
    entry: &Entry<'_>,
    place: &str,
    keys: &[&'k str],
    findings: &mut Findings,
) -> Option<&'k str> {
    let key = entry.key.as_ref();
    if NOT_YET.contains(&key) {
        let message = format!("unknown key `{key}`: it is not supported in this version");
        findings.push(Finding::new(entry.key_span.clone(), message).label("remove it"));
        return None;
    }
    let folded = key.to_ascii_lowercase().replace('-', "_");
    let known_elsewhere = ELSEWHERE
        .iter()
        .find(|(foreign, ours)| *foreign == folded && keys.contains(ours))
        .map(|(_, ours)| *ours);
    let suggestion = known_elsewhere.or_else(|| findings.nearest(key, keys.iter().copied()));
    let finding = Finding::new(entry.key_span.clone(), format!("unknown key `{key}` in {place}"));
    findings.push(match suggestion {
        Some(near) => finding.label(format!("did you mean `{near}`?")),
        None => finding.label("not a key of this table").help(format!("the keys are {}", keys.join(", "))),
    });
    suggestion
}
