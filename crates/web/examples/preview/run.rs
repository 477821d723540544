//! A run of the bad night, and a large one.

use std::collections::BTreeMap;

use windlass_engine::store::{Attempt, FocusedJob, Job, JobCounts, JobOfRun, LogLine, LogStream};
use windlass_engine::{JobStatus, RunStatus};
use windlass_web::pages::run::{FailureData, JobData, LogData, OtherRuns, Panel, RunData, RunQuery, View};

const JOBS: [(&str, JobStatus, i64, i64); 9] = [
    ("extract_orders", JobStatus::Successful, 1, 48),
    ("extract_customers", JobStatus::Successful, 1, 31),
    ("extract_stock", JobStatus::Successful, 31, 82),
    ("clean_orders", JobStatus::Successful, 48, 100),
    ("clean_customers", JobStatus::Successful, 31, 58),
    ("join", JobStatus::Successful, 112, 155),
    ("quality_check", JobStatus::Failed, 155, 170),
    ("load_warehouse", JobStatus::Failed, 257, 263),
    ("publish_dashboard", JobStatus::Skipped, 0, 0),
];
const EDGES: [(i64, i64); 8] = [(1, 4), (2, 5), (3, 6), (4, 6), (5, 6), (6, 7), (6, 8), (8, 9)];

fn job_of_run(
    id: i64,
    name: &str,
    status: JobStatus,
    created_at: i64,
    from_s: i64,
    until_s: i64,
) -> JobOfRun {
    let has_run = until_s > 0;
    JobOfRun {
        id,
        name: name.to_owned(),
        kind: "shell".to_owned(),
        queue: "default".to_owned(),
        status,
        waits_for: None,
        attempt: 1,
        max_attempts: 3,
        allow_failure: false,
        upstream_failed: false,
        exit_code: None,
        error: None,
        execute_after: created_at,
        created_at,
        started_at: has_run.then_some(created_at + from_s * 1_000),
        finished_at: has_run.then_some(created_at + until_s * 1_000),
        needed_until: None,
        ready_at: None,
        group_id: None,
    }
}

fn attempt(number: i64, from_ms: i64, until_ms: i64, error: &str) -> Attempt {
    Attempt {
        attempt: number,
        worker_id: Some(3),
        outcome: "failed".to_owned(),
        error: Some(error.to_owned()),
        ready_at: Some(from_ms),
        started_at: Some(from_ms),
        finished_at: until_ms,
        retried_at: None,
    }
}

fn jobs(created_at: i64) -> (Vec<JobOfRun>, BTreeMap<i64, Vec<Attempt>>) {
    let mut jobs: Vec<JobOfRun> = (1..)
        .zip(JOBS)
        .map(|(id, (name, status, from, until))| job_of_run(id, name, status, created_at, from, until))
        .collect();
    let at = |seconds: i64| created_at + seconds * 1_000;
    jobs[2].attempt = 2;
    jobs[5].needed_until = Some(at(100));
    jobs[6].allow_failure = true;
    jobs[6].error = Some("exit code 3".to_owned());
    jobs[7].attempt = 3;
    jobs[7].error = Some("exit code 1".to_owned());
    for job in &mut jobs[3..5] {
        job.needed_until = job.started_at;
    }
    jobs[6].needed_until = jobs[6].started_at;
    jobs[7].needed_until = Some(at(155));
    let attempts = BTreeMap::from([
        (3, vec![attempt(1, at(1), at(21), "exit code 1")]),
        (7, vec![attempt(1, at(155), at(170), "exit code 3")]),
        (
            8,
            vec![
                attempt(1, at(155), at(161), "exit code 1"),
                attempt(2, at(191), at(197), "exit code 1"),
                attempt(3, at(257), at(263), "exit code 1"),
            ],
        ),
    ]);
    (jobs, attempts)
}

fn log(created_at: i64) -> LogData {
    let texts = [
        (LogStream::Stdout, "INFO  reading 48,112 rows from /var/lib/etl/joined.parquet"),
        (LogStream::Stdout, "INFO  opening connection to warehouse:5432 (database=dwh)"),
        (LogStream::Stdout, "WARN  attempt 1 of 3: connection refused, again in 1s"),
        (LogStream::Stdout, "WARN  attempt 2 of 3: connection refused, again in 1s"),
        (LogStream::Stdout, "\u{1b}[33mWARN\u{1b}[0m  attempt 3 of 3: connection refused"),
        (LogStream::Stderr, "Traceback (most recent call last):"),
        (LogStream::Stderr, "  File \"load.py\", line 88, in main"),
        (LogStream::Stderr, "    with psycopg.connect(dsn, connect_timeout=1) as warehouse:"),
        (
            LogStream::Stderr,
            "psycopg.OperationalError: connection to server at \"warehouse\" (10.4.0.12), port 5432 failed: Connection refused",
        ),
        (LogStream::Stderr, "        Is the server running on that host and accepting TCP/IP connections?"),
        (LogStream::Stdout, "<script>alert('from a log')</script> \u{202e}drow"),
        (LogStream::Engine, "exit code 1; last of 3 attempts"),
    ];
    let lines: Vec<LogLine> = (181..)
        .zip(texts)
        .map(|(line, (stream, text))| LogLine {
            job_id: 8,
            attempt: 3,
            line,
            at: created_at + 257_000 + (line - 181) * 317,
            stream,
            text: text.to_owned(),
        })
        .collect();
    LogData {
        attempt: 3,
        attempts: 3,
        last_line: 192,
        lines,
        first_error: Some((189, "Error: exit code 3".to_owned())),
        asked_line: Some(183),
        found: Some(("refused".to_owned(), vec![183, 184, 185, 189])),
        is_open: false,
    }
}

fn job(created_at: i64) -> Job {
    Job {
        id: 8,
        run_id: Some(48162),
        name: Some("load_warehouse".to_owned()),
        kind: "shell".to_owned(),
        queue: "default".to_owned(),
        status: JobStatus::Failed,
        priority: 0,
        execute_after: created_at,
        payload: r#"{"run":"python3 load.py --day 2026-11-21","env":{"DSN":"{{ secrets.dsn }}"}}"#.to_owned(),
        attempt: 3,
        max_attempts: 3,
        failures: 3,
        interruptions: 0,
        max_interruptions: 25,
        allow_failure: false,
        last_error: Some("exit code 1".to_owned()),
        output: None,
        blocked_by: 0,
        worker_id: Some(3),
        cancel_requested_at: None,
        created_at,
        updated_at: created_at,
        started_at: Some(created_at + 257_000),
        finished_at: Some(created_at + 263_000),
        requires: "[]".to_owned(),
        code_version: 0,
        concurrency_key: None,
        concurrency_limit: None,
        waits_for: None,
        upstream_failed: false,
        handler: None,
        exit_code: Some(1),
        deadline_at: None,
        group_id: None,
        item_index: None,
        item: None,
        max_parallel: None,
        root_run_id: None,
        ready_at: None,
    }
}

pub(crate) fn data(now_ms: i64, view: View, panel: Panel) -> RunData {
    let created_at = now_ms - 306 * 60_000;
    let (jobs, attempts) = jobs(created_at);
    let mut counts = JobCounts::default();
    for (status, count) in [(JobStatus::Successful, 6), (JobStatus::Failed, 2), (JobStatus::Skipped, 1)] {
        counts.add(status, count);
    }
    let mut run = crate::runs::run(
        48162,
        "etl-orders",
        RunStatus::Failed,
        r#"{"day":"2026-11-21"}"#,
        created_at,
        263_000,
    );
    run.failed_jobs = 1;
    run.schedule_id = Some(1);
    let focused = FocusedJob {
        id: 8,
        run_id: 48162,
        name: "load_warehouse".to_owned(),
        status: JobStatus::Failed,
        waits_for: None,
        attempt: 3,
        failures: 3,
        started_at: None,
        execute_after: created_at,
        queue: "default".to_owned(),
        queue_is_paused: false,
        concurrency_key: None,
        key_holder: None,
        event_name: None,
        error: Some("exit code 1".to_owned()),
    };
    let error = log(created_at).lines[8].text.clone();
    let job = job(created_at);
    RunData {
        query: RunQuery { view, panel, find: Some("refused".to_owned()), ..RunQuery::default() },
        run,
        version: Some(7),
        schedule: Some("hourly".to_owned()),
        slot_holders: vec![],
        definitions: 1,
        parent: None,
        tree: vec![],
        usual_ms: Some(190_000),
        counts,
        focused: Some(focused.clone()),
        matching: 9,
        jobs,
        edges: EDGES.to_vec(),
        middle: None,
        trigger: None,
        cancelled_by: None,
        failure: Some(FailureData {
            job: focused,
            others: OtherRuns::Some {
                run_ids: vec![48196, 48188, 48177],
                first_at: created_at + 263_000,
                known_since: None,
            },
            last_successful: Some((48153, created_at - 3_600_000)),
            first_error: Some((189, error)),
            called: None,
        }),
        job: Some(JobData {
            attempts: attempts[&8].clone(),
            job,
            log: Some(log(created_at)),
            reasons: vec!["It is over: exit code 1.".to_owned()],
            definition: Some("{\n  \"run\": \"python3 load.py\"\n}".to_owned()),
            artifacts: vec![],
            needs: vec!["join".to_owned()],
            approval: None,
            items: None,
            is_group: false,
            started_run: None,
        }),
        attempts,
    }
}

/// A run of ten thousand jobs that still runs, after a night without a worker.
pub(crate) fn large(now_ms: i64) -> RunData {
    let created_at = now_ms - 12 * 3_600_000;
    let mut counts = JobCounts::default();
    for (status, count) in [
        (JobStatus::Successful, 6_120),
        (JobStatus::Failed, 3),
        (JobStatus::Running, 8),
        (JobStatus::Pending, 3_869),
    ] {
        counts.add(status, count);
    }
    let jobs: Vec<JobOfRun> = (0..200)
        .map(|at| {
            let (status, from, until) = match at {
                0..3 => (JobStatus::Failed, 40 + at * 9, 70 + at * 11),
                3..11 => (JobStatus::Running, 43_000 + at * 15, 43_200),
                _ => (JobStatus::Successful, (at - 11) * 2, (at - 11) * 2 + 15 + at % 40),
            };
            job_of_run(
                1_000 + at,
                &format!("resize[{}]", (at * 37) % 10_000),
                status,
                created_at,
                from,
                until,
            )
        })
        .collect();
    let attempts = (0..3)
        .map(|at| {
            let from = created_at + (40 + at * 9) * 1_000;
            (1_000 + at, vec![attempt(1, from, from + 30_000, "exit code 137")])
        })
        .collect();
    let mut run = crate::runs::run(49000, "resize-images", RunStatus::Running, "{}", created_at, 0);
    run.total_jobs = 10_000;
    RunData {
        run,
        counts,
        jobs,
        attempts,
        matching: 10_000,
        failure: None,
        job: None,
        focused: None,
        ..data(now_ms, View::Timeline, Panel::Log)
    }
}
