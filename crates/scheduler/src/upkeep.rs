//! Takes out what is over, by a thread of its own: a long deletion holds up no schedule, no retry and no rescue.
//! It works in small batches and rests between them for longer than they take, so that whoever claims hardly
//! notices. Any number of processes may do it at the same time.

use std::thread::JoinHandle;
use std::time::Duration;

use windlass_db::error::no_thread;
use windlass_engine::store::{Prune, Pruned};
use windlass_engine::{Result, Store};
use windlass_system::wake_ups::{WakeUpListener, WakeUps};

use crate::failure::Failure;
use crate::retention::{PresentRetention, Retention};

/// Between two rounds in which everything old is taken out.
const ROUND: Duration = Duration::from_secs(30);
/// Before the first: a process that is used for a moment does no housework.
const FIRST: Duration = Duration::from_secs(5);
/// After a batch it rests so many times as long as that took: at most a fifth of the time somebody waits for it.
const REST_FACTOR: i64 = 4;
/// It rests at least and at most so long after a batch, in milliseconds.
const REST_MS: std::ops::RangeInclusive<i64> = 20..=2_000;

/// The thread. Dropping it ends it after the present batch.
pub(crate) struct Upkeep {
    listener: WakeUpListener,
    thread: Option<JoinHandle<()>>,
}

impl Upkeep {
    pub(crate) fn start(store: &Store, retention: PresentRetention, failure: Failure) -> Result<Upkeep> {
        let listener = store.listen(WakeUps::STOP);
        let (inbox, store) = (listener.clone(), store.clone());
        let thread = std::thread::Builder::new()
            .name("windlass-upkeep".to_owned())
            .spawn(move || serve(&store, &inbox, &retention, &failure))
            .map_err(|error| no_thread("start the upkeep", &error))?;
        Ok(Upkeep { listener, thread: Some(thread) })
    }
}

impl Drop for Upkeep {
    fn drop(&mut self) {
        self.listener.raise(WakeUps::STOP);
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}

fn serve(store: &Store, inbox: &WakeUpListener, retention: &PresentRetention, failure: &Failure) {
    let mut wait = FIRST;
    let mut round = Pruned::default();
    let mut failing = false;
    while !inbox.wait(wait).intersects(WakeUps::STOP) {
        wait = match step(store, retention.get()) {
            Ok(Step { pruned, rest }) => {
                failing = false;
                round.add(pruned);
                if rest == ROUND {
                    tell(std::mem::take(&mut round));
                }
                rest
            }
            Err(error) => {
                if failure.heed(&error) {
                    tracing::error!(%error, "what is old can't be deleted; giving up");
                    return;
                }
                if !std::mem::replace(&mut failing, true) {
                    tracing::warn!(%error, "what is old can't be deleted; trying on");
                }
                ROUND
            }
        };
    }
}

struct Step {
    pruned: Pruned,
    rest: Duration,
}

/// Takes out one batch.
fn step(store: &Store, retention: Retention) -> Result<Step> {
    let before_ms = retention.max_age_ms.map(|age_ms| store.clock().now_ms().saturating_sub(age_ms));
    let began_ms = store.clock().monotonic_ms();
    let pruned =
        store.for_scheduler().prune_step(Prune { before_ms, keep_runs: retention.max_runs_per_workflow })?;
    let took_ms = store.clock().monotonic_ms() - began_ms;
    Ok(Step { pruned, rest: rest_after(pruned, took_ms) })
}

fn rest_after(pruned: Pruned, took_ms: i64) -> Duration {
    if pruned == Pruned::default() {
        return ROUND;
    }
    let rest_ms = took_ms.saturating_mul(REST_FACTOR).clamp(*REST_MS.start(), *REST_MS.end());
    Duration::from_millis(rest_ms.unsigned_abs())
}

fn tell(round: Pruned) {
    if round.runs + round.jobs > 0 {
        tracing::info!(runs = round.runs, jobs = round.jobs, "deleted what was over for long enough");
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use windlass_engine::{Clock, Random};
    use windlass_test_database::{Access, TestDatabase};

    use super::*;

    #[test]
    fn it_rests_longer_than_it_works() {
        let some = Pruned { jobs: 1, ..Pruned::default() };
        for (took_ms, rest_ms) in [(0, 20), (10, 40), (100, 400), (5_000, 2_000)] {
            assert_eq!(rest_after(some, took_ms), Duration::from_millis(rest_ms));
        }
        assert_eq!(rest_after(Pruned::default(), 100), ROUND, "nothing is left");
    }

    #[test]
    fn what_is_over_goes_by_age_and_by_number_and_by_default_nothing_does() {
        let folder = tempfile::tempdir().unwrap();
        let database = TestDatabase::in_folder(folder.path());
        let clock = Clock::manual(100_000);
        let store = Store::new(crate::tests::open(&database, &clock), clock.clone(), Random::from_seed(1));
        let sql = database.sql(Access::Write);
        // Run n was over at n seconds.
        sql.execute(
            "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 99)
             INSERT INTO runs (workflow, status, finished_at) SELECT 'w', 'SUCCESSFUL', n * 1000 FROM numbers",
        );
        let left_after = |retention: Retention| {
            while step(&store, retention).unwrap().rest != ROUND {}
            sql.value::<i64>("SELECT count(*) FROM runs")
        };
        assert_eq!(left_after(Retention::default()), 99);
        let by_age = Retention { max_age_ms: Some(60_000), max_runs_per_workflow: None };
        assert_eq!(left_after(by_age), 60);
        let by_number = Retention { max_age_ms: None, max_runs_per_workflow: Some(10) };
        assert_eq!(left_after(by_number), 10);
        let both = Retention { max_age_ms: Some(5_000), max_runs_per_workflow: Some(10) };
        assert_eq!(left_after(both), 5);
    }
}
