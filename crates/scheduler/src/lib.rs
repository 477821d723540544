//! What time does in Windlass: makes due jobs claimable, stops runs whose time is over, fires schedules,
//! takes back the jobs of dead workers. Any number of schedulers may be alive on one database: every change
//! is a guarded update, so what one has done the others find done.

mod failure;
mod firing;
mod pulse;
mod reconcile;
mod rescue;
mod retention;
mod upkeep;
mod wall_clock;

use std::collections::HashSet;
use std::thread::JoinHandle;
use std::time::Duration;

use windlass_db::error::no_thread;
use windlass_engine::{Error, Result, Store};
use windlass_system::wake_ups::{WakeUpListener, WakeUps};

use failure::Failure;
use firing::Firing;
use pulse::Pulse;
use reconcile::Reconciler;
pub use rescue::{FailureDetector, gone_workers};
use retention::PresentRetention;
pub use retention::Retention;
use upkeep::Upkeep;
use wall_clock::WallClock;

/// How often the workers are looked at: how fast the death of one is noticed.
const RESCUE_TICK: Duration = Duration::from_millis(500);
/// Batches of due jobs in one turn at most: the dead are looked for, and an end is heard, between turns.
const BATCHES_MAX: usize = 8;
/// A failing database is tried again after this time.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// A running scheduler. Dropping it ends its thread.
pub struct Scheduler {
    listener: WakeUpListener,
    pulse: Pulse,
    retention: PresentRetention,
    failure: Failure,
    thread: Option<JoinHandle<()>>,
    _upkeep: Upkeep,
}

impl Scheduler {
    /// Starts the scheduler's thread.
    ///
    /// # Errors
    /// When the system has no thread to give.
    pub fn start(store: &Store, retention: Retention) -> Result<Scheduler> {
        store.watch();
        let listener = store.listen(WakeUps::DUE | WakeUps::STOP);
        let retention = PresentRetention::new(retention);
        let failure = Failure::default();
        let upkeep = Upkeep::start(store, retention.clone(), failure.clone())?;
        let pulse = Pulse::new(store.clock());
        let (inbox, beat, store) = (listener.clone(), pulse.clone(), store.clone());
        let noted = failure.clone();
        let thread = std::thread::Builder::new()
            .name("windlass-scheduler".to_owned())
            .spawn(move || serve(&store, &inbox, &beat, &noted))
            .map_err(|error| no_thread("start the scheduler", &error))?;
        Ok(Scheduler { listener, pulse, retention, failure, thread: Some(thread), _upkeep: upkeep })
    }

    /// For how long it has made no progress, in milliseconds; 0 when it has nothing to do.
    #[must_use]
    pub fn silent_ms(&self) -> i64 {
        self.pulse.silent_ms()
    }

    /// Why it gave up: the database can't be used, and waiting does not help.
    #[must_use]
    pub fn failure(&self) -> Option<Error> {
        self.failure.get().cloned()
    }

    /// Changes how long what is over is kept, from now on.
    pub fn set_retention(&self, retention: Retention) {
        self.retention.set(retention);
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        self.listener.raise(WakeUps::STOP);
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}

fn serve(store: &Store, inbox: &WakeUpListener, pulse: &Pulse, failure: &Failure) {
    let mut chores = Chores::default();
    let mut failing = false;
    loop {
        pulse.beat();
        let wait = match turn(store, &mut chores) {
            Ok(wait) => {
                failing = false;
                wait
            }
            Err(error) => {
                if failure.heed(&error) {
                    tracing::error!(%error, "the scheduler gives up");
                    pulse.rest();
                    return;
                }
                if !std::mem::replace(&mut failing, true) {
                    tracing::warn!(%error, "the scheduler can't use the database; trying on");
                }
                RETRY_PAUSE
            }
        };
        pulse.rest();
        if inbox.wait(wait).intersects(WakeUps::STOP) {
            return;
        }
    }
}

/// What a scheduler knows from one turn to the next.
#[derive(Default)]
struct Chores {
    failure_detector: FailureDetector,
    reconciler: Reconciler,
    /// The last concurrency key that was looked at.
    key_cursor: String,
    firing: Firing,
    wall_clock: WallClock,
    /// Up to this instant it was told that starts no longer count for rates.
    told_of_room_ms: Option<i64>,
    /// What could not be done when it was tried last.
    refused: HashSet<&'static str>,
}

impl Chores {
    /// Goes on without what the database refuses: one row that another program spoilt must not keep everything
    /// else from being done. One that can't be reached refuses all.
    fn heed<T>(&mut self, what: &'static str, result: Result<T>) -> Result<Option<T>> {
        match result {
            Ok(value) => {
                self.refused.remove(what);
                Ok(Some(value))
            }
            Err(error @ Error::Unavailable { .. }) => Err(error),
            Err(error) => {
                if self.refused.insert(what) {
                    tracing::error!(%error, "the scheduler can't {what}; it tries on, and does the rest");
                }
                Ok(None)
            }
        }
    }
}

/// Does what is due and returns how long nothing will be.
fn turn(store: &Store, chores: &mut Chores) -> Result<Duration> {
    let rescued = chores.failure_detector.look(store);
    chores.heed("take back the jobs of dead workers", rescued)?;
    chores.heed("do what follows from reported ends", settle_reports(store))?;
    let reconciled = chores.reconciler.look(store);
    chores.heed("count runs anew", reconciled)?;
    let cursor = store.for_scheduler().admit_waiting(&chores.key_cursor);
    if let Some(cursor) = chores.heed("admit jobs to their concurrency keys", cursor)? {
        chores.key_cursor = cursor;
    }
    let promoted = promote(store, chores);
    let due = chores.heed("make due jobs claimable", promoted)?;
    let fired = chores.firing.turn(store);
    let fired = chores.heed("fire schedules", fired)?;
    let next_at = [due, fired].into_iter().flatten().flatten().min();
    Ok(store.clock().until(next_at, RESCUE_TICK))
}

/// Gives ends that workers in other languages reported their consequences, a turn's worth of batches at most.
fn settle_reports(store: &Store) -> Result<()> {
    for _batch in 0..BATCHES_MAX {
        if store.for_scheduler().apply_reports()? == 0 {
            break;
        }
    }
    Ok(())
}

/// Makes what is due claimable, a turn's worth of batches at most; returns when the next is due, which
/// is not in the future when something is left.
fn promote(store: &Store, chores: &mut Chores) -> Result<Option<i64>> {
    let now_ms = chores.wall_clock.now(store).0;
    // After a step back of the clock the instant may be one of before it.
    let told_ms = chores.told_of_room_ms.map_or(now_ms, |told_ms| told_ms.min(now_ms));
    let ahead = store.for_scheduler().ahead(told_ms)?;
    if let Some(reading) = ahead.clock {
        let followed = chores.wall_clock.look(store, reading);
        chores.heed("move what waits with the clock", followed)?;
    }
    let (now_ms, _steps) = chores.wall_clock.now(store);
    let mut room_at = ahead.room_at;
    chores.told_of_room_ms = Some(now_ms);
    if room_at.is_some_and(|at_ms| at_ms <= now_ms) {
        // Each process tells its own: there is nothing to write.
        store.wake_ups().publish(WakeUps::PENDING | WakeUps::PROGRESS);
        room_at = store.for_scheduler().ahead(now_ms)?.room_at;
    }
    let mut next_at = ahead.due_at;
    for _batch in 0..BATCHES_MAX {
        let (now_ms, steps) = chores.wall_clock.now(store);
        if next_at.is_none_or(|at_ms| at_ms > now_ms) {
            break;
        }
        let due = store.for_scheduler().promote_due_at(now_ms, steps)?;
        next_at = due.next_at;
        if due.promoted == 0 && due.expired == 0 {
            // Another scheduler was faster.
            break;
        }
    }
    Ok([next_at, room_at].into_iter().flatten().min())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::Arc;

    use windlass_db::Database;
    use windlass_db::postgres::{PostgresAddress, PostgresDatabase, PostgresOptions};
    use windlass_db::sqlite::{SqliteDatabase, SqliteOptions};
    use windlass_engine::store::NewJob;
    use windlass_engine::{Clock, JobStatus, Random, TABLES};
    use windlass_test_database::{Access, TestDatabase, Underneath};

    use super::*;

    pub(crate) fn open(database: &TestDatabase, clock: &Clock) -> Arc<dyn Database> {
        let address = database.address();
        match database.underneath() {
            Underneath::Sqlite => {
                Arc::new(SqliteDatabase::open(address.as_ref(), &TABLES, &SqliteOptions::default()).unwrap())
            }
            Underneath::Postgres => {
                let address = PostgresAddress::parse(&address, &|_variable| None).unwrap();
                let options = PostgresOptions { clock: clock.clone(), ..PostgresOptions::default() };
                Arc::new(PostgresDatabase::open(&address, &TABLES, &options).unwrap())
            }
        }
    }

    /// A job that is reported as done.
    const REPORTED: &str = "
        INSERT INTO runs (id, workflow, total_jobs, unfinished_jobs) VALUES (1, 'w', 1, 1);
        INSERT INTO jobs (id, run_id, kind, name, status) VALUES (-2, 1, 'noop', 'a', 'SUCCESSFUL')";

    #[test]
    fn what_can_not_be_done_keeps_from_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let database = TestDatabase::in_folder(folder.path());
        let clock = Clock::manual(1_000);
        let store = Store::new(open(&database, &clock), clock.clone(), Random::from_seed(1));
        database.sql(Access::Write).execute(REPORTED);
        // The table refuses what follows from the report.
        database.refuse(-2, "SUCCESSFUL");
        assert!(store.for_scheduler().apply_reports().is_err());
        let later = NewJob { execute_after: Some(2_000), ..NewJob::new("noop", "null") };
        store.jobs().enqueue(vec![later]).unwrap();
        clock.advance_ms(5_000);
        let mut chores = Chores::default();
        for _turn in 0..2 {
            turn(&store, &mut chores).unwrap();
        }
        assert_eq!(store.upkeep().stats().unwrap().jobs.of(JobStatus::Pending), 1);
    }

    #[test]
    fn who_waits_for_a_rate_is_woken_once_when_it_gives_room() {
        let folder = tempfile::tempdir().unwrap();
        let database = TestDatabase::in_folder(folder.path());
        let clock = Clock::manual(1_000_000);
        let store = Store::new(open(&database, &clock), clock.clone(), Random::from_seed(1));
        // Starts that count until then, as a claim would write them.
        database.sql(Access::Write).execute(
            "INSERT INTO queues (name, rate_jobs, rate_interval_ms) VALUES ('slow', 1, 5000);
             INSERT INTO queue_starts (queue, expires_at, jobs) VALUES ('slow', 1005000, 1), ('slow', 1007000, 1)",
        );
        let inbox = store.listen(WakeUps::PENDING);
        let mut chores = Chores::default();
        let mut woken_after = |passed_ms: i64| {
            clock.advance_ms(passed_ms);
            turn(&store, &mut chores).unwrap();
            inbox.wait(Duration::ZERO).intersects(WakeUps::PENDING)
        };
        let found = [0, 4_999, 1, 0, 1_999, 1, 0, 60_000].map(&mut woken_after);
        assert_eq!(found, [false, false, true, false, false, true, false, false]);
        clock.advance_ms(-3_600_000);
        assert_eq!(promote(&store, &mut chores).unwrap(), None, "what is over stays over");
    }

    #[test]
    fn a_turn_ends_also_when_more_is_due() {
        let folder = tempfile::tempdir().unwrap();
        let database = TestDatabase::in_folder(folder.path());
        let clock = Clock::manual(1_000);
        let store = Store::new(open(&database, &clock), clock.clone(), Random::from_seed(1));
        let later = NewJob { execute_after: Some(2_000), ..NewJob::new("noop", "null") };
        store.jobs().enqueue(vec![later; 20_000]).unwrap();
        clock.advance_ms(5_000);
        let scheduled = || store.upkeep().stats().unwrap().jobs.of(JobStatus::Scheduled);
        let mut chores = Chores::default();
        assert_eq!(promote(&store, &mut chores).unwrap(), Some(2_000), "the next turn is at once");
        assert_eq!(scheduled(), 12_000);
        while promote(&store, &mut chores).unwrap().is_some() {}
        assert_eq!(scheduled(), 0);
    }
}
