//! The JSON Schema, compared with what the parser accepts and refuses.
#![allow(clippy::unwrap_used)]

#[path = "support/schema_check.rs"]
mod schema_check;

use std::path::Path;

use schema_check::is_valid;
use serde_json::Value as Json;
use windlass_workflow::keys::{self, Support, ValueType};
use windlass_workflow::schema::schema;
use windlass_workflow::{Source, parse, read_values};

fn accepts(schema: &Json, file: &Json) -> bool {
    is_valid(schema, schema, file)
}

fn values(path: &str, text: &str) -> Json {
    Json::Object(read_values(&Source::new(path, text.into()).unwrap()).unwrap())
}

#[test]
fn every_example_and_every_workflow_of_the_guide_is_accepted() {
    let schema = schema();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut count = 0;
    for entry in std::fs::read_dir(root.join("examples/workflows")).unwrap() {
        let path = entry.unwrap().path();
        let is_workflow =
            path.extension().is_some_and(|extension| extension == "toml" || extension == "json");
        let is_test = path.to_string_lossy().ends_with(".test.toml");
        if is_workflow && !is_test {
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(accepts(&schema, &values(path.to_str().unwrap(), &text)), "{}", path.display());
            count += 1;
        }
    }
    for entry in std::fs::read_dir(root.join("docs/guide")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        for (language, extension) in [("toml", "toml"), ("yaml", "yaml"), ("json", "json")] {
            for block in text.split(&format!("```{language}\n")).skip(1) {
                let block = block.split("```").next().unwrap();
                let source = Source::new(format!("a.{extension}"), block.into()).unwrap();
                if parse(&source).is_ok() {
                    let file = Json::Object(read_values(&source).unwrap());
                    assert!(accepts(&schema, &file), "{}:\n{block}", path.display());
                    count += 1;
                }
            }
        }
    }
    assert!(count > 20, "{count}");
}

#[test]
fn lists_for_parameters_are_accepted_as_the_parser_does() {
    let file = r#"{"params": {"l": {"type": "list"}}, "jobs": {"a": {"workflow": "inner", "params": {"l": ["x"]}}},
        "workflows": {"inner": {"params": {"l": {"type": "list"}}, "jobs": {"b": {"run": "x"}}}},
        "schedules": [{"cron": "@daily", "params": {"l": ["x"]}}], "triggers": [{"event": "e", "params": {"l": [1]}}]}"#;
    parse(&Source::new("a.json", file.into()).unwrap()).unwrap();
    assert!(accepts(&schema(), &values("a.json", file)));
}

/// An editor checks files that are only included with the same schema.
#[test]
fn a_file_that_is_only_included_is_accepted() {
    let schema = schema();
    for (file, is_accepted) in [
        (r#"{"secrets": {"TOKEN": {}}, "env": {"A": "x"}}"#, true),
        (r#"{"include": ["more.toml"], "defaults": {"timeout": "5m"}}"#, true),
        (r#"{"workflows": {"load": {"jobs": {"a": {"run": "x"}}}}}"#, true),
        (r#"{"workflows": {"load": {"env": {"A": "x"}}}}"#, false),
        (r#"{"name": "x", "env": {"A": "x"}}"#, false),
        (r#"{"env": {"A": "x"}, "params": {}}"#, false),
    ] {
        let source = Source::new("a.json", file.into()).unwrap();
        let is_right = accepts(&schema, &values("a.json", file)) == is_accepted;
        assert!(is_right, "{file}");
        let is_read = source.can_be_included() && !file.contains(r#""load": {"env""#);
        assert_eq!(is_read, is_accepted, "the program differs: {file}");
    }
}

#[test]
fn misuses_are_refused_as_the_parser_does() {
    let schema = schema();
    for file in [
        "{}",
        r#"{"jobs": {"a": {}}}"#,
        r#"{"jobs": {"a": {"run": "x", "command": ["y"]}}}"#,
        r#"{"jobs": {"a": {"run": ["x"]}}}"#,
        r#"{"jobs": {"a": {"run": "x", "retrys": 3}}}"#,
        r#"{"jobs": {"a": {"run": "x", "timeout": 30}}}"#,
        r#"{"jobs": {"a": {"run": "x", "timeout": "soon"}}}"#,
        r#"{"jobs": {"a": {"run": "x", "retry": "3"}}}"#,
        r#"{"jobs": {"a": {"run": "x", "retry": {"attempts": 3}}}}"#,
        r#"{"jobs": {"a": {"run": "x", "output": "xml"}}}"#,
        r#"{"jobs": {"a": {"run": "x", "when": "always"}}}"#,
        r#"{"jobs": {"a": {"run": "x", "env": {"A": ["x"]}}}}"#,
        r#"{"jobs": {"a": {"run": "x", "allow_failure": "no"}}}"#,
        r#"{"jobs": {"a": {"run": "x", "priority": "urgent"}}}"#,
        r#"{"jobs": [{"run": "x"}]}"#,
        r#"{"jobs": {"a": {"run": "x"}}, "concurrency": {"on_full": "queue"}}"#,
        r#"{"jobs": {"a": {"run": "x"}}, "concurrency": 3}"#,
        r#"{"jobs": {"a": {"run": "x"}}, "schedules": [{"every": "1h", "cron": "@daily"}]}"#,
        r#"{"jobs": {"a": {"run": "x"}}, "schedules": [{}]}"#,
        r#"{"jobs": {"a": {"run": "x"}}, "params": {"p": {"type": "text"}}}"#,
        r#"{"jobs": {"a": {"run": "x"}}, "defaults": {"run": "x"}}"#,
        r#"{"jobs": {"a": {"http": {"method": "GET"}}}}"#,
        r#"{"jobs": {"a": {"http": {"url": "http://a", "method": "get"}}}}"#,
        r#"{"jobs": {"a": {"http": {"url": "http://a", "json": 1, "body": "x"}}}}"#,
        r#"{"jobs": {"a": {"http": {"url": "http://a", "auth": {"bearer": "x", "basic": "a:b"}}}}}"#,
        r#"{"jobs": {"a": {"http": {"url": "http://a", "follow": "no"}}}}"#,
    ] {
        let source = Source::new("a.json", file.into()).unwrap();
        assert!(parse(&source).is_err(), "the parser accepts {file}");
        assert!(!accepts(&schema, &values("a.json", file)), "the schema accepts {file}");
    }
}

#[test]
fn each_supported_key_is_described_and_no_planned_one() {
    let schema = schema();
    let text = schema.to_string();
    for (table, key) in keys::list() {
        let about = text.contains(&format!("\"description\":{}", Json::from(key.about)))
            || text.contains(&format!("\"description\":\"{}; default: ", key.about.replace('"', "\\\"")));
        assert_eq!(about, key.support == Support::Supported, "{table:?} {}", key.name());
    }
}

/// The words stand in the list of keys and in the code that reads them. The error for a wrong one names them all.
#[test]
fn the_words_of_the_list_are_those_of_the_parser() {
    for (file, name) in [
        (r#"{"jobs": {"a": {"run": "x"}}, "params": {"p": {"type": 1}}}"#, "type"),
        (r#"{"jobs": {"a": {"run": "x"}}, "schedules": [{"cron": "@daily", "overlap": 1}]}"#, "overlap"),
        (r#"{"jobs": {"a": {"run": "x"}}, "schedules": [{"cron": "@daily", "catchup": 1}]}"#, "catchup"),
        (r#"{"jobs": {"b": {"run": "x"}, "a": {"run": "x", "needs": "b", "when": 1}}}"#, "when"),
        (r#"{"jobs": {"a": {"run": "x", "priority": "?"}}}"#, "priority"),
        (r#"{"jobs": {"a": {"run": "x", "on_interrupt": 1}}}"#, "on_interrupt"),
        (r#"{"jobs": {"a": {"run": "x", "concurrency": {"key": "k", "on_full": 1}}}}"#, "on_full"),
        (r#"{"jobs": {"a": {"run": "x"}}, "concurrency": {"on_full": 1}}"#, "on_full"),
        (r#"{"jobs": {"a": {"run": "x", "output": 1}}}"#, "output"),
        (r#"{"jobs": {"a": {"http": {"url": "http://a", "method": 1}}}}"#, "method"),
        (r#"{"jobs": {"a": {"run": "x"}}, "workspace": {"keep": 1}}"#, "keep"),
        (r#"{"jobs": {"a": {"wait_for": {"event": "e", "on_timeout": 1}}}}"#, "on_timeout"),
        (r#"{"jobs": {"a": {"approval": {"prompt": "p", "on_timeout": 1}}}}"#, "on_timeout"),
        (r#"{"jobs": {"a": {"run": "x", "container": {"image": "i", "pull": 1}}}}"#, "pull"),
    ] {
        let report = parse(&Source::new("a.json", file.into()).unwrap()).unwrap_err().to_string();
        let listed = report.split("must be one of ").nth(1).unwrap_or_else(|| panic!("{report}"));
        let listed = listed.lines().next().unwrap();
        let words: Vec<&str> = listed.split('"').skip(1).step_by(2).collect();
        let key = keys::list().map(|(_, key)| key).find(|key| key.name() == name).unwrap();
        assert_eq!(words, key.words, "{name}");
    }
    let with_words = keys::list().filter(|(_, key)| key.types.contains(&ValueType::Word)).count();
    assert_eq!(with_words, 14, "another key with words must be in the list above");
}
