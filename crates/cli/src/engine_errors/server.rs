//! Why a database on a PostgreSQL server cannot be used.

use windlass_db::postgres::{CONNECTIONS_MAX, PostgresAddress};
use windlass_db::{Refusal, Unavailable};

use super::MessageAndHelp;
use crate::shell_words::quoted;

/// The message and the next step. `for_libpq` is the address for PostgreSQL's own programs.
pub(super) fn unavailable(
    reason: Unavailable,
    address: &PostgresAddress,
    for_libpq: &str,
    hint: impl Fn(&str) -> String,
) -> MessageAndHelp {
    match reason {
        Unavailable::Unreachable(why) => (
            format!("no connection to the database server: {why}"),
            format!(
                "`pg_isready --dbname={}` shows whether the server answers; correct the address, or wait until it answers",
                quoted(for_libpq)
            ),
        ),
        Unavailable::NoConnectionFree(why) => (
            format!("the database server has no free connection: {why}"),
            format!(
                "pg_stat_activity on the server lists all connections: end unneeded ones, raise max_connections or \
                 the CONNECTION LIMIT of the role or the database, or use a pooler such as PgBouncer. A windlass \
                 process opens at most {CONNECTIONS_MAX} connections"
            ),
        ),
        Unavailable::Exhausted(why) => (
            format!("the database server reached one of its limits: {why}"),
            "look into the server's log; give the server more memory or raise the setting in the message, then try again".to_owned(),
        ),
        Unavailable::Cancelled(why) => (
            format!("the database server cancelled a statement in {address}: {why}"),
            cancelled(address),
        ),
        Unavailable::Incomplete(why) => (
            format!("some of windlass's tables are missing in {address}: {why}"),
            format!(
                "somebody removed or changed them: restore a dump of schema `{}`. ?schema=NAME in the address chooses \
                 another schema; `{}` creates all tables in an empty one",
                address.schema(),
                hint("db migrate")
            ),
        ),
        Unavailable::Refused { refusal, detail } => refused(refusal, &detail, address),
        Unavailable::Forbidden(detail) => (
            format!("the role `{}` may not do this in {address}: {detail}", address.user()),
            grants(address),
        ),
        Unavailable::Standby => (
            format!("{address} accepts no writes: it is a standby, or read-only for `{}`", address.user()),
            "name the primary, or all servers of the cluster, as in postgres://user@a,b/dbname: windlass then finds \
             the one that accepts writes"
                .to_owned(),
        ),
        Unavailable::CommitUnknown => (
            format!("the connection to {address} broke during a commit; it is unknown whether the commit succeeded"),
            format!("check with `{}` before you repeat the command", hint("runs")),
        ),
        Unavailable::NoTables(place) => (
            format!("{place} has no tables of windlass"),
            format!(
                "`{}` creates the tables; ?schema=NAME in the address chooses another schema than `{}`",
                hint("db migrate"),
                address.schema()
            ),
        ),
        Unavailable::CannotOpen(why) => (
            format!("{address} cannot be used: {why}"),
            "choose another database with --db URL or WINDLASS_DB".to_owned(),
        ),
        Unavailable::NewerVersion { found, supported } => {
            super::newer_version(&address.to_string(), found, supported)
        }
        Unavailable::Locked => (
            format!("another session held a lock in {address} for too long"),
            "try again; pg_stat_activity and pg_locks on the server show which session it is".to_owned(),
        ),
        Unavailable::DiskFull => (
            format!("the disk of the database server is full: {address} cannot grow"),
            format!("free some space there, then `{}` continues; everything accepted is kept", hint("resume")),
        ),
        Unavailable::Corrupt(why) => (
            format!("{address} is damaged: {why}"),
            "look into the server's log; keep a copy of its data, then restore a dump".to_owned(),
        ),
        Unavailable::InputOutput(why) => (
            format!("the database server failed: {why}"),
            "look into the server's log".to_owned(),
        ),
        Unavailable::OutOfResources(why) => super::out_of_resources(&why),
        Unavailable::Closed => super::closed(&address.to_string(), hint),
        // These reasons are only for files.
        Unavailable::Missing(_)
        | Unavailable::NotADatabase
        | Unavailable::HardLinked { .. }
        | Unavailable::Foreign { .. }
        | Unavailable::ReadOnly => (
            format!("{address} cannot be used: {reason}"),
            "choose another database with --db URL or WINDLASS_DB".to_owned(),
        ),
    }
}

/// The server answered and refused the connection.
fn refused(refusal: Refusal, detail: &str, address: &PostgresAddress) -> MessageAndHelp {
    let user = address.user();
    let message = format!("{address} cannot be opened: {detail}");
    let help = match refusal {
        Refusal::Password => match address.password_source() {
            Some(source) => format!("correct the password {source}, or the user name `{user}`"),
            None => format!("correct the user name `{user}`"),
        },
        Refusal::NoPassword => "set PGPASSWORD, or add a line host:port:dbname:user:password to ~/.pgpass (mode \
                                600), or use a service in ~/.pg_service.conf"
            .to_owned(),
        Refusal::Login => format!(
            "correct the user name `{user}`, or pg_hba.conf on the server: it lists who may connect from where, \
             encrypted (hostssl) or not (hostnossl). `sslmode` in the address chooses between the two"
        ),
        Refusal::NoDatabase => format!(
            "correct the name, or create it on the server: CREATE DATABASE {} ENCODING 'UTF8'",
            identifier(address.database())
        ),
        Refusal::Certificate => "add sslrootcert=FILE with the authority's certificate to the address, and use a host \
                                 name that is in the server's certificate; `sslmode` sets how much is checked"
            .to_owned(),
        Refusal::Encryption => {
            "`sslmode` in the address sets whether to encrypt; `SHOW ssl` on the server shows whether it can. Use \
             sslmode=disable only in a network that you trust"
                .to_owned()
        }
    };
    (message, help)
}

/// The settings that may have cancelled a statement.
fn cancelled(address: &PostgresAddress) -> String {
    let user = identifier(address.user());
    format!(
        "a timeout of the server cancelled it, or a person did with pg_cancel_backend. If the message names a timeout, \
         SHOW statement_timeout as {user} shows the value. To remove it, run on the server\n\
         ALTER ROLE {user} SET statement_timeout = 0;\n\
         ALTER DATABASE, postgresql.conf or a pooler may set it too"
    )
}

/// The statements that give a role the rights that windlass needs.
fn grants(address: &PostgresAddress) -> String {
    let (database, schema, user) =
        (identifier(address.database()), address.schema(), identifier(address.user()));
    format!(
        "on the server, as the owner of the database:\n\
         GRANT CONNECT ON DATABASE {database} TO {user};\n\
         CREATE SCHEMA IF NOT EXISTS {schema} AUTHORIZATION {user};    -- to create and migrate the tables\n\
         or, for a role that only uses existing tables:\n\
         GRANT USAGE ON SCHEMA {schema} TO {user};\n\
         GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {user};"
    )
}

/// A name in SQL, quoted if it must be.
fn identifier(name: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    match name.bytes().all(is_plain) && name.starts_with(|first: char| !first.is_ascii_digit()) {
        true => name.to_owned(),
        false => format!("\"{}\"", name.replace('"', "\"\"")),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn said(reason: Unavailable) -> (String, String) {
        let url = "postgres://app:s3cret@db.example:5433/Jobs?schema=night";
        let address = PostgresAddress::parse(url, &|_| None).unwrap();
        unavailable(reason, &address, &PostgresAddress::for_libpq(url), |verb| format!("windlass {verb}"))
    }

    #[test]
    fn each_reason_has_a_message_and_a_next_step() {
        let refused = |refusal| Unavailable::Refused { refusal, detail: "as the server said".to_owned() };
        let cases = [
            (
                Unavailable::Unreachable("h: gone".into()),
                "server: h: gone",
                "postgres://app@db.example:5433/Jobs`",
            ),
            (refused(Refusal::Password), "as the server said", "password in the address"),
            (refused(Refusal::NoPassword), "as the server said", "~/.pgpass"),
            (refused(Refusal::Login), "as the server said", "pg_hba.conf"),
            (refused(Refusal::NoDatabase), "as the server said", "CREATE DATABASE \"Jobs\""),
            (refused(Refusal::Certificate), "as the server said", "sslrootcert=FILE"),
            (refused(Refusal::Encryption), "as the server said", "sslmode=disable"),
            (
                Unavailable::Forbidden("no".into()),
                "`app` may not do this",
                "GRANT USAGE ON SCHEMA night TO app",
            ),
            (Unavailable::Standby, "accepts no writes", "name the primary"),
            (Unavailable::CommitUnknown, "unknown whether", "windlass runs"),
            (Unavailable::NoTables("schema `night`".into()), "schema `night` has no tables", "?schema=NAME"),
            (Unavailable::CannotOpen("it is old".into()), "it is old", "--db URL"),
            (Unavailable::NewerVersion { found: 9, supported: 1 }, "version 9", "newer windlass"),
            (Unavailable::Locked, "held a lock", "pg_locks"),
            (
                Unavailable::NoConnectionFree("h: too many".into()),
                "free connection: h: too many",
                "max_connections",
            ),
            (Unavailable::Exhausted("out of memory".into()), "out of memory", "log"),
            (
                Unavailable::Cancelled("due to statement timeout".into()),
                "due to statement timeout",
                "ALTER ROLE app SET statement_timeout = 0",
            ),
            (Unavailable::Incomplete("no jobs".into()), "missing in postgres://app", "schema `night`"),
            (Unavailable::DiskFull, "disk of the database server", "windlass resume"),
            (Unavailable::Corrupt("page".into()), "damaged: page", "restore a dump"),
            (Unavailable::InputOutput("oops".into()), "oops", "log"),
            (Unavailable::OutOfResources("no thread".into()), "this process needs: no thread", "ulimit -u"),
            (Unavailable::Closed, "was closed", "windlass resume"),
            (Unavailable::ReadOnly, "cannot be used", "--db URL"),
        ];
        for (reason, message_part, help_part) in cases {
            let (message, help) = said(reason.clone());
            assert!(message.contains(message_part), "{reason:?}: {message}");
            assert!(help.contains(help_part), "{reason:?}: {help}");
            assert!(!format!("{message}{help}").contains("s3cret"), "{reason:?}: {message} {help}");
        }
    }

    #[test]
    fn a_name_is_quoted_for_sql_where_it_must_be() {
        let cases = [("jobs_2", "jobs_2"), ("Jobs", "\"Jobs\""), ("2x", "\"2x\""), ("a\"b", "\"a\"\"b\"")];
        for (name, expected) in cases {
            assert_eq!(identifier(name), expected);
        }
    }
}
