//! A database on a server: its address, the errors if it cannot be used, and that no password is ever shown.
#![cfg(feature = "postgres")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::{Duration, Instant};

use windlass_test_server::PrivateServer;

use crate::support::{BAD, Bench, Outcome, Running};

/// The superuser connects only over the socket, all other roles with a password.
const HBA: [&str; 2] = ["local all postgres trust", "host all app,viewer 127.0.0.1/32 scram-sha-256"];

/// The right password in every test. It must never be printed.
pub(crate) const PASSWORD: &str = "r1ght-s3cret";

/// A server with a database `jobs` of the role `app`, and a role `viewer` without rights.
pub(crate) struct Server {
    pub(crate) bench: Bench,
    server: PrivateServer,
}

impl Server {
    pub(crate) fn new() -> Server {
        let server = Server { bench: Bench::new(), server: PrivateServer::new(&[]) };
        server.bench.write("bad.toml", BAD);
        for role in ["app", "viewer"] {
            server.sql("postgres", &format!("CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}'"));
        }
        server.sql("postgres", "CREATE DATABASE jobs OWNER app");
        let rules = HBA.map(|rule| format!("'{rule}'")).join(", ");
        server
            .sql("postgres", &format!("COPY (SELECT unnest(ARRAY[{rules}])) TO PROGRAM 'cat > pg_hba.conf'"));
        server.sql("postgres", "SELECT pg_reload_conf()");
        let began = Instant::now();
        while server.windlass("app", &[], &["runs"]).stderr.contains("no pg_hba.conf entry") {
            assert!(began.elapsed() < Duration::from_secs(30), "the server does not take its new rules");
        }
        server
    }

    /// Runs SQL as the superuser.
    pub(crate) fn sql(&self, database: &str, sql: &str) {
        let mut config = postgres::Config::new();
        config.host_path(self.server.socket_folder()).port(self.server.port());
        config.user("postgres").dbname(database);
        config.connect(postgres::NoTls).unwrap().batch_execute(sql).unwrap();
    }

    /// The address of the database for a role, without a password.
    fn url(&self, role: &str) -> String {
        format!("postgres://{role}@127.0.0.1:{}/jobs", self.server.port())
    }

    /// `windlass` with these variables and no others of PostgreSQL.
    fn command(&self, variables: &[(&str, &str)]) -> Command {
        let mut command = self.bench.command();
        command.env("HOME", self.bench.folder());
        for (name, _value) in std::env::vars().filter(|(name, _)| name.starts_with("PG")) {
            command.env_remove(name);
        }
        command.envs(variables.iter().copied());
        command
    }

    /// The outcome of a command. The password must not be in it.
    #[track_caller]
    fn outcome(&self, mut command: Command, arguments: &[&str]) -> Outcome {
        command.args(arguments);
        let outcome = Running::start(command).wait();
        let said = format!("{}{}", outcome.stdout, outcome.stderr);
        assert!(!said.contains(PASSWORD), "{arguments:?} shows the password: {outcome:#?}");
        outcome
    }

    /// Runs a verb on the database, as this role.
    #[track_caller]
    pub(crate) fn windlass(&self, role: &str, variables: &[(&str, &str)], arguments: &[&str]) -> Outcome {
        let url = self.url(role);
        self.outcome(self.command(variables), &[arguments, &["--db", &url]].concat())
    }
}

#[test]
fn each_wrong_address_has_an_error_and_a_next_step() {
    let server = Server::new();
    let port = server.server.port();
    let right = [("PGPASSWORD", PASSWORD)];
    let fails = |variables: &[(&str, &str)], url: &str, code: i32, parts: &[&str]| {
        let url = url.replace("PORT", &port.to_string());
        server.outcome(server.command(variables), &["runs", "--db", &url]).fails(code, parts);
    };
    let wrong = [("PGPASSWORD", "wrong")];
    let refused = "cannot be opened: password authentication failed";
    fails(&wrong, "postgres://app@127.0.0.1:PORT/jobs", 6, &[refused, "from the variable PGPASSWORD"]);
    fails(
        &[],
        "postgres://app:wrong@127.0.0.1:PORT/jobs",
        6,
        &["warning: ", refused, "password in the address"],
    );
    fails(&[], "postgres://app@127.0.0.1:PORT/jobs", 6, &["asks for the password of `app`", "~/.pgpass"]);
    let gone = "no connection to the database server: ";
    fails(
        &right,
        "postgres://app@127.0.0.1:1/jobs",
        6,
        &[gone, "127.0.0.1:1: connection refused", "pg_isready"],
    );
    fails(&right, "postgres://app@host.invalid/jobs", 6, &[gone, "host.invalid:5432: the host is not known"]);
    fails(&right, "postgres:///jobs?host=/nowhere", 6, &[gone, "/nowhere/.s.PGSQL.5432: there is no socket"]);
    fails(
        &right,
        "postgres://app@127.0.0.1:PORT/none",
        6,
        &["\"none\" does not exist", "CREATE DATABASE none"],
    );
    fails(
        &right,
        "postgres://nobody@127.0.0.1:PORT/jobs",
        6,
        &["no pg_hba.conf entry", "user name `nobody`"],
    );
    fails(&right, "postgres://app@127.0.0.1:PORT/jobs?sslmode=require", 6, &["does not offer encryption"]);
    fails(&right, "postgres://app@127.0.0.1:PORT/jobs?ssl_mode=require", 2, &["`ssl_mode`", "`sslmode`?"]);
    fails(&right, "postgres://app@127.0.0.1:PORT/jobs?schema=Night", 2, &["`schema`", "lower case"]);
    fails(&right, "postgres://?service=night", 2, &["no service", "~/.pg_service.conf"]);
    fails(
        &right,
        "postgres://app@127.0.0.1:PORT/jobs",
        6,
        &["schema `windlass` of ", "has no tables of windlass"],
    );
    // A mistyped address creates no file.
    let url = format!("postgres:/app:{PASSWORD}@127.0.0.1:{port}/jobs");
    fails(&[], &url, 2, &["begins with postgres://"]);
    let mistyped = format!("postgers://app:{PASSWORD}@h/d");
    let outcome = server.outcome(server.command(&[]), &["run", "bad.toml", "--db", &mistyped]);
    outcome.fails(2, &["begins with postgres://, not with `postgers:`", "postgres://user@host:5432/dbname"]);
    let pairs = format!("host=h password={PASSWORD}");
    let outcome = server.outcome(server.command(&[("WINDLASS_DB", &pairs)]), &["run", "bad.toml"]);
    outcome.fails(2, &["not a list of parameters"]);
    let names: Vec<_> =
        fs::read_dir(server.bench.folder()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["bad.toml"]);
}

#[test]
fn a_password_is_never_shown_and_hints_can_be_followed() {
    let server = Server::new();
    let with_password =
        format!("postgres://app:{PASSWORD}@127.0.0.1:{}/jobs?sslmode=prefer", server.server.port());
    let without = with_password.replace(&format!(":{PASSWORD}"), "");
    // The password is on the command line, where others can read it.
    let outcome = server.outcome(server.command(&[]), &["run", "bad.toml", "--db", &with_password]);
    outcome.code(1).tells(&[
        "warning: ",
        "can read the password",
        "WINDLASS_DB",
        "PGPASSWORD",
        "~/.pgpass",
        "run 1",
    ]);
    assert_eq!(outcome.stderr.matches("warning: ").count(), 1, "{outcome:#?}");
    let hint = format!("windlass retry 1 --db '{without}'");
    outcome.tells(&[&hint]);
    let outcome = server.outcome(server.command(&[]), &["db", "copy", &with_password, "copy.db"]);
    outcome.code(0).tells(&["can read the password"]).says(&["is copied to copy.db"]);
    assert_eq!(outcome.stderr.matches("warning: ").count(), 1, "{outcome:#?}");
    // The hint works unchanged, with the password in a variable.
    let mut shell = server.command(&[("PGPASSWORD", PASSWORD)]);
    let program = shell.get_program().to_owned();
    let folder = std::path::Path::new(&program).parent().unwrap().display().to_string();
    let path = format!("{folder}:{}", std::env::var("PATH").unwrap_or_default());
    let mut followed = Command::new("sh");
    followed.args(["-c", &hint]).current_dir(server.bench.folder()).env("PATH", path);
    followed
        .envs(shell.env("x", "x").get_envs().filter_map(|(name, value)| value.map(|value| (name, value))));
    server.outcome(followed, &[]).code(1).tells(&["rerunning 2 jobs of run 1"]);
    // An address from the environment causes no warning, and hints do not name it.
    let from_environment = [("WINDLASS_DB", with_password.as_str())];
    let outcome = server.outcome(server.command(&from_environment), &["inspect", "1"]);
    outcome.code(0).says(&["`windlass logs 1`"]);
    assert_eq!(outcome.stderr, "", "{outcome:#?}");
    let outcome = server.outcome(server.command(&from_environment), &["inspect", "7"]);
    outcome.fails(5, &["postgres://app@127.0.0.1:", "/jobs", "`windlass runs` lists all runs"]);
}

#[test]
fn a_password_may_be_in_a_file_or_a_service() {
    let server = Server::new();
    let port = server.server.port();
    let passwords = server.bench.write(".pgpass", &format!("127.0.0.1:{port}:*:app:{PASSWORD}\n"));
    fs::set_permissions(&passwords, fs::Permissions::from_mode(0o644)).unwrap();
    let outcome = server.windlass("app", &[], &["db", "migrate"]);
    outcome.code(6).tells(&["is ignored: others may read it", "chmod 600", "asks for the password"]);
    fs::set_permissions(&passwords, fs::Permissions::from_mode(0o600)).unwrap();
    server.windlass("app", &[], &["db", "migrate"]).code(0).says(&["/jobs have version"]);
    fs::write(&passwords, "*:*:*:*:wrong\n").unwrap();
    server.windlass("app", &[], &["runs"]).fails(6, &["password in the password file", ".pgpass"]);
    fs::remove_file(&passwords).unwrap();
    let service =
        format!("[night]\nhost=127.0.0.1\nport={port}\nuser=app\ndbname=jobs\npassword={PASSWORD}\n");
    server.bench.write(".pg_service.conf", &service);
    for (variables, url) in [
        (&[][..], "postgres://?service=night"),
        (&[("PGSERVICE", "night")], "postgres://"),
        (&[("PGSERVICE", "night"), ("PGUSER", "viewer")], "postgres:///jobs"),
    ] {
        server.outcome(server.command(variables), &["runs", "--db", url]).code(0).tells(&["no runs yet"]);
    }
}

#[test]
fn a_missing_right_is_named() {
    let server = Server::new();
    let right = [("PGPASSWORD", PASSWORD)];
    let viewer = |arguments: &[&str]| server.windlass("viewer", &right, arguments);
    let forbidden = "the role `viewer` may not do this";
    // The role may not create the schema. The statements of the message grant this right.
    viewer(&["run", "bad.toml"])
        .fails(6, &[forbidden, "schema windlass does not exist, and to create it the role needs the privilege CREATE on the database jobs", "CREATE SCHEMA"]);
    server.windlass("app", &right, &["db", "migrate"]).code(0);
    // The role may not read the schema. The error must not say that it is missing.
    for arguments in [&["runs"][..], &["run", "bad.toml"], &["db", "migrate"]] {
        viewer(arguments)
            .fails(6, &[forbidden, "permission denied for schema windlass", "GRANT USAGE ON SCHEMA"]);
    }
    // The second half of the statements is enough for everything except new tables.
    let said = viewer(&["runs"]).stderr;
    let (_owner, worker) = said.split_once("existing tables:").unwrap();
    server.sql("jobs", worker);
    viewer(&["run", "bad.toml"]).code(1).tells(&["run 1"]);
    viewer(&["worker", "--until-idle"]).code(0);
    viewer(&["db", "prune", "--older-than", "0s"]).code(0).says(&["deleted 1 run"]);
    // The first half is enough for new tables.
    server.sql("jobs", "DROP SCHEMA windlass CASCADE");
    let said = viewer(&["run", "bad.toml"]).stderr;
    let (_message, statements) = said.split_once("owner of the database:").unwrap();
    let (owner, _worker) = statements.split_once("or, for a role").unwrap();
    server.sql("jobs", owner);
    viewer(&["run", "bad.toml"]).code(1).tells(&["run 1"]);
    // A role that may only read.
    server.sql("jobs", "ALTER ROLE viewer SET default_transaction_read_only = on");
    viewer(&["runs"]).code(0).says(&["bad"]);
    viewer(&["run", "bad.toml"])
        .fails(6, &["accepts no writes", "read-only for `viewer`", "name the primary"]);
}

#[test]
fn a_backup_of_a_server_names_pg_dump() {
    let server = Server::new();
    let url = format!("{}?schema=night&sslmode=prefer", server.url("app"));
    let outcome = server.outcome(server.command(&[]), &["db", "backup", "x.db", "--db", &url]);
    let program =
        format!("--schema=night --file=windlass.dump --dbname='{}?sslmode=prefer'", server.url("app"));
    outcome.fails(2, &["is on a server", "pg_dump --format=custom", &program, "pg_restore"]);
}
