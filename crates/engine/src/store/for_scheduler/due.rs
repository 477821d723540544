//! Due jobs become PENDING, and runs are stopped when their timeout ends.

use crate::status::StopReason;
use crate::store::cancel::{Urgency, stop_run};
use crate::store::evidence::Evidence;
use crate::store::finish::slots::admit;
use crate::store::for_scheduler::clock_steps::{ClockReading, steps};
use crate::store::{ForScheduler, json_ids};
use windlass_db::error::Result;
use windlass_db::{Connection, UpdateReturning, all, one};
use windlass_system::wake_ups::WakeUps;

/// How many jobs one transaction promotes.
const PROMOTE_MAX: i64 = 1_000;
/// How many runs one transaction stops.
const EXPIRE_MAX: i64 = 100;

/// How many waits one transaction ends.
const WAITS_MAX: i64 = 1_000;

/// If the answer took longer than this, it does not say well enough when the server read its clock.
const ANSWER_MAX_MS: i64 = 250;

/// When something is due next, and a reading of the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Upcoming {
    /// The earliest instant at which a job is due, or the end of a wait, or the deadline of a run or of a job.
    pub due_at: Option<i64>,
    /// Whether an event waits to be dispatched.
    pub has_events: bool,
    /// Whether triggers are to be asked about the end of a run.
    pub has_run_ends: bool,
    /// Whether a run waits for a slot of its concurrency key.
    pub has_waiting_runs: bool,
    /// The earliest instant, after a given one, at which a start stops counting against its queue's rate.
    pub rate_allows_at: Option<i64>,
    /// The clock; `None` if the database answered too slowly to tell.
    pub clock: Option<ClockReading>,
}

/// What became due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PromotedDue {
    /// Jobs that became PENDING or WAITING.
    pub promoted: i64,
    /// Runs and jobs that were stopped at their deadline.
    pub expired: i64,
    /// The next instant at which something is due.
    pub next_at: Option<i64>,
}

impl ForScheduler<'_> {
    /// Returns the earliest instant at which something is due.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn next_due(&self) -> Result<Option<i64>> {
        let Upcoming { due_at, rate_allows_at, .. } = self.upcoming(self.store.clock.now_ms())?;
        Ok([due_at, rate_allows_at].into_iter().flatten().min())
    }

    /// Returns when something is due next. Starts that stop counting against a rate up to `rate_after_ms` are
    /// ignored.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn upcoming(&self, rate_after_ms: i64) -> Result<Upcoming> {
        self.store.read(|connection| {
            let asked_ms = self.store.clock.monotonic_ms();
            let (due, rate_allows_at, steps, database_now_ms, [has_events, has_run_ends, has_waiting_runs]) = one(
                connection,
                "SELECT (SELECT min(execute_after) FROM jobs WHERE status = 'SCHEDULED'),
                        (SELECT min(deadline_at) FROM runs
                         WHERE deadline_at IS NOT NULL AND stop_reason IS NULL
                           AND status IN ('PENDING', 'RUNNING')),
                        (SELECT min(expires_at) FROM queue_starts WHERE expires_at > $1),
                        (SELECT min(deadline_at) FROM jobs
                         WHERE deadline_at IS NOT NULL AND finished_at IS NULL AND cancel_requested_at IS NULL),
                        (SELECT coalesce(max(number), 0) FROM clock_steps),
                        {now_ms},
                        (SELECT min(wait_ends_at) FROM jobs
                         WHERE wait_ends_at IS NOT NULL AND waits_for IS NOT NULL
                           AND (waits_for = 'event' OR waits_for = 'approval')),
                        (SELECT min(id) FROM events WHERE dispatched_at IS NULL),
                        (SELECT min(finished_at) FROM run_ends),
                        (SELECT min(concurrency_key) FROM runs WHERE waits_for IS NOT NULL)",
                &[rate_after_ms.into()],
                |row| {
                    let due = [0, 1, 3, 6].map(|column| row.optional_integer(column));
                    let [job, run, deadline, wait] = due;
                    let due = [job?, run?, deadline?, wait?];
                    let is_left = [
                        row.optional_integer(7)?.is_some(),
                        row.optional_integer(8)?.is_some(),
                        row.lossy_text(9)?.is_some(),
                    ];
                    Ok((due, row.optional_integer(2)?, row.integer(4)?, row.integer(5)?, is_left))
                },
            )?;
            let answered_ms = self.store.clock.monotonic_ms();
            let clock = (answered_ms - asked_ms <= ANSWER_MAX_MS).then(|| {
                self.store.clock.adjust(database_now_ms, asked_ms..=answered_ms);
                let (offset_ms, steady_ms) =
                    (self.store.clock.wall_offset_ms(), self.store.clock.steady_ms());
                ClockReading { steps, offset_ms, steady_ms }
            });
            let due_at = due.into_iter().flatten().min();
            Ok(Upcoming { due_at, has_events, has_run_ends, has_waiting_runs, rate_allows_at, clock })
        })
    }

    /// Promotes due jobs and stops runs and jobs that reached their deadline, one batch of each. Call it again while
    /// [`PromotedDue::next_at`] is not in the future.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn promote_due(&self) -> Result<PromotedDue> {
        self.promote_due_at(self.store.clock.now_ms(), None)
    }

    /// The same for a given instant. If `clock_steps` is given and the tables have seen another clock step since
    /// then, nothing happens.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn promote_due_at(&self, now_ms: i64, clock_steps: Option<i64>) -> Result<PromotedDue> {
        // Before the promotion, so that no worker claims a job at its deadline.
        let stopped = self.stop_late_jobs(now_ms, clock_steps)?;
        let (promoted, expired) =
            self.store.write("promote due jobs", Evidence::Repeat, move |connection| {
                stop_late_runs_and_promote(connection, now_ms, clock_steps)
            })?;
        Ok(PromotedDue { promoted, expired: expired + stopped, next_at: self.next_due()? })
    }
}

/// Makes jobs claimable that are due.
static PROMOTE: UpdateReturning = UpdateReturning {
    table: "jobs",
    set: &[
        (
            "status",
            "CASE WHEN concurrency_key IS NULL AND (control IS NULL OR decided_at IS NOT NULL)
                  THEN 'PENDING' ELSE 'WAITING' END",
        ),
        (
            "waits_for",
            "CASE WHEN control IS NOT NULL AND decided_at IS NULL THEN 'decision'
                  WHEN concurrency_key IS NOT NULL THEN 'slot' END",
        ),
        ("delay_ms", "NULL"),
        ("priority", "{priority}"),
        ("updated_at", "$2"),
    ],
    from: None,
    condition: "id {in $1} AND {guard status = 'SCHEDULED'}",
    returning: &["concurrency_key", "CASE WHEN control IS NOT NULL AND decided_at IS NULL THEN 1 ELSE 0 END"],
};

/// Returns how many jobs were promoted, and how many runs were stopped.
fn stop_late_runs_and_promote(
    connection: &mut dyn Connection,
    now_ms: i64,
    clock_steps: Option<i64>,
) -> Result<(i64, i64)> {
    if let Some(known) = clock_steps
        && steps(connection)? != known
    {
        return Ok((0, 0));
    }
    // Runs before jobs, the order of locks everywhere: see `lock_runs_of`.
    let late = all(
        connection,
        "SELECT id FROM runs
         WHERE deadline_at IS NOT NULL AND stop_reason IS NULL
           AND status IN ('PENDING', 'RUNNING') AND deadline_at <= $1
         ORDER BY deadline_at LIMIT $2 {lock}",
        &[now_ms.into(), EXPIRE_MAX.into()],
        |row| row.integer(0),
    )?;
    for run_id in &late {
        stop_run(connection, *run_id, StopReason::TimedOut, Urgency::WithGrace, now_ms)?;
    }
    let promoted = promote(connection, now_ms)? + end_late_waits(connection, now_ms)?;
    if promoted > 0 {
        connection.wake(WakeUps::PENDING | WakeUps::PROGRESS);
    }
    Ok((i64::try_from(promoted).unwrap_or(i64::MAX), late.len() as i64))
}

/// Promotes one batch of due jobs.
fn promote(connection: &mut dyn Connection, now_ms: i64) -> Result<u64> {
    // Two statements, because within one the database may choose the rows again for each row that it changes.
    let due = all(
        connection,
        "SELECT id FROM jobs WHERE status = 'SCHEDULED' AND execute_after <= $1
         ORDER BY execute_after, id LIMIT $2 {lock}",
        &[now_ms.into(), PROMOTE_MAX.into()],
        |row| row.integer(0),
    )?;
    if due.is_empty() {
        return Ok(0);
    }
    let (mut promoted, mut has_undecided, mut keys_to_admit) = (0, false, Vec::new());
    connection.update_returning(&PROMOTE, &[(&json_ids(&due)).into(), now_ms.into()], &mut |row| {
        promoted += 1;
        let needs_decision = row.integer(1)? != 0;
        has_undecided |= needs_decision;
        keys_to_admit.extend(row.lossy_text(0)?.filter(|_key| !needs_decision));
        Ok(())
    })?;
    admit(connection, &keys_to_admit, now_ms)?;
    if has_undecided {
        connection.wake(WakeUps::DUE);
    }
    Ok(promoted)
}

/// Lets the scheduler decide about waits that took too long. The rows keep the instant, by which it decides.
fn end_late_waits(connection: &mut dyn Connection, now_ms: i64) -> Result<u64> {
    let late = all(
        connection,
        "SELECT id FROM jobs
         WHERE wait_ends_at IS NOT NULL AND wait_ends_at <= $1 AND waits_for IS NOT NULL
           AND (waits_for = 'event' OR waits_for = 'approval')
         ORDER BY wait_ends_at, id LIMIT $2 {lock}",
        &[now_ms.into(), WAITS_MAX.into()],
        |row| row.integer(0),
    )?;
    if late.is_empty() {
        return Ok(0);
    }
    connection.wake(WakeUps::DUE);
    connection.execute(
        "UPDATE jobs SET waits_for = 'decision', updated_at = $2
         WHERE id {in $1} AND {guard status = 'WAITING'} AND (waits_for = 'event' OR waits_for = 'approval')",
        &[(&json_ids(&late)).into(), now_ms.into()],
    )
}
