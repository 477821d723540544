//! Promise: the statements of `docs/guide/sql.md` change jobs that stand alone, on both databases.

use std::fs;

use windlass_test_database::{Access, Sql};
use windlass_tests::binary::repository;
use windlass_tests::{Sandbox, eventually};

/// The statement of the page whose first line is this comment, with values for its parameters.
fn statement(name: &str, values: &[(&str, &str)]) -> String {
    let page = repository().join("docs/guide/sql.md");
    let page = fs::read_to_string(page).expect("the page can be read");
    let block = page.split("```sql\n-- ").skip(1).find(|block| block.lines().next() == Some(name));
    let block = block.unwrap_or_else(|| panic!("the page has no statement {name:?}"));
    let (_name, text) = block.split_once('\n').expect("a statement");
    let mut text = text.split("```").next().unwrap_or_default().trim().to_owned();
    for (name, value) in values {
        text = text.replace(&format!(":{name}"), value);
    }
    assert!(!text.contains(':'), "a parameter has no value: {text}");
    text
}

/// How many rows a statement of the page changes.
fn changed(sql: &Sql, name: &str, values: &[(&str, &str)]) -> usize {
    let text = format!("{} RETURNING id", statement(name, values));
    sql.query(&text).unwrap_or_else(|error| panic!("{text}: {error}")).len()
}

#[test]
fn the_statements_of_the_page_change_jobs() {
    let sandbox = Sandbox::new();
    let enqueue = |payload: &str| {
        sandbox.run(&["enqueue", "shell", "--payload", payload, "--max-attempts", "1"]).exited(0);
    };
    enqueue("{\"run\": \"test -e fixed\"}");
    let mut worker = sandbox.spawn(&["worker"]);
    let status =
        |job: i64| sandbox.tables().value::<String>(&format!("SELECT status FROM jobs WHERE id = {job}"));
    eventually("the failure", || (status(1) == "FAILED").then_some(()));
    let sql = sandbox.database().sql(Access::Write);
    let now = ("now", "1700000000000");
    sandbox.write("fixed", "");
    assert_eq!(changed(&sql, "retry a job", &[("job", "1"), now]), 1);
    eventually("the success", || (status(1) == "SUCCESSFUL").then_some(()));
    assert_eq!(sandbox.tables().value::<i64>("SELECT attempt FROM jobs WHERE id = 1"), 2);
    assert_eq!(changed(&sql, "retry a job", &[("job", "1"), now]), 0, "it succeeded");

    sandbox.run(&["queue", "pause", "slow"]).exited(0);
    sandbox.run(&["enqueue", "shell", "--queue", "slow", "--payload", "{\"run\": \"true\"}"]).exited(0);
    eventually("a job that waits", || (status(2) == "PENDING").then_some(()));
    let later = [("job", "2"), ("time", "4000000000000"), now];
    assert_eq!(changed(&sql, "start a job at another time", &later), 1);
    assert_eq!(changed(&sql, "change the priority of a job", &[("job", "2"), ("priority", "7"), now]), 1);
    assert_eq!(changed(&sql, "change the queue of a job", &[("job", "2"), ("queue", "'default'"), now]), 1);
    assert_eq!(
        (status(2).as_str(), sandbox.tables().value::<i64>("SELECT priority FROM jobs WHERE id = 2")),
        ("SCHEDULED", 7)
    );
    let soon = [("job", "2"), ("time", "1700000000000"), now];
    assert_eq!(changed(&sql, "start a job at another time", &soon), 1);
    eventually("its success in the other queue", || (status(2) == "SUCCESSFUL").then_some(()));
    assert_eq!(changed(&sql, "start a job at another time", &soon), 0, "it does not wait");
    assert_eq!(changed(&sql, "delete a job", &[("job", "2")]), 1);
    assert_eq!(changed(&sql, "delete a job", &[("job", "2")]), 0);
    assert!(worker.is_running());
    sandbox.run(&["db", "check"]).exited(0);
}
