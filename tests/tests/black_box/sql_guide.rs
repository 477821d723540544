//! Promise: the statements of `docs/guide/sql-workers.md` are a complete worker on both databases.

use std::fs;

use windlass_test_database::{Access, DatabaseKind, Row, Sql};
use windlass_tests::binary::repository;
use windlass_tests::{Sandbox, eventually};

use crate::support::submit;

/// The statements of the page by their first line, which is a comment.
fn statements() -> Vec<(String, String)> {
    let page = repository().join("docs/guide/sql-workers.md");
    let page = fs::read_to_string(page).expect("the page can be read");
    page.split("```sql\n-- ")
        .skip(1)
        .filter_map(|block| {
            let (name, statement) = block.split("```").next()?.split_once('\n')?;
            Some((name.to_owned(), statement.trim().to_owned()))
        })
        .collect()
}

fn statement(name: &str) -> String {
    let found = statements().into_iter().find(|(named, _)| named == name);
    found.unwrap_or_else(|| panic!("the page has no statement {name:?}")).1
}

/// A worker that uses only the statements of the page.
struct Worker<'a> {
    sql: Sql,
    sandbox: &'a Sandbox,
    values: Vec<(&'static str, String)>,
}

impl Worker<'_> {
    fn register<'a>(sandbox: &'a Sandbox, queue: &str) -> Worker<'a> {
        let quoted = |text: &str| format!("'{text}'");
        let values = vec![
            ("host", quoted("elsewhere")),
            ("pid", "1".to_owned()),
            ("queues", quoted(&format!("[\"{queue}\"]"))),
            ("kinds", quoted("[\"shell\"]")),
            ("lease_ms", "60000".to_owned()),
            ("queue", quoted(queue)),
            ("kind", quoted("shell")),
            ("output", quoted("{\"by\": \"hand\"}")),
            ("error", quoted("no luck")),
            ("now", "1700000000000".to_owned()),
        ];
        let sql = sandbox.database().sql(Access::Write);
        let mut worker = Worker { sql, sandbox, values };
        let id: i64 = worker.run("register")[0].get("id").expect("an id");
        worker.values.push(("worker", id.to_string()));
        worker
    }

    fn run(&self, name: &str) -> Vec<Row> {
        self.run_with(name, &[])
    }

    /// Runs a statement of the page and returns the changed rows.
    fn run_with(&self, name: &str, values: &[(&'static str, String)]) -> Vec<Row> {
        let mut text = statement(name);
        // The longest names first, because one name may begin with another.
        let mut values: Vec<&(&str, String)> = values.iter().chain(&self.values).collect();
        values.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        for (name, value) in values {
            text = text.replace(&format!(":{name}"), value);
        }
        assert!(!text.contains(':') || text.contains("\": "), "a parameter has no value: {text}");
        if text.starts_with("UPDATE") && !text.contains("RETURNING") {
            text.push_str(" RETURNING id");
        }
        self.sql.query(&text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn claim(&self) -> Option<Claimed> {
        let name = match self.sandbox.database().kind() {
            DatabaseKind::Sqlite => "claim",
            DatabaseKind::Postgres => "claim on PostgreSQL",
        };
        let rows = self.run(name);
        let row = rows.first()?;
        let run_id: Option<i64> = row.get("run_id").expect("a run");
        if let Some(run_id) = run_id {
            self.run_with("start the run", &[("run", run_id.to_string())]);
        }
        Some(Claimed { job: row.get("id").expect("an id"), attempt: row.get("attempt").expect("a number") })
    }

    /// Whether the report was accepted.
    fn report(&self, name: &str, Claimed { job, attempt }: &Claimed) -> bool {
        self.run_with(name, &[("job", job.to_string()), ("attempt", attempt.to_string())]).len() == 1
    }
}

#[derive(Debug)]
struct Claimed {
    job: i64,
    attempt: i64,
}

const RUN: &str = r#"
name = "by-hand"
[jobs.first]
run = "true"
queue = "by-hand"
[jobs.second]
needs = ["first"]
run = "true"
queue = "by-hand"
retry = { max_attempts = 2, delay = "1ms" }
"#;

#[test]
fn the_statements_of_the_page_execute_a_run() {
    let sandbox = Sandbox::new();
    let run = submit(&sandbox, &sandbox.write("by-hand.toml", RUN));
    let mut engine = sandbox.spawn(&["worker", "--queue", "other"]);
    let worker = Worker::register(&sandbox, "by-hand");
    let first = worker.claim().expect("the first job");
    assert!(worker.claim().is_none(), "the second waits for it");
    let state = |sql: &str| sandbox.tables().value::<String>(sql);
    assert_eq!(state("SELECT status FROM runs"), "RUNNING");
    assert_eq!(worker.run("renew").len(), 1);
    assert!(worker.report("succeed", &first));
    assert!(!worker.report("succeed", &first), "an attempt ends once");
    let second = eventually("the second job", || worker.claim());
    assert!(!worker.report("fail", &Claimed { attempt: 0, ..second }), "not this attempt's");
    assert!(worker.report("fail", &second));
    let again = eventually("another attempt after the pause", || worker.claim());
    assert_eq!((again.job, again.attempt), (second.job, 2));
    let key: String = worker.run_with("key", &[("job", again.job.to_string())])[0].get(0).expect("a key");
    let of_row = format!("SELECT created_at || '-' || token FROM jobs WHERE id = {}", again.job);
    assert_eq!(key, state(&of_row));
    assert!(worker.report("succeed", &again));
    eventually("the end of the run", || (state("SELECT status FROM runs") == "SUCCESSFUL").then_some(()));
    assert_eq!(state("SELECT error FROM job_attempts"), "no luck");
    assert_eq!(worker.run("leave").len(), 1);
    assert!(worker.run("renew").is_empty(), "who has left is not alive");
    assert!(engine.is_running());
    sandbox.run(&["db", "check"]).exited(0);
    sandbox.run(&["inspect", &run.to_string()]).exited(0);
}

#[test]
fn a_dead_worker_of_the_page_is_fenced() {
    let sandbox = Sandbox::new();
    submit(&sandbox, &sandbox.write("by-hand.toml", RUN));
    let worker = Worker::register(&sandbox, "by-hand");
    let claimed = worker.claim().expect("a job");
    worker.sql.execute("UPDATE workers SET status = 'DEAD', stopped_at = 1");
    assert!(worker.run("renew").is_empty());
    sandbox.run(&["runs"]).exited(0);
    assert!(!worker.report("succeed", &claimed), "its job was taken back");
    assert!(worker.claim().is_none(), "and it gets no other");
    let other = Worker::register(&sandbox, "by-hand");
    assert_eq!(other.claim().expect("the job").attempt, 2);
    sandbox.run(&["db", "check"]).exited(0);
}

#[test]
fn the_example_agrees_with_the_page() {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let example = fs::read_to_string(repository().join("examples/sql/worker.py")).expect("the example");
    let example = words(&example);
    let mut compared = 0;
    for (name, statement) in statements() {
        if name.contains("PostgreSQL") || name == "key" {
            continue;
        }
        assert!(example.contains(&words(&statement)), "{name}: {statement}");
        compared += 1;
    }
    assert_eq!(compared, 7);
    // The e-mail example has no jobs of runs.
    let example = fs::read_to_string(repository().join("examples/email/worker.py")).expect("the example");
    let example = words(&example);
    for (name, statement) in statements().into_iter().filter(|(name, _)| name != "start the run") {
        assert!(example.contains(&words(&statement)), "examples/email: {name}: {statement}");
    }
}
