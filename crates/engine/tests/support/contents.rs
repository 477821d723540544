//! The contents of a database without ids: the same work done in another way must leave the same contents.

use windlass_test_database::{Access, Row, TestDatabase};

/// Rows are identified by names that people know, and never by ids, because a failed transaction may use up some ids.
const TABLES: &[(&str, &str)] = &[
    (
        "run",
        "SELECT workflow, status, stop_reason, params, env, dir, run_key, scheduled_for, source, total_jobs,
                unfinished_jobs, failed_jobs, timeout_ms, deadline_at, started_at, finished_at,
                (SELECT name FROM schedules WHERE schedules.id = runs.schedule_id)
         FROM runs",
    ),
    (
        "job",
        "SELECT runs.workflow, runs.run_key, runs.scheduled_for, jobs.name, jobs.kind, jobs.queue, jobs.status,
                jobs.priority, jobs.execute_after, jobs.payload, jobs.attempt, jobs.max_attempts,
                jobs.failures, jobs.interruptions, jobs.max_interruptions, jobs.on_interrupt,
                jobs.allow_failure, jobs.retry, jobs.timeout_ms, jobs.cancel_requested_at,
                jobs.cancel_at_once, jobs.last_error, jobs.output, jobs.blocked_by, jobs.unique_key,
                jobs.worker_id, jobs.started_at, jobs.finished_at, jobs.requires, jobs.code_version,
                jobs.concurrency_key, jobs.concurrency_limit, jobs.on_full
         FROM jobs LEFT JOIN runs ON runs.id = jobs.run_id",
    ),
    (
        "edge",
        "SELECT runs.workflow, runs.run_key, runs.scheduled_for, parent.name, child.name
         FROM job_dependencies AS edges JOIN jobs AS parent ON parent.id = edges.parent_id
         JOIN jobs AS child ON child.id = edges.child_id JOIN runs ON runs.id = child.run_id",
    ),
    (
        "attempt",
        "SELECT runs.workflow, runs.run_key, jobs.name, jobs.payload, attempts.attempt, attempts.worker_id,
                attempts.outcome, attempts.error, attempts.started_at, attempts.finished_at
         FROM job_attempts AS attempts JOIN jobs ON jobs.id = attempts.job_id
         LEFT JOIN runs ON runs.id = jobs.run_id",
    ),
    (
        "line",
        "SELECT jobs.name, jobs.payload, logs.attempt, logs.line, logs.stream, logs.text
         FROM job_logs AS logs JOIN jobs ON jobs.id = logs.job_id",
    ),
    ("worker", "SELECT host, status, heartbeats, stopped_at FROM workers"),
    ("workflow", "SELECT name, hash FROM workflows"),
    (
        "registration",
        "SELECT registrations.name, version, hash, file, dir, paused_at
         FROM registrations JOIN workflows ON workflows.id = registrations.workflow_id",
    ),
    (
        "version",
        "SELECT versions.name, version, hash, file, applied_at
         FROM registration_versions AS versions JOIN workflows ON workflows.id = versions.workflow_id",
    ),
    (
        "schedule",
        "SELECT workflow, name, definition, origin, paused_at, next_at, decided_until, removed_at FROM schedules",
    ),
    (
        "occurrence",
        // A reason may contain the id of a run.
        "SELECT schedules.name, scheduled_for, status, source, at_once, start_after, substr(reason, 1, 4)
         FROM occurrences JOIN schedules ON schedules.id = occurrences.schedule_id",
    ),
    ("queue", "SELECT name, paused_at, max_running, rate_jobs, rate_interval_ms, fifo FROM queues"),
    ("start", "SELECT queue, expires_at, jobs FROM queue_starts"),
];

/// One line for each row, sorted.
pub fn contents(database: &TestDatabase) -> Vec<String> {
    let sql = database.sql(Access::Read);
    let mut lines: Vec<String> = TABLES
        .iter()
        .flat_map(|(table, select)| sql.rows(select, |row| Ok(format!("{table} {}", columns(row)))))
        .collect();
    lines.sort_unstable();
    lines
}

fn columns(row: &Row) -> String {
    let values = (0..).map_while(|column: usize| row.get::<_, Option<String>>(column).ok());
    values.map(|value| value.unwrap_or_else(|| "-".to_owned())).collect::<Vec<_>>().join(" | ")
}

/// Fails with the lines that only one of them has.
pub fn assert_same(found: &[String], expected: &[String], what: &str) {
    let only_in = |these: &[String], others: &[String]| {
        these.iter().filter(|line| !others.contains(line)).take(10).cloned().collect::<Vec<_>>().join("\n  ")
    };
    assert!(
        found == expected,
        "{what}\nfound only:\n  {}\nexpected only:\n  {}",
        only_in(found, expected),
        only_in(expected, found)
    );
}
