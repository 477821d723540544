//! Lists of runs and jobs: each filter against a comparison in memory, page by page, and the bound of a search.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use support::Bench;
use windlass_engine::store::{
    Cursor, Job, JobFilter, PAGE_MAX, ParamFilter, Run, RunFilter, SEARCH_MAX, SearchBound, StartedBy,
    TimeRange,
};
use windlass_engine::{Error, JobStatus, Random, RunSource, RunStatus};

const RUNS: i64 = 300;
/// Between two runs, in milliseconds.
const APART_MS: i64 = 120_000;

/// Numbers from 1 to `$count`, as `numbers (n)`.
macro_rules! numbers {
    ($count:literal) => {
        concat!(
            "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ",
            $count,
            ")"
        )
    };
}

/// Runs of all kinds. Their clocks differ by up to half a minute, and some of them are deleted.
fn runs() -> Bench {
    let bench = Bench::new();
    let raw = bench.raw();
    raw.execute(
        "INSERT INTO schedules (id, workflow, name, removed_at) VALUES (1, 'w1', 's', 1), (2, 'w2', 's', 1)",
    );
    raw.execute(concat!(
        "INSERT INTO runs (id, workflow, status, params, run_key, schedule_id, scheduled_for, source, created_at,
                           started_at, finished_at) ",
        numbers!("300"),
        " SELECT n, CASE n % 3 WHEN 0 THEN 'w0' WHEN 1 THEN 'w1' ELSE 'w2' END,
                 CASE n % 7 WHEN 0 THEN 'PENDING' WHEN 1 THEN 'RUNNING' WHEN 2 THEN 'FAILED' WHEN 3 THEN 'CANCELLED'
                            ELSE 'SUCCESSFUL' END,
                 CASE n % 4 WHEN 0 THEN '{\"a\":1,\"b\":\"Text\"}' WHEN 1 THEN '{\"a\":\"1\",\"b\":true}'
                            WHEN 2 THEN '{\"a\":11,\"b\":\"\\\"a\\\":1,\"}' ELSE '{}' END,
                 CASE n % 5 WHEN 0 THEN 'key ' || n END,
                 CASE WHEN n % 6 = 1 THEN 1 WHEN n % 6 = 2 THEN 2 END, CASE WHEN n % 6 IN (1, 2) THEN n END,
                 CASE WHEN n % 6 = 1 THEN 'schedule' WHEN n % 6 = 2 THEN 'catchup' END,
                 n * 120000 + n * 7919 % 60000 - 30000,
                 CASE WHEN n % 7 <> 0 THEN n * 120000 + n % 10 * 600000 END,
                 CASE WHEN n % 7 > 1 THEN n * 120000 + 7000000 END
          FROM numbers"
    ));
    raw.execute(
        "INSERT INTO run_tags (tag, run_id) SELECT 't0', id FROM runs WHERE id % 5 < 2
         UNION ALL SELECT 't1', id FROM runs WHERE id % 2 = 0",
    );
    raw.execute("DELETE FROM runs WHERE id > 100 AND id < 140 OR id % 11 = 0");
    bench
}

fn takes_run(filter: &RunFilter, run: &Run) -> bool {
    let within = |range: TimeRange, at: Option<i64>| {
        range.from_ms.is_none_or(|from| at.is_some_and(|at| at >= from))
            && range.until_ms.is_none_or(|until| at.is_some_and(|at| at < until))
    };
    filter.workflow.as_ref().is_none_or(|workflow| *workflow == run.workflow)
        && filter
            .tag
            .as_ref()
            .is_none_or(|tag| (tag == "t0" && run.id % 5 < 2) || (tag == "t1" && run.id % 2 == 0))
        && (filter.statuses.is_empty() || filter.statuses.contains(&run.status))
        && within(filter.created, Some(run.created_at))
        && within(filter.started, run.started_at)
        && filter.run_key.as_ref().is_none_or(|key| run.run_key.as_ref() == Some(key))
        && filter.params.iter().all(|ParamFilter { name, value }| {
            let params: serde_json::Value = serde_json::from_str(&run.params).unwrap();
            let found = &params[name];
            let text = found.as_str().map_or_else(|| found.to_string(), str::to_owned);
            !found.is_null() && text == *value
        })
        && filter.started_by.is_none_or(|started_by| match started_by {
            StartedBy::Submission => run.source.is_none(),
            StartedBy::Schedule(source) => run.source == Some(source),
        })
        && filter.schedule_id.is_none_or(|id| run.schedule_id == Some(id))
        && filter.cursor.after.is_none_or(|after| run.id > after)
        && filter.cursor.before.is_none_or(|before| run.id < before)
}

/// One of these, or none as often as not.
fn maybe<T: Clone>(random: &Random, choices: &[T]) -> Option<T> {
    let at = (random.fraction() * 2.0 * choices.len() as f64) as usize;
    choices.get(at).cloned()
}

fn maybe_between(random: &Random, highest: i64) -> Option<i64> {
    maybe(random, &[0.2, 0.7, 1.0]).map(|share: f64| (random.fraction() * share * highest as f64) as i64)
}

fn random_run_filter(random: &Random) -> RunFilter {
    let time = || TimeRange {
        from_ms: maybe_between(random, RUNS * APART_MS),
        until_ms: maybe_between(random, RUNS * APART_MS),
    };
    let param = |name: &str, value: &str| ParamFilter { name: name.to_owned(), value: value.to_owned() };
    let statuses = [
        vec![RunStatus::Failed],
        vec![RunStatus::Running, RunStatus::Successful, RunStatus::Running],
        RunStatus::ALL.to_vec(),
    ];
    RunFilter {
        trigger: None,
        children: false,
        workflow: maybe(random, &["w0", "w1", "w2", "none"]).map(str::to_owned),
        tag: maybe(random, &[None, None, Some("t0"), Some("t1"), Some("t")]).flatten().map(str::to_owned),
        statuses: maybe(random, &statuses).unwrap_or_default(),
        created: maybe(random, &[time()]).unwrap_or_default(),
        started: maybe(random, &[time(), TimeRange::default()]).unwrap_or_default(),
        run_key: maybe(random, &[None, None, Some("key 50".to_owned()), Some("key".to_owned())]).flatten(),
        params: maybe(
            random,
            &[
                vec![],
                vec![],
                vec![param("a", "1")],
                vec![param("b", "Text")],
                vec![param("b", "true")],
                vec![param("a", "1"), param("b", "Text")],
                vec![param("b", "true"), param("a", "1"), param("a", "1")],
                vec![param("a", "1"), param("a", "2")],
            ],
        )
        .unwrap_or_default(),
        started_by: maybe(random, &[StartedBy::Submission, StartedBy::Schedule(RunSource::Catchup)]),
        schedule_id: maybe(random, &[None, Some(1), Some(2), None]).flatten(),
        search: SearchBound::default(),
        cursor: Cursor {
            before: maybe_between(random, RUNS),
            after: maybe_between(random, RUNS),
            limit: [1, 7, 1_000][(random.fraction() * 3.0) as usize],
        },
    }
}

#[test]
fn each_filter_of_runs_finds_what_a_comparison_finds() {
    let bench = runs();
    let all = bench.store.runs().list_full(&RunFilter::newest(PAGE_MAX)).unwrap();
    assert!(all.rows.len() > 200 && all.next.is_none());
    let random = Random::from_seed(7);
    let mut matches = 0;
    for _filter in 0..400 {
        let mut filter = random_run_filter(&random);
        let expected: Vec<i64> =
            all.rows.iter().filter(|run| takes_run(&filter, run)).map(|run| run.id).collect();
        let mut found = Vec::new();
        loop {
            let page = bench.store.runs().list(&filter).unwrap();
            assert!(page.rows.len() as i64 <= filter.cursor.limit && page.searched_to.is_none());
            found.extend(page.rows.iter().map(|run| run.id));
            filter.cursor.before = page.next;
            if page.next.is_none() {
                break;
            }
        }
        assert_eq!(found, expected, "{filter:?}");
        matches += usize::from(!found.is_empty());
    }
    assert!(matches > 100, "only {matches} filters have matched anything");
}

#[test]
fn a_search_among_runs_stops_and_goes_on() {
    let bench = Bench::new();
    bench.raw().execute(concat!(
        "INSERT INTO runs (workflow, status, params, finished_at) ",
        numbers!("80000"),
        " SELECT CASE n % 2 WHEN 0 THEN 'w0' ELSE 'w1' END, 'SUCCESSFUL',
                 CASE n WHEN 5 THEN '{\"day\":\"monday\"}' ELSE '{}' END, 1 FROM numbers"
    ));
    let params = vec![ParamFilter { name: "day".to_owned(), value: "monday".to_owned() }];
    let mut filter = RunFilter { params, ..RunFilter::newest(10) };
    let page = bench.store.runs().list(&filter).unwrap();
    let floor = 80_000 - SEARCH_MAX + 1;
    assert_eq!((page.rows.len(), page.next, page.searched_to), (0, Some(floor), Some(floor)));
    // Several searches for one page share what one may look at.
    let quarter = RunFilter { search: SearchBound::one_of(4), ..filter.clone() };
    let quarter_floor = 80_000 - SEARCH_MAX / 4 + 1;
    assert_eq!(bench.store.runs().list(&quarter).unwrap().searched_to, Some(quarter_floor));
    filter.cursor.before = page.next;
    let page = bench.store.runs().list(&filter).unwrap();
    assert_eq!(page.rows.iter().map(|run| run.id).collect::<Vec<_>>(), [5]);
    assert_eq!((page.next, page.searched_to), (None, None));
    // A tag that few runs have narrows the search.
    bench.raw().execute("INSERT INTO run_tags (tag, run_id) VALUES ('few', 5), ('few', 6), ('few', 79999)");
    let tagged = RunFilter { tag: Some("few".to_owned()), ..RunFilter::newest(10) };
    let narrow = RunFilter { params: filter.params.clone(), ..tagged };
    let page = bench.store.runs().list(&narrow).unwrap();
    assert_eq!((page.rows.len(), page.searched_to), (1, None));
    // Each run of a tag is looked up: a quarter of them is.
    bench.raw().execute("INSERT INTO run_tags (tag, run_id) SELECT 'all', id FROM runs");
    let tagged =
        RunFilter { tag: Some("all".to_owned()), params: filter.params.clone(), ..RunFilter::newest(10) };
    let tag_floor = 80_000 - SEARCH_MAX / 4 + 1;
    assert_eq!(bench.store.runs().list(&tagged).unwrap().searched_to, Some(tag_floor));
    // Of one workflow and state there are few enough to look at all of them.
    filter = RunFilter { workflow: Some("w1".to_owned()), statuses: vec![RunStatus::Successful], ..filter };
    filter.cursor.before = None;
    let page = bench.store.runs().list(&filter).unwrap();
    assert_eq!((page.rows.len(), page.searched_to), (1, None));
    // Rows that lie far apart take longer to read: a tenth of them is looked at.
    bench.raw().execute("UPDATE runs SET status = 'FAILED' WHERE id % 100 = 0");
    filter = RunFilter { workflow: None, statuses: vec![RunStatus::Failed], ..filter };
    filter.search = SearchBound::one_of(SEARCH_MAX / 100);
    let ten_rows_on = 80_000 - 9 * 100;
    assert_eq!(bench.store.runs().list(&filter).unwrap().searched_to, Some(ten_rows_on));
}

/// Jobs of all kinds, alone and in runs.
fn jobs() -> Bench {
    let bench = Bench::new();
    let raw = bench.raw();
    raw.execute("INSERT INTO runs (id, workflow, params) VALUES (1, 'w', '{}'), (2, 'w', '{\"a\":1}'), (3, 'v', '{\"a\":\"x\"}')");
    raw.execute(concat!(
        "INSERT INTO jobs (run_id, name, kind, queue, status, worker_id, concurrency_key, last_error, payload, waits_for, created_at, finished_at) ",
        numbers!("300"),
        " SELECT CASE WHEN n % 5 < 3 THEN n % 5 + 1 END, CASE WHEN n % 5 < 3 THEN 'job ' || (n / 10) END,
                 CASE n % 3 WHEN 0 THEN 'shell' ELSE 'mail' END, CASE n % 4 WHEN 0 THEN 'q0' ELSE 'q1' END,
                 CASE n % 11 WHEN 0 THEN 'PENDING' WHEN 1 THEN 'RUNNING' WHEN 2 THEN 'SCHEDULED' WHEN 3 THEN 'WAITING'
                             WHEN 4 THEN 'FAILED' WHEN 5 THEN 'SKIPPED' WHEN 6 THEN 'CANCELLED' WHEN 7 THEN 'BLOCKED'
                             ELSE 'SUCCESSFUL' END,
                 1, CASE n % 11 WHEN 3 THEN 'key' END,
                 CASE n % 11 WHEN 4 THEN 'Exit Code ' || n WHEN 5 THEN '100% of a_b' END, '{}', CASE n % 11 WHEN 3 THEN 'slot' END, n * 10000,
                 CASE WHEN n % 11 IN (4, 5, 6, 8, 9, 10) THEN n * 10000 + 1 END
          FROM numbers
          WHERE n % 5 >= 3 OR n % 10 < 5"
    ));
    bench
}

fn takes_job(filter: &JobFilter, job: &Job) -> bool {
    let is = |wanted: &Option<String>, found: Option<&str>| {
        wanted.as_deref().is_none_or(|text| found == Some(text))
    };
    (filter.statuses.is_empty() || filter.statuses.contains(&job.status))
        && is(&filter.queue, Some(&job.queue))
        && is(&filter.kind, Some(&job.kind))
        && is(&filter.name, job.name.as_deref())
        && filter.run_id.is_none_or(|run_id| job.run_id == Some(run_id))
        && filter.created.from_ms.is_none_or(|from| job.created_at >= from)
        && filter.created.until_ms.is_none_or(|until| job.created_at < until)
        && filter
            .workflow
            .as_deref()
            .is_none_or(|workflow| matches!((workflow, job.run_id), ("w", Some(1 | 2)) | ("v", Some(3))))
        && filter.params.iter().all(|param| param.value == "1" && job.run_id == Some(2))
        && filter.error.as_ref().is_none_or(|text| {
            job.last_error.as_ref().is_some_and(|error| error.to_lowercase().contains(&text.to_lowercase()))
        })
        && filter.cursor.after.is_none_or(|after| job.id > after)
        && filter.cursor.before.is_none_or(|before| job.id < before)
}

fn random_job_filter(random: &Random) -> JobFilter {
    let text = |choices: &[&str]| maybe(random, choices).map(str::to_owned);
    let statuses = [
        vec![JobStatus::Failed],
        vec![JobStatus::Failed, JobStatus::Pending, JobStatus::Failed],
        vec![JobStatus::Running, JobStatus::Scheduled, JobStatus::Waiting],
        vec![JobStatus::Skipped, JobStatus::Failed],
        vec![JobStatus::Blocked],
    ];
    JobFilter {
        statuses: maybe(random, &statuses).unwrap_or_default(),
        queue: text(&["q0", "q1"]),
        kind: text(&["shell", "mail", "none"]),
        run_id: maybe(random, &[Some(1), Some(2), Some(9), None]).flatten(),
        name: text(&["job 3", "none"]),
        error: text(&["exit code 1", "0% of A_", "%", "none"]),
        created: maybe(
            random,
            &[TimeRange {
                from_ms: maybe_between(random, 3_000_000),
                until_ms: maybe_between(random, 3_000_000),
            }],
        )
        .unwrap_or_default(),
        workflow: maybe(random, &[None, None, Some("w"), Some("v")]).flatten().map(str::to_owned),
        params: maybe(random, &[vec![], vec![], vec![], vec!["1"], vec!["2"], vec!["1", "2"]])
            .unwrap_or_default()
            .into_iter()
            .map(|value: &str| ParamFilter { name: "a".to_owned(), value: value.to_owned() })
            .collect(),
        cursor: Cursor {
            before: maybe_between(random, 200),
            after: maybe_between(random, 200),
            limit: [1, 7, 1_000][(random.fraction() * 3.0) as usize],
        },
    }
}

#[test]
fn each_filter_of_jobs_finds_what_a_comparison_finds() {
    let bench = jobs();
    let all = bench.store.jobs().list_full(&JobFilter::newest(PAGE_MAX)).unwrap();
    assert!(all.rows.len() > 150 && all.next.is_none());
    let random = Random::from_seed(8);
    let mut matches = 0;
    for _filter in 0..1_200 {
        let mut filter = random_job_filter(&random);
        let expected: Vec<i64> =
            all.rows.iter().filter(|job| takes_job(&filter, job)).map(|job| job.id).collect();
        let mut found = Vec::new();
        loop {
            let page = bench.store.jobs().list(&filter).unwrap();
            assert!(page.rows.len() as i64 <= filter.cursor.limit && page.searched_to.is_none());
            found.extend(page.rows.iter().map(|job| job.id));
            filter.cursor.before = page.next;
            if page.next.is_none() {
                break;
            }
        }
        assert_eq!(found, expected, "{filter:?}");
        matches += usize::from(!found.is_empty());
    }
    assert!(matches > 100, "only {matches} filters have matched anything");
}

#[test]
fn a_search_among_jobs_stops_and_goes_on() {
    let bench = Bench::new();
    bench.raw().execute(
        "INSERT INTO jobs (id, kind, status, finished_at) VALUES
         (7, 'rare', 'SUCCESSFUL', 1), (9, 'often', 'SUCCESSFUL', 1), (400000, 'often', 'SUCCESSFUL', 1)",
    );
    let mut filter = JobFilter { kind: Some("rare".to_owned()), ..JobFilter::newest(10) };
    let page = bench.store.jobs().list(&filter).unwrap();
    let floor = 400_000 - SEARCH_MAX + 1;
    assert_eq!((page.rows.len(), page.next, page.searched_to), (0, Some(floor), Some(floor)));
    // The runs of jobs are looked up: a quarter of the ids is looked through.
    let of_workflow = JobFilter { workflow: Some("w".to_owned()), ..JobFilter::newest(10) };
    let quarter_floor = 400_000 - SEARCH_MAX / 4 + 1;
    assert_eq!(bench.store.jobs().list(&of_workflow).unwrap().searched_to, Some(quarter_floor));
    // The ids that no job has are passed over.
    filter.cursor.before = page.next;
    let page = bench.store.jobs().list(&filter).unwrap();
    assert_eq!(page.rows.iter().map(|job| job.id).collect::<Vec<_>>(), [7]);
    assert_eq!((page.next, page.searched_to), (None, None));
}

/// Too many to sort them: they are found in the order of ids.
#[test]
fn the_newest_of_many_failed_jobs_are_listed() {
    let bench = Bench::new();
    bench.raw().execute(concat!(
        "INSERT INTO jobs (kind, status, finished_at) ",
        numbers!("20010"),
        " SELECT 'noop', CASE n % 2000 WHEN 7 THEN 'SKIPPED' ELSE 'FAILED' END, 30000 - n FROM numbers"
    ));
    bench.raw().execute("UPDATE jobs SET status = 'FAILED' WHERE status = 'SKIPPED' AND id < 20000");
    let filter = JobFilter { statuses: vec![JobStatus::Failed], ..JobFilter::newest(5) };
    let ids: Vec<i64> = bench.store.jobs().list(&filter).unwrap().rows.iter().map(|job| job.id).collect();
    assert_eq!(ids, [20_010, 20_009, 20_008, 20_006, 20_005]);
}

#[test]
fn a_list_has_limits_and_says_so() {
    let bench = Bench::new();
    for limit in [0, -1, PAGE_MAX + 1] {
        let error = bench.store.runs().list(&RunFilter::newest(limit)).unwrap_err();
        assert!(matches!(&error, Error::Invalid { reason, .. } if reason.contains("1 to 10000")), "{error}");
        assert!(bench.store.jobs().list(&JobFilter::newest(limit)).is_err());
    }
    for text in [String::new(), "x".repeat(1_001), "a\0b".to_owned()] {
        let filter = JobFilter { error: Some(text.clone()), ..JobFilter::default() };
        assert!(matches!(bench.store.jobs().list(&filter).unwrap_err(), Error::Invalid { .. }));
        let params = vec![ParamFilter { name: "a".to_owned(), value: text }];
        let filter = RunFilter { params, ..RunFilter::default() };
        assert!(matches!(bench.store.runs().list(&filter).unwrap_err(), Error::Invalid { .. }));
    }
    let params = vec![ParamFilter { name: "a".to_owned(), value: "1".to_owned() }; 21];
    let error = bench.store.runs().list(&RunFilter { params, ..RunFilter::default() }).unwrap_err();
    assert!(error.to_string().contains("the limit is 20"), "{error}");
}

#[test]
fn a_list_is_lean_unless_the_caller_asks_for_everything() {
    let bench = Bench::new();
    let long = "é".repeat(2_000);
    bench.raw().execute(&format!(
        "INSERT INTO jobs (kind, status, last_error, payload, output, finished_at)
         VALUES ('noop', 'FAILED', '{long}', '\"in\"', '\"out\"', 1)"
    ));
    let summary = bench.store.jobs().list(&JobFilter::default()).unwrap().rows.remove(0);
    assert_eq!(summary.error.unwrap().chars().count(), windlass_engine::store::ERROR_MAX);
    let job = bench.store.jobs().list_full(&JobFilter::default()).unwrap().rows.remove(0);
    assert_eq!((job.payload.as_str(), job.output.as_deref()), ("\"in\"", Some("\"out\"")));
    assert_eq!(job.last_error.unwrap(), long);
}
