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
fn conditions_become_expressions_or_lines_of_the_script() {
    let text = "params: MODE=full\nsteps:\n  - name: a\n    command: x\n    preconditions:\n      \
        - {condition: $MODE, expected: full}\n      - test -f y\n";
    let parts =
        ["if = \"params.MODE == 'full'\"", "{ test -f y; } || exit 99\nx", "skip_if = \"exit_code == 99\""];
    assert_imports(text, &parts, &[]);
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
fn a_step_without_equivalent_fails_until_a_person_writes_it() {
    let text = "steps:\n  - {name: a, action: file.write, with: {path: x}}\n  - {name: b, executor: mail}\n";
    let left_out = ["line 2: a step of the kind `file.write`", "line 3: a step of the kind `mail`"];
    assert_imports(text, &["exit 1"], &left_out);
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
fn too_many_documents_are_refused() {
    let options = DaguOptions { name: "flow".to_owned(), timezone: "UTC".to_owned() };
    let text = "steps: [true]\n---\n".repeat(101);
    let report = dagu("flow.yaml", &text, &options).unwrap_err();
    assert!(report.to_string().contains("the limit is 100"), "{report}");
    assert!(
        dagu("flow.yaml", "# nothing\n", &options).unwrap_err().to_string().contains("the file is empty")
    );
}
