//! Everything that people's lists and reports read, for the tests of its plans.

use windlass_engine::store::{
    AuditFilter, CredentialKind, Cursor, DeadLetterCursor, DeadLetters, JobFilter, JobOrder, JobPart,
    JobWindow, LogPosition, ParamFilter, RunFilter, StartedBy, TimeRange, Watched,
};
use windlass_engine::{JobStatus, RunStatus, Store};

/// Rows as of a database that was used for long: finished runs and jobs, and a few that are not.
pub const FILL: [&str; 11] = [
    "INSERT INTO runs (workflow, status, params, run_key, created_at, started_at, finished_at)
     WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 60000)
     SELECT CASE n % 1000 WHEN 7 THEN 'rare' ELSE 'often' END,
            CASE n % 500 WHEN 3 THEN 'FAILED' ELSE 'SUCCESSFUL' END, '{}', CAST(n AS TEXT),
            n * 1000, n * 1000, n * 1000 + 1
     FROM numbers",
    "INSERT INTO runs (workflow, status, unfinished_jobs) VALUES ('often', 'PENDING', 2), ('rare', 'RUNNING', 1)",
    "INSERT INTO runs (id, workflow, status, total_jobs, waits_for, concurrency_key, concurrency_limit, on_full, started_at)
     VALUES (60101, 'often', 'RUNNING', 0, NULL, 'key', 1, 'wait', NULL),
            (60102, 'often', 'PENDING', 0, 'slot', 'key', 1, 'wait', NULL),
            (60103, 'often', 'RUNNING', 5000, NULL, NULL, NULL, NULL, 59000000)",
    "INSERT INTO run_tags (tag, run_id) SELECT CASE workflow WHEN 'rare' THEN 'rare' ELSE 'often' END, id FROM runs",
    // Few jobs in many ids, so that the ids of a search are a small part of them.
    "INSERT INTO jobs (id, run_id, name, kind, status, last_error, execute_after, created_at, finished_at)
     WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 120000)
     SELECT n * 20, n / 2 + 1, CASE n % 2 WHEN 0 THEN 'a' ELSE 'b' END, 'noop',
            CASE n % 500 WHEN 3 THEN 'FAILED' ELSE 'SUCCESSFUL' END,
            CASE n % 500 WHEN 3 THEN 'error' END, n * 500, n * 500, n * 500
     FROM numbers",
    "INSERT INTO jobs (run_id, name, kind, status, worker_id, concurrency_key, execute_after, updated_at,
                       waits_for) VALUES
     (60001, 'c', 'noop', 'PENDING', NULL, NULL, 0, 0, NULL), (60001, 'd', 'noop', 'BLOCKED', NULL, NULL, 0, 0, NULL),
     (NULL, NULL, 'noop', 'RUNNING', 1, NULL, 0, 0, NULL), (NULL, NULL, 'noop', 'SCHEDULED', NULL, NULL, 0, 0, NULL),
     (NULL, NULL, 'noop', 'WAITING', NULL, 'key', 0, 0, 'slot')",
    "INSERT INTO jobs (id, run_id, name, kind, status, execute_after, updated_at, waits_for)
     WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 500)
     SELECT 3000000 + n, 50000 + n, 'release', 'approval', 'WAITING', n, n, 'approval' FROM numbers",
    "INSERT INTO job_logs (job_id, attempt, line, at, stream, text)
     WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 20000)
     SELECT (n / 10 + 1) * 20, 1, n % 10, n, 'stdout', 'text' FROM numbers",
    "INSERT INTO job_dependencies (parent_id, child_id)
     WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 20000)
     SELECT n * 20, (n + 1) * 20 FROM numbers",
    "INSERT INTO job_attempts (job_id, attempt, outcome, finished_at)
     WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 20000)
     SELECT n * 20, 1, 'failed', n * 500 FROM numbers",
    "INSERT INTO audit (at, caller, action, subject)
     WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 60000)
     SELECT n * 1000, 'ada', 'cancel a run', 'run 1' FROM numbers",
];

/// Filters of runs that indexes answer.
pub fn indexed_runs() -> Vec<RunFilter> {
    let newest = || RunFilter::newest(20);
    let rare = || Some("rare".to_owned());
    let statuses = vec![RunStatus::Failed, RunStatus::Running];
    let created = TimeRange { from_ms: Some(10_000_000), until_ms: Some(10_100_000) };
    let page = Cursor { before: Some(30_000), after: Some(100), limit: 20 };
    vec![
        newest(),
        RunFilter { cursor: page, ..newest() },
        RunFilter { workflow: rare(), ..newest() },
        RunFilter { workflow: Some("often".to_owned()), ..newest() },
        RunFilter { workflow: Some("none".to_owned()), ..newest() },
        RunFilter { workflow: rare(), statuses: statuses.clone(), cursor: page, ..newest() },
        RunFilter { statuses: statuses.clone(), ..newest() },
        RunFilter { statuses: vec![RunStatus::Cancelled], ..newest() },
        RunFilter { statuses: vec![RunStatus::Successful], cursor: page, ..newest() },
        RunFilter { created, ..newest() },
        RunFilter { created, workflow: rare(), statuses, ..newest() },
        RunFilter { tag: rare(), ..newest() },
        RunFilter { tag: Some("often".to_owned()), cursor: page, ..newest() },
        RunFilter { tag: Some("often".to_owned()), created, ..newest() },
        RunFilter { tag: rare(), run_key: Some("777".to_owned()), ..newest() },
        RunFilter { run_key: Some("777".to_owned()), ..newest() },
        RunFilter { run_key: Some("none".to_owned()), created, ..newest() },
    ]
}

/// Filters of jobs that indexes answer.
pub fn indexed_jobs() -> Vec<JobFilter> {
    let newest = || JobFilter::newest(20);
    vec![
        newest(),
        JobFilter { run_id: Some(500), ..newest() },
        JobFilter { run_id: Some(500), name: Some("b".to_owned()), ..newest() },
        JobFilter { statuses: vec![JobStatus::Failed], ..newest() },
        JobFilter { statuses: vec![JobStatus::Pending, JobStatus::Running], ..newest() },
        JobFilter { statuses: vec![JobStatus::Scheduled, JobStatus::Waiting], ..newest() },
        JobFilter { created: TimeRange { from_ms: Some(59_000_000), until_ms: None }, ..newest() },
        JobFilter { run_id: Some(500), workflow: Some("often".to_owned()), ..newest() },
        JobFilter { statuses: vec![JobStatus::Pending], workflow: Some("none".to_owned()), ..newest() },
    ]
}

/// Everything that lists and reports read by indexes.
pub fn read_by_indexes(store: &Store) {
    for filter in indexed_runs() {
        store.runs().list_full(&filter).unwrap();
    }
    for filter in indexed_jobs() {
        store.jobs().list_full(&filter).unwrap();
    }
    read_for_pages(store);
    read_for_traces(store);
    store.upkeep().health().unwrap();
    store.upkeep().health_for_pages().unwrap();
    store.upkeep().metrics(Some(59_990_000)).unwrap();
    let callers = [CredentialKind::Token, CredentialKind::Session].map(|kind| (kind, "none".to_owned()));
    let watched =
        Watched { run_ids: [500, 60_001].into(), job_ids: [100, 120].into(), callers: callers.into() };
    assert!(store.upkeep().fingerprints(&watched).unwrap().valid_callers.is_empty());
    store.logs().after(LogPosition { job_id: 100, attempt: 1, line: 3 }, 5).unwrap();
    store.logs().last(100, 1, 5).unwrap();
    store.jobs().broken_before(100).unwrap();
    store.jobs().needed_by(&(1_000..1_200).collect::<Vec<i64>>()).unwrap();
    store.jobs().of_run_after(500, 1_000, 20).unwrap();
    store.access().link_owner("none").unwrap();
    store.runs().definitions(500).unwrap();
    let made = TimeRange { from_ms: Some(30_000_000), until_ms: Some(30_010_000) };
    let changes = store.access().audit(&AuditFilter { made, ..AuditFilter::default() }).unwrap();
    assert_eq!((changes.rows.len(), changes.rows[0].at), (10, 30_009_000));
    let which = DeadLetters {
        statuses: vec![JobStatus::Failed],
        kind: Some("none".to_owned()),
        queue: None,
        error: None,
        before_ms: 100_000_000,
    };
    store.jobs().count_dead_letters(&which).unwrap();
    store.jobs().retry_next(&which, DeadLetterCursor::default()).unwrap();
    assert_eq!(store.logs().before(LogPosition { job_id: 100, attempt: 1, line: 3 }, 2).unwrap().len(), 2);
}

/// What pages about runs read for a page of rows.
fn read_for_pages(store: &Store) {
    let ids: Vec<i64> = (500..520).chain([60_001, 60_002, 60_103]).collect();
    store.runs().focused_jobs(&ids).unwrap();
    store.runs().job_counts_of_small(&ids).unwrap();
    store.runs().job_counts_of(&ids).unwrap();
    store.runs().interrupted_of(&ids).unwrap();
    store.runs().slot_holders_of(&["key", "none"]).unwrap();
    store.runs().below(500, 0, 100).unwrap();
    assert_eq!(store.queues().waiting_keys().unwrap().len(), 2);
    assert_eq!(store.queues().oldest_jobs().unwrap().len(), 1);
    assert_eq!(store.queues().oldest_jobs_from("default").unwrap().len(), 1);
    assert_eq!(store.queues().page(None, 100).unwrap().rows.len(), 1);
    assert!(store.queues().find("default").unwrap().is_some());
    store.runs().failures_since(59_000_000).unwrap();
    store.runs().usual_durations(&["often", "rare", "none"]).unwrap();
    store.runs().newest_of_each(&["often", "rare", "none"], 30).unwrap();
    store.registrations().newest_versions("often", 20).unwrap();
    store.runs().last_successful_before("often", 30_000).unwrap();
    store.jobs().attempts_of_each(&[100, 120]).unwrap();
    store.jobs().around(100, 60).unwrap();
    assert_eq!(store.jobs().first_of_each(&[500, 501], 200).unwrap().len(), 2);
    assert!(store.runs().triggered(&[500]).unwrap().is_empty());
    assert_eq!(store.jobs().open_approvals(0, 2).unwrap().len(), 2);
    store.jobs().open_approval(3_000_500).unwrap();
    store.jobs().count_open_approvals().unwrap();
    for order in [JobOrder::Definition, JobOrder::Attention] {
        let window =
            JobWindow { statuses: vec![], name: None, part: JobPart::All, order, offset: 0, limit: 100 };
        assert_eq!(store.jobs().window(500, &window).unwrap().rows.len(), 2);
    }
}

/// What a trace of a run is made of.
fn read_for_traces(store: &Store) {
    let runs = store.runs();
    assert!(runs.traced(500, 500_001).unwrap().is_some());
    assert_eq!(runs.traced_below(500, 0).unwrap(), []);
    let jobs: Vec<i64> = runs.traced_jobs(500, "").unwrap().iter().map(|job| job.id).collect();
    assert_eq!((jobs.len(), runs.traced_attempts(&jobs, (0, 0)).unwrap().len()), (2, 2));
}

/// What looks at rows up to a bound: counts of finished rows, and searches.
pub fn read_to_a_bound(store: &Store) {
    store.upkeep().stats().unwrap();
    store.runs().failures_since(0).unwrap();
    store.runs().histogram(10_000_000, 50_000_000, 10).unwrap();
    store.runs().counts(None, TimeRange { from_ms: Some(10_000_000), until_ms: None }).unwrap();
    store.runs().counts(Some("often"), TimeRange { from_ms: Some(10_000_000), until_ms: None }).unwrap();
    let (often, text) = (Some("often".to_owned()), "none".to_owned());
    let params = vec![ParamFilter { name: "day".to_owned(), value: text.clone() }];
    for filter in [
        RunFilter { params: params.clone(), ..RunFilter::newest(20) },
        RunFilter { params, workflow: often.clone(), ..RunFilter::newest(20) },
        RunFilter { statuses: vec![RunStatus::Successful], schedule_id: Some(9), ..RunFilter::newest(20) },
        RunFilter { tag: often.clone(), statuses: vec![RunStatus::Cancelled], ..RunFilter::newest(20) },
        RunFilter {
            workflow: often,
            started: TimeRange { from_ms: None, until_ms: Some(1) },
            started_by: Some(StartedBy::Submission),
            ..RunFilter::newest(20)
        },
    ] {
        assert!(store.runs().list(&filter).unwrap().rows.is_empty());
    }
    for filter in [
        JobFilter { error: Some(text.clone()), ..JobFilter::newest(20) },
        JobFilter { statuses: vec![JobStatus::Failed], error: Some(text.clone()), ..JobFilter::newest(20) },
        JobFilter { workflow: Some(text.clone()), ..JobFilter::newest(20) },
        JobFilter {
            params: vec![ParamFilter { name: "day".to_owned(), value: text.clone() }],
            created: TimeRange { from_ms: Some(1), until_ms: Some(40_000_000) },
            ..JobFilter::newest(20)
        },
        JobFilter { statuses: vec![JobStatus::Skipped], queue: Some(text), ..JobFilter::newest(20) },
    ] {
        assert!(store.jobs().list(&filter).unwrap().rows.is_empty());
    }
}
