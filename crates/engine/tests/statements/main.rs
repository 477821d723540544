//! Every statement of the store can be prepared on each database, and SQL is only where it may be. The statements are read
//! out of the sources, so that none is forgotten.
#![allow(clippy::unwrap_used, missing_docs)]

mod collect;

use std::path::{Path, PathBuf};

use collect::{Found, collect};
use windlass_db::Dialect;
use windlass_engine::TABLES;

/// Statements of the store at least: fewer were read wrong.
const STATEMENTS_MIN: usize = 150;
/// Where a macro makes statements from the columns of a table. `copying.rs` runs all of them, on both databases.
const MADE_BY_MACROS: [&str; 1] = ["store/copy/tables.rs"];

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn of_the_engine() -> Found {
    let mut found = collect(&crates().join("engine/src"));
    // A text for people may show a statement.
    found.strays.retain(|(place, text)| {
        !text.contains('`') && !MADE_BY_MACROS.iter().any(|file| place.contains(file))
    });
    assert!(found.statements.len() >= STATEMENTS_MIN, "{} statements", found.statements.len());
    found
}

/// Prepares all texts of all statements, and reports every one that fails.
fn prepare_all(dialect: Dialect, mut prepare: impl FnMut(&str) -> Result<(), String>) {
    let mut wrong = Vec::new();
    for (place, statement) in of_the_engine().statements {
        for text in statement.texts(dialect, TABLES.fragments) {
            if let Err(error) = prepare(&text) {
                wrong.push(format!("{place}: {error}\n{text}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} statements:\n{}", wrong.len(), wrong.join("\n\n"));
}

#[test]
fn every_statement_can_be_prepared_on_sqlite() {
    use windlass_db::sqlite::{SqliteDatabase, SqliteOptions};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("windlass.db");
    drop(SqliteDatabase::open(&path, &TABLES, &SqliteOptions::default()).unwrap());
    let raw = rusqlite::Connection::open(&path).unwrap();
    prepare_all(Dialect::Sqlite, |text| match raw.prepare(text) {
        Ok(_prepared) => Ok(()),
        Err(error) => Err(error.to_string()),
    });
}

#[cfg(feature = "postgres")]
#[test]
fn every_statement_can_be_prepared_on_postgres() {
    use windlass_db::postgres::{PostgresAddress, PostgresDatabase, PostgresOptions};
    let schema = windlass_test_server::Schema::new();
    let address = PostgresAddress::parse(&schema.url(), &|_name| None).unwrap();
    drop(PostgresDatabase::open(&address, &TABLES, &PostgresOptions::default()).unwrap());
    let mut client = schema.client();
    prepare_all(Dialect::Postgres, |text| match client.prepare(text) {
        Ok(_prepared) => Ok(()),
        Err(error) => Err(error.as_db_error().map_or_else(|| error.to_string(), ToString::to_string)),
    });
}

fn shown(texts: &[(String, String)]) -> String {
    texts.iter().map(|(place, text)| format!("{place}: {text}")).collect::<Vec<_>>().join("\n\n")
}

#[test]
fn no_text_of_the_store_is_a_piece_of_a_statement() {
    let strays = of_the_engine().strays;
    assert!(strays.is_empty(), "{}", shown(&strays));
}

/// The store has the SQL about tables. The seam has the SQL about databases, and names no table.
#[test]
fn the_seam_names_no_table_of_windlass() {
    let named = |text: &str| {
        let mut words = text.split(|character: char| !character.is_ascii_alphanumeric() && character != '_');
        words.any(|word| TABLES.names.contains(&word))
    };
    let mut found = collect(&crates().join("db/src"));
    assert!(found.texts.len() >= 20, "{} texts", found.texts.len());
    found.texts.retain(|(_place, text)| named(text));
    assert!(found.texts.is_empty(), "{}", shown(&found.texts));
}

/// The references of the benchmarks use the tables of other programs, or ours without the store.
#[test]
fn no_other_crate_has_sql() {
    for entry in std::fs::read_dir(crates()).unwrap() {
        let folder = entry.unwrap().path();
        if ["db", "engine"].iter().any(|with_sql| folder.ends_with(with_sql)) {
            continue;
        }
        let mut found = collect(&folder.join("src"));
        // The tests of the web server change rows as other programs do.
        let may_have_sql =
            |place: &str| ["bench/src/raw", "web/src/tests/"].iter().any(|part| place.contains(part));
        found.statements.retain(|(place, _statement)| !may_have_sql(place));
        assert!(found.statements.is_empty(), "{:#?}", found.statements);
    }
}
