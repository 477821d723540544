//! The same statements on both databases give the same values.
#![allow(clippy::unwrap_used, missing_docs)]

use windlass_test_database::{Access, DatabaseKind, TestDatabase, chosen_kind};

/// An empty database.
fn made(folder: &tempfile::TempDir) -> TestDatabase {
    let database = TestDatabase::in_folder(folder.path());
    assert!(!database.exists());
    match database.kind() {
        DatabaseKind::Sqlite => drop(std::fs::File::create(database.address()).unwrap()),
        DatabaseKind::Postgres => {
            let name = database.address().rsplit('=').next().unwrap().to_owned();
            database.sql(Access::Write).execute(&format!("CREATE SCHEMA {name}"));
        }
    }
    database
}

#[test]
fn values_are_what_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let database = made(&folder);
    assert_eq!(database.kind(), chosen_kind());
    assert!(database.exists() && !database.has_table("kept"));
    let sql = database.sql(Access::Write);
    sql.execute("CREATE TABLE kept (id BIGINT, name TEXT); INSERT INTO kept VALUES (7, 'é'), (8, NULL)");
    assert!(database.has_table("kept"));
    let rows = sql.rows("SELECT * FROM kept ORDER BY id", |row| {
        Ok((row.get::<_, i64>("id")?, row.get::<_, Option<String>>(1)?))
    });
    assert_eq!(rows, [(7, Some("é".to_owned())), (8, None)]);
    assert_eq!(sql.value::<i64>("SELECT count(*) FROM kept"), 2);
    assert!(sql.value::<bool>("SELECT count(*) = 2 FROM kept"));
    let refused = |column: &str| {
        let rows = sql.query(&format!("SELECT {column} FROM kept ORDER BY id DESC")).unwrap();
        rows[0].get::<_, i64>("name").is_err()
    };
    assert!(refused("name") && refused("id"), "NULL, and no such column");
    assert!(sql.query("SELECT * FROM absent").is_err() && sql.try_execute("nonsense").is_err());
}

#[test]
fn a_reader_cannot_write() {
    let folder = tempfile::tempdir().unwrap();
    let database = made(&folder);
    database.sql(Access::Write).execute("CREATE TABLE kept (id BIGINT)");
    let reader = database.sql(Access::Read);
    assert!(reader.try_execute("INSERT INTO kept VALUES (1)").is_err());
    assert_eq!(reader.value::<i64>("SELECT count(*) FROM kept"), 0);
}
