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
use crate::error::{Error, Result};

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
        match self.accept_part(jobs, 0..jobs.len()) {
            Ok(ids) => parts
                .iter()
                .map(|part| {
                    let own = ids.get(part.clone()).map(<[i64]>::to_vec);
                    own.ok_or_else(|| {
                        Error::internal(WHAT, format!("{} ids for {} jobs", ids.len(), jobs.len()))
                    })
                })
                .collect(),
            // It may be known of none whether it was done; and what is wrong with the database concerns all.
            Err(error @ Error::Unavailable { .. }) => vec![Err(error); parts.len()],
            Err(error) if parts.len() == 1 => vec![Err(error)],
            Err(_one_of_several) => parts.iter().map(|part| self.accept_part(jobs, part.clone())).collect(),
        }
    }

    fn accept_part(&self, jobs: &Arc<Vec<NewJob>>, part: Range<usize>) -> Result<Vec<i64>> {
        let (jobs, clock) = (Arc::clone(jobs), self.clock.clone());
        self.write(WHAT, move |connection| {
            accept(connection, jobs.get(part.clone()).unwrap_or_default(), clock.now_ms())
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::collections::HashSet;
    use std::thread::{JoinHandle, yield_now};
    use std::time::{Duration, Instant};

    use windlass_test_server::Schema;

    use super::*;
    use crate::db::postgres::{PostgresAddress, PostgresDatabase, PostgresOptions};
    use crate::random::Random;

    fn open(schema: &Schema) -> Store {
        let address = PostgresAddress::parse(&schema.url(), &|_variable| None).unwrap();
        let options = PostgresOptions::default();
        let database = PostgresDatabase::open(&address, &options).unwrap();
        Store::new(Arc::new(database), options.clock, Random::from_seed(7))
    }

    fn until(what: &str, mut is_so: impl FnMut() -> bool) {
        let began = Instant::now();
        while !is_so() {
            assert!(began.elapsed() < Duration::from_secs(60), "{what} does not come");
            yield_now();
        }
    }

    fn enqueue(store: &Store, jobs: Vec<NewJob>) -> JoinHandle<Result<Vec<i64>>> {
        let store = store.clone();
        std::thread::spawn(move || store.enqueue(jobs))
    }

    /// Two jobs of a kind, which differ.
    fn pair(kind: &str) -> Vec<NewJob> {
        vec![NewJob::new(kind, "1"), NewJob::new(kind, "2")]
    }

    /// What callers get who come while one of them waits for somebody that has locked the table.
    fn all_at_once(schema: &Schema, kinds: &[&str]) -> Vec<Result<Vec<i64>>> {
        let store = open(schema);
        let mut locker = schema.client();
        locker.batch_execute("BEGIN; LOCK TABLE jobs").unwrap();
        let callers: Vec<_> = kinds.iter().map(|kind| enqueue(&store, pair(kind))).collect();
        until("somebody", || store.arrivals.queue.inside() == kinds.len());
        locker.batch_execute("COMMIT").unwrap();
        callers.into_iter().map(|caller| caller.join().unwrap()).collect()
    }

    #[test]
    fn who_comes_while_others_are_accepted_goes_with_the_next_and_gets_its_own_ids() {
        const KINDS: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];
        let schema = Schema::new();
        open(&schema);
        let accepted = all_at_once(&schema, &KINDS);
        let mut client = schema.client();
        for (kind, ids) in KINDS.into_iter().zip(accepted) {
            let rows = client
                .query("SELECT kind, payload FROM jobs WHERE id = ANY ($1) ORDER BY id", &[&ids.unwrap()]);
            let rows: Vec<(String, String)> =
                rows.unwrap().iter().map(|row| (row.get(0), row.get(1))).collect();
            assert_eq!(rows, [(kind.to_owned(), "1".to_owned()), (kind.to_owned(), "2".to_owned())]);
        }
        let transactions = client.query("SELECT DISTINCT CAST(xmin AS TEXT) FROM jobs", &[]).unwrap();
        assert!(transactions.len() <= 3, "{} for eight: the first, and all others", transactions.len());
    }

    #[test]
    fn of_several_that_go_together_one_fails_alone() {
        let schema = Schema::new();
        open(&schema);
        schema
            .client()
            .batch_execute(
                "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
                 $$BEGIN RAISE check_violation USING MESSAGE = 'not this one'; END$$;
                 CREATE TRIGGER refuses BEFORE INSERT ON jobs FOR EACH ROW
                 WHEN (new.kind = 'bad') EXECUTE FUNCTION refuse()",
            )
            .unwrap();
        let accepted = all_at_once(&schema, &["good", "good", "bad", "good", "good"]);
        let refused: Vec<usize> = (0..accepted.len()).filter(|place| accepted[*place].is_err()).collect();
        assert_eq!(refused, [2], "{accepted:?}");
        let ids: HashSet<i64> = accepted.into_iter().flatten().flatten().collect();
        assert_eq!(ids.len(), 8, "each has its own");
    }

    /// Somebody holds its key in a transaction that does not end.
    #[test]
    fn who_waits_for_a_key_holds_nobody_up() {
        let schema = Schema::new();
        let store = open(&schema);
        let mut holder = schema.client();
        holder.batch_execute("BEGIN; INSERT INTO jobs (kind, unique_key) VALUES ('held', 'k')").unwrap();
        let waits =
            enqueue(&store, vec![NewJob { unique_key: Some("k".to_owned()), ..NewJob::new("a", "1") }]);
        let holder_pid: i32 = holder.query_one("SELECT pg_backend_pid()", &[]).unwrap().get(0);
        let waiting = "SELECT count(*) FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))";
        let mut observer = schema.client();
        until("the one with the key", || {
            observer.query_one(waiting, &[&holder_pid]).unwrap().get::<_, i64>(0) > 0
        });
        assert_eq!(store.enqueue(pair("b")).unwrap().len(), 2);
        assert!(!waits.is_finished());
        holder.batch_execute("ROLLBACK").unwrap();
        assert_eq!(waits.join().unwrap().unwrap().len(), 1);
    }
}
