//! A workflow that a program made is checked for the same errors as a file. The error names the field.
#![allow(clippy::unwrap_used)]

use serde_json::json;
use windlass_workflow::kinds::shell::{Program, Shell};
use windlass_workflow::model::{Catchup, Concurrency, OnFull, Overlap, Rule, Schedule};
use windlass_workflow::{Action, Param, ParamKind, Source, Workflow, limits, parse};

/// A valid workflow: three jobs in a row, with a parameter and a schedule.
fn valid() -> Workflow {
    let schedule = Schedule {
        name: "night".to_owned(),
        rule: Rule::Cron("0 2 * * *".to_owned()),
        timezone: "UTC".to_owned(),
        overlap: Overlap::Skip,
        catchup: Catchup::Last,
        catchup_window_ms: None,
        catchup_max: 1,
        start_ms: None,
        end_ms: None,
        jitter_ms: 0,
        params: serde_json::Map::from_iter([("day".to_owned(), json!("{{ scheduled_for | date }}"))]),
    };
    let param = Param {
        name: "day".to_owned(),
        kind: ParamKind::Date,
        description: None,
        default: None,
        required: true,
        choices: Vec::new(),
    };
    let graph = Workflow::graph("made", [vec![], vec![0], vec![1]]);
    Workflow { params: vec![param], schedules: vec![schedule], ..graph }
}

type Change = fn(&mut Workflow);

/// Changes that make the workflow invalid: the change, the field in the error, and a part of the reason.
const INVALID: &[(Change, &str, &str)] = &[
    (|w| w.name.clear(), "name", "empty"),
    (|w| w.name = "a\nb".to_owned(), "name", "control character"),
    (|w| w.timeout_ms = Some(0), "timeout_ms", "1 to"),
    (|w| w.timeout_ms = Some(i64::MAX), "timeout_ms", "1 to"),
    (|w| w.jobs.clear(), "jobs", "no jobs"),
    (|w| w.jobs[2].needs = vec![7], "jobs[2] (`j2`).needs[0]", "it is 7, and the last job is jobs[2]"),
    (|w| w.jobs[2].uses = vec![7], "jobs[2] (`j2`).uses[0]", "it is 7, and the last job is jobs[2]"),
    (|w| w.jobs[1].needs = vec![1], "jobs[1] (`j1`).needs[0]", "the job itself"),
    (|w| w.jobs[1].uses = vec![1], "jobs[1] (`j1`).uses[0]", "the job itself"),
    (|w| w.jobs[2].needs = vec![1, 0], "jobs[2] (`j2`).needs[1]", "ascending"),
    (|w| w.jobs[2].needs = vec![1, 1], "jobs[2] (`j2`).needs[1]", "without duplicates"),
    (|w| w.jobs[0].needs = vec![2], "jobs", "in a cycle: j0 -> j2 -> j1 -> j0"),
    (|w| w.jobs[1].uses = vec![2], "jobs[1] (`j1`).uses", "`j2`, jobs[2], which the job does not need"),
    (|w| w.jobs[1].name = "j0".to_owned(), "jobs[1] (`j0`).name", "jobs[0] has the same name"),
    (|w| w.jobs[1].name.clear(), "jobs[1] (``).name", "empty"),
    (|w| w.jobs[1].name = "a b".to_owned(), "jobs[1] (`a b`).name", "is not a valid name"),
    (|w| w.jobs[0].action = words(&[]), "jobs[0] (`j0`).action.command", "no program"),
    (interpreter, "jobs[0] (`j0`).action.shell", "no program"),
    (|w| w.jobs[0].action = script(" "), "jobs[0] (`j0`).action.script", "empty"),
    (|w| w.jobs[0].action = script("a\0"), "jobs[0] (`j0`).action.script", "NUL"),
    (
        |w| w.jobs[0].action = script(&"x".repeat(limits::SCRIPT_BYTES + 1)),
        "jobs[0] (`j0`).action.script",
        "the limit is 1048576",
    ),
    (
        |w| w.jobs[0].action = words(&["x"; limits::COMMAND_ITEMS + 1]),
        "jobs[0] (`j0`).action.command",
        "there are 1001; the limit is 1000",
    ),
    (|w| command(w, 1, "{{ jobs.j2.output }}"), "jobs[1] (`j1`).uses", "`j2`, jobs[2]: add 2"),
    (|w| command(w, 1, "{{ jobs.j9.output }}"), "jobs[1] (`j1`).action.command[1]", "there is no job `j9`"),
    (|w| command(w, 1, "{{ params.none }}"), "jobs[1] (`j1`).action.command[1]", "no parameter `none`"),
    (|w| command(w, 1, "{{ nothing("), "jobs[1] (`j1`).action.command[1]", ""),
    (|w| env(w, "1x", ""), "jobs[0] (`j0`).action.env[\"1x\"]", "is not a valid name"),
    (|w| env(w, "WINDLASS_X", ""), "jobs[0] (`j0`).action.env[\"WINDLASS_X\"]", "Windlass sets"),
    (|w| drop(w.env.insert("A".into(), "{{ jobs.j0.output }}".into())), "env[\"A\"]", "no output of a job"),
    (|w| dir(w, ""), "jobs[0] (`j0`).action.dir", "empty"),
    (|w| w.jobs[0].timeout_ms = Some(-1), "jobs[0] (`j0`).timeout_ms", "it is -1"),
    (|w| w.jobs[0].retry.max_attempts = 0, "jobs[0] (`j0`).retry.max_attempts", "it is 0"),
    (|w| w.jobs[0].retry.delay_ms = -5, "jobs[0] (`j0`).retry.delay_ms", "it is -5"),
    (|w| w.jobs[0].retry.max_delay_ms = 0, "jobs[0] (`j0`).retry.max_delay_ms", "must be 1000 to"),
    (|w| w.jobs[0].retry.factor = f64::NAN, "jobs[0] (`j0`).retry.factor", "it is NaN"),
    (|w| w.jobs[0].retry.factor = f64::INFINITY, "jobs[0] (`j0`).retry.factor", "it is inf"),
    (|w| w.jobs[0].retry.jitter = 1.5, "jobs[0] (`j0`).retry.jitter", "must be 0 to 1"),
    (|w| w.jobs[0].queue.clear(), "jobs[0] (`j0`).queue", "empty"),
    (|w| w.jobs[0].priority = i64::MIN, "jobs[0] (`j0`).priority", "-1000 to 1000"),
    (|w| w.jobs[0].max_interruptions = -1, "jobs[0] (`j0`).max_interruptions", "it is -1"),
    (|w| w.jobs[0].code_version = -1, "jobs[0] (`j0`).code_version", "it is -1"),
    (|w| w.jobs[0].requires = vec!["b".into(), "a".into()], "jobs[0] (`j0`).requires[1]", "sorted"),
    (|w| w.jobs[0].requires = vec!["b b".into()], "jobs[0] (`j0`).requires[0]", "is not a valid name"),
    (|w| concurrency(w, "", 1), "jobs[0] (`j0`).concurrency.key", "empty"),
    (|w| concurrency(w, "k", 0), "jobs[0] (`j0`).concurrency.limit", "it is 0"),
    (|w| concurrency(w, "{{ run.id }}", 1), "jobs[0] (`j0`).concurrency.key", "`run.id` is not known"),
    (|w| w.params[0].name = "a-b".to_owned(), "params[0] (`a-b`).name", "is not a valid name"),
    (|w| w.params.push(w.params[0].clone()), "params[1] (`day`)", "params[0]"),
    (|w| w.params[0].kind = ParamKind::Choice, "params[0] (`day`).choices", "at least one"),
    (|w| w.params[0].choices = vec!["a".into()], "params[0] (`day`).choices", "only the kind"),
    (|w| default(w, json!("tomorrow")), "params[0] (`day`).default", "must be"),
    (|w| w.params[0].default = Some(json!("2026-01-01")), "params[0] (`day`).required", "default"),
    (|w| w.schedules[0].name.clear(), "schedules[0] (``).name", "empty"),
    (|w| w.schedules.push(w.schedules[0].clone()), "schedules[1] (`night`).name", "schedules[0]"),
    (|w| w.schedules[0].rule = Rule::Cron("x".into()), "schedules[0] (`night`).rule.cron", ""),
    (|w| w.schedules[0].rule = Rule::EveryMs(-1), "schedules[0] (`night`).rule.every_ms", "out of range"),
    (|w| w.schedules[0].timezone = "Mars".into(), "schedules[0] (`night`).rule.cron", "Mars"),
    (|w| w.schedules[0].jitter_ms = -1, "schedules[0] (`night`).jitter_ms", "it is -1"),
    (|w| w.schedules[0].catchup_max = 0, "schedules[0] (`night`).catchup_max", "it is 0"),
    (|w| w.schedules[0].start_ms = Some(i64::MIN), "schedules[0] (`night`).start_ms", "must be"),
    (|w| w.schedules[0].params.clear(), "schedules[0] (`night`).params", "`day` is required"),
];

fn script(text: &str) -> Action {
    Shell::script(text).into()
}

fn interpreter(workflow: &mut Workflow) {
    let program = Program::Script { text: "x".to_owned(), shell: vec![" ".to_owned()] };
    workflow.jobs[0].action = Shell { program, ..Shell::script("") }.into();
}

fn words(words: &[&str]) -> Action {
    Shell::command(words.iter().copied()).into()
}

fn command(workflow: &mut Workflow, job: usize, argument: &str) {
    workflow.jobs[job].action = words(&["echo", argument]);
}

fn env(workflow: &mut Workflow, name: &str, value: &str) {
    let env = [(name.to_owned(), value.to_owned())].into_iter().collect();
    workflow.jobs[0].action = Shell { env, ..Shell::command(["true"]) }.into();
}

fn dir(workflow: &mut Workflow, dir: &str) {
    workflow.jobs[0].action = Shell { dir: Some(dir.to_owned()), ..Shell::command(["true"]) }.into();
}

fn concurrency(workflow: &mut Workflow, key: &str, limit: i64) {
    workflow.jobs[0].concurrency = Some(Concurrency { key: key.to_owned(), limit, on_full: OnFull::Wait });
}

fn default(workflow: &mut Workflow, value: serde_json::Value) {
    workflow.params[0].required = false;
    workflow.params[0].default = Some(value);
}

#[test]
fn each_error_names_its_field() {
    valid().check().unwrap();
    for (at, (change, field, reason)) in INVALID.iter().enumerate() {
        let mut workflow = valid();
        change(&mut workflow);
        let error = workflow.check().expect_err(&format!("number {at}, {field}, is accepted"));
        assert_eq!(error.field, *field, "number {at}: {error}");
        assert!(error.reason.contains(reason), "number {at}: {error}");
    }
}

#[test]
fn templates_may_read_outputs_of_indirect_ancestors() {
    let mut workflow = valid();
    command(&mut workflow, 2, "{{ jobs.j0.output }} {{ params.day }} {{ run.id }}");
    workflow.jobs[2].uses = vec![0];
    workflow.check().unwrap();
}

/// The parser and the check must agree.
#[test]
fn every_valid_file_passes_the_check() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/workflows");
    let mut files = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let is_test = path.to_str().unwrap().ends_with(".test.toml");
        if is_test || !path.extension().is_some_and(|extension| extension == "toml" || extension == "json") {
            continue;
        }
        // The cases of a workflow are no workflow.
        if path.to_string_lossy().ends_with(".test.toml") {
            continue;
        }
        let source = Source::new(path.display().to_string(), std::fs::read(&path).unwrap()).unwrap();
        let folder = path.parent().unwrap();
        let read =
            |file: &std::path::Path| std::fs::read(folder.join(file)).map_err(|error| error.to_string());
        let source = source.with_included(&mut { read });
        let workflow = parse(&source).unwrap();
        workflow.check().unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        files += 1;
    }
    assert!(files > 5);
}

#[test]
fn the_largest_graph_is_checked_without_recursion() {
    let jobs = limits::JOBS;
    let chain = Workflow::graph("chain", (0..jobs).map(|job| job.checked_sub(1).into_iter().collect()));
    chain.check().unwrap();
    let mut cycle = chain;
    cycle.jobs[0].needs = vec![jobs - 1];
    let error = cycle.check().unwrap_err();
    assert!(error.reason.contains("more) -> j0"), "{error}");
    let one_more = Workflow::graph("many", (0..=jobs).map(|_| Vec::new()));
    assert_eq!(one_more.check().unwrap_err().to_string(), "jobs: there are 200001; the limit is 200000");
}
