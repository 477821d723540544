//! Finds the keys of a file in the list, and reports keys that a table does not have.

use super::{WORKFLOW_ENV, foreign};
use crate::key::{self, InDefaults, Key, KeyName, Table};
use crate::report::Findings;
use crate::support::Support;
use crate::tree::Entry;

/// A key that the table does not have. The error was reported.
pub(crate) struct Unknown {
    /// The key that was probably meant.
    pub(crate) meant: Option<&'static str>,
}

/// Finds the key of an entry of a table. Reports an error if the table does not have the key, or if this version does
/// not support it.
pub(crate) fn find(
    entry: &Entry<'_>,
    table: Table,
    findings: &mut Findings,
) -> Result<&'static Key, Unknown> {
    let Some(key) = table.keys().find(|key| key.name() == entry.key) else {
        return Err(Unknown { meant: report_unknown(entry, table, findings) });
    };
    if !findings.accepts(key.support) {
        let finding = key::unknown(entry, table.noun()).label("this version does not support it");
        findings.push(finding.help("remove the key"));
        return Err(Unknown { meant: None });
    }
    Ok(key)
}

/// Keys with which people try to write a schedule in the wrong table.
const SCHEDULE_WORDS: [&str; 5] = ["cron", "every", "schedule", "schedules", "schedule_interval"];

/// Words of other tools for the number of jobs that run at once. In Windlass that is not a property of a file.
const PARALLELISM_WORDS: [&str; 5] =
    ["max_parallel", "parallelism", "max_concurrency", "max_active_tasks", "max_active_steps"];

/// Reports a key that the table does not have. Returns the key that was probably meant.
fn report_unknown(entry: &Entry<'_>, table: Table, findings: &mut Findings) -> Option<&'static str> {
    let folded = entry.key.to_ascii_lowercase().replace('-', "_");
    let foreign =
        || foreign::instead_of(&folded, table).map(|help| ("not a key of this table", help.to_owned()));
    if let Some((label, help)) = misplaced(&entry.key, table).or_else(foreign) {
        findings.push(key::unknown(entry, table.noun()).label(label).help(help));
        return None;
    }
    let known = names(table, |support| findings.accepts(support));
    key::report_unknown(entry, table.noun(), &known, findings)
}

fn names(table: Table, accepts: impl Fn(Support) -> bool) -> Vec<KeyName> {
    table.keys().filter(|key| accepts(key.support)).map(|key| key.key_name).collect()
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
    let is_only_of_job = |key: &&Key| key.name() == written && key.in_defaults == InDefaults::No;
    Table::Job.keys().find(is_only_of_job)?;
    let help = match written == WORKFLOW_ENV.name() {
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
    let find = |table: Table| {
        let keys = names(table, |support| support == Support::Supported);
        let by_name = keys.iter().find(|key| key.name == written).map(|key| key.name);
        by_name.or_else(|| key::by_synonym(written, &keys))
    };
    if find(Table::Workflow).is_some() {
        return None;
    }
    if let Some(own) = find(Table::Defaults) {
        let help = format!("write `{own}` into a job, or into [defaults] for all jobs");
        return Some(("a key of jobs", help));
    }
    let own = find(Table::Schedule)?;
    Some(("a key of schedules", format!("write `{own}` below [[schedules]]")))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const TABLES: [Table; 16] = [
        Table::Workflow,
        Table::Param,
        Table::Schedule,
        Table::Trigger,
        Table::Secret,
        Table::Defaults,
        Table::Job,
        Table::Retry,
        Table::Repeat,
        Table::Concurrency,
        Table::RunConcurrency,
        Table::ForEach,
        Table::Sleep,
        Table::WaitFor,
        Table::Approval,
        Table::Signal,
    ];

    fn supported(table: Table) -> Vec<KeyName> {
        names(table, |support| support == Support::Supported)
    }

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
            (Table::Workflow, "max_active_runs", Some("concurrency")),
            (Table::Workflow, "maxActiveRuns", Some("concurrency")),
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
            (Table::RunConcurrency, "group", Some("key")),
            (Table::RunConcurrency, "behavior", Some("on_full")),
        ];
        for (table, written, expected) in cases {
            assert_eq!(
                key::name::nearest(written, &supported(table), &mut Findings::default()),
                expected,
                "{written}"
            );
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
            ("max_active_runs", None),
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
            let names: BTreeSet<&str> = table.keys().map(Key::name).collect();
            assert_eq!(names.len(), table.keys().count(), "{table:?}");
        }
    }

    #[test]
    fn a_synonym_stands_for_one_key_and_is_not_a_key_itself() {
        for table in TABLES {
            let keys = names(table, |_| true);
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
