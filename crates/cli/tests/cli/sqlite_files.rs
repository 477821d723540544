//! The database as a file: missing, damaged, locked, read-only, on a full disk, or another kind of file. Its name on
//! the command line, and backups.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::completing::{filled, offered_within};
use crate::support::{Bench, GOOD, Running};

#[test]
fn a_directory_instead_of_a_database() {
    let bench = Bench::new();
    fs::create_dir(bench.path("folder")).unwrap();
    bench.windlass(&["runs", "--db", "folder"]).fails(6, &["folder is a directory", "--db"]);
}

/// A verb that blocks fails the test.
#[test]
fn a_pipe_instead_of_a_database_a_backup_or_a_target() {
    let bench = Bench::new();
    bench.write("good.toml", GOOD);
    bench.windlass(&["run", "good.toml"]).code(0);
    bench.fifo("pipe");
    for arguments in [
        &["runs", "--db", "pipe"][..],
        &["submit", "good.toml", "--db", "pipe"],
        &["db", "check", "--db", "pipe"],
        &["db", "copy", "pipe", "other.db"],
        &["db", "copy", "windlass.db", "pipe"],
        &["db", "restore", "pipe", "--replace"],
        &["db", "restore", "pipe", "--db", "new.db"],
        &["db", "restore", "windlass.db", "--db", "pipe"],
        &["doctor", "--db", "pipe"],
    ] {
        let outcome = bench.windlass(arguments);
        outcome.code(6).tells(&["pipe is a FIFO (named pipe), not a regular file"]);
    }
    bench.windlass(&["db", "backup", "pipe"]).fails(2, &["pipe exists already"]);
    bench.windlass(&["runs"]).code(0).says(&["good", "SUCCESSFUL"]);
}

#[test]
fn a_database_with_two_names() {
    let bench = Bench::new();
    bench.write("good.toml", GOOD);
    bench.windlass(&["run", "good.toml"]).code(0);
    fs::hard_link(bench.path("windlass.db"), bench.path("twin.db")).unwrap();
    for name in ["windlass.db", "twin.db"] {
        let arguments = ["submit", "good.toml", "--db", name];
        bench
            .windlass(&arguments)
            .fails(6, &[&format!("{name} has 2 names (hard links)"), "-samefile", name]);
    }
    // Backup tools create folders of hard links, from which a database may be restored.
    bench.windlass(&["db", "restore", "twin.db", "--db", "back.db"]).code(0);
    bench.windlass(&["runs", "--db", "back.db"]).code(0).says(&["good", "SUCCESSFUL"]);
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
            .fails(6, &["notes.db is not a SQLite database", "not changed"]);
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
    let new = bench.unprivileged(&["run", "good.toml", "--db", "frozen/new.db"]);
    new.fails(6, &["frozen/new.db", "help: "]);
    let old = bench.unprivileged(&["run", "good.toml", "--db", "frozen/old.db"]);
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
    assert!(allowed, "a small disk cannot be mounted here: run the tests as root, or allow user namespaces");
    let script = "mount -t tmpfs -o size=1m tmpfs small && windlass=$1 && $windlass db migrate --db small/w.db >/dev/null \
         && dd if=/dev/zero of=small/fill bs=1k 2>/dev/null; $windlass submit good.toml --db small/w.db; \
         code=$?; rm small/fill; $windlass db check --db small/w.db >&2 && exit $code";
    let mut command = Command::new("unshare");
    command.args(["-rm", "sh", "-c", script, "sh", env!("CARGO_BIN_EXE_windlass")]);
    let outcome = Running::start(bench.prepared(command)).wait();
    outcome.code(6).tells(&[
        "the disk is full: small/w.db cannot grow",
        "free some space",
        "small/w.db is sound",
    ]);
    assert_eq!(outcome.stdout, "");
}

#[test]
fn a_backup_is_a_database() {
    let bench = Bench::new();
    bench.write("good.toml", GOOD);
    bench.windlass(&["run", "good.toml"]).code(0);
    bench.windlass(&["db", "backup", "copy.db"]).code(0).says(&["copy.db", "sound"]);
    bench.windlass(&["runs", "--db", "copy.db"]).code(0).says(&["good", "SUCCESSFUL"]);
    bench.windlass(&["db", "backup", "copy.db"]).fails(2, &["copy.db exists already"]);
    bench
        .windlass(&["db", "backup", "none/copy.db"])
        .fails(6, &["none/copy.db cannot be written: the folder none does not exist", "mkdir -p"]);
    bench.windlass(&["db", "backup", "x.db", "--db", "none.db"]).fails(6, &["no database at none.db"]);
    assert!(!bench.path("x.db").exists());
}

#[test]
fn the_next_steps_name_the_database_that_was_named() {
    let bench = Bench::new();
    bench.write("good.toml", GOOD);
    bench
        .windlass(&["run", "good.toml", "--db", "my jobs.db"])
        .code(0)
        .tells(&["windlass inspect 1 --db 'my jobs.db'"]);
    bench.windlass(&["runs", "--db", "my jobs.db"]).code(0).says(&["good", "SUCCESSFUL"]);
    assert!(!bench.path("windlass.db").exists());
}

#[test]
fn the_database_comes_from_the_flag_then_the_environment() {
    let bench = Bench::new();
    bench.write("good.toml", GOOD);
    let run = |variable: &str, arguments: &[&str]| {
        let mut command = bench.command();
        command.env("WINDLASS_DB", variable).args(arguments);
        Running::start(command).wait()
    };
    run("env.db", &["submit", "good.toml"]).code(0).tells(&["`windlass watch 1`"]);
    assert!(bench.path("env.db").exists());
    run("env.db", &["submit", "good.toml", "--db", "flag.db"]).code(0);
    assert!(bench.path("flag.db").exists());
    run("", &["submit", "good.toml"]).code(0);
    assert!(bench.path("windlass.db").exists(), "empty is not set");
}

#[test]
fn vacuum_returns_space() {
    let bench = Bench::new();
    bench.write("good.toml", GOOD);
    bench.windlass(&["run", "good.toml"]).code(0);
    let connection = rusqlite::Connection::open(bench.path("windlass.db")).unwrap();
    let size = || fs::metadata(bench.path("windlass.db")).unwrap().len();
    let fill = "INSERT INTO jobs (kind, payload) SELECT 'x', hex(zeroblob(2000000)); DELETE FROM jobs WHERE kind = 'x'";
    connection.execute_batch(fill).unwrap();
    bench.windlass(&["db", "vacuum"]).code(0).says(&["windlass.db has", "it had"]);
    assert!(size() < 1_000_000, "{}", size());
    connection.execute_batch("PRAGMA auto_vacuum = NONE; VACUUM").unwrap();
    bench.windlass(&["db", "vacuum"]).fails(2, &["in steps", "db vacuum --full"]);
    bench.windlass(&["db", "vacuum", "--full"]).code(0);
    bench.windlass(&["db", "vacuum"]).code(0);
    connection
        .execute_batch(
            "INSERT INTO workers (host, pid, process, lease_ms, heartbeat_at, started_at)
             VALUES ('elsewhere', 1, 'opaque', 30000, 1, 1)",
        )
        .unwrap();
    bench
        .windlass(&["db", "vacuum", "--full"])
        .fails(2, &["windlass.db cannot be rewritten: worker 2 is alive", "without --full"]);
    bench.windlass(&["db", "check"]).code(0);
}

#[test]
fn a_plan_commits_nothing_and_leaves_every_byte() {
    let bench = Bench::new();
    bench.write("good.toml", GOOD);
    bench.windlass(&["run", "good.toml"]).code(0);
    let bytes = || fs::read(bench.path("windlass.db")).unwrap();
    let before = bytes();
    bench.windlass(&["plan", "good.toml"]).code(0).says(&["last 1 run, median"]);
    assert!(bytes() == before, "the file was changed");
    // The number that SQLite gives to a connection changes with each commit of another one.
    let connection = rusqlite::Connection::open(bench.path("windlass.db")).unwrap();
    let version = || connection.query_row("PRAGMA data_version", [], |row| row.get::<_, i64>(0)).unwrap();
    let before = version();
    bench.windlass(&["plan", "good.toml"]).code(0);
    assert_eq!(version(), before);
    bench.windlass(&["submit", "good.toml"]).code(0);
    assert_ne!(version(), before, "a verb that writes is noticed");
}

/// The folder of the database belongs to root, or to this user without the right to write.
#[test]
fn a_reader_needs_no_right_to_write() {
    let bench = Bench::new();
    bench.write("good.toml", GOOD);
    bench.windlass(&["run", "good.toml"]).code(0);
    let mode = |path: &Path, mode: u32| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    // Makes the copy of the program before the folder is closed.
    bench.unprivileged(&["--version"]).code(0);
    mode(&bench.path("windlass.db"), 0o444);
    mode(bench.folder(), 0o555);
    let verbs: [&[&str]; 4] = [&["runs"], &["inspect", "1"], &["logs", "1"], &["why", "1/fetch"]];
    for verb in verbs {
        let outcome = bench.unprivileged(verb);
        outcome.code(0).tells(&["a copy is read"]);
        assert!(!outcome.stdout.is_empty(), "{verb:?}");
    }
    bench.unprivileged(&["cancel", "1"]).fails(6, &["read-only", "`logs` need only the right to read"]);
    mode(bench.folder(), 0o755);
    mode(&bench.path("windlass.db"), 0o644);
    // While a process has the database open, its log is read.
    let mut worker = bench.start(&["worker"]);
    bench.wait_for("a log", || bench.path("windlass.db-shm").exists().then_some(()));
    bench.wait_for("a worker", || bench.windlass(&["stats"]).stdout.contains("ALIVE").then_some(()));
    mode(bench.folder(), 0o555);
    let outcome = bench.unprivileged(&["runs"]);
    assert!(!outcome.code(0).says(&["good"]).stderr.contains("a copy"), "{outcome:#?}");
    mode(bench.folder(), 0o755);
    worker.child.kill().unwrap();
    worker.wait();
}

#[test]
fn an_unreadable_path_is_named() {
    let bench = Bench::new();
    bench.write("good.toml", GOOD);
    bench.windlass(&["run", "good.toml"]).code(0);
    bench.unprivileged(&["--version"]).code(0);
    fs::set_permissions(bench.path("windlass.db"), Permissions::from_mode(0o000)).unwrap();
    bench.unprivileged(&["runs"]).fails(6, &["permission denied: you may not read", "windlass.db"]);
    fs::create_dir(bench.path("closed")).unwrap();
    fs::set_permissions(bench.path("closed"), Permissions::from_mode(0o000)).unwrap();
    let closed = ["--db", "closed/windlass.db", "runs"];
    bench.unprivileged(&closed).fails(6, &["permission denied", "folder of closed/windlass.db"]);
    fs::set_permissions(bench.path("closed"), Permissions::from_mode(0o700)).unwrap();
}

/// Somebody holds the whole database.
#[test]
fn a_busy_database_does_not_hold_the_prompt_of_a_shell() {
    let bench = filled();
    let holder = rusqlite::Connection::open(bench.path("windlass.db")).unwrap();
    holder.pragma_update(None, "locking_mode", "exclusive").unwrap();
    holder.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let began = Instant::now();
    let found = offered_within(&bench, &["inspect", ""], "200");
    assert!(found.iter().all(|value| value.starts_with("--")), "{found:?}");
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}
