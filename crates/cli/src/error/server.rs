//! Why a database on a server can't be used, in the words of the command line.

use windlass::{POSTGRES_CONNECTIONS_MAX, PostgresAddress, Refusal, Unavailable};

use crate::cli::quoted;

/// What is wrong, and what to do. `for_libpq` is the address for PostgreSQL's own programs.
pub(super) fn unavailable(
    reason: Unavailable,
    address: &PostgresAddress,
    for_libpq: &str,
    hint: impl Fn(&str) -> String,
) -> (String, String) {
    match reason {
        Unavailable::Unreachable(why) => (
            format!("no connection to the database server: {why}"),
            format!(
                "`pg_isready --dbname={}` tells whether it answers; correct the address, or wait until it does",
                quoted(for_libpq)
            ),
        ),
        Unavailable::NoConnectionFree(why) => (
            format!("no connection to the database server is free: {why}"),
            format!(
                "pg_stat_activity on the server shows who has them and what they do: end those that nobody needs, \
                 raise max_connections, or the CONNECTION LIMIT of the role or the database, or put a pooler such as \
                 PgBouncer before the server; a process of windlass opens at most {POSTGRES_CONNECTIONS_MAX}"
            ),
        ),
        Unavailable::Exhausted(why) => (
            format!("the database server is at a limit of its own: {why}"),
            "its log tells more; give it more memory, or raise the setting that it names, then try again".to_owned(),
        ),
        Unavailable::Cancelled(why) => (
            format!("the database server cancelled a statement in {address}: {why}"),
            cancelled(address),
        ),
        Unavailable::Incomplete(why) => (
            format!("a part of windlass's tables is missing in {address}: {why}"),
            format!(
                "somebody removed or changed it: restore a dump of schema `{}`; ?schema=NAME in the address names \
                 another one, and `{}` makes all tables where there are none",
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
            format!("{address} takes no writes: it is a standby, or read-only for `{}`", address.user()),
            "name the primary; with all servers of a cluster in the address, as in postgres://user@a,b/dbname, \
             the one that takes writes is found"
                .to_owned(),
        ),
        Unavailable::CommitUnknown => (
            format!("the connection to {address} broke during a commit: whether it was kept is not known"),
            format!("look with `{}` before you repeat it", hint("runs")),
        ),
        Unavailable::NoTables(place) => (
            format!("nothing of windlass is in {place}"),
            format!(
                "`{}` makes its tables; ?schema=NAME in the address names another schema than `{}`",
                hint("db migrate"),
                address.schema()
            ),
        ),
        Unavailable::CannotOpen(why) => (
            format!("{address} cannot be used: {why}"),
            "name another database with --db URL or WINDLASS_DB".to_owned(),
        ),
        Unavailable::NewerVersion { found, supported } => {
            super::newer_version(&address.to_string(), found, supported)
        }
        Unavailable::Locked => (
            format!("somebody else keeps locked for too long what this needs in {address}"),
            "try again; on the server, pg_stat_activity and pg_locks show who it is".to_owned(),
        ),
        Unavailable::DiskFull => (
            format!("the disk of the database server is full: {address} cannot grow"),
            format!("make room there, then `{}` carries on; what was accepted is kept", hint("resume")),
        ),
        Unavailable::Corrupt(why) => (
            format!("{address} is damaged: {why}"),
            "the server's log tells more; keep a copy of its data, then restore a dump".to_owned(),
        ),
        Unavailable::InputOutput(why) => (
            format!("the database server has a fault of its own: {why}"),
            "its log tells more".to_owned(),
        ),
        Unavailable::OutOfResources(why) => super::out_of_resources(&why),
        Unavailable::Closed => super::closed(&address.to_string(), hint),
        // What only a file can be.
        Unavailable::Missing(_)
        | Unavailable::NotADatabase
        | Unavailable::HardLinked { .. }
        | Unavailable::Foreign { .. }
        | Unavailable::ReadOnly => (
            format!("{address} cannot be used: {reason}"),
            "name another database with --db URL or WINDLASS_DB".to_owned(),
        ),
    }
}

/// The server is there, and there is no connection.
fn refused(refusal: Refusal, detail: &str, address: &PostgresAddress) -> (String, String) {
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
            "correct the user name `{user}`, or on the server pg_hba.conf: it says who comes in from where and how, \
             encrypted (hostssl) or not (hostnossl); `sslmode` in the address chooses"
        ),
        Refusal::NoDatabase => format!(
            "correct the name, or make it on the server: CREATE DATABASE {} ENCODING 'UTF8'",
            identifier(address.database())
        ),
        Refusal::Certificate => "give the authority's certificate with sslrootcert=FILE in the address, and as the \
                                 host a name that the certificate is made for; `sslmode` says how much is checked"
            .to_owned(),
        Refusal::Encryption => {
            "`sslmode` in the address says what is asked for, `SHOW ssl` at the server what it offers; \
             sslmode=disable is for networks where nobody else listens"
                .to_owned()
        }
    };
    (message, help)
}

/// Where the limits are that end a statement.
fn cancelled(address: &PostgresAddress) -> String {
    let user = identifier(address.user());
    format!(
        "a time limit of the server did it, or a person with pg_cancel_backend. Where the message names a timeout, that is \
         the setting: SHOW statement_timeout as {user} tells its value, and on the server\n\
         ALTER ROLE {user} SET statement_timeout = 0;\n\
         takes it away; ALTER DATABASE, postgresql.conf and a pooler may set it too"
    )
}

/// What gives a role the rights that windlass needs.
fn grants(address: &PostgresAddress) -> String {
    let (database, schema, user) =
        (identifier(address.database()), address.schema(), identifier(address.user()));
    format!(
        "on the server, as the owner of the database:\n\
         GRANT CONNECT ON DATABASE {database} TO {user};\n\
         CREATE SCHEMA IF NOT EXISTS {schema} AUTHORIZATION {user};    -- makes and migrates its tables\n\
         or, for a role that only works with tables that are there:\n\
         GRANT USAGE ON SCHEMA {schema} TO {user};\n\
         GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {user};"
    )
}

/// A name as SQL takes it.
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
    fn each_reason_has_its_words_and_a_next_step() {
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
            (Unavailable::Standby, "takes no writes", "name the primary"),
            (Unavailable::CommitUnknown, "whether it was kept", "windlass runs"),
            (Unavailable::NoTables("schema `night`".into()), "in schema `night`", "?schema=NAME"),
            (Unavailable::CannotOpen("it is old".into()), "it is old", "--db URL"),
            (Unavailable::NewerVersion { found: 9, supported: 1 }, "version 9", "newer windlass"),
            (Unavailable::Locked, "keeps locked", "pg_locks"),
            (Unavailable::NoConnectionFree("h: too many".into()), "free: h: too many", "max_connections"),
            (Unavailable::Exhausted("out of memory".into()), "out of memory", "its log"),
            (
                Unavailable::Cancelled("due to statement timeout".into()),
                "due to statement timeout",
                "ALTER ROLE app SET statement_timeout = 0",
            ),
            (Unavailable::Incomplete("no jobs".into()), "missing in postgres://app", "schema `night`"),
            (Unavailable::DiskFull, "disk of the database server", "windlass resume"),
            (Unavailable::Corrupt("page".into()), "damaged: page", "restore a dump"),
            (Unavailable::InputOutput("oops".into()), "oops", "log"),
            (Unavailable::OutOfResources("no thread".into()), "lacks what it needs: no thread", "ulimit -u"),
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
