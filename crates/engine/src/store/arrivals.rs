//! Jobs that several threads enqueue at the same time go to a server together.
//!
//! Alone each would be a transaction of its own there: two messages, a dozen settings and a flush for one row. Of those
//! that wait one leads, as on a file (`db::queue`), and what all of them want is one statement. Only what waits for
//! nobody goes with others: who takes a key may have to wait for whoever else takes it.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use super::Store;
use super::enqueue::{NewJob, WHAT, accept};
use crate::db::Reach;
use crate::db::queue::{Lead, Queue, answer, drop_all};
use crate::error::{Error, Result, Unavailable};

/// Jobs of one caller that go with others', at most; and the bytes of a payload.
const JOBS_MAX: usize = 4;
const PAYLOAD_MAX_BYTES: usize = 4_096;

/// Those that wait for their jobs to be accepted.
pub(super) struct Arrivals {
    queue: Queue<Arrival>,
}

/// The jobs of one caller, and where the ids go that they get.
struct Arrival {
    jobs: Vec<NewJob>,
    ids: Arc<Mutex<Vec<i64>>>,
}

impl Arrivals {
    pub(super) fn new() -> Arrivals {
        Arrivals { queue: Queue::new() }
    }
}

impl Store {
    /// Whether each caller would have a transaction of its own, and these jobs keep nobody waiting.
    pub(super) fn may_go_with_others(&self, jobs: &[NewJob]) -> bool {
        let is_simple = |job: &NewJob| {
            job.unique_key.is_none() && job.concurrency.is_none() && job.payload.len() <= PAYLOAD_MAX_BYTES
        };
        match self.reach() {
            // There all writes of a process go together.
            Reach::OneKernel => false,
            Reach::ManyHosts => (1..=JOBS_MAX).contains(&jobs.len()) && jobs.iter().all(is_simple),
        }
    }

    /// Accepts jobs together with those of other threads; returns their ids in the order given.
    pub(super) fn enqueue_with_others(&self, jobs: Vec<NewJob>) -> Result<Vec<i64>> {
        let ids = Arc::new(Mutex::default());
        let arrival = Arrival { jobs, ids: Arc::clone(&ids) };
        self.arrivals.queue.write(WHAT, arrival, |lead| self.lead_arrivals(lead))?;
        Ok(std::mem::take(&mut *ids.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Accepts the jobs of a group and answers it.
    fn lead_arrivals(&self, lead: Lead<'_, Arrival>) {
        let mut group = lead.group();
        let began_us = self.clock.monotonic_us();
        let mut jobs = Vec::new();
        let mut parts = Vec::with_capacity(group.len());
        for request in &mut group {
            let before = jobs.len();
            jobs.append(&mut request.work.jobs);
            parts.push(before..jobs.len());
        }
        let accepted = self.accept_parts(&Arc::new(jobs), &parts);
        lead.end(group.len(), self.clock.monotonic_us() - began_us, Vec::new());
        let results = group.iter().zip(accepted).map(|(request, accepted)| {
            accepted.map(|ids| *request.work.ids.lock().unwrap_or_else(PoisonError::into_inner) = ids)
        });
        let results = results.collect();
        answer(&mut group, results);
        drop_all(group);
    }

    /// Accepts all parts in one transaction, or, when one of them is refused, each in its own.
    fn accept_parts(&self, jobs: &Arc<Vec<NewJob>>, parts: &[Range<usize>]) -> Vec<Result<Vec<i64>>> {
        if let [part] = parts {
            return vec![self.accept_part(jobs, part.clone())];
        }
        match self.accept_all(jobs) {
            Ok(ids) => {
                parts.iter().map(|part| Ok(ids.get(part.clone()).unwrap_or_default().to_vec())).collect()
            }
            Err(error) if concerns_all(&error) => vec![Err(error); parts.len()],
            Err(_one_of_several) => self.accept_each(jobs, parts),
        }
    }

    /// Accepts each part in a transaction of its own, until something is wrong with the database: to try it may take long,
    /// and all wait.
    fn accept_each(&self, jobs: &Arc<Vec<NewJob>>, parts: &[Range<usize>]) -> Vec<Result<Vec<i64>>> {
        let mut everybodys = None;
        let accept = |part: &Range<usize>| {
            if let Some(error) = &everybodys {
                return Err(Error::clone(error));
            }
            let accepted = self.accept_part(jobs, part.clone());
            everybodys = accepted.as_ref().err().filter(|error| concerns_all(error)).cloned();
            accepted
        };
        parts.iter().map(accept).collect()
    }

    /// Accepts all jobs in one transaction; returns an id for each of them.
    fn accept_all(&self, jobs: &Arc<Vec<NewJob>>) -> Result<Vec<i64>> {
        let (jobs, clock) = (Arc::clone(jobs), self.clock.clone());
        self.write(WHAT, move |connection| {
            let ids = accept(connection, &jobs, clock.now_ms())?;
            if ids.len() == jobs.len() {
                return Ok(ids);
            }
            // Somebody's trigger leaves rows out, and nobody knows whose.
            Err(Error::internal(WHAT, format!("{} ids for {} jobs", ids.len(), jobs.len())))
        })
    }

    fn accept_part(&self, jobs: &Arc<Vec<NewJob>>, part: Range<usize>) -> Result<Vec<i64>> {
        let (jobs, clock) = (Arc::clone(jobs), self.clock.clone());
        self.write(WHAT, move |connection| {
            accept(connection, jobs.get(part.clone()).unwrap_or_default(), clock.now_ms())
        })
    }
}

/// Whether an error says nothing of the jobs. Then it may be known of none whether it was done, and trying each by itself
/// would come to the same.
fn concerns_all(error: &Error) -> bool {
    match error {
        // A policy for the rows of a table may forbid some of them.
        Error::Unavailable { reason: Unavailable::Forbidden(_), .. } => false,
        Error::Unavailable { .. } => true,
        Error::Conflict { .. } | Error::Invalid { .. } | Error::Internal { .. } | Error::NotFound { .. } => {
            false
        }
    }
}

#[cfg(all(test, feature = "postgres"))]
mod tests;
