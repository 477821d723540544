//! Whether rows that can't be claimed now cost time: jobs are executed while the table has few and many finished, blocked, delayed
//! and pending rows. And how large a database becomes.

use windlass::Windlass;
use windlass_engine::HasStore;
use windlass_engine::store::{ENQUEUE_MAX, NewJob};

use super::per_second;
use crate::error::BenchError;
use crate::noop::{self, NOOP};
use crate::raw::Rows;
use crate::record::Record;
use crate::report::Unit::{Bytes, PerSecond};
use crate::scratch::{Scratch, ScratchDatabase};

pub(crate) fn measure(scratch: &Scratch<'_>, record: &mut Record) -> Result<(), BenchError> {
    let sizes = scratch.sizes();
    let mut few = Filled::with(scratch, sizes.rows_few)?;
    let mut many = Filled::with(scratch, sizes.rows_many)?;
    for _round in 0..scratch.plan.rounds {
        let name = |rows| format!("jobs executed before {rows} rows that can't be claimed now");
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

/// A database with rows that no worker executes.
struct Filled {
    windlass: Windlass,
    database: ScratchDatabase,
}

impl Filled {
    fn with(scratch: &Scratch<'_>, rows: usize) -> Result<Filled, BenchError> {
        let database = scratch.new_database()?;
        let windlass = database.open(scratch.plan.durability)?;
        database.fill(Rows::NotClaimable(rows), &scratch.plan.interruption)?;
        Ok(Filled { windlass, database })
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

    /// Jobs a second, from the start of the worker until the last job's end is committed.
    fn rate(&mut self, scratch: &Scratch<'_>, jobs: usize) -> Result<f64, BenchError> {
        self.enqueue(jobs)?;
        Ok(per_second(jobs, noop::drain(&self.windlass, jobs, &scratch.plan.interruption)?))
    }

    /// The growth of the database for each job that is enqueued and executed.
    fn bytes_a_job(&mut self, scratch: &Scratch<'_>, jobs: usize) -> Result<f64, BenchError> {
        let before = self.bytes()?;
        self.enqueue(jobs)?;
        noop::drain(&self.windlass, jobs, &scratch.plan.interruption)?;
        Ok((self.bytes()? - before) as f64 / jobs as f64)
    }

    /// The size of the database, without the write-ahead log.
    fn bytes(&self) -> Result<i64, BenchError> {
        match (&self.database, self.windlass.file()) {
            (_, Some(file)) => Ok(file.file_size()?.bytes),
            #[cfg(feature = "postgres")]
            (ScratchDatabase::Schema { url, schema }, None) => crate::raw::postgres::jobs_bytes(url, schema),
            (ScratchDatabase::Folder(_), None) => Ok(0),
        }
    }
}
