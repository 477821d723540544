//! The costs on SQLite: the work of the only writer. Reads do not wait for the writer and are not counted.

use std::sync::Arc;

use windlass::Random;
use windlass_db::Database;
use windlass_db::sqlite::{SqliteDatabase, SqliteOptions};
use windlass_engine::{Store, TABLES};

use crate::ceilings::{ON_FILE, OnFile};
use crate::work::{Cost, hold};

// There is only one test, because a process can count only one database at a time.
#[test]
fn a_job_costs_no_more_than_its_ceilings() {
    hold(ON_FILE.iter().flat_map(costs).collect());
}

fn costs(most: &OnFile) -> [Cost; 3] {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("windlass.db");
    let (database, costs) = SqliteDatabase::open_counted(&path, &TABLES, &SqliteOptions::default()).unwrap();
    let database = Arc::new(database);
    let shared = Arc::clone(&database) as Arc<dyn Database>;
    let store = Store::new(shared, most.work.clock(), Random::from_seed(7));
    let counts = || [database.commits(), costs.statements(), costs.vm_steps()];
    let mut before = [0; 3];
    most.work.perform(&store, &store, || before = counts());
    let [commits, statements, vm_steps] = std::array::from_fn(|which| counts()[which] - before[which]);
    [
        Cost { work: most.work, unit: "commits", counted: commits, ceiling: most.commits },
        Cost { work: most.work, unit: "statements", counted: statements, ceiling: most.statements },
        Cost { work: most.work, unit: "steps", counted: vm_steps, ceiling: most.steps },
    ]
}
