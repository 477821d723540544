//! Queues: pauses, limits and order. A queue without a row here has no rules.

use crate::store::evidence::Evidence;
use crate::store::stats::Count;
use crate::store::{Queues, Store};
use windlass_db::error::{Error, Result};
use windlass_db::{Connection, all};
use windlass_system::wake_ups::WakeUps;

mod list;
pub(in crate::store) mod paused;
pub(in crate::store) mod rules;
pub(in crate::store) mod waiting_keys;

pub use list::{QUEUES_MAX, QueuePage};

/// How many jobs lose their priority in one transaction.
const CLEAR_PRIORITIES_MAX: i64 = 5_000;
/// The longest interval of a rate: 31 days, in milliseconds.
pub const RATE_INTERVAL_MAX_MS: i64 = 31 * 24 * 60 * 60 * 1_000;

/// A rate: how many jobs may start within any interval of a given length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// At least 1.
    pub jobs: i64,
    /// In milliseconds, 1 to [`RATE_INTERVAL_MAX_MS`].
    pub interval_ms: i64,
}

/// In which order a queue's jobs are claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// By priority and age, any number at a time.
    Priority,
    /// In order of arrival, one at a time: the next job starts when the one before is finished.
    Arrival,
}

/// How a setting changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Setting<T> {
    /// Keep the present value.
    #[default]
    Keep,
    /// Remove the setting.
    Clear,
    /// Use this value.
    Set(T),
}

/// Changes to the limits of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueueLimits {
    /// How many of its jobs may run at a time, in all processes together.
    pub max_running: Setting<i64>,
    /// How many of its jobs may start within an interval.
    pub rate: Setting<Rate>,
    /// The order of its jobs. Clearing it means by priority.
    pub order: Setting<Order>,
}

/// A queue as it is now. Jobs are counted up to a bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queue {
    /// Its name.
    pub name: String,
    /// When it was paused.
    pub paused_at: Option<i64>,
    /// How many of its jobs may run at a time, in all processes together.
    pub max_running: Option<i64>,
    /// How many of its jobs may start within an interval.
    pub rate: Option<Rate>,
    /// The order in which its jobs are claimed.
    pub order: Order,
    /// How many jobs are PENDING.
    pub pending: Count,
    /// How many jobs are RUNNING.
    pub running: Count,
    /// How many jobs are SCHEDULED.
    pub scheduled: Count,
    /// How many jobs are WAITING.
    pub waiting: Count,
}

impl Queues<'_> {
    /// Pauses a queue: nothing is claimed from it until it is resumed. Running jobs are not affected.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn pause(&self, name: &str) -> Result<()> {
        let (name, now_ms) = (name.to_owned(), self.store.clock.now_ms());
        self.store.write("pause a queue", Evidence::Token, move |connection| {
            connection.execute(
                "INSERT INTO queues (name, paused_at, created_at) VALUES ($1, $2, $2)
                 ON CONFLICT (name) DO UPDATE SET paused_at = coalesce(queues.paused_at, $2)",
                &[(&name).into(), now_ms.into()],
            )?;
            Ok(())
        })
    }

    /// Resumes a queue. Returns `false` if it was not paused.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn resume(&self, name: &str) -> Result<bool> {
        let name = name.to_owned();
        self.store.write("resume a queue", Evidence::Token, move |connection| {
            let resumed = connection.execute(
                "UPDATE queues SET paused_at = NULL WHERE name = $1 AND paused_at IS NOT NULL",
                &[(&name).into()],
            )?;
            connection.wake(WakeUps::PENDING);
            Ok(resumed == 1)
        })
    }

    /// Changes the limits of a queue. Running jobs are not affected.
    ///
    /// # Errors
    /// [`Error::Invalid`] for limits out of bounds, and the database's.
    pub fn limit(&self, name: &str, limits: QueueLimits) -> Result<()> {
        check(name, &limits)?;
        let (queue, now_ms) = (name.to_owned(), self.store.clock.now_ms());
        self.store.write("limit a queue", Evidence::Token, move |connection| {
            write_limits(connection, &queue, limits, now_ms)?;
            Ok(limits)
        })?;
        if limits.order == Setting::Set(Order::Arrival) {
            self.clear_priorities(name)?;
        }
        Ok(())
    }

    /// Sets the priority of pending jobs to 0, because the queue keeps the order of arrival. It is a part of that change, and not
    /// recorded as another one.
    fn clear_priorities(&self, name: &str) -> Result<()> {
        let store = Store { change: None, ..self.store.clone() };
        loop {
            let name = name.to_owned();
            let cleared = store.write("clear priorities in a queue", Evidence::Repeat, move |connection| {
                connection.execute(
                    "UPDATE jobs SET priority = 0
                     WHERE id {in SELECT id FROM jobs
                                  WHERE status = 'PENDING' AND kind > '' AND queue = $1 AND priority <> 0 LIMIT $2}
                       AND {guard status = 'PENDING'}",
                    &[(&name).into(), CLEAR_PRIORITIES_MAX.into()],
                )
            })?;
            if cleared < CLEAR_PRIORITIES_MAX as u64 {
                return Ok(());
            }
        }
    }

    /// Counts the running jobs of a queue.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn count_running(&self, name: &str) -> Result<i64> {
        self.store.read(|connection| rules::running(connection, name))
    }

    /// Lists the names of paused queues.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn paused(&self) -> Result<Vec<String>> {
        self.store.read(|connection| {
            all(connection, "SELECT name FROM queues WHERE paused_at IS NOT NULL ORDER BY name", &[], |row| {
                row.text(0)
            })
        })
    }
}

fn check(name: &str, limits: &QueueLimits) -> Result<()> {
    let refuse = |reason: String| Err(Error::invalid(format!("limit the queue `{name}`"), reason));
    match limits.max_running {
        Setting::Set(..0) => return refuse("the number of running jobs must not be negative".to_owned()),
        Setting::Keep | Setting::Clear | Setting::Set(_) => {}
    }
    match limits.rate {
        Setting::Set(Rate { jobs: ..=0, .. }) => refuse("a rate must be at least one job".to_owned()),
        Setting::Set(Rate { interval_ms, .. }) if !(1..=RATE_INTERVAL_MAX_MS).contains(&interval_ms) => {
            refuse("the interval of a rate must be 1 ms to 31 days".to_owned())
        }
        Setting::Keep | Setting::Clear | Setting::Set(_) => Ok(()),
    }
}

fn write_limits(connection: &mut dyn Connection, name: &str, limits: QueueLimits, now_ms: i64) -> Result<()> {
    connection.execute(
        "INSERT INTO queues (name, created_at) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING",
        &[name.into(), now_ms.into()],
    )?;
    let (keep_running, max_running) = keep_or_set(limits.max_running);
    let (keep_rate, rate) = keep_or_set(limits.rate);
    let (keep_order, order) = keep_or_set(limits.order);
    connection.execute(
        "UPDATE queues
         SET max_running = CASE WHEN $2 = 1 THEN max_running ELSE CAST($3 AS {integer}) END,
             rate_jobs = CASE WHEN $4 = 1 THEN rate_jobs ELSE CAST($5 AS {integer}) END,
             rate_interval_ms = CASE WHEN $4 = 1 THEN rate_interval_ms ELSE CAST($6 AS {integer}) END,
             fifo = CASE WHEN $7 = 1 THEN fifo ELSE CAST($8 AS {integer}) END,
             turn_job_id = CASE WHEN $7 = 1 OR fifo = CAST($8 AS {integer}) THEN turn_job_id END
         WHERE name = $1",
        &[
            name.into(),
            keep_running.into(),
            max_running.into(),
            keep_rate.into(),
            rate.map(|rate| rate.jobs).into(),
            rate.map(|rate| rate.interval_ms).into(),
            keep_order.into(),
            i64::from(order == Some(Order::Arrival)).into(),
        ],
    )?;
    if limits.rate == Setting::Clear {
        connection.execute("DELETE FROM queue_starts WHERE queue = $1", &[name.into()])?;
    }
    connection.wake(WakeUps::PENDING);
    Ok(())
}

/// Returns 1 if the present value is kept, and otherwise 0 and the new value.
fn keep_or_set<T>(setting: Setting<T>) -> (i64, Option<T>) {
    match setting {
        Setting::Keep => (1, None),
        Setting::Clear => (0, None),
        Setting::Set(value) => (0, Some(value)),
    }
}
