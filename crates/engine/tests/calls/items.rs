//! Items that call a workflow, and deadlines of jobs whose work is elsewhere: in items, or in a run.

use windlass_engine::store::{ClaimedJob, RetrySelection};
use windlass_engine::transition::Outcome;
use windlass_engine::{JobStatus, RunStatus, WaitsFor};

use super::{Calls, works};
use crate::support::{failure, success};

const EACH: &str = r#"
[workflows.load]
params = { table = {} }
outputs = { table = "params.table" }
[workflows.load.jobs.copy]
run = "copy"
[workflows.load.jobs.check]
needs = "copy"
run = "check"
[jobs.each]
for_each = { in = ["a", "b", "c"], max_parallel = 1 }
workflow = "load"
params = { table = "{{ item }}" }
[jobs.after]
needs = "each"
run = "after"
"#;

/// The same with one call in place of the items, and with these keys.
fn one_call(keys: &str) -> String {
    let for_each = "for_each = { in = [\"a\", \"b\", \"c\"], max_parallel = 1 }";
    EACH.replace(for_each, keys).replace("{{ item }}", "a")
}

const DEADLINE_MS: i64 = 60_000;

fn is_asked_to_stop(calls: &Calls, job: &ClaimedJob) -> bool {
    let asked = calls.bench.store.for_workers().cancel_requests(calls.worker).unwrap();
    asked.iter().any(|(job_id, _urgency)| *job_id == job.id)
}

/// Lets time pass, and does what a scheduler does then.
fn pass(calls: &Calls, passed_ms: i64) {
    calls.bench.clock.advance_ms(passed_ms);
    calls.bench.store.for_scheduler().promote_due().unwrap();
    calls.decide();
    calls.bench.assert_sound();
}

#[test]
fn each_item_starts_a_run_when_it_is_its_turn() {
    let calls = Calls::of(EACH);
    let mut names = Vec::new();
    for children in 1..=3 {
        for _job in 0..2 {
            let jobs = calls.claim();
            assert_eq!((jobs.len(), calls.children().len()), (1, children), "one item at a time");
            calls.bench.finish(calls.worker, &jobs[0], works(jobs[0].name.as_deref().unwrap()));
            names.extend(jobs[0].name.clone());
        }
    }
    assert_eq!(names, ["copy", "check", "copy", "check", "copy", "check"]);
    assert_eq!(calls.run(works), ["after"]);
    assert_eq!(calls.status(calls.run_id), RunStatus::Successful);
    let items: Vec<String> =
        (0..3).map(|index| calls.job(calls.run_id, &format!("each[{index}]")).output.unwrap()).collect();
    assert_eq!(items, [r#"{"table":"a"}"#, r#"{"table":"b"}"#, r#"{"table":"c"}"#]);
}

#[test]
fn a_retry_goes_on_in_the_failed_runs_of_all_items_each_in_its_turn() {
    let calls = Calls::of(EACH);
    let broken = |name: &str| if name == "check" { failure() } else { works(name) };
    calls.run(broken);
    assert_eq!(calls.status(calls.run_id), RunStatus::Failed);
    let children = calls.children();
    assert_eq!(children.len(), 3);
    calls.bench.store.runs().retry(calls.run_id, RetrySelection::Failed).unwrap();
    calls.bench.assert_sound();
    calls.decide();
    let states = |run_ids: &[i64]| run_ids.iter().map(|run_id| calls.status(*run_id)).collect::<Vec<_>>();
    assert_eq!(states(&children), [RunStatus::Pending, RunStatus::Failed, RunStatus::Failed]);
    // What was copied is not copied again.
    assert_eq!(calls.run(works), ["check", "check", "check", "after"]);
    assert_eq!(calls.children(), children);
    assert_eq!(states(&children), [RunStatus::Successful; 3]);
}

#[test]
fn a_run_that_a_cancelled_retry_has_chosen_is_not_taken_up_by_a_retry_from_the_job() {
    for text in [EACH.to_owned(), one_call("")] {
        let calls = Calls::of(&text);
        calls.run(|name| if name == "check" { failure() } else { works(name) });
        let before = calls.children().len();
        calls.bench.store.runs().retry(calls.run_id, RetrySelection::Failed).unwrap();
        calls.bench.store.runs().cancel(calls.run_id).unwrap();
        assert!(calls.run(works).is_empty());
        calls.bench.store.runs().retry(calls.run_id, RetrySelection::From("each".to_owned())).unwrap();
        assert_eq!(calls.run(works).len(), before * 2 + 1);
        assert_eq!(calls.children().len(), before * 2, "new runs are started");
    }
}

#[test]
fn a_failed_run_whose_workspace_was_removed_is_started_anew() {
    let calls = Calls::of(&one_call(""));
    calls.run(|name| if name == "check" { failure() } else { works(name) });
    let removed = "INSERT INTO workspaces (run_id, keep, state)
                   SELECT id, 'never', 'removed' FROM runs WHERE parent_job_id IS NOT NULL";
    calls.bench.raw().execute(removed);
    calls.bench.store.runs().retry(calls.run_id, RetrySelection::Failed).unwrap();
    assert_eq!(calls.run(works), ["copy", "check", "after"]);
    assert_eq!(calls.children().len(), 2);
}

#[test]
fn a_cancelled_group_stops_the_runs_of_its_items() {
    let calls = Calls::of(EACH);
    let copy = calls.claim().remove(0);
    calls.bench.store.jobs().cancel(calls.job(calls.run_id, "each").id).unwrap();
    calls.decide();
    assert_eq!(calls.job(calls.run_id, "each").waits_for, Some(WaitsFor::Items));
    assert!(is_asked_to_stop(&calls, &copy));
    calls.bench.finish(calls.worker, &copy, Outcome::Cancelled { error: "stopped".to_owned() });
    assert!(calls.run(works).is_empty());
    assert_eq!(calls.job(calls.run_id, "each").status, JobStatus::Cancelled);
    assert_eq!(calls.status(calls.children()[0]), RunStatus::Cancelled);
    // Its run was not cancelled.
    assert_eq!(calls.status(calls.run_id), RunStatus::Failed);
}

#[test]
fn a_group_has_a_deadline_for_all_items_and_a_retry_begins_it_anew() {
    let text = EACH
        .replace("[jobs.after]", "deadline = \"1m\"\n[jobs.after]")
        .replace("workflow = \"load\"\nparams = { table = \"{{ item }}\" }", "run = \"item\"");
    let calls = Calls::of(&text);
    calls.bench.finish(calls.worker, &calls.claim()[0], success());
    let second = calls.claim().remove(0);
    pass(&calls, DEADLINE_MS - 1);
    assert!(!is_asked_to_stop(&calls, &second));
    pass(&calls, 1);
    assert!(is_asked_to_stop(&calls, &second));
    calls.bench.finish(calls.worker, &second, Outcome::Cancelled { error: "stopped".to_owned() });
    assert!(calls.run(works).is_empty());
    let group = calls.job(calls.run_id, "each");
    let reason = "it was not over at its deadline: 2 of 3 items failed, were cancelled or skipped, the first is each[1]";
    assert_eq!((group.status, group.last_error.as_deref()), (JobStatus::Failed, Some(reason)));
    assert_eq!(calls.job(calls.run_id, "each[2]").last_error.unwrap(), "the deadline of all items is over");
    calls.bench.store.runs().retry(calls.run_id, RetrySelection::Failed).unwrap();
    pass(&calls, DEADLINE_MS - 1);
    assert_eq!(calls.run(works), ["each[1]", "each[2]", "after"]);
    assert_eq!(calls.status(calls.run_id), RunStatus::Successful);
}

#[test]
fn a_job_that_calls_a_workflow_has_a_deadline_for_all_its_runs() {
    let calls = Calls::of(&one_call("deadline = \"1m\""));
    let copy = calls.claim().remove(0);
    pass(&calls, DEADLINE_MS - 1);
    assert!(!is_asked_to_stop(&calls, &copy));
    pass(&calls, 1);
    assert!(is_asked_to_stop(&calls, &copy));
    calls.bench.finish(calls.worker, &copy, Outcome::Cancelled { error: "stopped".to_owned() });
    assert!(calls.run(works).is_empty());
    let job = calls.job(calls.run_id, "each");
    assert_eq!(job.status, JobStatus::Failed);
    let child = calls.children()[0];
    let reason = format!("it was not over at its deadline: run {child} of `load` was cancelled");
    assert_eq!(job.last_error.as_deref(), Some(reason.as_str()));
    calls.bench.store.runs().retry(calls.run_id, RetrySelection::Failed).unwrap();
    pass(&calls, DEADLINE_MS - 1);
    assert_eq!(calls.run(works), ["copy", "check", "after"]);
    assert_eq!(calls.children(), [child]);
}
