//! Applies the migrations that a database lacks. Migrations have numbers, and are only added.

use crate::error::{Error, Result, Unavailable};
use crate::{Connection, Dialect, Tables, first, one};

const MIGRATIONS_TABLE: &str = "CREATE TABLE IF NOT EXISTS schema_migrations (
    version     {integer} NOT NULL PRIMARY KEY,
    name        {text} NOT NULL,
    applied_at  {integer} NOT NULL
) {strict};";

/// The version of the tables; `None` if the database has no table of migrations.
///
/// # Errors
/// Returns the database's error.
pub(crate) fn version(connection: &mut dyn Connection) -> Result<Option<i64>> {
    let migrations_table = first(
        connection,
        "SELECT 1 FROM {tables} AS present WHERE name = 'schema_migrations'",
        &[],
        |row| row.integer(0),
    )?;
    if migrations_table.is_none() {
        return Ok(None);
    }
    let newest = "SELECT coalesce(max(version), 0) FROM schema_migrations";
    one(connection, newest, &[], |row| row.integer(0)).map(Some)
}

/// Applies the missing migrations, inside the caller's transaction. Returns the versions before and after.
///
/// `name` is a globally unique name, which a database gets that has no name yet.
///
/// # Errors
/// [`Unavailable::NewerVersion`] when the tables are newer than this program,
/// [`Unavailable::Foreign`] when tables of another program have the same names.
pub(crate) fn migrate(
    connection: &mut dyn Connection,
    tables: &Tables,
    now_ms: i64,
    name: &str,
) -> Result<(i64, i64)> {
    let versions = apply(connection, tables, now_ms)?;
    connection.execute(tables.name_database, &[name.into()])?;
    Ok(versions)
}

fn apply(connection: &mut dyn Connection, tables: &Tables, now_ms: i64) -> Result<(i64, i64)> {
    let dialect = connection.dialect();
    let before = match version(connection)? {
        Some(before) => before,
        None => {
            refuse_foreign_tables(connection, tables)?;
            connection.batch(&dialect.translate(MIGRATIONS_TABLE, tables.fragments))?;
            0
        }
    };
    let newest = tables.version();
    if before > newest {
        let reason = Unavailable::NewerVersion { found: before, supported: newest };
        return Err(Error::unavailable("open the database", reason));
    }
    for migration in tables.migrations.iter().filter(|migration| migration.version > before) {
        connection.batch(&dialect.translate(migration.sql, tables.fragments))?;
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

/// Refuses a database in which another program has a table with the name of one of ours.
fn refuse_foreign_tables(connection: &mut dyn Connection, tables: &Tables) -> Result<()> {
    let names = serde_json::to_string(tables.names)
        .map_err(|error| Error::internal("open the database", error.to_string()))?;
    let taken = first(
        connection,
        "SELECT name FROM {tables} AS present
         WHERE name IN (SELECT value FROM {texts $1} AS wanted) ORDER BY name LIMIT 1",
        &[names.as_str().into()],
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
    use crate::sqlite::{SqliteDatabase, SqliteOptions};
    use crate::{Database, Migration, Recovery, all};

    const FIRST: Migration = Migration {
        version: 1,
        name: "core",
        sql: "CREATE TABLE owner (id {integer} PRIMARY KEY, name {text}); CREATE TABLE queues (name {text});",
        postgres: "",
    };
    const SECOND: Migration = Migration {
        version: 2,
        name: "one later",
        sql: "ALTER TABLE queues ADD COLUMN note {text}; UPDATE queues SET note = name;",
        postgres: "",
    };
    const THIRD: Migration = Migration {
        version: 3,
        name: "two later",
        sql: "CREATE INDEX queues_note ON queues (note);",
        postgres: "",
    };
    const BROKEN: Migration = Migration { sql: "CREATE INDEX broken ON absent (it);", ..THIRD };

    const fn tables(migrations: &'static [Migration]) -> Tables {
        Tables {
            migrations,
            names: &["owner", "queues"],
            growing: &[],
            fragments: &[],
            name_database: "INSERT INTO owner (id, name) VALUES (1, $1) ON CONFLICT (id) DO NOTHING",
            rename_database: "UPDATE owner SET name = $1",
        }
    }

    static VERSION_1: Tables = tables(&[FIRST]);
    static VERSION_2: Tables = tables(&[FIRST, SECOND]);
    static VERSION_3: Tables = tables(&[FIRST, SECOND, THIRD]);
    static BROKEN_VERSION_3: Tables = tables(&[FIRST, SECOND, BROKEN]);
    const LATE_MS: i64 = 7_000;

    fn version_1_with_a_row() -> (tempfile::TempDir, SqliteDatabase) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("some.db");
        let database = SqliteDatabase::open(&path, &VERSION_1, &SqliteOptions::default()).unwrap();
        let queue = "INSERT INTO queues (name) VALUES ('mail')";
        let add = move |connection: &mut dyn Connection| connection.execute(queue, &[]).map(|_rows| ());
        database.write("add a queue", Box::new(add), Recovery::Report).unwrap();
        (folder, database)
    }

    fn applied(database: &SqliteDatabase, tables: &'static Tables) -> Result<(i64, i64)> {
        let (sender, receiver) = std::sync::mpsc::channel();
        let apply = move |connection: &mut dyn Connection| {
            let versions = apply(connection, tables, LATE_MS)?;
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

    const APPLIED: &str = "SELECT version || ' ' || name || ' ' || CASE applied_at WHEN 7000 THEN 'now'
        ELSE 'before' END FROM schema_migrations ORDER BY version";

    #[test]
    fn missing_migrations_are_applied_in_order_and_rows_stay() {
        let (_folder, database) = version_1_with_a_row();
        assert_eq!(applied(&database, &VERSION_2), Ok((1, 2)));
        assert_eq!(texts(&database, "SELECT note FROM queues"), ["mail"]);
        assert_eq!(applied(&database, &VERSION_3), Ok((2, 3)));
        assert_eq!(applied(&database, &VERSION_3), Ok((3, 3)), "nothing is left");
        assert_eq!(texts(&database, APPLIED), ["1 core before", "2 one later now", "3 two later now"]);
    }

    #[test]
    fn several_migrations_are_applied_all_or_none() {
        let (_folder, database) = version_1_with_a_row();
        assert!(applied(&database, &BROKEN_VERSION_3).is_err());
        assert_eq!(texts(&database, APPLIED), ["1 core before"]);
        let note = "SELECT name FROM pragma_table_info('queues') WHERE name = 'note'";
        assert!(texts(&database, note).is_empty());
        assert_eq!(applied(&database, &VERSION_3), Ok((1, 3)), "it can be repeated");
    }

    #[test]
    fn tables_of_a_newer_program_are_refused() {
        let (_folder, database) = version_1_with_a_row();
        applied(&database, &VERSION_3).unwrap();
        let reason = Unavailable::NewerVersion { found: 3, supported: 1 };
        assert_eq!(applied(&database, &VERSION_1), Err(Error::unavailable("open the database", reason)));
    }

    #[test]
    fn tables_of_another_program_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("some.db");
        rusqlite::Connection::open(&path).unwrap().execute_batch("CREATE TABLE queues (id)").unwrap();
        let refused = SqliteDatabase::open(&path, &VERSION_1, &SqliteOptions::default()).err();
        let reason = Unavailable::Foreign { table: "queues".to_owned() };
        assert_eq!(refused, Some(Error::unavailable("open the database", reason)));
    }
}
