//! The execution of pending no-op jobs, for each durability, compared with raw rows.

use windlass_db::Durability;
use windlass_engine::HasStore;
use windlass_engine::store::{ENQUEUE_MAX, NewJob};

use super::{name_of, per_second};
use crate::error::BenchError;
use crate::noop::{self, NOOP};
use crate::record::Record;
use crate::report::Unit::PerSecond;
use crate::scratch::Scratch;

/// The numbers of rows in a transaction of the references.
const GROUPS: [usize; 2] = [100, 1_000];

pub(crate) fn measure(scratch: &Scratch<'_>, record: &mut Record) -> Result<(), BenchError> {
    for _round in 0..scratch.plan.rounds {
        for durability in [Durability::Full, Durability::Normal] {
            let name = name_of(durability);
            record.windlass(
                format!("drain_{name}"),
                format!("no-op jobs executed, {name}"),
                PerSecond,
                rate(scratch, durability)?,
            );
            for group in GROUPS {
                raw(scratch, record, durability, group)?;
            }
        }
    }
    for name in [Durability::Full, Durability::Normal].map(name_of) {
        for group in GROUPS.into_iter().rev() {
            record.compare(format!("drain_{name}"), format!("raw_{name}_{group}_without_insert"));
            record.compare(format!("drain_{name}"), format!("raw_{name}_{group}"));
        }
    }
    Ok(())
}

/// Jobs a second, from the start of the worker until the last end is committed.
fn rate(scratch: &Scratch<'_>, durability: Durability) -> Result<f64, BenchError> {
    let jobs = scratch.sizes().drain;
    let database = scratch.new_database()?;
    let windlass = database.open(durability)?;
    for first in (0..jobs).step_by(ENQUEUE_MAX) {
        windlass.store().jobs().enqueue(vec![NewJob::new(NOOP, "null"); ENQUEUE_MAX.min(jobs - first)])?;
    }
    Ok(per_second(jobs, noop::drain(&windlass, jobs, &scratch.plan.interruption)?))
}

fn raw(
    scratch: &Scratch<'_>,
    record: &mut Record,
    durability: Durability,
    group: usize,
) -> Result<(), BenchError> {
    let name = name_of(durability);
    let database = scratch.new_database()?;
    let times = database.raw(durability)?.rows(scratch.sizes().drain, group, &scratch.plan.interruption)?;
    record.machine(
        format!("raw_{name}_{group}_without_insert"),
        format!("raw claim and finish, {group} a transaction, {name}"),
        PerSecond,
        times.without_insert(),
    );
    record.machine(
        format!("raw_{name}_{group}"),
        format!("raw insert, claim and finish, {group} a transaction, {name}"),
        PerSecond,
        times.with_insert(),
    );
    Ok(())
}
