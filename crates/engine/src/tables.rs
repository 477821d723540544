//! The tables of Windlass, as `crates/db` needs to know them.

use windlass_db::{Migration, Tables};

use crate::store::{
    AS_BEFORE_ITS_FIRST_ATTEMPT, COUNTS_AS_FAILED, DEAD_LETTER, IN_WINDOW, IS_BROKEN, IS_REPORTED,
    IS_STOPPED_LATER, JOB_COLUMNS, JOB_FILTER, JOB_OF_RUN, JOB_SUMMARY, OF_RUNS_IN_ACTIVE_QUEUES, PRIORITY,
    RANK, REGISTRATION_COLUMNS, RULED, RUN_COLUMNS, RUN_COMPARISONS, RUN_SUMMARY, SCHEDULE_COLUMNS,
    VERSION_COLUMNS, WAITS_FOR_ITEMS, WANTS_WORKFLOW,
};

/// The tables of Windlass.
pub static TABLES: Tables = Tables {
    migrations: &[Migration {
        version: 1,
        name: "core",
        sql: include_str!("../migrations/0001_core.sql"),
        postgres: include_str!("../migrations/0001_core.postgres.sql"),
    }],
    names: &[
        "instance",
        "workflows",
        "registrations",
        "registration_versions",
        "schedules",
        "runs",
        "run_definitions",
        "run_tags",
        "workspaces",
        "occurrences",
        "jobs",
        "job_dependencies",
        "job_attempts",
        "job_logs",
        "artifacts",
        "workers",
        "queues",
        "queue_starts",
        "commit_tokens",
        "clock_steps",
        "events",
        "event_counter",
        "triggers",
        "run_ends",
        "triggered_runs",
        "notification_targets",
        "notification_filters",
        "notifications",
        "tokens",
        "sessions",
        "audit",
        "idempotency_keys",
        "variables",
        "job_stats",
        "dead_letters",
        "runs_readable",
        "jobs_readable",
        "claimable_jobs",
    ],
    growing: &["jobs", "runs", "job_dependencies", "schedules"],
    fragments: &[
        RANK,
        PRIORITY,
        AS_BEFORE_ITS_FIRST_ATTEMPT,
        DEAD_LETTER,
        COUNTS_AS_FAILED,
        IS_BROKEN,
        IS_REPORTED,
        IN_WINDOW,
        JOB_OF_RUN,
        RULED,
        IS_STOPPED_LATER,
        JOB_COLUMNS,
        JOB_FILTER,
        JOB_SUMMARY,
        OF_RUNS_IN_ACTIVE_QUEUES,
        REGISTRATION_COLUMNS,
        RUN_COLUMNS,
        RUN_COMPARISONS,
        RUN_SUMMARY,
        SCHEDULE_COLUMNS,
        VERSION_COLUMNS,
        WAITS_FOR_ITEMS,
        WANTS_WORKFLOW,
    ],
    name_database: "INSERT INTO instance (id, name) VALUES (1, $1) ON CONFLICT (id) DO NOTHING",
    rename_database: "UPDATE instance SET name = $1",
};

/// The schema version that this program creates and uses.
pub const SCHEMA_VERSION: i64 = TABLES.version();

#[cfg(test)]
mod tests {
    use super::TABLES;

    #[test]
    fn every_table_and_view_of_the_migrations_is_named() {
        let mut made: Vec<&str> = TABLES
            .migrations
            .iter()
            .flat_map(|migration| migration.sql.lines())
            .filter_map(|line| {
                line.strip_prefix("CREATE TABLE ").or_else(|| line.strip_prefix("CREATE VIEW "))
            })
            .filter_map(|rest| rest.split_whitespace().next())
            .collect();
        let mut names = TABLES.names.to_vec();
        made.sort_unstable();
        names.sort_unstable();
        assert_eq!(made, names);
    }
}
