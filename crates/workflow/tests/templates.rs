//! Renders templates.
#![allow(clippy::unwrap_used)]

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use windlass_workflow::limits;
use windlass_workflow::template::render;

fn context() -> Value {
    json!({
        "params": {"day": "2026-01-31", "n": 3, "ratio": 0.5, "flag": true, "none": null},
        "run": {"id": 7, "workflow": "nightly"},
        "jobs": {
            "count": {"output": {"total": 12, "rows": [{"id": 1}, {"id": 2}], "password": "hunter2"}},
            "text": {"output": "a <b> & \"c\""},
            "my-job": {"output": 1.0},
            "silent": {"output": null},
        },
    })
}

fn rendered(source: &str) -> String {
    render(source, &context()).unwrap_or_else(|error| panic!("{source}: {error}"))
}

fn refused(source: &str) -> String {
    render(source, &context()).expect_err(source).to_string()
}

#[test]
fn values_are_rendered_as_people_write_them() {
    let cases = [
        ("plain } text { % #", "plain } text { % #"),
        ("{{ params.day }}.csv", "2026-01-31.csv"),
        ("{{params.n}}-{{ params.ratio }}", "3-0.5"),
        ("{{ params.flag }} {{ not params.flag }}", "true false"),
        ("{{ run.id }}", "7"),
        ("{{ jobs.text.output }}", "a <b> & \"c\""),
        ("{{ jobs['my-job'].output }}", "1.0"),
        ("{{ jobs.count.output.rows }}", r#"[{"id":1},{"id":2}]"#),
        ("{{ jobs.count.output.rows[1].id }}", "2"),
        ("{{ jobs.count.output.rows[-1].id }}", "2"),
        ("{{ params.n + 1 }}", "4"),
        ("{{ 'many' if jobs.count.output.total > 10 else 'few' }}", "many"),
        ("{{ jobs.count.output.nothing | default('-') }}", "-"),
        ("{{ params.none | default('') }}|", "|"),
        ("{{ jobs.silent.output is none }}", "true"),
        ("{{ params.day | replace('-', '/') | upper }}", "2026/01/31"),
        ("{{ [1, 'x', true] | join(',') }}", "1,x,true"),
        ("{{ jobs.count.output.rows | length }}", "2"),
        ("{{ jobs.text.output | tojson }}", r#""a <b> & \"c\"""#),
        ("{{ ('{\"a\": [1, {\"b\": 2}]}' | fromjson).a[1].b + 1 }}", "3"),
        ("{{ 'a,b,,c' | split(',') }}{{ ' a  b ' | split | length }}", r#"["a","b","","c"]2"#),
        ("{{ 3 | range }}{{ 0 | range }}{{ -1 | range }}", "[0,1,2][][]"),
        ("{{ params.day[0:4] }}", "2026"),
        ("{{ \"{{\" }}{{ '{%' }}", "{{{%"),
        ("{{ '  x ' | trim }}{{ 'X' | lower }}{{ 'abc' | first }}{{ 'abc' | last }}", "xxac"),
    ];
    for (source, text) in cases {
        assert_eq!(rendered(source), text, "{source}");
    }
}

#[test]
fn an_error_names_what_is_missing_and_shows_no_value() {
    let cases = [
        (
            "{{ jobs.count.output.totl }}",
            "`jobs.count.output` has no field `totl`; it has total, rows, password",
        ),
        ("{{ jobs.count.output.a.b }}", "`jobs.count.output` has no field `a`"),
        ("{{ jobs.text.output | fromjson }}", "the text is not JSON: expected value at line 1 column 1"),
        ("{{ 100001 | range }}", "`range` gives at most 100000 numbers"),
        ("{{ params.day | range }}", "`range` needs a whole number"),
        ("{{ params.day | split('') }}", "a separator that is not empty"),
        ("{{ jobs.count.output.total.x }}", "`jobs.count.output.total` is a number, so it has no `x`"),
        ("{{ jobs.count.output.rows[9] }}", "`jobs.count.output.rows` has no item 9; it has 2 items"),
        ("{{ jobs.silent.output }}", "job `silent` has no output"),
        ("{{ jobs.silent.output.x }}", "job `silent` has no output"),
        ("{{ jobs.other.output }}", "`jobs` has no field `other`"),
        ("{{ params.none }}", "parameter `none` has no value"),
        ("{{ params.none | upper }}", "parameter `none` has no value"),
        ("{{ [1, params.none] | join }}", "parameter `none` has no value"),
        ("{{ params.x ~ 1 }}", "do not join texts"),
        ("{{ jobs.count.output.totl | upper }}", "has no field `totl`"),
        ("{{ 'a' if jobs.count.output.totl else 'b' }}", "has no field `totl`"),
        ("{{ params.n + params.day }}", "{{ params.n + params.day }}: "),
    ];
    for (source, reason) in cases {
        let message = refused(source);
        assert!(message.contains(reason), "{source}: {message}");
        assert!(!message.contains("hunter2"), "{message}");
    }
}

#[test]
fn no_expression_fills_the_memory_or_runs_for_long() {
    let megabyte = "x".repeat(1024 * 1024);
    let context = json!({"params": {"big": megabyte, "list": vec![0; 200_000]}});
    let sources = [
        "{{ [1] * 100000000 }}",
        "{{ 'x' * 100000000 }}",
        "{{ 10 ** 100000000 }}",
        "{{ range(100000000) }}",
        "{{ params.big | replace('x', params.big) }}",
        "{{ params.list | join(params.big) }}",
        "{{ params.big | tojson | tojson | tojson }}",
        "{{ params.big }}{{ params.big }}",
        "{{ 'x' | center(100000000) }}",
        "{{ 'x' | indent(100000000) }}",
        "{{ '%1000000000d' | format(1) }}",
    ];
    let start = Instant::now();
    for source in sources {
        assert!(render(source, &context).is_err(), "{source}");
    }
    let many = "{{ [params.big, params.big, params.big] }}".repeat(100);
    assert!(render(&many, &context).unwrap_err().message.contains("1024 KiB"));
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}

#[test]
fn an_expression_has_a_limited_number_of_steps() {
    let sum = |count: usize| format!("{{{{ a{} }}}}", "+a".repeat(count));
    assert_eq!(render(&sum(100), &json!({"a": 1})).unwrap(), "101");
    assert!(render(&sum(240), &json!({"a": 1})).unwrap_err().message.contains("too many steps"));
}

#[test]
fn the_rendered_text_is_limited() {
    let limit = limits::TEMPLATE_OUTPUT_BYTES;
    let context = |length: usize| json!({"params": {"a": "x".repeat(length)}});
    assert_eq!(render("{{ params.a }}", &context(limit)).unwrap().len(), limit);
    assert!(render("{{ params.a }}", &context(limit + 1)).is_err());
    assert!(render("{{ params.a }}y", &context(limit)).is_err());
}

#[test]
fn a_nul_character_is_refused() {
    let error = render("{{ params.a }}", &json!({"params": {"a": "x\u{0}"}})).unwrap_err();
    assert!(error.message.contains("NUL"));
}

#[test]
fn values_are_never_evaluated_again() {
    let context = json!({"params": {"a": "{{ params.b }}", "b": "secret"}});
    assert_eq!(render("{{ params.a }}", &context).unwrap(), "{{ params.b }}");
}
