//! A damaged file: each process that uses it ends with the reason, and none retries for ever.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;
use windlass_tests::{Sandbox, within};

use crate::support::trivial_chain;

/// Longer than the little work takes on a busy machine.
const LONGEST: Duration = Duration::from_secs(45);

/// A file with work of each kind, and its tables and indexes: (name, root page).
fn file_with_work(sandbox: &Sandbox) -> Vec<(String, i64)> {
    let file = trivial_chain(sandbox, 3);
    sandbox.run(&["run", &file]).exited(0);
    sandbox.run(&["submit", &file]).exited(0);
    let later = "INSERT INTO jobs (kind, payload, status, execute_after)
                 VALUES ('shell', '{\"command\": [\"true\"]}', 'SCHEDULED', 1)";
    let connection = Connection::open(sandbox.database().address()).expect("it can be opened");
    connection.execute_batch(later).expect("a job that is due");
    connection
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0))
        .expect("the log is moved into the file");
    let mut statement = connection
        .prepare("SELECT name, rootpage FROM sqlite_schema WHERE rootpage > 0 ORDER BY rootpage")
        .expect("the schema");
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).expect("rows");
    rows.map(|row| row.expect("a row")).collect()
}

/// Executes all jobs. Returns `None` if the worker does not end.
fn work(sandbox: &Sandbox, database: &Path) -> Option<(i32, String)> {
    let database = database.to_string_lossy().into_owned();
    let mut worker = sandbox.spawn(&["--db", &database, "worker", "--until-idle"]);
    within(LONGEST, || (!worker.is_running()).then_some(()))?;
    let outcome = worker.wait();
    assert!(!outcome.stderr.contains("panicked"), "{}", outcome.stderr);
    Some((outcome.code.unwrap_or(-1), outcome.stderr))
}

#[test]
fn a_worker_on_a_damaged_file_ends_and_says_why() {
    let sandbox = Sandbox::new();
    let places = file_with_work(&sandbox);
    let page_bytes = 4_096;
    let mut ended_for_good = 0;
    let mut problems = Vec::new();
    for (index, (name, page)) in places.iter().enumerate() {
        let copy = sandbox.path("damaged.db");
        for ending in ["", "-wal", "-shm"] {
            let _none = fs::remove_file(format!("{}{ending}", copy.display()));
        }
        fs::copy(sandbox.database().address(), &copy).expect("a copy");
        let file = OpenOptions::new().write(true).open(&copy).expect("it can be written");
        // The first page also contains the header of the file.
        let (from, length) = if *page == 1 { (100, page_bytes - 100) } else { (0, page_bytes) };
        let rubbish = [0xaa, 0x00, 0xff][index % 3];
        let at = (page.unsigned_abs() - 1) * page_bytes as u64 + from as u64;
        file.write_all_at(&vec![rubbish; length], at).expect("it is damaged");
        drop(file);
        match work(&sandbox, &copy) {
            None => problems.push(format!("{name}: it works on for ever")),
            Some((0, _)) => {}
            Some((6, said)) if said.contains("help:") => ended_for_good += 1,
            Some((code, said)) => problems.push(format!("{name}: exit code {code}\n{said}")),
        }
    }
    assert!(problems.is_empty(), "{} of {}:\n{}", problems.len(), places.len(), problems.join("\n"));
    assert!(ended_for_good > 5, "the file was hardly damaged: {ended_for_good} of {}", places.len());
}
