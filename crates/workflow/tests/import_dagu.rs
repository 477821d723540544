//! A workflow made from a file of Dagu: each shape of its keys, and what is left out.
#![allow(clippy::unwrap_used)]

use windlass_workflow::import::{DaguOptions, Imported, dagu};
use windlass_workflow::{Source, parse};

fn import(text: &str) -> Imported {
    let options = DaguOptions { name: "flow".to_owned(), timezone: "Europe/Berlin".to_owned() };
    let imported = dagu("flow.yaml", text, &options).unwrap_or_else(|report| panic!("{report}\n{text}"));
    let text = &imported.workflows[0].text;
    let source = Source::new("flow.toml", text.clone().into_bytes()).unwrap();
    parse(&source).unwrap_or_else(|report| panic!("{report}\n{text}"));
    imported
}

/// The file has these parts, and these things were left out.
#[track_caller]
fn assert_imports(text: &str, parts: &[&str], left_out: &[&str]) {
    let imported = import(text);
    let made = &imported.workflows[0].text;
    for part in parts {
        assert!(made.contains(part), "{part}\nis not in\n{made}");
    }
    assert_eq!(imported.left_out.len(), left_out.len(), "{imported:#?}");
    for (line, expected) in imported.left_out.iter().zip(left_out) {
        assert!(line.contains(expected), "{line}\n{expected}");
        let (_line, what) = line.split_once(": ").unwrap();
        assert!(made.contains(&format!("# Not carried over: {what}")), "{what}\nis no comment in\n{made}");
    }
}

#[test]
fn steps_run_in_their_order_unless_they_say_what_they_depend_on() {
    let chain =
        "steps:\n  - echo a\n  -\n    - echo b\n    - echo c\n  - command: echo d\n    name: last one\n";
    let parts = ["[jobs.step-2]\nneeds = [\"step-1\"]", "[jobs.last-one]\nneeds = [\"step-2\", \"step-3\"]"];
    assert_imports(chain, &parts, &[]);
    let graph = "steps:\n  - {name: a, command: x}\n  - {name: b, command: y, depends: [a, gone]}\n";
    assert_imports(graph, &["[jobs.b]\nneeds = [\"a\"]"], &["line 3: `depends` on `gone`"]);
}

#[test]
fn types_of_parameters_are_carried_over_or_named() {
    let text = "params:\n  - {name: mode, type: string, enum: [full, delta], default: delta}\n  \
        - {name: rows, type: integer, default: 5, minimum: 1, max_length: 3}\n  \
        - {name: rate, type: number, default: 0.5}\n  - {name: quick, type: boolean, default: false}\n  \
        - {name: note, required: false}\n  - {name: day, type: date, default: x}\n  \
        - {name: count, type: integer, default: many}\n  - {name: size, type: integer, enum: [1, 2]}\n\
        steps:\n  - echo $rows\n";
    let parts = [
        "mode = { type = \"choice\", choices = [\"full\", \"delta\"], default = \"delta\" }",
        "rows = { type = \"integer\", default = 5 }",
        "rate = { type = \"number\", default = 0.5 }",
        "quick = { type = \"boolean\", default = false }",
        "note = { default = \"\" }",
        "day = { default = \"x\" }",
        "count = { type = \"integer\", required = true }",
        "size = { type = \"choice\", choices = [\"1\", \"2\"], required = true }",
    ];
    let left_out = [
        "line 3: `minimum` of parameter `rows`",
        "line 3: `max_length` of parameter `rows`",
        "line 7: the type `date` of parameter `day`",
        "line 8: the default `many` of parameter `count` is no value of its type",
        "line 9: the type beside `enum` of parameter `size`",
    ];
    assert_imports(text, &parts, &left_out);
}

#[test]
fn values_reach_scripts_as_variables() {
    let text = "params: 2026 MODE=full\nenv:\n  - DIR: /data/${MODE}\n  - DAY: \"`date`\"\nsteps:\n  \
        - {name: a, command: load $1 $DIR, output: ROWS}\n  \
        - {name: b, command: \"awk '{print $2}' ${ROWS} '${ROWS}'\", depends: a}\n";
    let parts = [
        "p1 = { default = \"2026\" }",
        "DIR = \"/data/{{ params.MODE }}\"",
        "run = \"load ${P1} $DIR\"",
        "P1 = \"{{ params.p1 }}\"",
        "ROWS = \"{{ jobs.a.output | default('') }}\"",
        "{print $2}",
    ];
    assert_imports(
        text,
        &parts,
        &["line 4: the variable `DAY`", "line 7: `${ROWS}` stands in single quotes"],
    );
    let newer = "params:\n  - name: env\nsteps:\n  - id: a\n    run: echo ${params.env}\n";
    assert_imports(newer, &["run = \"echo ${env}\"", "env = \"{{ params.env }}\""], &[]);
}

#[test]
fn expressions_that_a_shell_cannot_read_are_replaced_or_named() {
    let text = "secrets: [{name: KEY, provider: env, key: K}]\nsteps:\n  \
        - echo ${env.HOME} ${secrets.KEY} ${OUT.results[0].x}\n";
    let parts = ["run = \"echo ${HOME} ${KEY} ${OUT.results[0].x}\""];
    assert_imports(text, &parts, &["line 3: `${OUT.results[0].x}` can't be read here"]);
}

#[test]
fn variables_of_a_step_are_tables_or_texts() {
    let text = "steps:\n  - command: x\n    env:\n      - DEBUG=true\n      - LEVEL: 2\n      - NAME\n      \
        - A-B=c\n      - DAY=`date`\n      - LIST: [1, 2]\n  - {command: y, env: {EMPTY: null}}\n";
    let parts = ["env = { DEBUG = \"true\", LEVEL = \"2\" }", "env = { EMPTY = \"\" }"];
    let left_out = [
        "line 6: `NAME`; a variable is written as NAME=value",
        "line 7: `A-B=c`; a variable can't have this name",
        "line 8: `DAY=`date``; the value is computed",
        "line 9: `LIST: [1, 2]`; its value is no text",
    ];
    assert_imports(text, &parts, &left_out);
}

#[test]
fn variables_of_a_workflow_that_are_left_out_are_named() {
    let text = "env:\n  - MY-VAR: a\n  - WINDLASS_X: b\n  - NAME\n  - A=1\n  - LIST: [1]\n  - B: null\n\
        steps:\n  - echo a\n";
    let left_out = [
        "line 2: the variable `MY-VAR`",
        "line 3: the variable `WINDLASS_X`",
        "line 4: `NAME`; a variable is written as NAME=value",
        "line 6: the variable `LIST`",
    ];
    assert_imports(text, &["A = \"1\"", "B = \"\""], &left_out);
}

#[test]
fn conditions_become_expressions_or_lines_of_the_script() {
    let text = "params: MODE=full\nsteps:\n  - name: a\n    command: x\n    preconditions:\n      \
        - {condition: $MODE, expected: full}\n      - test -f y\n";
    let parts =
        ["if = \"params.MODE == 'full'\"", "{ test -f y; } || exit 99\nx", "skip_if = \"exit_code == 99\""];
    assert_imports(text, &parts, &[]);
}

#[test]
fn conditions_that_cannot_be_read_are_named() {
    let text = "preconditions:\n  - eval: date +%u\n    expected: \"1\"\nsteps:\n  - run: echo a b\n    preconditions:\n      \
        - true\n      - {condition: $A, expected: [1, 2]}\n      - {condition: test -f x, timeout: 3}\n";
    let left_out = [
        "line 2: `eval: date +%u`; without this condition it always runs",
        "line 7: `true`; without this condition",
        "line 8: `{condition: $A, expected: [1, 2]}`; without this condition",
        "line 9: `timeout: 3`; a condition has no such key",
    ];
    assert_imports(text, &["{ test -f x; } || exit 99"], &left_out);
}

#[test]
fn settings_and_handlers_have_equivalents() {
    let text = "timeoutSec: 60\nschedule:\n  start: \"CRON_TZ=UTC 0 2 * * *\"\n  stop: \"0 3 * * *\"\nsteps:\n  - name: a\n    \
        command: x\n    retryPolicy: {limit: 2, intervalSec: 3}\n    continueOn: {exitCode: [3]}\n    mailOnError: true\n\
        handlerOn:\n  failure: {command: echo failed}\n  exit: {command: echo over}\n";
    let parts = [
        "timeout = \"60s\"",
        "retry = { max_attempts = 3, delay = \"3s\", factor = 1, jitter = 0 }",
        "success_if = \"exit_code in [0, 3]\"",
        "[on_failure.when-failed]",
        "[finally.at-the-end]",
        "cron = \"0 2 * * *\"\ntimezone = \"UTC\"",
    ];
    assert_imports(text, &parts, &["line 4: the times of `stop`", "line 10: `mailOnError: true`"]);
}

#[test]
fn a_limit_of_runs_is_carried_over() {
    let limited = |runs: &str| format!("maxActiveRuns: {runs}\nsteps:\n  - echo a\n");
    assert_imports(&limited("2"), &["concurrency = { limit = 2 }"], &[]);
    assert_imports(&limited("-1"), &[], &["line 1: "]);
}

#[test]
fn a_schedule_is_left_out_if_a_parameter_needs_a_value() {
    let text = "schedule: [\"0 2 * * *\", \"CRON_TZ=Asia/Tokyo 0 3 * * *\"]\nparams:\n  - DATE: \"`date`\"\n\
        steps:\n  - echo $DATE\n";
    let left_out = [
        "line 1: the schedule `0 2 * * *`; `DATE` has no default",
        "line 1: the schedule `TZ=Asia/Tokyo 0 3 * * *`; `DATE` has no default",
        "line 2: the default ``date`` of parameter `DATE` is computed",
    ];
    assert_imports(text, &["DATE = { required = true }"], &left_out);
}

#[test]
fn schedules_and_defaults_that_are_no_texts_are_named() {
    let text = "schedule:\n  - {cron: \"0 1 * * *\", timezone: Asia/Tokyo}\n  - {kind: at, at: \"2026-01-01\"}\nsteps:\n  - echo a\n";
    let left_out = ["line 2: `timezone: Asia/Tokyo`", "line 3: `{kind: at, at: \"2026-01-01\"}`"];
    assert_imports(text, &["cron = \"0 1 * * *\""], &left_out);
    let text = "params:\n  LIST: [a, b]\n  NONE: null\n  X: {default: [1]}\nsteps:\n  - echo a\n";
    let left_out =
        ["line 2: `[a, b]`; a default of parameter `LIST`", "line 4: `[1]`; a default of parameter `X`"];
    assert_imports(text, &["LIST = { required = true }", "NONE = { default = \"\" }"], &left_out);
}

#[test]
fn other_documents_are_workflows_of_the_file() {
    let text = "steps:\n  - name: each\n    run: child\n    parallel: {items: [A, B], maxConcurrent: 2}\n    \
        params: \"ITEM=${ITEM}\"\n---\nname: child\nsteps:\n  - {name: one, command: echo $ITEM, color: red}\n";
    let parts = [
        "for_each = { in = [\"A\", \"B\"], max_parallel = 2 }",
        "params = { ITEM = \"{{ item }}\" }",
        "workflow = \"child\"",
        "[workflows.child.params]\nITEM = { default = \"\" }",
    ];
    assert_imports(text, &parts, &["line 9: `color: red`"]);
}

#[test]
fn what_a_call_cannot_have_is_named() {
    let text = "steps:\n  - call: child\n    params: [A=1, B: [1, 2], [x], {C: null}]\n    script: echo\n  \
        - {action: dag.run, with: {dag: child, queue: fast, params: {D: 1}}, parallel: {items: [a], failFast: true}}\n  \
        - {command: x y, parallel: [a, b]}\n";
    let left_out = [
        "line 3: `B: [1, 2]`; a parameter is a text",
        "line 3: `[x]`; a parameter is written as NAME=value",
        "line 4: `script: echo`; this job calls a workflow",
        "line 5: `failFast: true`; `for_each` has no such key",
        "line 5: `queue: fast`; a call has no such key",
        "line 6: `parallel: [a, b]`; only a job that calls a workflow has it",
    ];
    assert_imports(text, &["params = { A = \"1\", C = \"\" }", "params = { D = \"1\" }"], &left_out);
}

#[test]
fn items_of_a_call_that_mean_something_else_are_named() {
    let text = "steps:\n  - call: child\n    parallel: [A=1 B=2]\n  \
        - call: child\n    params: X=${ITEM}\n    parallel: {items: [a], maxConcurrent: \"${N}\"}\n";
    let left_out = [
        "line 3: `parallel: [A=1 B=2]`; its items name parameters",
        "line 6: `maxConcurrent: \"${N}\"`; the number is computed",
    ];
    assert_imports(text, &["params = { X = \"{{ item }}\" }"], &left_out);
}

#[test]
fn what_other_documents_cannot_have_is_named() {
    let text = "steps:\n  - call: child\n---\nname: child\nschedule: \"0 1 * * *\"\nlabels: [x]\nsteps:\n  - echo a\n";
    let left_out = ["line 5: `schedule` of a workflow that others call", "line 6: `labels` of a workflow"];
    assert_imports(text, &[], &left_out);
    let options = DaguOptions { name: "flow".to_owned(), timezone: "UTC".to_owned() };
    let report = dagu("flow.yaml", "steps: [a]\n---\nname: child\n", &options).unwrap_err().to_string();
    assert!(report.contains("the file has no steps") && report.contains("flow.yaml:3:1"), "{report}");
}

#[test]
fn secrets_are_carried_over_or_named() {
    let text = "secrets:\n  - TOKEN\n  - {name: PASSWORD, ref: prod/db}\n  - {name: a-b, provider: env, key: B}\n  \
        - {name: KEY, provider: env, key: K, options: {a: b}}\n  - {name: V, provider: vault, key: x}\n\
        steps:\n  - call: child\n---\nname: child\nsecrets: [{name: FILE, provider: file, key: /k}]\n\
        steps:\n  - echo $FILE\n";
    let left_out = [
        "line 2: the secret `TOKEN`, which is in the store of Dagu",
        "line 3: the secret `PASSWORD`, which is `prod/db` in the store of Dagu",
        "line 4: the secret `a-b`; a secret can't have this name",
        "line 5: `options: {a: b}`; a secret has no such key",
        "line 6: the secret `V` of provider `vault`",
    ];
    let parts = ["[secrets]\nFILE = { file = \"/k\" }\nKEY = { env = \"K\" }"];
    assert_imports(text, &parts, &left_out);
}

#[test]
fn a_script_is_no_workflow_because_it_has_no_arguments() {
    let text = "steps:\n  - run: ./sync.sh\n  - run: report.py\n  - run: child\n  - run: ./child.yaml\n";
    let parts = ["run = \"./sync.sh\"", "run = \"report.py\"", "workflow = \"child\""];
    assert_imports(text, &parts, &[]);
    assert_eq!(import(text).workflows[0].text.matches("workflow = ").count(), 2);
}

#[test]
fn a_step_without_equivalent_fails_until_a_person_writes_it() {
    let text = "steps:\n  - {name: a, action: file.write, with: {path: x}}\n  - {name: b, executor: mail}\n";
    let left_out = ["line 2: a step of the kind `file.write`", "line 3: a step of the kind `mail`"];
    // A shell executes nothing of a name from the file.
    let echo = "echo 'not carried over: a step of the kind `mail`' >&2";
    // The comment has the settings of the step, which the person needs.
    assert_imports(text, &["exit 1", echo, "action: file.write, with: {path: x}"], &left_out);
}

#[test]
fn a_kind_of_step_is_never_executed() {
    let text = "steps:\n  - {name: a, action: \"touch $(x) 'y'\"}\n";
    let echo = "echo 'not carried over: a step of the kind `touch $(x) '\\''y'\\''`' >&2";
    assert_imports(text, &[echo], &["line 2: a step of the kind `touch $(x) 'y'`"]);
}

#[test]
fn requests_keep_their_parts_and_other_scripts_their_shell() {
    let text = "steps:\n  - name: a\n    executor: {type: http, config: {url: \"https://x.example\", method: post, body: b}}\n    \
        dir: /x\n  - {name: b, shell: bash, script: \"echo a\"}\n  - {name: c, command: python, script: \"print(1)\"}\n";
    let parts =
        ["method = \"POST\", url = \"https://x.example\"", "shell = \"bash\"", "python - <<'WINDLASS_END'"];
    assert_imports(text, &parts, &["line 4: `dir: /x`; this job has no process"]);
}

#[test]
fn settings_of_programs_are_carried_over_or_named() {
    let text = "steps:\n  - run: set -o pipefail\n    with: {shell: /bin/bash, shell_args: [-e], shell_packages: [jq]}\n  \
        - type: ssh\n    config: {host: h, user: u, timeout: 30s, command: uptime}\n  \
        - type: jq\n    config: {query: .a, input: x}\n    script: \"{}\"\n  \
        - {type: jq, command: .b, config: {query: .a}}\n";
    let parts =
        ["shell = \"/bin/bash -e\"", "run = \"ssh u@h uptime\"", "jq .a <<'WINDLASS_END'", "jq .b <<"];
    let left_out = [
        "line 3: `shell_packages: [jq]`",
        "line 5: `timeout: 30s`",
        "line 7: `input: x`",
        "line 9: `query: .a`",
    ];
    assert_imports(text, &parts, &left_out);
}

#[test]
fn too_many_documents_are_refused() {
    let options = DaguOptions { name: "flow".to_owned(), timezone: "UTC".to_owned() };
    let text = "steps: [true]\n---\n".repeat(101);
    let report = dagu("flow.yaml", &text, &options).unwrap_err();
    assert!(report.to_string().contains("the limit is 100"), "{report}");
    assert!(
        dagu("flow.yaml", "# nothing\n", &options).unwrap_err().to_string().contains("the file is empty")
    );
}

/// A step with this policy, and other keys.
fn repeating(policy: &str, more: &str) -> String {
    format!(
        "steps:\n  - name: a\n    command: x\n{more}    repeatPolicy:\n      {}\n",
        policy.replace("; ", "\n      ")
    )
}

#[test]
fn a_repeat_policy_about_exit_codes_becomes_rounds() {
    for (policy, parts) in [
        (
            "repeat: while; exitCode: [1]; intervalSec: 10; limit: 30",
            [
                "success_if = \"exit_code in [1, 0]\"",
                "repeat = { until = \"not (exit_code in [1])\", every = \"10s\", max = 30 }",
            ],
        ),
        (
            "repeat: until; exit_code: [0]; interval_sec: 5; limit: 60",
            ["success_if = \"true\"", "repeat = { until = \"exit_code == 0\", every = \"5s\", max = 60 }"],
        ),
        (
            "exitCode: 75; limit: 3",
            [
                "success_if = \"exit_code in [75, 0]\"",
                "repeat = { until = \"not (exit_code in [75])\", every = \"1s\", max = 3 }",
            ],
        ),
    ] {
        assert_imports(&repeating(policy, ""), &parts, &[]);
    }
    let while_it_runs = repeating("repeat: while; exitCode: [0]; intervalSec: 60", "");
    let parts = [
        "success_if = \"exit_code in [0]\"",
        "repeat = { until = \"not (exit_code in [0])\", every = \"60s\", max = 1000000 }",
    ];
    assert_imports(&while_it_runs, &parts, &["it goes on for ever there"]);
}

#[test]
fn a_repeat_policy_about_the_output_becomes_rounds() {
    let until = "repeat: until; condition: \"${STATUS}\"; expected: \"healthy\"; intervalSec: 2; limit: 50";
    let parts = [
        "success_if = \"exit_code == 0 or not (output == 'healthy')\"",
        "repeat = { until = \"output == 'healthy'\", every = \"2s\", max = 50 }",
    ];
    let of_status = "    output: STATUS\n";
    assert_imports(&repeating(until, of_status), &parts, &["`limit: 50`; here the job fails"]);
    let with_backoff = format!("{until}; backoff: 1.5; maxIntervalSec: 120");
    let slower = ["every = \"120s\", max = 50"];
    let left_out = ["`limit: 50`", "`backoff: 1.5`; every pause here"];
    assert_imports(&repeating(&with_backoff, of_status), &slower, &left_out);
    let words = "condition: $STATUS; expected: \"re:completed|failed\"; limit: 9";
    let parts = ["until = \"'completed' in output or 'failed' in output\""];
    assert_imports(&repeating(words, of_status), &parts, &["`limit: 9`"]);
    let while_so = "repeat: while; condition: $STATUS; expected: running";
    let parts =
        ["success_if = \"exit_code == 0 or (output == 'running')\"", "until = \"not (output == 'running')\""];
    assert_imports(&repeating(while_so, of_status), &parts, &["it goes on for ever there"]);
}

#[test]
fn a_repeat_policy_that_means_something_else_is_left_out() {
    for (policy, more, why) in [
        ("repeat: true; intervalSec: 60", "", "write a schedule with `every`"),
        ("repeat: while; exitCode: [0]; limit: 3", "", "it succeeds when it reaches its limit"),
        ("repeat: until; exitCode: [0, 3]", "", "an exit code that is a failure"),
        ("repeat: until; condition: test -f /tmp/x", "", "a command decides"),
        ("repeat: until; condition: $OTHER; expected: done", "", "only the output of the step itself"),
        (
            "repeat: until; condition: $S; expected: \"re:^d.*\"",
            "    output: S\n",
            "only the output of the step",
        ),
        ("repeat: until; exitCode: [0]; limit: ${LIMIT}", "", "is computed"),
        ("repeat: until; exitCode: [0]; backoff: true", "", "its pauses grow without a limit"),
        ("repeat: until; exitCode: [0]", "    retryPolicy: {limit: 2}\n", "beside `retryPolicy`"),
        ("repeat: until; eval: $(date); expected: x", "", "a command decides"),
    ] {
        let text = repeating(policy, more);
        assert_imports(&text, &["[jobs.a]"], &[why]);
        assert!(!import(&text).workflows[0].text.contains("\nrepeat ="), "{policy}");
    }
    assert_imports(&repeating("intervalSec: 60", ""), &["[jobs.a]"], &[]);
}

#[test]
fn parts_of_policies_that_are_left_out_are_named() {
    let text = "steps:\n  - command: a\n    retryPolicy:\n      limit: 3\n      intervalSec: ${X}\n      exitCode: [a]\n      \
        maxIntervalSec: 60\n      exponentialBackoff: true\n      backoff: ${B}\n  \
        - {command: b, continueOn: [failed]}\n  - {command: c, continueOn: {failure: true, markSuccess: true}}\n";
    let left_out = [
        "line 5: `intervalSec: ${X}`",
        "line 6: `exitCode: [a]`; the exit codes are computed",
        "line 8: `exponentialBackoff: true`; `retry` has no such key",
        "line 9: `backoff: ${B}`",
        "line 10: `continueOn: [failed]`",
        "line 11: `markSuccess: true`",
    ];
    let retry = "retry = { max_attempts = 4, delay = \"0s\", factor = 1, jitter = 0, max_delay = \"60s\" }";
    assert_imports(text, &[retry], &left_out);
}

#[test]
fn containers_of_steps_become_containers_of_jobs() {
    let step = "steps:\n  - name: a\n    command: ./train.sh\n    container:\n      image: python:3.13\n      \
        pull_policy: always\n      user: \"1000\"\n      volumes: [./data:/data:ro]\n      env:\n        - MODE=full\n      \
        keep_container: false\n      working_dir: /data\n      platform: linux/arm64\n";
    let parts = [
        "container = { image = \"python:3.13\", pull = \"always\", user = \"1000\", volumes = [\"./data:/data:ro\"] }",
        "env = { MODE = \"full\" }",
        "run = \"./train.sh\"",
    ];
    assert_imports(
        step,
        &parts,
        &["line 12: `working_dir: /data`; write `cd`", "line 13: `platform: linux/arm64`"],
    );

    let all = "params: {TAG: v1}\ncontainer:\n  image: builder:${TAG}\n  env: {A: b}\nsteps:\n  - command: make\n    \
        name: a\n  - {name: b, executor: http, command: GET https://example.com}\n";
    let parts = ["container = { image = \"builder:{{ params.TAG }}\" }\nrun = \"make\"\nenv = { A = \"b\" }"];
    assert_imports(all, &parts, &["line 2: one container for all steps; each job has its own"]);
    let imported = import(all);
    assert_eq!(
        imported.workflows[0].text.matches("container = ").count(),
        1,
        "{}",
        imported.workflows[0].text
    );

    let running = "steps:\n  - {name: a, command: make, container: builder}\n";
    assert_imports(
        running,
        &["run = \"make\""],
        &["line 2: `container: builder`; write `container` with an image"],
    );
    let computed = "container: {image: $(cat image)}\nsteps: [make]\n";
    assert_imports(computed, &["run = \"make\""], &["write `container` with an image in the jobs"]);
}

#[test]
fn steps_of_the_executor_docker_run_in_a_container() {
    let text = "steps:\n  - name: a\n    executor:\n      type: docker\n      config:\n        image: busybox\n        \
        pull: false\n        autoRemove: true\n        host: {binds: [./in:/in]}\n        \
        container: {env: [A=b], workingDir: /in}\n    command: ls -l\n  - name: b\n    executor:\n      type: docker\n      \
        config: {image: hello-world, platform: linux/amd64}\n  - {name: c, command: ls, executor: docker}\n";
    let parts = [
        "container = { image = \"busybox\", pull = \"never\", volumes = [\"./in:/in\"] }",
        "run = \"ls -l\"",
        "env = { A = \"b\" }",
        "run = \"docker run --rm hello-world\"",
    ];
    let left_out = [
        "`workingDir: /in`; write `cd`",
        "`platform: linux/amd64`; write it as an option",
        "is missing or computed",
    ];
    assert_imports(text, &parts, &left_out);
}
