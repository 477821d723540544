//! The guide's pages about PostgreSQL: the roles have the rights they need and no others, and the SQL can be executed.

use std::fs;

use postgres::Client;
use windlass_test_server::PrivateServer;
use windlass_tests::binary::repository;
use windlass_tests::{Outcome, Sandbox};

use crate::support::assert_says;

const OPERATIONS: &str = "postgres-operations.md";

/// The blocks of SQL under a heading of a page of the guide.
fn sql_of(page: &str, heading: &str) -> Vec<String> {
    let page = fs::read_to_string(repository().join("docs/guide").join(page)).expect("the page");
    let section = page.split("\n## ").find(|section| section.starts_with(heading));
    let section = section.unwrap_or_else(|| panic!("no section {heading:?}"));
    let blocks = section.split("```sql\n").skip(1).filter_map(|rest| rest.split("```").next());
    blocks.map(str::to_owned).collect()
}

fn execute(client: &mut Client, sql: &str) {
    client.batch_execute(sql).unwrap_or_else(|error| panic!("{error:?}\n{sql}"));
}

/// `windlass` as a role of the server.
fn windlass(sandbox: &Sandbox, server: &PrivateServer, role: &str, arguments: &[&str]) -> Outcome {
    let mut command = sandbox.command(arguments);
    command.env("WINDLASS_DB", server.url().replace("postgres@", &format!("{role}@")));
    sandbox.start(command).wait()
}

#[test]
fn the_roles_of_the_guide_have_the_rights_they_need() {
    let (server, sandbox) = (PrivateServer::new(&[]), Sandbox::new());
    let mut client = server.client();
    let [make, grant] = sql_of(OPERATIONS, "Roles").try_into().expect("two blocks of SQL");
    execute(&mut client, &make);
    execute(&mut client, "CREATE ROLE reader LOGIN; CREATE ROLE producer LOGIN");
    windlass(&sandbox, &server, "windlass_owner", &["db", "migrate"]).exited(0);
    execute(&mut client, &grant);

    let file = sandbox.write("one.toml", "name = \"one\"\n[jobs.a]\nrun = \"true\"\n");
    windlass(&sandbox, &server, "windlass_worker", &["run", &file]).exited(0);
    windlass(&sandbox, &server, "windlass_worker", &["retry", "1", "--from", "a"]).exited(0);
    windlass(&sandbox, &server, "windlass_worker", &["db", "prune", "--older-than", "1d"]).exited(0);
    windlass(&sandbox, &server, "windlass_worker", &["db", "check"]).exited(0);
    // A worker whose process is gone: a role that may not rescue its jobs can still see it.
    let dead = "INSERT INTO windlass.workers (host, pid, process, lease_ms, heartbeat_at, started_at)
                SELECT host, pid, process, lease_ms, heartbeat_at, started_at FROM windlass.workers LIMIT 1";
    execute(&mut client, dead);
    for arguments in [["runs"].as_slice(), &["inspect", "1"], &["logs", "1"], &["why", "1"], &["stats"]] {
        windlass(&sandbox, &server, "reader", arguments).exited(0);
    }
    let refused = windlass(&sandbox, &server, "reader", &["submit", &file]);
    assert_says(&refused, 6, &["permission denied", "help"]);

    let url = server.url().replace("postgres@", "producer@");
    let mut producer = Client::connect(&url, postgres::NoTls).expect("a role may connect");
    let insert = "INSERT INTO windlass.jobs (kind, payload) VALUES ('shell', '{\"command\": [\"true\"]}')";
    producer.query_one(&format!("{insert} RETURNING id"), &[]).expect("a producer may insert");
    producer.execute("UPDATE windlass.jobs SET priority = 1", &[]).expect_err("and nothing else");
    windlass(&sandbox, &server, "windlass_worker", &["worker", "--until-idle"]).exited(0);
}

#[test]
fn the_other_statements_of_the_guide_are_sql() {
    let (server, sandbox) = (PrivateServer::new(&[]), Sandbox::new());
    windlass(&sandbox, &server, "postgres", &["db", "migrate"]).exited(0);
    let mut client = server.client();
    execute(&mut client, "CREATE ROLE producer LOGIN");
    for (page, heading) in
        [("sql.md", "On PostgreSQL"), (OPERATIONS, "Size and speed"), (OPERATIONS, "Backup and restore")]
    {
        let blocks = sql_of(page, heading);
        assert_eq!(blocks.len(), 1, "{page}: {heading}");
        execute(&mut client, &blocks[0]);
    }
    for statement in sql_of("postgres.md", "Set up").concat().split_inclusive(";\n") {
        execute(&mut client, statement);
    }
    for statement in sql_of(OPERATIONS, "Failover").concat().lines() {
        execute(&mut client, statement);
    }
}
