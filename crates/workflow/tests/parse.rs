//! The model that the parser makes of a file.
#![allow(clippy::unwrap_used)]

use serde_json::json;
use windlass_workflow::kinds::shell::{OutputSource, Payload, Shell};
use windlass_workflow::model::{Catchup, Concurrency, DEFAULT_SCHEDULE, OnFull, Overlap, Rule, Schedule};
use windlass_workflow::{
    Expression, ForEach, ItemSource, Job, Matrix, OnInterrupt, ParamKind, Retry, Source, When, Workflow,
    model, parse,
};

fn parsed(path: &str, text: &str) -> Workflow {
    parse(&Source::new(path, text.into()).unwrap()).unwrap_or_else(|report| panic!("{report}"))
}

/// What the worker is told to do.
fn payload(job: &Job) -> Payload {
    Payload::parse(&job.action.payload(&[], &[])).unwrap()
}

fn only_job(text: &str) -> Job {
    parsed("a.toml", text).jobs.remove(0)
}

const NIGHTLY: &str = r#"
name = "nightly-report"
description = "What happened"
timeout = "2h"

[params]
day = { type = "date", description = "which day to report on" }
lines = { type = "integer", default = 10 }
mode = { choices = ["fast", "full"], default = "fast" }
note = { required = false }

[env]
TZ = "UTC"
DAY = "{{ params.day }}"

[defaults]
timeout = "1m"
retry = { delay = "10s" }
dir = "work/{{ params.day }}"

[jobs.fetch]
description = "Gets the data"
run = 'curl -fsS "$URL" -o data.csv'
shell = "bash -eu"
env = { URL = "https://example.com/{{ params.day }}.csv", TRIES = 3, RATIO = 0.5, QUIET = true }
retry = { max_attempts = 5, factor = 3, max_delay = "5m", jitter = 0 }
timeout = "10m"
priority = "high"

[jobs.count]
needs = "fetch"
command = ["wc", "-l", "data.csv"]
output = "text"
dir = "elsewhere"

[jobs.report]
needs = ["count"]
command = ["report", "--lines", "{{ jobs.count.output }}", "{{ jobs.fetch.output.size }}", 5]
queue = "slow"
priority = -7
allow_failure = true
on_interrupt = "fail"
max_interruptions = 0
retry = 3
output = "json"
"#;

#[test]
fn a_file_with_every_key() {
    let workflow = parsed("dir/other.toml", NIGHTLY);
    assert_eq!(workflow.name, "nightly-report");
    assert_eq!(workflow.description.as_deref(), Some("What happened"));
    assert_eq!(workflow.timeout_ms, Some(7_200_000));
    assert_eq!(workflow.env["DAY"], "{{ params.day }}");
    let params: Vec<_> =
        workflow.params.iter().map(|param| (param.name.as_str(), param.kind, param.required)).collect();
    let expected = [
        ("day", ParamKind::Date, true),
        ("lines", ParamKind::Integer, false),
        ("mode", ParamKind::Choice, false),
        ("note", ParamKind::String, false),
    ];
    assert_eq!(params, expected);
    assert_eq!(workflow.params[1].default, Some(serde_json::json!(10)));

    let [fetch, count, report] = &workflow.jobs[..] else { panic!("{:?}", workflow.jobs) };
    assert_eq!(payload(fetch).run.unwrap(), "curl -fsS \"$URL\" -o data.csv");
    assert_eq!(payload(fetch).shell, ["bash", "-eu"]);
    let retry = Retry {
        max_attempts: 5,
        delay_ms: 10_000,
        factor: 3.0,
        max_delay_ms: 300_000,
        jitter: 0.0,
        condition: None,
    };
    assert_eq!(fetch.retry, retry);
    assert_eq!((fetch.timeout_ms, fetch.priority), (Some(600_000), 10));
    assert_eq!(payload(fetch).dir.as_deref(), Some("work/{{ params.day }}"));
    let env = payload(fetch).env;
    let values = ["TRIES", "RATIO", "QUIET"].map(|name| env[name].as_str());
    assert_eq!(values, ["3", "0.5", "true"]);

    assert_eq!((count.needs.as_slice(), count.uses.as_slice()), (&[0][..], &[][..]));
    assert_eq!((count.timeout_ms, payload(count).dir.as_deref()), (Some(60_000), Some("elsewhere")));
    assert_eq!(payload(count).output, OutputSource::Text);

    assert_eq!((report.needs.as_slice(), report.uses.as_slice()), (&[1][..], &[0, 1][..]));
    assert_eq!(payload(report).command.unwrap()[4], "5");
    assert_eq!((report.queue.as_str(), report.priority, report.allow_failure), ("slow", -7, true));
    assert_eq!((report.on_interrupt, report.max_interruptions), (OnInterrupt::Fail, 0));
    assert_eq!((report.retry.max_attempts, report.retry.delay_ms), (3, 10_000));
    assert_eq!(payload(report).output, OutputSource::Json);
}

#[test]
fn a_job_with_few_keys_gets_the_defaults() {
    let job = only_job("[jobs.a]\nrun = 'x'\n");
    let expected = Job {
        name: "a".to_owned(),
        description: None,
        action: Shell::script("x").into(),
        needs: Vec::new(),
        when: When::AllSuccessful,
        condition: None,
        handler: None,
        uses: Vec::new(),
        retry: Retry::default(),
        timeout_ms: None,
        deadline_ms: None,
        success_if: None,
        skip_if: None,
        repeat: None,
        set_variables: None,
        for_each: None,
        secrets: Vec::new(),
        queue: model::DEFAULT_QUEUE.to_owned(),
        priority: 0,
        allow_failure: false,
        on_interrupt: OnInterrupt::Rerun,
        max_interruptions: model::DEFAULT_MAX_INTERRUPTIONS,
        requires: Vec::new(),
        code_version: 0,
        concurrency: None,
    };
    assert_eq!(job, expected);
    let action = payload(&job);
    assert!(action.shell.is_empty() && action.env.is_empty());
    assert_eq!((action.dir, action.output), (None, OutputSource::File));
}

#[test]
fn items_are_written_in_four_ways() {
    let for_each = |written: &str| {
        let text = format!("params.l = {{ type = 'list' }}\njobs.a = {{ run = 'x', for_each = {written} }}");
        *parsed("a.toml", &text).jobs.remove(0).for_each.unwrap()
    };
    let expression = |text: &str| ItemSource::In(Expression::parse(text).unwrap());
    assert_eq!(for_each("['eu', 7]"), ForEach::of(ItemSource::List(vec![json!("eu"), json!(7)])));
    assert_eq!(for_each("'params.l'"), ForEach::of(expression("params.l")));
    assert_eq!(
        for_each("{ in = 'params.l', max_parallel = 20, fail_fast = true, limit = 100000 }"),
        ForEach { items: expression("params.l"), max_parallel: Some(20), fail_fast: true, limit: 100_000 }
    );
    let matrix = Matrix {
        dimensions: vec![
            ("py".to_owned(), vec![json!("3.12")]),
            ("os".to_owned(), vec![json!("a"), json!(1)]),
        ],
        exclude: vec![json!({ "os": "a" }).as_object().unwrap().clone()],
    };
    let written = for_each("{ matrix = { py = ['3.12'], os = ['a', 1] }, exclude = [{ os = 'a' }] }");
    assert_eq!(written, ForEach::of(ItemSource::Matrix(matrix)));
    // The stored form is read back.
    assert_eq!(serde_json::from_value::<ForEach>(serde_json::to_value(&written).unwrap()).unwrap(), written);
}

#[test]
fn toml_and_json_give_the_same_model() {
    let toml = "name = 'n'\n[params]\nd = { type = 'date', default = 2026-01-31 }\n\
                [jobs.b]\nrun = 'x'\n[jobs.a]\nneeds = ['b']\ncommand = ['y', '{{ params.d }}']\n";
    let json = r#"{"name": "n", "params": {"d": {"type": "date", "default": "2026-01-31"}},
                   "jobs": {"b": {"run": "x"}, "a": {"needs": ["b"], "command": ["y", "{{ params.d }}"]}}}"#;
    let (toml, json) = (parsed("a.toml", toml), parsed("a.json", json));
    assert_eq!(toml, json);
    assert_eq!(toml.hash(), json.hash());
    let names: Vec<_> = toml.jobs.iter().map(|job| job.name.as_str()).collect();
    assert_eq!(names, ["b", "a"], "the order of the file");
}

#[test]
fn the_workflow_is_called_like_the_file_if_it_has_no_name() {
    assert_eq!(parsed("examples/word count.toml", "[jobs.a]\nrun = 'x'\n").name, "word count");
    let source = Source::new(".toml/..", "[jobs.a]\nrun = 'x'\n".into()).unwrap();
    let report = parse(&source).unwrap_err();
    assert!(report.diagnostics()[0].help.as_ref().unwrap().contains("`name`"), "{report}");
}

#[test]
fn every_syntax_of_a_table_gives_the_same_model() {
    let dotted = parsed("a.toml", "jobs.a.run = 'x'\njobs.a.retry.max_attempts = 2\n");
    let inline = parsed("a.toml", "jobs = { a = { run = 'x', retry = { max_attempts = 2 } } }\n");
    let headers = parsed("a.toml", "[jobs]\n[jobs.a]\nrun = 'x'\n[jobs.a.retry]\nmax_attempts = 2\n");
    assert_eq!(dotted, inline);
    assert_eq!(dotted, headers);
}

#[test]
fn a_script_is_never_a_template() {
    let job = only_job("[jobs.a]\nrun = 'echo {{ nothing }} {% x %} ${#a}'\n");
    assert_eq!(payload(&job).run.unwrap(), "echo {{ nothing }} {% x %} ${#a}");
}

#[test]
fn the_output_of_a_distant_ancestor_can_be_read() {
    let mut text = "[jobs.first]\nrun = 'x'\n[jobs.j0]\nrun = 'x'\nneeds = 'first'\n".to_owned();
    for job in 1..300 {
        text += &format!("[jobs.j{job}]\nrun = 'x'\nneeds = 'j{}'\n", job - 1);
    }
    text +=
        "[jobs.last]\nneeds = 'j299'\ncommand = ['x', '{{ jobs.first.output }}', '{{ jobs.j7.output.x }}']\n";
    let workflow = parsed("a.toml", &text);
    assert_eq!(workflow.jobs.last().unwrap().uses, [0, 8]);
}

#[test]
fn a_long_delay_without_a_cap_is_its_own_cap() {
    let job = only_job("[jobs.a]\nrun = 'x'\nretry = { max_attempts = 2, delay = '1h' }\n");
    assert_eq!((job.retry.delay_ms, job.retry.max_delay_ms), (3_600_000, 3_600_000));
}

#[test]
fn a_job_takes_missing_values_of_retry_from_defaults() {
    let job = only_job(
        "[defaults]\nretry = { max_attempts = 9, jitter = 0.5 }\n[jobs.a]\nrun = 'x'\nretry = { delay = '2s' }\n",
    );
    assert_eq!((job.retry.max_attempts, job.retry.delay_ms, job.retry.jitter), (9, 2_000, 0.5));
}

#[test]
fn windows_line_ends_are_accepted() {
    let job = only_job("[jobs.a]\r\nrun = 'x'\r\n");
    assert_eq!(payload(&job).run.unwrap(), "x");
}

const SCHEDULED: &str = r#"
[params]
day = { type = "date" }
year = { type = "integer", default = 2000 }
[[schedules]]
cron = "30 2 * * MON-FRI"
timezone = "Europe/Berlin"
overlap = "cancel_running"
catchup = "last"
catchup_window = "2d"
start = 2026-03-01
end = "2027-01-01T00:00:00+01:00"
jitter = "5m"
params = { day = "{{ scheduled_for | date(days=-1) }}", year = "{{ scheduled_for | date('%Y') }}" }
[[schedules]]
name = "all"
every = "90s"
catchup = "all"
catchup_max = 50
start = 2026-03-01 06:30:00
params = { day = 2026-01-31 }
[jobs.a]
run = 'x'
"#;

#[test]
fn schedules_with_every_key() {
    let schedules = parsed("a.toml", SCHEDULED).schedules;
    let template = serde_json::json!({
        "day": "{{ scheduled_for | date(days=-1) }}", "year": "{{ scheduled_for | date('%Y') }}"
    });
    let nightly = Schedule {
        name: DEFAULT_SCHEDULE.to_owned(),
        rule: Rule::Cron("30 2 * * MON-FRI".to_owned()),
        timezone: "Europe/Berlin".to_owned(),
        overlap: Overlap::CancelRunning,
        catchup: Catchup::Last,
        catchup_window_ms: Some(172_800_000),
        catchup_max: 1_000,
        start_ms: Some(1_772_319_600_000),
        end_ms: Some(1_798_758_000_000),
        jitter_ms: 300_000,
        params: template.as_object().unwrap().clone(),
    };
    assert_eq!(schedules[0], nightly);
    let all = &schedules[1];
    assert_eq!((all.name.as_str(), &all.rule, all.timezone.as_str()), ("all", &Rule::EveryMs(90_000), "UTC"));
    assert_eq!((all.overlap, all.catchup, all.catchup_max), (Overlap::QueueAll, Catchup::All, 50));
    assert_eq!((all.start_ms, all.end_ms, all.jitter_ms), (Some(1_772_346_600_000), None, 0));
    assert_eq!(all.params["day"], "2026-01-31");
}

#[test]
fn a_schedule_that_is_not_enabled_is_checked_and_left_out() {
    let file = |enabled: &str, cron: &str| {
        format!("[[schedules]]\ncron = '{cron}'\nenabled = {enabled}\n[jobs.a]\nrun = 'x'\n")
    };
    assert_eq!(parsed("a.toml", &file("true", "30 2 * * *")).schedules.len(), 1);
    assert!(parsed("a.toml", &file("false", "30 2 * * *")).schedules.is_empty());
    let wrong = Source::new("a.toml", file("false", "30 2 * *").into()).unwrap();
    assert!(parse(&wrong).is_err());
}

#[test]
fn schedules_are_the_same_in_toml_in_json_and_in_the_stored_form() {
    let toml = parsed("a.toml", SCHEDULED);
    let json = serde_json::json!({
        "name": "a",
        "params": { "day": { "type": "date" }, "year": { "type": "integer", "default": 2000 } },
        "schedules": [
            {
                "cron": "30 2 * * MON-FRI", "timezone": "Europe/Berlin", "overlap": "cancel_running",
                "catchup": "last", "catchup_window": "2d", "start": "2026-03-01",
                "end": "2027-01-01T00:00:00+01:00", "jitter": "5m",
                "params": {
                    "day": "{{ scheduled_for | date(days=-1) }}", "year": "{{ scheduled_for | date('%Y') }}"
                },
            },
            {
                "name": "all", "every": "90s", "catchup": "all", "catchup_max": 50,
                "start": "2026-03-01 06:30:00", "params": { "day": "2026-01-31" },
            },
        ],
        "jobs": { "a": { "run": "x" } },
    });
    assert_eq!(parsed("a.json", &json.to_string()), toml);
    assert_eq!(Workflow::from_json(&toml.to_json()).unwrap(), toml);
}

#[test]
fn a_schedule_with_few_keys_gets_the_defaults() {
    let schedule =
        parsed("a.toml", "[[schedules]]\ncron = '@daily'\n[jobs.a]\nrun = 'x'\n").schedules.remove(0);
    let expected = Schedule {
        name: DEFAULT_SCHEDULE.to_owned(),
        rule: Rule::Cron("@daily".to_owned()),
        timezone: "UTC".to_owned(),
        overlap: Overlap::Skip,
        catchup: Catchup::Last,
        catchup_window_ms: None,
        catchup_max: 1_000,
        start_ms: None,
        end_ms: None,
        jitter_ms: 0,
        params: serde_json::Map::new(),
    };
    assert_eq!(schedule, expected);
}

#[test]
fn a_job_has_capabilities_a_version_and_a_concurrency_key() {
    let workflow = parsed(
        "a.toml",
        "[params]\ntenant = {}\n[defaults]\nrequires = 'gpu'\ncode_version = 3\nconcurrency = { key = 'all', limit = 5 }\n\
         [jobs.a]\nrun = 'x'\n\
         [jobs.b]\nrun = 'x'\nrequires = ['ssd', 'gpu', 'ssd']\ncode_version = 0\n\
         concurrency = { key = '{{ run.workflow }}-{{ params.tenant }}', on_full = 'cancel_oldest' }\n\
         [jobs.c]\nrun = 'x'\nrequires = []\nconcurrency = { key = 'k', limit = 2, on_full = 'skip' }\n",
    );
    let concurrency = |key: &str, limit, on_full| Some(Concurrency { key: key.to_owned(), limit, on_full });
    let [a, b, c] = &workflow.jobs[..] else { panic!("{:?}", workflow.jobs) };
    assert_eq!((a.requires.as_slice(), a.code_version), (&["gpu".to_owned()][..], 3));
    assert_eq!(a.concurrency, concurrency("all", 5, OnFull::Wait));
    assert_eq!((b.requires.as_slice(), b.code_version), (&["gpu".to_owned(), "ssd".to_owned()][..], 0));
    assert_eq!(b.concurrency, concurrency("{{ run.workflow }}-{{ params.tenant }}", 1, OnFull::CancelOldest));
    assert_eq!((c.requires.as_slice(), c.code_version), (&[][..], 3));
    assert_eq!(c.concurrency, concurrency("k", 2, OnFull::Skip));
}

/// A schema and the guide name the form with `_`.
#[test]
fn words_with_a_hyphen_mean_those_with_an_underscore() {
    let text = "[[schedules]]\nevery = '1h'\noverlap = 'queue_one'\n[workspace]\nkeep = 'on_failure'\n\
         [jobs.a]\nrun = 'x'\nconcurrency = { key = 'k', on_full = 'cancel_oldest' }\n\
         [jobs.b]\nneeds = 'a'\nwhen = 'none_failed'\nrun = 'x'\n";
    let hyphens = text.replace("queue_one", "queue-one").replace("'on_failure'", "'on-failure'");
    let hyphens = hyphens.replace("cancel_oldest", "cancel-oldest").replace("none_failed", "none-failed");
    assert_ne!(text, hyphens);
    assert_eq!(parsed("a.toml", &hyphens), parsed("a.toml", text));
}

#[test]
fn json_is_yaml_and_gives_the_same_workflow() {
    let text = include_str!("../../../examples/workflows/typed-params.json");
    let parsed = |path: &str, text: &str| parse(&Source::new(path, text.into()).unwrap()).unwrap();
    let workflow = parsed("a.json", text);
    assert_eq!(parsed("a.yaml", text), workflow);
    assert_eq!(parsed("a.yml", &text.replace('\n', "\r\n")), workflow);
}
