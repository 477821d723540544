//! Every example runs unchanged and does what its first lines say.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use serde_json::Value;
use windlass_tests::binary::{examples, repository};
use windlass_tests::{Outcome, Sandbox};

/// Runs an example with `arguments`. It must end with `code`.
fn run(sandbox: &Sandbox, example: &str, arguments: &[&str], code: i32) -> Outcome {
    let path = examples().join(example).to_string_lossy().into_owned();
    let mut all = vec!["run", &path];
    all.extend(arguments);
    sandbox.run(&all).exited(code)
}

/// The output of a job of run 1.
fn output(sandbox: &Sandbox, job: &str) -> Value {
    let text = sandbox.tables().jobs_of(1)[job].output.clone();
    serde_json::from_str(text.as_deref().unwrap_or("null")).expect("an output is JSON")
}

fn output_lines(sandbox: &Sandbox, job: &str) -> Vec<String> {
    output(sandbox, job).as_str().unwrap_or_default().lines().map(str::to_owned).collect()
}

fn statuses(sandbox: &Sandbox, jobs: &[&str]) -> Vec<String> {
    let of_run = sandbox.tables().jobs_of(1);
    jobs.iter().map(|job| of_run[*job].status.clone()).collect()
}

/// A successful example leaves no processes.
fn assert_clean(sandbox: &Sandbox) {
    let left: Vec<_> = fs::read_dir(sandbox.path("tmp")).expect("the folder is there").flatten().collect();
    assert!(left.is_empty(), "left in the folder for temporary files: {left:?}");
    assert_eq!(sandbox.leftovers(), []);
}

#[test]
fn every_example_is_valid_and_tested_here() {
    let sandbox = Sandbox::new();
    let tested = [
        "approval.test.toml",
        "approval.toml",
        "artifacts.toml",
        "calls.toml",
        "chain.toml",
        "conditions.toml",
        "daily-digest.toml",
        "etl.toml",
        "exit-codes.toml",
        "failing-branch.toml",
        "flaky.toml",
        "for-each.toml",
        "git-report.toml",
        "http.toml",
        "include.toml",
        "repeat.toml",
        "triggers.toml",
        "typed-params.json",
        "variables.test.toml",
        "variables.toml",
        "waiting.toml",
        "webhook.toml",
        "word-count.toml",
        "workspace.toml",
    ];
    let names = fs::read_dir(examples()).expect("there are examples").flatten();
    let names: BTreeSet<String> = names
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.ends_with(".toml") || name.ends_with(".json"))
        .collect();
    assert_eq!(names, tested.map(str::to_owned).into());
    for name in &names {
        let path = examples().join(name);
        sandbox.run(&["validate", "--strict", &path.to_string_lossy()]).exited(0);
        let text = fs::read_to_string(&path).expect("an example can be read");
        assert!(text.contains("Shows: "), "{name} does not say what it shows");
    }
}

#[test]
fn the_cases_of_the_examples_pass_whatever_the_engine_survives() {
    let sandbox = Sandbox::new();
    for example in ["approval.toml", "variables.toml"] {
        let path = examples().join(example).to_string_lossy().into_owned();
        sandbox.run(&["test", &path, "--crash-everywhere"]).exited(0);
    }
    assert_clean(&sandbox);
}

#[test]
fn variables_count_the_lines_that_are_new() {
    let sandbox = Sandbox::new();
    let path = examples().join("variables.toml").to_string_lossy().into_owned();
    sandbox.run(&["run", &path]).exited(0);
    let lines = fs::read_to_string(examples().join("daily-digest.log")).expect("a log").lines().count();
    let counted = || sandbox.run(&["variable", "get", "lines_counted"]).exited(0).stdout;
    assert_eq!(output(&sandbox, "count"), serde_json::json!({ "new": lines, "lines": lines }));
    assert_eq!(counted(), format!("{lines}\n"));
    sandbox.run(&["run", &path]).exited(0);
    assert_eq!(sandbox.tables().jobs_of(2)["report"].status, "SKIPPED", "nothing is new");
    assert_eq!(counted(), format!("{lines}\n"));
    assert_clean(&sandbox);
}

/// Runs git in a new repository with three commits by two people.
fn small_repository(sandbox: &Sandbox) {
    let git = |arguments: &[&str]| {
        sandbox.start(sandbox.prepared(Command::new("git"), arguments)).wait().exited(0);
    };
    git(&["init", "--quiet", "repository"]);
    for (author, file, day) in [("Ada", "a.txt", "05"), ("Ada", "a.txt", "06"), ("Bob", "b.txt", "07")] {
        let content = format!("{author} on {day}");
        fs::write(sandbox.path("repository").join(file), content).expect("a file can be written");
        git(&["-C", "repository", "add", "."]);
        let name = format!("user.name={author}");
        let date = format!("2026-01-{day}T12:00:00+00:00");
        git(&[
            "-C",
            "repository",
            "-c",
            &name,
            "-c",
            "user.email=x@example.org",
            "commit",
            "--quiet",
            "--date",
            &date,
            "--message",
            "change",
        ]);
    }
}

#[test]
fn approval_waits_for_a_payment_and_a_person() {
    let sandbox = Sandbox::new();
    let path = examples().join("approval.toml").to_string_lossy().into_owned();
    let mut engine = sandbox.spawn(&["run", &path, "-p", "order=42"]);
    let until_done = |arguments: &[&str]| {
        windlass_tests::wait::eventually("it waits", || {
            (sandbox.run(arguments).code == Some(0)).then_some(())
        });
    };
    until_done(&["inspect", "1/paid"]);
    sandbox.run(&["signal", "paid", "--key", "42", "--payload", r#"{"amount": 7}"#]).exited(0);
    until_done(&["approve", "1", "release", "-p", "version=1.4", "--by", "ada"]);
    engine.wait().exited(0);
    assert_eq!(output_lines(&sandbox, "ship"), ["version 1.4, released by ada"]);
}

#[test]
fn artifacts_are_kept_and_handed_on() {
    let sandbox = Sandbox::new();
    run(&sandbox, "artifacts.toml", &[], 0);
    assert_eq!(output(&sandbox, "show"), serde_json::json!(4));
    let total = sandbox.run(&["artifacts", "1", "total", "total.txt", "--to", "-"]).exited(0);
    assert_eq!(total.stdout, "4\n");
    assert_clean(&sandbox);
}

#[test]
fn workspace_is_shared_by_the_jobs_of_a_run() {
    let sandbox = Sandbox::new();
    run(&sandbox, "workspace.toml", &["-p", "words=b,c,a"], 0);
    assert_eq!(output(&sandbox, "show"), serde_json::json!(["a", "b", "c"]));
    assert_eq!(output(&sandbox, "count"), serde_json::json!(4));
    assert_clean(&sandbox);
}

#[test]
fn calls_start_runs_and_read_their_outputs() {
    let sandbox = Sandbox::new();
    run(&sandbox, "calls.toml", &[], 0);
    assert_eq!(output(&sandbox, "customers"), serde_json::json!({ "table": "customers", "rows": 5 }));
    assert_eq!(output_lines(&sandbox, "report"), ["5 rows of customers"]);
    let children = sandbox.run(&["runs", "--children", "-o", "json"]).exited(0).json();
    let workflows: BTreeSet<&str> =
        children.as_array().expect("a list").iter().filter_map(|run| run["workflow"].as_str()).collect();
    assert_eq!(workflows, ["load", "word-count"].into());
    let logs = sandbox.run(&["logs", "1"]).exited(0).stdout;
    assert!(logs.contains("customers/clean") && logs.contains("cleaned up after customers"), "{logs}");
    assert_clean(&sandbox);
}

#[test]
fn include_uses_tables_of_another_file() {
    let sandbox = Sandbox::new();
    run(&sandbox, "include.toml", &["-p", "text=one two three"], 0);
    assert_eq!(output_lines(&sandbox, "report"), ["3 words, one two three"]);
    assert_clean(&sandbox);
}

#[test]
fn waiting_sleeps_between_two_jobs() {
    let sandbox = Sandbox::new();
    run(&sandbox, "waiting.toml", &["-p", "pause=1200ms"], 0);
    let jobs = sandbox.tables().jobs_of(1);
    assert_eq!(statuses(&sandbox, &["before", "pause", "since", "after"]), ["SUCCESSFUL"; 4]);
    let slept = jobs["pause"].finished_at.unwrap_or(0) - jobs["pause"].started_at.unwrap_or(0);
    assert!(slept >= 1_200, "{slept}");
    assert_clean(&sandbox);
}

#[test]
fn git_report_counts_a_known_history() {
    let sandbox = Sandbox::new();
    small_repository(&sandbox);
    let folder = format!("repository={}", sandbox.path("repository").display());
    run(&sandbox, "git-report.toml", &["-p", &folder], 0);
    let report = output_lines(&sandbox, "report");
    let words: Vec<Vec<&str>> = report[1..].iter().map(|line| line.split_whitespace().collect()).collect();
    let expected: [&[&str]; 7] = [
        &["author", "2", "Ada"],
        &["author", "1", "Bob"],
        &["file", "2", "a.txt"],
        &["file", "1", "b.txt"],
        &["weekday", "1", "Monday"],
        &["weekday", "1", "Tuesday"],
        &["weekday", "1", "Wednesday"],
    ];
    assert_eq!(words, expected);
    assert_clean(&sandbox);
}

#[test]
fn git_report_reads_this_repository() {
    let sandbox = Sandbox::new();
    assert!(repository().join(".git").exists(), "this test needs a clone, not an archive");
    run(&sandbox, "git-report.toml", &[], 0);
    let report = output_lines(&sandbox, "report");
    for section in ["author ", "file ", "weekday "] {
        assert!(report.iter().any(|line| line.starts_with(section)), "{report:?}");
    }
}

#[test]
fn conditions_runs_what_was_asked_for_and_the_handlers_of_the_outcome() {
    const JOBS: [&str; 6] = ["build", "check", "publish", "report", "alert", "clean"];
    for (mode, expected) in [
        ("delta", ["SUCCESSFUL", "FAILED", "SKIPPED", "SUCCESSFUL", "SKIPPED", "SUCCESSFUL"]),
        ("full", ["SUCCESSFUL", "SUCCESSFUL", "SUCCESSFUL", "SUCCESSFUL", "SKIPPED", "SUCCESSFUL"]),
    ] {
        let sandbox = Sandbox::new();
        run(&sandbox, "conditions.toml", &["-p", &format!("mode={mode}")], 0);
        assert_eq!(statuses(&sandbox, &JOBS), expected, "{mode}");
        let text = |job: &str| sandbox.run(&["logs", &format!("1/{job}")]).exited(0).stdout;
        let code = if mode == "full" { 0 } else { 1 };
        assert!(text("report").contains(&format!("exit code {code}")), "{}", text("report"));
        assert!(text("clean").contains("the run is SUCCESSFUL"), "{}", text("clean"));
        assert_clean(&sandbox);
    }
}

#[test]
fn for_each_measures_each_city_and_reads_all_outputs() {
    let sandbox = Sandbox::new();
    run(&sandbox, "for-each.toml", &["-p", "cities=Oslo,Rome,Paris,Ulm"], 0);
    let titles = |item: &str| sandbox.run(&["logs", "1", item]).exited(0).stdout;
    assert_eq!(
        titles("report").lines().next(),
        Some("4 cities, letters: [4,4,5,3], today in km, tomorrow in km, today in miles")
    );
    // The lines of the two streams arrive in any order.
    assert!(titles("measure.2").lines().any(|line| line == "city 2: Paris"), "{}", titles("measure.2"));
    assert_eq!(statuses(&sandbox, &["measure", "measure[3]", "combine[2]"]), ["SUCCESSFUL"; 3]);
    assert_clean(&sandbox);
}

#[test]
fn word_count_agrees_with_wc() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("texts")).expect("a folder can be made");
    for number in 1..=9 {
        sandbox.write(&format!("texts/{number} words.txt"), "word\n".repeat(number));
    }
    let folder = format!("folder={}", sandbox.path("texts").display());
    run(&sandbox, "word-count.toml", &["-p", &folder, "-p", "top=2"], 0);
    let table = output_lines(&sandbox, "join");
    assert_eq!(table.len(), 4, "{table:?}");
    assert!(table[1].trim().starts_with("9 ") && table[1].ends_with("/9 words.txt"), "{table:?}");
    assert!(table[2].trim().starts_with("8 ") && table[2].ends_with("/8 words.txt"), "{table:?}");
    assert_eq!(table[3].trim(), "45  in all 9 files");
    assert_clean(&sandbox);
}

#[test]
fn word_count_works_as_it_stands() {
    let sandbox = Sandbox::new();
    run(&sandbox, "word-count.toml", &[], 0);
    assert!(output_lines(&sandbox, "join").len() > 2);
    assert_clean(&sandbox);
}

#[test]
fn etl_publishes_a_table() {
    let sandbox = Sandbox::new();
    run(&sandbox, "etl.toml", &[], 0);
    let table = output_lines(&sandbox, "publish");
    assert!(table.iter().any(|line| line.starts_with("rs ")), "no Rust files in this repository? {table:?}");
    assert_clean(&sandbox);
}

#[test]
fn etl_stops_at_its_check_and_can_be_retried() {
    let sandbox = Sandbox::new();
    run(&sandbox, "etl.toml", &["-p", "minimum=1000000"], 1);
    assert_eq!(statuses(&sandbox, &["load", "check", "publish"]), ["SUCCESSFUL", "FAILED", "SKIPPED"]);
    let log = sandbox.run(&["logs", "1", "check"]).exited(0).stdout;
    assert!(log.contains("at least 1000000 were wanted"), "{log}");
    sandbox.run(&["retry", "1"]).exited(1);
    let jobs = sandbox.tables().jobs_of(1);
    assert_eq!((jobs["load"].attempt, jobs["check"].attempt), (1, 2));
}

#[test]
fn exit_codes_mean_what_the_file_says() {
    let sandbox = Sandbox::new();
    run(&sandbox, "exit-codes.toml", &[], 0);
    assert_eq!(statuses(&sandbox, &["compare", "report"]), ["SUCCESSFUL", "SUCCESSFUL"]);
    assert_eq!(output(&sandbox, "compare"), serde_json::json!(["2a3", "> c"]));
    assert_eq!(output(&sandbox, "report"), "2 lines of differences");
    assert_clean(&sandbox);
    let sandbox = Sandbox::new();
    run(&sandbox, "exit-codes.toml", &["-p", "after=a b"], 0);
    assert_eq!(statuses(&sandbox, &["compare", "report"]), ["SUCCESSFUL", "SKIPPED"]);
}

#[test]
fn flaky_succeeds_on_its_third_attempt() {
    let sandbox = Sandbox::new();
    run(&sandbox, "flaky.toml", &[], 0);
    let jobs = sandbox.tables().jobs_of(1);
    assert_eq!((jobs["fetch"].attempt, jobs["fetch"].failures), (3, 2));
    assert_eq!(output(&sandbox, "use"), "using what was fetched on attempt 3");
    let attempts = sandbox.tables().attempts();
    assert_eq!(
        attempts.iter().map(|attempt| attempt.outcome.as_str()).collect::<Vec<_>>(),
        ["failed", "failed"]
    );
}

#[test]
fn flaky_fails_with_too_few_attempts() {
    let sandbox = Sandbox::new();
    run(&sandbox, "flaky.toml", &["-p", "succeeds_on=9"], 1);
    assert_eq!(statuses(&sandbox, &["fetch", "use"]), ["FAILED", "SKIPPED"]);
    assert_eq!(sandbox.tables().jobs_of(1)["fetch"].attempt, 4);
}

/// The seed, hashed once per link of the chain by another program.
fn hash_of_40(sandbox: &Sandbox, seed: &str) -> String {
    let code = "import hashlib, sys\ntext = sys.argv[1]\n\
                for _ in range(40): text = hashlib.sha256(text.encode()).hexdigest()\nprint(text)";
    let outcome = sandbox.start(sandbox.prepared(Command::new("python3"), &["-c", code, seed])).wait();
    outcome.exited(0).stdout.trim().to_owned()
}

#[test]
fn chain_gives_the_right_hash() {
    let sandbox = Sandbox::new();
    run(&sandbox, "chain.toml", &["-p", "pause=0", "-p", "seed=a seed"], 0);
    assert_eq!(output(&sandbox, "link_40"), hash_of_40(&sandbox, "a seed"));
}

#[test]
fn daily_digest_counts_the_lines_of_a_day() {
    let sandbox = Sandbox::new();
    run(&sandbox, "daily-digest.toml", &["-p", "day=2026-03-29"], 0);
    let expected = ["Digest of 2026-03-29", "3 INFO", "1 ERROR", "1 WARN"];
    assert_eq!(output_lines(&sandbox, "digest"), expected);
    assert_clean(&sandbox);
}

#[test]
fn failing_branch_fails_alone() {
    let sandbox = Sandbox::new();
    run(&sandbox, "failing-branch.toml", &[], 1);
    let jobs = ["users_report", "broken", "broken_report", "optional", "after_optional"];
    assert_eq!(statuses(&sandbox, &jobs), ["SUCCESSFUL", "FAILED", "SKIPPED", "FAILED", "SUCCESSFUL"]);
    run(&Sandbox::new(), "failing-branch.toml", &["-p", "file=/etc/passwd"], 0);
}

#[test]
fn params_reach_the_jobs_with_their_types() {
    let sandbox = Sandbox::new();
    let params = ["title=Weekly", "rows=2", "rate=0.5", "shout=true", "day=2026-02-28", "unit=KiB"];
    let arguments: Vec<&str> = params.iter().flat_map(|param| ["-p", param]).collect();
    run(&sandbox, "typed-params.json", &arguments, 0);
    let shown = output_lines(&sandbox, "show");
    let total = output(&sandbox, "measure")["total"].as_f64().expect("a number");
    assert_eq!(shown[0], "WEEKLY OF 2026-02-28");
    assert!(shown[1].contains("KiB in all"), "{shown:?}");
    let half = format!("{:.1} are the bytes times 0.5", total / 2.0);
    assert!(shown[1].contains(&half), "{half:?} is not in {shown:?}");
    assert_eq!(shown[2], "the first of 2: approval.test.toml");
    assert_clean(&sandbox);
}

#[test]
fn http_sends_a_list_and_saves_a_file() {
    use crate::http_server::{Server, answer};
    let server = Server::start(|request, stream| match request.path.as_str() {
        "/list.json?sort=name" => {
            answer(stream, "200 OK", "Content-Type: application/json\r\n", "[\"a.txt\", \"b.txt\"]")
        }
        "/send" => answer(stream, "201 Created", "", ""),
        "/a.txt" => answer(stream, "200 OK", "", "content"),
        _ => answer(stream, "404 Not Found", "", ""),
    });
    let sandbox = Sandbox::new();
    let file = sandbox.path("saved.txt");
    let (url, path) = (format!("url={}", server.url("")), format!("file={}", file.display()));
    run(&sandbox, "http.toml", &["-p", &url, "-p", &path], 0);
    assert_eq!(output(&sandbox, "show"), "sent: status 201; saved: 7 bytes");
    assert_eq!(fs::read_to_string(&file).expect("the file is there"), "content");
    let sent = server.requests().into_iter().find(|request| request.path == "/send").expect("a request");
    assert_eq!(sent.body, "{\"items\":[\"a.txt\",\"b.txt\"],\"run\":1}");
    assert_clean(&sandbox);
}
