//! States of a database that operations find. Each has enough work for more than one transaction.

use windlass_engine::store::{Backfill, ClaimedJob, Finish, NewJob, NewRegistration, RetrySelection};
use windlass_engine::{JobStatus, Result, Store, WorkerStatus};
use windlass_workflow::kinds::call::Call;
use windlass_workflow::model::{Catchup, Concurrency, OnFull, Overlap, Rule, Schedule as Definition};
use windlass_workflow::{ForEach, ItemSource, OnInterrupt, Source, Workflow};

use windlass_engine::transition::{Outcome, Repeat, after_attempt};

use crate::support::{Bench, failure, graph, noop, success};

pub(crate) const HOUR_MS: i64 = 3_600_000;

/// Each of its jobs has one attempt.
pub(crate) fn workflow(name: &str, needs: Vec<Vec<usize>>) -> Workflow {
    let mut workflow = Workflow { name: name.to_owned(), ..graph(needs) };
    for job in &mut workflow.jobs {
        job.retry.max_attempts = 1;
    }
    workflow
}

pub(crate) fn keyed(key: &str, on_full: OnFull) -> NewJob {
    NewJob { concurrency: Some(Concurrency { key: key.to_owned(), limit: 1, on_full }), ..noop() }
}

/// A schedule that occurs every hour for ten hours.
pub(crate) fn schedule(name: &str, overlap: Overlap) -> Definition {
    Definition {
        name: name.to_owned(),
        rule: Rule::EveryMs(HOUR_MS),
        timezone: "UTC".to_owned(),
        overlap,
        catchup: Catchup::All,
        catchup_window_ms: None,
        catchup_max: 10,
        start_ms: None,
        end_ms: Some(10 * HOUR_MS),
        jitter_ms: 0,
        params: Default::default(),
    }
}

pub(crate) fn apply(store: &Store, name: &str, jobs: usize, schedules: Vec<Definition>) -> Result<()> {
    let workflow = Workflow { schedules, ..workflow(name, vec![vec![]; jobs]) };
    store
        .registrations()
        .apply(NewRegistration { workflow, file: Some(name.to_owned()), dir: None })
        .map(drop)
}

/// Fires schedules like a scheduler.
pub(crate) fn fire_all(store: &Store) -> Result<()> {
    for _round in 0..100 {
        let mut again = false;
        for schedule_id in store.for_scheduler().schedules_to_fire(100, &[])? {
            again |= store.for_scheduler().fire(schedule_id)?.again;
        }
        if !again {
            return Ok(());
        }
    }
    panic!("schedules fire without an end");
}

/// Finishes everything that can be claimed.
pub(crate) fn end_all(bench: &Bench, worker_id: i64) {
    loop {
        let jobs = bench.claim(worker_id, 1_000);
        if jobs.is_empty() {
            return;
        }
        let ends: Vec<_> = jobs.into_iter().map(|job| (worker_id, job, success())).collect();
        bench.finish_all(&ends);
    }
}

/// One schedule for each overlap rule, each with an unfinished run, missed occurrences, and a backfill.
pub(crate) fn due_schedules(bench: &Bench) {
    let overlaps = [
        Overlap::Skip,
        Overlap::QueueOne,
        Overlap::QueueAll,
        Overlap::Allow,
        Overlap::CancelRunning,
        Overlap::TerminateRunning,
    ];
    let schedules = overlaps.map(|overlap| schedule(&format!("{overlap:?}"), overlap));
    apply(&bench.store, "report", 2, schedules.into()).unwrap();
    bench.clock.advance_ms(HOUR_MS);
    fire_all(&bench.store).unwrap();
    bench.clock.advance_ms(3 * HOUR_MS);
    let schedule_id = bench.store.schedules().list().unwrap()[0].id;
    let backfill = Backfill { schedule_id, from_ms: -3 * HOUR_MS, to_ms: 0, at_once: 2 };
    bench.store.schedules().backfill(backfill).unwrap();
}

/// A run, jobs that share a key, a job whose time has not come, and a worker, whose id is returned.
pub(crate) fn pending_jobs(bench: &Bench) -> i64 {
    let worker = bench.worker();
    let mut graph = workflow("work", vec![vec![], vec![], vec![0], vec![0, 1], vec![2, 3]]);
    graph.jobs[1].priority = 1;
    bench.submit(graph);
    bench.store.jobs().enqueue(vec![keyed("k", OnFull::Wait), keyed("k", OnFull::Wait)]).unwrap();
    bench.enqueue(NewJob { execute_after: Some(bench.clock.now_ms() + 10_000), ..noop() });
    worker
}

/// Runs that wait: for a key with a slot that is free now, for one whose run goes on, and for one whose run they cancel. The first
/// was retried, and cancelled.
pub(crate) fn waiting_runs(bench: &Bench) {
    let submit = |key: &str, on_full: OnFull| {
        let concurrency = Some(Concurrency { key: key.to_owned(), limit: 1, on_full });
        bench.submit(Workflow { concurrency, ..workflow("limited", vec![vec![], vec![0]]) })
    };
    let admit = || bench.store.for_scheduler().admit_runs("").map(drop).unwrap();
    let worker = bench.worker();
    let ended = submit("free", OnFull::Wait);
    admit();
    for outcome in [success(), final_failure()] {
        let job = bench.claim(worker, 1).remove(0);
        bench.finish(worker, &job, outcome);
    }
    bench.store.runs().retry(ended, RetrySelection::Failed).unwrap();
    submit("free", OnFull::Wait);
    let keys = [("taken", OnFull::Skip), ("oldest", OnFull::CancelOldest)];
    for (key, on_full) in keys {
        submit(key, on_full);
    }
    admit();
    for (key, on_full) in keys {
        submit(key, on_full);
        submit(key, on_full);
    }
    bench.store.runs().cancel(ended).unwrap();
}

/// A run that waits for an event, and one that sends it and another one.
pub(crate) fn undecided_signals(bench: &Bench) {
    let text = "name = 'shop'\n[jobs.paid]\nwait_for = { event = 'paid' }\n";
    let other = "name = 'till'\n[jobs.a]\nsignal = { event = 'paid', payload = 7 }\n[jobs.b]\nneeds = 'a'\n\
                 signal = { event = 'counted' }\n";
    for text in [text, other] {
        let source = Source::new("w.toml", text.as_bytes().to_vec()).unwrap();
        bench.submit(windlass_workflow::parse(&source).unwrap());
    }
}

/// A group whose items are not decided, and a job after it. The first item that fails ends the others.
pub(crate) fn undecided_group(bench: &Bench, items: i64) {
    let mut graph = workflow("many", vec![vec![], vec![0]]);
    let source = ItemSource::List((0..items).map(Into::into).collect());
    graph.jobs[0].for_each =
        Some(Box::new(ForEach { max_parallel: Some(2), fail_fast: true, ..ForEach::of(source) }));
    bench.submit(graph);
}

/// A group of four items, of which the first worker executes some.
pub(crate) fn running_items(bench: &Bench, running: usize) -> i64 {
    let worker = bench.worker();
    undecided_group(bench, 4);
    assert_eq!(bench.store.for_scheduler().decide_waiting().unwrap(), 1);
    if running == 1 {
        for _item in 0..3 {
            let jobs = bench.claim(worker, 1);
            bench.finish(worker, &jobs[0], success());
        }
    }
    assert_eq!(bench.claim(worker, 2).len(), running);
    worker
}

/// One item of a group failed, and the run is over.
pub(crate) fn failed_group(bench: &Bench) {
    let worker = running_items(bench, 1);
    // The last item is running.
    let (job_id, run_id, retry_state) = bench.store.for_workers().claimed_by(worker).unwrap().remove(0);
    let transition = after_attempt(&retry_state, failure(), 0.5);
    let attempt = retry_state.attempt;
    let finish = Finish {
        job_id,
        run_id,
        attempt,
        worker_id: worker,
        transition,
        exit_code: None,
        logs: Vec::new(),
        artifacts: Vec::new(),
        variables: Vec::new(),
    };
    bench.store.for_workers().finish_and_claim(vec![finish], None).unwrap();
    assert!(bench.store.for_workers().set_status(worker, WorkerStatus::Stopped).unwrap());
}

pub(crate) fn failed_run(bench: &Bench) {
    let worker = pending_jobs(bench);
    for job in bench.claim(worker, 100) {
        bench.finish(worker, &job, failure());
    }
    assert!(bench.store.for_workers().set_status(worker, WorkerStatus::Stopped).unwrap());
}

/// More rows than one transaction deletes.
pub(crate) fn many_finished_jobs(bench: &Bench) {
    let worker = bench.worker();
    bench.submit(workflow("large", vec![vec![]; 700]));
    bench.submit(workflow("small", vec![vec![], vec![0]]));
    bench.store.jobs().enqueue(vec![noop(); 3]).unwrap();
    end_all(bench, worker);
    assert!(bench.store.for_workers().set_status(worker, WorkerStatus::Stopped).unwrap());
    bench.clock.advance_ms(1_000);
    bench.submit(workflow("unfinished", vec![vec![], vec![0]]));
    bench.enqueue(noop());
}

/// More jobs than one transaction takes back.
pub(crate) fn many_running_jobs(bench: &Bench) {
    apply(&bench.store, "report", 1, vec![schedule("hourly", Overlap::Allow)]).unwrap();
    let worker = bench.worker();
    bench.store.jobs().enqueue(vec![noop(); 1_100]).unwrap();
    assert_eq!(bench.claim(worker, 1_000).len() + bench.claim(worker, 1_000).len(), 1_100);
}

/// A worker executes seven jobs. Returns the id of the first.
fn claim_seven_jobs(bench: &Bench) -> i64 {
    let worker = bench.worker();
    let mut workflow = workflow("invalid", vec![vec![], vec![0]]);
    workflow.jobs[0].on_interrupt = OnInterrupt::Fail;
    workflow.jobs[0].allow_failure = true;
    let run_id = bench.submit(workflow);
    bench.store.jobs().enqueue(vec![noop(); 6]).unwrap();
    assert_eq!(bench.claim(worker, 100).len(), 7);
    bench.store.jobs().find_by_name(run_id, "j0").unwrap().unwrap().id
}

/// Makes the tables refuse to take back the first of its jobs.
pub(crate) fn worker_with_an_invalid_job(bench: &Bench) {
    let job_id = claim_seven_jobs(bench);
    bench.database.refuse(job_id, "FAILED");
}

/// More reports than one transaction applies.
pub(crate) fn many_reports(bench: &Bench) {
    let worker = pending_jobs(bench);
    bench.store.jobs().enqueue(vec![noop(); 600]).unwrap();
    assert!(bench.claim(worker, 1_000).len() > 600);
    // There is no retry, because its backoff is random.
    bench.raw().execute(
        "UPDATE jobs SET max_attempts = 1;
         UPDATE jobs SET status = CASE WHEN id % 3 = 0 THEN 'FAILED' ELSE 'SUCCESSFUL' END
         WHERE status = 'RUNNING'",
    );
}

/// Makes the tables refuse to finish the first reported job.
pub(crate) fn one_invalid_report(bench: &Bench) {
    let job_id = claim_seven_jobs(bench);
    bench.raw().execute("UPDATE jobs SET status = 'SUCCESSFUL' WHERE status = 'RUNNING'");
    bench.database.refuse(job_id, "SUCCESSFUL");
}

pub(crate) fn runs_with_wrong_counters(bench: &Bench) {
    for name in ["one", "two", "three"] {
        bench.submit(workflow(name, vec![vec![], vec![0], vec![]]));
    }
    bench.raw().execute("UPDATE jobs SET status = 'SUCCESSFUL', finished_at = 1 WHERE name = 'j0'");
    bench.clock.advance_ms(20_000);
}

/// A free slot with waiting jobs, and jobs that do not simply wait.
pub(crate) fn keys_with_free_slots(bench: &Bench) {
    for (key, on_full) in [("free", OnFull::Wait), ("skip", OnFull::Skip), ("oldest", OnFull::CancelOldest)] {
        bench.store.jobs().enqueue(vec![keyed(key, on_full); 3]).unwrap();
    }
    bench.raw().execute(
        "UPDATE jobs SET status = 'CANCELLED', finished_at = 1
         WHERE status = 'PENDING' AND concurrency_key = 'free'",
    );
}

/// Jobs that wait for decisions: one runs because its parent failed, one is skipped because of that, and one is not needed.
/// The child of the last one is decided after it.
pub(crate) fn undecided_jobs(bench: &Bench) {
    let worker = bench.worker();
    for (rule, outcome) in
        [("any_failed", final_failure()), ("any_successful", final_failure()), ("any_failed", success())]
    {
        let run_id = bench.submit(workflow(rule, vec![vec![], vec![0], vec![1]]));
        bench.raw().execute(&format!(
            "UPDATE jobs SET join_rule = '{rule}' WHERE run_id = {run_id} AND name = 'j1'"
        ));
        let job = bench.claim(worker, 1).remove(0);
        bench.finish(worker, &job, outcome);
    }
    assert_eq!(bench.store.upkeep().stats().unwrap().jobs.of(JobStatus::Waiting), 3);
}

/// Jobs of run 1 that wait in every way, each with a child.
pub(crate) fn waiting_jobs(bench: &Bench) {
    let text = "name = \"waits\"
        [jobs.nap]
        sleep = \"1h\"
        [jobs.paid]
        wait_for = { event = \"paid\" }
        [jobs.ask]
        approval = { prompt = \"?\" }
        [jobs.all]
        needs = [\"nap\", \"paid\", \"ask\"]
        run = \"true\"";
    let source = Source::new("waits.toml", text.into()).unwrap();
    bench.submit(windlass_workflow::parse(&source).unwrap());
}

/// When the sleep of [`waiting_jobs`] is over.
pub(crate) const WAITS_END_MS: i64 = 1_000_000 + HOUR_MS;

/// A run whose job calls a workflow, whose job calls another one.
pub(crate) fn calls(bench: &Bench) {
    let call = |called| Call { called: Some(called), ..Call::of("called") };
    let mut top = workflow("top", vec![vec![], vec![0]]);
    top.workflows = vec![workflow("outer", vec![vec![]]), workflow("inner", vec![vec![]])];
    top.jobs[0].action = call(0).into();
    top.workflows[0].jobs[0].action = call(1).into();
    assert_eq!(bench.submit(top), 1);
}

/// The same, and the innermost job runs. Returns its worker.
pub(crate) fn running_calls(bench: &Bench) -> (i64, ClaimedJob) {
    calls(bench);
    crate::operations::decide_all(&bench.store).unwrap();
    let worker = bench.worker();
    (worker, bench.claim(worker, 1).remove(0))
}

/// The same, and the innermost job has ended.
pub(crate) fn ended_calls(bench: &Bench, outcome: Outcome) {
    let (worker, job) = running_calls(bench);
    bench.finish(worker, &job, outcome);
    assert!(bench.store.for_workers().set_status(worker, WorkerStatus::Stopped).unwrap());
}

pub(crate) fn final_failure() -> Outcome {
    Outcome::Failed { error: "no luck".to_owned(), repeat: Repeat::Pointless }
}

/// More due jobs than one transaction promotes, and a run that has reached its timeout.
pub(crate) fn many_due_jobs(bench: &Bench) {
    let worker = bench.worker();
    let later = Some(bench.clock.now_ms() + 5_000);
    let jobs = [vec![noop(); 1_500], vec![keyed("k", OnFull::Wait); 2]].concat();
    let jobs = jobs.into_iter().map(|job| NewJob { execute_after: later, ..job });
    bench.store.jobs().enqueue(jobs.collect()).unwrap();
    bench.submit(Workflow { timeout_ms: Some(5_000), ..workflow("late", vec![vec![], vec![0]]) });
    assert_eq!(bench.claim(worker, 1).len(), 1);
    bench.clock.advance_ms(5_000);
}

/// Enough jobs for one transaction that finishes and another one that claims.
pub(crate) fn many_running_and_pending_jobs(bench: &Bench) {
    let worker = bench.worker();
    bench.store.jobs().enqueue(vec![noop(); 400]).unwrap();
    assert_eq!(bench.claim(worker, 200).len(), 200);
}
