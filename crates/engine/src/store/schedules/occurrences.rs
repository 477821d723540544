//! The table `occurrences`: occurrences that wait for a run, and those that were skipped.

use super::overlap::{CandidateOrigin, OccurrenceCandidate, WaitingBackfill};
use super::plan::RECORDED_MAX;
use crate::status::RunSource;
use crate::store::{Schedules, json_ids};
use windlass_db::error::Result;
use windlass_db::{Connection, Row, Value, all, one};

/// The maximum number of waiting occurrences that one decision reads.
const FIRST_WAITING_MAX: i64 = 1_000;

/// An occurrence without a run. Instants are milliseconds since the Unix epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Occurrence {
    /// The nominal time.
    pub scheduled_for: i64,
    /// Whether it will get a run.
    pub status: OccurrenceStatus,
    /// Why it occurred.
    pub source: RunSource,
    /// It starts no earlier than this: the nominal time plus jitter.
    pub start_after: i64,
    /// Why it was skipped.
    pub reason: Option<String>,
    /// When its state last changed.
    pub updated_at: i64,
}

/// Whether an occurrence will get a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OccurrenceStatus {
    /// It waits for a run.
    Waiting,
    /// It gets no run.
    Skipped,
}

impl OccurrenceStatus {
    /// Its spelling in the tables.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            OccurrenceStatus::Waiting => "WAITING",
            OccurrenceStatus::Skipped => "SKIPPED",
        }
    }

    /// The status with that spelling.
    #[must_use]
    pub fn parse(text: &str) -> Option<OccurrenceStatus> {
        [OccurrenceStatus::Waiting, OccurrenceStatus::Skipped]
            .into_iter()
            .find(|status| status.as_str() == text)
    }
}

impl Schedules<'_> {
    /// Lists occurrences of a schedule in one state: the earliest of the waiting ones, or the latest of the skipped
    /// ones.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn occurrences(
        &self,
        schedule_id: i64,
        status: OccurrenceStatus,
        limit: i64,
    ) -> Result<Vec<Occurrence>> {
        let sql = match status {
            OccurrenceStatus::Waiting => {
                "SELECT scheduled_for, status, source, start_after, reason, updated_at FROM occurrences
                 WHERE schedule_id = $1 AND status = $2 ORDER BY scheduled_for LIMIT $3"
            }
            OccurrenceStatus::Skipped => {
                "SELECT scheduled_for, status, source, start_after, reason, updated_at FROM occurrences
                 WHERE schedule_id = $1 AND status = $2 ORDER BY scheduled_for DESC LIMIT $3"
            }
        };
        let parameters = [schedule_id.into(), status.as_str().into(), limit.into()];
        self.store.read(|connection| all(connection, sql, &parameters, read))
    }

    /// Counts the waiting occurrences of a schedule.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn waiting_occurrences(&self, schedule_id: i64) -> Result<i64> {
        self.store.read(|connection| count_waiting(connection, schedule_id))
    }
}

fn read(row: &dyn Row) -> Result<Occurrence> {
    Ok(Occurrence {
        scheduled_for: row.integer(0)?,
        status: row.parsed(1, OccurrenceStatus::parse)?,
        source: row.parsed(2, RunSource::parse)?,
        start_after: row.integer(3)?,
        reason: row.optional_text(4)?,
        updated_at: row.integer(5)?,
    })
}

pub(super) fn count_waiting(connection: &mut dyn Connection, schedule_id: i64) -> Result<i64> {
    one(
        connection,
        "SELECT count(*) FROM occurrences WHERE schedule_id = $1 AND status = 'WAITING'",
        &[schedule_id.into()],
        |row| row.integer(0),
    )
}

/// Reads the first waiting occurrences whose time has come, except backfills.
pub(super) fn waiting(
    connection: &mut dyn Connection,
    schedule_id: i64,
    now_ms: i64,
) -> Result<Vec<OccurrenceCandidate>> {
    let mut candidates = Vec::new();
    // Two queries, because each is one range of the index.
    for source in [RunSource::Catchup, RunSource::Schedule] {
        candidates.extend(all(
            connection,
            "SELECT scheduled_for, start_after FROM occurrences
             WHERE schedule_id = $1 AND status = 'WAITING' AND source = $2 AND start_after <= $3
             ORDER BY start_after, scheduled_for LIMIT $4",
            &[schedule_id.into(), source.as_str().into(), now_ms.into(), FIRST_WAITING_MAX.into()],
            |row| {
                let (at_ms, start_after) = (row.integer(0)?, row.integer(1)?);
                Ok(OccurrenceCandidate { at_ms, start_after, source, origin: CandidateOrigin::Table })
            },
        )?);
    }
    Ok(candidates)
}

/// Reads the first waiting occurrences of backfills, the earliest first.
pub(super) fn waiting_backfills(
    connection: &mut dyn Connection,
    schedule_id: i64,
    now_ms: i64,
) -> Result<Vec<WaitingBackfill>> {
    all(
        connection,
        "SELECT scheduled_for, at_once FROM occurrences
         WHERE schedule_id = $1 AND status = 'WAITING' AND source = 'backfill' AND start_after <= $2
         ORDER BY start_after, scheduled_for LIMIT $3",
        &[schedule_id.into(), now_ms.into(), FIRST_WAITING_MAX.into()],
        |row| Ok(WaitingBackfill { at_ms: row.integer(0)?, at_once: row.optional_integer(1)?.unwrap_or(1) }),
    )
}

/// A row to insert: nominal time, status, source, earliest start, reason.
#[derive(Debug)]
pub(super) struct NewOccurrence<'a>(
    pub(super) i64,
    pub(super) &'static str,
    pub(super) &'static str,
    pub(super) i64,
    pub(super) Option<&'a str>,
);

impl<'a> NewOccurrence<'a> {
    pub(super) fn waiting(at_ms: i64, start_after: i64, source: RunSource) -> NewOccurrence<'a> {
        NewOccurrence(at_ms, OccurrenceStatus::Waiting.as_str(), source.as_str(), start_after, None)
    }

    pub(super) fn skipped(
        at_ms: i64,
        start_after: i64,
        source: RunSource,
        reason: &'a str,
    ) -> NewOccurrence<'a> {
        let status = OccurrenceStatus::Skipped.as_str();
        NewOccurrence(at_ms, status, source.as_str(), start_after, Some(reason))
    }
}

/// Writes decided occurrences. Those that have a run are left out, and a waiting backfill keeps waiting.
pub(super) fn write(
    connection: &mut dyn Connection,
    schedule_id: i64,
    news: &[NewOccurrence<'_>],
    now_ms: i64,
) -> Result<()> {
    if news.is_empty() {
        return Ok(());
    }
    let rows: Vec<[Value<'_>; 5]> = news
        .iter()
        .map(|NewOccurrence(at_ms, status, source, start_after, reason)| {
            [(*at_ms).into(), (*status).into(), (*source).into(), (*start_after).into(), (*reason).into()]
        })
        .collect();
    connection.execute(
        "INSERT INTO occurrences (schedule_id, scheduled_for, status, source, start_after, reason,
                                  created_at, updated_at)
         SELECT $2, news.scheduled_for, news.status, news.source, news.start_after, news.reason, $3, $3
         FROM {rows $1: scheduled_for integer, status text, source text, start_after integer, reason text}
              AS news
         WHERE NOT EXISTS (SELECT 1 FROM runs
                           WHERE runs.schedule_id = $2 AND runs.scheduled_for = news.scheduled_for)
         ON CONFLICT (schedule_id, scheduled_for) DO UPDATE
         SET status = excluded.status, reason = excluded.reason, updated_at = excluded.updated_at
         WHERE occurrences.status = 'WAITING' AND excluded.status = 'SKIPPED'
           AND occurrences.source <> 'backfill'",
        &[Value::rows(&rows), schedule_id.into(), now_ms.into()],
    )?;
    if news.iter().any(|new| new.1 == OccurrenceStatus::Skipped.as_str()) {
        delete_old_skips(connection, schedule_id)?;
    }
    Ok(())
}

/// Deletes all but the newest skipped occurrences of a schedule.
fn delete_old_skips(connection: &mut dyn Connection, schedule_id: i64) -> Result<()> {
    connection.execute(
        "DELETE FROM occurrences
         WHERE schedule_id = $1 AND status = 'SKIPPED'
           AND scheduled_for < (SELECT scheduled_for FROM occurrences AS kept
                                WHERE kept.schedule_id = $1 AND kept.status = 'SKIPPED'
                                ORDER BY scheduled_for DESC LIMIT 1 OFFSET $2)",
        &[schedule_id.into(), (RECORDED_MAX as i64 - 1).into()],
    )?;
    Ok(())
}

/// Deletes the rows of occurrences that have runs now.
pub(super) fn delete_started(connection: &mut dyn Connection, schedule_id: i64, at_ms: &[i64]) -> Result<()> {
    if at_ms.is_empty() {
        return Ok(());
    }
    connection.execute(
        "DELETE FROM occurrences WHERE schedule_id = $1 AND scheduled_for {in $2}",
        &[schedule_id.into(), (&json_ids(at_ms)).into()],
    )?;
    Ok(())
}

/// Marks an occurrence as skipped because no run can be started for it, even if a backfill asked for it.
pub(super) fn mark_skipped(
    connection: &mut dyn Connection,
    schedule_id: i64,
    at_ms: i64,
    source: RunSource,
    reason: &str,
    now_ms: i64,
) -> Result<()> {
    connection.execute(
        "INSERT INTO occurrences (schedule_id, scheduled_for, status, source, start_after, reason,
                                  created_at, updated_at)
         SELECT $1, CAST($2 AS {integer}), 'SKIPPED', $3, CAST($2 AS {integer}), $4, $5, $5
         WHERE NOT EXISTS (SELECT 1 FROM runs WHERE runs.schedule_id = $1 AND runs.scheduled_for = $2)
         ON CONFLICT (schedule_id, scheduled_for) DO UPDATE
         SET status = 'SKIPPED', reason = excluded.reason, updated_at = excluded.updated_at",
        &[schedule_id.into(), at_ms.into(), source.as_str().into(), reason.into(), now_ms.into()],
    )?;
    delete_old_skips(connection, schedule_id)
}
