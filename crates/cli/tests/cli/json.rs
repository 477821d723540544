//! The JSON that scripts rely on: exactly these fields, in this order.

use serde_json::Value;

use crate::support::{BAD, Bench, GOOD};

const RUN: [&str; 22] = [
    "run_id",
    "workflow",
    "status",
    "outcome",
    "stop_reason",
    "waits_for",
    "concurrency_key",
    "params",
    "run_key",
    "tags",
    "source",
    "started_by",
    "schedule_id",
    "scheduled_for",
    "dir",
    "created_at",
    "started_at",
    "finished_at",
    "duration_ms",
    "interrupted",
    "parent",
    "job_counts",
];
const JOB: [&str; 30] = [
    "job_id",
    "run_id",
    "job",
    "kind",
    "queue",
    "status",
    "priority",
    "needs",
    "attempt",
    "max_attempts",
    "failures",
    "interruptions",
    "execute_after",
    "created_at",
    "ready_at",
    "started_at",
    "finished_at",
    "duration_ms",
    "worker_id",
    "allow_failure",
    "waits_for",
    "upstream_failed",
    "handler",
    "exit_code",
    "deadline_at",
    "group",
    "index",
    "item",
    "last_error",
    "output",
];

#[track_caller]
fn assert_fields(object: &Value, fields: &[&str]) {
    let found: Vec<&str> = object.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(found, fields, "{object:#}");
}

fn is_instant(value: &Value) -> bool {
    value.as_str().is_some_and(|text| {
        text.len() == "2026-11-20T23:05:28.123Z".len() && text.ends_with('Z') && text.contains('T')
    })
}

#[test]
fn runs_and_jobs() {
    let bench = Bench::new();
    bench.write("good.toml", GOOD);
    let run = bench.json(&["run", "good.toml"]);
    assert_fields(&run, &[&RUN[..], &["outputs", "workspace", "definitions", "jobs"]].concat());
    assert_eq!(run["status"], "SUCCESSFUL");
    assert_eq!(run["dir"].as_str().unwrap(), bench.folder().canonicalize().unwrap().to_str().unwrap());
    let counts = [
        "total",
        "blocked",
        "scheduled",
        "pending",
        "running",
        "waiting",
        "successful",
        "failed",
        "skipped",
        "cancelled",
    ];
    assert_fields(&run["job_counts"], &counts);
    for field in ["created_at", "started_at", "finished_at"] {
        assert!(is_instant(&run[field]), "{field}: {run:#}");
    }
    assert!(run["duration_ms"].is_i64(), "{run:#}");
    for job in run["jobs"].as_array().unwrap() {
        assert_fields(job, &JOB);
        assert!(is_instant(&job["finished_at"]), "{job:#}");
    }
    assert_eq!(run["jobs"][1]["needs"], serde_json::json!(["fetch"]));
    assert_eq!(bench.json(&["inspect", "1"]), run, "the same as `inspect`");
    assert_fields(&bench.json(&["runs"])[0], &RUN);
    assert_fields(&bench.json(&["jobs"])[0], &JOB);
}

#[test]
fn a_change_of_the_audit() {
    let bench = Bench::new();
    bench.windlass(&["queue", "pause", "mail"]).code(0);
    let change = &bench.json(&["audit"])[0];
    let fields = ["audit_id", "at", "caller", "address", "action", "subject", "before", "result"];
    assert_fields(change, &fields);
    assert!(is_instant(&change["at"]), "{change:#}");
}

#[test]
fn a_run_names_its_schedule() {
    let bench = Bench::new();
    bench.write("good.toml", &format!("{GOOD}[[schedules]]\nevery = \"1s\"\n"));
    bench.windlass(&["run", "good.toml"]).code(0);
    bench.windlass(&["apply", "good.toml"]).code(0);
    bench.windlass(&["schedule", "fire", "good"]).code(0);
    let by_hand = bench.json(&["inspect", "1"]);
    for field in ["source", "schedule_id", "scheduled_for"] {
        assert!(by_hand[field].is_null(), "{field}: {by_hand:#}");
    }
    let triggered = bench.json(&["inspect", "2"]);
    assert_eq!((&triggered["source"], &triggered["schedule_id"]), (&"manual".into(), &1.into()));
    assert!(triggered["scheduled_for"].is_null(), "{triggered:#}");
    let mut worker = bench.start(&["worker"]);
    let fired = bench.wait_for("an occurrence", || {
        bench.json(&["runs"]).as_array()?.iter().find(|run| run["source"] == "schedule").cloned()
    });
    worker.child.kill().unwrap();
    worker.wait();
    let schedule = &bench.json(&["schedule", "list"])[0];
    assert_eq!(fired["schedule_id"], schedule["schedule_id"]);
    assert!(is_instant(&fired["scheduled_for"]), "{fired:#}");
}

#[test]
fn a_job_with_its_attempts() {
    let bench = Bench::new();
    bench.write("bad.toml", BAD);
    bench.windlass(&["run", "bad.toml"]).code(1);
    let job = bench.json(&["inspect", "1/load"]);
    assert_fields(&job, &[&JOB[..], &["payload", "rounds", "max_rounds", "attempts"]].concat());
    let attempt = &job["attempts"][0];
    assert_fields(
        attempt,
        &["attempt", "outcome", "error", "worker_id", "ready_at", "started_at", "finished_at"],
    );
    assert_eq!(attempt["outcome"], "failed");
    assert!(is_instant(&attempt["started_at"]), "{attempt:#}");
}

#[test]
fn lines_of_output() {
    let bench = Bench::new();
    bench.write("good.toml", GOOD);
    bench.windlass(&["run", "good.toml"]).code(0);
    let outcome = bench.windlass(&["logs", "1", "-o", "jsonl"]);
    let lines: Vec<Value> =
        outcome.code(0).stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 3);
    for line in &lines {
        assert_fields(line, &["run_id", "job_id", "job", "attempt", "line", "at", "stream", "text"]);
        assert!(is_instant(&line["at"]), "{line}");
    }
    let warned = lines.iter().find(|line| line["text"] == "warned").unwrap();
    assert_eq!(warned["stream"], "stderr");
    assert_eq!(warned["job"], "fetch");
    assert_eq!(bench.json(&["logs", "1"]).as_array().unwrap(), &lines);
}

#[test]
fn stats_with_a_worker() {
    let bench = Bench::new();
    let worker_capabilities = ["--capability", "gpu", "--code-version", "7"];
    let mut worker =
        bench.start(&[&["worker", "--queue", "a,b", "--threads", "3"], &worker_capabilities[..]].concat());
    bench.wait_for("a database", || bench.database.exists().then_some(()));
    let stats = bench.wait_for("a worker", || {
        let outcome = bench.windlass(&["stats", "-o", "json"]);
        let stats: Value = serde_json::from_str(&outcome.stdout).ok()?;
        stats["workers"][0].is_object().then_some(stats)
    });
    bench.windlass(&["stats"]).code(0).says(&["queues [\"a\",\"b\"], has [\"gpu\"], code version 7"]);
    worker.child.kill().unwrap();
    worker.wait();
    assert_fields(&stats, &["job_counts", "run_counts", "at_least", "workers"]);
    let worker = &stats["workers"][0];
    let fields = [
        "worker_id",
        "host",
        "pid",
        "status",
        "heartbeat_at",
        "threads",
        "queues",
        "capabilities",
        "code_version",
        "running",
    ];
    assert_fields(worker, &fields);
    assert_eq!((&worker["capabilities"], &worker["code_version"]), (&serde_json::json!(["gpu"]), &7.into()));
    assert_eq!(worker["queues"], serde_json::json!(["a", "b"]));
    assert_eq!(worker["threads"], 3);
    assert_eq!(worker["status"], "ALIVE");
}

#[test]
fn reasons() {
    let bench = Bench::new();
    bench.windlass(&["enqueue", "mail"]).code(0);
    let why = bench.json(&["why", "j1"]);
    assert_fields(&why, &[&JOB[..], &["reasons"]].concat());
    assert_fields(&why["reasons"][0], &["kind", "text"]);
    assert_eq!(why["reasons"][0]["kind"], "no_worker");
    bench.write("bad.toml", BAD);
    bench.windlass(&["run", "bad.toml"]).code(1);
    let why = bench.json(&["why"]);
    assert_fields(&why, &[&RUN[..], &["jobs"]].concat());
    assert_fields(&why["jobs"][0], &[&JOB[..], &["reasons"]].concat());
}

/// The outermost fields of a verb in the table of the guide.
fn documented(verb: &str) -> Vec<String> {
    let guide = include_str!("../../../../docs/guide/json.md");
    let row = guide.lines().find(|line| line.starts_with(&format!("| `{verb}` | `")));
    let shape = row.unwrap_or_else(|| panic!("{verb} is not in the table")).split('`').nth(3).unwrap();
    let outer = if shape.starts_with('[') { 2 } else { 1 };
    let (mut fields, mut depth, mut before) = (Vec::new(), 0, "");
    for (place, piece) in shape.split('"').enumerate() {
        if place % 2 == 0 {
            depth += piece.matches(['[', '{']).count();
            depth -= piece.matches([']', '}']).count();
            before = piece;
        } else if depth == outer && !before.trim_end().ends_with(':') {
            fields.push(piece.to_owned());
        }
    }
    fields
}

#[test]
fn the_table_of_the_guide_has_the_fields_of_each_verb() {
    let printed = Bench::new().windlass(&["schema", "output"]);
    let schema: Value = serde_json::from_str(&printed.code(0).stdout).unwrap();
    let guide = include_str!("../../../../docs/guide/json.md");
    let mut seen = 0;
    for (verb, of_verb) in schema["properties"].as_object().unwrap() {
        assert!(guide.contains(&format!("`{verb}")), "docs/guide/json.md does not name `{verb}`");
        if !guide.contains(&format!("| `{verb}` | `")) {
            continue;
        }
        let first = of_verb["anyOf"].as_array().map_or(of_verb, |shapes| &shapes[0]);
        let item = if first["type"] == "array" { &first["items"] } else { first };
        let pointer = item["$ref"].as_str().unwrap().trim_start_matches('#');
        let fields: Vec<&str> = schema.pointer(pointer).unwrap()["required"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(Value::as_str)
            .collect();
        assert_eq!(fields, documented(verb), "{verb}");
        seen += 1;
    }
    assert!(seen > 20, "{seen}");
}
