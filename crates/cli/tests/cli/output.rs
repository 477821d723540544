//! What `run`, `resume`, `retry`, `rerun` and `watch` show of the output of jobs, on a terminal and in a pipe.

use std::process::Command;

use crate::support::{BAD, Bench, GOOD, Outcome, Running, SLOW};

/// Two jobs after each other, and one beside them.
const SIDE_BY_SIDE: &str = r#"
name = "wide"
[jobs.first]
run = "echo one; echo two >&2"
[jobs.second]
needs = ["first"]
run = "echo three"
[jobs.beside]
run = "echo four"
"#;

/// Jobs side by side between two that are alone.
const DIAMOND: &str = r#"
name = "diamond"
[jobs.head]
run = "echo the head"
[jobs.left]
needs = ["head"]
run = "echo the left"
[jobs.right]
needs = ["head"]
run = "echo the right"
[jobs.report]
needs = ["left", "right"]
run = "echo the table"
"#;

/// Runs a command on a terminal of 80 columns.
fn on_terminal(bench: &Bench, arguments: &str) -> Outcome {
    let mut command = Command::new("script");
    let windlass = format!("stty cols 80 rows 24; {} {arguments}", env!("CARGO_BIN_EXE_windlass"));
    command.args(["-qec", &windlass, "/dev/null"]).env("TERM", "xterm-256color");
    Running::start(bench.prepared(command)).wait()
}

/// The lines that stay on the terminal: without colours, and without what was erased.
fn left_on_screen(outcome: &Outcome) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in outcome.stdout.replace('\r', "").lines() {
        let mut rest = line;
        while let Some(code) = rest.strip_prefix("\u{1b}[").and_then(|code| code.split_once("A\u{1b}[J")) {
            let rows: usize = code.0.parse().unwrap();
            lines.truncate(lines.len() - rows);
            rest = code.1;
        }
        lines.push(console::strip_ansi_codes(rest).into_owned());
    }
    lines
}

#[test]
fn jobs_one_after_the_other_show_their_output_as_it_is() {
    let bench = Bench::new();
    bench.write("good.toml", GOOD);
    let outcome = bench.windlass(&["run", "good.toml"]);
    assert_eq!(outcome.code(0).stdout, "fetched\nreport of 2026-11-20\n");
    outcome.tells(&["fetch started", "warned\n", "fetch successful", "report started", "report successful"]);
}

#[test]
fn in_a_pipe_each_line_has_the_name_of_its_job() {
    let bench = Bench::new();
    bench.write("wide.toml", SIDE_BY_SIDE);
    let outcome = bench.windlass(&["run", "wide.toml"]);
    let mut lines: Vec<&str> = outcome.code(0).stdout.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["beside | four", "first  | one", "second | three"]);
    outcome.tells(&["first started", "first  | two\n", "first successful"]);
}

#[test]
fn the_option_chooses_the_output() {
    let bench = Bench::new();
    bench.write("bad.toml", BAD);
    let all = bench.windlass(&["run", "bad.toml", "--show", "all"]);
    assert!(all.code(1).stdout.contains("other | fine\n"), "{all:#?}");
    assert_eq!(all.stdout.matches("load  | ").count(), 100, "{all:#?}");
    let failed = bench.windlass(&["retry", "1", "--show", "failed"]);
    assert_eq!(failed.code(1).stdout, "");
    failed.tells(&[
        "load failed after ",
        "    | … 1 line before: windlass logs 1/load\n    | 2\n",
        "    | boom\n",
    ]);
    let none = bench.windlass(&["rerun", "1", "--show", "none"]);
    assert_eq!(none.code(1).stdout, "");
    assert!(!none.stderr.contains("| ") && !none.stderr.contains("fine"), "{none:#?}");
    none.tells(&["load failed after ", "exit code 3: boom", "✗ load failed", "windlass logs 2 load"]);
    bench.windlass(&["run", "bad.toml", "--show", "some"]).fails(2, &["--show <all|failed|none>", "failed"]);
}

#[test]
fn a_document_has_standard_output_for_itself() {
    let bench = Bench::new();
    bench.write("good.toml", GOOD);
    let outcome = bench.windlass(&["run", "good.toml", "-o", "json"]);
    let run: serde_json::Value = serde_json::from_str(&outcome.code(0).stdout).unwrap();
    assert_eq!(run["status"], "SUCCESSFUL");
    outcome.tells(&["fetch started", "fetched\n", "fetch successful", "report of 2026-11-20\n"]);
}

#[test]
fn watch_shows_the_output_of_jobs_that_another_process_executes() {
    let bench = Bench::new();
    bench.write("slow.toml", SLOW);
    bench.windlass(&["submit", "slow.toml"]).code(0);
    let watch = bench.start(&["watch", "1"]);
    watch.wait_until_it_tells(&bench, "run 1  slow");
    bench.write("go", "");
    bench.windlass(&["worker", "--until-idle"]).code(0);
    assert_eq!(watch.wait().code(0).stdout, "went\nafter\n");
}

#[test]
fn a_reader_that_goes_away_does_not_stop_the_run() {
    let bench = Bench::new();
    bench.write(
        "many.toml",
        "name = 'many'\n[jobs.a]\nrun = 'seq 10000'\n[jobs.b]\nneeds = ['a']\nrun = 'echo end'\n",
    );
    let mut command = Command::new("sh");
    command.args(["-c", "\"$0\" run many.toml | head -n 1", env!("CARGO_BIN_EXE_windlass")]);
    let outcome = Running::start(bench.prepared(command)).wait();
    assert_eq!(outcome.code(0).stdout, "1\n");
    outcome.tells(&["b successful", "run 1 successful"]);
    assert!(!outcome.stderr.contains("warning"), "{outcome:#?}");
}

#[test]
fn every_line_of_all_attempts_is_shown_once_and_in_order() {
    let bench = Bench::new();
    bench.write(
        "flaky.toml",
        r#"
        name = "flaky"
        [jobs.flaky]
        run = 'seq $((WINDLASS_ATTEMPT * 1000 + 1)) $((WINDLASS_ATTEMPT * 1000 + 700)); exit $((2 - WINDLASS_ATTEMPT))'
        retry = { max_attempts = 2, delay = "10ms" }
        "#,
    );
    let outcome = bench.windlass(&["run", "flaky.toml"]);
    let expected: String = (1_001..=1_700).chain(2_001..=2_700).map(|line| format!("{line}\n")).collect();
    assert_eq!(outcome.code(0).stdout, expected);
}

#[test]
fn a_terminal_ends_with_the_output_of_the_last_job() {
    let bench = Bench::new();
    bench.write("diamond.toml", DIAMOND);
    let outcome = on_terminal(&bench, "run diamond.toml");
    let lines = left_on_screen(outcome.code(0));
    let place = |text: &str| lines.iter().position(|line| line == text);
    let heading = place("› report").unwrap_or_else(|| panic!("{lines:#?}"));
    assert_eq!(lines[heading + 1], "the table", "{lines:#?}");
    assert!(lines[heading + 2].starts_with("✓ report  "), "{lines:#?}");
    assert_eq!(place("the head").map(|head| lines[head - 1].as_str()), Some("› head"), "{lines:#?}");
    for gone in ["the left", "the right"] {
        assert!(!lines.iter().any(|line| line.contains(gone)), "only while it runs: {lines:#?}");
    }
    assert!(lines.iter().all(|line| console::measure_text_width(line) < 80), "{lines:#?}");
}

#[test]
fn a_terminal_shows_one_job_as_its_program_would_be() {
    let bench = Bench::new();
    bench.write("one.toml", "name = 'one'\n[jobs.only]\nrun = 'echo hello; echo oh >&2'\n");
    let outcome = on_terminal(&bench, "run one.toml");
    let lines = left_on_screen(outcome.code(0));
    assert_eq!(lines[..3], ["run 1  one  1 job", "hello", "oh"], "{lines:#?}");
    assert!(lines[3].starts_with("✓ only  "), "{lines:#?}");
}

#[test]
fn a_terminal_says_a_failure_where_it_happened_and_in_the_summary() {
    let bench = Bench::new();
    bench.write("bad.toml", BAD);
    let outcome = on_terminal(&bench, "run bad.toml");
    let lines = left_on_screen(outcome.code(1));
    let text = lines.join("\n");
    assert_eq!(text.matches("exit code 3: boom").count(), 2, "{text}");
    assert_eq!(text.matches("| boom").count(), 1, "{text}");
    assert!(!text.contains("WARN") && !text.contains("warning"), "{text}");
    assert!(!text.contains("fine"), "only while it runs: {text}");
}

#[test]
fn a_quiet_run_shows_what_its_jobs_write_and_nothing_else() {
    let bench = Bench::new();
    bench.write("good.toml", GOOD);
    bench.write("bad.toml", BAD);
    let good = bench.windlass(&["run", "-q", "good.toml"]);
    assert_eq!(good.code(0).stdout, "fetched\nreport of 2026-11-20\n");
    assert_eq!(good.stderr, "warned\n");
    let bad = bench.windlass(&["run", "--quiet", "bad.toml", "--show", "none"]);
    assert_eq!(bad.code(1).stdout, "");
    assert!(bad.stderr.starts_with("\n✗ load failed: exit code 3: boom\n"), "{bad:#?}");
    bad.tells(&["run 2 failed", "windlass retry 2"]);
    bench.windlass(&["runs", "-q", "-v"]).fails(2, &["--quiet", "--verbose"]);
}

#[test]
fn the_log_of_the_engine_is_shown_on_request() {
    let bench = Bench::new();
    bench.write("bad.toml", BAD);
    let usual = bench.windlass(&["run", "bad.toml"]);
    assert!(!usual.stderr.contains("WARN") && !usual.stderr.contains("job failed"), "{usual:#?}");
    let verbose = bench.windlass(&["run", "-v", "bad.toml"]);
    verbose.code(1).tells(&["INFO run started", "WARN job failed"]);
}

#[test]
fn colours_follow_the_option_before_the_environment() {
    let bench = Bench::new();
    bench.write("good.toml", GOOD);
    bench.windlass(&["run", "good.toml"]).code(0);
    let runs = |arguments: &[&str], variables: &[(&str, &str)]| {
        let mut command = bench.command();
        command.arg("runs").args(arguments).envs(variables.iter().copied());
        Running::start(command).wait().stdout.contains('\u{1b}')
    };
    assert!(!runs(&[], &[]));
    assert!(runs(&["--color", "always"], &[]));
    assert!(runs(&["--color=always"], &[("NO_COLOR", "1")]), "the option is asked for now");
    assert!(runs(&[], &[("CLICOLOR_FORCE", "1")]));
    assert!(!runs(&[], &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));
    assert!(!runs(&["--color", "never"], &[("CLICOLOR_FORCE", "1")]));
    let wrong = bench.windlass(&["--color=always", "runns"]);
    assert!(wrong.stderr.contains('\u{1b}'), "errors of the command line too: {wrong:#?}");
}

#[test]
fn times_are_local_and_utc_on_request() {
    let bench = Bench::new();
    bench.write("good.toml", GOOD);
    let in_tokyo = |arguments: &[&str]| {
        let mut command = bench.command();
        command.args(arguments).env("TZ", "Asia/Tokyo");
        Running::start(command).wait()
    };
    let local = in_tokyo(&["run", "good.toml"]);
    let utc = in_tokyo(&["run", "--utc", "good.toml"]);
    let clock = |outcome: &Outcome| -> String {
        outcome.code(0).stderr.lines().nth(1).unwrap().split(' ').next().unwrap().to_owned()
    };
    assert_eq!(clock(&local).len(), "12:03:04".len(), "{local:#?}");
    assert_eq!(clock(&utc).len(), "12:03:04Z".len(), "{utc:#?}");
    let hour = |clock: &str| clock[..2].parse::<i32>().unwrap();
    let distance = (hour(&clock(&local)) - hour(&clock(&utc))).rem_euclid(24);
    assert!(distance == 9 || distance == 8, "{local:#?} {utc:#?}");
    in_tokyo(&["inspect", "1"]).code(0).says(&["created", " +09:00 (", "started", " +09:00 ("]);
    in_tokyo(&["inspect", "1", "--utc"]).code(0).says(&["created", " UTC (", "started", " UTC ("]);
    let log = in_tokyo(&["worker", "--until-idle"]);
    log.code(0).tells(&["+09:00", "INFO", "worker started"]);
    let log = in_tokyo(&["worker", "--until-idle", "--utc"]);
    log.code(0).tells(&["Z ", "INFO", "worker started"]);
}

#[test]
fn allowed_failures_have_a_count_and_a_mark_of_their_own() {
    let bench = Bench::new();
    bench.write(
        "lint.toml",
        "name = 'lint'\n[jobs.lint]\nrun = 'exit 1'\nallow_failure = true\n[jobs.build]\nrun = 'true'\n",
    );
    let outcome = bench.windlass(&["run", "lint.toml"]);
    outcome.code(0).tells(&[
        "which is allowed",
        "run 1 successful in ",
        ": 1 successful, 1 allowed failure\n",
    ]);
    bench.windlass(&["inspect", "1"]).code(0).says(&["FAILED (allowed)", "! lint failed, which is allowed"]);
    bench.windlass(&["graph", "1"]).code(0).says(&["FAILED (allowed)"]);
    let picture = bench.windlass(&["graph", "1", "--format", "mermaid"]);
    assert!(picture.stdout.contains("classDef allowed ") && !picture.stdout.contains("classDef failed"));
    let screen = on_terminal(&bench, "run lint.toml").stdout;
    let red = "\u{1b}[31m";
    assert!(screen.contains("\u{1b}[33m!\u{1b}[0m lint") && !screen.contains(red), "{screen:?}");
}

#[test]
fn a_failed_run_says_how_many_jobs_failed() {
    let bench = Bench::new();
    bench.write("bad.toml", BAD);
    bench.write("good.toml", GOOD);
    bench.windlass(&["run", "bad.toml"]).code(1);
    bench.windlass(&["run", "good.toml"]).code(0);
    let runs = bench.windlass(&["runs"]);
    runs.code(0).says(&["JOBS", "SUCCESSFUL", "  2  ", "FAILED", "1/3 failed"]);
    assert!(!runs.stdout.contains("3/3"), "{runs:#?}");
}

/// A job with colours, one of which it does not end, and with codes that move the cursor.
const RED: &str = r#"
name = "red"
[jobs.red]
run = """printf '\\033[31mred\\033[0m plain\\n\\033[2J\\033[1;32mgreen\\n'; printf '\\033[35mno\\033[0m\\n' >&2; exit 3"""
"#;

#[test]
fn colours_of_jobs_are_kept_and_end_with_their_line() {
    let bench = Bench::new();
    bench.write("red.toml", RED);
    let screen = on_terminal(&bench, "run red.toml");
    let red = "\u{1b}[31mred\u{1b}[0m plain\r\n";
    let green = "\u{1b}[1;32mgreen\u{1b}[0m\r\n";
    screen.code(1).says(&[red, green, "\u{1b}[35mno\u{1b}[0m\r\n"]);
    let logs = bench.windlass(&["logs", "1", "--color", "always"]);
    logs.code(0).says(&["\u{1b}[31mred\u{1b}[0m plain\n", "\u{1b}[1;32mgreen\u{1b}[0m\n"]);
    for (what, arguments) in [
        ("a pipe", ["logs", "1", "--color", "auto"]),
        ("--color never", ["logs", "1", "--color", "never"]),
        ("JSON", ["logs", "1", "-o", "json"]),
        ("the error of the job", ["inspect", "1", "-o", "json"]),
    ] {
        let outcome = bench.windlass(&arguments);
        let text = &outcome.code(0).stdout;
        assert!(!text.contains('\u{1b}') && !text.contains("u001b"), "{what}: {text:?}");
    }
    assert_eq!(bench.json(&["inspect", "1/red"])["last_error"], "exit code 3: no");
    assert_eq!(bench.windlass(&["run", "red.toml"]).stdout, "red plain\ngreen\n");
}

#[test]
fn jobs_are_asked_for_colours_unless_somebody_has_decided() {
    let bench = Bench::new();
    let asked = |key: &str, variables: &[(&str, &str)]| {
        let script = "run = 'echo \"${FORCE_COLOR-unset} ${CLICOLOR_FORCE-unset}\"'";
        bench.write("colour.toml", &format!("name = 'colour'\n[jobs.a]\n{script}\n{key}\n"));
        let mut command = bench.command();
        command.args(["run", "colour.toml"]).envs(variables.iter().copied());
        Running::start(command).wait().code(0).stdout.trim_end().to_owned()
    };
    assert_eq!(asked("", &[]), "1 1");
    assert_eq!(asked("env = { NO_COLOR = '1' }", &[]), "unset unset");
    assert_eq!(asked("env = { NO_COLOR = '' }", &[("NO_COLOR", "1")]), "1 1");
    assert_eq!(asked("", &[("NO_COLOR", "1")]), "unset unset");
    assert_eq!(asked("env = { FORCE_COLOR = '0' }", &[]), "0 unset");
    assert_eq!(asked("output = 'text'", &[]), "unset unset", "its standard output is a value");
}

#[test]
fn a_retried_run_took_the_time_of_all_its_executions() {
    let bench = Bench::new();
    bench.write("bad.toml", "name = 'bad'\n[jobs.a]\nrun = 'sleep 0.3; exit 3'\n");
    bench.windlass(&["run", "bad.toml"]).code(1);
    let first = bench.json(&["inspect", "1"])["duration_ms"].as_i64().unwrap();
    bench.windlass(&["retry", "1"]).code(1);
    let both = bench.json(&["inspect", "1"])["duration_ms"].as_i64().unwrap();
    assert!(first >= 300 && both >= first + 300, "{first} {both}");
    bench.windlass(&["inspect", "1"]).code(0).says(&["took", "before", "ms of it before the last retry"]);
}
