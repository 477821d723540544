//! Checks what the binary prints with `-o json` and `-o jsonl` against `windlass schema output`.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use serde_json::{Map, Value, json};

use crate::support::{BAD, Bench, GOOD, Outcome};

/// Each verb with a call that succeeds and prints something, in an order in which they do.
const CALLS: &[(&str, &[&str])] = &[
    ("init", &["init", "first"]),
    ("import crontab", &["import", "crontab", "crontab", "--timezone", "UTC"]),
    ("import dagu", &["import", "dagu", "dagu.yaml", "--to", "dagu.toml", "--timezone", "UTC"]),
    ("fmt", &["fmt", "good.toml"]),
    ("validate", &["validate", "good.toml"]),
    ("plan", &["plan", "good.toml"]),
    ("test", &["test", "good.toml"]),
    ("db migrate", &["db", "migrate"]),
    ("apply", &["apply", "good.toml"]),
    ("notify", &["notify"]),
    ("token", &["token"]),
    ("token add", &["token", "add", "ci", "--role", "view", "--expires", "90d"]),
    ("token list", &["token", "list"]),
    ("token revoke", &["token", "revoke", "ci"]),
    ("audit", &["audit"]),
    ("open", &["open"]),
    ("variable set", &["variable", "set", "cursor", "7", "--json"]),
    ("variable", &["variable"]),
    ("variable list", &["variable", "list"]),
    ("variable get", &["variable", "get", "cursor"]),
    ("variable delete", &["variable", "delete", "cursor"]),
    ("workflows", &["workflows"]),
    ("workflows list", &["workflows", "list"]),
    ("workflows show", &["workflows", "show", "good"]),
    ("workflows history", &["workflows", "history", "good"]),
    ("workflows pause", &["workflows", "pause", "good"]),
    ("workflows resume", &["workflows", "resume", "good"]),
    ("schedule", &["schedule"]),
    ("schedule list", &["schedule", "list"]),
    ("schedule add", &["schedule", "add", "weekly", "good", "--cron", "0 6 * * mon"]),
    ("schedule show", &["schedule", "show", "good/weekly"]),
    ("schedule next", &["schedule", "next", "good/weekly"]),
    ("schedule pause", &["schedule", "pause", "good/weekly"]),
    ("schedule resume", &["schedule", "resume", "good/weekly"]),
    ("schedule fire", &["schedule", "fire", "good/weekly"]),
    (
        "schedule backfill",
        &["schedule", "backfill", "good/weekly", "--from", "2026-01-01", "--to", "2026-02-01"],
    ),
    ("schedule remove", &["schedule", "remove", "good/weekly"]),
    ("run", &["run", "good.toml", "--run-key", "k"]),
    ("resume", &["resume", "2"]),
    ("retry", &["retry", "2", "--from", "fetch"]),
    ("rerun", &["rerun", "2"]),
    ("watch", &["watch", "2"]),
    ("runs", &["runs"]),
    ("inspect", &["inspect", "2"]),
    ("inspect", &["inspect", "2/fetch"]),
    ("logs", &["logs", "2"]),
    ("artifacts", &["artifacts", "2"]),
    ("jobs", &["jobs"]),
    ("stats", &["stats"]),
    ("submit", &["submit", "approved.toml"]),
    ("enqueue", &["enqueue", "mail", "--queue", "mail"]),
    ("why", &["why", "1/fetch"]),
    ("why", &["why", "2"]),
    ("queue", &["queue"]),
    ("queue list", &["queue", "list"]),
    ("queue limit", &["queue", "limit", "mail", "--max-running", "2"]),
    ("queue pause", &["queue", "pause", "mail"]),
    ("queue drain", &["queue", "drain", "mail"]),
    ("queue resume", &["queue", "resume", "mail"]),
    ("signal", &["signal", "paid", "--key", "order-42"]),
    ("cancel", &["cancel", "1"]),
    ("cancel", &["cancel", "1/fetch"]),
    ("db check", &["db", "check"]),
    ("db prune", &["db", "prune", "--older-than", "0s"]),
    ("workflows remove", &["workflows", "remove", "good"]),
];

/// Verbs that need more than a call; the test that has it.
const ELSEWHERE: &[(&str, &str)] = &[
    ("approve", "approvals_print_the_job"),
    ("reject", "approvals_print_the_job"),
    ("bench", "measuring"),
    ("change", "alone"),
    ("delete", "alone"),
    ("db backup", "sqlite_files"),
    ("db copy", "sqlite_files"),
    ("db restore", "sqlite_restore"),
    ("db vacuum", "sqlite_files"),
    ("doctor", "doctor"),
    ("error", "errors_are_a_line_of_json"),
];

const APPROVED: &str =
    "[jobs.go]\napproval = { prompt = 'go?' }\n[jobs.stop]\napproval = { prompt = 'go?' }\n";

/// The schema of all verbs.
fn schema() -> &'static Value {
    static SCHEMA: OnceLock<Value> = OnceLock::new();
    SCHEMA.get_or_init(|| {
        let program = env!("CARGO_BIN_EXE_windlass");
        let printed = std::process::Command::new(program).args(["schema", "output"]).output().unwrap();
        serde_json::from_slice(&printed.stdout).unwrap()
    })
}

fn properties() -> &'static Map<String, Value> {
    schema()["properties"].as_object().unwrap()
}

/// A schema with the definitions that it refers to.
fn validator(schema_of_value: &Value) -> jsonschema::Validator {
    let mut complete = schema_of_value.clone();
    complete["$defs"] = schema()["$defs"].clone();
    jsonschema::draft202012::new(&complete).unwrap()
}

/// The documents that a verb prints.
fn shapes(verb: &str) -> Vec<Value> {
    let schema = &properties()[verb];
    schema["anyOf"].as_array().cloned().unwrap_or_else(|| vec![schema.clone()])
}

/// What a line of `-o jsonl` may be.
fn lines_of(verb: &str) -> Value {
    let lines = shapes(verb)
        .into_iter()
        .map(|shape| if shape["type"] == "array" { shape["items"].clone() } else { shape });
    json!({ "anyOf": lines.collect::<Vec<_>>() })
}

/// The errors of a value by the schema, or by the part of an `anyOf` that fits best.
fn errors_of(schema: &Value, value: &Value) -> Vec<String> {
    let parts = schema["anyOf"].as_array().map_or(std::slice::from_ref(schema), Vec::as_slice);
    let errors = parts.iter().map(|part| -> Vec<String> {
        validator(part)
            .iter_errors(value)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect()
    });
    errors.min_by_key(Vec::len).unwrap_or_default()
}

#[track_caller]
fn assert_valid(schema: &Value, value: &Value, what: &str) {
    let errors = errors_of(schema, value);
    assert!(
        errors.is_empty(),
        "{what} is not as `windlass schema output` says: {errors:#?}\n{value:#}\nWhat is printed is a view of \
         crates/views, and the verb's views are listed in crates/cli/src/commands/schema/outputs.rs"
    );
}

/// The verb of a command line.
fn verb_of(arguments: &[String]) -> Option<String> {
    let known = properties();
    let named = |index: usize| {
        let one = arguments[index].clone();
        let two = arguments.get(index + 1).map(|next| format!("{one} {next}"));
        two.filter(|two| known.contains_key(two)).or_else(|| known.contains_key(&one).then_some(one))
    };
    (0..arguments.len()).find_map(named)
}

/// Checks the output of a command with `-o json` or `-o jsonl`.
#[track_caller]
pub(crate) fn check(arguments: &[String], outcome: &Outcome) {
    let format = arguments.iter().position(|argument| argument == "-o").and_then(|at| arguments.get(at + 1));
    let is_json = match format.map(String::as_str) {
        Some("json") => true,
        Some("jsonl") => false,
        Some(_) | None => return,
    };
    if let (Some(verb), false) = (verb_of(arguments), outcome.stdout.is_empty()) {
        let what = format!("{verb} ({arguments:?})");
        if is_json {
            let document = serde_json::from_str(&outcome.stdout)
                .unwrap_or_else(|error| panic!("{what}: {error}: {outcome:#?}"));
            assert_valid(&properties()[&verb], &document, &what);
        } else {
            let schema = lines_of(&verb);
            for line in outcome.stdout.lines() {
                let item =
                    serde_json::from_str(line).unwrap_or_else(|error| panic!("{what}: {error}: {line}"));
                assert_valid(&schema, &item, &what);
            }
        }
    }
    if outcome.code > 0 && outcome.code != 101 {
        let line = outcome.stderr.lines().last().unwrap_or_default();
        let error: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {outcome:#?}"));
        assert_valid(&properties()["error"], &error, "the last line of standard error");
        assert_eq!(error["error"]["exit_code"], outcome.code, "{error:#}");
    }
}

fn owned(arguments: &[&str]) -> Vec<String> {
    arguments.iter().map(|argument| (*argument).to_owned()).collect()
}

fn bench() -> Bench {
    let bench = Bench::new();
    bench.write("good.toml", &format!("{GOOD}[[schedules]]\ncron = \"@daily\"\n"));
    bench.write("good.test.toml", "[[case]]\nname = \"x\"\nothers = \"succeed\"\n");
    bench.write("approved.toml", APPROVED);
    bench.write("crontab", "0 6 * * * ./sync.sh\n");
    bench.write("dagu.yaml", "steps:\n  - name: a\n    command: echo hi\n");
    bench
}

#[test]
fn each_verb_prints_what_its_schema_says() {
    let bench = bench();
    for (verb, call) in CALLS {
        let document = bench.windlass(&[call, &["-o", "json"][..]].concat());
        assert_eq!(verb_of(&owned(call)).as_deref(), Some(*verb));
        assert!(!document.code(0).stdout.is_empty(), "{verb} prints nothing with -o json");
    }
    let called: BTreeSet<&str> =
        CALLS.iter().map(|(verb, _)| *verb).chain(ELSEWHERE.iter().map(|(verb, _)| *verb)).collect();
    for verb in properties().keys() {
        assert!(
            called.contains(verb.as_str()),
            "no test holds the schema of `{verb}` against its output: add a call to `CALLS` in {}",
            file!()
        );
    }
}

#[test]
fn a_line_of_jsonl_is_an_item() {
    let bench = bench();
    bench.windlass(&["run", "good.toml"]).code(0);
    for list in [&["runs"][..], &["jobs"], &["logs", "1"], &["validate", "good.toml", "approved.toml"]] {
        let items = bench.json(list).as_array().unwrap().clone();
        let printed = bench.windlass(&[list, &["-o", "jsonl"]].concat());
        let lines: Vec<Value> =
            printed.code(0).stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines, items, "{list:?}");
    }
    for object in [&["inspect", "1"][..], &["stats"], &["plan", "good.toml"]] {
        let printed = bench.windlass(&[object, &["-o", "jsonl"]].concat());
        assert_eq!(printed.code(0).stdout.lines().count(), 1, "{object:?}");
    }
}

#[test]
fn approvals_print_the_job() {
    let bench = bench();
    bench.windlass(&["submit", "approved.toml"]).code(0);
    let mut worker = bench.start(&["worker"]);
    bench.wait_for_status("1/go", "WAITING");
    bench.wait_for_status("1/stop", "WAITING");
    assert_eq!(bench.json(&["approve", "1", "go"])["job"], "go");
    assert_eq!(bench.json(&["reject", "1", "stop", "--reason", "no"])["status"], "FAILED");
    worker.child.kill().unwrap();
    worker.wait();
}

/// The error of a command that fails.
#[track_caller]
fn error_of(bench: &Bench, arguments: &[&str], code: i32) -> Value {
    let outcome = bench.windlass(&[arguments, &["-o", "json"]].concat());
    let line = outcome.code(code).stderr.lines().last().unwrap_or_default().to_owned();
    let error: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {outcome:#?}"));
    error["error"].clone()
}

#[test]
fn errors_are_a_line_of_json() {
    let bench = bench();
    bench.write("bad.toml", BAD);
    bench.write("invalid.toml", "[jobs.a]\nrun = 'x'\nretires = 3\n[jobs.b]\nrun = 'x'\nneeds = ['c']\n");
    let cases: &[(&[&str], i32, &str)] = &[
        (&["runs", "--sttus", "x"], 2, "usage"),
        (&["runs", "--limit", "many"], 2, "usage"),
        (&["inspct"], 2, "usage"),
        (&["run"], 2, "usage"),
        (&["graph", "good.toml"], 2, "usage"),
        (&["run", "missing.toml"], 2, "file"),
        (&["run", "invalid.toml"], 2, "invalid_file"),
        (&["validate", "invalid.toml"], 2, "invalid_file"),
        (&["apply", "invalid.toml", "bad.toml"], 2, "invalid_file"),
        (&["run", "good.toml", "-p", "x=1"], 2, "invalid_parameters"),
        (&["run", "bad.toml"], 1, "run_failed"),
        (&["retry", "2"], 5, "not_found"),
        (&["rerun", "9"], 5, "not_found"),
        (&["fmt", "--check", "invalid.toml"], 1, "problems_found"),
    ];
    for (arguments, code, kind) in cases {
        let error = error_of(&bench, arguments, *code);
        assert_eq!(error["kind"], *kind, "{arguments:?}: {error:#}");
        assert!(error["message"].as_str().is_some_and(|message| !message.is_empty()), "{error:#}");
    }
    let error = error_of(&bench, &["run", "invalid.toml"], 2);
    let places: Vec<_> =
        error["errors"].as_array().unwrap().iter().map(|error| &error["place"]["line"]).collect();
    assert_eq!(places, [&json!(3), &json!(6)], "{error:#}");
    assert_eq!(error["errors"][0]["place"]["file"], "invalid.toml");
    assert!(error["next_step"].as_str().unwrap().contains("windlass validate"), "{error:#}");
    let error = error_of(&bench, &["inspct"], 2);
    assert!(error["next_step"].as_str().unwrap().contains("'inspect'"), "{error:#}");
}

#[test]
fn a_verb_says_whether_it_changed_anything() {
    let bench = bench();
    bench.windlass(&["apply", "good.toml"]).code(0);
    bench.windlass(&["submit", "good.toml"]).code(0);
    for call in [
        &["queue", "pause", "mail"][..],
        &["queue", "resume", "mail"],
        &["queue", "limit", "mail", "--max-running", "3"],
        &["workflows", "pause", "good"],
        &["schedule", "pause", "good"],
        &["schedule", "resume", "good"],
        &["cancel", "1"],
    ] {
        let first = bench.json(call);
        assert_eq!(first["changed"], true, "{call:?}: {first:#}");
        let second = bench.json(call);
        assert_eq!(second["changed"], false, "{call:?}: {second:#}");
    }
    let signal = ["signal", "paid", "--id", "payment-7"];
    assert_eq!(bench.json(&signal)["created"], true);
    assert_eq!(
        bench.json(&signal),
        json!({"event": "paid", "event_number": 1, "event_id": "payment-7", "created": false})
    );
}

#[test]
fn a_part_of_the_schema_is_a_schema() {
    let bench = bench();
    let outcome = bench.windlass(&["schema", "output", "schedule", "list"]);
    let schema: Value = serde_json::from_str(&outcome.code(0).stdout).unwrap();
    assert!(jsonschema::draft202012::is_valid(&schema, &json!([])));
    assert!(!jsonschema::draft202012::is_valid(&schema, &json!([{"schedule": "x"}])));
    bench.windlass(&["schema", "output", "schedule", "lst"]).fails(5, &["did you mean `schedule list`?"]);
    bench.windlass(&["schema", "workflow", "runs"]).fails(2, &["windlass schema output runs"]);
}

/// The schema is exact: what a view does not name is no part of its output.
#[test]
fn a_field_without_a_schema_is_found() {
    let bench = bench();
    bench.windlass(&["run", "good.toml"]).code(0);
    let mut run = bench.json(&["inspect", "1"]);
    let schema = &properties()["inspect"];
    assert!(validator(schema).is_valid(&run));
    run["jobs"][0]["extra"] = json!(1);
    assert!(!validator(schema).is_valid(&run));
    run["jobs"][0].as_object_mut().unwrap().remove("extra");
    run["jobs"][0].as_object_mut().unwrap().remove("queue");
    assert!(!validator(schema).is_valid(&run));
}
