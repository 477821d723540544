//! Brings the tables to the version this program knows. Migrations are numbered and only ever added.

use crate::db::{Connection, Dialect, first, one};
use crate::error::{Error, Result, Unavailable};

#[derive(Clone, Copy)]
struct Migration {
    version: i64,
    name: &'static str,
    sql: &'static str,
    /// What only PostgreSQL needs beside it.
    postgres: &'static str,
}

const MIGRATIONS: &[Migration] = &[Migration {
    version: 1,
    name: "core",
    sql: include_str!("../../migrations/0001_core.sql"),
    postgres: include_str!("../../migrations/0001_core.postgres.sql"),
}];

/// The newest version of the tables that this program knows.
pub const SCHEMA_VERSION: i64 = MIGRATIONS[MIGRATIONS.len() - 1].version;

const LEDGER: &str = "CREATE TABLE IF NOT EXISTS schema_migrations (
    version     {integer} NOT NULL PRIMARY KEY,
    name        {text} NOT NULL,
    applied_at  {integer} NOT NULL
) {strict};";

/// The version of the tables; `None` where there are none of ours.
///
/// # Errors
/// The database's.
pub fn version(connection: &mut dyn Connection) -> Result<Option<i64>> {
    let ours = first(
        connection,
        "SELECT 1 FROM {tables} AS present WHERE name = 'schema_migrations'",
        &[],
        |row| row.integer(0),
    )?;
    if ours.is_none() {
        return Ok(None);
    }
    let newest = "SELECT coalesce(max(version), 0) FROM schema_migrations";
    one(connection, newest, &[], |row| row.integer(0)).map(Some)
}

/// Applies what is missing, inside the caller's transaction; returns the version before and after.
///
/// `instance` is a globally unique name for a database that has none yet.
///
/// # Errors
/// [`Unavailable::NewerVersion`] when the tables are newer than this program,
/// [`Unavailable::Foreign`] when tables of another program have our names.
pub fn migrate(connection: &mut dyn Connection, now_ms: i64, instance: &str) -> Result<(i64, i64)> {
    let versions = apply(connection, MIGRATIONS, now_ms)?;
    connection.execute(
        "INSERT INTO instance (id, name) VALUES (1, $1) ON CONFLICT (id) DO NOTHING",
        &[instance.into()],
    )?;
    Ok(versions)
}

/// Applies those of `migrations` that are newer than the tables; returns the version before and after.
fn apply(connection: &mut dyn Connection, migrations: &[Migration], now_ms: i64) -> Result<(i64, i64)> {
    let dialect = connection.dialect();
    let before = match version(connection)? {
        Some(before) => before,
        None => {
            refuse_foreign_tables(connection)?;
            connection.batch(&dialect.translate(LEDGER))?;
            0
        }
    };
    let newest = migrations.last().map_or(0, |migration| migration.version);
    if before > newest {
        let reason = Unavailable::NewerVersion { found: before, supported: newest };
        return Err(Error::unavailable("open the database", reason));
    }
    for migration in migrations.iter().filter(|migration| migration.version > before) {
        connection.batch(&dialect.translate(migration.sql))?;
        match dialect {
            Dialect::Sqlite => {}
            Dialect::Postgres => connection.batch(migration.postgres)?,
        }
        connection.execute(
            "INSERT INTO schema_migrations (version, name, applied_at) VALUES ($1, $2, $3)",
            &[migration.version.into(), migration.name.into(), now_ms.into()],
        )?;
    }
    Ok((before, newest))
}

/// A database of another program that happens to have a table `jobs` is not ours to change.
fn refuse_foreign_tables(connection: &mut dyn Connection) -> Result<()> {
    let taken = first(
        connection,
        "SELECT name FROM {tables} AS present
         WHERE name IN ('instance', 'commit_tokens', 'workflows', 'schedules', 'runs', 'jobs', 'job_dependencies',
                        'job_attempts', 'job_logs', 'workers', 'queues', 'job_stats', 'dead_letters',
                        'runs_readable', 'jobs_readable')
         ORDER BY name LIMIT 1",
        &[],
        |row| row.text(0),
    )?;
    match taken {
        None => Ok(()),
        Some(table) => Err(Error::unavailable("open the database", Unavailable::Foreign { table })),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::db::sqlite::{SqliteDatabase, SqliteOptions};
    use crate::db::{Database, Recovery, all};

    /// What a later program would know. Its first migration changes rows that the one before wrote.
    const LATER: [Migration; 3] = [
        MIGRATIONS[0],
        Migration {
            version: SCHEMA_VERSION + 1,
            name: "one later",
            sql: "ALTER TABLE queues ADD COLUMN note {text}; UPDATE queues SET note = name;",
            postgres: "",
        },
        Migration {
            version: SCHEMA_VERSION + 2,
            name: "two later",
            sql: "CREATE INDEX queues_note ON queues (note);",
            postgres: "",
        },
    ];
    const LATE_MS: i64 = 7_000;

    fn made() -> (tempfile::TempDir, SqliteDatabase) {
        let folder = tempfile::tempdir().unwrap();
        let database =
            SqliteDatabase::open(&folder.path().join("windlass.db"), &SqliteOptions::default()).unwrap();
        let queue = "INSERT INTO queues (name) VALUES ('mail')";
        let add = move |connection: &mut dyn Connection| connection.execute(queue, &[]).map(|_rows| ());
        database.write("add a queue", Box::new(add), Recovery::Report).unwrap();
        (folder, database)
    }

    fn applied(database: &SqliteDatabase, migrations: &'static [Migration]) -> Result<(i64, i64)> {
        let (sender, receiver) = std::sync::mpsc::channel();
        let apply = move |connection: &mut dyn Connection| {
            let versions = apply(connection, migrations, LATE_MS)?;
            sender.send(versions).unwrap();
            Ok(())
        };
        database.write("migrate", Box::new(apply), Recovery::Report)?;
        Ok(receiver.recv().unwrap())
    }

    fn texts(database: &SqliteDatabase, sql: &'static str) -> Vec<String> {
        let mut found = Vec::new();
        database
            .read(&mut |connection| {
                found = all(connection, sql, &[], |row| row.text(0))?;
                Ok(())
            })
            .unwrap();
        found
    }

    const LEDGER_OF_LATER: &str =
        "SELECT version || ' ' || name || ' ' || CASE applied_at WHEN 7000 THEN 'now'
        ELSE 'before' END FROM schema_migrations ORDER BY version";

    #[test]
    fn only_what_is_missing_is_applied_in_order_and_rows_stay() {
        let (_folder, database) = made();
        assert_eq!(applied(&database, &LATER[..2]), Ok((SCHEMA_VERSION, SCHEMA_VERSION + 1)));
        assert_eq!(texts(&database, "SELECT note FROM queues"), ["mail"]);
        assert_eq!(applied(&database, &LATER), Ok((SCHEMA_VERSION + 1, SCHEMA_VERSION + 2)));
        assert_eq!(
            applied(&database, &LATER),
            Ok((SCHEMA_VERSION + 2, SCHEMA_VERSION + 2)),
            "nothing is left"
        );
        let ledger = ["1 core before", "2 one later now", "3 two later now"];
        assert_eq!(texts(&database, LEDGER_OF_LATER), ledger);
    }

    #[test]
    fn several_versions_at_once_are_all_or_nothing() {
        const BROKEN: [Migration; 3] =
            [LATER[0], LATER[1], Migration { sql: "CREATE INDEX broken ON absent (it);", ..LATER[2] }];
        let (_folder, database) = made();
        assert!(applied(&database, &BROKEN).is_err());
        assert_eq!(texts(&database, LEDGER_OF_LATER), ["1 core before"]);
        assert!(
            texts(&database, "SELECT name FROM pragma_table_info('queues') WHERE name = 'note'").is_empty()
        );
        assert_eq!(
            applied(&database, &LATER),
            Ok((SCHEMA_VERSION, SCHEMA_VERSION + 2)),
            "it can be repeated"
        );
    }

    #[test]
    fn tables_of_a_later_program_are_refused() {
        let (_folder, database) = made();
        applied(&database, &LATER).unwrap();
        let reason = Unavailable::NewerVersion { found: SCHEMA_VERSION + 2, supported: SCHEMA_VERSION };
        assert_eq!(applied(&database, MIGRATIONS), Err(Error::unavailable("open the database", reason)));
    }
}
