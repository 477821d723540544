//! `windlass bench`: its JSON, its text, and that it leaves nothing behind.

use std::fs;

use rustix::process::Signal;
use serde_json::Value;
use windlass_test_database::{Access, DatabaseKind};

use crate::support::{Bench, Outcome};

/// Each part with the figures that it must have on both databases.
const FIGURES: [(&str, &[&str]); 8] = [
    (
        "drain",
        &[
            "drain_full",
            "drain_normal",
            "raw_full_100",
            "raw_full_1000",
            "raw_full_1000_without_insert",
            "raw_full_100_without_insert",
            "raw_normal_100",
            "raw_normal_1000",
            "raw_normal_1000_without_insert",
            "raw_normal_100_without_insert",
        ],
    ),
    (
        "enqueue",
        &["enqueue_1_thread", "enqueue_8_threads", "enqueue_batch", "raw_commits", "raw_inserts_1000"],
    ),
    ("chain", &["chain_commits", "chain_link", "raw_commit"]),
    ("fan", &["drain_job", "fan_job", "layers_job"]),
    (
        "process",
        &[
            "process_fan",
            "process_link",
            "raw_spawn",
            "raw_spawn_and_commits",
            "raw_spawn_and_commits_by_turns",
            "raw_spawns",
        ],
    ),
    (
        "latency",
        &[
            "commit_idle_max",
            "commit_idle_p50",
            "commit_idle_p99",
            "commit_soon_max",
            "commit_soon_p50",
            "commit_soon_p99",
            "other_process_idle_max",
            "other_process_idle_p50",
            "other_process_idle_p99",
            "other_process_soon_max",
            "other_process_soon_p50",
            "other_process_soon_p99",
            "own_process_idle_max",
            "own_process_idle_p50",
            "own_process_idle_p99",
            "own_process_soon_max",
            "own_process_soon_p50",
            "own_process_soon_p99",
            "raw_commit",
        ],
    ),
    ("scale", &["before_few", "before_many", "bytes_a_job"]),
    (
        "memory",
        &[
            "drain_peak",
            "drain_time",
            "graph_peak",
            "graph_run",
            "graph_submit",
            "idle_serve_cpu",
            "idle_serve_wake_ups",
        ],
    ),
];

/// The figures that are compared with a figure of the machine.
const COMPARED: [&str; 23] = [
    "drain_full",
    "drain_normal",
    "enqueue_1_thread",
    "enqueue_8_threads",
    "enqueue_batch",
    "chain_link",
    "fan_job",
    "layers_job",
    "process_link",
    "process_fan",
    "other_process_idle_max",
    "other_process_idle_p50",
    "other_process_idle_p99",
    "other_process_soon_max",
    "other_process_soon_p50",
    "other_process_soon_p99",
    "own_process_idle_max",
    "own_process_idle_p50",
    "own_process_idle_p99",
    "own_process_soon_max",
    "own_process_soon_p50",
    "own_process_soon_p99",
    "before_many",
];

#[test]
fn every_part_gives_its_figures_as_json() {
    let bench = Bench::new();
    let report = bench.json(&["bench", "--jobs", "50", "--rounds", "1"]);
    let fields: Vec<&str> = report.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(fields, ["report_version", "windlass_version", "rounds", "jobs", "machine", "figures"]);
    assert_eq!((&report["rounds"], &report["jobs"]), (&Value::from(1), &Value::from(50)));
    assert!(report["machine"]["cores"].as_i64().unwrap() >= 1, "{report:#}");
    let figures = report["figures"].as_array().unwrap();
    for (part, expected) in FIGURES {
        let of_part = figures.iter().filter(|figure| figure["part"] == part);
        let mut names: Vec<&str> = of_part.map(|figure| figure["name"].as_str().unwrap()).collect();
        names.sort_unstable();
        assert_eq!(names, expected, "{part}");
    }
    figures.iter().for_each(is_figure);
    for name in COMPARED {
        let figure = figures.iter().find(|figure| figure["name"] == name).unwrap();
        let ratios = figure["ratios"].as_array().unwrap();
        assert!(!ratios.is_empty(), "{figure:#}");
        assert!(ratios.iter().all(|ratio| ratio["median"].as_f64().unwrap() >= 0.0), "{figure:#}");
    }
    // The engine promises one commit per link. Two links may also share a commit with another chain.
    let commits = figures.iter().find(|figure| figure["name"] == "chain_commits").unwrap();
    assert!(commits["min"].as_f64().unwrap() >= 1.0, "{commits:#}");
    assert!(!bench.database.exists(), "the database itself is not touched");
    leaves_nothing(&bench);
}

#[track_caller]
fn is_figure(figure: &Value) {
    let fields: Vec<&str> = figure.as_object().unwrap().keys().map(String::as_str).collect();
    let expected = ["part", "name", "about", "kind", "unit", "rounds", "median", "min", "max", "ratios"];
    assert_eq!(fields, expected);
    let [median, min, max] = ["median", "min", "max"].map(|name| figure[name].as_f64().unwrap());
    assert!(min <= median && median <= max, "{figure:#}");
    assert_eq!(figure["rounds"], 1, "{figure:#}");
}

#[test]
fn a_part_is_shown_as_a_table() {
    let bench = Bench::new();
    let outcome = bench.windlass(&["bench", "enqueue", "chain", "chain", "--jobs", "50", "--rounds", "1"]);
    outcome.code(0).says(&[
        "windlass 0.",
        "each figure was measured once",
        "enqueue: ",
        "FIGURE",
        "RATIO",
        "jobs accepted one by one",
        "beside: single commits",
        "/s",
        "chain: ",
        "a link of a chain",
        " ms",
        "commits a link",
    ]);
    assert_eq!(outcome.stdout.matches("chain: jobs").count(), 1, "a part is measured once: {outcome:#?}");
    assert!(!outcome.stdout.contains("drain: "), "{outcome:#?}");
    leaves_nothing(&bench);
}

#[test]
fn an_interrupted_measurement_leaves_nothing_behind() {
    let bench = Bench::new();
    for (part, signal) in [("drain", Signal::INT), ("latency", Signal::TERM), ("memory", Signal::INT)] {
        let running = bench.start(&["bench", part, "--jobs", "20000", "--rounds", "1000"]);
        running.wait_until_it_tells(&bench, part);
        // While a measurement runs.
        bench.wait_for("a measurement", || (!is_clean(&bench)).then_some(()));
        running.signal(signal);
        let outcome: Outcome = running.wait();
        outcome.code(130).tells(&["interrupted", "windlass bench"]);
        assert_eq!(outcome.stdout, "");
        leaves_nothing(&bench);
    }
}

#[test]
fn impossible_sizes_are_refused() {
    let bench = Bench::new();
    for arguments in [["--rounds", "0"], ["--jobs", "0"], ["--jobs", "1000001"]] {
        bench.windlass(&[&["bench"], &arguments[..]].concat()).fails(2, &[arguments[0]]);
    }
    bench.windlass(&["bench", "drian"]).fails(2, &["drian", "drain"]);
}

mod sqlite {
    use super::*;

    #[test]
    fn a_file_system_in_memory_causes_a_warning() {
        let folder = tempfile::tempdir_in("/dev/shm").unwrap();
        let bench = Bench::new();
        let database = folder.path().join("windlass.db");
        let arguments = ["bench", "chain", "--jobs", "20", "--rounds", "1", "-o", "json", "--db"];
        let outcome = bench.windlass(&[&arguments[..], &[database.to_str().unwrap()]].concat());
        outcome.code(0).tells(&["warning: ", "in memory", "--db"]);
        let report: Value = serde_json::from_str(&outcome.stdout).unwrap();
        assert_eq!(report["machine"]["file_system"], "tmpfs");
        assert!(report["machine"]["warning"].is_string(), "{report:#}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "it was measured there");
    }

    #[test]
    fn a_missing_folder_is_named() {
        let bench = Bench::new();
        bench.windlass(&["bench", "--db", "nowhere/windlass.db"]).fails(2, &["nowhere"]);
    }
}

#[track_caller]
fn leaves_nothing(bench: &Bench) {
    let entries: Vec<_> = fs::read_dir(bench.folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(entries.is_empty(), "{entries:?}");
    assert_eq!(schemas(bench), 0);
}

/// Whether no file or schema of a measurement is left.
fn is_clean(bench: &Bench) -> bool {
    fs::read_dir(bench.folder()).unwrap().count() == 0 && schemas(bench) == 0
}

/// The number of schemas of measurements on the server.
fn schemas(bench: &Bench) -> i64 {
    match bench.database.kind() {
        DatabaseKind::Sqlite => 0,
        DatabaseKind::Postgres => {
            let address = bench.database.address();
            let (_, schema) = address.split_once("schema=").unwrap();
            let sql = format!("SELECT count(*) FROM pg_namespace WHERE nspname LIKE '{schema}_bench_%'");
            bench.database.sql(Access::Read).value(&sql)
        }
    }
}
