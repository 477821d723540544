//! On a file: what the only writer does. What is read beside it waits for nobody and is not counted.

use std::sync::{Arc, Mutex, PoisonError};

use windlass::{Clock, Random, Store};
use windlass_engine::db::Database;
use windlass_engine::db::sqlite::{SqliteDatabase, SqliteOptions};

use crate::ceilings::ON_FILE;
use crate::work::{Cost, Work, hold};

/// One database of a process is counted at a time.
static COUNTED: Mutex<()> = Mutex::new(());

#[test]
fn enqueueing_one_by_one_costs_no_more() {
    stays_below(Work::EnqueueOne);
}

#[test]
fn enqueueing_a_batch_costs_no_more() {
    stays_below(Work::EnqueueBatch);
}

#[test]
fn a_drain_costs_no_more() {
    stays_below(Work::Drain);
}

#[test]
fn a_chain_costs_no_more() {
    stays_below(Work::Chain);
}

#[test]
fn a_fan_costs_no_more() {
    stays_below(Work::Fan);
}

#[track_caller]
fn stays_below(work: Work) {
    let _alone = COUNTED.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("windlass.db");
    let (database, costs) = SqliteDatabase::open_counted(&path, &SqliteOptions::default()).unwrap();
    let database = Arc::new(database);
    let store = Store::new(Arc::clone(&database) as Arc<dyn Database>, Clock::system(), Random::from_seed(7));
    let counts = || [database.commits(), costs.statements(), costs.vm_steps()];
    let mut before = [0; 3];
    work.perform(&store, &store, || before = counts());
    let [commits, statements, vm_steps] = std::array::from_fn(|which| counts()[which] - before[which]);
    let most = ON_FILE.iter().find(|ceiling| ceiling.work == work).unwrap();
    hold(
        work,
        &[
            Cost { unit: "commits", counted: commits, ceiling: most.commits },
            Cost { unit: "statements", counted: statements, ceiling: most.statements },
            Cost { unit: "steps", counted: vm_steps, ceiling: most.steps },
        ],
    );
}
