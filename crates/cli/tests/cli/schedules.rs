//! `windlass schedule`: its output and its errors.

use crate::support::Bench;

const NIGHTLY: &str = r#"
name = "nightly"
[params]
day = { type = "date", default = "2026-11-20" }
[[schedules]]
cron = "30 2 * * *"
timezone = "Europe/Berlin"
[jobs.report]
run = "true"
"#;

fn bench() -> Bench {
    let bench = Bench::new();
    bench.write("nightly.toml", NIGHTLY);
    bench.windlass(&["apply", "nightly.toml"]).code(0);
    bench
}

#[test]
fn a_schedule_is_listed_and_shown_with_its_next_times() {
    let bench = bench();
    bench.windlass(&["schedule", "list"]).code(0).says(&[
        "SCHEDULE",
        "nightly/default",
        "30 2 * * *",
        "Europe/Berlin",
        "T02:30:00+0",
    ]);
    assert!(bench.windlass(&["schedule"]).code(0).stdout.starts_with("SCHEDULE "), "alone it lists");
    let list = bench.json(&["schedule", "list"]);
    assert_eq!(list[0]["cron"], "30 2 * * *");
    assert_eq!((&list[0]["overlap"], &list[0]["catchup"]), (&"skip".into(), &"last".into()));
    // A year has both clock changes: one skips the time, the other repeats it.
    let next = bench.windlass(&["schedule", "next", "nightly", "-n", "366"]);
    assert_eq!(next.code(0).stdout.lines().count(), 367, "a header and a line each");
    next.says(&["LOCAL", "UTC"]);
    assert!(next.stdout.contains("does not exist: the clock is put forward"), "{next:#?}");
    assert!(next.stdout.contains("comes twice: the clock is put back"), "{next:#?}");
    let lines = bench.windlass(&["schedule", "next", "nightly", "-n", "3", "-o", "jsonl"]);
    assert_eq!(lines.code(0).stdout.lines().count(), 3);
    bench.windlass(&["schedule", "show", "nightly"]).code(0).says(&[
        "schedule nightly/default",
        "rule",
        "30 2 * * *",
        "overlap",
        "skip",
        "catchup",
        "last",
        "has no runs yet",
        "LOCAL",
    ]);
}

#[test]
fn a_schedule_with_one_instant_is_added_and_shown() {
    let bench = bench();
    let add = |options: &[&str]| bench.windlass(&[&["schedule", "add", "once", "nightly"], options].concat());
    add(&["--at", "2031-03-30T12:00", "--timezone", "Europe/Berlin"])
        .code(0)
        .says(&["2031-03-30T12:00:00+02:00"]);
    let listed = bench.json(&["schedule", "show", "nightly/once"]);
    assert_eq!((&listed["at"], &listed["next_at"]), (&"2031-03-30T10:00:00.000Z".into(), &listed["at"]));
    assert!(listed["cron"].is_null() && listed["every_ms"].is_null(), "{listed:#}");
    bench
        .windlass(&["schedule", "show", "nightly/once"])
        .code(0)
        .says(&["once, at 2031-03-30T12:00:00+02:00"]);
    add(&["--at", "noon"]).code(2).tells(&["--at", "write a day like"]);
    add(&["--at", "2031-03-30", "--start", "2031-01-01"]).code(2).tells(&["cannot be used with"]);
}

#[test]
fn a_schedule_is_added_paused_and_removed() {
    let bench = bench();
    let add =
        ["schedule", "add", "hourly", "nightly", "--cron", "@hourly", "--catchup", "all", "--jitter", "5m"];
    bench
        .windlass(&[&add[..], &["-p", "day={{ scheduled_for[:10] }}"]].concat())
        .code(0)
        .says(&["UTC", ":00:00Z"]);
    let show = bench.json(&["schedule", "show", "hourly"]);
    assert_eq!((&show["overlap"], &show["origin"]), (&"queue_all".into(), &"command".into()));
    assert_eq!(show["params"]["day"], "{{ scheduled_for[:10] }}");
    bench
        .windlass(&add)
        .fails(2, &["schedule nightly/hourly exists already", "schedule show nightly/hourly"]);
    bench
        .windlass(&["schedule", "pause", "hourly"])
        .code(0)
        .tells(&["is paused", "schedule resume nightly/hourly"]);
    bench.windlass(&["schedule", "pause", "hourly"]).code(0).tells(&["was already paused"]);
    bench.windlass(&["schedule", "list"]).code(0).says(&["nightly/hourly", "paused"]);
    bench.windlass(&["schedule", "resume", "hourly"]).code(0).tells(&["fires next at"]);
    bench.windlass(&["workflows", "pause", "nightly"]).code(0);
    bench.windlass(&["schedule", "list"]).code(0).says(&["workflow paused"]);
    bench
        .windlass(&["schedule", "resume", "hourly"])
        .code(0)
        .tells(&["was not paused", "workflows resume nightly"]);
    bench.windlass(&["schedule", "remove", "hourly"]).code(0).tells(&["is removed"]);
    bench.windlass(&["schedule", "remove", "hourly"]).fails(5, &["there is no schedule `hourly`"]);
    bench.windlass(&["schedule", "remove", "nightly"]).fails(2, &["is in the file of its workflow"]);
}

#[test]
fn invalid_schedules_are_refused() {
    let bench = bench();
    let add = |options: &[&str]| bench.windlass(&[&["schedule", "add", "x", "nightly"], options].concat());
    add(&[]).fails(2, &["--cron", "--every"]);
    add(&["--cron", "@daily", "--every", "1h"]).fails(2, &["cannot be used with"]);
    add(&["--cron", "61 * * * *"]).fails(2, &["61"]);
    add(&["--cron", "@daily", "--timezone", "Europe/Berln"]).fails(2, &["Europe/Berlin"]);
    add(&["--cron", "@daily", "--start", "soon"]).fails(2, &["--start soon is not an instant"]);
    add(&["--cron", "@daily", "--catchup-max", "3"])
        .fails(2, &["--catchup-max has no effect with --catchup last"]);
    add(&["--cron", "@daily", "-p", "dya=1"]).fails(2, &["`dya`", "did you mean `day`"]);
    add(&["--cron", "@daily", "-p", "day=soon"]).fails(2, &["`day`"]);
    add(&["--cron", "@daily", "-p", "day={{ nothing }}"]).fails(2, &["`day`", "nothing"]);
    bench
        .windlass(&["schedule", "add", "a b", "nightly", "--every", "1h"])
        .fails(2, &["a name must begin with a letter"]);
    bench
        .windlass(&["schedule", "add", "x", "nihtly", "--every", "1h"])
        .fails(5, &["no workflow is registered", "did you mean `nightly`"]);
    bench
        .windlass(&["schedule", "add", "nightly", "x", "--every", "1h"])
        .fails(2, &["`nightly` is a workflow, and `x` is not", "windlass schedule add x nightly"]);
    bench
        .windlass(&["schedule", "next", "nightly", "--from", "soon"])
        .fails(2, &["--from soon is not an instant"]);
    bench.windlass(&["schedule", "show", "nihtly"]).fails(5, &["did you mean `nightly`"]);
    let backfill =
        |from, to| bench.windlass(&["schedule", "backfill", "nightly", "--from", from, "--to", to]);
    backfill("2026-01-02", "2026-01-01").fails(2, &["the range ends before it starts"]);
    backfill("2026-01-01", "2126-01-01")
        .fails(2, &["--to 2126-01-01 is in the future", "(now) or an earlier time"]);
    backfill("soon", "2026-01-01").fails(2, &["--from soon is not an instant"]);
    bench.windlass(&["schedule", "add", "nightly/tick", "--every", "1s"]).code(0);
    bench.windlass(&["schedule", "add", "tock", "--every", "1s"]).fails(2, &["is missing", "WORKFLOW/tock"]);
    let next = bench.json(&["schedule", "next", "-n", "3"]);
    let keys: Vec<_> = next.as_array().unwrap().iter().map(|time| time["schedule"].clone()).collect();
    assert_eq!(keys, ["tick", "tick", "tick"], "of all schedules the earliest");
    bench.windlass(&["schedule", "next"]).code(0).says(&["SCHEDULE", "nightly/tick"]);
    bench
        .windlass(&["schedule", "backfill", "tick", "--from", "2025-01-01", "--to", "2026-01-01"])
        .fails(2, &["more than 100000 occurrences"]);
    bench.windlass(&["schedule", "fire", "nightly"]).fails(2, &["nightly/default or nightly/tick"]);
}

#[test]
fn next_shows_the_times_around_a_clock_change() {
    let bench = bench();
    bench.windlass(&["schedule", "next", "nightly", "-n", "2", "--from", "2027-03-27T02:30"]).code(0).says(
        &[
            "2027-03-27T02:30:00+01:00",
            "2027-03-28T03:00:00+02:00",
            "does not exist: the clock is put forward",
        ],
    );
}

#[test]
fn a_firing_by_hand_and_a_backfill_run() {
    let bench = bench();
    let fired = bench.windlass(&["schedule", "fire", "nightly"]);
    fired.code(0).says(&["1"]).tells(&[
        "run 1 of schedule nightly/default is accepted",
        "windlass worker",
        "windlass watch 1",
    ]);
    bench.windlass(&["runs"]).code(0).says(&["PENDING (no worker)"]);
    let range = ["schedule", "backfill", "nightly", "--from", "2026-03-27", "--to", "2026-03-30"];
    let dry = bench.windlass(&[&range[..], &["--dry-run"]].concat());
    dry.code(0)
        .says(&["2026-03-27T02:30:00+01:00", "2026-03-29T03:00:00+02:00"])
        .tells(&["3 would get a run"]);
    bench.windlass(&range).code(0).tells(&["3 will get a run, 1 at a time"]);
    bench.windlass(&range).code(0).tells(&["0 will get a run", "3 were waiting before"]);
    bench.windlass(&["schedule", "show", "nightly"]).code(0).says(&["3 occurrences wait", "from a backfill"]);
    bench.wait_for("the end of the backfill", || {
        bench.windlass(&["worker", "--until-idle"]).code(0);
        (bench.json(&["schedule", "show", "nightly"])["waiting_count"] == 0).then_some(())
    });
    bench.windlass(&["worker", "--until-idle"]).code(0);
    bench.windlass(&range).code(0).tells(&["0 will get a run", "3 had a run before"]);
    let runs = bench.json(&["runs"]);
    let sources: Vec<_> = runs.as_array().unwrap().iter().map(|run| &run["source"]).collect();
    assert_eq!(sources, ["backfill", "backfill", "backfill", "manual"]);
    assert_eq!(runs[2]["scheduled_for"], "2026-03-27T01:30:00.000Z", "the earliest first");
    bench
        .windlass(&["inspect", "2"])
        .code(0)
        .says(&["nightly/default for 2026-03-27T02:30:00+01:00 (backfill)"]);
    bench.windlass(&["inspect", "1"]).code(0).says(&["nightly/default (manual)"]);
}
