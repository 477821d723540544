//! Variables: jobs set them in the transaction that ends them, and decisions read them when they are made.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use std::collections::BTreeSet;

use serde_json::json;
use support::{Bench, failure, finish, graph, success};
use windlass_engine::JobStatus;
use windlass_engine::set_variables::SetVariable;
use windlass_engine::store::{Finish, RetrySelection, VARIABLES_LISTED_MAX};
use windlass_workflow::{Source, Workflow};

fn workflow(text: &str) -> Workflow {
    windlass_workflow::parse(&Source::new("w.toml", text.into()).unwrap()).unwrap()
}

fn set(name: &str, value: &str) -> SetVariable {
    SetVariable { name: name.to_owned(), value: value.to_owned() }
}

/// All variables, as `name=value`.
fn all(bench: &Bench) -> Vec<String> {
    let variables = bench.store.variables().list(None).unwrap();
    variables.into_iter().map(|variable| format!("{}={}", variable.name, variable.value)).collect()
}

/// The state of a job.
fn status(bench: &Bench, job: &str) -> JobStatus {
    bench.store.jobs().find_by_name(1, job).unwrap().unwrap().status
}

#[test]
fn a_variable_is_set_read_listed_and_deleted() {
    let bench = Bench::new();
    let variables = bench.store.variables();
    variables.set("region", "\"eu\"").unwrap();
    variables.set("limits", "{\"rows\": 7}").unwrap();
    assert_eq!(all(&bench), ["limits={\"rows\": 7}", "region=\"eu\""]);
    bench.clock.advance_ms(5);
    variables.set("region", "\"us\"").unwrap();
    let region = variables.get("region").unwrap().unwrap();
    assert_eq!((region.value.as_str(), region.changed_at, region.run_id), ("\"us\"", 1_000_005, None));
    let names = BTreeSet::from(["limits".to_owned(), "missing".to_owned()]);
    assert_eq!(json!(variables.values(&names).unwrap()), json!({ "limits": { "rows": 7 } }));
    assert_eq!([variables.delete("region").unwrap(), variables.delete("region").unwrap()], [true, false]);
    assert_eq!(variables.get("region").unwrap(), None);
    bench.assert_sound();
}

#[test]
fn names_values_and_their_number_are_limited() {
    let bench = Bench::new();
    let variables = bench.store.variables();
    let refused = |name: &str, value: &str| variables.set(name, value).unwrap_err().to_string();
    for name in ["", "a-b", "a.b", "1a", "ä"] {
        assert!(refused(name, "1").contains("must begin with a letter or `_`"), "{name}");
    }
    assert!(refused(&"a".repeat(201), "1").contains("at most 200 characters"));
    assert!(refused("a", "no JSON").contains("the value is no JSON"));
    let large = |bytes: usize| format!("\"{}\"", "x".repeat(bytes - 2));
    variables.set("large", &large(65_536)).unwrap();
    assert!(refused("larger", &large(65_537)).contains("has 65537 bytes; the limit is 65536"));
    bench.raw().execute(
        "INSERT INTO variables (name, value)
         WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 9999)
         SELECT 'v' || n, '0' FROM numbers",
    );
    let error = refused("one_more", "1");
    assert!(error.contains("there are 10000 variables, and the limit is 10000: `one_more`"), "{error}");
    variables.set("v7", "1").unwrap();
    assert_eq!(variables.refused(&[set("v7", "2"), set("large", "2")]).unwrap(), None);
    assert!(variables.refused(&[set("v7", "2"), set("one_more", "2")]).unwrap().is_some());
    let (mut count, mut after) = (0, None);
    loop {
        let page = variables.list(after.as_deref()).unwrap();
        assert!(page.len() <= VARIABLES_LISTED_MAX as usize);
        let Some(last) = page.last() else { break };
        (count, after) = (count + page.len(), Some(last.name.clone()));
    }
    assert_eq!(count, 10_000);
    bench.assert_sound();
}

#[test]
fn a_value_that_another_program_wrote_may_be_a_plain_text() {
    let bench = Bench::new();
    bench.raw().execute("INSERT INTO variables (name, value) VALUES ('day', '2026-11-20'), ('n', '7')");
    assert_eq!(all(&bench), ["day=\"2026-11-20\"", "n=7"]);
    let names = BTreeSet::from(["day".to_owned(), "n".to_owned()]);
    let values = bench.store.variables().values(&names).unwrap();
    assert_eq!(json!(values), json!({ "day": "2026-11-20", "n": 7 }));
}

#[test]
fn the_end_of_a_job_sets_its_variables_and_the_last_end_wins() {
    let bench = Bench::new();
    let worker = bench.worker();
    bench.submit(graph(vec![vec![], vec![]]));
    let jobs = bench.claim(worker, 2);
    let ends = jobs.iter().zip(["1", "2"]).map(|(job, value)| Finish {
        variables: vec![set("both", value), set(&format!("of_{}", job.name.as_deref().unwrap()), value)],
        ..finish(worker, job, success())
    });
    bench.store.for_workers().finish_and_claim(ends.collect(), None).unwrap();
    assert_eq!(all(&bench), ["both=2", "of_j0=1", "of_j1=2"]);
    assert_eq!(bench.store.variables().get("both").unwrap().unwrap().run_id, Some(1));
    bench.store.runs().retry(1, RetrySelection::From("j0".to_owned())).unwrap();
    assert_eq!(all(&bench), ["both=2", "of_j0=1", "of_j1=2"], "a retry undoes nothing");
    let again = bench.claim(worker, 1).remove(0);
    let end = Finish { variables: vec![set("both", "3")], ..finish(worker, &again, success()) };
    bench.store.for_workers().finish_and_claim(vec![end], None).unwrap();
    assert_eq!(all(&bench)[0], "both=3");
    bench.assert_sound();
    bench.store.for_scheduler().prune_step(support::older_than(i64::MAX)).unwrap();
    assert!(bench.store.runs().get(1).is_err(), "the run is deleted");
    assert_eq!(all(&bench).len(), 3, "variables belong to no run");
    bench.assert_sound();
}

#[test]
fn an_end_that_does_not_count_sets_nothing() {
    let bench = Bench::new();
    let worker = bench.worker();
    bench.submit(graph(vec![vec![]]));
    let job = bench.claim(worker, 1).remove(0);
    let variables = vec![set("cursor", "1")];
    let of_another = Finish { variables: variables.clone(), attempt: 7, ..finish(worker, &job, success()) };
    bench.store.for_workers().finish_and_claim(vec![of_another], None).unwrap();
    assert_eq!(all(&bench), Vec::<String>::new(), "the attempt has another number");
    let cancelled = Finish { variables, ..finish(worker, &job, failure()) };
    bench.store.for_workers().finish_and_claim(vec![cancelled], None).unwrap();
    assert_eq!(all(&bench), Vec::<String>::new(), "the job failed");
}

#[test]
fn a_decision_reads_variables_when_it_is_made() {
    let bench = Bench::new();
    let decide = || bench.store.for_scheduler().decide_waiting().unwrap();
    bench.submit(workflow(
        "[jobs.first]\nrun = 'x'\n[jobs.then]\nneeds = ['first']\nif = 'variables.mode == \"full\"'\nrun = 'x'\n\
         [jobs.items]\nneeds = ['first']\nfor_each = 'variables.tables'\nrun = 'x'\n\
         [jobs.nap]\nneeds = ['first']\nsleep = '{{ variables.pause }}'\n\
         [jobs.without]\nneeds = ['first']\nif = 'variables.missing'\nrun = 'x'\n\
         [jobs.otherwise]\nneeds = ['first']\nif = 'variables.missing | default(true)'\nrun = 'x'\n",
    ));
    decide();
    let variables = bench.store.variables();
    variables.set("mode", "\"delta\"").unwrap();
    let worker = bench.worker();
    let first = bench.claim(worker, 9);
    assert_eq!(first.len(), 1);
    // It is set after the submission, and before the decision.
    for (name, value) in [("mode", "\"full\""), ("tables", "[\"a\", \"b\"]"), ("pause", "\"1h\"")] {
        variables.set(name, value).unwrap();
    }
    bench.finish(worker, &first[0], success());
    decide();
    let states = ["then", "items", "items[1]", "nap", "without", "otherwise"].map(|job| status(&bench, job));
    let expected = [
        JobStatus::Pending,
        JobStatus::Waiting,
        JobStatus::Pending,
        JobStatus::Scheduled,
        JobStatus::Failed,
        JobStatus::Pending,
    ];
    assert_eq!(states, expected);
    let without = bench.store.jobs().find_by_name(1, "without").unwrap().unwrap();
    assert_eq!(
        without.last_error.unwrap(),
        "`if` could not be decided: `variables.missing`: there is no variable `missing`; set it with `windlass variable \
         set missing VALUE`, or write variables.missing | default(…)"
    );
    bench.assert_sound();
}

#[test]
fn a_worker_in_another_language_sets_variables_by_its_report() {
    let bench = Bench::new();
    let worker = bench.worker();
    bench.store.variables().set("total", "5").unwrap();
    bench.submit(workflow(
        "[jobs.a]\nrun = 'x'\nset_variables = { cursor = 'output.id', total = 'variables.total + output.rows' }\n\
         [jobs.b]\nrun = 'x'\nset_variables = { other = 'output.id' }\n",
    ));
    let jobs = bench.claim(worker, 2);
    for (job, output) in jobs.iter().zip(["{\"id\": \"x9\", \"rows\": 2}", "{}"]) {
        bench.raw().execute(&format!(
            "UPDATE jobs SET status = 'SUCCESSFUL', output = '{output}' WHERE id = {} AND status = 'RUNNING'",
            job.id
        ));
    }
    assert_eq!(bench.store.for_scheduler().apply_reports().unwrap(), 2);
    assert_eq!(all(&bench), ["cursor=\"x9\"", "total=7"]);
    let b = bench.store.jobs().get(jobs[1].id).unwrap();
    assert_eq!(b.status, JobStatus::Failed);
    let error = b.last_error.unwrap();
    assert!(error.starts_with("`set_variables.other` could not be evaluated: `output.id`: "), "{error}");
    bench.assert_sound();
}
