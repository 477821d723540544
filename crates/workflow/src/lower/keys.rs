//! The keys of each table of a workflow file, and the error for a key that a table does not have.

use crate::key::{self, Key};
use crate::report::Findings;
use crate::tree::Entry;
use crate::{env, kinds};

/// A table of a workflow file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Table {
    /// The top level of the file.
    Workflow,
    Param,
    Schedule,
    Defaults,
    Job,
    Retry,
    Concurrency,
}

const TIMEOUT: Key =
    Key::with_synonyms("timeout", &["timeoutsec", "timeoutminutes", "executiontimeout", "deadline"]);
const PARAMS: Key = Key::with_synonyms("params", &["parameters", "inputs"]);

const WORKFLOW: [Key; 8] = [
    Key::new("name"),
    Key::new("description"),
    TIMEOUT,
    PARAMS,
    env::KEY,
    Key::with_synonyms("schedules", &["schedule", "scheduleinterval"]),
    Key::new("defaults"),
    Key::with_synonyms("jobs", &["tasks", "steps"]),
];

const PARAM: [Key; 5] = [
    Key::new("type"),
    Key::new("description"),
    Key::new("default"),
    Key::new("required"),
    Key::new("choices"),
];

const SCHEDULE: [Key; 12] = [
    Key::new("name"),
    Key::with_synonyms("cron", &["schedule", "scheduleinterval", "oncalendar", "expression"]),
    Key::with_synonyms("every", &["interval"]),
    Key::with_synonyms("timezone", &["tz", "zone"]),
    Key::with_synonyms("overlap", &["concurrencypolicy", "overlappolicy", "maxactiveruns"]),
    Key::with_synonyms("catchup", &["persistent"]),
    Key::new("catchup_window"),
    Key::new("catchup_max"),
    Key::with_synonyms("start", &["startdate", "startat", "from"]),
    Key::with_synonyms("end", &["enddate", "endat", "until", "to"]),
    Key::with_synonyms("jitter", &["randomizeddelaysec"]),
    PARAMS,
];

/// Keys that a job and `[defaults]` may have, whatever the job's kind.
const SETTINGS: [Key; 10] = [
    Key::with_synonyms(
        "retry",
        &["retries", "retrypolicy", "retrydelay", "maxretries", "maxattempts", "attempts"],
    ),
    TIMEOUT,
    Key::with_synonyms("queue", &["pool"]),
    Key::with_synonyms("priority", &["priorityweight", "weight"]),
    Key::with_synonyms("allow_failure", &["continueonerror", "continueon", "ignoreerrors"]),
    Key::new("on_interrupt"),
    Key::new("max_interruptions"),
    Key::with_synonyms("requires", &["capabilities", "runson", "labels"]),
    Key::new("version"),
    Key::new("concurrency"),
];

/// Keys that only a job may have, whatever its kind.
const JOB_ONLY: [Key; 2] = [
    Key::with_synonyms("needs", &["dependson", "depends", "dependencies", "after", "upstream"]),
    Key::new("description"),
];

const RETRY: [Key; 5] = [
    Key::with_synonyms("max_attempts", &["attempts", "retries", "maxretries"]),
    Key::with_synonyms("delay", &["backoff", "retrydelay", "intervalsec"]),
    Key::new("factor"),
    Key::new("max_delay"),
    Key::new("jitter"),
];

const CONCURRENCY: [Key; 3] =
    [Key::with_synonyms("key", &["group"]), Key::with_synonyms("limit", &["max"]), Key::new("on_full")];

impl Table {
    pub(super) fn keys(self) -> Vec<Key> {
        match self {
            Table::Workflow => WORKFLOW.to_vec(),
            Table::Param => PARAM.to_vec(),
            Table::Schedule => SCHEDULE.to_vec(),
            Table::Defaults => kinds::default_keys().into_iter().chain(SETTINGS).collect(),
            Table::Job => kinds::job_keys().into_iter().chain(JOB_ONLY).chain(SETTINGS).collect(),
            Table::Retry => RETRY.to_vec(),
            Table::Concurrency => CONCURRENCY.to_vec(),
        }
    }

    /// The table's name for people.
    fn noun(self) -> &'static str {
        match self {
            Table::Workflow => "a workflow",
            Table::Param => "a parameter",
            Table::Schedule => "a schedule",
            Table::Defaults => "`defaults`",
            Table::Job => "a job",
            Table::Retry => "`retry`",
            Table::Concurrency => "`concurrency`",
        }
    }
}

/// Keys that a later version will have.
const PLANNED: [&str; 2] = ["when", "if"];

/// Keys with which people try to write a schedule in the wrong table.
const SCHEDULE_WORDS: [&str; 5] = ["cron", "every", "schedule", "schedules", "schedule_interval"];

/// Words of other tools for the number of jobs that run at once. In Windlass that is not a property of a file.
const PARALLELISM_WORDS: [&str; 5] =
    ["max_parallel", "parallelism", "max_concurrency", "max_active_tasks", "max_active_steps"];

/// Reports a key that the table does not have. Returns the key that was probably meant.
pub(super) fn report_unknown(
    entry: &Entry<'_>,
    table: Table,
    findings: &mut Findings,
) -> Option<&'static str> {
    if PLANNED.contains(&entry.key.as_ref()) {
        let finding = key::unknown(entry, table.noun()).label("this version does not support it");
        findings.push(finding.help("remove the key"));
        return None;
    }
    if let Some((label, help)) = misplaced(&entry.key, table) {
        findings.push(key::unknown(entry, table.noun()).label(label).help(help));
        return None;
    }
    key::report_unknown(entry, table.noun(), &table.keys(), findings)
}

/// The advice for a key that belongs to another table: the reason, and what to write instead.
fn misplaced(written: &str, table: Table) -> Option<(&'static str, String)> {
    let folded = written.to_ascii_lowercase().replace('-', "_");
    let holds_jobs = matches!(table, Table::Workflow | Table::Job | Table::Defaults);
    if holds_jobs && SCHEDULE_WORDS.contains(&folded.as_str()) {
        let help = "write [[schedules]] at the top of the file, and below it cron = \"30 2 * * *\"";
        return Some(("schedules have a list of their own", help.to_owned()));
    }
    if table == Table::Defaults {
        return only_in_jobs(&folded);
    }
    if table == Table::Workflow { misplaced_at_top(&folded) } else { None }
}

/// The advice for a key of jobs that `[defaults]` may not have.
fn only_in_jobs(written: &str) -> Option<(&'static str, String)> {
    let allowed = Table::Defaults.keys();
    let is_of_job = Table::Job.keys().iter().any(|key| key.name == written);
    if !is_of_job || allowed.iter().any(|key| key.name == written) {
        return None;
    }
    let help = match written == env::KEY.name {
        true => "write `env` at the top of the file to set variables for all jobs".to_owned(),
        false => format!("write `{written}` into each job"),
    };
    Some(("not a key of `defaults`", help))
}

/// The advice for a key at the top of the file that belongs to jobs or schedules, or to no file at all.
fn misplaced_at_top(written: &str) -> Option<(&'static str, String)> {
    let without_separators = written.replace('_', "");
    if PARALLELISM_WORDS.iter().any(|word| word.replace('_', "") == without_separators) {
        let help =
            "use `--threads N` for one process, or `windlass queue limit QUEUE --max-running N` for all";
        return Some(("a file does not say how many jobs run at once", help.to_owned()));
    }
    let find = |keys: &[Key]| {
        let by_name = keys.iter().find(|key| key.name == written).map(|key| key.name);
        by_name.or_else(|| key::by_synonym(written, keys))
    };
    if find(&WORKFLOW).is_some() {
        return None;
    }
    if let Some(own) = find(&Table::Defaults.keys()) {
        let help = format!("write `{own}` into a job, or into [defaults] for all jobs");
        return Some(("a key of jobs", help));
    }
    let own = find(&SCHEDULE)?;
    Some(("a key of schedules", format!("write `{own}` below [[schedules]]")))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const TABLES: [Table; 7] = [
        Table::Workflow,
        Table::Param,
        Table::Schedule,
        Table::Defaults,
        Table::Job,
        Table::Retry,
        Table::Concurrency,
    ];

    #[test]
    fn words_of_other_tools_and_typing_errors_lead_to_our_keys() {
        let cases = [
            (Table::Job, "retries", Some("retry")),
            (Table::Job, "retires", Some("retry")),
            (Table::Job, "max_retries", Some("retry")),
            (Table::Job, "maxRetries", Some("retry")),
            (Table::Job, "max_attempts", Some("retry")),
            (Table::Job, "retry_delay", Some("retry")),
            (Table::Job, "retryPolicy", Some("retry")),
            (Table::Job, "depends_on", Some("needs")),
            (Table::Job, "depends", Some("needs")),
            (Table::Job, "dependsOn", Some("needs")),
            (Table::Job, "depnds", Some("needs")),
            (Table::Job, "need", Some("needs")),
            (Table::Job, "require", Some("requires")),
            (Table::Job, "runs-on", Some("requires")),
            (Table::Job, "cmd", Some("command")),
            (Table::Job, "comand", Some("command")),
            (Table::Job, "script", Some("run")),
            (Table::Job, "bash_command", Some("run")),
            (Table::Job, "ExecStart", Some("run")),
            (Table::Job, "WorkingDirectory", Some("dir")),
            (Table::Job, "timeout-minutes", Some("timeout")),
            (Table::Job, "timeoutSec", Some("timeout")),
            (Table::Job, "execution_timeout", Some("timeout")),
            (Table::Job, "pool", Some("queue")),
            (Table::Job, "colour", None),
            (Table::Workflow, "tasks", Some("jobs")),
            (Table::Workflow, "steps", Some("jobs")),
            (Table::Workflow, "schedule", Some("schedules")),
            (Table::Workflow, "retries", None),
            (Table::Schedule, "schedule", Some("cron")),
            (Table::Schedule, "OnCalendar", Some("cron")),
            (Table::Schedule, "interval", Some("every")),
            (Table::Schedule, "tz", Some("timezone")),
            (Table::Schedule, "time_zone", Some("timezone")),
            (Table::Schedule, "start_date", Some("start")),
            (Table::Schedule, "max_active_runs", Some("overlap")),
            (Table::Schedule, "catchUpWindow", Some("catchup_window")),
            (Table::Retry, "retries", Some("max_attempts")),
            (Table::Retry, "retry_delay", Some("delay")),
            (Table::Retry, "maxAttempts", Some("max_attempts")),
            (Table::Concurrency, "max", Some("limit")),
        ];
        for (table, written, expected) in cases {
            assert_eq!(key::nearest(written, &table.keys(), &mut Findings::default()), expected, "{written}");
        }
    }

    #[test]
    fn a_key_at_the_top_that_belongs_elsewhere_gets_advice() {
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
                    "use `--threads N` for one process, or `windlass queue limit QUEUE --max-running N` for all",
                ),
            ),
            ("steps", None),
            ("colour", None),
        ];
        for (written, expected) in cases {
            assert_eq!(
                misplaced(written, Table::Workflow).map(|(_, help)| help).as_deref(),
                expected,
                "{written}"
            );
        }
        for table in [Table::Workflow, Table::Job, Table::Defaults] {
            assert!(misplaced("cron", table).is_some_and(|(_, help)| help.contains("[[schedules]]")));
        }
    }

    #[test]
    fn a_key_stands_once_in_its_table() {
        for table in TABLES {
            let keys = table.keys();
            let names: BTreeSet<&str> = keys.iter().map(|key| key.name).collect();
            assert_eq!(names.len(), keys.len(), "{table:?}");
        }
    }

    #[test]
    fn a_synonym_stands_for_one_key_and_is_not_a_key_itself() {
        for table in TABLES {
            let keys = table.keys();
            let names: BTreeSet<&str> = keys.iter().map(|key| key.name).collect();
            let mut seen = BTreeSet::new();
            for synonym in keys.iter().flat_map(|key| key.elsewhere) {
                assert!(!names.contains(synonym), "{synonym} is a key of {table:?}");
                assert!(seen.insert(*synonym), "{synonym} stands for two keys of {table:?}");
                let folded = synonym.to_ascii_lowercase().replace(['-', '_'], "");
                assert_eq!(folded, **synonym, "synonyms are in small letters, without `-` and `_`");
            }
        }
    }
}
