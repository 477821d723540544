//! Keys that this version does not support yet: what they mean in the model. The parser accepts them in tests only.
#![allow(clippy::unwrap_used)]

use windlass_workflow::keys::Table;
use windlass_workflow::kinds::check_payload;
use windlass_workflow::kinds::shell::{EnvFile, IfMissing, OutputSource, Payload, Shell};
use windlass_workflow::model::{DEFAULT_HANDLER_TIMEOUT_MS, Secret, SecretSource};
use windlass_workflow::{
    Accepted, Expression, Job, Repetition, Retry, RunHandler, Source, Support, When, Workflow, parse,
    parse_accepting,
};

const FILE: &str = r#"
name = "nightly"
tags = ["nightly", "etl"]

[params]
mode = { type = "choice", choices = ["full", "delta"], default = "delta" }

[secrets]
SLACK_URL = {}
TOKEN = { env = "PROD_TOKEN" }
KEY = { file = "key" }
PASSWORD = { command = ["pass", "show", "x"] }

[defaults]
retry = { if = "not timed_out" }

[jobs.list]
run = "./list.sh"
output = "lines"
env_files = [".env", "?local.env"]
secrets = ["TOKEN", "KEY"]
retry = { max_attempts = 5, if = "exit_code != 64 and not timed_out" }
deadline = "1h"

[jobs.check]
needs = ["list"]
run = "./check.sh"
stdin = "{{ jobs.list.output }}{{ secrets.KEY }}"
success_if = "exit_code in [0, 3]"
skip_if = "exit_code == 99"

[jobs.publish]
needs = ["check"]
when = "none_failed"
if = "params.mode == 'full' and jobs.list.failures < 3"
run = "./publish.sh"
env = { STATUS = "{{ jobs.check.status }}" }

[on_failure.alert]
command = ["./alert.sh", "{{ run.failed | join(', ') }}", "{{ jobs.publish.error }}"]
env = { URL = "{{ secrets.SLACK_URL }}" }

[on_failure.after-alert]
needs = ["alert"]
if = "jobs.alert.status == 'SUCCESSFUL' and run.outcome == 'FAILED'"
timeout = "1m"
run = "x"

[on_success.praise]
run = "x"

[finally.clean]
run = "./clean.sh"
if = "jobs.alert.exit_code == 0"
"#;

fn workflow() -> Workflow {
    let source = Source::new("nightly.toml", FILE.into()).unwrap();
    parse_accepting(&source, Accepted::Everything).unwrap_or_else(|report| panic!("{report}"))
}

fn job<'w>(workflow: &'w Workflow, name: &str) -> &'w Job {
    workflow.jobs.iter().find(|job| job.name == name).unwrap()
}

fn expression(text: &str) -> Option<Expression> {
    Some(Expression::parse(text).unwrap())
}

fn payload(job: &Job) -> Payload {
    serde_json::from_str(&job.action.payload(&[], &[])).unwrap()
}

#[test]
fn the_workflow_has_tags_and_secrets() {
    let workflow = workflow();
    assert_eq!(workflow.tags, ["etl", "nightly"]);
    let secret = |name: &str, source| Secret { name: name.to_owned(), source };
    let command = ["pass", "show", "x"].map(str::to_owned).to_vec();
    assert_eq!(
        workflow.secrets,
        [
            secret("SLACK_URL", SecretSource::Worker),
            secret("TOKEN", SecretSource::Env("PROD_TOKEN".to_owned())),
            secret("KEY", SecretSource::File("key".to_owned())),
            secret("PASSWORD", SecretSource::Command(command)),
        ]
    );
}

#[test]
fn a_job_has_the_new_keys() {
    let workflow = workflow();
    let list = job(&workflow, "list");
    assert_eq!(list.secrets, ["KEY", "TOKEN"]);
    assert_eq!(list.deadline_ms, Some(3_600_000));
    assert_eq!(list.retry.condition, expression("exit_code != 64 and not timed_out"));
    assert_eq!(payload(list).output, OutputSource::Lines);
    let file = |path: &str, if_missing| EnvFile { path: path.to_owned(), if_missing };
    assert_eq!(
        payload(list).env_files,
        [file(".env", IfMissing::Fail), file("local.env", IfMissing::Ignore)]
    );
    let check = job(&workflow, "check");
    assert_eq!(payload(check).stdin.as_deref(), Some("{{ jobs.list.output }}{{ secrets.KEY }}"));
    assert_eq!(
        (check.success_if.clone(), check.skip_if.clone()),
        (expression("exit_code in [0, 3]"), expression("exit_code == 99"))
    );
    assert_eq!((check.when, check.uses.as_slice()), (When::AllSuccessful, &[0][..]));
    assert_eq!(check.retry.condition, None, "the default has no effect on a job with one attempt");
    let publish = job(&workflow, "publish");
    assert_eq!(publish.when, When::NoneFailed);
    assert_eq!(publish.condition, expression("params.mode == 'full' and jobs.list.failures < 3"));
    assert_eq!(publish.uses, [1], "only what templates read");
}

#[test]
fn the_secrets_of_a_job_are_its_variables_and_those_of_its_templates() {
    let workflow = workflow();
    let names = |job_name: &str| -> Vec<String> {
        let secrets = workflow.secrets_of(job(&workflow, job_name));
        secrets.into_iter().map(|secret| secret.name.clone()).collect()
    };
    assert_eq!(names("list"), ["TOKEN", "KEY"]);
    assert_eq!(names("check"), ["KEY"]);
    assert_eq!(names("alert"), ["SLACK_URL"]);
    assert!(names("publish").is_empty());
}

#[test]
fn handlers_come_after_the_jobs_in_the_order_of_their_phases() {
    let workflow = workflow();
    let handlers: Vec<(&str, Option<RunHandler>)> =
        workflow.jobs.iter().map(|job| (job.name.as_str(), job.handler)).collect();
    assert_eq!(
        handlers,
        [
            ("list", None),
            ("check", None),
            ("publish", None),
            ("praise", Some(RunHandler::OnSuccess)),
            ("alert", Some(RunHandler::OnFailure)),
            ("after-alert", Some(RunHandler::OnFailure)),
            ("clean", Some(RunHandler::Finally)),
        ]
    );
    let (alert, after) = (job(&workflow, "alert"), job(&workflow, "after-alert"));
    assert_eq!((alert.uses.as_slice(), after.needs.as_slice()), (&[2][..], &[4][..]));
    assert_eq!((alert.timeout_ms, after.timeout_ms), (Some(DEFAULT_HANDLER_TIMEOUT_MS), Some(60_000)));
    assert_eq!(job(&workflow, "list").timeout_ms, None);
}

#[test]
fn the_stored_form_can_be_read_back() {
    let workflow = workflow();
    let stored = workflow.to_json();
    assert_eq!(Workflow::from_json(&stored).unwrap(), workflow);
    workflow.check_accepting(Accepted::Everything).unwrap();
}

#[test]
fn json_gives_the_same_model() {
    let json = r#"{"name": "n", "secrets": {"S": {}},
        "jobs": {"a": {"run": "x"}, "b": {"run": "y", "needs": "a", "when": "any_failed", "if": "jobs.a.exit_code == 3"}},
        "finally": {"c": {"run": "z", "secrets": "S"}}}"#;
    let toml = "name = 'n'\nsecrets.S = {}\n[jobs.a]\nrun = 'x'\n[jobs.b]\nrun = 'y'\nneeds = 'a'\nwhen = 'any_failed'\n\
                if = 'jobs.a.exit_code == 3'\n[finally.c]\nrun = 'z'\nsecrets = ['S']\n";
    let read = |path: &str, text: &str| {
        parse_accepting(&Source::new(path, text.into()).unwrap(), Accepted::Everything).unwrap()
    };
    assert_eq!(read("a.json", json), read("a.toml", toml));
}

type Change = fn(&mut Workflow);

/// A feature in a workflow that a program made: its key in a file, and the change that uses it.
const FEATURES: &[(Table, &str, Change)] = &[
    (Table::Workflow, "tags", |w| w.tags = vec!["etl".to_owned()]),
    (Table::Workflow, "secrets", |w| {
        w.secrets = vec![Secret { name: "S".to_owned(), source: SecretSource::Worker }];
    }),
    (Table::Workflow, "finally", |w| w.jobs[2].handler = Some(RunHandler::Finally)),
    (Table::Job, "when", |w| w.jobs[1].when = When::AnyFailed),
    (Table::Job, "if", |w| w.jobs[1].condition = expression("true")),
    (Table::Job, "success_if", |w| w.jobs[1].success_if = expression("true")),
    (Table::Job, "skip_if", |w| w.jobs[1].skip_if = expression("true")),
    (Table::Job, "repeat", |w| {
        let until = expression("true").unwrap();
        w.jobs[1].repeat = Some(Box::new(Repetition { until, every_ms: 1, max: 1 }));
    }),
    (Table::Retry, "if", |w| {
        w.jobs[1].retry = Retry { max_attempts: 2, condition: expression("true"), ..Retry::default() };
    }),
    (Table::Job, "deadline", |w| w.jobs[1].deadline_ms = Some(1)),
    (Table::Job, "stdin", |w| {
        w.jobs[1].action = Shell { stdin: Some("x".to_owned()), ..Shell::script("x") }.into();
    }),
    (Table::Job, "env_files", |w| {
        let file = EnvFile { path: ".env".to_owned(), if_missing: IfMissing::Fail };
        w.jobs[1].action = Shell { env_files: [file].into(), ..Shell::script("x") }.into();
    }),
];

#[test]
fn a_program_can_use_what_a_file_can_use() {
    for (table, name, change) in FEATURES {
        let mut workflow = Workflow::graph("made", [vec![], vec![0], vec![]]);
        change(&mut workflow);
        workflow.check_accepting(Accepted::Everything).unwrap();
        let key = table.keys().find(|key| key.name() == *name).unwrap();
        match (key.support, workflow.check()) {
            (Support::Supported, checked) => checked.unwrap(),
            (Support::Planned, checked) => {
                let error = checked.expect_err(name);
                assert!(error.reason.contains("this version does not support it"), "{name}: {error}");
            }
        }
    }
}

#[test]
fn the_lines_of_an_output_are_supported_in_files_programs_and_payloads_alike() {
    let file = Source::new("a.toml", "[jobs.a]\nrun = 'x'\noutput = 'lines'\n".into()).unwrap();
    let mut workflow = Workflow::graph("made", [vec![]]);
    workflow.jobs[0].action = Shell { output: OutputSource::Lines, ..Shell::script("x") }.into();
    let payload = check_payload("shell", r#"{"run":"x","output":"lines"}"#);
    let in_file = parse(&file).is_ok();
    assert_eq!((workflow.check().is_ok(), payload.is_ok()), (in_file, in_file));
    assert!(parse_accepting(&file, Accepted::Everything).is_ok());
}

/// Changes of `FILE` that make the workflow invalid: the change, the field in the error, and a part of the reason.
const INVALID: &[(Change, &str, &str)] = &[
    (|w| w.tags = vec!["b".to_owned(), "a".to_owned()], "tags[1]", "sorted"),
    (|w| w.tags = vec!["a b".to_owned()], "tags[0]", "not a valid name"),
    (|w| w.secrets[0].name = "TOKEN".to_owned(), "secrets[1] (`TOKEN`).name", "same name"),
    (|w| w.secrets[0].name = "A-B".to_owned(), "secrets[0] (`A-B`).name", "not a valid name"),
    (
        |w| w.secrets[0].source = SecretSource::Command(Vec::new()),
        "secrets[0] (`SLACK_URL`).source.command",
        "no program",
    ),
    (|w| w.jobs[0].secrets = vec!["NONE".to_owned()], "jobs[0] (`list`).secrets[0]", "no secret `NONE`"),
    (|w| w.jobs[0].secrets.reverse(), "jobs[0] (`list`).secrets[1]", "sorted"),
    (
        |w| {
            let env = [("KEY".to_owned(), "x".to_owned())].into();
            w.jobs[0].action = Shell { env, ..Shell::script("x") }.into();
        },
        "jobs[0] (`list`).secrets[0]",
        "`env` sets the variable `KEY` too",
    ),
    (|w| w.jobs[0].when = When::AnyFailed, "jobs[0] (`list`).when", "needs none"),
    (|w| w.jobs[0].deadline_ms = Some(0), "jobs[0] (`list`).deadline_ms", "must be 1 to"),
    (|w| w.jobs[0].retry.max_attempts = 1, "jobs[0] (`list`).retry.condition", "`max_attempts` is 1"),
    (
        |w| w.jobs[0].condition = expression("params.mode"),
        "jobs[0] (`list`).condition",
        "gives text, not true or false",
    ),
    (
        |w| w.jobs[0].condition = expression("jobs.nobody.status == 'FAILED'"),
        "jobs[0] (`list`).condition",
        "there is no job `nobody`",
    ),
    (
        |w| w.jobs[0].condition = expression("jobs.publish.status == 'FAILED'"),
        "jobs[0] (`list`).condition",
        "does not need",
    ),
    (
        |w| w.jobs[0].condition = expression("jobs.list.status == 'FAILED'"),
        "jobs[0] (`list`).condition",
        "the job itself",
    ),
    (
        |w| w.jobs[0].skip_if = expression("jobs.alert.status == 'FAILED'"),
        "jobs[0] (`list`).skip_if",
        "not over when the job starts",
    ),
    (
        |w| w.jobs[0].condition = expression("run.outcome == 'FAILED'"),
        "jobs[0] (`list`).condition",
        "`run.outcome` is not known here",
    ),
    (|w| w.jobs[3].needs = vec![0], "jobs[3] (`praise`).needs", "another table"),
    (|w| w.jobs[2].uses = vec![1, 6], "jobs[2] (`publish`).uses", "not over when the job starts"),
    (|w| w.jobs.iter_mut().for_each(|job| job.handler = Some(RunHandler::Finally)), "jobs", "no jobs"),
];

#[test]
fn an_invalid_workflow_of_a_program_is_refused() {
    for (change, field, reason) in INVALID {
        let mut changed = workflow();
        // The default condition needs attempts when a program builds the job.
        changed.jobs.iter_mut().for_each(|job| job.retry.max_attempts = 2);
        changed.check_accepting(Accepted::Everything).unwrap();
        change(&mut changed);
        let error = changed.check_accepting(Accepted::Everything).expect_err(field);
        assert_eq!(error.field, *field, "{error}");
        assert!(error.reason.contains(reason), "{error}");
    }
}
