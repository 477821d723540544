//! Jobs as processes: their environment, their output, and that no process is left behind.

use std::process::Command;

use windlass_tests::{Sandbox, eventually};

/// Runs one job and returns the sandbox. The run must end with `code`.
fn run_job(job: &str, code: i32) -> Sandbox {
    let sandbox = Sandbox::new();
    let file = sandbox.write("one.toml", format!("name = \"one\"\n[jobs.only]\n{job}"));
    sandbox.run(&["run", &file]).exited(code);
    sandbox
}

fn assert_nothing_left(sandbox: &Sandbox) {
    assert_eq!(sandbox.leftovers(), [], "processes left behind");
}

#[test]
fn a_timeout_ends_the_group_and_escaped_processes() {
    let sandbox = run_job(
        "timeout = \"500ms\"\nrun = '''\nsetsid sleep 600 &\nsleep 601 &\nsh -c 'sleep 602' &\nsleep 603\n'''\n",
        1,
    );
    assert_nothing_left(&sandbox);
    let tables = sandbox.tables();
    assert_eq!(tables.jobs()[0].status, "FAILED");
    assert_eq!(tables.attempts()[0].outcome, "timed_out");
}

#[test]
fn a_job_that_ignores_sigterm_is_killed_all_the_same() {
    let sandbox =
        run_job("timeout = \"300ms\"\nrun = '''\ntrap '' TERM\nwhile :; do sleep 1; done\n'''\n", 1);
    assert_nothing_left(&sandbox);
    assert_eq!(sandbox.tables().attempts()[0].outcome, "timed_out");
}

#[test]
fn sigterm_lets_a_job_clean_up() {
    let sandbox = run_job(
        "timeout = \"500ms\"\nrun = '''\ntrap 'echo cleaned > cleaned; exit 1' TERM\nsleep 600 &\nwait\n'''\n",
        1,
    );
    assert_eq!(sandbox.read("cleaned"), "cleaned\n");
    assert_nothing_left(&sandbox);
}

#[test]
fn background_processes_end_with_their_job() {
    let sandbox = run_job("run = 'sleep 600 & sh -c \"sleep 601; true\" & echo done'\n", 0);
    assert_nothing_left(&sandbox);
}

#[test]
fn a_process_that_left_the_group_is_ended_before_the_next_attempt() {
    let sandbox = run_job(
        "retry = { max_attempts = 2, delay = \"10ms\" }\n\
         run = 'if [ $WINDLASS_ATTEMPT = 1 ]; then setsid sleep 600 & exit 1; fi'\n",
        0,
    );
    assert_eq!(sandbox.tables().jobs()[0].attempt, 2);
    assert_nothing_left(&sandbox);
}

/// Starts a process in its own session, and continues when it runs.
const ESCAPE: &str =
    "setsid sh -c ': > escaped; exec sleep 600' &\nuntil [ -e escaped ]; do sleep 0.01; done\n";

fn escaping_job(keys: &str, last_command: &str) -> String {
    format!("{keys}run = \"\"\"\n{ESCAPE}{last_command}\n\"\"\"\n")
}

#[test]
fn a_success_leaves_processes_in_their_own_session() {
    let sandbox = run_job(&escaping_job("", "exit 0"), 0);
    let left: Vec<String> = sandbox.leftovers().into_iter().map(|process| process.command).collect();
    assert_eq!(left, ["sleep 600 "]);
}

#[test]
fn every_other_end_ends_processes_in_their_own_session() {
    for (what, keys, last_command) in [
        ("a failure", "", "exit 7"),
        ("a failure by its output", "output = \"json\"\n", "echo no json"),
        ("a signal", "", "kill -9 $$"),
        ("a timeout", "timeout = \"2s\"\n", "sleep 600"),
    ] {
        let sandbox = run_job(&escaping_job(keys, last_command), 1);
        assert!(sandbox.path("escaped").exists(), "{what}: it was too slow");
        assert_eq!(sandbox.leftovers(), [], "{what}");
    }
}

#[test]
fn a_cancel_ends_processes_in_their_own_session() {
    let sandbox = Sandbox::new();
    let job = format!("name = \"one\"\n[jobs.only]\n{}", escaping_job("", "sleep 600"));
    let file = sandbox.write("one.toml", job);
    let mut engine = sandbox.spawn(&["run", &file]);
    eventually("the process", || sandbox.path("escaped").exists().then_some(()));
    sandbox.run(&["cancel", "1"]).exited(0);
    engine.wait().exited(3);
    assert_nothing_left(&sandbox);
}

#[test]
fn an_output_that_is_not_a_regular_file_fails_only_its_job() {
    let sandbox = Sandbox::new();
    let socket =
        "python3 -c 'import os, socket as s; s.socket(s.AF_UNIX).bind(os.environ[\"WINDLASS_OUTPUT\"])'";
    let made = [
        ("fifo", "mkfifo \"$WINDLASS_OUTPUT\"", "a FIFO"),
        ("socket", socket, "a socket"),
        ("directory", "mkdir \"$WINDLASS_OUTPUT\"", "a directory"),
        ("link", "ln -s /dev/zero \"$WINDLASS_OUTPUT\"", "a symbolic link"),
    ];
    let jobs: String =
        made.iter().map(|(name, run, _)| format!("[jobs.{name}]\nrun = '''{run}'''\n")).collect();
    let file = sandbox.write("outputs.toml", format!("name = \"outputs\"\n{jobs}"));
    // A blocked thread would prevent the other jobs from running.
    sandbox.run(&["run", &file, "--threads", "1"]).exited(1);
    let jobs = sandbox.tables().jobs_of(1);
    for (name, _, kind) in made {
        let error = jobs[name].last_error.clone().unwrap_or_default();
        assert!(error.starts_with("the file WINDLASS_OUTPUT is ") && error.contains(kind), "{name}: {error}");
    }
}

#[test]
fn a_last_line_without_a_newline_is_recorded() {
    let sandbox = run_job("run = 'printf out; printf err >&2; exit 7'\n", 1);
    let tables = sandbox.tables();
    let job = &tables.jobs()[0];
    let log = tables.log(job.id);
    let mut lines: Vec<(&str, &str)> =
        log.iter().map(|line| (line.stream.as_str(), line.text.as_str())).collect();
    lines.sort_unstable();
    assert_eq!(lines, [("stderr", "err"), ("stdout", "out")]);
    assert_eq!(job.last_error.as_deref(), Some("exit code 7: err"));
}

#[test]
fn the_environment_is_the_documented_one() {
    let sandbox = Sandbox::new();
    let file = sandbox.write(
        "env.toml",
        r#"
name = "env"
[params]
some_day = { type = "date", default = "2026-01-31" }
[env]
OF_WORKFLOW = "for {{ params.some_day }}"
OF_BOTH = "workflow"
[jobs.only]
env = { OF_BOTH = "job" }
dir = "below"
run = 'env | sort; pwd; if read line; then echo stdin; fi'
"#,
    );
    std::fs::create_dir(sandbox.path("below")).expect("a folder can be made");
    let mut command = sandbox.command(&["run", &file]);
    command.env("FROM_OUTSIDE", "yes").env("WINDLASS_LEASE", "45s");
    sandbox.start(command).wait().exited(0);
    let job = &sandbox.tables().jobs()[0];
    let log = sandbox.tables().log(job.id);
    let lines: Vec<&str> = log.iter().map(|line| line.text.as_str()).collect();
    let expected = [
        "FROM_OUTSIDE=yes".to_owned(),
        "OF_BOTH=job".to_owned(),
        "OF_WORKFLOW=for 2026-01-31".to_owned(),
        "WINDLASS_ATTEMPT=1".to_owned(),
        format!("WINDLASS_JOB_ID={}", job.id),
        "WINDLASS_JOB_NAME=only".to_owned(),
        "WINDLASS_PARAM_SOME_DAY=2026-01-31".to_owned(),
        "WINDLASS_RUN_ID=1".to_owned(),
        sandbox.path("below").canonicalize().expect("the folder is there").to_string_lossy().into_owned(),
    ];
    for line in &expected {
        assert!(lines.contains(&line.as_str()), "{line:?} is not in {lines:#?}");
    }
    let documented =
        ["ATTEMPT", "IDEMPOTENCY_KEY", "JOB_ID", "JOB_NAME", "MARK", "OUTPUT", "PARAM_SOME_DAY", "RUN_ID"];
    let given: Vec<&str> = lines
        .iter()
        .filter_map(|line| line.strip_prefix("WINDLASS_")?.split_once('='))
        .map(|(name, _)| name)
        .collect();
    assert_eq!(given, documented, "variables of the engine's own");
    assert!(!lines.contains(&"stdin"), "the job could read the engine's input");
}

#[test]
fn outputs_are_handed_on() {
    let sandbox = Sandbox::new();
    let file = sandbox.write(
        "outputs.toml",
        r#"
name = "outputs"
[jobs.text]
run = 'printf "two\nlines\n\n"'
output = "text"
[jobs.json]
run = 'echo "{\"list\": [1, {\"deep\": \"value\"}]}"'
output = "json"
[jobs.file]
run = 'echo "{\"n\": 7}" > "$WINDLASS_OUTPUT"; echo not this'
[jobs.joined]
needs = ["text", "json", "file"]
command = ["printf", "%s|", "{{ jobs.text.output }}", "{{ jobs.json.output.list[1].deep }}", "{{ jobs.file.output.n + 1 }}"]
output = "text"
"#,
    );
    sandbox.run(&["run", &file]).exited(0);
    let output = sandbox.tables().jobs_of(1)["joined"].output.clone();
    assert_eq!(output.as_deref(), Some("\"two\\nlines|value|8|\""));
}

#[test]
fn output_that_is_not_json_fails_the_attempt() {
    let sandbox = run_job("run = 'echo no json'\noutput = \"json\"\n", 1);
    let error = sandbox.tables().jobs()[0].last_error.clone().unwrap_or_default();
    assert!(error.to_lowercase().contains("json"), "{error}");
}

#[test]
fn a_parameter_cannot_become_a_command() {
    let sandbox = Sandbox::new();
    let file = sandbox.write(
        "inject.toml",
        r#"
name = "inject"
[params]
text = { type = "string" }
[jobs.only]
env = { TEXT = "{{ params.text }}" }
run = 'printf %s "$TEXT"; printf "|%s" "$WINDLASS_PARAM_TEXT"'
output = "text"
"#,
    );
    let evil = "$(touch hacked) `touch hacked`; touch hacked '\" {{ 1 + 1 }}";
    sandbox.run(&["run", &file, "-p", &format!("text={evil}")]).exited(0);
    assert!(!sandbox.path("hacked").exists());
    let output: serde_json::Value =
        serde_json::from_str(sandbox.tables().jobs()[0].output.as_deref().unwrap_or("null")).expect("JSON");
    assert_eq!(output, format!("{evil}|{evil}"));
}

#[test]
fn a_job_needs_at_most_four_open_files() {
    const JOBS: usize = 40;
    /// The open files of the engine itself, beside those of the jobs.
    const FILES: usize = 4 * JOBS + 80;
    let sandbox = Sandbox::new();
    // Each job waits until all run.
    let job = format!(
        "run = '''\n: >\"begun-$WINDLASS_JOB_ID\"\nuntil set -- begun-* && [ $# -ge {JOBS} ]; do sleep 0.1; done\n'''\n"
    );
    let jobs: String =
        (0..JOBS).map(|number| format!("[jobs.j{number}]\ntimeout = \"60s\"\n{job}")).collect();
    let file = sandbox.write("many.toml", format!("name = \"many\"\n{jobs}"));
    let limited = format!("ulimit -n {FILES} && exec \"$@\"");
    let program = windlass_tests::binary::windlass().display().to_string();
    let threads = JOBS.to_string();
    let arguments = ["-c", &limited, "sh", &program, "run", &file, "--threads", &threads];
    sandbox.start(sandbox.prepared(Command::new("sh"), &arguments)).wait().exited(0);
    assert_nothing_left(&sandbox);
}
