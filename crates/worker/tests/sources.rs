//! Rules that the sources themselves must keep: where time may come from, what may name a kind of jobs, and that
//! ARCHITECTURE.md lists every thread.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

/// The source files of a crate, by their paths from the root of the workspace. Comments and tests are left out.
fn sources_of(name: &str) -> Vec<(String, String)> {
    let mut folders = vec![root().join("crates").join(name).join("src")];
    let mut sources = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let is_test =
                ["tests.rs", "test_worker.rs", "test_store.rs"].iter().any(|end| path.ends_with(end));
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") && !is_test {
                let text = fs::read_to_string(&path).unwrap();
                let code = text.split("#[cfg(test)]\nmod tests").next().unwrap();
                let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
                let code: String = lines.flat_map(|line| [line, "\n"]).collect();
                let relative = path.strip_prefix(root()).unwrap().to_string_lossy().into_owned();
                sources.push((relative, code));
            }
        }
    }
    assert!(!sources.is_empty(), "{name}");
    sources.sort();
    sources
}

/// A simulation owns all of these through `windlass_system`: the clock, chance, and the waits of threads.
#[test]
fn only_the_crate_system_reads_a_clock_or_waits_for_a_time() {
    const FORBIDDEN: [&str; 7] =
        ["Instant", "SystemTime", "sleep(", "Condvar", "recv_timeout", "wait_timeout", "park_timeout"];
    /// Why a file may use some of them all the same.
    const ALLOWED: [(&str, &[&str]); 3] = [
        // An executor waits for a job without a time. `take_next` is the same without a wait.
        ("crates/worker/src/shared/prefetch_buffer.rs", &["Condvar"]),
        // Processes are outside of every simulation.
        ("crates/worker/src/kinds/shell/mod.rs", &["sleep("]),
        ("crates/worker/src/kinds/shell/watch.rs", &["sleep("]),
    ];
    let mut found = BTreeSet::new();
    for (path, code) in ["worker", "scheduler", "engine"].into_iter().flat_map(sources_of) {
        for word in FORBIDDEN.into_iter().filter(|word| code.contains(word)) {
            found.insert((path.clone(), word));
        }
    }
    let allowed: BTreeSet<(String, &str)> = ALLOWED
        .iter()
        .flat_map(|(path, words)| words.iter().map(|word| ((*path).to_owned(), *word)))
        .collect();
    assert_eq!(found, allowed);
}

/// A new kind is a folder in `kinds/` and a line in `kinds/mod.rs`.
#[test]
fn only_the_folder_of_a_kind_knows_the_kind() {
    for (path, code) in sources_of("worker") {
        if path.starts_with("crates/worker/src/kinds/") {
            continue;
        }
        for word in ["kinds::", "\"shell\"", "Reaper", "SIGTERM\"", "std::process::Command"] {
            let is_export = path == "crates/worker/src/lib.rs" && word == "kinds::";
            assert!(is_export || !code.contains(word), "{path} contains {word}");
        }
    }
}

/// The names in the first column of the table of threads.
fn threads_of_architecture() -> BTreeSet<String> {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let section =
        text.split("\n## ").find(|section| section.starts_with("The threads of a process")).unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| ---"));
    rows.skip(1).map(|row| row.split('|').nth(1).unwrap().trim().to_owned()).collect()
}

/// The names of threads in the sources of all crates. A prefix for the system is left out.
fn threads_of_sources() -> BTreeSet<String> {
    let mut names: BTreeSet<String> = BTreeSet::new();
    names.extend(windlass_worker::Thread::ALL.map(|thread| thread.name().to_owned()));
    names.extend(windlass_scheduler::Thread::ALL.map(|thread| thread.name().to_owned()));
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        for (_path, code) in sources_of(&name) {
            for before in [".name(\"", "THREAD_NAME: &str = \""] {
                let literals = code.split(before).skip(1).map(|rest| rest.split('"').next().unwrap());
                names.extend(literals.map(|name| name.trim_start_matches("windlass-").to_owned()));
            }
        }
    }
    names
}

#[test]
fn architecture_lists_every_thread_and_no_other() {
    assert_eq!(threads_of_architecture(), threads_of_sources());
}

#[test]
fn the_system_name_of_a_thread_begins_as_those_that_start_processes_must() {
    let name = windlass_worker::Thread::Executor(3).system_name();
    assert_eq!(name, "windlass-executor-3");
    assert_eq!(windlass_worker::Thread::LogWriter.system_name(), "windlass-log-writer");
}
