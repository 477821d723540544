//! Bad input and faults: each has one clear message, a next step, and its exit code.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::support::{Bench, GOOD, Outcome, Running};

/// `windlass` as a user who is not allowed everything, also when the tests run as root.
fn unprivileged(bench: &Bench, arguments: &[&str]) -> Outcome {
    if !rustix::process::geteuid().is_root() {
        return bench.windlass(arguments);
    }
    // The build folder may be out of reach for others.
    let program = bench.path("windlass-copy");
    if !program.exists() {
        fs::copy(env!("CARGO_BIN_EXE_windlass"), &program).unwrap();
        fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
        fs::set_permissions(bench.folder(), Permissions::from_mode(0o755)).unwrap();
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(program).args(arguments);
    Running::start(bench.prepared(command)).wait()
}

#[test]
fn a_missing_file() {
    let bench = Bench::new();
    for arguments in
        [["run", "none.toml"], ["submit", "none.toml"], ["validate", "none.toml"], ["graph", "none.toml"]]
    {
        bench
            .windlass(&arguments)
            .fails(2, &["the file none.toml does not exist", "help: check the spelling"]);
    }
    bench.write("good.toml", GOOD);
    let arguments = ["run", "good.toml", "--params-file", "none.json"];
    bench.windlass(&arguments).fails(2, &["the file none.json does not exist"]);
}

#[test]
fn an_unreadable_file() {
    let bench = Bench::new();
    let path = bench.write("secret.toml", GOOD);
    fs::set_permissions(&path, Permissions::from_mode(0o000)).unwrap();
    unprivileged(&bench, &["run", "secret.toml"])
        .fails(2, &["secret.toml may not be read", "chmod u+r secret.toml"]);
}

#[test]
fn a_directory_instead_of_a_file() {
    let bench = Bench::new();
    fs::create_dir(bench.path("folder")).unwrap();
    bench.windlass(&["run", "folder"]).fails(2, &["folder is a directory", "name a file in it"]);
    bench.windlass(&["runs", "--db", "folder"]).fails(6, &["folder is a directory", "--db"]);
}

#[test]
fn a_file_that_is_not_text() {
    let bench = Bench::new();
    fs::write(bench.path("bytes.toml"), b"name = \"\xff\"\n").unwrap();
    bench.windlass(&["run", "bytes.toml"]).fails(2, &["UTF-8", "bytes.toml:1:"]);
}

#[test]
fn a_file_that_is_not_a_database() {
    let bench = Bench::new();
    bench.write("good.toml", GOOD);
    let path = bench.write(
        "notes.db",
        "these are notes, and more than a hundred bytes of them, so that there is no doubt what they are\n",
    );
    let before = fs::read(&path).unwrap();
    for arguments in [&["runs"][..], &["run", "good.toml"], &["db", "check"], &["worker"]] {
        bench
            .windlass(&[arguments, &["--db", "notes.db"]].concat())
            .fails(6, &["notes.db is not a SQLite database", "not touched"]);
    }
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn a_database_that_is_not_there() {
    let bench = Bench::new();
    let reading: [&[&str]; 11] = [
        &["runs"],
        &["jobs"],
        &["stats"],
        &["inspect", "1"],
        &["logs", "1"],
        &["why", "1"],
        &["watch", "1"],
        &["cancel", "1"],
        &["retry", "1"],
        &["resume"],
        &["db", "check"],
    ];
    for arguments in reading {
        bench.windlass(arguments).fails(6, &["there is no database at windlass.db", "windlass run FILE"]);
    }
    assert!(!bench.path("windlass.db").exists(), "reading makes nothing");
    bench.write("good.toml", GOOD);
    let arguments = ["run", "good.toml", "--db", "none/windlass.db"];
    bench.windlass(&arguments).fails(6, &["the folder none does not exist", "--db"]);
}

#[test]
fn a_database_from_a_newer_version() {
    let bench = Bench::new();
    bench.write("good.toml", GOOD);
    bench.windlass(&["submit", "good.toml"]).code(0);
    let connection = rusqlite::Connection::open(bench.path("windlass.db")).unwrap();
    connection
        .execute("INSERT INTO schema_migrations (version, name, applied_at) VALUES (99, 'later', 0)", [])
        .unwrap();
    drop(connection);
    for arguments in [&["runs"][..], &["run", "good.toml"], &["resume"]] {
        bench.windlass(arguments).fails(6, &["newer windlass", "version 99", "help: use a newer windlass"]);
    }
}

#[test]
fn a_damaged_database() {
    let bench = Bench::new();
    bench.write("good.toml", GOOD);
    bench.windlass(&["run", "good.toml"]).code(0);
    let bytes = fs::read(bench.path("windlass.db")).unwrap();
    let mut damaged = bytes[..4096].to_vec();
    damaged.resize(bytes.len(), 0xa5);
    fs::write(bench.path("damaged.db"), damaged).unwrap();
    bench.windlass(&["runs", "--db", "damaged.db"]).fails(6, &["damaged.db", "damaged", "windlass db check"]);
}

#[test]
fn a_read_only_folder() {
    let bench = Bench::new();
    bench.write("good.toml", GOOD);
    let folder = bench.path("frozen");
    fs::create_dir(&folder).unwrap();
    bench.windlass(&["run", "good.toml", "--db", "frozen/old.db"]).code(0);
    fs::set_permissions(folder.join("old.db"), Permissions::from_mode(0o444)).unwrap();
    fs::set_permissions(&folder, Permissions::from_mode(0o555)).unwrap();
    let new = unprivileged(&bench, &["run", "good.toml", "--db", "frozen/new.db"]);
    new.fails(6, &["frozen/new.db", "help: "]);
    let old = unprivileged(&bench, &["run", "good.toml", "--db", "frozen/old.db"]);
    old.fails(6, &["frozen/old.db", "read-only", "help: "]);
    fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_locked_database() {
    let bench = Bench::new();
    bench.write("good.toml", GOOD);
    bench.windlass(&["submit", "good.toml"]).code(0);
    let connection = rusqlite::Connection::open(bench.path("windlass.db")).unwrap();
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    bench.windlass(&["submit", "good.toml"]).fails(6, &["windlass.db is locked", "fuser windlass.db"]);
    connection.execute_batch("ROLLBACK").unwrap();
    bench.windlass(&["submit", "good.toml"]).code(0);
    assert_eq!(bench.json(&["runs"]).as_array().unwrap().len(), 2, "what was refused was not accepted");
}

#[test]
fn a_full_disk() {
    let bench = Bench::new();
    bench.write("good.toml", GOOD);
    fs::create_dir(bench.path("small")).unwrap();
    let allowed = Command::new("unshare").args(["-rm", "true"]).status().is_ok_and(|status| status.success());
    if !allowed {
        eprintln!("skipped: this machine does not let its users mount a small disk");
        return;
    }
    let script = "mount -t tmpfs -o size=400k tmpfs small && windlass=$1 && $windlass db migrate --db small/w.db >/dev/null \
         && dd if=/dev/zero of=small/fill bs=1k 2>/dev/null; $windlass submit good.toml --db small/w.db; \
         code=$?; rm small/fill; $windlass db check --db small/w.db >&2 && exit $code";
    let mut command = Command::new("unshare");
    command.args(["-rm", "sh", "-c", script, "sh", env!("CARGO_BIN_EXE_windlass")]);
    let outcome = Running::start(bench.prepared(command)).wait();
    outcome.code(6).tells(&["the disk is full: small/w.db cannot grow", "make room", "small/w.db is sound"]);
    assert_eq!(outcome.stdout, "");
}

#[test]
fn programs_that_cannot_be_started_fail_their_job_with_the_reason() {
    let bench = Bench::new();
    bench.write("script.sh", "echo never\n");
    bench.write(
        "start.toml",
        r#"
        name = "start"
        [jobs.missing]
        command = ["no-such-program-here"]
        [jobs.forbidden]
        command = ["./script.sh"]
        [jobs.nowhere]
        run = "true"
        dir = "no-such-folder"
        "#,
    );
    let outcome = bench.windlass(&["run", "start.toml"]);
    outcome.code(1).tells(&["✗ missing failed: the program `no-such-program-here` was not found"]);
    outcome.tells(&["✗ forbidden failed: the program `./script.sh` may not be executed", "chmod +x"]);
    outcome.tells(&["✗ nowhere failed: the folder ", "no-such-folder does not exist"]);
}

#[test]
fn settings_that_make_no_sense() {
    let bench = Bench::new();
    bench.write("good.toml", GOOD);
    let with = |name: &str, value: &str| {
        let mut command = bench.command();
        command.env(name, value).args(["run", "good.toml"]);
        Running::start(command).wait()
    };
    with("WINDLASS_LEASE", "soon").fails(2, &["'soon'", "--lease", "30s"]);
    with("WINDLASS_LEASE", "1ms").fails(2, &["'1ms'", "from 100ms"]);
    with("WINDLASS_DURABILITY", "half").fails(2, &["'half'", "full, normal"]);
    bench.windlass(&["run", "good.toml", "--threads", "0"]).fails(2, &["0 is not in 1..=1024"]);
    bench.windlass(&["run", "good.toml", "--run-key", ""]).fails(2, &["--run-key"]);
    bench.windlass(&["runs", "-o", "yaml"]).fails(2, &["'yaml'", "text, json, jsonl"]);
    assert!(!bench.path("windlass.db").exists());
}
