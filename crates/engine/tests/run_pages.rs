//! What pages about runs read: the job to look at first, counts, groups of failures, a histogram, usual durations, and
//! windows of the jobs of a run.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use support::Bench;
use windlass_engine::store::{
    Count, FAILURES_MAX, JobOrder, JobPart, JobWindow, KeyHolder, KeyOf, KeyUser, OldestJob, RunFilter,
    TimeRange, WINDOW_MAX, WaitingKey,
};
use windlass_engine::{Error, JobStatus, RunStatus, WaitsFor};

const RUN: &str = "INSERT INTO runs (id, workflow, status, total_jobs, failed_jobs, created_at, started_at, finished_at) VALUES ";
const JOB: &str =
    "INSERT INTO jobs (id, run_id, name, kind, status, worker_id, waits_for, concurrency_key, execute_after,
                                     started_at, finished_at, last_error, allow_failure) VALUES ";

fn bench(statements: &[String]) -> Bench {
    let bench = Bench::new();
    let raw = bench.raw();
    statements.iter().for_each(|statement| raw.execute(statement));
    bench
}

fn exact(number: i64) -> Count {
    Count { number, is_exact: true }
}

#[test]
fn the_job_that_failed_is_looked_at_before_one_that_runs_and_that_before_one_that_waits() {
    let bench = bench(&[
        format!(
            "{RUN} (1, 'w', 'RUNNING', 4, 1, 0, 0, NULL), (2, 'w', 'RUNNING', 3, 0, 0, 0, NULL),
                       (3, 'w', 'RUNNING', 3, 0, 0, 0, NULL), (4, 'w', 'RUNNING', 1, 0, 0, 0, NULL),
                       (5, 'w', 'SUCCESSFUL', 1, 0, 0, 0, 9), (6, 'w', 'PENDING', 1, 0, 0, NULL, NULL)"
        ),
        "INSERT INTO queues (name, paused_at) VALUES ('mail', 5)".to_owned(),
        format!(
            "{JOB}
            (10, 1, 'late', 'shell', 'FAILED', NULL, NULL, NULL, 0, 1, 80, 'second', 0),
            (11, 1, 'early', 'shell', 'FAILED', NULL, NULL, NULL, 0, 1, 40, 'first\nmore', 0),
            (12, 1, 'allowed', 'shell', 'FAILED', NULL, NULL, NULL, 0, 1, 20, 'allowed', 1),
            (13, 1, 'running', 'shell', 'RUNNING', 1, NULL, NULL, 0, 1, NULL, NULL, 0),
            (20, 2, 'waits', 'shell', 'WAITING', NULL, 'event', NULL, 0, NULL, NULL, NULL, 0),
            (21, 2, 'running', 'shell', 'RUNNING', 1, NULL, NULL, 0, 7, NULL, NULL, 0),
            (22, 2, 'blocked', 'shell', 'BLOCKED', NULL, NULL, NULL, 0, NULL, NULL, NULL, 0),
            (30, 3, 'waits', 'shell', 'WAITING', NULL, 'slot', 'key', 0, NULL, NULL, NULL, 0),
            (31, 3, 'done', 'shell', 'SUCCESSFUL', NULL, NULL, NULL, 0, 1, 2, NULL, 0),
            (32, 3, 'later', 'shell', 'SCHEDULED', NULL, NULL, NULL, 90, NULL, NULL, NULL, 0),
            (40, 4, 'holder', 'shell', 'RUNNING', 1, NULL, 'key', 0, 1, NULL, NULL, 0),
            (50, 5, 'done', 'shell', 'SUCCESSFUL', NULL, NULL, NULL, 0, 1, 2, NULL, 0),
            (60, 6, 'send', 'shell', 'PENDING', NULL, NULL, NULL, 0, NULL, NULL, NULL, 0)"
        ),
        "UPDATE jobs SET queue = 'mail' WHERE id = 60".to_owned(),
    ]);
    let found = bench.store.runs().focused_jobs(&[1, 2, 3, 5, 6, 99]).unwrap();
    let names: Vec<(i64, &str)> = found.iter().map(|(run_id, job)| (*run_id, job.name.as_str())).collect();
    assert_eq!(names, [(1, "early"), (2, "running"), (3, "waits"), (6, "send")]);
    assert_eq!(found[&1].error.as_deref(), Some("first\nmore"));
    assert_eq!((found[&2].status, found[&2].started_at), (JobStatus::Running, Some(7)));
    assert_eq!((found[&3].waits_for, found[&3].key_holder), (Some(WaitsFor::Slot), Some(KeyHolder::Run(4))));
    assert!(found[&6].queue_is_paused && !found[&1].queue_is_paused);
    let counts = bench.store.runs().job_counts_of_small(&[1, 2, 99]).unwrap();
    assert_eq!(counts.keys().copied().collect::<Vec<_>>(), [1, 2]);
    assert_eq!(
        (counts[&1].of(JobStatus::Failed), counts[&1].allowed_failures(), counts[&1].total()),
        (3, 1, 4)
    );
}

#[test]
fn failures_are_grouped_by_workflow_job_and_first_line_of_the_error() {
    let bench = bench(&[
        format!(
            "{RUN} (1, 'etl', 'FAILED', 2, 1, 0, 0, 9), (2, 'etl', 'FAILED', 1, 1, 0, 0, 9),
                       (3, 'sync', 'FAILED', 1, 1, 0, 0, 9), (4, 'sync', 'SUCCESSFUL', 1, 0, 0, 0, 9),
                       (5, 'old', 'FAILED', 1, 1, 0, 0, 9), (6, 'late', 'FAILED', 1, 0, 0, 0, 4001),
                       (7, 'sync', 'FAILED', 1, 1, 0, 0, 4101)"
        ),
        format!(
            "{JOB}
            (10, 1, 'load', 'shell', 'FAILED', NULL, NULL, NULL, 0, 1, 1000, 'refused\na', 0),
            (11, 1, 'after', 'shell', 'FAILED', NULL, NULL, NULL, 0, 1, 1500, 'because of load', 0),
            (20, 2, 'load', 'shell', 'FAILED', NULL, NULL, NULL, 0, 1, 2000, 'refused\nb', 0),
            (30, 3, 'load', 'shell', 'FAILED', NULL, NULL, NULL, 0, 1, 3000, 'refused', 0),
            (40, 4, 'load', 'shell', 'FAILED', NULL, NULL, NULL, 0, 1, 3100, 'allowed', 1),
            (50, 5, 'load', 'shell', 'FAILED', NULL, NULL, NULL, 0, 1, 900, 'refused', 0),
            (60, NULL, NULL, 'mail', 'FAILED', NULL, NULL, NULL, 0, 1, 3200, 'refused\nx', 0),
            (61, NULL, NULL, 'mail', 'FAILED', NULL, NULL, NULL, 0, 1, 3300, 'refused', 0),
            (62, NULL, NULL, 'mail', 'FAILED', NULL, NULL, NULL, 0, 1, 800, 'refused', 0),
            (70, 6, 'slow', 'shell', 'CANCELLED', NULL, NULL, NULL, 0, 1, 4000, 'stopped', 0),
            (80, 7, 'died', 'shell', 'FAILED', NULL, NULL, NULL, 0, 1, 4100, 'the worker died', 0)"
        ),
        format!("{RUN} (8, 'late', 'FAILED', 1, 0, 0, 0, 999), (9, 'late', 'FAILED', 1, 0, 0, 0, 5000)"),
        "UPDATE runs SET stop_reason = 'timed_out' WHERE id IN (6, 8)".to_owned(),
    ]);
    let failures = bench.store.runs().failures_since(1_000).unwrap();
    let groups: Vec<(&str, &str, &str, &[i64])> = failures
        .groups
        .iter()
        .map(|group| (&*group.workflow, &*group.job, &*group.error, &*group.run_ids))
        .collect();
    assert_eq!(
        groups,
        [
            ("", "mail", "refused", &[][..]),
            ("etl", "load", "refused", &[2, 1][..]),
            ("sync", "died", "the worker died", &[7][..]),
            ("late", "", "the run reached its timeout", &[6][..]),
            ("sync", "load", "refused", &[3][..]),
        ]
    );
    assert_eq!(failures.groups[0].job_ids, [61, 60], "jobs without a run");
    assert_eq!((failures.runs(), failures.jobs(), failures.since_ms), (5, 2, 1_000));
    assert_eq!((failures.groups[1].first_at, failures.groups[1].last_at), (1_000, 2_000));
}

#[test]
fn failures_say_since_when_they_are_complete() {
    let many = FAILURES_MAX + 20;
    let bench = bench(&[
        format!("{RUN} (1, 'w', 'FAILED', 1, 1, 0, 0, 9)"),
        format!(
            "INSERT INTO jobs (run_id, name, kind, status, finished_at, last_error)
             WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {many})
             SELECT 1, 'j' || n, 'shell', 'FAILED', n * 10, 'error' FROM numbers"
        ),
    ]);
    assert_eq!(bench.store.runs().failures_since(0).unwrap().since_ms, 210);
}

#[test]
fn runs_are_counted_by_state_and_in_parts_of_time() {
    let hour = 3_600_000;
    let rows: Vec<String> = (1..=48)
        .map(|n| {
            let status = if n % 8 == 0 { "FAILED" } else { "SUCCESSFUL" };
            format!(
                "({n}, '{}', '{status}', 1, 0, {}, 0, 9)",
                if n % 2 == 0 { "even" } else { "odd" },
                n * hour / 2 - 1
            )
        })
        .collect();
    let bench = bench(&[
        format!("{RUN} {}", rows.join(", ")),
        format!(
            "{RUN} (90, 'even', 'RUNNING', 1, 0, {0}, 0, NULL), (91, 'odd', 'PENDING', 1, 0, {0}, NULL, NULL)",
            24 * hour
        ),
        // Runs of jobs are not counted.
        format!("{RUN} (92, 'even', 'SUCCESSFUL', 1, 0, {}, 0, 9)", 24 * hour),
        "UPDATE runs SET parent_job_id = 1, root_run_id = 1, parent_attempt = 1 WHERE id = 92".to_owned(),
    ]);
    let parts = bench.store.runs().histogram(0, 24 * hour, 6).unwrap();
    let counted: Vec<(i64, Count, Count)> =
        parts.iter().map(|part| (part.from_ms / hour, part.successful, part.failed)).collect();
    let expected: Vec<(i64, Count, Count)> = (0..6).map(|part| (part * 4, exact(7), exact(1))).collect();
    assert_eq!(counted, expected);
    assert!(matches!(bench.store.runs().histogram(5, 5, 3), Err(Error::Invalid { .. })));
    assert!(matches!(bench.store.runs().histogram(0, 5, 101), Err(Error::Invalid { .. })));

    let counts = bench.store.runs().counts(None, TimeRange::default()).unwrap();
    let of = |status| counts.iter().find(|(known, _)| *known == status).unwrap().1;
    assert_eq!(
        [RunStatus::Pending, RunStatus::Running, RunStatus::Successful].map(of),
        [1, 1, 42].map(exact)
    );
    assert_eq!([RunStatus::Failed, RunStatus::Cancelled].map(of), [6, 0].map(exact));
    let late = TimeRange { from_ms: Some(23 * hour), until_ms: None };
    let counts = bench.store.runs().counts(Some("odd"), late).unwrap();
    assert_eq!(counts.iter().map(|(_, count)| count.number).collect::<Vec<_>>(), [1, 0, 1, 0, 0]);
}

#[test]
fn the_usual_duration_is_the_median_of_the_last_twenty_successes() {
    let rows: Vec<String> = (1..=30)
        // The ten oldest took longer than all others.
        .map(|n| {
            format!("({n}, 'w', 'SUCCESSFUL', 1, 0, {n}, 1000, {})", if n <= 10 { 99_000 } else { 1_000 + n })
        })
        .collect();
    let bench = bench(&[
        format!("{RUN} {}", rows.join(", ")),
        format!("{RUN} (31, 'w', 'FAILED', 1, 1, 0, 1000, 500000), (32, 'v', 'FAILED', 1, 1, 0, 1000, 2000)"),
    ]);
    let usual = bench.store.runs().usual_durations(&["v", "w", "none"]).unwrap();
    assert_eq!(usual.into_iter().collect::<Vec<_>>(), [("w".to_owned(), 21)]);
    assert_eq!(bench.store.runs().last_successful_before("w", 12).unwrap(), Some((11, 11)));
    assert_eq!(bench.store.runs().last_successful_before("v", 99).unwrap(), None);
}

/// The lists of each workflow, without those that jobs have started, are the same as if it was asked alone.
#[test]
fn the_newest_runs_of_each_workflow_are_found_together() {
    let statuses = ["SUCCESSFUL", "FAILED", "CANCELLED", "PENDING", "RUNNING", "SUCCESSFUL", "SUCCESSFUL"];
    let rows: Vec<String> = (1..=120)
        .map(|n: i64| {
            let status = statuses[(n * n % 11 % 7) as usize];
            let finished = if matches!(status, "PENDING" | "RUNNING") { "NULL" } else { "9" };
            let workflow = ["a", "b", "c", "other"][(n * 7 % 10 % 4) as usize];
            format!("({n}, '{workflow}', '{status}', 1, 0, {n}, 1, {finished})")
        })
        .collect();
    let bench = bench(&[
        format!("{RUN} {}", rows.join(", ")),
        "UPDATE runs SET parent_job_id = id, parent_attempt = 1, root_run_id = 1 WHERE id % 9 = 0".to_owned(),
    ]);
    for limit in [1, 7, 100] {
        let newest = bench.store.runs().newest_of_each(&["a", "b", "c", "none"], limit).unwrap();
        assert_eq!(newest.keys().collect::<Vec<_>>(), ["a", "b", "c"]);
        for (workflow, runs) in newest {
            let filter = RunFilter { workflow: Some(workflow), ..RunFilter::newest(limit) };
            assert_eq!(runs, bench.store.runs().list(&filter).unwrap().rows, "{filter:?}");
        }
    }
    assert!(bench.store.runs().newest_of_each(&[], 30).unwrap().is_empty());
}

#[test]
fn a_window_of_a_run_has_the_failed_and_running_jobs_first() {
    let bench = bench(&[
        format!("{RUN} (1, 'w', 'RUNNING', 7, 1, 0, 0, NULL), (2, 'w', 'RUNNING', 1, 0, 0, 0, NULL)"),
        format!(
            "{JOB}
            (10, 1, 'done', 'shell', 'SUCCESSFUL', NULL, NULL, NULL, 0, 1, 50, NULL, 0),
            (11, 1, 'blocked', 'shell', 'BLOCKED', NULL, NULL, NULL, 0, NULL, NULL, NULL, 0),
            (12, 1, 'Load[0]', 'shell', 'RUNNING', 1, NULL, NULL, 0, 60, NULL, NULL, 0),
            (13, 1, 'load[1]', 'shell', 'FAILED', NULL, NULL, NULL, 0, 60, 70, 'refused', 0),
            (14, 1, 'allowed', 'shell', 'FAILED', NULL, NULL, NULL, 0, 60, 70, 'refused', 1),
            (15, 1, 'waits', 'shell', 'WAITING', NULL, 'approval', NULL, 0, NULL, NULL, NULL, 0),
            (20, 2, 'other', 'shell', 'FAILED', NULL, NULL, NULL, 0, 1, 2, NULL, 0)"
        ),
        "INSERT INTO job_dependencies (parent_id, child_id) VALUES (10, 12), (10, 11)".to_owned(),
        "INSERT INTO job_attempts (job_id, attempt, outcome, error, started_at, finished_at) VALUES
            (13, 1, 'failed', 'a', 1, 2), (13, 2, 'timed_out', 'b', 3, 4), (20, 1, 'failed', 'c', 1, 2)"
            .to_owned(),
        "UPDATE jobs SET phase = 1 WHERE id = 15".to_owned(),
        "UPDATE jobs SET group_id = 15 WHERE id IN (12, 13)".to_owned(),
    ]);
    let jobs = bench.store.jobs();
    let all = JobWindow {
        statuses: vec![],
        name: None,
        part: JobPart::All,
        order: JobOrder::Attention,
        offset: 0,
        limit: 10,
    };
    let part = |part| JobWindow { part, ..all.clone() };
    let ids = |window: &JobWindow| {
        let found = jobs.window(1, window).unwrap();
        (found.rows.iter().map(|job| job.id).collect::<Vec<_>>(), found.matching)
    };
    assert_eq!(ids(&all), (vec![13, 12, 14, 15, 10, 11], 6));
    assert_eq!(ids(&JobWindow { order: JobOrder::Definition, ..all.clone() }).0, [10, 11, 12, 13, 14, 15]);
    assert_eq!(ids(&JobWindow { offset: 2, limit: 2, ..all.clone() }), (vec![14, 15], 6));
    assert_eq!(ids(&JobWindow { name: Some("LOAD".to_owned()), ..all.clone() }), (vec![13, 12], 2));
    assert_eq!(ids(&JobWindow { statuses: vec![JobStatus::Failed], ..all.clone() }), (vec![13, 14], 2));
    assert_eq!(ids(&part(JobPart::ItemsOf(15))), (vec![13, 12], 2));
    assert_eq!(ids(&part(JobPart::WithoutItems)), (vec![14, 15, 10, 11], 4));
    for (offset, ids_of_end) in [(5, vec![11]), (6, vec![]), (9, vec![])] {
        assert_eq!(ids(&JobWindow { offset, ..all.clone() }), (ids_of_end, 6), "the end");
    }
    let first: Vec<i64> = jobs.first_of_each(&[1, 2], 3).unwrap()[&1].iter().map(|job| job.id).collect();
    assert_eq!(first, [10, 11, 14], "without items");
    let rows = jobs.window(1, &all).unwrap().rows;
    assert_eq!((rows[1].needed_until, rows[3].waits_for), (Some(50), Some(WaitsFor::Approval)));
    assert_eq!(rows[3].needed_until, Some(70), "a handler is ready when the other jobs are over");
    let attempts = jobs.attempts_of_each(&[13, 14]).unwrap();
    assert_eq!(attempts.len(), 1);
    assert_eq!(attempts[&13].iter().map(|attempt| attempt.finished_at).collect::<Vec<_>>(), [2, 4]);
    for limit in [0, WINDOW_MAX + 1] {
        assert!(matches!(jobs.window(1, &JobWindow { limit, ..all.clone() }), Err(Error::Invalid { .. })));
    }
}

#[test]
fn the_jobs_around_one_are_read_with_their_edges_and_no_more() {
    let bench = bench(&[
        format!("{RUN} (1, 'w', 'RUNNING', 5000, 0, 0, 0, NULL)"),
        "INSERT INTO jobs (id, run_id, name, kind, status)
         WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 5000)
         SELECT n, 1, 'a' || n, 'shell', 'BLOCKED' FROM numbers"
            .to_owned(),
        // 1 is needed by 2 to 4000; 4000, 4001 and so on are a chain.
        "INSERT INTO job_dependencies (parent_id, child_id) SELECT 1, id FROM jobs WHERE id BETWEEN 2 AND 4000"
            .to_owned(),
        "INSERT INTO job_dependencies (parent_id, child_id) SELECT id, id + 1 FROM jobs WHERE id BETWEEN 4000 AND 4999"
            .to_owned(),
    ]);
    let jobs = bench.store.jobs();
    let ids = |job_id, most| {
        let around = jobs.around(job_id, most).unwrap();
        (around.jobs.iter().map(|job| job.id).collect::<Vec<_>>(), around.edges)
    };
    assert_eq!(
        ids(4_998, 4),
        (vec![4_996, 4_997, 4_998, 4_999], vec![(4_996, 4_997), (4_997, 4_998), (4_998, 4_999)])
    );
    assert_eq!(ids(4_000, 4), (vec![1, 2, 4_000, 4_001], vec![(1, 2), (1, 4_000), (4_000, 4_001)]));
    assert_eq!(ids(1, 60).0.len(), 60);
    assert_eq!(ids(9_999, 60), (vec![], vec![]));
}

/// A run with 10,000 jobs, of which the indexes find the ones that matter.
#[test]
fn the_job_that_failed_is_found_among_ten_thousand() {
    let bench = bench(&[
        format!(
            "{RUN} (1, 'w', 'FAILED', 10000, 1, 0, 100, 900), (2, 'w', 'RUNNING', 10000, 0, 0, 100, NULL)"
        ),
        "INSERT INTO jobs (id, run_id, name, kind, status, finished_at)
         WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 20000)
         SELECT n, (n - 1) / 10000 + 1, 'a' || n, 'shell', 'SUCCESSFUL', 200 FROM numbers"
            .to_owned(),
        format!(
            "{JOB} (30001, 1, 'z1', 'shell', 'FAILED', NULL, NULL, NULL, 0, 1, 700, 'late', 0),
                   (30002, 1, 'z2', 'shell', 'FAILED', NULL, NULL, NULL, 0, 1, 600, 'refused', 0),
                   (30003, 1, 'z3', 'shell', 'FAILED', NULL, NULL, NULL, 0, 1, 500, 'allowed', 1),
                   (30004, 2, 'z4', 'shell', 'RUNNING', 1, NULL, NULL, 0, 300, NULL, NULL, 0)"
        ),
        "UPDATE jobs SET status = 'WAITING', waits_for = 'event', finished_at = NULL WHERE id = 10001"
            .to_owned(),
    ]);
    let found = bench.store.runs().focused_jobs(&[1, 2]).unwrap();
    assert_eq!((found[&1].id, found[&1].error.as_deref()), (30_002, Some("refused")));
    assert_eq!((found[&2].id, found[&2].status), (30_004, JobStatus::Running));
    bench.raw().execute("UPDATE jobs SET status = 'SUCCESSFUL', finished_at = 5 WHERE id = 30004");
    assert_eq!(bench.store.runs().focused_jobs(&[2]).unwrap()[&2].id, 10_001);
    bench.raw().execute("UPDATE jobs SET status = 'SUCCESSFUL', waits_for = NULL WHERE id = 10001");
    bench.raw().execute("UPDATE jobs SET status = 'PENDING', finished_at = NULL WHERE id = 19999");
    assert_eq!(bench.store.runs().focused_jobs(&[2]).unwrap()[&2].id, 19_999);
    // Those that only wait, far behind the first thousand.
    let of_second = || bench.store.runs().focused_jobs(&[2]).unwrap().remove(&2).unwrap();
    bench.raw().execute(
        "UPDATE jobs SET status = 'WAITING', waits_for = 'approval', finished_at = NULL WHERE id = 19998",
    );
    assert_eq!((of_second().id, of_second().waits_for), (19_998, Some(WaitsFor::Approval)));
    bench.raw().execute(
        "UPDATE jobs SET status = 'SUCCESSFUL', waits_for = NULL, finished_at = 5 WHERE id IN (19998, 19999)",
    );
    bench.raw().execute("UPDATE jobs SET status = 'SCHEDULED', finished_at = NULL WHERE id = 19997");
    assert_eq!((of_second().id, of_second().status), (19_997, JobStatus::Scheduled));
}

#[test]
fn keys_say_who_waits_for_them_and_who_holds_them() {
    let bench = bench(&[
        format!("{RUN} (1, 'w', 'RUNNING', 1, 0, 5, 5, NULL), (2, 'w', 'PENDING', 1, 0, 7, NULL, NULL)"),
        "UPDATE runs SET concurrency_key = 'day', concurrency_limit = 1, on_full = 'wait'".to_owned(),
        "UPDATE runs SET waits_for = 'slot' WHERE id = 2".to_owned(),
        format!(
            "{JOB} (10, 1, 'a', 'shell', 'RUNNING', 1, NULL, 'tenant', 0, 1, NULL, NULL, 0),
                   (11, 1, 'b', 'shell', 'WAITING', NULL, 'slot', 'tenant', 40, NULL, NULL, NULL, 0),
                   (12, NULL, NULL, 'shell', 'WAITING', NULL, 'slot', 'tenant', 30, NULL, NULL, NULL, 0),
                   (13, NULL, NULL, 'shell', 'RUNNING', 1, NULL, 'free', 0, NULL, NULL, NULL, 0),
                   (14, NULL, NULL, 'shell', 'PENDING', NULL, NULL, NULL, 90, NULL, NULL, NULL, 0),
                   (15, NULL, NULL, 'shell', 'PENDING', NULL, NULL, NULL, 80, NULL, NULL, NULL, 0)"
        ),
        "UPDATE jobs SET concurrency_limit = 1 WHERE concurrency_key IS NOT NULL".to_owned(),
        "UPDATE jobs SET priority = 9 WHERE id = 14".to_owned(),
    ]);
    let keys = bench.store.queues().waiting_keys().unwrap();
    let user = |job_id, run_id| KeyUser { job_id, run_id };
    let expected = [
        WaitingKey {
            name: "tenant".to_owned(),
            of: KeyOf::Jobs,
            limit: 1,
            waiting: exact(2),
            first: Some(user(Some(12), None)),
            since: Some(30),
            holders: vec![user(Some(10), Some(1))],
        },
        WaitingKey {
            name: "day".to_owned(),
            of: KeyOf::Runs,
            limit: 1,
            waiting: exact(1),
            first: Some(user(None, Some(2))),
            since: Some(7),
            holders: vec![user(None, Some(1))],
        },
    ];
    assert_eq!(keys, expected);
    let oldest = bench.store.queues().oldest_jobs().unwrap();
    assert_eq!(oldest["default"], OldestJob { job_id: 15, run_id: None, since: 80 });
    assert_eq!(bench.store.queues().oldest_jobs_from("default").unwrap(), oldest);
    assert!(bench.store.queues().oldest_jobs_from("e").unwrap().is_empty());
    let holders = bench.store.runs().slot_holders_of(&["day", "none"]).unwrap();
    assert_eq!((holders["day"].clone(), holders["none"].clone()), (vec![1], vec![]));
}

#[test]
fn counts_of_many_runs_are_those_of_each() {
    let bench = bench(&[
        format!(
            "{RUN} (1, 'w', 'RUNNING', 2, 0, 0, 0, NULL), (2, 'w', 'SUCCESSFUL', 1, 0, 0, 0, 9), (3, 'w', 'PENDING', 0, 0, 0, NULL, NULL)"
        ),
        format!(
            "{JOB} (10, 1, 'a', 'shell', 'FAILED', NULL, NULL, NULL, 0, 1, 2, 'x', 1),
                   (11, 1, 'b', 'shell', 'PENDING', NULL, NULL, NULL, 0, NULL, NULL, NULL, 0),
                   (20, 2, 'a', 'shell', 'SUCCESSFUL', NULL, NULL, NULL, 0, 1, 2, NULL, 0)"
        ),
    ]);
    let runs = bench.store.runs();
    let (counts, interrupted) =
        (runs.job_counts_of(&[1, 2, 3]).unwrap(), runs.interrupted_of(&[1, 2, 3]).unwrap());
    for id in [1, 2, 3] {
        assert_eq!(counts.get(&id).copied().unwrap_or_default(), runs.job_counts(id).unwrap(), "{id}");
        assert_eq!(interrupted.contains(&id), runs.is_interrupted(id).unwrap(), "{id}");
    }
    assert_eq!(interrupted.len(), 2);
}
