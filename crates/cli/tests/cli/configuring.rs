//! The configuration file, which every verb reads.

use std::fs;

use rustix::process::Signal;

use crate::support::{Bench, GOOD, Outcome, Running, SLOW};

/// Runs `windlass` in a folder of the bench, without a database in the environment.
fn windlass_in(bench: &Bench, folder: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Outcome {
    let mut command = bench.command();
    command.env_remove("WINDLASS_DB").current_dir(bench.path(folder)).args(arguments);
    for (name, value) in variables {
        command.env(name, value);
    }
    Running::start(command).wait()
}

#[test]
fn all_verbs_use_the_database_of_the_configuration() {
    let bench = Bench::new();
    fs::create_dir_all(bench.path("project/flows/daily")).unwrap();
    bench.write("project/windlass.toml", "database = 'data/jobs.db'\n");
    fs::create_dir(bench.path("project/data")).unwrap();
    bench.write("project/good.toml", GOOD);
    windlass_in(&bench, "project", &["run", "good.toml"], &[]).code(0);
    assert!(bench.path("project/data/jobs.db").exists());
    for folder in ["project", "project/flows/daily"] {
        windlass_in(&bench, folder, &["runs"], &[]).code(0).says(&["good"]);
        windlass_in(&bench, folder, &["logs", "1", "fetch"], &[]).code(0).says(&["fetched"]);
    }
    // From elsewhere, it is named.
    for arguments in
        [&["--config", "project/windlass.toml", "runs"], &["runs", "--config", "project/windlass.toml"]]
    {
        windlass_in(&bench, ".", arguments, &[]).code(0).says(&["good"]);
    }
    windlass_in(&bench, ".", &["runs"], &[("WINDLASS_CONFIG", "project/windlass.toml")])
        .code(0)
        .says(&["good"]);
    assert!(!bench.path("windlass.db").exists() && !bench.path("project/windlass.db").exists());
}

#[test]
fn the_nearest_configuration_counts_and_options_and_variables_win() {
    let bench = Bench::new();
    fs::create_dir_all(bench.path("project/inner")).unwrap();
    bench.write("project/windlass.toml", "database = 'outer.db'\n");
    bench.write("project/inner/windlass.toml", "database = 'inner.db'\n");
    bench.write("project/inner/good.toml", GOOD);
    let made = |name: &str| bench.path("project").join(name).exists();
    windlass_in(&bench, "project/inner", &["submit", "good.toml"], &[("WINDLASS_DB", "variable.db")]).code(0);
    assert!(made("inner/variable.db"));
    let both = ["submit", "good.toml", "--db", "option.db"];
    windlass_in(&bench, "project/inner", &both, &[("WINDLASS_DB", "variable.db")]).code(0);
    assert!(made("inner/option.db") && !made("inner/inner.db"));
    windlass_in(&bench, "project/inner", &["submit", "good.toml"], &[]).code(0);
    assert!(made("inner/inner.db") && !made("outer.db"));
}

#[test]
fn an_invalid_or_missing_configuration_is_an_error_of_every_verb_that_uses_a_database() {
    let bench = Bench::new();
    bench.write("windlass.toml", "databse = 'x.db'\nworkflows = 3\n");
    for verb in [&["runs"][..], &["doctor"], &["worker", "--until-idle"], &["db", "check"]] {
        let refused = windlass_in(&bench, ".", verb, &[]);
        refused.code(2).tells(&[
            "windlass.toml:1:1",
            "did you mean `database`?",
            "windlass.toml:2:13",
            "help: ",
        ]);
    }
    windlass_in(&bench, ".", &["--config", "none.toml", "runs"], &[]).fails(2, &["none.toml does not exist"]);
    // These need no database.
    windlass_in(&bench, ".", &["completions", "bash"], &[]).code(0);
    windlass_in(&bench, ".", &["schema"], &[]).code(0);
}

#[test]
fn a_hint_repeats_the_configuration_that_was_named() {
    let bench = Bench::new();
    fs::create_dir(bench.path("etc")).unwrap();
    bench.write("etc/windlass.toml", "database = 'jobs.db'\n");
    bench.write("good.toml", GOOD);
    let accepted = windlass_in(&bench, ".", &["--config", "etc/windlass.toml", "submit", "good.toml"], &[]);
    accepted.code(0).tells(&["windlass worker --config etc/windlass.toml`"]);
    bench.write("windlass.toml", "database = 'etc/jobs.db'\n");
    windlass_in(&bench, ".", &["submit", "good.toml"], &[])
        .code(0)
        .tells(&["start a worker with `windlass worker`"]);
}

#[test]
fn a_stopped_service_says_how_to_start_it_again() {
    let bench = Bench::new();
    fs::create_dir(bench.path("my flows")).unwrap();
    bench.write("my flows/one.toml", &format!("{GOOD}[[schedules]]\nevery = '1h'\n"));
    let options =
        ["serve", "--workflows", "my flows", "--queue", "default,mail", "--threads", "2", "--grace", "5s"];
    let service = bench.start(&options);
    service.wait_until_it_tells(&bench, " serves ");
    service.signal(Signal::INT);
    let stopped = service.wait();
    // The time of the next occurrence has its zone.
    stopped.code(130).tells(&[
        " +00:00",
        "resume with: windlass serve --workflows 'my flows' --queue default,mail --threads 2 --grace 5s",
    ]);
}

#[test]
fn what_was_accepted_is_executed_by_the_worker_that_is_there() {
    let bench = Bench::new();
    bench.write("slow.toml", SLOW);
    let start = "start a worker with `windlass worker`";
    bench.windlass(&["submit", "slow.toml"]).code(0).tells(&[start]);
    bench.windlass(&["enqueue", "shell", "--payload", r#"{"run":"true"}"#]).code(0).tells(&[start]);
    let service = bench.start(&["serve", "--queue", "default"]);
    service.wait_until_it_tells(&bench, " serves ");
    for verb in [&["submit", "slow.toml"][..], &["run", "--detach", "slow.toml"]] {
        let accepted = bench.windlass(verb);
        accepted.code(0).tells(&["is running and executes it", "windlass watch"]);
        assert!(!accepted.stderr.contains("start a worker"), "{accepted:#?}");
    }
    let payload = r#"{"run":"true"}"#;
    bench
        .windlass(&["enqueue", "shell", "--payload", payload])
        .code(0)
        .tells(&["is running and executes it"]);
    // It does not take jobs of this queue.
    bench.windlass(&["enqueue", "shell", "--payload", payload, "--queue", "mail"]).code(0).tells(&[start]);
    bench.write("go", "");
    service.signal(Signal::TERM);
    service.wait().code(0);
}
