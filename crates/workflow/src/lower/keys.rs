//! Which keys there are, and what to say about one that there is not.

use crate::report::{Finding, Findings};
use crate::tree::Entry;

pub(super) const WORKFLOW: [&str; 8] =
    ["name", "description", "timeout", "params", "env", "schedules", "defaults", "jobs"];
pub(super) const PARAM: [&str; 5] = ["type", "description", "default", "required", "choices"];
pub(super) const SETTINGS: [&str; 13] = [
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
    "requires",
    "version",
    "concurrency",
];
pub(super) const JOB_ONLY: [&str; 5] = ["run", "command", "needs", "env", "description"];
pub(super) const RETRY: [&str; 5] = ["max_attempts", "delay", "factor", "max_delay", "jitter"];

pub(super) const CONCURRENCY: [&str; 3] = ["key", "limit", "on_full"];
pub(super) const SCHEDULE: [&str; 12] = [
    "name",
    "cron",
    "every",
    "timezone",
    "overlap",
    "catchup",
    "catchup_window",
    "catchup_max",
    "start",
    "end",
    "jitter",
    "params",
];

pub(super) fn of_a_job() -> Vec<&'static str> {
    JOB_ONLY.iter().chain(&SETTINGS).copied().collect()
}

/// Keys of plans: right, but not here yet.
const NOT_YET: [&str; 2] = ["when", "if"];

/// What other tools call our keys.
const ELSEWHERE: [(&str, &str); 40] = [
    ("depends_on", "needs"),
    ("depends", "needs"),
    ("dependencies", "needs"),
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
    ("schedule", "schedules"),
    ("schedule", "cron"),
    ("expression", "cron"),
    ("interval", "every"),
    ("tz", "timezone"),
    ("time_zone", "timezone"),
    ("zone", "timezone"),
    ("start_date", "start"),
    ("start_at", "start"),
    ("from", "start"),
    ("end_date", "end"),
    ("end_at", "end"),
    ("until", "end"),
    ("concurrency_policy", "overlap"),
    ("capabilities", "requires"),
    ("max", "limit"),
    ("group", "key"),
];

/// Keys of a schedule that people write elsewhere.
const OF_A_SCHEDULE: [&str; 4] = ["cron", "every", "schedule", "schedules"];

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
    let is_misplaced = OF_A_SCHEDULE.contains(&folded.as_str()) && !keys.contains(&"cron");
    findings.push(match suggestion {
        _ if is_misplaced => finding
            .label("schedules have a list of their own")
            .help("write [[schedules]] at the top of the file, and below it cron = \"30 2 * * *\""),
        Some(near) => finding.label(format!("did you mean `{near}`?")),
        None => finding.label("not a key of this table").help(format!("the keys are {}", keys.join(", "))),
    });
    suggestion
}
