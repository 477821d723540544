//! Every value reaches its column: none is forgotten, and none gets the value of another.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use support::{Bench, failure, noop};
use windlass_engine::JobStatus;
use windlass_engine::store::{LogLine, LogStream, NewJob, NewRegistration, NewRun};
use windlass_test_database::Row;
use windlass_workflow::kinds::shell::Shell;
use windlass_workflow::model::{Concurrency, OnFull};
use windlass_workflow::{Job, OnInterrupt, Param, ParamKind, Retry, Workflow};

/// The columns of the only row, as text.
fn columns(bench: &Bench, sql: &str) -> Vec<String> {
    let texts = |row: &Row| {
        let texts = (0..).map_while(|column: usize| row.get::<_, Option<String>>(column).ok());
        Ok(texts.map(|text| text.unwrap_or_else(|| "NULL".to_owned())).collect())
    };
    let mut rows: Vec<Vec<String>> = bench.raw().rows(sql, texts);
    assert_eq!(rows.len(), 1, "{sql}");
    rows.remove(0)
}

/// A job in which every value differs from its default and from the others.
fn job() -> Job {
    let action = Shell {
        env: [("COLOUR".to_owned(), "red".to_owned())].into_iter().collect(),
        dir: Some("below".to_owned()),
        ..Shell::command(["true"])
    };
    Job {
        description: Some("for nothing".to_owned()),
        retry: Retry { max_attempts: 4, jitter: 0.25, ..Retry::default() },
        timeout_ms: Some(5_005),
        queue: "slow".to_owned(),
        priority: 6,
        allow_failure: true,
        on_interrupt: OnInterrupt::Fail,
        max_interruptions: 7,
        requires: vec!["gpu".to_owned()],
        code_version: 8,
        concurrency: Some(Concurrency {
            key: "tenant-{{ params.tenant }}".to_owned(),
            limit: 9,
            on_full: OnFull::CancelOldest,
        }),
        ..Job::new("all", action)
    }
}

#[test]
fn a_run_and_its_jobs_have_the_values_of_the_workflow() {
    let bench = Bench::new();
    let tenant = Param {
        name: "tenant".to_owned(),
        kind: ParamKind::String,
        description: None,
        default: None,
        required: true,
        choices: Vec::new(),
    };
    let workflow = Workflow {
        timeout_ms: Some(10_010),
        params: vec![tenant],
        env: [("SHADE".to_owned(), "dark".to_owned())].into_iter().collect(),
        ..Workflow::new("full", vec![job()])
    };
    let params = [("tenant".to_owned(), "t1".into())].into_iter().collect();
    let (dir, run_key) = (Some("/there".to_owned()), Some("once".to_owned()));
    bench.store.runs().submit(NewRun { workflow, params, dir, run_key, occasion: None }).unwrap();
    let now = bench.clock.now_ms().to_string();
    let now = now.as_str();
    let row = columns(
        &bench,
        "SELECT kind, name, queue, priority, max_attempts, max_interruptions, on_interrupt, allow_failure,
                timeout_ms, blocked_by, status, execute_after, created_at, updated_at, requires, code_version,
                concurrency_key, concurrency_limit, on_full, unique_key, attempt, failures, worker_id
         FROM jobs",
    );
    let expected = ["shell", "all", "slow", "6", "4", "7", "fail", "1", "5005", "0", "PENDING"];
    let expected =
        [&expected[..], &[now, now, now, r#"["gpu"]"#, "8", "tenant-t1", "9", "cancel_oldest"]].concat();
    assert_eq!(row, [expected, vec!["NULL", "0", "0", "NULL"]].concat());
    let [payload, retry] = columns(&bench, "SELECT payload, retry FROM jobs").try_into().unwrap();
    let payload: serde_json::Value = serde_json::from_str(&payload).unwrap();
    assert_eq!(
        [&payload["command"][0], &payload["env"]["COLOUR"], &payload["dir"]],
        ["true", "red", "below"]
    );
    let retry: serde_json::Value = serde_json::from_str(&retry).unwrap();
    assert_eq!(retry["jitter"], 0.25, "{retry}");
    let row = columns(
        &bench,
        "SELECT workflow, status, params, env, dir, run_key, total_jobs, unfinished_jobs, failed_jobs, timeout_ms,
                created_at, source
         FROM runs",
    );
    let expected = ["full", "PENDING", r#"{"tenant":"t1"}"#, r#"{"SHADE":"dark"}"#, "/there", "once"];
    assert_eq!(row, [&expected[..], &["1", "1", "0", "10010", now, "NULL"]].concat());
}

#[test]
fn a_standalone_job_has_the_requested_values() {
    let bench = Bench::new();
    bench.enqueue(NewJob {
        kind: "mail".to_owned(),
        payload: r#"{"to": "you"}"#.to_owned(),
        queue: "slow".to_owned(),
        priority: 1,
        execute_after: Some(2_000_000),
        delay_ms: None,
        max_attempts: 4,
        timeout_ms: Some(5_005),
        unique_key: Some("once".to_owned()),
        requires: vec!["ssd".to_owned(), "gpu".to_owned(), "ssd".to_owned()],
        code_version: 6,
        concurrency: Some(Concurrency { key: "k".to_owned(), limit: 7, on_full: OnFull::Skip }),
    });
    let row = columns(
        &bench,
        "SELECT kind, payload, queue, priority, execute_after, max_attempts, timeout_ms, unique_key, requires,
                code_version, concurrency_key, concurrency_limit, on_full, status, created_at, updated_at, run_id
         FROM jobs",
    );
    let expected =
        ["mail", r#"{"to": "you"}"#, "slow", "1", "2000000", "4", "5005", "once", r#"["gpu","ssd"]"#];
    let rest = ["6", "k", "7", "skip", "SCHEDULED", "1000000", "1000000", "NULL"];
    assert_eq!(row, [&expected[..], &rest].concat());
}

#[test]
fn a_registration_has_the_last_applied_file_and_folder() {
    let bench = Bench::new();
    let apply = |jobs: usize, place: Option<&str>| {
        let workflow = support::graph(vec![vec![]; jobs]);
        let file = place.map(|place| format!("{place}/graph.toml"));
        bench
            .store
            .registrations()
            .apply(NewRegistration { workflow, file, dir: place.map(str::to_owned) })
            .unwrap();
        columns(&bench, "SELECT version, file, dir FROM registrations")
    };
    assert_eq!(apply(1, Some("/one")), ["1", "/one/graph.toml", "/one"]);
    assert_eq!(apply(1, Some("/two")), ["1", "/two/graph.toml", "/two"], "only its file changed");
    assert_eq!(apply(2, Some("/three")), ["2", "/three/graph.toml", "/three"]);
    assert_eq!(apply(2, None), ["2", "NULL", "NULL"], "it has no file now");
}

#[test]
fn a_failed_attempt_is_recorded_with_its_times() {
    let bench = Bench::new();
    let worker = bench.worker();
    let id = bench.enqueue(noop());
    bench.clock.advance_ms(10);
    let started_at = bench.clock.now_ms();
    let job = bench.claim(worker, 1).remove(0);
    bench.clock.advance_ms(10);
    bench.finish(worker, &job, failure());
    let [attempt] = bench.store.jobs().attempts(id).unwrap().try_into().unwrap();
    assert_eq!((attempt.attempt, attempt.worker_id, attempt.outcome.as_str()), (1, Some(worker), "failed"));
    assert_eq!(attempt.error.as_deref(), Some("no luck"));
    assert_eq!((attempt.started_at, attempt.finished_at), (Some(started_at), started_at + 10));
}

/// Late lines of a pruned job must not fail the other lines of the transaction.
#[test]
fn lines_of_a_pruned_job_are_dropped() {
    let bench = Bench::new();
    let id = bench.enqueue(noop());
    let line = |job_id, text: &str| {
        let (attempt, line, at, stream) = (1, 1, 1, LogStream::Stdout);
        LogLine { job_id, attempt, line, at, stream, text: text.to_owned() }
    };
    bench
        .store
        .for_workers()
        .append_logs(std::sync::Arc::new(vec![line(id + 1, "gone"), line(id, "there")]))
        .unwrap();
    assert_eq!(bench.store.logs().last(id, 1, 10).unwrap(), [line(id, "there")]);
    bench.assert_sound();
}

#[test]
fn queues_count_their_jobs_by_state() {
    let bench = Bench::new();
    let worker = bench.worker();
    let key = Concurrency { key: "k".to_owned(), limit: 1, on_full: OnFull::Wait };
    let keyed = NewJob { concurrency: Some(key), ..noop() };
    let later = NewJob { execute_after: Some(bench.clock.now_ms() + 1), ..noop() };
    bench.store.jobs().enqueue(vec![noop(), noop(), noop(), later.clone(), later]).unwrap();
    let mut workflow = support::graph(vec![vec![], vec![0]]);
    workflow.jobs[0].queue = "default".to_owned();
    bench.submit(workflow);
    bench.store.jobs().enqueue(vec![keyed.clone(), keyed.clone(), keyed.clone(), keyed]).unwrap();
    assert_eq!(bench.claim(worker, 1).len(), 1);
    let [queue] = bench.store.queues().list().unwrap().try_into().unwrap();
    let counts = [queue.pending, queue.running, queue.scheduled, queue.waiting];
    assert_eq!(counts.map(|count| (count.number, count.is_exact)), [4, 1, 2, 3].map(|number| (number, true)));
    assert_eq!(bench.store.upkeep().stats().unwrap().jobs.of(JobStatus::Blocked), 1);
}
