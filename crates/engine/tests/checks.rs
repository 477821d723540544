//! Each invariant finds the row that breaks it, and no other invariant does.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use std::collections::BTreeSet;

use support::{Bench, graph, noop};
use windlass_engine::store::{NewJob, Problem};
use windlass_workflow::model::{Concurrency, OnFull};

/// A sound database with something of everything: run 1 has three jobs in a row, of which the first is running; job 4
/// is standalone.
fn sound_database() -> Bench {
    let bench = Bench::new();
    let mut workflow = graph(vec![vec![], vec![0], vec![1]]);
    workflow.tags = vec!["etl".to_owned(), "night".to_owned()];
    bench.submit(workflow);
    bench.enqueue(noop());
    let worker = bench.worker();
    assert_eq!(bench.claim(worker, 1)[0].id, 1);
    bench.raw().execute(
        "INSERT INTO schedules (workflow, name, next_at, decided_until) VALUES ('w', 's', 20, 10);
         INSERT INTO registration_versions (name, version, workflow_id, applied_at) VALUES ('graph', 1, 1, 1);
         INSERT INTO registrations (name, version, workflow_id) VALUES ('graph', 1, 1);
         INSERT INTO queues (name, max_running) VALUES ('default', 1);
         INSERT INTO occurrences (schedule_id, scheduled_for, status, source, start_after)
             VALUES (1, 10, 'SKIPPED', 'schedule', 10);
         UPDATE runs SET schedule_id = 1, scheduled_for = 20;",
    );
    bench.assert_sound();
    bench
}

/// (the rule, a statement that breaks it, the reported text)
const BREAKS: &[(&str, &str, &str)] = &[
    (
        "a run that waits for a slot of its concurrency key has one, and none of its jobs goes on",
        "UPDATE runs SET waits_for = 'slot' WHERE id = 1",
        "run 1 waits for a slot, and has no concurrency key",
    ),
    (
        "a run that waits for a slot of its concurrency key has one, and none of its jobs goes on",
        "UPDATE runs SET waits_for = 'slot', concurrency_key = 'k', concurrency_limit = 1, on_full = 'wait', status = 'PENDING'
         WHERE id = 1",
        "run 1 waits for a slot, and has a job that goes on",
    ),
    (
        "a run has the last definition that it got",
        "UPDATE runs SET definition = 2 WHERE id = 1",
        "run 1 has definition 2, which is not the last one that it got",
    ),
    (
        "a job has a definition of its run",
        "UPDATE jobs SET definition = 2 WHERE id = 1",
        "job j1 has definition 2 of run 1, which has 1",
    ),
    (
        "a run has exactly the tags of its definition",
        "DELETE FROM run_tags WHERE tag = 'etl'",
        "run 1 is listed under 1 tags, 1 of them among the 2 tags of its definition",
    ),
    (
        "a run has exactly the tags of its definition",
        "UPDATE run_tags SET tag = 'nigh' WHERE tag = 'night'",
        "run 1 is listed under 2 tags, 1 of them among the 2 tags of its definition",
    ),
    (
        "a run has exactly the tags of its definition",
        "UPDATE workflows SET tags = NULL",
        "run 1 is listed under 2 tags, 0 of them among the 0 tags of its definition",
    ),
    (
        "the value of a variable is within its limit",
        "INSERT INTO variables (name, value)
         VALUES ('large', replace(replace(replace(replace('xxxxxxxxxx', 'x', 'xxxxxxxxxx'), 'x', 'xxxxxxxxxx'),
                                          'x', 'xxxxxxxxxx'), 'x', 'xxxxxxxxxx'))",
        "variable large has a value of 100000 characters",
    ),
    (
        "a trigger belongs to a registered workflow",
        "INSERT INTO triggers (workflow, name, definition, event_name, after_event_id, created_at)
         VALUES ('gone', 'push', '{}', 'push', 0, 0)",
        "trigger gone/push is there, and its workflow is not registered",
    ),
    (
        "the workspace of an unfinished run is open",
        "INSERT INTO workspaces (run_id, keep, state) VALUES (1, 'never', 'removed')",
        "run 1 is RUNNING, and its workspace is removed",
    ),
    (
        "a running job has a registered worker",
        "UPDATE jobs SET worker_id = 99 WHERE id = 1",
        "job j1 is RUNNING, and worker 99 is unknown",
    ),
    (
        "the jobs of a dead worker are taken back within a minute",
        "UPDATE workers SET status = 'DEAD', stopped_at = 939999",
        "job j1 is RUNNING, and its worker 1 is DEAD",
    ),
    (
        "no job starts before its parents are finished",
        "UPDATE jobs SET status = 'PENDING' WHERE id = 2",
        "job j2 is PENDING, and its parent j1 is RUNNING, unfinished",
    ),
    (
        "no two jobs share an idempotency key",
        "UPDATE jobs SET created_at = 6, token = 7 WHERE id IN (1, 4)",
        "jobs j1 and j4 have the key 6-7",
    ),
    (
        "a blocked job has unfinished parents, and counts them in blocked_by",
        "UPDATE jobs SET blocked_by = 5 WHERE id = 3",
        "job j3 counts 5 unfinished parents, and has 1",
    ),
    (
        "a blocked job has unfinished parents, and counts them in blocked_by",
        "UPDATE jobs SET status = 'BLOCKED' WHERE id = 4",
        "job j4 is BLOCKED, and all its parents are finished",
    ),
    (
        "no job depends on itself, directly or through other jobs",
        "INSERT INTO job_dependencies (parent_id, child_id) VALUES (3, 2); UPDATE jobs SET blocked_by = 2 WHERE id = 2",
        "these jobs need each other in a cycle, and none can start: j2 -> j3 -> j2",
    ),
    (
        "a SKIPPED job has a finished_at",
        "UPDATE jobs SET status = 'SKIPPED' WHERE id = 4",
        "job j4 is SKIPPED, and its finished_at is NULL",
    ),
    (
        "failures and interruptions stay within their limits",
        "UPDATE jobs SET failures = 4 WHERE id = 4",
        "job j4 counts 4 failures, and max_attempts is 3",
    ),
    (
        "failures and interruptions stay within their limits",
        "UPDATE jobs SET interruptions = 27 WHERE id = 4",
        "job j4 counts 27 interruptions, and max_interruptions is 25",
    ),
    (
        "a concurrency key is held by no more jobs than its limit allows",
        "UPDATE jobs SET concurrency_key = 'k', concurrency_limit = 1 WHERE id IN (1, 4)",
        "key k is held by 2 jobs, and its limit is 1",
    ),
    (
        "a job waits for its concurrency key only while other jobs hold it, and for a minute at most after",
        "UPDATE jobs SET status = 'WAITING', waits_for = 'slot', updated_at = 0, concurrency_key = 'k', concurrency_limit = 1 WHERE id = 4",
        "job j4 waits for key k, which no job holds",
    ),
    (
        "a job that waits for a decision is decided within a minute",
        "UPDATE jobs SET status = 'WAITING', waits_for = 'decision', updated_at = 0, blocked_by = 0 WHERE id = 4",
        "job j4 waits for a decision",
    ),
    (
        "an unfinished run counts its unfinished jobs in unfinished_jobs",
        "UPDATE runs SET unfinished_jobs = 2",
        "run 1 counts 2 unfinished jobs, and has 3",
    ),
    (
        "an unfinished run has all its jobs",
        "UPDATE runs SET total_jobs = 4",
        "run 1 counts 4 jobs, and has 3",
    ),
    (
        "a run is finished if all its jobs are finished",
        "UPDATE jobs SET status = 'SUCCESSFUL', finished_at = 5, blocked_by = 0 WHERE run_id = 1;
         UPDATE runs SET unfinished_jobs = 0",
        "run 1 is RUNNING, and all its jobs are finished",
    ),
    (
        "a finished run has no unfinished jobs",
        "UPDATE runs SET status = 'SUCCESSFUL', finished_at = 5",
        "run 1 is SUCCESSFUL, and has 3 unfinished jobs",
    ),
    (
        "a finished run has no unfinished jobs",
        "UPDATE jobs SET status = 'SUCCESSFUL', finished_at = 5, blocked_by = 0 WHERE run_id = 1;
         UPDATE runs SET status = 'SUCCESSFUL', finished_at = 5",
        "run 1 is SUCCESSFUL, and counts 3 unfinished jobs",
    ),
    (
        "a run has a finished_at exactly if it is finished",
        "UPDATE runs SET finished_at = 5",
        "run 1 is RUNNING, and its finished_at is set",
    ),
    (
        "a run has a finished_at exactly if it is finished",
        "UPDATE jobs SET status = 'SUCCESSFUL', finished_at = 5, blocked_by = 0 WHERE run_id = 1;
         UPDATE runs SET status = 'SUCCESSFUL', unfinished_jobs = 0",
        "run 1 is SUCCESSFUL, and its finished_at is NULL",
    ),
    (
        "a run is successful exactly if no job was cancelled, or failed without allow_failure",
        "UPDATE jobs SET status = 'CANCELLED', finished_at = 5, blocked_by = 0 WHERE run_id = 1;
         UPDATE runs SET status = 'SUCCESSFUL', finished_at = 5, unfinished_jobs = 0",
        "run 1 is SUCCESSFUL, and of its jobs 3 failed or were cancelled",
    ),
    (
        "a job is stopped within a minute of its deadline",
        "UPDATE jobs SET deadline_at = 5 WHERE id = 4",
        "job j4 is PENDING, and its deadline is over",
    ),
    (
        "a group counts its unfinished items in blocked_by, and ends with the last of them",
        "INSERT INTO jobs (run_id, name, kind, status, waits_for, blocked_by)
             VALUES (1, 'g', 'group', 'WAITING', 'items', 2);
         INSERT INTO jobs (run_id, name, kind, status, group_id, item) VALUES (1, 'g[0]', 'noop', 'PENDING', 5, '[0,7]');
         UPDATE runs SET total_jobs = 5, unfinished_jobs = 5",
        "job j5 counts 2 unfinished items, and has 1",
    ),
    (
        "an unfinished item belongs to a group that waits for it",
        "UPDATE jobs SET group_id = 1, item = '[0,7]' WHERE id = 4",
        "job j4 is an item of job j1, which does not wait for it",
    ),
    (
        "no more items of a group run than its max_parallel allows",
        "INSERT INTO jobs (run_id, name, kind, status, waits_for, blocked_by, max_parallel)
             VALUES (1, 'g', 'group', 'WAITING', 'items', 2, 1);
         INSERT INTO jobs (run_id, name, kind, status, group_id, item)
             VALUES (1, 'g[0]', 'noop', 'PENDING', 5, '[0,7]'), (1, 'g[1]', 'noop', 'PENDING', 5, '[1,8]');
         UPDATE runs SET total_jobs = 6, unfinished_jobs = 6",
        "job j5 has 2 items that run or may run, and its max_parallel is 1",
    ),
    (
        "a job that waits for an event names it, and one that waits for a person does not",
        "UPDATE jobs SET status = 'WAITING', waits_for = 'event' WHERE id = 4",
        "job j4 waits for event",
    ),
    (
        "a job that waits for a run has started it",
        "UPDATE jobs SET status = 'WAITING', waits_for = 'run' WHERE id = 4",
        "job j4 waits for a run, and attempt 0 has none",
    ),
    (
        "a run that a job has started has this job",
        "INSERT INTO runs (workflow, status, finished_at, parent_job_id, parent_attempt, root_run_id)
             VALUES ('w', 'SUCCESSFUL', 5, 99, 1, 1)",
        "run 2 was started by job j99, which does not exist",
    ),
    (
        "a run and its jobs name the run at the top of all calls",
        "INSERT INTO runs (workflow, status, finished_at, parent_job_id, parent_attempt, root_run_id)
             VALUES ('w', 'SUCCESSFUL', 5, 1, 1, 9)",
        "run 2 or one of its jobs does not name run 1",
    ),
    (
        "the end of a run is the end of the job that has started it within a minute",
        "INSERT INTO runs (workflow, status, finished_at, parent_job_id, parent_attempt, root_run_id, call_open)
             VALUES ('w', 'SUCCESSFUL', 5, 1, 1, 1, 1)",
        "run 2 is SUCCESSFUL, and job j1 waits for it",
    ),
    (
        "an event is dispatched within a minute",
        "INSERT INTO events (id, name, received_at) VALUES (1, 'e', 5)",
        "event 1 is not dispatched",
    ),
    (
        "a queue runs no more jobs than its limit allows",
        "UPDATE queues SET max_running = 0",
        "queue default runs 1 jobs, and its limit is 0",
    ),
    (
        "a queue runs no more jobs than its limit allows",
        "UPDATE queues SET max_running = NULL, fifo = 1;
         UPDATE jobs SET status = 'RUNNING', worker_id = 1 WHERE id = 4",
        "queue default runs 2 jobs, and its limit is 1",
    ),
    (
        "an occurrence either has a run, or waits, or was skipped",
        "UPDATE runs SET scheduled_for = 10",
        "schedule w/s has run 1 for 10, and the occurrence is SKIPPED too",
    ),
    (
        "the next occurrence of a schedule is after its cursor",
        "UPDATE schedules SET decided_until = 20",
        "schedule w/s is next at 20, and everything up to 20 is decided",
    ),
    (
        "a notification is pending until it has an end",
        "INSERT INTO notifications (target, event, subject_id, subject, happened_at, status, next_at, created_at)
             VALUES ('ops', 'run_failed', 1, 'w', 5, 'DELIVERED', 5, 5)",
        "notification 1 is DELIVERED, and has no end",
    ),
    (
        "the active version of a workflow exists",
        "UPDATE registrations SET version = 2",
        "workflow graph is registered as version 2, which is not among its versions",
    ),
];

#[test]
fn each_invariant_finds_the_row_that_breaks_it_and_no_other_does() {
    for (rule, statement, detail) in BREAKS {
        let bench = sound_database();
        bench.raw().execute(statement);
        let problems = bench.store.upkeep().check().unwrap();
        let said: Vec<(&str, &str)> =
            problems.iter().map(|problem| (problem.check, problem.detail.as_str())).collect();
        assert_eq!(said, [(*rule, *detail)], "{statement}");
        assert!(problems.iter().all(|Problem { next_step, .. }| !next_step.is_empty()));
    }
}

/// What the table itself refuses, whichever program writes it.
#[test]
fn the_table_refuses_rows_that_contradict_themselves() {
    for statement in [
        "UPDATE jobs SET status = 'RUNNING', worker_id = NULL WHERE id = 4",
        "UPDATE jobs SET status = 'WAITING' WHERE id = 4",
        "UPDATE jobs SET waits_for = 'slot' WHERE id = 4",
        "UPDATE jobs SET finished_at = 7 WHERE id = 4",
        "UPDATE jobs SET status = 'SCHEDULED', finished_at = 7 WHERE id = 4",
    ] {
        assert!(sound_database().raw().try_execute(statement).is_err(), "{statement}");
    }
}

/// The check of the storage itself is tested with a damaged file.
#[test]
fn every_invariant_has_a_row_that_breaks_it() {
    let sources = ["cycles", "jobs", "runs", "service"].map(|name| {
        std::fs::read_to_string(format!("{}/src/store/check/{name}.rs", env!("CARGO_MANIFEST_DIR"))).unwrap()
    });
    let rules: BTreeSet<&str> = sources
        .iter()
        .flat_map(|source| source.lines())
        .filter_map(|line| {
            let rule = line.trim().strip_prefix("rule: \"").or(line.strip_prefix("const RULE: &str = \""))?;
            rule.strip_suffix("\",").or(rule.strip_suffix("\";"))
        })
        .collect();
    assert!(rules.len() >= 15, "{rules:?}");
    assert_eq!(rules, BREAKS.iter().map(|(rule, _, _)| *rule).collect());
}

#[test]
fn the_number_of_reported_rows_is_limited() {
    let bench = Bench::new();
    bench.store.jobs().enqueue(vec![noop(); 100]).unwrap();
    bench.raw().execute("UPDATE jobs SET failures = 9");
    let problems = bench.store.upkeep().check().unwrap();
    assert_eq!(problems.len(), 21);
    assert_eq!(problems[20].detail, "more than 20 rows break this rule; the others are not shown");
}

/// If a slot becomes free while no worker is alive, the next worker gives it to a waiting job. A live worker needs a
/// moment to do so.
#[test]
fn a_free_slot_without_a_live_worker_breaks_no_invariant() {
    let bench = Bench::new();
    let concurrency = Some(Concurrency { key: "k".to_owned(), limit: 1, on_full: OnFull::Wait });
    let jobs = bench.store.jobs().enqueue(vec![NewJob { concurrency, ..noop() }; 2]).unwrap();
    bench.clock.advance_ms(120_000);
    bench.worker();
    bench.store.jobs().cancel(jobs[0]).unwrap();
    bench.assert_sound();
    bench.clock.advance_ms(60_001);
    assert_eq!(bench.store.upkeep().check().unwrap().len(), 1);
    bench.raw().execute("UPDATE workers SET status = 'STOPPED', stopped_at = 0");
    bench.assert_sound();
}
