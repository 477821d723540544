//! `audit`: who changed what.

use serde_json::json;

use crate::support::{Bench, GOOD};

fn changed() -> Bench {
    let bench = Bench::new();
    bench.write("good.toml", GOOD);
    bench.windlass(&["submit", "good.toml"]).code(0);
    bench.windlass(&["cancel", "1"]).code(0);
    bench.windlass(&["queue", "pause", "mail"]).code(0);
    bench
}

#[test]
fn changes_are_listed_newest_first() {
    let bench = changed();
    let listed = bench.windlass(&["audit"]);
    let lines: Vec<&str> = listed.code(0).stdout.lines().collect();
    assert_eq!(lines.len(), 4, "{listed:#?}");
    assert!(lines[0].contains("WHO") && lines[0].contains("RESULT"), "{listed:#?}");
    assert!(lines[1].contains("pause a queue") && lines[1].contains("queue mail"), "{listed:#?}");
    assert!(lines[2].contains("cancel a run") && lines[2].contains("run 1"), "{listed:#?}");
    assert!(lines[3].contains("submit a run") && lines[3].contains("workflow good"), "{listed:#?}");
    let all = bench.json(&["audit"]);
    assert_eq!(all[0]["subject"], "queue mail");
    assert_eq!((&all[1]["before"]["status"], &all[1]["address"]), (&json!("PENDING"), &json!(null)));
    assert_eq!(bench.windlass(&["audit", "-o", "jsonl"]).code(0).stdout.lines().count(), 3);
}

#[test]
fn changes_are_selected_by_who_what_and_when() {
    let bench = changed();
    let all = bench.json(&["audit"]);
    let caller = all[0]["caller"].as_str().unwrap().to_owned();
    let count = |arguments: &[&str]| bench.json(&[&["audit"], arguments].concat()).as_array().unwrap().len();
    assert_eq!(count(&["--caller", &caller]), 3);
    assert_eq!(count(&["--caller", "nobody else"]), 0);
    assert_eq!((count(&["--text", "RUN 1"]), count(&["--text", "queue mail"])), (1, 1));
    assert_eq!((count(&["--since", "1h"]), count(&["--since", "2100-01-01"])), (3, 0));
    assert_eq!(count(&["-n", "2"]), 2);
    let second = all[1]["audit_id"].to_string();
    let below = bench.json(&["audit", "--before", &second]);
    assert_eq!((&below[0]["audit_id"], below.as_array().unwrap().len()), (&all[2]["audit_id"], 1));
    let none = bench.windlass(&["audit", "--text", "nothing like it"]);
    none.code(0).tells(&["no change matches", "windlass audit"]);
    bench.windlass(&["audit", "--before", "x"]).fails(2, &["--before"]);
    bench.windlass(&["audit", "--text", ""]).fails(2, &["1 to 1000 bytes"]);
}
