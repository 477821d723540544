//! Reconciliation: another program finished jobs without the consequences, and their runs continue.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use support::{Bench, graph};
use windlass_engine::store::Reconciled;
use windlass_engine::{JobStatus, RunStatus};

fn end(bench: &Bench, job_id: i64, status: &str) {
    bench.raw().execute(&format!("UPDATE jobs SET status = '{status}', finished_at = 1 WHERE id = {job_id}"));
}

fn states(bench: &Bench, run_id: i64) -> Vec<JobStatus> {
    bench.store.jobs().of_run(run_id).unwrap().iter().map(|job| job.status).collect()
}

fn reconcile(bench: &Bench) -> i64 {
    assert!(!bench.store.upkeep().check().unwrap().is_empty(), "there is something to repair");
    assert_eq!(
        bench.store.for_scheduler().reconcile_step(0).unwrap(),
        Reconciled::default(),
        "what moves is left alone"
    );
    bench.clock.advance_ms(10_000);
    let reconciled = bench.store.for_scheduler().reconcile_step(0).unwrap();
    assert_eq!(reconciled.cursor, None);
    bench.assert_sound();
    reconciled.repaired
}

#[test]
fn children_become_ready_and_the_run_ends() {
    let bench = Bench::new();
    let run_id = bench.submit(graph(vec![vec![], vec![], vec![0, 1]]));
    let ids: Vec<i64> = bench.store.jobs().of_run(run_id).unwrap().iter().map(|job| job.id).collect();
    end(&bench, ids[0], "SUCCESSFUL");
    assert_eq!(reconcile(&bench), 1);
    assert_eq!(states(&bench, run_id)[2], JobStatus::Blocked, "one parent is left");
    end(&bench, ids[1], "SUCCESSFUL");
    assert_eq!(reconcile(&bench), 1);
    assert_eq!(states(&bench, run_id)[2], JobStatus::Pending);
    end(&bench, ids[2], "SUCCESSFUL");
    assert_eq!(reconcile(&bench), 1);
    assert_eq!(bench.store.runs().get(run_id).unwrap().status, RunStatus::Successful);
}

#[test]
fn jobs_that_can_never_run_are_skipped_and_the_run_fails() {
    let bench = Bench::new();
    let run_id = bench.submit(graph(vec![vec![], vec![0], vec![1], vec![]]));
    let ids: Vec<i64> = bench.store.jobs().of_run(run_id).unwrap().iter().map(|job| job.id).collect();
    end(&bench, ids[0], "FAILED");
    assert_eq!(reconcile(&bench), 1);
    let expected = [JobStatus::Failed, JobStatus::Skipped, JobStatus::Skipped, JobStatus::Pending];
    assert_eq!(states(&bench, run_id), expected);
    end(&bench, ids[3], "SUCCESSFUL");
    assert_eq!(reconcile(&bench), 1);
    assert_eq!(bench.store.runs().get(run_id).unwrap().status, RunStatus::Failed);
}

#[test]
fn a_run_ends_with_the_outcome_of_its_jobs() {
    use RunStatus::{Failed, Successful};
    let cases = [("SUCCESSFUL", false, Successful), ("FAILED", false, Failed), ("FAILED", true, Successful)];
    for (status, allow_failure, expected) in cases.into_iter().chain([("CANCELLED", true, Failed)]) {
        let bench = Bench::new();
        let mut workflow = graph(vec![vec![], vec![]]);
        workflow.jobs[0].allow_failure = allow_failure;
        let run_id = bench.submit(workflow);
        let ids: Vec<i64> = bench.store.jobs().of_run(run_id).unwrap().iter().map(|job| job.id).collect();
        end(&bench, ids[0], status);
        end(&bench, ids[1], "SUCCESSFUL");
        assert_eq!(reconcile(&bench), 1);
        assert_eq!(bench.store.runs().get(run_id).unwrap().status, expected, "{status} {allow_failure}");
    }
}

#[test]
fn every_run_has_its_turn() {
    let bench = Bench::new();
    let runs: Vec<i64> = (0..40).map(|_run| bench.submit(graph(vec![vec![]]))).collect();
    bench.clock.advance_ms(20_000);
    let mut cursor = 0;
    for turn in [Some(runs[19]), Some(runs[39]), None] {
        let step = bench.store.for_scheduler().reconcile_step(cursor).unwrap();
        assert_eq!(step, Reconciled { repaired: 0, cursor: turn });
        cursor = step.cursor.unwrap_or_default();
    }
    assert_eq!(
        bench.store.for_scheduler().reconcile_step(runs[20]).unwrap().cursor,
        None,
        "fewer than a turn's worth"
    );
}

#[test]
fn a_sound_run_is_not_changed() {
    let bench = Bench::new();
    let run_id = bench.submit(graph(vec![vec![], vec![0]]));
    bench.clock.advance_ms(60_000);
    let before = bench.store.runs().get(run_id).unwrap();
    assert_eq!(bench.store.for_scheduler().reconcile_step(0).unwrap().repaired, 0);
    assert_eq!(bench.store.runs().get(run_id).unwrap(), before);
}

/// A report that is not applied yet is no end, because the job may be retried.
#[test]
fn a_parent_whose_end_is_only_reported_is_unfinished() {
    for (report, expected) in [
        ("SUCCESSFUL", JobStatus::Blocked),
        ("FAILED", JobStatus::Blocked),
        ("CANCELLED", JobStatus::Skipped),
    ] {
        let bench = Bench::new();
        let worker = bench.worker();
        let mut workflow = graph(vec![vec![], vec![], vec![0, 1], vec![]]);
        workflow.jobs[0].retry.max_attempts = 2;
        let run_id = bench.submit(workflow);
        let ids: Vec<i64> = bench.store.jobs().of_run(run_id).unwrap().iter().map(|job| job.id).collect();
        assert_eq!(bench.claim(worker, 1)[0].id, ids[0]);
        bench.raw().execute(&format!("UPDATE jobs SET status = '{report}' WHERE id = {}", ids[0]));
        end(&bench, ids[3], "SUCCESSFUL");
        assert_eq!(reconcile(&bench), 1);
        assert_eq!(states(&bench, run_id)[2], JobStatus::Blocked, "{report}");
        assert_eq!(bench.store.for_scheduler().apply_reports().unwrap(), 1);
        assert_eq!(states(&bench, run_id)[2], expected, "{report}");
        bench.assert_sound();
    }
}

/// Whatever another program writes into the counters, the run ends.
#[test]
fn wrong_counters_are_repaired() {
    for wrong in [
        "UPDATE jobs SET blocked_by = 7 WHERE status = 'BLOCKED'",
        "UPDATE jobs SET blocked_by = 0 WHERE status = 'BLOCKED'",
        "UPDATE runs SET unfinished_jobs = 93",
        "UPDATE runs SET unfinished_jobs = 0",
    ] {
        let bench = Bench::new();
        let worker = bench.worker();
        let run_id = bench.submit(graph(vec![vec![], vec![0], vec![0, 1], vec![2]]));
        bench.raw().execute(wrong);
        for _turn in 0..10 {
            bench.clock.advance_ms(10_001);
            bench.store.for_scheduler().reconcile_step(0).unwrap();
            for job in bench.claim(worker, 10) {
                bench.finish(worker, &job, support::success());
            }
        }
        assert_eq!(states(&bench, run_id), [JobStatus::Successful; 4], "{wrong}");
        assert_eq!(bench.store.runs().get(run_id).unwrap().status, RunStatus::Successful, "{wrong}");
        bench.assert_sound();
    }
}

#[test]
fn a_run_whose_jobs_are_all_finished_ends() {
    let bench = Bench::new();
    let run_id = bench.submit(graph(vec![vec![]]));
    end(&bench, bench.store.jobs().of_run(run_id).unwrap()[0].id, "SUCCESSFUL");
    bench.raw().execute("UPDATE runs SET unfinished_jobs = 0");
    assert_eq!(reconcile(&bench), 1);
    assert_eq!(bench.store.runs().get(run_id).unwrap().status, RunStatus::Successful);
}

/// Windlass does not repair this by itself, but following the advice of `check` does.
#[test]
fn the_advice_of_check_reopens_a_run_that_was_marked_as_finished() {
    let bench = Bench::new();
    let worker = bench.worker();
    let run_id = bench.submit(graph(vec![vec![], vec![0]]));
    let first = bench.claim(worker, 1);
    bench.raw().execute("UPDATE runs SET status = 'SUCCESSFUL', finished_at = 5");
    bench.finish(worker, &first[0], support::success());
    let problems = bench.store.upkeep().check().unwrap();
    assert_eq!(problems[0].detail, "run 1 is SUCCESSFUL, and has 1 unfinished jobs");
    let statement = problems[0].next_step.split('`').nth(1).unwrap().replace("= ID", &format!("= {run_id}"));
    bench.raw().execute(&statement);
    bench.clock.advance_ms(10_001);
    assert_eq!(bench.store.for_scheduler().reconcile_step(0).unwrap().repaired, 1);
    let second = bench.claim(worker, 1);
    bench.finish(worker, &second[0], support::success());
    assert_eq!(bench.store.runs().get(run_id).unwrap().status, RunStatus::Successful);
    bench.assert_sound();
}

/// A cycle can't be repaired. It is left alone, and `check` reports it.
#[test]
fn a_cycle_in_the_tables_is_found_and_left_alone() {
    let bench = Bench::new();
    let run_id = bench.submit(graph(vec![vec![], vec![0], vec![1]]));
    let ids: Vec<i64> = bench.store.jobs().of_run(run_id).unwrap().iter().map(|job| job.id).collect();
    bench.raw().execute(&format!(
        "INSERT INTO job_dependencies (parent_id, child_id) VALUES ({}, {})",
        ids[2], ids[1]
    ));
    bench.raw().execute(&format!("UPDATE jobs SET blocked_by = 2 WHERE id = {}", ids[1]));
    let worker = bench.worker();
    let first = bench.claim(worker, 1);
    bench.finish(worker, &first[0], support::success());
    bench.clock.advance_ms(60_000);
    assert_eq!(bench.store.for_scheduler().reconcile_step(0).unwrap().repaired, 0);
    let problems = bench.store.upkeep().check().unwrap();
    assert!(problems[0].detail.contains("j2 -> j3 -> j2"), "{problems:?}");
    bench.store.runs().cancel(run_id).unwrap();
    bench.assert_sound();
}
