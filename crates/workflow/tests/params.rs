//! The values of parameters: types, defaults and errors.
#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};
use windlass_workflow::calls;
use windlass_workflow::params::{ParamError, Supplied, bind, env_name, env_value};
use windlass_workflow::{Param, Source, parse};

fn declared(text: &str) -> Vec<Param> {
    let text = format!("[params]\n{text}\n[jobs.a]\nrun = 'x'\n");
    parse(&Source::new("a.toml", text.into()).unwrap()).unwrap_or_else(|report| panic!("{report}")).params
}

fn all_kinds() -> Vec<Param> {
    declared(
        "s = { default = 'x' }\ni = { type = 'integer', default = 1 }\nn = { type = 'number', default = 1 }\n\
         b = { type = 'boolean', default = false }\nd = { type = 'date', default = 2026-01-31 }\n\
         c = { choices = ['red', 'green'], default = 'red' }\n\
         t = { type = 'datetime', default = 2026-01-31 12:00:00Z }\n\
         u = { type = 'duration', default = '90s' }\nl = { type = 'list', default = ['a', { b = 1 }] }",
    )
}

fn bind_one(name: &str, value: Supplied) -> Result<Value, String> {
    match bind(&all_kinds(), vec![(name.to_owned(), value)]) {
        Ok(values) => Ok(values[name].clone()),
        Err(errors) => {
            assert_eq!(errors.len(), 1);
            Err(errors[0].to_string())
        }
    }
}

#[test]
fn text_is_parsed_as_the_declared_type() {
    let cases = [
        ("s", "5", json!("5")),
        ("s", "", json!("")),
        ("i", "-7", json!(-7)),
        ("n", "7", json!(7)),
        ("n", "-0.5", json!(-0.5)),
        ("n", "1e3", json!(1_000.0)),
        ("b", "true", json!(true)),
        ("d", "2024-02-29", json!("2024-02-29")),
        ("c", "green", json!("green")),
        ("l", "a, b,c", json!(["a", "b", "c"])),
        ("l", "", json!([])),
        ("l", " [1, \"x\", {\"y\": null}]", json!([1, "x", { "y": null }])),
        ("t", " 2026-01-31T12:00:00+01:00", json!("2026-01-31T12:00:00+01:00")),
        ("t", "2026-01-31 12:00:00.5Z", json!("2026-01-31T12:00:00.5Z")),
        ("u", "1h 30m ", json!("1h 30m")),
        ("u", "0s", json!("0s")),
    ];
    for (name, text, value) in cases {
        assert_eq!(bind_one(name, Supplied::Text(text.to_owned())), Ok(value), "{name}={text}");
    }
}

#[test]
fn text_of_another_type_is_refused() {
    let cases = [
        ("i", "1.5", "must be an integer"),
        ("l", "[1", "begins with `[`, so it must be a JSON list"),
        ("l", "[1] 2", "begins with `[`, so it must be a JSON list"),
        ("i", "9223372036854775808", "must be an integer"),
        ("i", "", "must be an integer"),
        ("n", "NaN", "must be a number"),
        ("n", "inf", "must be a number"),
        ("b", "yes", "must be true or false"),
        ("d", "2026-02-29", "exists in the calendar"),
        ("d", "2026-2-1", "a date like"),
        ("d", "+026-02-01", "a date like"),
        ("d", "20260201", "a date like"),
        ("c", "gren", "one of red, green; did you mean \"green\"?"),
        ("s", "a\0b", "NUL"),
        ("t", "2026-01-31", "must be a time with its offset like"),
        ("t", "2026-01-31T12:00:00", "must be a time with its offset like"),
        ("t", "2026-02-30T12:00:00Z", "must be a time with its offset like"),
        ("t", "now", "must be a time with its offset like"),
        ("u", "90", "must be a duration like 90s or 1h 30m: "),
        ("u", "5 fortnights", "is not a unit"),
        ("u", "-5s", "must be a duration like"),
    ];
    for (name, text, reason) in cases {
        let message = bind_one(name, Supplied::Text(text.to_owned())).expect_err(text);
        assert!(message.contains(reason), "{name}={text}: {message}");
        assert!(message.contains(&format!("`{name}`")), "{message}");
    }
}

#[test]
fn json_must_have_the_declared_type() {
    for (name, value) in [("i", json!(5)), ("n", json!(5)), ("n", json!(0.5)), ("b", json!(true))] {
        assert_eq!(bind_one(name, Supplied::Json(value.clone())), Ok(value));
    }
    let wrong = [
        ("s", json!(5)),
        ("i", json!("5")),
        ("i", json!(5.5)),
        ("i", json!(u64::MAX)),
        ("n", json!("5")),
        ("b", json!("true")),
        ("d", json!(20260131)),
        ("d", json!("2026-02-30")),
        ("c", json!("blue")),
        ("t", json!(1_767_225_600)),
        ("u", json!(90)),
        ("s", json!(null)),
        ("s", json!(["x"])),
    ];
    for (name, value) in wrong {
        assert!(bind_one(name, Supplied::Json(value.clone())).is_err(), "{name} = {value}");
    }
}

#[test]
fn defaults_are_filled_in_and_the_order_is_that_of_the_file() {
    let values = bind(&all_kinds(), vec![("c".to_owned(), Supplied::Text("green".to_owned()))]).unwrap();
    let expected = json!({"s": "x", "i": 1, "n": 1, "b": false, "d": "2026-01-31", "c": "green",
                         "t": "2026-01-31T12:00:00Z", "u": "90s", "l": ["a", { "b": 1 }]});
    assert_eq!(Value::Object(values.clone()), expected);
    assert_eq!(values.keys().collect::<Vec<_>>(), ["s", "i", "n", "b", "d", "c", "t", "u", "l"]);
}

#[test]
fn all_errors_are_reported_at_once() {
    let params = declared("day = { type = 'date', description = 'which day' }\ncount = { type = 'integer' }");
    let supplied = |name: &str, text: &str| (name.to_owned(), Supplied::Text(text.to_owned()));
    let given =
        vec![supplied("dya", "x"), supplied("count", "many"), supplied("count", "1"), supplied("zzz", "1")];
    let messages: Vec<String> = bind(&params, given).unwrap_err().iter().map(ParamError::to_string).collect();
    let expected = [
        "there is no parameter `dya`; did you mean `day`?",
        "parameter `count` must be an integer",
        "parameter `count` is given twice",
        "there is no parameter `zzz`; the parameters are day, count",
        "parameter `day` is required (which day): it takes a date like 2026-01-31",
    ];
    assert_eq!(messages, expected);
    let none = bind(&[], vec![supplied("a", "x")]).unwrap_err();
    assert_eq!(none[0].to_string(), "there is no parameter `a`; this workflow has no parameters");
}

#[test]
fn a_message_does_not_repeat_the_refused_value() {
    let message = bind_one("i", Supplied::Text("secret".to_owned())).unwrap_err();
    assert!(!message.contains("secret"));
}

#[test]
fn an_optional_parameter_without_a_value_is_null_and_has_no_variable() {
    let values = bind(&declared("note = { required = false }"), Vec::new()).unwrap();
    assert_eq!(values["note"], Value::Null);
    assert_eq!(env_value(&values["note"]), None);
}

#[test]
fn parameters_have_environment_variables() {
    assert_eq!(env_name("day_2"), "WINDLASS_PARAM_DAY_2");
    let cases = [(json!("a b"), "a b"), (json!(5), "5"), (json!(0.5), "0.5"), (json!(true), "true")];
    for (value, text) in cases {
        assert_eq!(env_value(&value).as_deref(), Some(text));
    }
}

#[test]
fn a_call_gives_a_text_what_a_template_gives() {
    let values = json!({ "params": { "list": ["a", 1], "object": { "b": true }, "number": 5 } });
    let given = |name: &str, template: &str| {
        let given = json!({ name: template }).as_object().unwrap().clone();
        calls::bind(&all_kinds(), &given, &values).map(|values| values[name].clone())
    };
    assert_eq!(given("s", "{{ params.list }}").unwrap(), json!(r#"["a",1]"#));
    assert_eq!(given("s", "{{ params.object }}").unwrap(), json!(r#"{"b":true}"#));
    assert_eq!(given("s", "{{ params.number }}").unwrap(), json!("5"));
    assert_eq!(given("l", "{{ params.list }}").unwrap(), json!(["a", 1]));
    assert!(given("l", "{{ params.object }}").is_err());
    assert!(given("i", "{{ params.list }}").is_err());
}

#[test]
fn templates_in_lists_and_tables_of_a_call_are_rendered() {
    let values = json!({ "params": { "list": ["a", 1], "text": "x" } });
    let given = |name: &str, value: serde_json::Value| {
        let given = json!({ name: value }).as_object().unwrap().clone();
        calls::bind(&all_kinds(), &given, &values).map(|values| values[name].clone())
    };
    assert_eq!(
        given("l", json!(["{{ params.text }}!", { "k": "{{ params.list }}" }, 2])).unwrap(),
        json!(["x!", { "k": ["a", 1] }, 2])
    );
    let error = given("l", json!(["{{ params.gone }}"])).unwrap_err().to_string();
    assert!(error.contains("`params.l`: {{ params.gone }}"), "{error}");
    let long = json!({ "params": { "text": "x".repeat(1024) } });
    let many = json!({ "l": vec!["{{ params.text }}"; 1025] }).as_object().unwrap().clone();
    let error = calls::bind(&all_kinds(), &many, &long).unwrap_err().to_string();
    assert!(error.contains("the values grow beyond 1024 KiB"), "{error}");
}
