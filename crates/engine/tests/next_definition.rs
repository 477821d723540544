//! Retrying a run with another definition: what changed and all after it runs again, and the rest stays as it is.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use serde_json::json;
use support::{Bench, failure, success};
use windlass_engine::decide::next_definition::DefinitionChanges;
use windlass_engine::decide::retry_preview::PreviewedJob;
use windlass_engine::store::{
    ClaimedJob, Continued, DefinitionFile, DefinitionVerb, NewRun, NextDefinition, OnlyJobs, RetrySelection,
};
use windlass_engine::transition::{Outcome, Repeat};
use windlass_engine::{Error, Result, RunStatus};
use windlass_workflow::{Source, Workflow, parse};

const ETL: &str = "
name = 'etl'
params = { day = { default = 'monday' } }
[jobs.extract]
run = 'extract'
[jobs.load]
needs = ['extract']
run = 'load'
[jobs.report]
needs = ['load']
run = 'report'
[jobs.audit]
run = 'audit'
[on_failure.tell]
run = 'tell'
";

fn workflow(text: &str) -> Workflow {
    let source = Source::new("etl.toml", text.to_owned().into()).unwrap();
    parse(&source).map_err(|report| format!("{report:?}")).unwrap()
}

fn final_failure() -> Outcome {
    Outcome::Failed { error: "no luck".to_owned(), repeat: Repeat::Pointless }
}

struct Run {
    bench: Bench,
    worker: i64,
    id: i64,
}

impl Run {
    /// A run of which the jobs with these names failed.
    fn ended(text: &str, failing: &[&str]) -> Run {
        let bench = Bench::new();
        let worker = bench.worker();
        let workflow = workflow(text);
        let params = windlass_workflow::params::bind(&workflow.params, Vec::new()).unwrap();
        let new = NewRun { workflow, params, dir: Some("/flows".to_owned()), run_key: None, occasion: None };
        let id = bench.store.runs().submit(new).unwrap().run_id;
        let run = Run { bench, worker, id };
        run.execute(failing);
        assert!(run.status().is_terminal());
        run
    }

    /// Executes everything that can be executed. Returns the jobs in the order of their claims.
    fn execute(&self, failing: &[&str]) -> Vec<ClaimedJob> {
        let mut executed = Vec::new();
        for _turn in 0..100 {
            let scheduler = self.bench.store.for_scheduler();
            while scheduler.decide_waiting().unwrap() + scheduler.end_calls().unwrap() > 0 {}
            let jobs = self.bench.claim(self.worker, 1);
            if jobs.is_empty() {
                break;
            }
            for job in jobs {
                let fails = failing.contains(&job.name.as_deref().unwrap_or_default());
                self.bench.finish(self.worker, &job, if fails { final_failure() } else { success() });
                executed.push(job);
            }
        }
        self.bench.assert_sound();
        executed
    }

    fn names(&self, failing: &[&str]) -> Vec<String> {
        let mut names: Vec<String> =
            self.execute(failing).into_iter().map(|job| job.name.unwrap_or_default()).collect();
        names.sort_unstable();
        names
    }

    fn retry(&self, text: &str) -> Result<Continued> {
        self.retry_selected(text, RetrySelection::Failed)
    }

    fn retry_selected(&self, text: &str, selection: RetrySelection) -> Result<Continued> {
        let next = NextDefinition { workflow: workflow(text), file: None };
        let preview = self.bench.store.runs().preview_retry(self.id, &selection, Some(&next.workflow));
        let done = self.bench.store.runs().retry_with(self.id, selection, next);
        self.bench.assert_sound();
        if let Ok(done) = &done {
            let preview = preview.unwrap();
            assert_eq!(preview.changes, done.changes);
            self.assert_foreseen(&preview.jobs);
        }
        done
    }

    /// A preview has named the jobs that a retry made ready, and no others. It may name a job that is skipped at once,
    /// because of another one that failed.
    fn assert_foreseen(&self, preview: &[PreviewedJob]) {
        let sql = format!("SELECT name, status FROM jobs WHERE run_id = {} AND group_id IS NULL", self.id);
        let foreseen = |name: &String| preview.iter().any(|job| job.name == *name);
        for (name, status) in
            self.bench.raw().rows(&sql, |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))
        {
            let is_ready = ["BLOCKED", "PENDING", "SCHEDULED", "WAITING"].contains(&status.as_str());
            let is_possible = is_ready == foreseen(&name) || (status == "SKIPPED" && foreseen(&name));
            assert!(is_possible, "{name} is {status}: {preview:#?}");
        }
    }

    fn refused(&self, text: &str) -> String {
        let before = self.bench.store.jobs().of_run(self.id).unwrap();
        let error = self.retry(text).unwrap_err();
        assert_eq!(self.bench.store.jobs().of_run(self.id).unwrap(), before, "nothing is written");
        assert_eq!(self.bench.store.runs().definitions(self.id).unwrap().len(), 1);
        error.to_string()
    }

    fn status(&self) -> RunStatus {
        self.bench.store.runs().get(self.id).unwrap().status
    }

    /// The number of the definition of each job, by name.
    fn definition_of(&self, name: &str) -> i64 {
        let sql = format!("SELECT definition FROM jobs WHERE run_id = {} AND name = '{name}'", self.id);
        self.bench.raw().rows(&sql, |row| row.get::<_, i64>(0)).remove(0)
    }
}

fn names(of: &[&str]) -> Vec<String> {
    of.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn a_corrected_job_and_all_after_it_run_and_the_rest_stays() {
    let run = Run::ended(ETL, &["load"]);
    let done = run.retry(&ETL.replace("'load'\n", "'load --fixed'\n")).unwrap();
    assert_eq!((done.jobs, done.definition), (3, 2), "load, report and the handler");
    assert_eq!(done.changes, DefinitionChanges { changed: names(&["load"]), ..DefinitionChanges::default() });
    let executed = run.execute(&[]);
    let load = &executed[0];
    assert_eq!((load.name.as_deref(), load.definition, load.retry_state.attempt), (Some("load"), 2, 2));
    assert!(load.payload.contains("load --fixed"), "{}", load.payload);
    assert_eq!(executed.len(), 2, "report is the other one");
    assert_eq!(run.status(), RunStatus::Successful);
    let numbers = ["extract", "load", "report", "audit"].map(|name| run.definition_of(name));
    assert_eq!(numbers, [1, 2, 2, 1], "the first definition of the jobs that stayed");
    assert_eq!(run.bench.store.runs().workflow(run.id).unwrap().jobs[1].name, "load");
    // A later retry has the definition that the run has.
    run.bench.store.runs().retry(run.id, RetrySelection::From("extract".to_owned())).unwrap();
    assert!(run.execute(&[]).iter().any(|job| job.payload.contains("load --fixed") && job.definition == 2));
    assert_eq!(run.definition_of("extract"), 2);
}

#[test]
fn a_changed_job_that_had_succeeded_runs_again_with_all_after_it() {
    let run = Run::ended(ETL, &["audit"]);
    run.retry(&ETL.replace("'load'\n", "'load 2'\n")).unwrap();
    assert_eq!(run.names(&[]), ["audit", "load", "report"], "the failed job too");
    // Also in a run that has succeeded.
    assert_eq!(run.status(), RunStatus::Successful);
    let done =
        run.retry(&ETL.replace("'report'\n", "'report 2'\n").replace("'load'\n", "'load 2'\n")).unwrap();
    assert_eq!(done.definition, 3);
    assert_eq!(run.names(&[]), ["report"]);
}

#[test]
fn settings_do_not_run_a_job_again_that_has_succeeded() {
    let run = Run::ended(ETL, &["load"]);
    let next =
        ETL.replace("'load'\n", "'load'\ntimeout = '7s'\nretry = { max_attempts = 3 }\nqueue = 'slow'\n");
    let next = format!("timeout = '1h'\n{}", next.replace("'extract'\n", "'extract'\ntimeout = '9s'\n"));
    let done = run.retry(&next).unwrap();
    assert_eq!(done.changes.settings, ["extract", "load"]);
    let executed = run.execute(&[]);
    assert_eq!(executed.iter().filter_map(|job| job.name.as_deref()).collect::<Vec<_>>(), ["load", "report"]);
    assert_eq!((executed[0].timeout_ms, executed[0].retry_state.max_attempts), (Some(7_000), 3));
    let jobs = run.bench.store.jobs().of_run(run.id).unwrap();
    assert_eq!(jobs[1].queue, "slow");
    let timeout = "SELECT timeout_ms FROM runs";
    assert_eq!(run.bench.raw().rows(timeout, |row| row.get::<_, i64>(0)), [3_600_000]);
}

#[test]
fn jobs_come_and_go_and_handlers_and_params_change() {
    let run = Run::ended(ETL, &["load"]);
    let next = ETL
        .replace("needs = ['load']", "needs = ['load', 'check']")
        .replace("{ day = { default = 'monday' } }", "{ hour = { default = 'noon' } }")
        .replace(
            "[on_failure.tell]\nrun = 'tell'",
            "[on_success.cheer]\nrun = 'cheer'\n[finally.tell]\nrun = 'tell 2'",
        );
    let next = format!("{next}[jobs.check]\nneeds = ['extract']\nrun = 'check'\n");
    let done = run.retry(&next).unwrap();
    let expected = DefinitionChanges {
        added: names(&["check", "cheer"]),
        changed: names(&["report", "tell"]),
        others: true,
        ..DefinitionChanges::default()
    };
    assert_eq!(done.changes, expected);
    assert_eq!(run.names(&[]), ["check", "cheer", "load", "report", "tell"]);
    let after = run.bench.store.runs().get(run.id).unwrap();
    assert_eq!((after.status, after.params.as_str()), (RunStatus::Successful, r#"{"hour":"noon"}"#));
    assert_eq!((after.total_jobs, after.dir.as_deref()), (7, Some("/flows")));
    // What failed or never ran can be taken out, and the last handler too.
    let run = Run::ended(ETL, &["load"]);
    let next =
        ETL.replace("[jobs.load]\nneeds = ['extract']\nrun = 'load'\n", "").replace("needs = ['load']\n", "");
    let done = run.retry(&next.replace("[on_failure.tell]\nrun = 'tell'\n", "")).unwrap();
    assert_eq!(done.changes.removed, ["load", "tell"]);
    assert_eq!(run.names(&[]), ["report"]);
    assert_eq!(
        (run.status(), run.bench.store.runs().get(run.id).unwrap().total_jobs),
        (RunStatus::Successful, 3)
    );
}

#[test]
fn a_run_without_the_job_that_failed_ends_at_once() {
    let run = Run::ended(ETL, &["audit"]);
    let done = run.retry(&ETL.replace("[jobs.audit]\nrun = 'audit'\n", "")).unwrap();
    assert_eq!((done.changes.removed, run.names(&[])), (names(&["audit"]), vec![]));
    assert_eq!(run.status(), RunStatus::Successful);
}

#[test]
fn a_job_that_may_fail_no_more_runs_again_and_one_that_may_fail_now_too() {
    let allowed = ETL.replace("'load'\n", "'load'\nallow_failure = true\n");
    let run = Run::ended(&allowed, &["load", "audit"]);
    run.retry(ETL).unwrap();
    assert_eq!(run.names(&[]), ["audit", "load", "report"]);
    assert_eq!(run.status(), RunStatus::Successful);
    let run = Run::ended(ETL, &["load"]);
    run.retry(&allowed).unwrap();
    assert_eq!(run.names(&["load"]), ["load", "report"]);
    assert_eq!(run.status(), RunStatus::Successful);
}

#[test]
fn the_environment_of_the_workflow_is_a_part_of_every_job() {
    let run = Run::ended(ETL, &["load"]);
    let context = run.bench.store.runs().context(run.id).unwrap();
    assert_eq!((context.definition, context.env.as_str()), (1, "{}"));
    run.retry(&format!("env = {{ MODE = 'full' }}\n{ETL}")).unwrap();
    let context = run.bench.store.runs().context(run.id).unwrap();
    assert_eq!((context.definition, context.env.as_str()), (2, r#"{"MODE":"full"}"#));
    assert_eq!(run.names(&[]), ["audit", "extract", "load", "report"]);
}

#[test]
fn a_definition_that_does_not_fit_is_refused() {
    let run = Run::ended(ETL, &["load"]);
    let without = ETL.replace("[jobs.extract]\nrun = 'extract'\n", "").replace("needs = ['extract']\n", "");
    let cases = [
        (without, "job `extract` succeeded, and the new definition does not have it"),
        (ETL.replace("'etl'", "'elt'"), "is one of workflow `elt`, and the run is one of `etl`"),
        (
            ETL.replace("{ default = 'monday' } }", "{ default = 'monday' }, hour = {} }"),
            "parameter `hour` is required",
        ),
        (
            ETL.replace("{ default = 'monday' }", "{ type = 'date' }"),
            "its params do not fit the new definition",
        ),
    ];
    for (text, expected) in cases {
        let reason = run.refused(&text);
        assert!(reason.contains(expected), "{reason}");
    }
    assert_eq!(run.status(), RunStatus::Failed);
    // Nothing differs and nothing failed.
    run.bench.store.runs().retry(run.id, RetrySelection::Failed).unwrap();
    assert!(run.refused(&ETL.replace("'load'\n", "'l'\n")).contains("it is PENDING, not finished"));
    run.execute(&[]);
    assert!(run.refused(&format!("timeout = '1h'\n{ETL}")).contains("none of its jobs failed"));
    assert!(run.refused(ETL).contains("none of its jobs failed"));
}

#[test]
fn one_job_can_be_named_too() {
    let run = Run::ended(ETL, &[]);
    let next = ETL.replace("'report'\n", "'report 2'\n");
    run.retry_selected(&next, RetrySelection::From("audit".to_owned())).unwrap();
    assert_eq!(run.names(&[]), ["audit", "report"]);
    let unknown = run.retry_selected(ETL, RetrySelection::From("nobody".to_owned())).unwrap_err();
    assert!(matches!(unknown, Error::NotFound { .. }), "{unknown}");
}

const GROUP: &str = "
name = 'etl'
[jobs.list]
run = 'list'
[jobs.each]
needs = ['list']
for_each = ['1', '2', '3']
run = 'each'
[jobs.last]
needs = ['each']
run = 'last'
";

#[test]
fn a_group_is_decided_anew_if_it_changed_and_keeps_its_items_otherwise() {
    let run = Run::ended(GROUP, &["each[1]"]);
    run.retry(&GROUP.replace("'last'\n", "'last 2'\n")).unwrap();
    assert_eq!(run.names(&["each[1]"]), ["each[1]"], "the item that failed");
    let next = GROUP.replace("'each'\n", "'each'\ntimeout = '3s'\n").replace("'last'\n", "'last 2'\n");
    assert_eq!(run.retry(&next).unwrap().changes.settings, ["each"]);
    let executed = run.execute(&["each[1]"]);
    assert_eq!(executed.len(), 1);
    assert_eq!((executed[0].timeout_ms, executed[0].definition), (Some(3_000), 3));
    run.retry(&next.replace("'each'\n", "'each 2'\n")).unwrap();
    assert_eq!(run.names(&[]), ["each[0]", "each[1]", "each[2]", "last"]);
    assert_eq!(run.status(), RunStatus::Successful);
    // What comes before the group changed, or it is no group any more.
    run.retry(&next.replace("'list'\n", "'list 2'\n").replace("'each'\n", "'each 2'\n")).unwrap();
    assert_eq!(run.names(&["each[2]"]), ["each[0]", "each[1]", "each[2]", "list"]);
    run.retry(&GROUP.replace("for_each = ['1', '2', '3']\n", "")).unwrap();
    assert_eq!(run.names(&[]), ["each", "last", "list"]);
    assert_eq!(run.bench.store.runs().get(run.id).unwrap().total_jobs, 3);
    run.retry(GROUP).unwrap();
    assert_eq!(run.names(&[]), ["each[0]", "each[1]", "each[2]", "last"]);
    assert_eq!(run.status(), RunStatus::Successful);
}

const CALLS: &str = "
name = 'etl'
[workflows.sub]
[workflows.sub.jobs.one]
run = 'one'
[workflows.sub.jobs.two]
needs = ['one']
run = 'two'
[jobs.list]
run = 'list'
[jobs.call]
needs = ['list']
workflow = 'sub'
[jobs.other]
run = 'other'
";

#[test]
fn a_call_goes_on_with_its_run_unless_it_or_a_job_before_it_changed() {
    let cases = [
        (CALLS.replace("'other'\n", "'other 2'\n"), vec!["other", "two"], 1),
        (CALLS.replace("'two'\n", "'two 2'\n"), vec!["one", "two"], 2),
        (CALLS.replace("'list'\n", "'list 2'\n"), vec!["list", "one", "two"], 2),
        // The called workflow has another place in the definition.
        (
            format!("{}[workflows.first.jobs.f]\nrun = 'f'\n[jobs.new]\nworkflow = 'first'\n", CALLS),
            vec!["f", "two"],
            2,
        ),
    ];
    for (next, expected, children) in cases {
        let run = Run::ended(CALLS, &["two"]);
        run.retry(&next).unwrap();
        assert_eq!(run.names(&[]), expected, "{next}");
        assert_eq!(run.status(), RunStatus::Successful);
        assert_eq!(run.bench.store.runs().below(run.id, 0, 10).unwrap().len(), children);
    }
    let run = Run::ended(CALLS, &["two"]);
    let without = CALLS.replace("[jobs.call]\nneeds = ['list']\nworkflow = 'sub'\n", "");
    assert!(run.refused(&without).contains("job `call` started runs"));
    let child = run.bench.store.runs().below(run.id, 0, 10).unwrap()[0].run_id;
    let next = NextDefinition { workflow: workflow("name = 'sub'\n[jobs.one]\nrun = 'x'\n"), file: None };
    let refused = run.bench.store.runs().retry_with(child, RetrySelection::Failed, next).unwrap_err();
    assert!(refused.to_string().contains("a job of run 1 has started it; retry run 1"), "{refused}");
}

#[test]
fn a_run_knows_its_definitions_their_files_and_who_gave_them() {
    let bench = Bench::new();
    let worker = bench.worker();
    let new = NewRun {
        workflow: workflow(ETL),
        params: json!({ "day": "monday" }).as_object().unwrap().clone(),
        dir: None,
        run_key: Some("key".to_owned()),
        occasion: None,
    };
    let only = Some(OnlyJobs { jobs: names(&["load"]), with_upstream: true });
    let file = |hash: &str| DefinitionFile {
        named: "etl.toml".to_owned(),
        path: "/flows/etl.toml".to_owned(),
        hash: hash.to_owned(),
        only: None,
    };
    let first = DefinitionFile { only: only.clone(), ..file("a") };
    let submit = |new: NewRun| {
        bench.store.runs().submit_from(new, Some((DefinitionVerb::Run, first.clone()))).unwrap()
    };
    let run_id = submit(new.clone()).run_id;
    assert!(!submit(new).created, "it has one row, although it was submitted twice");
    for job in bench.claim(worker, 10) {
        bench.finish(worker, &job, final_failure());
    }
    for job in bench.claim(worker, 10) {
        bench.finish(worker, &job, failure());
    }
    bench.clock.advance_ms(500);
    let changed = workflow(&ETL.replace("'extract'\n", "'extract 2'\n"));
    let mut compared = changed.clone();
    assert_eq!(bench.store.runs().changes(run_id, &mut compared).unwrap().changed, ["extract"]);
    let next = NextDefinition { workflow: changed, file: Some(file("b")) };
    bench.store.runs().retry_with(run_id, RetrySelection::Failed, next).unwrap();
    let definitions = bench.store.runs().definitions(run_id).unwrap();
    let said: Vec<_> = definitions
        .iter()
        .map(|definition| {
            let file = definition.file.clone().unwrap();
            (definition.number, definition.origin.as_str(), definition.pinned_at, file.hash, file.only)
        })
        .collect();
    let expected =
        [(1, "run", 1_000_000, "a".to_owned(), only), (2, "retry", 1_000_500, "b".to_owned(), None)];
    assert_eq!(said, expected);
    assert_ne!(definitions[0].hash, definitions[1].hash);

    // Both definitions stay as long as the run, and are pruned after it.
    bench.store.runs().cancel(run_id).unwrap();
    for job in bench.claim(worker, 10) {
        bench.finish(worker, &job, success());
    }
    assert!(bench.store.runs().get(run_id).unwrap().status.is_terminal());
    bench.assert_sound();
    let count = |table: &str| {
        bench.raw().rows(&format!("SELECT count(*) FROM {table}"), |row| row.get::<_, i64>(0)).remove(0)
    };
    assert_eq!((count("workflows"), count("run_definitions")), (2, 2));
    bench.clock.advance_ms(1_000);
    let old = support::older_than(bench.clock.now_ms());
    for _step in 0..10 {
        bench.store.for_scheduler().prune_step(old).unwrap();
    }
    assert_eq!((count("runs"), count("workflows"), count("run_definitions")), (0, 0, 0));
}
