//! The warnings of valid files: what is warned of, where, and what is not.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use windlass_workflow::{Colour, Report, Source, parse, warnings};

fn report(text: &str) -> Report {
    let source = Source::new("a.toml", text.into()).unwrap();
    let workflow = parse(&source).unwrap_or_else(|report| panic!("{report}\n{text}"));
    warnings(&source, &workflow)
}

/// The messages with their lines.
fn found(text: &str) -> Vec<String> {
    report(text)
        .diagnostics()
        .iter()
        .map(|warning| format!("{}: {}", warning.line, warning.message))
        .collect()
}

#[test]
fn parameters_and_secrets_that_nothing_uses() {
    let text = "[params]\nday = {}\nmode = {}\nkey = {}\nrows = {}\nhost = {}\nsite = {}\npage = {}\n[secrets]\nTOKEN = {}\nOLD = {}\nPIN = {}
[concurrency]\nkey = '{{ params.site }}'
[env]\nHOST = '{{ params.host }}'
[jobs.a]\nif = \"params.mode == 'full'\"\nconcurrency = { key = '{{ params.key }}' }
env = { TOKEN = '{{ secrets.TOKEN }}' }\nsecrets = ['PIN']\nrun = 'echo $WINDLASS_PARAM_ROWS'
[jobs.b]\nhttp = 'https://example.com/{{ params.page }}'\n";
    assert_eq!(
        found(text),
        ["2: nothing in the file reads the parameter `day`", "11: no job uses the secret `OLD`"]
    );
    for own_script in ["./load.sh", "python3 load.py"] {
        let text = text.replace("echo $", &format!("{own_script} $"));
        assert_eq!(found(&text), ["11: no job uses the secret `OLD`"], "{own_script} may read the variable");
    }
}

#[test]
fn scripts_and_rounds_that_can_do_nothing_else_but_fail() {
    let text = "[jobs.a]\nrun = 'echo ${{ github.sha }} ${HOME} {{ x }}'\n[jobs.b]\nrun = 'echo ${HOME}'\n";
    assert_eq!(found(text), ["2: the shell gets `${{` as it is, and can't read it"]);
    let rounds = |keys: &str| {
        found(&format!(
            "[jobs.a]\nrun = 'x'\n{keys}\nrepeat = {{ until = 'exit_code == 0', every = '1s' }}\n"
        ))
    };
    assert_eq!(rounds(""), ["4: an exit code other than 0 fails the job before `until` is asked"]);
    assert_eq!(rounds("success_if = 'exit_code in [0, 1]'"), [""; 0]);
}

#[test]
fn variables_and_patterns_that_nothing_replaces() {
    let job = |keys: &str| found(&format!("[params]\nday = {{}}\n[jobs.a]\n{keys}\n"));
    assert_eq!(job("run = 'echo $WINDLASS_PARAM_DAY ${WINDLASS_PARAM_DAYS:-} $WINDLASS_RUN_ID'"), [""; 0]);
    assert_eq!(
        job("run = 'echo ${WINDLASS_PARAM_DAY} $WINDLASS_PARAM_REF'"),
        ["4: the job has no variable `WINDLASS_PARAM_REF`"]
    );
    assert_eq!(
        job("run = 'echo $WINDLASS_PARAM_DAY $WINDLASS_ITEM'"),
        ["4: the job has no variable `WINDLASS_ITEM`"]
    );
    assert_eq!(job("run = 'echo $WINDLASS_PARAM_DAY $WINDLASS_ITEM'\nfor_each = ['a']"), [""; 0]);
    assert_eq!(
        job("env = { A = '${{ params.day }}' }\nrun = 'echo $A'"),
        ["4: the `$` before the braces stays in the text"]
    );
    for word in ["$HOME/x", "${HOME}", "*.csv", "data/*", "~/a"] {
        let found = job(&format!("command = ['cp', '{word}', '{{{{ params.day }}}}']"));
        assert_eq!(found, ["4: `command` starts a program without a shell"], "{word}");
    }
    for words in ["'awk', '{ print $NF }', '*.csv'", "'echo', 'a $B c', '$1', '100*2'", "'sh', '-c', '$HOME'"]
    {
        let found = job(&format!("command = [{words}]\nenv = {{ A = '{{{{ params.day }}}}' }}"));
        assert_eq!(found, [""; 0], "{words}");
    }
}

/// A file whose job `c` reads the output of `a`, with these keys in the jobs `a`, `b` and `c`.
fn reader(of_a: &str, of_b: &str, of_c: &str) -> Vec<String> {
    let c = match of_c.contains("needs") {
        true => of_c.to_owned(),
        false => format!("needs = ['b']\n{of_c}"),
    };
    found(&format!(
        "[jobs.a]\nrun = 'x'\n{of_a}\n[jobs.b]\nneeds = ['a']\nrun = 'x'\n{of_b}\n[jobs.c]\nrun = 'x'\n{c}\n{}",
        if of_c.contains("OUTPUT") { "" } else { "env = { OUTPUT = '{{ jobs.a.output }}' }" }
    ))
}

#[test]
fn outputs_that_may_be_missing() {
    let quiet = |of_a: &str, of_b: &str, of_c: &str| {
        assert_eq!(reader(of_a, of_b, of_c), [""; 0], "{of_a}, {of_b}, {of_c}")
    };
    quiet("", "", "");
    quiet("if = \"run.id > 1\"", "", "");
    quiet("", "allow_failure = true", "");
    quiet("", "", "needs = ['a', 'b']\nwhen = 'none_failed'");
    quiet("", "when = 'all_finished'", "needs = ['a', 'b']");
    quiet("allow_failure = true", "", "if = \"jobs.a.status == 'SUCCESSFUL'\"");
    quiet("allow_failure = true", "", "env = { OUTPUT = '{{ jobs.a.output | default(1) }}' }");
    quiet(
        "allow_failure = true",
        "",
        "env = { OUTPUT = '{{ jobs.a.output if jobs.a.exit_code == 0 else 1 }}' }",
    );
    quiet("allow_failure = true", "for_each = [1]", "env = { OUTPUT = '{{ jobs.b.output }}' }");

    let warned = |of_a: &str, of_b: &str, of_c: &str| {
        let found = reader(of_a, of_b, of_c);
        assert_eq!(found.len(), 1, "{of_a}, {of_b}, {of_c}: {found:?}");
        assert!(found[0].contains("the output that job `c` reads may be missing"), "{found:?}");
    };
    warned("allow_failure = true", "", "");
    warned("", "when = 'all_finished'", "");
    warned("", "when = 'any_failed'", "");
    warned("", "", "when = 'all_finished'");
    warned("", "when = 'all_finished'", "needs = ['a', 'b']\nwhen = 'any_successful'");
    warned(
        "allow_failure = true",
        "",
        "env = { OUTPUT = '{{ jobs.a.output }}{{ jobs.a.output | default(1) }}' }",
    );
    let sleep =
        found("[jobs.a]\nsleep = '1s'\n[jobs.c]\nneeds = ['a']\nrun = 'x'\nstdin = '{{ jobs.a.output }}'");
    assert_eq!(sleep, ["6: the output that job `c` reads may be missing"]);
}

#[test]
fn outputs_of_calls() {
    let call = |outputs: &str, for_each: &str| {
        found(&format!(
            "[workflows.load]\n{outputs}\n[workflows.load.jobs.a]\nrun = 'x'\n\
             [jobs.load]\nworkflow = 'load'\n{for_each}\n\
             [jobs.c]\nneeds = ['load']\nrun = 'x'\nstdin = '{{{{ jobs.load.output }}}}'"
        ))
    };
    assert_eq!(call("", ""), ["11: the output that job `c` reads may be missing"]);
    assert_eq!(call("outputs = { rows = 'jobs.a.output' }", ""), [""; 0]);
}

#[test]
fn outputs_that_handlers_read() {
    let with = |job: &str, handler: &str| {
        found(&format!(
            "[jobs.a]\nrun = 'x'\n{job}\n[jobs.b]\nneeds = ['a']\nrun = 'x'\n[{handler}.c]\nrun = 'x'\nstdin = '{{{{ jobs.b.output }}}}'"
        ))
        .len()
    };
    assert_eq!(with("", "on_success"), 0);
    for job in [
        "if = \"run.id == 1\"",
        "skip_if = \"exit_code == 9\"",
        "concurrency = { key = 'k', on_full = 'skip' }",
    ] {
        assert_eq!(with(job, "on_success"), 1, "{job}");
    }
    for handler in ["on_failure", "on_cancel", "finally"] {
        assert_eq!(with("", handler), 1, "{handler}");
    }
}

#[test]
fn jobs_that_no_end_of_their_parents_leads_to() {
    let when = |of_a: &str, of_b: &str| {
        found(&format!(
            "[jobs.a]\nrun = 'x'\n{of_a}\n[jobs.b]\nneeds = ['a']\nrun = 'x'\nallow_failure = true\n{of_b}\n[jobs.c]\nneeds = ['b']\n\
             when = 'any_failed'\nrun = 'x'"
        ))
    };
    let message = "job `c` runs only if one of the jobs that it needs is cancelled";
    assert_eq!(when("allow_failure = true", ""), [format!("11: {message}")]);
    assert_eq!(when("", ""), [""; 0], "b is skipped when a fails");
    assert_eq!(when("", "when = 'all_finished'"), [format!("11: {message}")]);
    assert_eq!(
        found("[jobs.a]\nrun = 'x'\nif = \"1 > 2\""),
        ["3: the condition is never true, so the job never runs"]
    );
    assert_eq!(found("[jobs.a]\nrun = 'x'\nif = \"true\""), ["3: the condition is always true"]);
}

#[test]
fn called_workflows_are_looked_at_too() {
    let text = "[secrets]\nTOKEN = {}\n[workflows.load]\nparams = { table = {}, mode = {} }
outputs = { rows = 'jobs.copy.output', more = 'jobs.extra.output', size = 'jobs.extra.output | default(0)' }
[workflows.load.jobs.copy]\nrun = 'echo $WINDLASS_PARAM_TABLE'\nsecrets = ['TOKEN']
[workflows.load.jobs.extra]\nif = \"run.id == 1\"\nrun = 'x'
[workflows.old.jobs.a]\nrun = 'x'
[jobs.a]\nworkflow = 'load'\nparams = { table = 'x', mode = 'y' }";
    assert_eq!(
        found(text),
        [
            "4: nothing in the file reads the parameter `mode`",
            "5: job `copy` has no output",
            "5: the output that `outputs` reads may be missing",
            "12: no job calls the workflow `old`",
        ]
    );
}

#[test]
fn values_that_have_another_effect_than_they_seem_to_have() {
    let text = "timeout = '1h'\nparams = { day = {} }
[jobs.a]\nrun = '''\necho $WINDLASS_PARAM_DAY\n'''\ntimeout = '2h'
[jobs.b]\ncommand = ['ls', '|', 'wc']\ntimeout = '10m'\ndeadline = '5m'
[jobs.c]\nenv = { DAY = '{{ params.day }}' }\nrun = \"docker ps --format '{{ .Names }}'\"";
    assert_eq!(
        found(text),
        [
            "7: the `timeout` of the workflow ends before this `timeout` does",
            "9: `command` starts a program without a shell",
            "10: the `deadline` of the job ends before this `timeout` does",
        ]
    );
}

#[test]
fn a_warning_looks_like_an_error() {
    let text = "[secrets]\nTOKEN = {}\n[jobs.a]\nrun = 'x'\n";
    let rendered = report(text).render(Colour::Never);
    assert!(rendered.starts_with("warning: no job uses the secret `TOKEN`\n --> a.toml:2:1\n"), "{rendered}");
    assert!(rendered.contains("help: remove it") && rendered.ends_with("a.toml: 1 warning\n"), "{rendered}");
}

#[test]
fn no_example_has_a_warning() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/workflows");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let is_test = path.to_str().unwrap().ends_with(".test.toml");
        if !is_test && path.extension().is_some_and(|extension| extension == "toml" || extension == "json") {
            let source = Source::new(path.to_str().unwrap(), std::fs::read(&path).unwrap()).unwrap();
            let folder = path.parent().unwrap();
            let source = source.with_included(&mut |file| {
                std::fs::read(folder.join(file)).map_err(|error| error.to_string())
            });
            let workflow = parse(&source).unwrap();
            let report = warnings(&source, &workflow);
            assert!(report.diagnostics().is_empty(), "{report}");
            count += 1;
        }
    }
    assert!(count > 10, "{count}");
}

#[test]
fn a_variable_that_the_first_run_does_not_have() {
    let file = |read: &str, needs: &str| {
        format!(
            "[jobs.load]\nrun = 'x'\nset_variables = {{ cursor = 'output' }}\n[jobs.read]\nrun = 'x'\n{needs}\nenv = {{ A = '{{{{ {read} }}}}' }}\n"
        )
    };
    let found_for = |read: &str, needs: &str| found(&file(read, needs));
    let warning = ["7: the first run has no variable `cursor`: job `load` sets it at its end"];
    assert_eq!(found_for("variables.cursor", ""), warning);
    assert_eq!(found_for("variables.cursor | default(0)", ""), Vec::<String>::new());
    assert_eq!(found_for("variables.cursor", "needs = 'load'"), Vec::<String>::new(), "it is set before");
    assert_eq!(found_for("variables.region", ""), Vec::<String>::new(), "somebody else sets it");
    let own = "[jobs.count]\nrun = 'x'\nset_variables = { n = 'variables.n + output' }\n";
    assert_eq!(found(own), ["3: the first run has no variable `n`: job `count` sets it at its end"]);
    let shared = format!("env = {{ A = '{{{{ variables.n }}}}' }}\n{}", own.replace("variables.n", "1"));
    assert_eq!(found(&shared), ["1: the first run has no variable `n`: job `count` sets it at its end"]);
}

#[test]
fn conditions_of_attempts_that_read_nothing() {
    let of = |key: &str, value: &str| found(&format!("[jobs.a]\nrun = 'x'\n{key} = '{value}'\n"));
    assert_eq!(of("success_if", "true"), ["3: every attempt counts as a success, whatever its exit code is"]);
    assert_eq!(of("success_if", "1 == 2"), ["3: the condition is never true, so the job always fails"]);
    assert_eq!(of("skip_if", "true"), ["3: the condition is always true, so the job never succeeds"]);
    assert_eq!(of("success_if", "exit_code in [0, 1]"), Vec::<String>::new());
}

#[test]
fn an_output_that_nothing_writes() {
    let of = |script: &str, more: &str| {
        found(&format!(
            "[jobs.a]\nrun = '''{script}'''\n{more}\n[jobs.b]\nneeds = 'a'\ncommand = ['x', '{{{{ jobs.a.output }}}}']\n"
        ))
    };
    assert_eq!(of("echo 1", ""), ["6: job `a` has no output"]);
    assert_eq!(of("echo 1", "output = 'text'"), Vec::<String>::new());
    for script in ["echo 1 > \"$WINDLASS_OUTPUT\"", "./count", "count", "count\necho 1"] {
        assert_eq!(of(script, ""), Vec::<String>::new(), "{script} may write it");
    }
}

#[test]
fn artifacts_of_items_in_one_folder() {
    let of = |artifacts: &str, for_each: &str| {
        found(&format!("[jobs.a]\nrun = 'x'\nfor_each = {for_each}\n{artifacts}\n"))
    };
    let warning = ["4: the items of job `a` keep files of each other"];
    assert_eq!(of("artifacts = 'out/*.csv'", "['x', 'y']"), warning);
    assert_eq!(of("artifacts = 'out/{{ item }}.csv'", "['x', 'y']"), Vec::<String>::new());
    assert_eq!(of("artifacts = 'out.csv'\ndir = 'part-{{ index }}'", "['x', 'y']"), Vec::<String>::new());
    let one_at_a_time = "{ in = ['x', 'y'], max_parallel = 1 }";
    assert_eq!(of("artifacts = 'out.csv'", one_at_a_time), Vec::<String>::new());
}

#[test]
fn a_path_that_is_an_argument_starts_no_script() {
    let of = |script: &str| found(&format!("[params]\nday = {{}}\n[jobs.a]\nrun = '{script}'\n"));
    let warning = ["2: nothing in the file reads the parameter `day`"];
    assert_eq!(of("cat data/in.csv | wc -l"), warning);
    assert_eq!(of("cd data && sh ../load"), Vec::<String>::new());
}
