//! `windlass top` on a terminal: what it shows, and how it leaves the terminal.

use std::process::Command;

use serde_json::{Value, json};
use windlass_tests::Sandbox;

const ON_A_SCREEN: &str = include_str!("on_a_screen.py");

const TALKS: &str =
    "name = \"talks\"\n[jobs.speaker]\nrun = 'echo first words; echo \"$PPID is my parent\"; sleep 120'\n";
const FAILS: &str = "name = \"fails\"\n[jobs.breaks]\nrun = 'echo the reason; exit 3'\n";

/// Runs `windlass top` on a terminal, step by step: see the script.
fn on_a_screen(sandbox: &Sandbox, steps: &Value) -> Value {
    on_a_screen_with(sandbox, steps, &[])
}

fn on_a_screen_with(sandbox: &Sandbox, steps: &Value, variables: &[(&str, &str)]) -> Value {
    let program = windlass_tests::binary::windlass().to_string_lossy().into_owned();
    let steps = steps.to_string().replace("WINDLASS", &program);
    let arguments = ["-c", ON_A_SCREEN, &steps, &program, "top", "--utc"];
    let mut command = sandbox.prepared(Command::new("python3"), &arguments);
    command.env("TERM", "xterm-256color").env_remove("NO_COLOR").envs(variables.iter().copied());
    sandbox.start(command).wait().exited(0).json()
}

#[track_caller]
fn assert_restored(seen: &Value) {
    assert_eq!(seen["settings_are_as_before"], true, "{seen:#}");
    assert_eq!(seen["is_on_the_other_screen"], false, "{seen:#}");
    assert_eq!(seen["cursor_is_shown"], true, "{seen:#}");
    assert!(text(&seen["raw"]).contains("\u{1b}[?1049h"), "it had the screen: {seen:#}");
}

/// A text of what the script has printed; empty if it is something else.
fn text(printed: &Value) -> &str {
    printed.as_str().unwrap_or_default()
}

#[test]
fn a_running_job_appears_with_its_output_and_q_gives_the_terminal_back() {
    let sandbox = Sandbox::new();
    let talks = sandbox.write("talks.toml", TALKS);
    let fails = sandbox.write("fails.toml", FAILS);
    sandbox.run(&["run", &fails]).exited(1);
    let steps = json!([
        { "until": "no job is running" },
        { "start": ["WINDLASS", "run", talks] },
        { "until": "2/speaker" },
        { "until": "first words" },
        { "size": [60, 20] },
        { "until": "? help · q quit" },
        { "until": "first words" },
        { "send": "3\r" },
        { "until": "1    j1   breaks" },
        { "send": "\r" },
        { "until": "the reason" },
        { "send": "q" },
    ]);
    let seen = on_a_screen(&sandbox, &steps);
    assert_eq!(seen["exit"], 0, "{seen:#}");
    let first = text(&seen["screens"][0]);
    assert!(first.contains("fails") && first.contains("exit code 3"), "{first}");
    assert_restored(&seen);
}

#[test]
fn a_signal_gives_the_terminal_back() {
    let sandbox = Sandbox::new();
    let fails = sandbox.write("fails.toml", FAILS);
    sandbox.run(&["run", &fails]).exited(1);
    for signal in ["SIGTERM", "SIGINT"] {
        let seen = on_a_screen(&sandbox, &json!([{ "until": "no job is running" }, { "signal": signal }]));
        assert_eq!(seen["exit"], 0, "{seen:#}");
        assert_restored(&seen);
    }
}

#[test]
fn a_queue_is_paused_after_a_question_and_the_change_is_recorded() {
    let sandbox = Sandbox::new();
    sandbox.run(&["enqueue", "noop", "--queue", "mail"]).exited(0);
    let steps = json!([
        { "until": "mail" },
        { "send": "1p" },
        { "until": "pause the queue `mail`?" },
        { "send": "y" },
        { "until": "paused 0s" },
        { "send": "q" },
    ]);
    assert_restored(&on_a_screen_with(&sandbox, &steps, &[("USER", "ada")]));
    let queues = sandbox.run(&["queue", "list", "-o", "json"]).exited(0).json();
    assert!(queues[0]["paused_at"].is_string(), "{queues:#}");
}

#[test]
fn no_color_is_honoured() {
    let sandbox = Sandbox::new();
    let fails = sandbox.write("fails.toml", FAILS);
    sandbox.run(&["run", &fails]).exited(1);
    let steps = json!([{ "until": "no job is running" }, { "send": "q" }]);
    let plain = on_a_screen_with(&sandbox, &steps, &[("NO_COLOR", "1")]);
    assert!(!crate::terminal::has_colour(text(&plain["raw"])), "{plain:#}");
    let coloured = on_a_screen(&sandbox, &steps);
    assert!(crate::terminal::has_colour(text(&coloured["raw"])), "{coloured:#}");
}

/// A job runs, many wait, and nothing changes: under 1 % of a core.
#[test]
fn an_idle_screen_costs_next_to_nothing() {
    const WATCHED_S: f64 = 10.0;
    let sandbox = Sandbox::new();
    let talks = sandbox.write("talks.toml", TALKS);
    let payloads = sandbox.write("payloads", "{}\n".repeat(5_000));
    sandbox.run(&["enqueue", "noop", "--queue", "bulk", "--payloads", &payloads]).exited(0);
    let steps = json!([
        { "until": "no job is running" },
        { "start": ["WINDLASS", "run", talks] },
        { "until": "is my parent" },
        { "watch": WATCHED_S },
        { "send": "q" },
    ]);
    let seen = on_a_screen(&sandbox, &steps);
    let spent_s = seen["processor_s"][0].as_f64().expect("a number");
    assert!(spent_s < 0.01 * WATCHED_S, "{spent_s} s of {WATCHED_S} s: {seen:#}");
}

#[test]
fn without_a_terminal_it_says_what_else_there_is() {
    let sandbox = Sandbox::new();
    let refused = sandbox.run(&["top"]).exited(2);
    assert!(refused.stderr.contains("windlass top needs a terminal"), "{}", refused.stderr);
    assert!(refused.stderr.contains("jobs --status running"), "{}", refused.stderr);
    let refused = sandbox.run(&["top", "-o", "json"]).exited(2);
    assert!(refused.stderr.contains("-o does not apply"), "{}", refused.stderr);
}
