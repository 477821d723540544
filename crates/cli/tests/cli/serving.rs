//! The configuration of `serve`: its errors, and the order of options, variables and the file. The service itself is
//! tested in the black-box tests.

use std::fs;

use rustix::process::Signal;

use crate::support::{Bench, Outcome, Running};

/// Runs `serve --check` with environment variables.
fn check(bench: &Bench, arguments: &[&str], variables: &[(&str, &str)]) -> Outcome {
    let mut command = bench.command();
    command.env_remove("WINDLASS_DB").args(["serve", "--check"]).args(arguments);
    for (name, value) in variables {
        command.env(name, value);
    }
    Running::start(command).wait()
}

#[test]
fn without_a_configuration_there_are_defaults() {
    let outcome = check(&Bench::new(), &["--threads", "4"], &[]);
    let expected = "\
config       none
database     windlass.db
durability   full
lease        30s
workflows    none
threads      4
queues       all
capabilities none
code_version 0
grace        30s
retention    everything is kept
web          http://127.0.0.1:9463/
log          text, info
";
    assert_eq!(outcome.code(0).stdout, expected);
    assert_eq!(outcome.stderr, "");
}

const FULL: &str = "\
database = 'data/jobs.db'
durability = 'normal'
lease = '1m'
workflows = 'flows'
threads = 3
queues = ['default', 'mail']
capabilities = ['gpu']
code_version = 7
grace = '2m'
log_format = 'json'
log_level = 'debug'

[retention]
max_age = '30d'
max_runs_per_workflow = 100

[events]
keep = '3d'
";

#[test]
fn a_configuration_is_found_and_its_paths_start_from_its_folder() {
    let bench = Bench::new();
    fs::create_dir_all(bench.path("etc/flows")).unwrap();
    bench.write("etc/flows/nightly.toml", "[jobs.only]\nrun = 'true'\n");
    bench.write("etc/windlass.toml", FULL);
    let expected = "\
config       etc/windlass.toml
database     etc/data/jobs.db
durability   normal
lease        1m
workflows    etc/flows
threads      3
queues       default, mail
capabilities gpu
code_version 7
grace        2m
retention    for 30d, at most 100 runs of each workflow; events for 3d
web          http://127.0.0.1:9463/
log          json, debug
etc/flows/nightly.toml: valid, workflow `nightly`, no schedule
";
    assert_eq!(check(&bench, &["--config", "etc/windlass.toml"], &[]).code(0).stdout, expected);
    assert_eq!(check(&bench, &[], &[("WINDLASS_CONFIG", "etc/windlass.toml")]).code(0).stdout, expected);
    assert!(!bench.path("etc/data").exists(), "a check touches nothing");
}

#[test]
fn the_command_line_wins_over_the_environment_and_that_over_the_file() {
    let bench = Bench::new();
    fs::create_dir(bench.path("flows")).unwrap();
    bench.write("windlass.toml", FULL);
    let variables = [
        ("WINDLASS_DB", "environment.db"),
        ("WINDLASS_LEASE", "2m"),
        ("WINDLASS_GRACE", "3m"),
        ("WINDLASS_LOG_FORMAT", "text"),
    ];
    check(&bench, &[], &variables).code(0).says(&[
        "config       windlass.toml\n",
        "database     environment.db\n",
        "durability   normal\n",
        "lease        2m\n",
        "grace        3m\n",
        "log          text, debug\n",
    ]);
    let options =
        ["--db", "option.db", "--lease", "3m", "--grace", "4m", "--queue", "mail", "--threads", "9"];
    check(&bench, &options, &variables).code(0).says(&[
        "database     option.db\n",
        "lease        3m\n",
        "threads      9\n",
        "queues       mail\n",
        "grace        4m\n",
    ]);
}

#[test]
fn an_invalid_variable_is_named_in_the_error() {
    let bench = Bench::new();
    let cases = [
        ("WINDLASS_GRACE", "--grace"),
        ("WINDLASS_LEASE", "--lease"),
        ("WINDLASS_DURABILITY", "--durability"),
        ("WINDLASS_LOG_FORMAT", "--log-format"),
    ];
    for (variable, option) in cases {
        let blamed = check(&bench, &[], &[(variable, "bad")]);
        blamed.fails(2, &["invalid value 'bad'", &format!("'{variable}'")]);
        assert!(!blamed.stderr.contains(option), "{blamed:#?}");
        for written in [vec![option, "worse"], vec![&*format!("{option}=worse")]] {
            let blamed = check(&bench, &written, &[(variable, "bad")]);
            blamed.fails(2, &["invalid value 'worse'", option]);
            assert!(!blamed.stderr.contains(variable), "{blamed:#?}");
        }
    }
}

#[test]
fn every_error_of_a_configuration_has_its_line() {
    let bench = Bench::new();
    let broken = "\
databse = 'x.db'
lease = '50ms'
threads = 0
queues = 'default'
grace = 30
log_format = 'xml'
[retention]
max_age = '30'
max_runs = 3
";
    bench.write("windlass.toml", broken);
    let expected = "\
error: unknown key `databse` in the configuration
 --> windlass.toml:1:1
  |
1 | databse = 'x.db'
  | ^^^^^^^ did you mean `database`?

error: `lease` is out of range
 --> windlass.toml:2:9
  |
2 | lease = '50ms'
  |         ^^^^^^ must be between 100ms and 1d

error: `threads` is out of range
 --> windlass.toml:3:11
  |
3 | threads = 0
  |           ^ must be between 1 and 1024

error: `queues` must be a list of strings
 --> windlass.toml:4:10
  |
4 | queues = 'default'
  |          ^^^^^^^^^ found a string

error: `grace` must be a duration with a unit
 --> windlass.toml:5:9
  |
5 | grace = 30
  |         ^^ found an integer
  |
  = help: write \"30s\" for seconds, \"30m\" for minutes

error: `log_format` has no value \"xml\"
 --> windlass.toml:6:14
  |
6 | log_format = 'xml'
  |              ^^^^^ must be one of \"text\", \"json\"

error: `max_age` is not a duration
 --> windlass.toml:8:11
  |
8 | max_age = '30'
  |           ^^^^ a duration needs a unit: `30s` for seconds, `30m` for minutes

error: unknown key `max_runs` in `retention`
 --> windlass.toml:9:1
  |
9 | max_runs = 3
  | ^^^^^^^^ not a key of this table
  |
  = help: the keys are max_age, max_runs_per_workflow

windlass.toml: 8 errors

  help: correct the file; `windlass serve --check --config windlass.toml` checks it
";
    let outcome = check(&bench, &[], &[]);
    assert_eq!(outcome.code(2).stderr, expected);
    assert_eq!(outcome.stdout, "");
    // A service does not start with half a configuration either.
    bench.windlass(&["serve"]).code(2).tells(&["unknown key `databse`"]);
}

#[test]
fn a_check_shows_the_errors_of_the_workflows() {
    let bench = Bench::new();
    fs::create_dir(bench.path("flows")).unwrap();
    bench.write("flows/good.toml", "[jobs.only]\nrun = 'true'\n[[schedules]]\ncron = '0 3 * * *'\n");
    bench.write("flows/bad.toml", "[jobs.only]\nrnu = 'true'\n");
    let outcome = check(&bench, &["--workflows", "flows"], &[]);
    outcome.code(2).says(&["flows/good.toml: valid, workflow `good`", "0 3 * * *"]);
    outcome.tells(&["unknown key `rnu`", "1 of 2 files are invalid"]);
    check(&bench, &["--workflows", "missing"], &[])
        .code(2)
        .tells(&["the folder missing does not exist", "mkdir -p missing"]);
    let file = bench.write("one.toml", crate::support::GOOD);
    check(&bench, &["--workflows", &file.to_string_lossy()], &[])
        .code(2)
        .tells(&["one.toml is a file, not a folder"]);
    check(&bench, &["--config", "missing.toml"], &[]).code(2).tells(&["missing.toml does not exist"]);
}

#[test]
fn a_password_in_the_configuration_is_never_shown() {
    let bench = Bench::new();
    bench.write("windlass.toml", "database = 'postgres://app:secret@db.example/jobs'\n");
    let outcome = check(&bench, &[], &[]);
    outcome.code(0).says(&["db.example/jobs"]);
    assert!(!format!("{outcome:?}").contains("secret"), "{outcome:#?}");
}

#[test]
fn the_log_is_lines_or_json_and_its_level_is_chosen() {
    let bench = Bench::new();
    bench.write("bad.toml", "[jobs.only]\nrun = 'exit 3'\nretry = { max_attempts = 2, delay = '10ms' }\n");
    bench.windlass(&["submit", "bad.toml"]).code(0);
    let worker = bench.windlass(&["worker", "--until-idle", "--log-format", "json"]);
    let lines: Vec<serde_json::Value> =
        worker.code(0).stderr.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let found = |message: &str| {
        let line = lines.iter().find(|line| line["message"] == message);
        line.unwrap_or_else(|| panic!("{message:?} is missing: {lines:#?}"))
    };
    assert_eq!(found("run started")["workflow"], "bad");
    let attempt = found("attempt failed");
    assert_eq!((&attempt["job"], &attempt["attempt"]), (&"1/only".into(), &1.into()));
    assert_eq!(attempt["error"], "exit code 3");
    assert!(attempt["next_try_in_ms"].is_i64());
    let failed = found("job failed");
    assert_eq!((&failed["level"], &failed["attempt"]), (&"WARN".into(), &2.into()));
    let ended = found("run ended");
    assert_eq!((&ended["status"], ended["took_ms"].is_i64()), (&"FAILED".into(), true));

    bench.windlass(&["submit", "bad.toml"]).code(0);
    let mut command = bench.command();
    command.args(["worker", "--until-idle"]).env("RUST_LOG", "warn");
    let quiet = Running::start(command).wait();
    quiet.code(0).tells(&[" WARN job failed ", "2/only"]);
    assert!(!quiet.stderr.contains("run started"), "{quiet:#?}");

    bench.windlass(&["submit", "bad.toml"]).code(0);
    let mut command = bench.command();
    command.args(["worker", "--until-idle"]).env("RUST_LOG", "verbose");
    Running::start(command).wait().code(0).tells(&[
        "ERROR RUST_LOG is invalid and ignored",
        "`verbose` is not a level: write error, warn, info",
        " INFO run started",
    ]);
}

#[test]
fn the_first_line_describes_the_service() {
    let bench = Bench::new();
    fs::create_dir(bench.path("flows")).unwrap();
    bench.write("flows/nightly.toml", "[jobs.only]\nrun = 'true'\n");
    let service =
        bench.start(&["serve", "--workflows", "flows", "--queue", "mail,default", "--threads", "2"]);
    service.wait_until_it_tells(&bench, "queues mail, default, 1 workflow");
    service.signal(Signal::TERM);
    service.wait().code(0).tells(&["workflow registered", " serves ", "2 threads"]);
    bench.windlass(&["serve", "--workflows", "missing"]).code(2).tells(&["missing does not exist"]);
    bench.windlass(&["serve", "--queue", "a,,b"]).fails(2, &["the name of a queue is empty"]);
}
