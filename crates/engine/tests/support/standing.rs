//! What the tests of claims that stand ready share.

use windlass_engine::store::{ClaimRequest, Claims, Scope};
use windlass_engine::{Clock, JobStatus, Store};

use super::{new_worker, request};

/// A new worker asks for so many jobs.
pub fn everything(store: &Store, limit: usize) -> ClaimRequest {
    request(store.register_worker(new_worker()).unwrap(), Scope::Everything, limit)
}

/// An instant that no test lives to see, by the monotonic clock.
pub fn soon_ms(clock: &Clock) -> i64 {
    clock.monotonic_ms() + 1_000_000
}

pub fn statuses(store: &Store, job_ids: &[i64]) -> Vec<JobStatus> {
    job_ids.iter().map(|id| store.job(*id).unwrap().status).collect()
}

pub fn ids(claims: Claims) -> Vec<i64> {
    match claims {
        Claims::Jobs(jobs) => jobs.iter().map(|job| job.id).collect(),
        Claims::Fenced => panic!("fenced"),
    }
}
