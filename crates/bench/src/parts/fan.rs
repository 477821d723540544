//! Wide graphs: one job, then many, then one; and layers, in which each job needs three jobs of the layer before. The time of a
//! job, compared with its time in a drain of the same size.

use std::time::Duration;
use windlass_engine::HasStore;

use windlass_engine::store::NewJob;
use windlass_workflow::Workflow;

use super::us_each;
use crate::error::BenchError;
use crate::noop::{self, NOOP};
use crate::record::Record;
use crate::report::Unit::Microseconds;
use crate::scratch::Scratch;
use crate::workflows;

pub(crate) fn measure(scratch: &Scratch<'_>, record: &mut Record) -> Result<(), BenchError> {
    let sizes = scratch.sizes();
    for _round in 0..scratch.plan.rounds {
        let jobs = sizes.fan;
        record.windlass(
            "drain_job",
            "a job of a drain of as many",
            Microseconds,
            us_each(drain(scratch, jobs)?, jobs),
        );
        let time = run(scratch, workflows::fan(jobs))?;
        record.windlass("fan_job", format!("a job of 1, {jobs}, 1"), Microseconds, us_each(time, jobs + 2));
        let side = sizes.layers;
        let time = run(scratch, workflows::layers(side, side))?;
        record.windlass(
            "layers_job",
            format!("a job of {side} layers of {side}"),
            Microseconds,
            us_each(time, side * side),
        );
    }
    record.compare("fan_job", "drain_job");
    record.compare("layers_job", "drain_job");
    Ok(())
}

fn drain(scratch: &Scratch<'_>, jobs: usize) -> Result<Duration, BenchError> {
    let database = scratch.new_database()?;
    let windlass = database.open(scratch.plan.durability)?;
    windlass.store().jobs().enqueue(vec![NewJob::new(NOOP, "null"); jobs])?;
    noop::drain(&windlass, jobs, &scratch.plan.interruption)
}

fn run(scratch: &Scratch<'_>, workflow: Workflow) -> Result<Duration, BenchError> {
    let database = scratch.new_database()?;
    let windlass = database.open(scratch.plan.durability)?;
    Ok(noop::run(&windlass, workflow, &scratch.plan.interruption)?.run)
}
