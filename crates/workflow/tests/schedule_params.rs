//! The parameters that a schedule gives to its runs.
#![allow(clippy::unwrap_used)]

use serde_json::{Map, Value, json};
use windlass_workflow::model::Schedule;
use windlass_workflow::params::Supplied;
use windlass_workflow::schedule::{check_params, parse_instant, render_params, run_params};
use windlass_workflow::{Source, Workflow, parse};

const FILE: &str = r#"
[params]
day = { type = "date" }
year = { type = "integer", default = 2000 }
rows = { type = "integer", default = 10 }
weekday = { choices = ["Mon", "Tue", "Wed", "Thu", "Fri"], default = "Mon" }
note = { required = false }

[[schedules]]
cron = "30 0 * * MON-FRI"
timezone = "Europe/Berlin"

[schedules.params]
day = "{{ scheduled_for | date(days=-1) }}"
year = "{{ scheduled_for | date('%Y') }}"
weekday = "{{ scheduled_for | date('%a') }}"
rows = 7

[jobs.a]
run = "x"
"#;

fn workflow() -> Workflow {
    parse(&Source::new("a.toml", FILE.into()).unwrap()).unwrap_or_else(|report| panic!("{report}"))
}

fn friday() -> i64 {
    parse_instant("2027-01-01T00:30", "Europe/Berlin").unwrap()
}

#[test]
fn templates_see_the_local_time_of_the_zone() {
    let workflow = workflow();
    let rendered = render_params(&workflow.schedules[0], friday()).unwrap();
    let expected = json!({ "day": "2026-12-31", "year": "2027", "weekday": "Fri", "rows": 7 });
    assert_eq!(Value::from(rendered), expected);
}

#[test]
fn a_run_gets_values_of_the_declared_types_and_defaults() {
    let workflow = workflow();
    let params = run_params(&workflow.params, &workflow.schedules[0], friday()).unwrap();
    let expected = json!({ "day": "2026-12-31", "year": 2027, "rows": 7, "weekday": "Fri", "note": null });
    assert_eq!(Value::from(params), expected);
}

#[test]
fn a_schedule_whose_parameter_was_removed_makes_no_run() {
    let mut workflow = workflow();
    workflow.params.retain(|param| param.name != "rows");
    let errors = run_params(&workflow.params, &workflow.schedules[0], friday()).unwrap_err();
    assert_eq!(errors.len(), 1);
    assert!(errors[0].to_string().contains("no parameter `rows`"), "{errors:?}");
}

fn checked(schedule: &Schedule, supplied: &[(&str, Supplied)]) -> Result<Map<String, Value>, Vec<String>> {
    let supplied = supplied.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    check_params(&workflow().params, schedule, supplied)
        .map_err(|errors| errors.iter().map(ToString::to_string).collect())
}

fn text(text: &str) -> Supplied {
    Supplied::Text(text.to_owned())
}

#[test]
fn values_of_the_command_line_are_parsed_as_the_parameters_type() {
    let schedule = &workflow().schedules[0];
    let stored =
        checked(schedule, &[("rows", text("5")), ("day", text("{{ scheduled_for | date }}"))]).unwrap();
    assert_eq!(Value::from(stored), json!({ "rows": 5, "day": "{{ scheduled_for | date }}" }));
}

#[test]
fn wrong_values_are_refused_when_the_schedule_is_made() {
    let schedule = &workflow().schedules[0];
    let cases: [(&[(&str, Supplied)], &str); 6] = [
        (&[], "parameter `day` is required"),
        (&[("day", text("soon"))], "parameter `day` must be a date"),
        (&[("day", text("{{ scheduled_for }}"))], "parameter `day` must be a date"),
        (&[("day", text("{{ scheduled }}"))], "has a template that fails"),
        (
            &[("day", text("2026-01-31")), ("rows", Supplied::Json(json!("5")))],
            "must be an integer, not a string",
        ),
        // 2026-01-02 is the first occurrence: a Friday, in January.
        (
            &[("day", text("2026-01-31")), ("weekday", text("{{ scheduled_for | date('%b') }}"))],
            "must be one of Mon",
        ),
    ];
    for (supplied, reason) in cases {
        let errors = checked(schedule, supplied).unwrap_err();
        assert!(errors.iter().any(|error| error.contains(reason)), "{supplied:?}: {errors:?}");
    }
}
