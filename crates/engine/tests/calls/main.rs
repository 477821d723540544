//! Jobs that call workflows: the runs that they start, and what the ends of these make of the jobs.
#![allow(clippy::unwrap_used, missing_docs)]

mod items;
#[path = "../support/mod.rs"]
mod support;

use serde_json::{Value as Json, json};
use support::{Bench, failure, request, success};
use windlass_engine::store::{
    ClaimedJob, Claims, NewRegistration, NewRun, NewSignal, Prune, Reason, RetrySelection, RunFilter, Scope,
};
use windlass_engine::transition::Outcome;
use windlass_engine::{JobStatus, RunStatus, WaitsFor};
use windlass_workflow::{Source, Workflow, parse};

fn workflow(text: &str) -> Workflow {
    parse(&Source::new("top.toml", text.to_owned().into()).unwrap())
        .map_err(|report| format!("{report:?}"))
        .unwrap()
}

const LOAD: &str = r#"
params = { region = { default = "eu" } }
outputs = { region = "params.region", rows = "jobs.load.output.rows" }
[workflows.load]
params = { region = {}, count = { type = "integer", default = 1 } }
outputs = { rows = "jobs.copy.output", region = "params.region" }
[workflows.load.jobs.copy]
run = "copy"
[workflows.load.jobs.check]
needs = "copy"
run = "check"
[jobs.list]
run = "list"
[jobs.load]
needs = "list"
workflow = "load"
params = { region = "{{ params.region }}", count = "{{ jobs.list.output.count }}" }
[jobs.after]
needs = "load"
run = "after"
"#;

struct Calls {
    bench: Bench,
    worker: i64,
    run_id: i64,
}

impl Calls {
    fn of(text: &str) -> Calls {
        Calls::submit(workflow(text))
    }

    fn submit(workflow: Workflow) -> Calls {
        let bench = Bench::new();
        let worker = bench.worker();
        let run = NewRun {
            params: windlass_workflow::params::bind(&workflow.params, Vec::new()).unwrap(),
            workflow,
            dir: Some("/top".to_owned()),
            run_key: None,
            occasion: None,
        };
        let run_id = bench.store.runs().submit(run).unwrap().run_id;
        Calls { bench, worker, run_id }
    }

    /// Does what the scheduler does, until nothing is left.
    fn decide(&self) {
        let scheduler = self.bench.store.for_scheduler();
        while scheduler.decide_waiting().unwrap()
            + scheduler.stop_calls().unwrap()
            + scheduler.end_calls().unwrap()
            > 0
        {}
        scheduler.promote_due().unwrap();
        while scheduler.decide_waiting().unwrap() > 0 {}
    }

    fn claim(&self) -> Vec<ClaimedJob> {
        self.decide();
        self.bench.claim(self.worker, 100)
    }

    /// Executes everything. Returns the names in order.
    fn run(&self, outcome: impl Fn(&str) -> Outcome) -> Vec<String> {
        let mut names = Vec::new();
        loop {
            let jobs = self.claim();
            if jobs.is_empty() {
                self.bench.assert_sound();
                return names;
            }
            for job in jobs {
                let name = job.name.clone().unwrap();
                self.bench.finish(self.worker, &job, outcome(&name));
                names.push(name);
            }
        }
    }

    fn status(&self, run_id: i64) -> RunStatus {
        self.bench.store.runs().get(run_id).unwrap().status
    }

    fn job(&self, run_id: i64, name: &str) -> windlass_engine::store::Job {
        self.bench.store.jobs().find_by_name(run_id, name).unwrap().unwrap()
    }

    fn children(&self) -> Vec<i64> {
        self.bench.store.runs().below(self.run_id, 0, 100).unwrap().iter().map(|child| child.run_id).collect()
    }
}

fn output(json: &Json) -> Outcome {
    Outcome::Successful { output: Some(json.to_string()) }
}

fn works(name: &str) -> Outcome {
    match name {
        "list" => output(&json!({ "count": 7 })),
        "copy" => output(&json!(42)),
        _ => success(),
    }
}

#[test]
fn a_job_starts_a_run_and_gets_its_outputs() {
    let calls = Calls::of(LOAD);
    assert_eq!(calls.run(works), ["list", "copy", "check", "after"]);
    assert_eq!(calls.status(calls.run_id), RunStatus::Successful);
    let [child] = calls.children()[..] else { panic!("one child run") };
    let run = calls.bench.store.runs().get(child).unwrap();
    assert_eq!((run.workflow.as_str(), run.status), ("load", RunStatus::Successful));
    assert_eq!(run.params, json!({ "region": "eu", "count": 7 }).to_string());
    assert_eq!((run.dir.as_deref(), run.root_run_id), (Some("/top"), Some(calls.run_id)));
    let job = calls.job(calls.run_id, "load");
    assert_eq!((job.status, job.attempt, Some(job.id)), (JobStatus::Successful, 1, run.parent_job_id));
    let output: Json = serde_json::from_str(&job.output.unwrap()).unwrap();
    assert_eq!(output, json!({ "rows": 42, "region": "eu" }));
    let outputs = calls.bench.store.runs().outputs(calls.run_id).unwrap();
    assert_eq!(outputs, Some(Ok(json!({ "region": "eu", "rows": 42 }))));
}

/// The event may come while the run at the top still does other things.
#[test]
fn a_child_run_gets_an_event_that_came_before_it_began() {
    let calls = Calls::of(
        "[jobs.first]\nrun = 'first'\n[jobs.call]\nneeds = 'first'\nworkflow = 'paid'\n\
         [workflows.paid.jobs.paid]\nwait_for = { event = 'paid' }\n",
    );
    let signal = NewSignal { name: "paid".to_owned(), key: None, payload: "7".to_owned(), event_id: None };
    calls.bench.store.events().signal(signal).unwrap();
    assert_eq!(calls.run(works), ["first"]);
    assert_eq!(calls.status(calls.run_id), RunStatus::Successful);
}

#[test]
fn a_job_waits_for_its_run_and_says_so() {
    let calls = Calls::of(LOAD);
    let list = calls.claim().remove(0);
    calls.bench.finish(calls.worker, &list, works("list"));
    calls.decide();
    let job = calls.job(calls.run_id, "load");
    assert_eq!((job.status, job.waits_for), (JobStatus::Waiting, Some(WaitsFor::Run)));
    let [child] = calls.children()[..] else { panic!("one child run") };
    let why = calls.bench.store.jobs().why(job.id).unwrap();
    let waits = Reason::WaitsForRun {
        run_id: child,
        workflow: "load".to_owned(),
        status: RunStatus::Pending,
        stopping: false,
    };
    assert_eq!(why.reasons, [waits]);
    calls.bench.assert_sound();
}

#[test]
fn a_failed_run_fails_the_job_with_the_names_of_the_failed_jobs() {
    let calls = Calls::of(LOAD);
    calls.run(|name| if name == "copy" { failure() } else { works(name) });
    assert_eq!(calls.status(calls.run_id), RunStatus::Failed);
    let [child] = calls.children()[..] else { panic!("one child run") };
    let job = calls.job(calls.run_id, "load");
    assert_eq!(job.status, JobStatus::Failed);
    assert_eq!(job.last_error.unwrap(), format!("run {child} of `load` failed: copy"));
    assert_eq!(calls.job(calls.run_id, "after").status, JobStatus::Skipped);
}

#[test]
fn an_output_without_a_value_fails_the_job() {
    let calls = Calls::of(LOAD);
    calls.run(|name| if name == "copy" { success() } else { works(name) });
    let job = calls.job(calls.run_id, "load");
    assert_eq!(job.status, JobStatus::Failed);
    let error = job.last_error.unwrap();
    assert!(error.contains("`outputs.rows`") && error.contains("jobs.copy.output"), "{error}");
    // The run has nothing to retry, so the job starts another one.
    assert!(calls.bench.store.runs().retry(calls.run_id, RetrySelection::Failed).unwrap() > 0);
    calls.run(works);
    assert_eq!((calls.status(calls.run_id), calls.children().len()), (RunStatus::Successful, 2));
}

#[test]
fn params_that_do_not_fit_fail_the_job_without_a_run() {
    let calls = Calls::of(LOAD);
    calls.run(|name| if name == "list" { output(&json!({ "count": "many" })) } else { works(name) });
    let job = calls.job(calls.run_id, "load");
    assert_eq!((job.status, job.attempt), (JobStatus::Failed, 0));
    let error = job.last_error.unwrap();
    assert!(error.contains("no run was started") && error.contains("`count` must be an integer"), "{error}");
    assert!(calls.children().is_empty());
}

#[test]
fn each_attempt_of_a_job_is_a_run_of_its_own() {
    let calls =
        Calls::of(&LOAD.replace(
            "workflow = \"load\"",
            "workflow = \"load\"\nretry = { max_attempts = 3, delay = \"0s\" }",
        ));
    let tries = std::cell::Cell::new(0);
    calls.run(|name| match name {
        "copy" if tries.replace(tries.get() + 1) < 2 => failure(),
        _ => works(name),
    });
    assert_eq!((calls.status(calls.run_id), calls.children().len()), (RunStatus::Successful, 3));
    let job = calls.job(calls.run_id, "load");
    assert_eq!((job.status, job.attempt, job.failures), (JobStatus::Successful, 3, 2));
    let attempts = calls.bench.store.jobs().attempts(job.id).unwrap();
    assert_eq!(attempts.iter().map(|attempt| attempt.attempt).collect::<Vec<_>>(), [1, 2]);
}

const NESTED: &str = r#"
[workflows.outer]
[workflows.outer.jobs.call]
workflow = "inner"
[workflows.outer.finally.clean]
run = "clean"
[workflows.inner.jobs.work]
run = "work"
[jobs.top]
workflow = "outer"
[finally.last]
run = "last"
"#;

/// The run, its child, and the child of that, with a job that runs.
fn running() -> (Calls, ClaimedJob, [i64; 2]) {
    let calls = Calls::of(NESTED);
    let work = calls.claim().remove(0);
    let children = calls.children().try_into().unwrap();
    (calls, work, children)
}

#[test]
fn cancelling_a_run_stops_the_runs_below_it_and_waits_for_their_ends() {
    let (calls, work, [outer, inner]) = running();
    let cancelled = calls.bench.store.runs().cancel(calls.run_id).unwrap();
    assert_eq!((cancelled.cancelled, cancelled.stopping), (0, 1));
    calls.decide();
    assert_eq!([calls.run_id, outer, inner].map(|run| calls.status(run)), [RunStatus::Running; 3]);
    assert!(calls.job(inner, "work").cancel_requested_at.is_some());
    calls.bench.finish(calls.worker, &work, Outcome::Cancelled { error: "stopped".to_owned() });
    assert_eq!(calls.run(works), ["clean", "last"], "handlers run from the inside out");
    assert_eq!([calls.run_id, outer, inner].map(|run| calls.status(run)), [RunStatus::Cancelled; 3]);
    assert_eq!(calls.job(calls.run_id, "top").status, JobStatus::Cancelled);
}

#[test]
fn a_cancelled_child_run_cancels_its_job() {
    let (calls, work, [outer, inner]) = running();
    calls.bench.store.runs().cancel(inner).unwrap();
    calls.bench.finish(calls.worker, &work, Outcome::Cancelled { error: "stopped".to_owned() });
    calls.run(works);
    let job = calls.job(outer, "call");
    assert_eq!(job.status, JobStatus::Cancelled);
    assert_eq!(job.last_error.unwrap(), format!("run {inner} of `inner` was cancelled"));
    assert_eq!(calls.status(outer), RunStatus::Failed, "a run with a cancelled job, as ever");
    assert_eq!(calls.status(calls.run_id), RunStatus::Failed);
}

#[test]
fn a_timeout_of_the_job_is_one_of_its_run() {
    let calls = Calls::of(&NESTED.replace("workflow = \"outer\"", "workflow = \"outer\"\ntimeout = \"5s\""));
    let work = calls.claim().remove(0);
    let [outer, inner] = calls.children()[..] else { panic!("two runs") };
    calls.bench.clock.advance_ms(6_000);
    calls.decide();
    calls.decide();
    assert!(calls.job(inner, "work").cancel_requested_at.is_some());
    calls.bench.finish(calls.worker, &work, Outcome::Cancelled { error: "stopped".to_owned() });
    calls.run(works);
    let job = calls.job(calls.run_id, "top");
    assert_eq!(job.status, JobStatus::Failed);
    assert_eq!(job.last_error.unwrap(), format!("run {outer} of `outer` reached its timeout"));
}

#[test]
fn a_retry_of_what_failed_retries_the_failed_run_in_place() {
    let (calls, work, [outer, inner]) = running();
    calls.bench.finish(calls.worker, &work, failure());
    calls.run(works);
    assert_eq!(calls.status(calls.run_id), RunStatus::Failed);
    let refused = calls.bench.store.runs().retry(inner, RetrySelection::Failed).unwrap_err().to_string();
    assert!(refused.contains(&format!("retry run {}", calls.run_id)), "{refused}");
    calls.bench.store.runs().retry(calls.run_id, RetrySelection::Failed).unwrap();
    calls.bench.assert_sound();
    assert_eq!(calls.run(works), ["work", "clean", "last"]);
    assert_eq!(calls.children(), [outer, inner]);
    assert_eq!([calls.run_id, outer, inner].map(|run| calls.status(run)), [RunStatus::Successful; 3]);
    calls.bench.store.runs().retry(calls.run_id, RetrySelection::From("top".to_owned())).unwrap();
    assert_eq!(calls.run(works), ["work", "clean", "last"]);
    assert_eq!(calls.children().len(), 4, "a retry from the job starts a new run");
}

#[test]
fn a_worker_of_one_run_takes_the_jobs_of_the_runs_below_it() {
    let calls = Calls::of(NESTED);
    calls.decide();
    for (run_id, expected) in [(calls.run_id + 100, 0), (calls.run_id, 1)] {
        let request = request(calls.worker, Scope::Runs(vec![run_id]), 10);
        let Claims::Jobs(jobs) = calls.bench.store.for_workers().claim(request).unwrap() else {
            panic!("fenced")
        };
        assert_eq!(jobs.len(), expected);
    }
}

#[test]
fn lists_have_runs_at_the_top_and_children_apart() {
    let (calls, _work, [outer, inner]) = running();
    let list = |children| {
        let filter = RunFilter { children, ..RunFilter::newest(10) };
        calls.bench.store.runs().list(&filter).unwrap().rows.iter().map(|run| run.id).collect::<Vec<_>>()
    };
    assert_eq!(list(false), [calls.run_id]);
    assert_eq!(list(true), [inner, outer]);
    assert_eq!(calls.bench.store.runs().unfinished().unwrap(), [calls.run_id]);
}

#[test]
fn child_runs_are_pruned_with_the_run_at_the_top() {
    let calls = Calls::of(NESTED);
    calls.run(works);
    calls.bench.clock.advance_ms(10_000);
    let prune = Prune { keep_runs: Some(0), before_ms: None, ..Prune::default() };
    assert_eq!(
        Prune { keep_runs: Some(1), ..prune },
        Prune { keep_runs: Some(1), before_ms: None, ..Prune::default() }
    );
    let one = |prune| calls.bench.store.for_scheduler().prune_step(prune).unwrap();
    assert_eq!(
        one(Prune { keep_runs: Some(1), before_ms: None, ..Prune::default() }).runs,
        0,
        "children do not count"
    );
    let mut runs = 0;
    loop {
        let pruned = one(prune);
        calls.bench.assert_sound();
        if pruned == windlass_engine::store::Pruned::default() {
            break;
        }
        runs += pruned.runs;
    }
    assert_eq!(runs, 3);
}

#[test]
fn a_registered_workflow_is_embedded_when_the_run_is_submitted() {
    let bench = Bench::new();
    let register = |text: &str, name: &str, dir: &str| {
        let workflow = Workflow { name: name.to_owned(), ..workflow(text) };
        let new = NewRegistration { workflow, file: None, dir: Some(dir.to_owned()) };
        bench.store.registrations().apply(new).unwrap();
    };
    register(
        "[jobs.a]\nworkflow = 'local'\n[workflows.local.jobs.b]\nworkflow = 'leaf'",
        "middle",
        "/middle",
    );
    register("[jobs.old]\nrun = 'x'", "leaf", "/leaf");
    let submit = |text: &str| {
        let run = NewRun {
            workflow: workflow(text),
            params: Default::default(),
            dir: Some("/top".to_owned()),
            run_key: None,
            occasion: None,
        };
        bench.store.runs().submit(run).map(|submitted| submitted.run_id)
    };
    let run_id = submit("[jobs.top]\nworkflow = 'middle'").unwrap();
    register("[jobs.new]\nrun = 'x'", "leaf", "/leaf");
    let worker = bench.worker();
    let calls = Calls { bench, worker, run_id };
    assert_eq!(calls.run(works), ["old"], "as it was at the submission");
    let runs = calls.bench.store.runs();
    let seen: Vec<(String, Option<String>)> =
        calls.children().iter().map(|id| runs.get(*id).unwrap()).map(|run| (run.workflow, run.dir)).collect();
    let expected = [("middle", "/middle"), ("local", "/middle"), ("leaf", "/leaf")];
    assert_eq!(seen, expected.map(|(name, dir)| (name.to_owned(), Some(dir.to_owned()))));

    let submit = |text: &str| {
        let run = NewRun {
            workflow: workflow(text),
            params: Default::default(),
            dir: None,
            run_key: None,
            occasion: None,
        };
        calls.bench.store.runs().submit(run).map(|submitted| submitted.run_id).unwrap_err().to_string()
    };
    let unknown = submit("[jobs.top]\nworkflow = 'nobody'");
    assert!(unknown.contains("neither a workflow of the file nor registered"), "{unknown}");
    let circle = Workflow { name: "leaf".to_owned(), ..workflow("[jobs.again]\nworkflow = 'middle'") };
    let new = NewRegistration { workflow: circle, file: None, dir: None };
    calls.bench.store.registrations().apply(new).unwrap();
    let error = submit("[jobs.top]\nworkflow = 'leaf'");
    assert!(error.contains("`leaf` calls itself: leaf → middle → local → leaf"), "{error}");
}

/// A file whose workflows call each other: `w0` is called by the top, and calls `w1`, and so on.
fn chain(depth: usize) -> String {
    let mut text = "[jobs.call]\nworkflow = 'w1'\n".to_owned();
    for level in 1..=depth {
        let action =
            if level < depth { format!("workflow = 'w{}'", level + 1) } else { "run = 'x'".to_owned() };
        text.push_str(&format!("[workflows.w{level}.jobs.call]\n{action}\n"));
    }
    text
}

#[test]
fn sixteen_levels_run_and_seventeen_are_refused_with_the_chain() {
    let calls = Calls::of(&chain(16));
    assert_eq!(calls.run(works), ["call"]);
    assert_eq!((calls.status(calls.run_id), calls.children().len()), (RunStatus::Successful, 16));
    let source = Source::new("top.toml", chain(17).into()).unwrap();
    let report = parse(&source).unwrap_err();
    let message = &report.diagnostics()[0].message;
    assert!(
        message.contains("17 deep") && message.contains("top → w1 → w2") && message.ends_with("→ w17"),
        "{message}"
    );
}

#[test]
fn a_job_that_another_program_ended_leaves_no_run_behind() {
    let (calls, work, [outer, inner]) = running();
    calls.bench.raw().execute(&format!(
        "UPDATE jobs SET status = 'FAILED', waits_for = NULL, finished_at = 1 WHERE run_id = {outer} AND name = 'call'"
    ));
    calls.bench.clock.advance_ms(60_000);
    calls.bench.store.for_scheduler().reconcile_step(0).unwrap();
    assert!(calls.job(inner, "work").cancel_requested_at.is_some());
    calls.bench.finish(calls.worker, &work, Outcome::Cancelled { error: "stopped".to_owned() });
    calls.decide();
    assert_eq!(calls.status(inner), RunStatus::Cancelled);
}
