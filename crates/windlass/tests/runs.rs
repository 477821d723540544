//! Runs of workflow files through the library: order, failures, requests to stop, processes.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use std::sync::{Arc, Mutex};
use std::thread::ThreadId;

use support::Bench;
use windlass::{
    Attempt, DeadLetterCursor, DeadLetters, Engine, Handlers, Job, JobChange, JobStatus, LogPosition, NewJob,
    NextDefinition, Outcome, RetrySelection, RunStatus, StartTime, StopReason, WorkerOptions,
};

fn start(bench: &Bench) -> Engine {
    let options = WorkerOptions { grace_ms: 500, ..WorkerOptions::default() };
    bench.windlass.start(Handlers::with_built_in_kinds(), options).unwrap()
}

fn job(bench: &Bench, run_id: i64, name: &str) -> Job {
    bench.windlass.jobs().find_by_name(run_id, name).unwrap().unwrap()
}

/// A chain of this many jobs.
fn chain(links: usize) -> String {
    let needs = |link: usize| link.checked_sub(1).map(|before| format!("needs = [\"link{before}\"]"));
    let link =
        |link| format!("[jobs.link{link}]\ncommand = [\"true\"]\n{}\n", needs(link).unwrap_or_default());
    format!("name = \"chain\"\n{}", (0..links).map(link).collect::<String>())
}

fn statuses(bench: &Bench, run_id: i64) -> Vec<(String, JobStatus)> {
    let jobs = bench.windlass.jobs().of_run(run_id).unwrap();
    jobs.into_iter().map(|job| (job.name.unwrap(), job.status)).collect()
}

fn log(bench: &Bench, job: &Job) -> Vec<(String, String)> {
    let start = LogPosition { job_id: job.id, attempt: 0, line: 0 };
    let lines = bench.windlass.logs().after(start, 100_000).unwrap();
    lines.into_iter().map(|line| (line.stream.as_str().to_owned(), line.text)).collect()
}

#[test]
fn a_chain_continues_in_the_thread_of_the_previous_link() {
    const LINKS: usize = 100;
    let bench = Bench::new();
    let threads: Arc<Mutex<Vec<ThreadId>>> = Arc::default();
    let mut handlers = Handlers::new();
    let seen = Arc::clone(&threads);
    handlers.register("shell", move |_: &Attempt| {
        seen.lock().unwrap().push(std::thread::current().id());
        Outcome::Successful { output: None }
    });
    let engine = bench.windlass.start(handlers, WorkerOptions::default()).unwrap();
    let run_id = bench.submit(&chain(LINKS));
    assert_eq!(bench.wait_for_run(run_id).status, RunStatus::Successful);
    let threads = threads.lock().unwrap();
    assert_eq!(threads.len(), LINKS);
    let hand_overs = threads.windows(2).filter(|pair| pair[0] != pair[1]).count();
    // The dispatcher also runs by itself sometimes, more often if commits are slow. If it finished all jobs, any of
    // eight or more threads would continue the chain, and about 87 of 100 links would change the thread.
    assert!(hand_overs <= LINKS * 3 / 5, "{hand_overs} of {LINKS} links were handed over");
    drop(engine);
    bench.assert_sound();
}

#[test]
fn the_end_of_a_process_is_noticed_at_once() {
    const LINKS: usize = 30;
    /// If a process leaves its pipes open, the worker waits at least this long.
    const LINGER_MS: i64 = 100;
    let bench = Bench::new();
    let engine = start(&bench);
    let run_id = bench.submit(&chain(LINKS));
    assert_eq!(bench.wait_for_run(run_id).status, RunStatus::Successful);
    let took = bench.windlass.jobs().of_run(run_id).unwrap().into_iter();
    let took = took.map(|job| job.finished_at.unwrap() - job.started_at.unwrap());
    // The shortest one counts, because a loaded machine makes others longer.
    let shortest_ms = took.min().unwrap();
    assert!(shortest_ms < LINGER_MS, "all of {LINKS} took {shortest_ms} ms or more");
    drop(engine);
}

#[test]
fn jobs_run_in_order_and_pass_on_their_outputs() {
    let bench = Bench::new();
    let engine = start(&bench);
    let run_id = bench.submit(
        r#"
        name = "values"
        [env]
        GREETING = "hello"
        [jobs.text]
        run = 'echo "$GREETING from $WINDLASS_JOB_NAME"'
        output = "text"
        [jobs.json]
        run = 'echo "{\"n\": [1, 2]}"'
        output = "json"
        [jobs.file]
        needs = ["text"]
        run = 'printf "%s" "$GOT" > "$WINDLASS_OUTPUT"'
        env = { GOT = "<{{ jobs.text.output }}>" }
        [jobs.join]
        needs = ["file", "json"]
        command = ["printf", "%s %s", "{{ jobs.file.output }}", "{{ jobs.json.output.n }}"]
        output = "text"
        "#,
    );
    let run = bench.wait_for_run(run_id);
    assert_eq!(run.status, RunStatus::Successful, "{:?}", bench.windlass.jobs().of_run(run_id));
    let joined = job(&bench, run_id, "join");
    assert_eq!(joined.output.as_deref(), Some(r#""<hello from text> [1,2]""#));
    let (file, text) = (job(&bench, run_id, "file"), job(&bench, run_id, "text"));
    assert!(file.started_at >= text.finished_at);
    drop(engine);
    bench.assert_sound();
}

#[test]
fn a_failure_skips_only_the_jobs_that_need_it() {
    let bench = Bench::new();
    let engine = start(&bench);
    let run_id = bench.submit(
        r#"
        name = "branches"
        [jobs.bad]
        run = "echo reason >&2; exit 3"
        [jobs.after-bad]
        needs = ["bad"]
        run = "true"
        [jobs.further]
        needs = ["after-bad", "good"]
        run = "true"
        [jobs.tolerated]
        run = "exit 1"
        allow_failure = true
        [jobs.good]
        needs = ["tolerated"]
        run = "true"
        "#,
    );
    assert_eq!(bench.wait_for_run(run_id).status, RunStatus::Failed);
    let expected = [
        ("bad", JobStatus::Failed),
        ("after-bad", JobStatus::Skipped),
        ("further", JobStatus::Skipped),
        ("tolerated", JobStatus::Failed),
        ("good", JobStatus::Successful),
    ];
    let expected: Vec<(String, JobStatus)> =
        expected.into_iter().map(|(name, status)| (name.to_owned(), status)).collect();
    assert_eq!(statuses(&bench, run_id), expected);
    assert_eq!(job(&bench, run_id, "bad").last_error.as_deref(), Some("exit code 3: reason"));
    assert_eq!(job(&bench, run_id, "further").last_error.as_deref(), Some("skipped: `bad` is FAILED"));
    drop(engine);
    bench.assert_sound();
}

#[test]
fn a_retry_executes_failed_jobs_and_keeps_successful_ones() {
    let bench = Bench::new();
    let engine = start(&bench);
    let run_id = bench.submit(
        r#"
        name = "mended"
        [jobs.done]
        run = "echo x >> done"
        [jobs.broken]
        needs = ["done"]
        run = "test -e mended"
        [jobs.last]
        needs = ["broken"]
        run = "echo x >> last"
        "#,
    );
    assert_eq!(bench.wait_for_run(run_id).status, RunStatus::Failed);
    std::fs::write(bench.folder.path().join("mended"), "").unwrap();
    assert_eq!(bench.windlass.runs().retry(run_id, RetrySelection::Failed).unwrap(), 2);
    assert_eq!(bench.wait_for_run(run_id).status, RunStatus::Successful);
    assert_eq!(bench.windlass.runs().retry(run_id, RetrySelection::From("broken".to_owned())).unwrap(), 2);
    assert_eq!(bench.wait_for_run(run_id).status, RunStatus::Successful);
    let count = |name: &str| std::fs::read_to_string(bench.folder.path().join(name)).unwrap().lines().count();
    assert_eq!((count("done"), count("last")), (1, 2));
    drop(engine);
    bench.assert_sound();
}

#[test]
fn a_cancelled_run_stops_its_processes_and_ends() {
    let bench = Bench::new();
    let engine = start(&bench);
    let run_id = bench.submit(
        r#"
        name = "endless"
        [jobs.stubborn]
        run = "trap '' TERM; echo $$; while :; do sleep 0.05; done"
        [jobs.never]
        needs = ["stubborn"]
        run = "true"
        "#,
    );
    let stubborn = job(&bench, run_id, "stubborn");
    bench.wait_for_job(stubborn.id, JobStatus::Running);
    let pid = support::wait_for("its pid", || log(&bench, &stubborn).first().map(|line| line.1.clone()));
    bench.windlass.runs().cancel(run_id).unwrap();
    let run = bench.wait_for_run(run_id);
    assert_eq!((run.status, run.stop_reason), (RunStatus::Cancelled, Some(StopReason::Cancelled)));
    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists(), "it was killed after its grace time");
    assert_eq!(job(&bench, run_id, "never").status, JobStatus::Cancelled);
    drop(engine);
    bench.assert_sound();
}

#[test]
fn a_run_reaches_its_timeout() {
    let bench = Bench::new();
    let engine = start(&bench);
    let run_id = bench.submit("name = 'late'\ntimeout = '200ms'\n[jobs.sleeps]\nrun = 'sleep 60'\n");
    let run = bench.wait_for_run(run_id);
    assert_eq!((run.status, run.stop_reason), (RunStatus::Failed, Some(StopReason::TimedOut)));
    drop(engine);
    bench.assert_sound();
}

#[test]
fn output_is_stored_line_by_line_in_order() {
    let bench = Bench::new();
    let engine = start(&bench);
    let run_id = bench.submit(
        r#"
        name = "talks"
        [jobs.talks]
        run = '''
        echo one; sleep 0.05; echo two >&2; sleep 0.05; printf 'no end'
        sleep 0.3 & # of its group: killed with it, and not waited for
        '''
        [jobs.slow]
        run = "echo early; exec sleep 60"
        "#,
    );
    let slow = job(&bench, run_id, "slow");
    support::wait_for("output of a job that still runs", || (!log(&bench, &slow).is_empty()).then_some(()));
    bench.windlass.jobs().cancel(slow.id).unwrap();
    bench.wait_for_run(run_id);
    let expected = [("stdout", "one"), ("stderr", "two"), ("stdout", "no end")];
    let expected: Vec<(String, String)> =
        expected.into_iter().map(|(stream, text)| (stream.to_owned(), text.to_owned())).collect();
    assert_eq!(log(&bench, &job(&bench, run_id, "talks")), expected);
    drop(engine);
    bench.assert_sound();
}

#[test]
fn deep_and_wide_graphs_are_skipped_without_recursion() {
    use std::fmt::Write;
    let bench = Bench::new();
    let mut toml = "name = 'deep'\n[jobs.j0]\nrun = 'exit 1'\n".to_owned();
    for index in 1..5_000 {
        writeln!(toml, "[jobs.j{index}]\nneeds = ['j{}']\nrun = 'true'", index - 1).unwrap();
    }
    for index in 0..5_000 {
        writeln!(toml, "[jobs.w{index}]\nneeds = ['j0']\nrun = 'true'").unwrap();
    }
    let run_id = bench.submit(&toml);
    let engine = start(&bench);
    assert_eq!(bench.wait_for_run(run_id).status, RunStatus::Failed);
    let counts = bench.windlass.runs().job_counts(run_id).unwrap();
    assert_eq!((counts.of(JobStatus::Failed), counts.of(JobStatus::Skipped)), (1, 9_999));
    drop(engine);
    bench.assert_sound();
}

#[test]
fn the_children_of_a_script_have_the_same_grace() {
    let bench = Bench::new();
    let options = WorkerOptions { grace_ms: 20_000, ..WorkerOptions::default() };
    let engine = bench.windlass.start(Handlers::with_built_in_kinds(), options).unwrap();
    let run_id = bench.submit(
        r#"
        name = "saves"
        [jobs.saves]
        run = '''
        sh -c 'trap "sleep 0.4; echo saved > state; exit 0" TERM; echo ready; while :; do sleep 0.02; done' \
            < /dev/null > ready 2> /dev/null &
        wait
        '''
        "#,
    );
    let file = |name: &str| std::fs::read_to_string(bench.folder.path().join(name)).unwrap_or_default();
    support::wait_for("the child", || (file("ready") == "ready\n").then_some(()));
    bench.windlass.runs().cancel(run_id).unwrap();
    assert_eq!(bench.wait_for_run(run_id).status, RunStatus::Cancelled);
    assert_eq!(file("state"), "saved\n", "the child had the time that it needed");
    drop(engine);
    bench.assert_sound();
}

#[test]
fn a_run_goes_on_with_its_next_definition() {
    let bench = Bench::new();
    let file = "name = 'etl'\n[jobs.a]\nrun = 'true'\n[jobs.b]\nneeds = ['a']\nrun = 'exit 3'\n";
    let engine = start(&bench);
    let run_id = bench.submit(file);
    assert_eq!(bench.wait_for_run(run_id).status, RunStatus::Failed);
    let source = windlass::workflow::Source::new("etl.toml", file.replace("exit 3", "true").into()).unwrap();
    let next = NextDefinition { workflow: windlass::workflow::parse(&source).unwrap(), file: None };
    let continued = bench.windlass.runs().retry_with(run_id, RetrySelection::Failed, next).unwrap();
    assert_eq!((continued.jobs, continued.changes.changed), (1, vec!["b".to_owned()]));
    assert_eq!(bench.wait_for_run(run_id).status, RunStatus::Successful);
    let definitions = bench.windlass.runs().definitions(run_id).unwrap();
    assert_eq!(
        definitions.iter().map(|found| found.origin.as_str()).collect::<Vec<_>>(),
        ["submit", "retry"]
    );
    engine.leave();
    engine.join().unwrap();
}

#[test]
fn jobs_that_stand_alone_are_retried_changed_and_deleted() {
    let bench = Bench::new();
    let jobs = bench.windlass.jobs();
    let fails = NewJob { max_attempts: 1, ..NewJob::new("shell", "{\"run\": \"exit 3\"}") };
    let ids = jobs.enqueue(vec![fails; 3]).unwrap();
    let engine = start(&bench);
    ids.iter().for_each(|id| bench.wait_for_job(*id, JobStatus::Failed));
    engine.leave();
    engine.join().unwrap();
    jobs.retry(ids[0]).unwrap();
    let which = DeadLetters {
        statuses: vec![JobStatus::Failed],
        kind: Some("shell".to_owned()),
        queue: None,
        error: Some("code 3".to_owned()),
        before_ms: i64::MAX,
    };
    assert_eq!(jobs.count_dead_letters(&which).unwrap(), 2);
    let batch = jobs.retry_next(&which, DeadLetterCursor::default()).unwrap();
    assert_eq!((batch.jobs, batch.next), (2, None));
    let later = JobChange { start: Some(StartTime::After(3_600_000)), ..JobChange::default() };
    assert_eq!(jobs.change(ids[0], later).unwrap().status, JobStatus::Scheduled);
    jobs.delete(ids[0]).unwrap();
    assert!(jobs.find(ids[0]).unwrap().is_none());
}
