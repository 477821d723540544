//! Registered workflows: versions never change, and names can be removed and registered again.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use std::thread;

use support::{Bench, graph};
use windlass_engine::Error;
use windlass_engine::store::{Applied, NewRegistration, RegistrationChange};
use windlass_workflow::Workflow;

fn workflow(name: &str, jobs: usize) -> Workflow {
    Workflow { name: name.to_owned(), ..graph(vec![vec![]; jobs]) }
}

fn from_file(workflow: Workflow, file: &str) -> NewRegistration {
    NewRegistration { workflow, file: Some(file.to_owned()), dir: Some("/flows".to_owned()) }
}

fn apply(bench: &Bench, jobs: usize) -> Applied {
    bench.store.registrations().apply(from_file(workflow("nightly", jobs), "/flows/nightly.toml")).unwrap()
}

fn numbers(bench: &Bench, name: &str) -> Vec<i64> {
    let versions = bench.store.registrations().versions(name, None, 100).unwrap();
    versions.iter().map(|version| version.version).collect()
}

#[test]
fn only_new_content_makes_a_new_version() {
    let bench = Bench::new();
    let first = apply(&bench, 1);
    assert_eq!((first.change, first.version, first.before), (RegistrationChange::Created, 1, None));
    let again = apply(&bench, 1);
    assert_eq!((again.change, again.version), (RegistrationChange::Unchanged, 1));
    let second = apply(&bench, 2);
    assert_eq!((second.change, second.version), (RegistrationChange::Updated, 2));
    assert_eq!(second.before, Some(workflow("nightly", 1)));
    // Going back to earlier content makes a new version too.
    assert_eq!(apply(&bench, 1).version, 3);
    assert_eq!(numbers(&bench, "nightly"), [3, 2, 1]);
    let (registration, active) = bench.store.registrations().workflow("nightly").unwrap().unwrap();
    assert_eq!((registration.version, active), (3, workflow("nightly", 1)));
    let old = bench.store.registrations().version("nightly", 2).unwrap().unwrap();
    assert_eq!(old.workflow, workflow("nightly", 2));
    assert!(bench.store.registrations().version("nightly", 4).unwrap().is_none());
}

/// A definition may have 10,000 jobs, and a list of versions shows none of them.
#[test]
fn a_list_of_versions_reads_no_definition() {
    let bench = Bench::new();
    for jobs in [1, 2, 3] {
        apply(&bench, jobs);
    }
    bench.raw().execute("UPDATE workflows SET definition = 'unreadable'");
    bench.store.registrations().versions("nightly", None, 100).unwrap_err();
    let listed = bench.store.registrations().newest_versions("nightly", 2).unwrap();
    let shown: Vec<(i64, Option<&str>)> =
        listed.iter().map(|version| (version.version, version.file.as_deref())).collect();
    assert_eq!(shown, [(3, Some("/flows/nightly.toml")), (2, Some("/flows/nightly.toml"))]);
    assert_eq!(bench.store.registrations().newest_versions("none", 2).unwrap(), []);
}

#[test]
fn a_preview_has_the_same_result_and_changes_nothing() {
    let bench = Bench::new();
    for jobs in [1, 1, 2, 1, 3] {
        let registered = bench.store.registrations().list().unwrap();
        let preview = bench.store.registrations().preview(&workflow("nightly", jobs)).unwrap();
        assert_eq!(bench.store.registrations().list().unwrap(), registered);
        assert_eq!(apply(&bench, jobs), preview);
    }
}

#[test]
fn a_file_that_only_moved_makes_no_version() {
    let bench = Bench::new();
    apply(&bench, 1);
    bench.clock.advance_ms(1_000);
    let moved =
        bench.store.registrations().apply(from_file(workflow("nightly", 1), "/flows/moved.toml")).unwrap();
    assert_eq!((moved.change, moved.version), (RegistrationChange::Unchanged, 1));
    let registration = bench.store.registrations().get("nightly").unwrap().unwrap();
    assert_eq!(registration.file.as_deref(), Some("/flows/moved.toml"));
    assert_eq!(registration.updated_at, bench.clock.now_ms());
    assert_eq!(numbers(&bench, "nightly"), [1]);
}

#[test]
fn a_name_that_is_registered_again_continues_its_versions() {
    let bench = Bench::new();
    apply(&bench, 1);
    apply(&bench, 2);
    bench.store.registrations().remove("nightly").unwrap();
    assert_eq!(bench.store.registrations().get("nightly").unwrap(), None);
    assert_eq!(numbers(&bench, "nightly"), [2, 1], "the versions are kept");
    let back = apply(&bench, 2);
    assert_eq!((back.change, back.version), (RegistrationChange::Created, 2), "its content is unchanged");
    bench.store.registrations().remove("nightly").unwrap();
    let back = apply(&bench, 1);
    assert_eq!((back.change, back.version), (RegistrationChange::Created, 3));
    assert_eq!(numbers(&bench, "nightly"), [3, 2, 1]);
}

#[test]
fn a_pause_survives_a_new_version() {
    let bench = Bench::new();
    let missing = |result: windlass_engine::Result<bool>| matches!(result, Err(Error::NotFound { .. }));
    assert!(missing(bench.store.registrations().pause("nightly")));
    assert!(missing(bench.store.registrations().resume("nightly")));
    assert!(matches!(bench.store.registrations().remove("nightly"), Err(Error::NotFound { .. })));
    apply(&bench, 1);
    assert!(!bench.store.registrations().resume("nightly").unwrap(), "it is not paused");
    assert!(bench.store.registrations().pause("nightly").unwrap());
    assert!(!bench.store.registrations().pause("nightly").unwrap(), "it is paused already");
    apply(&bench, 2);
    let paused_at = || bench.store.registrations().get("nightly").unwrap().unwrap().paused_at;
    assert_eq!(paused_at(), Some(bench.clock.now_ms()));
    assert!(bench.store.registrations().resume("nightly").unwrap());
    assert_eq!(paused_at(), None);
}

#[test]
fn pruning_keeps_the_definition_of_every_version() {
    let bench = Bench::new();
    apply(&bench, 1);
    apply(&bench, 2);
    bench.store.registrations().remove("nightly").unwrap();
    bench.clock.advance_ms(1_000);
    bench.store.for_scheduler().prune_step(support::older_than(bench.clock.now_ms())).unwrap();
    assert_eq!(numbers(&bench, "nightly"), [2, 1]);
    bench.assert_sound();
}

#[test]
fn a_workflow_without_jobs_is_refused() {
    let bench = Bench::new();
    let refused = bench.store.registrations().apply(from_file(workflow("nightly", 0), "/flows/nightly.toml"));
    assert!(matches!(refused, Err(Error::Invalid { .. })), "{refused:?}");
}

#[test]
fn concurrent_registrations_get_different_versions() {
    const APPLIERS: usize = 8;
    let bench = Bench::new();
    let mut versions: Vec<i64> = thread::scope(|scope| {
        let appliers: Vec<_> = (1..=APPLIERS)
            .map(|jobs| {
                scope.spawn({
                    let bench = &bench;
                    move || apply(bench, jobs).version
                })
            })
            .collect();
        appliers.into_iter().map(|applier| applier.join().unwrap()).collect()
    });
    versions.sort_unstable();
    let expected: Vec<i64> = (1..=APPLIERS as i64).collect();
    assert_eq!(versions, expected);
    let registration = bench.store.registrations().get("nightly").unwrap().unwrap();
    assert_eq!(registration.version, APPLIERS as i64, "the last one is active");
}

#[test]
fn concurrent_removing_and_registering_loses_no_version() {
    const ROUNDS: usize = 30;
    let bench = Bench::new();
    thread::scope(|scope| {
        for jobs in 1..=3 {
            let bench = &bench;
            scope.spawn(move || {
                for _round in 0..ROUNDS {
                    apply(bench, jobs);
                }
            });
        }
        scope.spawn(|| {
            for _round in 0..ROUNDS {
                match bench.store.registrations().remove("nightly") {
                    Ok(()) | Err(Error::NotFound { .. }) => {}
                    Err(other) => panic!("{other}"),
                }
            }
        });
    });
    let last = apply(&bench, 9);
    let newest = bench.raw().value::<i64>("SELECT max(version) FROM registration_versions");
    let kept = bench.raw().value::<i64>("SELECT count(*) FROM registration_versions");
    assert_eq!((newest, kept), (last.version, last.version), "no version is missing");
    assert_eq!(bench.store.registrations().get("nightly").unwrap().unwrap().version, last.version);
}
