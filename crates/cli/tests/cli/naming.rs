//! The names of runs and jobs on the command line: numbers, `latest`, workflows, and words of other programs.

use crate::support::{BAD, Bench, GOOD};

/// Runs 1 and 3 of `good`, run 2 of `bad`.
fn bench_with_three_runs() -> Bench {
    let bench = Bench::new();
    bench.write("good.toml", GOOD);
    bench.write("bad.toml", BAD);
    bench.windlass(&["run", "good.toml"]).code(0);
    bench.windlass(&["run", "bad.toml"]).code(1);
    bench.windlass(&["run", "good.toml", "-p", "day=2026-11-21"]).code(0);
    bench
}

#[test]
fn a_run_is_named_by_number_place_or_workflow() {
    let bench = bench_with_three_runs();
    let id = |address: &str| bench.json(&["inspect", address])["run_id"].as_i64();
    let cases = [
        ("2", 2),
        ("latest", 3),
        ("latest~1", 2),
        ("latest~2", 1),
        ("good", 3),
        ("good~0", 3),
        ("good~1", 1),
        ("bad", 2),
    ];
    for (address, expected) in cases {
        assert_eq!(id(address), Some(expected), "{address}");
    }
    assert_eq!(bench.json(&["inspect"])["run_id"], 3, "without a name it is the newest run");
    bench
        .windlass(&["inspect", "latest~3"])
        .fails(5, &["no run latest~3", "fewer than 4 runs", "windlass runs"]);
    let none = bench.windlass(&["inspect", "bad~1"]);
    none.fails(5, &["fewer than 2 runs of workflow `bad`", "windlass runs --workflow bad"]);
    bench.windlass(&["inspect", "godo"]).fails(5, &["no run of a workflow `godo`", "did you mean `good`?"]);
    bench.windlass(&["inspect", "load"]).fails(5, &["did you mean the job 2/load?"]);
    bench
        .windlass(&["inspect", "4"])
        .fails(5, &["run 4 does not exist", "did you mean job j4?", "newest is run 3"]);
    bench.windlass(&["apply", "good.toml"]).code(0);
}

#[test]
fn every_verb_takes_each_form_of_a_run() {
    let bench = bench_with_three_runs();
    let of_run: [&[&str]; 8] = [
        &["inspect", "bad", "-o", "json"],
        &["why", "bad"],
        &["logs", "bad"],
        &["watch", "bad"],
        &["graph", "bad"],
        &["artifacts", "bad"],
        &["jobs", "--run", "bad", "-o", "json"],
        &["cancel", "bad"],
    ];
    for arguments in of_run {
        let named = bench.windlass(arguments);
        for other in ["2", "latest~1", "bad~0"] {
            let arguments: Vec<&str> =
                arguments.iter().map(|word| if *word == "bad" { other } else { word }).collect();
            let outcome = bench.windlass(&arguments);
            assert_eq!((outcome.code, &outcome.stdout), (named.code, &named.stdout), "{arguments:?}");
        }
    }
    bench.windlass(&["retry", "bad"]).code(1).tells(&["of run 2"]);
    bench.windlass(&["rerun", "bad"]).code(1);
    bench.windlass(&["resume", "bad"]).code(1).tells(&["run 4 has already ended"]);
}

#[test]
fn every_verb_takes_each_form_of_a_job() {
    let bench = bench_with_three_runs();
    let forms = ["2/load", "bad/load", "bad~0/load", "latest~1/load", "j3"];
    for verb in ["inspect", "why", "logs", "cancel"] {
        let expected = bench.windlass(&[verb, "2/load", "-o", "jsonl"]).code(0).stdout.clone();
        for form in forms {
            let outcome = bench.windlass(&[verb, form, "-o", "jsonl"]);
            assert_eq!(outcome.code(0).stdout, expected, "{verb} {form}");
        }
    }
    bench.windlass(&["logs", "latest~1", "load"]).code(0).says(&["boom"]);
    for arguments in [&["approve", "bad/load"][..], &["approve", "bad", "load"], &["approve", "j3"]] {
        bench.windlass(arguments).fails(2, &["job 2/load", "it is no approval"]);
    }
    bench.windlass(&["approve", "bad"]).fails(2, &["a job is needed", "2/NAME"]);
    bench.windlass(&["logs", "j3", "load"]).fails(2, &["`j3` is a job, and `load` names another job"]);
    bench.windlass(&["watch", "2/load"]).fails(2, &["is a job", "its run is 2"]);
}

#[test]
fn verbs_that_read_mean_the_newest_run() {
    let bench = bench_with_three_runs();
    for verb in ["inspect", "logs", "why", "watch", "graph"] {
        // The times in the text of `inspect` are relative to now.
        let format: &[&str] = if verb == "inspect" { &["-o", "json"] } else { &[] };
        let expected = bench.windlass(&[&[verb, "3"], format].concat());
        let outcome = bench.windlass(&[&[verb], format].concat());
        assert_eq!((outcome.code, &outcome.stdout), (expected.code, &expected.stdout), "{verb}");
    }
    for verb in ["cancel", "retry", "rerun", "approve"] {
        bench.windlass(&[verb]).fails(2, &["required"]);
    }
    let empty = Bench::new();
    empty.windlass(&["enqueue", "mail"]).code(0);
    empty.windlass(&["logs"]).fails(5, &["there is no run", "there are no runs yet"]);
}

#[test]
fn workflows_with_names_like_numbers_and_words() {
    let bench = Bench::new();
    for name in ["7", "latest", "j1", "team/etl"] {
        bench.write("named.toml", &GOOD.replace("name = \"good\"", &format!("name = '{name}'")));
        bench.windlass(&["run", "named.toml"]).code(0);
    }
    let workflow = |address: &str| bench.json(&["inspect", address])["workflow"].clone();
    assert_eq!(workflow("7~0"), "7", "before ~ stands a name");
    assert_eq!(workflow("j1~0"), "j1");
    assert_eq!(workflow("team/etl"), "team/etl");
    assert_eq!(workflow("latest"), "team/etl", "latest is the newest run of all");
    assert_eq!(bench.json(&["runs", "--workflow", "latest"])[0]["run_id"], 2);
    bench.windlass(&["inspect", "7"]).fails(5, &["run 7 does not exist", "did you mean job j7?"]);
    bench.windlass(&["watch", "team/etl"]).code(0);
}

#[test]
fn why_explains_a_run_by_the_jobs_that_decide() {
    let bench = bench_with_three_runs();
    let why = bench.windlass(&["why", "2"]);
    why.code(0).says(&[
        "run 2 of bad is FAILED",
        "1 successful, 1 failed, 1 skipped",
        "job 2/load (j3) is FAILED",
    ]);
    assert!(!why.stdout.contains("2/after"), "a skipped job decides nothing: {}", why.stdout);
    let view = bench.json(&["why", "bad"]);
    assert_eq!((&view["run_id"], &view["jobs"][0]["job"]), (&2.into(), &"load".into()));
    assert_eq!(view["jobs"].as_array().map(Vec::len), Some(1));
    bench.windlass(&["why", "3"]).code(0).says(&["run 3 of good is SUCCESSFUL", "successful"]);
    bench.windlass(&["submit", "bad.toml"]).code(0);
    let why = bench.windlass(&["why"]);
    why.code(0).says(&["run 4 of bad is PENDING", "windlass resume 4", "is PENDING", "No worker is alive"]);
    let many: String = (0..25).map(|n| format!("[jobs.a{n}]\nrun = 'true'\n")).collect();
    bench.write("many.toml", &many);
    bench.windlass(&["submit", "many.toml"]).code(0);
    bench.windlass(&["why"]).code(0).says(&["… and 5 more", "windlass jobs --run 5"]);
}

#[test]
fn words_of_other_programs_lead_to_the_verb() {
    let bench = Bench::new();
    let cases: [(&[&str], &str); 12] = [
        (&["ls"], "windlass runs"),
        (&["ps"], "windlass runs"),
        (&["status"], "windlass inspect"),
        (&["list"], "windlass jobs"),
        (&["show", "3"], "windlass inspect"),
        (&["exec", "x.toml"], "windlass run FILE"),
        (&["start"], "windlass serve"),
        (&["stop", "3"], "windlass cancel"),
        (&["kill", "3"], "windlass cancel"),
        (&["schedule", "trigger", "x"], "windlass schedule fire"),
        (&["schedule", "ls"], "windlass schedule list"),
        (&["queue", "ls"], "windlass queue list"),
    ];
    for (arguments, expected) in cases {
        bench.windlass(arguments).fails(2, &["unrecognized subcommand", expected]);
    }
}

#[test]
fn a_job_alone_is_printed_as_it_is_named() {
    let bench = Bench::new();
    let id = bench.windlass(&["enqueue", "shell", "--payload", r#"{"run": "true"}"#]).code(0).stdout.clone();
    assert_eq!(id, "j1\n");
    bench.windlass(&["why", id.trim()]).code(0).says(&["job j1 is PENDING"]);
    assert_eq!(bench.json(&["enqueue", "shell", "--payload", r#"{"run": "true"}"#])["job_id"], 2);
}

#[test]
fn lists_have_the_same_filters() {
    let bench = bench_with_three_runs();
    let ids = |verb: &str, arguments: &[&str]| -> Vec<i64> {
        let rows = bench.json(&[&[verb], arguments].concat());
        rows.as_array().unwrap().iter().map(|row| row["run_id"].as_i64().unwrap()).collect()
    };
    assert_eq!(ids("runs", &["--status", "failed", "--status", "successful"]), [3, 2, 1]);
    assert_eq!(ids("runs", &["--status", "failed,cancelled"]), [2]);
    assert_eq!(ids("runs", &["--workflow", "good", "-p", "day=2026-11-21"]), [3]);
    assert_eq!(ids("runs", &["-p", "day=2026-11-21", "-p", "count=3"]), [3]);
    assert_eq!(ids("runs", &["-p", "day=2026-11-21", "-p", "count=4"]), [0; 0]);
    assert_eq!(ids("jobs", &["-p", "day=2026-11-21", "--param", "count=3", "--kind", "shell"]), [3, 3]);
    assert_eq!(ids("jobs", &["--kind", "http"]), [0; 0]);
    assert_eq!(ids("runs", &["--since", "1h", "-n", "2"]), [3, 2]);
    assert_eq!(ids("runs", &["--since", "2000-01-01"]), [3, 2, 1]);
    assert_eq!(ids("runs", &["--since", "2100-01-01"]), [0; 0]);
    assert_eq!(ids("jobs", &["--status", "failed,skipped", "--since", "1h"]), [2, 2]);
    assert_eq!(ids("jobs", &["--workflow", "bad"]), [2, 2, 2]);
    assert_eq!(ids("jobs", &["--param", "day=2026-11-21"]), [3, 3]);
    assert_eq!(ids("jobs", &["--since", "2100-01-01"]), [0; 0]);
    bench.windlass(&["runs", "--since", "soon"]).fails(2, &["10m or 2h", "today"]);
    bench.windlass(&["jobs", "-p", "day"]).fails(2, &["NAME=VALUE"]);
}

#[test]
fn what_is_missing_or_mistyped_has_a_next_step() {
    let bench = bench_with_three_runs();
    let missing = "`latest` is the newest run";
    for verb in ["retry", "rerun", "cancel"] {
        bench.windlass(&[verb]).fails(2, &["<RUN", missing]);
    }
    bench
        .windlass(&["run", "godo.toml"])
        .fails(2, &["the file godo.toml does not exist; did you mean good.toml?"]);
    bench.windlass(&["run", "bad"]).fails(2, &["the file bad does not exist; did you mean bad.toml?"]);
    bench.windlass(&["run", "unlike"]).fails(5, &["no workflow is registered under the name `unlike`"]);
    bench
        .windlass(&["schedule", "next", "good.toml"])
        .fails(2, &["`good.toml` is a file", "apply good.toml"]);
    bench
        .windlass(&["logs", "2/load", "--attempt", "9"])
        .fails(5, &["had 1 attempt, and no attempt 9", "inspect j"]);
    bench.windlass(&["db", "prune"]).fails(2, &["--older-than <DURATION>|--keep <N>"]);
}
