//! `db restore` of a file: refused while a worker runs, checked first, atomic, and nothing starts by itself.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use crate::support::{Bench, GOOD};

/// A database with a run, a backup of it as `backup.db`, and a second run after that.
fn with_backup() -> Bench {
    let bench = Bench::new();
    bench.write("good.toml", GOOD);
    bench.windlass(&["run", "good.toml"]).code(0);
    bench.windlass(&["db", "backup", "backup.db"]).code(0);
    bench.windlass(&["run", "good.toml"]).code(0);
    bench
}

fn runs(bench: &Bench) -> usize {
    bench.json(&["runs"]).as_array().unwrap().len()
}

fn sql(bench: &Bench, database: &str) -> rusqlite::Connection {
    rusqlite::Connection::open(bench.path(database)).unwrap()
}

fn texts(connection: &rusqlite::Connection, query: &str) -> Vec<String> {
    let mut statement = connection.prepare(query).unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

/// Running and waiting jobs and schedules at the time of the backup.
const BUSY: &str = "
    INSERT INTO workers (id, host, pid, process, lease_ms, heartbeat_at, started_at)
        VALUES (70, 'elsewhere', 1, 'opaque', 30000, 1, 1);
    INSERT INTO jobs (id, kind, status, worker_id, attempt) VALUES (900, 'shell', 'RUNNING', 70, 4);
    INSERT INTO jobs (id, kind, status) VALUES (901, 'shell', 'PENDING');
    INSERT INTO schedules (workflow, name) VALUES ('good', 'nightly');
    INSERT INTO schedules (workflow, name, paused_at) VALUES ('good', 'weekly', 7);";

#[test]
fn a_restored_database_starts_nothing_by_itself() {
    let bench = with_backup();
    let names = texts(&sql(&bench, "backup.db"), "SELECT name FROM instance");
    sql(&bench, "backup.db").execute_batch(BUSY).unwrap();
    bench.windlass(&["db", "restore", "backup.db", "--replace"]).code(0).says(&[
        "windlass.db is restored from backup.db, which was checked and is sound",
        "former workers that were fenced: 1",
        "schedules that were paused: 1",
        "jobs that were running: 1 (j900)",
        "jobs that the next worker starts: 2",
        "windlass schedule resume",
    ]);
    assert_eq!(runs(&bench), 1, "the second run came after the backup");
    let restored = sql(&bench, "windlass.db");
    let read = |query: &str| texts(&restored, query);
    assert_eq!(read("SELECT status || attempt || interruptions FROM jobs WHERE id = 900"), ["PENDING41"]);
    assert_eq!(read("SELECT status FROM workers WHERE id = 70"), ["DEAD"]);
    assert_eq!(read("SELECT name FROM schedules WHERE paused_at IS NULL"), [""; 0]);
    assert_eq!(read("SELECT CAST(paused_at AS TEXT) FROM schedules WHERE name = 'weekly'"), ["7"]);
    assert_ne!(read("SELECT name FROM instance"), names, "it is another database");
    let keys = |connection: &rusqlite::Connection| {
        texts(connection, "SELECT created_at || '-' || token FROM jobs ORDER BY id")
    };
    assert_eq!(keys(&restored), keys(&sql(&bench, "backup.db")), "jobs keep their keys");
    bench.windlass(&["db", "check"]).code(0);
    let leftovers: Vec<_> = fs::read_dir(bench.folder())
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().contains("partial"))
        .collect();
    assert!(leftovers.is_empty(), "{leftovers:?}");
}

#[test]
fn a_backup_is_restored_to_a_new_file() {
    let bench = with_backup();
    bench.windlass(&["db", "restore", "backup.db", "--db", "new.db"]).code(0).says(&["new.db is restored"]);
    bench.windlass(&["runs", "--db", "new.db"]).code(0).says(&["good", "SUCCESSFUL"]);
}

#[test]
fn a_database_with_runs_is_replaced_only_with_the_option() {
    let bench = with_backup();
    bench.windlass(&["db", "restore", "backup.db"]).fails(
        2,
        &[
            "windlass.db is not replaced: its runs (2) and jobs (4) would be lost",
            "windlass db backup COPY",
            "windlass db restore backup.db --replace",
        ],
    );
    assert_eq!(runs(&bench), 2);
    bench.windlass(&["db", "restore", "backup.db", "--replace"]).code(0);
    assert_eq!(runs(&bench), 1);
    bench.windlass(&["worker", "--until-idle", "--db", "fresh.db"]).code(0);
    bench
        .windlass(&["db", "restore", "backup.db", "--db", "fresh.db"])
        .code(0)
        .says(&["fresh.db is restored"]);
    bench.windlass(&["db", "restore", "--fence", "--replace"]).fails(2, &["cannot be used with"]);
}

#[test]
fn nothing_is_replaced_while_a_worker_is_alive() {
    let bench = with_backup();
    let mut worker = bench.start(&["worker"]);
    let is_there =
        || texts(&sql(&bench, "windlass.db"), "SELECT status FROM workers WHERE status = 'ALIVE'").len() == 1;
    bench.wait_for("the worker's registration", || is_there().then_some(()));
    bench
        .windlass(&["db", "restore", "backup.db", "--replace"])
        .fails(2, &["not restored: worker", "is alive", "SIGTERM"]);
    assert_eq!(runs(&bench), 2);
    worker.child.kill().unwrap();
    worker.child.wait().unwrap();
    bench.windlass(&["db", "restore", "backup.db", "--replace"]).code(0);
    assert_eq!(runs(&bench), 1, "a dead one is no reason");
}

#[test]
fn a_reader_sees_the_old_database_or_the_new_one() {
    let bench = with_backup();
    let reader = sql(&bench, "windlass.db");
    let count = || texts(&reader, "SELECT CAST(id AS TEXT) FROM runs").len();
    reader.execute_batch("BEGIN").unwrap();
    assert_eq!(count(), 2);
    bench.windlass(&["db", "restore", "backup.db", "--replace"]).code(0);
    assert_eq!(count(), 2, "of its own moment");
    reader.execute_batch("COMMIT").unwrap();
    assert_eq!(count(), 1);
}

#[test]
fn an_invalid_backup_changes_nothing() {
    let bench = with_backup();
    let bytes = fs::read(bench.path("backup.db")).unwrap();
    let mut damaged = bytes[..40_000].to_vec();
    damaged.resize(bytes.len(), 0xa5);
    fs::write(bench.path("damaged.db"), damaged).unwrap();
    bench.write("notes.db", &"these are notes\n".repeat(100));
    bench.windlass(&["db", "restore", "none.db", "--replace"]).fails(5, &["no backup at none.db"]);
    bench
        .windlass(&["db", "restore", "notes.db", "--replace"])
        .fails(6, &["notes.db is not a SQLite database"]);
    bench.windlass(&["db", "restore", "damaged.db", "--replace"]).fails(6, &["damaged.db", "damaged"]);
    sql(&bench, "backup.db").execute_batch("UPDATE runs SET unfinished_jobs = 9").unwrap();
    bench
        .windlass(&["db", "restore", "backup.db", "--replace"])
        .fails(2, &["breaks 1 of its rules", "run 1 is SUCCESSFUL, and counts 9", "--force"]);
    assert_eq!(runs(&bench), 2, "none of them");
    bench.windlass(&["db", "restore", "backup.db", "--force", "--replace"]).code(0);
    assert_eq!(runs(&bench), 1);
}

#[test]
fn an_unreadable_database_is_not_replaced() {
    let bench = with_backup();
    let path = bench.write("notes.db", &"these are notes\n".repeat(100));
    let before = fs::read(&path).unwrap();
    let outcome = bench.windlass(&["db", "restore", "backup.db", "--db", "notes.db"]);
    outcome.fails(6, &["the existing database cannot be read", "mv notes.db"]);
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn a_backup_may_be_in_a_read_only_folder() {
    let bench = with_backup();
    let vault = bench.path("vault");
    fs::create_dir(&vault).unwrap();
    fs::rename(bench.path("backup.db"), vault.join("backup.db")).unwrap();
    fs::set_permissions(vault.join("backup.db"), Permissions::from_mode(0o444)).unwrap();
    fs::set_permissions(&vault, Permissions::from_mode(0o555)).unwrap();
    let mine = bench.path("mine");
    fs::create_dir(&mine).unwrap();
    fs::set_permissions(&mine, Permissions::from_mode(0o777)).unwrap();
    bench.unprivileged(&["db", "restore", "vault/backup.db", "--db", "mine/new.db"]).code(0);
    assert_eq!(fs::read_dir(&vault).unwrap().count(), 1, "and nothing was");
    fs::set_permissions(&vault, Permissions::from_mode(0o755)).unwrap();
}
