//! Whether rows that are not for now cost anything: jobs are executed before few and before many finished, blocked,
//! delayed and pending rows. And how large a database becomes.

use windlass::Windlass;
use windlass_engine::HasStore;
use windlass_engine::store::{ENQUEUE_MAX, NewJob};

use super::per_second;
use crate::error::BenchError;
use crate::noop::{self, NOOP};
use crate::place::{Fresh, Scratch};
use crate::raw::Rows;
use crate::record::Record;
use crate::report::Unit::{Bytes, PerSecond};

pub(crate) fn measure(scratch: &Scratch<'_>, record: &mut Record) -> Result<(), BenchError> {
    let sizes = scratch.sizes();
    let mut few = Filled::with(scratch, sizes.rows_few)?;
    let mut many = Filled::with(scratch, sizes.rows_many)?;
    for _round in 0..scratch.plan.rounds {
        let name = |rows| format!("jobs executed before {rows} rows that are not for now");
        record.windlass("before_few", name(sizes.rows_few), PerSecond, few.rate(scratch, sizes.before_rows)?);
        record.windlass(
            "before_many",
            name(sizes.rows_many),
            PerSecond,
            many.rate(scratch, sizes.before_rows)?,
        );
        record.windlass(
            "bytes_a_job",
            "what the database grows by for an executed job; megabytes for a million of them",
            Bytes,
            few.bytes_a_job(scratch, sizes.before_rows)?,
        );
    }
    record.compare("before_many", "before_few");
    Ok(())
}

/// A database with rows that nobody executes.
struct Filled {
    windlass: Windlass,
    fresh: Fresh,
}

impl Filled {
    fn with(scratch: &Scratch<'_>, rows: usize) -> Result<Filled, BenchError> {
        let fresh = scratch.fresh()?;
        let windlass = fresh.open(scratch.plan.durability)?;
        fresh.fill(Rows::Behind(rows), &scratch.plan.interruption)?;
        Ok(Filled { windlass, fresh })
    }

    fn enqueue(&self, jobs: usize) -> Result<(), BenchError> {
        for first in (0..jobs).step_by(ENQUEUE_MAX) {
            self.windlass
                .store()
                .jobs()
                .enqueue(vec![NewJob::new(NOOP, "null"); ENQUEUE_MAX.min(jobs - first)])?;
        }
        Ok(())
    }

    /// Jobs a second, from the start of the worker until the last end is committed.
    fn rate(&mut self, scratch: &Scratch<'_>, jobs: usize) -> Result<f64, BenchError> {
        self.enqueue(jobs)?;
        Ok(per_second(jobs, noop::drain(&self.windlass, jobs, &scratch.plan.interruption)?))
    }

    /// What it grows by for one more job that is enqueued and executed.
    fn bytes_a_job(&mut self, scratch: &Scratch<'_>, jobs: usize) -> Result<f64, BenchError> {
        let before = self.bytes()?;
        self.enqueue(jobs)?;
        noop::drain(&self.windlass, jobs, &scratch.plan.interruption)?;
        Ok((self.bytes()? - before) as f64 / jobs as f64)
    }

    /// Without the log: what is in it belongs to the file already.
    fn bytes(&self) -> Result<i64, BenchError> {
        match (&self.fresh, self.windlass.file()) {
            (_, Some(file)) => Ok(file.file_size()?.bytes),
            #[cfg(feature = "postgres")]
            (Fresh::Schema { url, schema }, None) => crate::raw::postgres::jobs_bytes(url, schema),
            (Fresh::Folder(_), None) => Ok(0),
        }
    }
}
