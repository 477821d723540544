//! Marking: inserting the notifications that targets want, in the transaction of what happened.

use crate::store::evidence::Evidence;
use crate::store::{ForScheduler, json_ids};
use windlass_db::error::Result;
use windlass_db::{Connection, Fragment, all};

/// An occurrence that is not decided so long after its time is late, in milliseconds.
const LATE_MS: i64 = 5 * 60_000;
/// How many late schedules one step marks.
const SCHEDULES_MAX: i64 = 100;

/// Whether the target of `wanted`, as one service has it, wants the workflow of `news`. A `*` at the end of a name stands for
/// any text.
pub(crate) const WANTS_WORKFLOW: Fragment = Fragment {
    name: "wants_workflow",
    sql: "(NOT EXISTS (SELECT 1 FROM notification_filters AS names
                       WHERE names.target = wanted.target AND names.worker_id = wanted.worker_id AND names.sort = 'workflow')
           OR EXISTS (SELECT 1 FROM notification_filters AS names
                      WHERE names.target = wanted.target AND names.worker_id = wanted.worker_id AND names.sort = 'workflow'
                        AND (names.value = news.workflow
                             OR (substr(names.value, length(names.value), 1) = '*'
                                 AND substr(names.value, 1, length(names.value) - 1)
                                     = substr(news.workflow, 1, length(names.value) - 1)))))",
};

/// Inserts what targets want of ends of runs. Runs that ended again are told again. If several services have a target, what any
/// of them wants is inserted once.
pub(in crate::store) fn mark_run_ends(
    connection: &mut dyn Connection,
    run_ids: &[i64],
    now_ms: i64,
) -> Result<()> {
    connection.execute(
        "INSERT INTO notifications (target, event, subject_id, subject, happened_at, next_at, created_at)
         SELECT wanted.target, wanted.value, news.id, news.workflow, news.finished_at, $2, $2
         FROM runs AS news
         JOIN notification_filters AS wanted ON wanted.sort = 'event' AND wanted.value = 'run_' || lower(news.status)
         WHERE news.id {in $1} AND {wants_workflow}
           AND (NOT EXISTS (SELECT 1 FROM notification_filters AS tags
                            WHERE tags.target = wanted.target AND tags.worker_id = wanted.worker_id AND tags.sort = 'tag')
                OR EXISTS (SELECT 1 FROM notification_filters AS tags
                           JOIN run_tags ON run_tags.tag = tags.value AND run_tags.run_id = news.id
                           WHERE tags.target = wanted.target AND tags.worker_id = wanted.worker_id AND tags.sort = 'tag'))
         ON CONFLICT (event, subject_id, happened_at, target) DO NOTHING",
        &[(&json_ids(run_ids)).into(), now_ms.into()],
    )?;
    Ok(())
}

/// Inserts what targets want of workers that were fenced now.
pub(in crate::store) fn mark_dead_workers(
    connection: &mut dyn Connection,
    worker_ids: &[i64],
    now_ms: i64,
) -> Result<()> {
    connection.execute(
        "INSERT INTO notifications (target, event, subject_id, subject, happened_at, next_at, created_at)
         SELECT wanted.target, wanted.value, workers.id, workers.host, workers.stopped_at, $2, $2
         FROM workers
         JOIN notification_filters AS wanted ON wanted.sort = 'event' AND wanted.value = 'worker_dead'
         WHERE workers.id {in $1} AND workers.status = 'DEAD' AND workers.stopped_at = $2
         ON CONFLICT (event, subject_id, happened_at, target) DO NOTHING",
        &[(&json_ids(worker_ids)).into(), now_ms.into()],
    )?;
    Ok(())
}

impl ForScheduler<'_> {
    /// Inserts what targets want of schedules that are late, once for each late occurrence. A scheduler calls this before it
    /// fires them. Returns how many were inserted.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn mark_late_schedules(&self) -> Result<i64> {
        let now_ms = self.store.clock.now_ms();
        let late = self.store.read(|connection| late_schedules(connection, now_ms - LATE_MS))?;
        if late.is_empty() {
            return Ok(0);
        }
        self.store.write("mark late schedules", Evidence::Repeat, move |connection| {
            let inserted = connection.execute(
                "INSERT INTO notifications (target, event, subject_id, subject, happened_at, next_at, created_at)
                 SELECT wanted.target, wanted.value, news.id, news.workflow || '/' || news.name, news.next_at, $2, $2
                 FROM schedules AS news
                 JOIN notification_filters AS wanted ON wanted.sort = 'event' AND wanted.value = 'schedule_late'
                 WHERE news.id {in $1} AND news.next_at < $3 AND {wants_workflow}
                   AND (NOT EXISTS (SELECT 1 FROM notification_filters AS tags
                                    WHERE tags.target = wanted.target AND tags.worker_id = wanted.worker_id AND tags.sort = 'tag')
                        OR EXISTS (SELECT 1 FROM notification_filters AS tags, registrations
                                   JOIN workflows ON workflows.id = registrations.workflow_id
                                   WHERE tags.target = wanted.target AND tags.worker_id = wanted.worker_id AND tags.sort = 'tag'
                                     AND registrations.name = news.workflow
                                     AND {position}(workflows.tags, '\"' || tags.value || '\"') > 0))
                 ON CONFLICT (event, subject_id, happened_at, target) DO NOTHING",
                &[(&json_ids(&late)).into(), now_ms.into(), (now_ms - LATE_MS).into()],
            )?;
            Ok(i64::try_from(inserted).unwrap_or(i64::MAX))
        })
    }
}

/// Late schedules that are not marked, if a target wants them. The past of a new schedule is not late.
fn late_schedules(connection: &mut dyn Connection, late_ms: i64) -> Result<Vec<i64>> {
    all(
        connection,
        "SELECT schedules.id FROM schedules
         WHERE EXISTS (SELECT 1 FROM notification_filters WHERE sort = 'event' AND value = 'schedule_late')
           AND schedules.next_at IS NOT NULL AND schedules.next_at < $1 AND schedules.next_at > schedules.created_at
           AND schedules.paused_at IS NULL AND schedules.removed_at IS NULL
           AND EXISTS (SELECT 1 FROM registrations
                       WHERE registrations.name = schedules.workflow AND registrations.paused_at IS NULL)
           AND NOT EXISTS (SELECT 1 FROM notifications
                           WHERE notifications.event = 'schedule_late' AND notifications.subject_id = schedules.id
                             AND notifications.happened_at = schedules.next_at)
         ORDER BY schedules.next_at LIMIT $2",
        &[late_ms.into(), SCHEDULES_MAX.into()],
        |row| row.integer(0),
    )
}
