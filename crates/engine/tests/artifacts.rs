//! Artifacts: their rows follow their jobs, and contents that no row names are removed.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use std::time::{Duration, UNIX_EPOCH};

use support::{Bench, graph, success};
use windlass_engine::store::{Artifact, Finish, RetrySelection};
use windlass_engine::{RunFiles, Store};

/// An instant at which all files of this test are old, in milliseconds: the year 2100.
const LATER_MS: i64 = 4_102_444_800_000;

struct Files {
    bench: Bench,
    store: Store,
    files: RunFiles,
}

impl Files {
    fn new() -> Files {
        let bench = Bench::new();
        let files = RunFiles::at(bench.folder.path().join("files"));
        Files { store: bench.store.clone().with_files(files.clone()), bench, files }
    }

    fn place(&self, content: &str) -> Artifact {
        let placed = self.files.place(&mut content.as_bytes(), "a", 1_000, &|| true).unwrap();
        Artifact { path: format!("{content}.txt"), hash: placed.hash, bytes: placed.bytes as i64 }
    }

    /// Ends the next job successfully with these artifacts.
    fn end(&self, artifacts: Vec<Artifact>) {
        let worker = self.bench.worker();
        let job = self.bench.claim(worker, 1).remove(0);
        let finish = Finish { artifacts, ..support::finish(worker, &job, success()) };
        self.store.for_workers().finish_and_claim(vec![finish], None).unwrap();
    }

    fn of_run(&self, job: Option<&str>) -> Vec<String> {
        let kept = self.store.runs().artifacts(1, job).unwrap();
        kept.into_iter().map(|kept| format!("{}/{}", kept.job, kept.artifact.path)).collect()
    }

    fn is_there(&self, artifact: &Artifact) -> bool {
        self.files.content_bytes(&artifact.hash).unwrap() == Some(artifact.bytes as u64)
    }

    /// Searches everything.
    fn sweep(&self) {
        for folder in 0..=u8::MAX {
            let failures = self.store.for_scheduler().remove_unnamed_contents(folder).unwrap();
            assert_eq!(failures, Vec::<String>::new());
        }
    }

    fn write_at(&self, folder: &str, artifact: &Artifact, at_ms: i64) {
        let (prefix, rest) = artifact.hash.split_at(2);
        let path = match folder {
            "artifacts" => self.files.root().join(folder).join(prefix).join(rest),
            folder => self.files.root().join(folder).join(&artifact.hash),
        };
        let at = UNIX_EPOCH + Duration::from_millis(at_ms.unsigned_abs());
        std::fs::File::options().write(true).open(path).unwrap().set_modified(at).unwrap();
    }
}

#[test]
fn rows_follow_their_jobs() {
    let files = Files::new();
    support::submit(&files.store, graph(vec![vec![], vec![0]]));
    files.end(vec![files.place("one"), files.place("two")]);
    files.end(vec![files.place("two")]);
    assert_eq!(files.of_run(None), ["j0/one.txt", "j0/two.txt", "j1/two.txt"]);
    assert_eq!(files.of_run(Some("j1")), ["j1/two.txt"]);
    assert_eq!(files.of_run(Some("j2")), Vec::<String>::new());
    assert_eq!(files.store.upkeep().check_files().unwrap(), []);
    files.store.runs().retry(1, RetrySelection::From("j1".to_owned())).unwrap();
    assert_eq!(files.of_run(None), ["j0/one.txt", "j0/two.txt"], "it is executed again");
    files.end(vec![files.place("three")]);
    assert_eq!(files.of_run(Some("j1")), ["j1/three.txt"]);
    std::fs::remove_dir_all(files.files.root().join("artifacts")).unwrap();
    let problems = files.store.upkeep().check_files().unwrap();
    assert_eq!(problems.len(), 3);
    assert!(problems[0].detail.starts_with("artifact one.txt of job j1: "), "{}", problems[0].detail);
    files.bench.assert_sound();
    files.store.for_scheduler().prune_step(support::older_than(i64::MAX)).unwrap();
    assert_eq!(files.of_run(None), Vec::<String>::new());
}

#[test]
fn the_artifacts_of_a_job_that_is_no_longer_owned_are_discarded() {
    let files = Files::new();
    support::submit(&files.store, graph(vec![vec![]]));
    let worker = files.bench.worker();
    let job = files.bench.claim(worker, 1).remove(0);
    let finish = Finish {
        attempt: 7,
        artifacts: vec![files.place("one")],
        ..support::finish(worker, &job, success())
    };
    files.store.for_workers().finish_and_claim(vec![finish], None).unwrap();
    assert_eq!(files.of_run(None), Vec::<String>::new());
}

#[test]
fn contents_without_rows_are_removed_when_they_are_old() {
    let files = Files::new();
    support::submit(&files.store, graph(vec![vec![], vec![0]]));
    let (named, unnamed, young) = (files.place("named"), files.place("unnamed"), files.place("young"));
    files.end(vec![named.clone()]);
    let all_there = || [&named, &unnamed, &young].map(|artifact| files.is_there(artifact));
    files.sweep();
    assert_eq!(all_there(), [true, true, true], "a worker may be about to name them");
    files.bench.clock.advance_ms(LATER_MS);
    files.write_at("artifacts", &young, LATER_MS);
    files.sweep();
    assert_eq!(all_there(), [true, false, true]);
}

/// Another worker places the same content while it is being removed.
#[test]
fn a_content_that_is_placed_again_is_not_lost() {
    let files = Files::new();
    support::submit(&files.store, graph(vec![vec![]]));
    files.bench.clock.advance_ms(LATER_MS);
    // It is placed after the old file was taken away, and not named yet.
    let old = files.place("content");
    files.files.take_away(&old.hash).unwrap();
    assert!(files.is_there(&old), "it can be read while it is looked at");
    files.place("content");
    files.write_at("artifacts", &old, LATER_MS);
    files.sweep();
    assert!(files.is_there(&old));
    // It was placed between the look at its age and the rename.
    files.files.take_away(&old.hash).unwrap();
    files.write_at("leaving", &old, LATER_MS);
    files.sweep();
    assert!(files.is_there(&old));
    // A process died after the rename, and a row names the content by now.
    files.files.take_away(&old.hash).unwrap();
    files.write_at("leaving", &old, 0);
    files.end(vec![old.clone()]);
    files.sweep();
    assert!(files.is_there(&old));
    assert_eq!(files.store.upkeep().check_files().unwrap(), []);
}

#[test]
fn a_content_that_is_too_large_or_stopped_leaves_nothing() {
    let files = Files::new();
    let too_large = files.files.place(&mut &b"12345"[..], "a", 4, &|| true).unwrap_err();
    assert_eq!(too_large.to_string(), "it is larger than 4 bytes");
    let stopped = files.files.place(&mut &b"12345"[..], "a", 5, &|| false).unwrap_err();
    assert_eq!(stopped.to_string(), "it was stopped");
    assert_eq!(std::fs::read_dir(files.files.root().join("new")).unwrap().count(), 0);
    let placed = files.place("12345");
    assert_eq!(placed.hash, "5994471abb01112afcc18159f6cc74b4f511b99806da59b3caf5a9c173cacfc5");
}
