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

/// What other tools call our keys, without `_` and `-`, in small letters. The first whose key is allowed counts.
const ELSEWHERE: &[(&str, &str)] = &[
    ("dependson", "needs"),
    ("depends", "needs"),
    ("dependencies", "needs"),
    ("after", "needs"),
    ("upstream", "needs"),
    ("script", "run"),
    ("shellcommand", "run"),
    ("bashcommand", "run"),
    ("execstart", "run"),
    ("exec", "command"),
    ("cmd", "command"),
    ("args", "command"),
    ("entrypoint", "command"),
    ("cwd", "dir"),
    ("workdir", "dir"),
    ("workingdirectory", "dir"),
    ("workingdir", "dir"),
    ("directory", "dir"),
    ("environment", "env"),
    ("variables", "env"),
    ("vars", "env"),
    ("retries", "retry"),
    ("retrypolicy", "retry"),
    ("retrydelay", "retry"),
    ("maxretries", "retry"),
    ("maxattempts", "retry"),
    ("attempts", "retry"),
    ("attempts", "max_attempts"),
    ("retries", "max_attempts"),
    ("maxretries", "max_attempts"),
    ("backoff", "delay"),
    ("retrydelay", "delay"),
    ("intervalsec", "delay"),
    ("timeoutsec", "timeout"),
    ("timeoutminutes", "timeout"),
    ("executiontimeout", "timeout"),
    ("deadline", "timeout"),
    ("pool", "queue"),
    ("priorityweight", "priority"),
    ("weight", "priority"),
    ("continueonerror", "allow_failure"),
    ("continueon", "allow_failure"),
    ("ignoreerrors", "allow_failure"),
    ("tasks", "jobs"),
    ("steps", "jobs"),
    ("parameters", "params"),
    ("inputs", "params"),
    ("schedule", "schedules"),
    ("scheduleinterval", "schedules"),
    ("schedule", "cron"),
    ("scheduleinterval", "cron"),
    ("oncalendar", "cron"),
    ("expression", "cron"),
    ("interval", "every"),
    ("tz", "timezone"),
    ("zone", "timezone"),
    ("startdate", "start"),
    ("startat", "start"),
    ("from", "start"),
    ("enddate", "end"),
    ("endat", "end"),
    ("until", "end"),
    ("to", "end"),
    ("randomizeddelaysec", "jitter"),
    ("concurrencypolicy", "overlap"),
    ("overlappolicy", "overlap"),
    ("maxactiveruns", "overlap"),
    ("persistent", "catchup"),
    ("capabilities", "requires"),
    ("runson", "requires"),
    ("labels", "requires"),
    ("max", "limit"),
    ("group", "key"),
];

/// What people write elsewhere when they mean a schedule.
const A_SCHEDULE: [&str; 5] = ["cron", "every", "schedule", "schedules", "schedule_interval"];

/// What other tools call how many jobs run at once. Here no file says that: the process and the queue do.
const PARALLELISM: [&str; 5] =
    ["max_parallel", "parallelism", "max_concurrency", "max_active_tasks", "max_active_steps"];

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
    let misplaced = misplaced(key, keys);
    let suggestion = if misplaced.is_some() { None } else { meant(key, keys, findings) };
    let finding = Finding::new(entry.key_span.clone(), format!("unknown key `{key}` in {place}"));
    findings.push(match (misplaced, suggestion) {
        (Some((label, help)), _) => finding.label(label).help(help),
        (None, Some(near)) => finding.label(format!("did you mean `{near}`?")),
        (None, None) => {
            finding.label("not a key of this table").help(format!("the keys are {}", keys.join(", ")))
        }
    });
    suggestion
}

/// Where a key belongs that is right in another table of a workflow file, and how to write it there.
fn misplaced(key: &str, keys: &[&str]) -> Option<(&'static str, String)> {
    let (at_top, in_job) = (keys == WORKFLOW, keys == of_a_job());
    let folded = key.to_ascii_lowercase().replace('-', "_");
    if (at_top || in_job || keys == SETTINGS) && A_SCHEDULE.contains(&folded.as_str()) {
        let help = "write [[schedules]] at the top of the file, and below it cron = \"30 2 * * *\"";
        return Some(("schedules have a list of their own", help.to_owned()));
    }
    let is_parallelism = |key: &&str| key.replace('_', "") == folded.replace('_', "");
    if at_top && PARALLELISM.iter().any(is_parallelism) {
        let help =
            "take `--threads N` for a process, `windlass queue limit QUEUE --max-running N` for all of them";
        return Some(("no file says how many jobs run at once", help.to_owned()));
    }
    let own = |table: &[&'static str]| {
        table.iter().copied().find(|own| *own == folded).or_else(|| foreign(&folded, table))
    };
    if !at_top || keys.contains(&folded.as_str()) || foreign(&folded, keys).is_some() {
        return None;
    }
    if let Some(own) = own(&SETTINGS) {
        let help = format!("write `{own}` into a job, or into [defaults] for all jobs");
        return Some(("a key of jobs", help));
    }
    let own = own(&SCHEDULE).filter(|own| !["name", "params"].contains(own))?;
    Some(("a key of schedules", format!("write `{own}` below [[schedules]]")))
}

/// The key that a person most likely meant: what another tool's word stands for, or what is spelled nearly so. An
/// error in another tool's word counts too: `retires` is nearer to `retries` than to `requires`.
fn meant<'k>(key: &str, keys: &[&'k str], findings: &mut Findings) -> Option<&'k str> {
    if let Some(own) = foreign(key, keys) {
        return Some(own);
    }
    let ours = |ours: &str| keys.iter().copied().find(|key| *key == ours);
    let words = ELSEWHERE.iter().filter(|(_, own)| ours(own).is_some()).map(|(word, _)| *word);
    let near = findings.nearest(key, keys.iter().copied().chain(words))?;
    ours(near).or_else(|| foreign(near, keys))
}

/// The key of this table that another tool's word stands for.
fn foreign<'k>(word: &str, keys: &[&'k str]) -> Option<&'k str> {
    let folded = word.to_ascii_lowercase().replace(['-', '_'], "");
    let same = ELSEWHERE.iter().filter(|(foreign, _)| *foreign == folded);
    same.filter_map(|(_, own)| keys.iter().copied().find(|key| key == own)).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_other_tools_and_typing_errors_lead_to_our_keys() {
        let job = of_a_job();
        let cases = [
            (&job[..], "retries", Some("retry")),
            (&job, "retires", Some("retry")),
            (&job, "max_retries", Some("retry")),
            (&job, "maxRetries", Some("retry")),
            (&job, "max_attempts", Some("retry")),
            (&job, "retry_delay", Some("retry")),
            (&job, "retryPolicy", Some("retry")),
            (&job, "depends_on", Some("needs")),
            (&job, "depends", Some("needs")),
            (&job, "dependsOn", Some("needs")),
            (&job, "depnds", Some("needs")),
            (&job, "need", Some("needs")),
            (&job, "require", Some("requires")),
            (&job, "runs-on", Some("requires")),
            (&job, "cmd", Some("command")),
            (&job, "comand", Some("command")),
            (&job, "script", Some("run")),
            (&job, "bash_command", Some("run")),
            (&job, "ExecStart", Some("run")),
            (&job, "WorkingDirectory", Some("dir")),
            (&job, "timeout-minutes", Some("timeout")),
            (&job, "timeoutSec", Some("timeout")),
            (&job, "execution_timeout", Some("timeout")),
            (&job, "pool", Some("queue")),
            (&job, "colour", None),
            (&WORKFLOW, "tasks", Some("jobs")),
            (&WORKFLOW, "steps", Some("jobs")),
            (&WORKFLOW, "schedule", Some("schedules")),
            (&WORKFLOW, "retries", None),
            (&SCHEDULE, "schedule", Some("cron")),
            (&SCHEDULE, "OnCalendar", Some("cron")),
            (&SCHEDULE, "interval", Some("every")),
            (&SCHEDULE, "tz", Some("timezone")),
            (&SCHEDULE, "time_zone", Some("timezone")),
            (&SCHEDULE, "start_date", Some("start")),
            (&SCHEDULE, "max_active_runs", Some("overlap")),
            (&SCHEDULE, "catchUpWindow", Some("catchup_window")),
            (&RETRY, "retries", Some("max_attempts")),
            (&RETRY, "retry_delay", Some("delay")),
            (&RETRY, "maxAttempts", Some("max_attempts")),
            (&CONCURRENCY, "max", Some("limit")),
        ];
        for (keys, written, expected) in cases {
            assert_eq!(meant(written, keys, &mut Findings::default()), expected, "{written}");
        }
    }

    #[test]
    fn keys_of_jobs_and_schedules_at_the_top_are_sent_to_their_place() {
        let cases = [
            ("retry", Some("write `retry` into a job, or into [defaults] for all jobs")),
            ("retries", Some("write `retry` into a job, or into [defaults] for all jobs")),
            ("queue", Some("write `queue` into a job, or into [defaults] for all jobs")),
            ("timezone", Some("write `timezone` below [[schedules]]")),
            ("tz", Some("write `timezone` below [[schedules]]")),
            ("catchup", Some("write `catchup` below [[schedules]]")),
            ("max_active_runs", Some("write `overlap` below [[schedules]]")),
            (
                "maxParallel",
                Some(
                    "take `--threads N` for a process, `windlass queue limit QUEUE --max-running N` for all of them",
                ),
            ),
            ("steps", None),
            ("colour", None),
        ];
        for (key, expected) in cases {
            assert_eq!(misplaced(key, &WORKFLOW).map(|(_, help)| help).as_deref(), expected, "{key}");
        }
        for keys in [&WORKFLOW[..], &of_a_job(), &SETTINGS] {
            assert!(misplaced("cron", keys).is_some_and(|(_, help)| help.contains("[[schedules]]")));
        }
        assert_eq!(misplaced("cron", &["database", "workflows"]), None, "the configuration has no schedules");
    }

    #[test]
    fn every_word_of_another_tool_stands_for_a_key_and_is_none_itself() {
        let groups = [&of_a_job()[..], &WORKFLOW, &PARAM, &RETRY, &CONCURRENCY, &SCHEDULE];
        for (foreign, own) in ELSEWHERE {
            assert!(groups.iter().any(|keys| keys.contains(own)), "{own}");
            assert!(
                groups.iter().all(|keys| !keys.contains(own) || !keys.contains(foreign)),
                "{foreign} is a key beside {own}"
            );
            assert!(!foreign.contains(['-', '_']), "{foreign}");
        }
    }
}
