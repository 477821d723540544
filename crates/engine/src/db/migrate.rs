//! Brings the tables to the version this program knows. Migrations are numbered and only ever added.

use crate::db::{Connection, Dialect, first, one};
use crate::error::{Error, Result, Unavailable};

struct Migration {
    version: i64,
    name: &'static str,
    sql: &'static str,
    /// What only PostgreSQL needs beside it.
    postgres: &'static str,
}

const MIGRATIONS: &[Migration] = &[
    Migration {
        version: 1,
        name: "core",
        sql: include_str!("../../migrations/0001_core.sql"),
        postgres: include_str!("../../migrations/0001_core.postgres.sql"),
    },
    Migration {
        version: 2,
        name: "serve",
        sql: include_str!("../../migrations/0002_serve.sql"),
        postgres: include_str!("../../migrations/0002_serve.postgres.sql"),
    },
];

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
/// `instance` is a globally unique text for a database that has none yet: idempotency keys start with
/// it, so that job 1 of two databases never share one.
///
/// # Errors
/// [`Unavailable::NewerVersion`] when the tables are newer than this program,
/// [`Unavailable::Foreign`] when tables of another program have our names.
pub fn migrate(connection: &mut dyn Connection, now_ms: i64, instance: &str) -> Result<(i64, i64)> {
    let dialect = connection.dialect();
    let before = match version(connection)? {
        Some(before) => before,
        None => {
            refuse_foreign_tables(connection)?;
            connection.batch(&dialect.translate(LEDGER))?;
            0
        }
    };
    if before > SCHEMA_VERSION {
        let reason = Unavailable::NewerVersion { found: before, supported: SCHEMA_VERSION };
        return Err(Error::unavailable("open the database", reason));
    }
    for migration in MIGRATIONS.iter().filter(|migration| migration.version > before) {
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
    // From the smallest number on: other programs may choose ids.
    connection.execute(
        "INSERT INTO instances (first_job_id, instance)
         SELECT CAST($1 AS {integer}), CAST($2 AS TEXT) WHERE NOT EXISTS (SELECT 1 FROM instances)",
        &[i64::MIN.into(), instance.into()],
    )?;
    Ok((before, SCHEMA_VERSION))
}

/// A database of another program that happens to have a table `jobs` is not ours to change.
fn refuse_foreign_tables(connection: &mut dyn Connection) -> Result<()> {
    let taken = first(
        connection,
        "SELECT name FROM {tables} AS present
         WHERE name IN ('instances', 'workflows', 'schedules', 'runs', 'jobs', 'job_dependencies',
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
