//! A server that answers and refuses something: the error names the setting or the right, and the next step.
#![cfg(feature = "postgres")]

use crate::postgres_address::{PASSWORD, Server};
use crate::support::{GOOD, Outcome};

/// A server with tables of the role `app` in the database `jobs`.
fn server() -> Server {
    let server = Server::new();
    server.bench.write("good.toml", GOOD);
    as_app(&server, &["db", "migrate"]).code(0);
    server
}

#[track_caller]
fn as_app(server: &Server, arguments: &[&str]) -> Outcome {
    server.windlass("app", &[("PGPASSWORD", PASSWORD)], arguments)
}

#[track_caller]
fn says_nothing_of(outcome: &Outcome, words: &[&str]) {
    for word in words {
        assert!(!outcome.stderr.contains(word), "{word}: {}", outcome.stderr);
    }
}

#[test]
fn doctor_finds_a_database_that_refuses_writes() {
    let server = server();
    let refuse = |code: &str| {
        server.sql(
            "jobs",
            &format!(
                "CREATE OR REPLACE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql
                 AS 'BEGIN RAISE EXCEPTION ''could not extend file'' USING ERRCODE = ''{code}''; END'"
            ),
        );
    };
    as_app(&server, &["doctor"]).code(0).says(&["writes", "a test row was written and rolled back"]);

    refuse("53100");
    let trigger =
        "CREATE TRIGGER refuse BEFORE INSERT ON windlass.workflows EXECUTE FUNCTION public.refuse()";
    server.sql("jobs", trigger);
    as_app(&server, &["doctor"]).code(1).says(&[
        "problem",
        "writes",
        "the disk of the database server is full",
        "next: free some space there",
    ]);
    refuse("53200");
    as_app(&server, &["doctor"])
        .code(1)
        .says(&["writes", "reached one of its limits: could not extend file"]);
    server.sql("jobs", "DROP TRIGGER refuse ON windlass.workflows");
    as_app(&server, &["doctor"]).code(0);

    server.sql("jobs", "ALTER ROLE app SET default_transaction_read_only = on");
    as_app(&server, &["doctor"]).code(1).says(&[
        "problem",
        "writes",
        "accepts no writes",
        "next: name the primary",
    ]);
    as_app(&server, &["runs"]).code(0);
    server.sql("jobs", "ALTER ROLE app RESET default_transaction_read_only");

    // A role that may only read gets a clear message.
    server.sql(
        "jobs",
        "GRANT USAGE ON SCHEMA windlass TO viewer; GRANT SELECT ON ALL TABLES IN SCHEMA windlass TO viewer",
    );
    let of_viewer = server.windlass("viewer", &[("PGPASSWORD", PASSWORD)], &["doctor"]);
    of_viewer.code(1).says(&["writes", "`viewer` may not do this", "next: on the server"]);
}

#[test]
fn a_full_server_is_not_reported_as_unreachable() {
    let server = server();
    server.sql("jobs", "ALTER ROLE app CONNECTION LIMIT 0");
    let outcome = as_app(&server, &["runs"]);
    outcome.fails(
        6,
        &[
            "the database server has no free connection",
            "too many connections for role",
            "max_connections",
            "pooler",
        ],
    );
    says_nothing_of(&outcome, &["pg_isready"]);
}

#[test]
fn a_missing_schema_is_named_with_the_right_to_create_it() {
    let server = server();
    server.sql(
        "jobs",
        "REVOKE ALL ON DATABASE jobs FROM PUBLIC, app; GRANT CONNECT ON DATABASE jobs TO viewer",
    );
    let as_viewer = |arguments: &[&str]| server.windlass("viewer", &[("PGPASSWORD", PASSWORD)], arguments);
    server.sql("jobs", "DROP SCHEMA windlass CASCADE");
    let outcome = as_viewer(&["db", "migrate"]);
    outcome.fails(
        6,
        &[
            "schema windlass does not exist",
            "the privilege CREATE on the database",
            "CREATE SCHEMA IF NOT EXISTS windlass",
        ],
    );
    says_nothing_of(&outcome, &["temporary"]);
    as_viewer(&["run", "good.toml"]).fails(6, &["schema windlass does not exist"]);
    let outcome = as_viewer(&["runs"]);
    outcome.fails(6, &["schema `windlass` of ", "has no tables of windlass", "db migrate"]);
    says_nothing_of(&outcome, &["temporary"]);

    // The schema exists, and the role may create nothing in it.
    server.sql("jobs", "CREATE SCHEMA windlass; GRANT USAGE ON SCHEMA windlass TO viewer");
    as_viewer(&["db", "migrate"]).fails(6, &["permission denied for schema windlass", "CREATE SCHEMA"]);
}

#[test]
fn a_timeout_of_the_server_is_not_reported_as_a_lock() {
    let server = server();
    // This timeout applies only to statements before a transaction sets its own. Such a statement is slow here.
    server.sql(
        "jobs",
        "CREATE SCHEMA slow; GRANT USAGE ON SCHEMA slow TO app;
         CREATE FUNCTION slow.current_setting(text) RETURNS text LANGUAGE sql
         AS 'SELECT pg_catalog.current_setting($1) FROM pg_sleep(60)';
         ALTER ROLE app SET search_path = slow, pg_catalog;
         ALTER ROLE app SET statement_timeout = 3",
    );
    let outcome = as_app(&server, &["runs"]);
    outcome.fails(
        6,
        &["cancelled a statement", "due to statement timeout", "ALTER ROLE app SET statement_timeout = 0"],
    );
    says_nothing_of(&outcome, &["lock"]);
}

#[test]
fn a_removed_table_is_named() {
    let server = server();
    server.sql("jobs", "DROP TABLE windlass.jobs CASCADE");
    as_app(&server, &["jobs"])
        .fails(6, &["are missing in", "relation \"jobs\" does not exist", "restore a dump"]);
    as_app(&server, &["doctor"]).fails(6, &["relation \"jobs\" does not exist"]);
}

#[test]
fn an_error_of_a_users_trigger_is_not_a_defect() {
    let server = server();
    server.sql(
        "jobs",
        "CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql
         AS 'BEGIN RAISE EXCEPTION ''not on Sundays''; END';
         CREATE TRIGGER refuse BEFORE INSERT ON windlass.jobs EXECUTE FUNCTION public.refuse()",
    );
    let outcome = as_app(&server, &["enqueue", "shell", "--payload", r#"{"run": "true"}"#]);
    outcome.fails(2, &["not on Sundays"]);
    says_nothing_of(&outcome, &["defect"]);
}
