//! A store on a database of its own, for tests. Time stands still.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use windlass_db::Database;
use windlass_db::postgres::{PostgresAddress, PostgresDatabase, PostgresOptions};
use windlass_db::sqlite::{SqliteDatabase, SqliteOptions};
use windlass_engine::{Clock, Random, Store, TABLES};
use windlass_test_database::{DatabaseKind, TestDatabase};

pub(crate) struct TestStore {
    pub(crate) store: Store,
    pub(crate) clock: Clock,
    pub(crate) database: TestDatabase,
    _folder: tempfile::TempDir,
}

impl TestStore {
    /// It is `now_ms`.
    pub(crate) fn at(now_ms: i64) -> TestStore {
        let folder = tempfile::tempdir().unwrap();
        let database = TestDatabase::in_folder(folder.path());
        let clock = Clock::manual(now_ms);
        TestStore { store: open(&database, &clock), clock, database, _folder: folder }
    }
}

/// Another process on the same database.
pub(crate) fn open(database: &TestDatabase, clock: &Clock) -> Store {
    let address = database.address();
    let opened: Arc<dyn Database> = match database.kind() {
        DatabaseKind::Sqlite => {
            Arc::new(SqliteDatabase::open(address.as_ref(), &TABLES, &SqliteOptions::default()).unwrap())
        }
        DatabaseKind::Postgres => {
            let address = PostgresAddress::parse(&address, &|_variable| None).unwrap();
            let options = PostgresOptions { clock: clock.clone(), ..PostgresOptions::default() };
            Arc::new(PostgresDatabase::open(&address, &TABLES, &options).unwrap())
        }
    };
    Store::new(opened, clock.clone(), Random::from_seed(1))
}
