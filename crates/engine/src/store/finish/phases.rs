//! The phases of a run with handlers: what begins when the last job of a phase has ended.

use crate::status::RunStatus;
use crate::store::claim::ready::unblock;
use crate::store::finish::promotion::ask_for_decisions;
use crate::store::finish::slots::admit;
use crate::store::json_ids;
use windlass_db::error::Result;
use windlass_db::{Connection, UpdateReturning, all, all_updated, one};
use windlass_system::wake_ups::WakeUps;

/// A run whose next phase begins.
struct BegunPhase {
    run_id: i64,
    phase: i64,
    outcome: RunStatus,
}

/// Begins the next phase of runs. The timeout of a run is one of its jobs, and not of its handlers.
static BEGIN_PHASES: UpdateReturning = UpdateReturning {
    table: "runs",
    set: &[
        ("phase", "phase + 1"),
        (
            "outcome",
            "coalesce(outcome, CASE WHEN stop_reason IN ('cancelled', 'skipped') THEN 'CANCELLED'
                                    WHEN stop_reason = 'timed_out' THEN 'FAILED'
                                    WHEN failed_jobs > 0 THEN 'FAILED'
                                    ELSE 'SUCCESSFUL' END)",
        ),
        ("deadline_at", "NULL"),
        ("updated_at", "$2"),
    ],
    from: None,
    condition: "id {in $1} AND {guard status IN ('PENDING', 'RUNNING')} AND has_handlers = 1 AND phase < 2",
    returning: &["id", "phase", "outcome"],
};

/// Begins the next phase of runs whose jobs of the present phase have all ended. Returns the runs whose new phase has no job
/// to run.
pub(in crate::store) fn begin_next_phases(
    connection: &mut dyn Connection,
    run_ids: &[i64],
    now_ms: i64,
) -> Result<Vec<i64>> {
    let begun =
        all_updated(connection, &BEGIN_PHASES, &[(&json_ids(run_ids)).into(), now_ms.into()], |row| {
            Ok(BegunPhase {
                run_id: row.integer(0)?,
                phase: row.integer(1)?,
                outcome: row.parsed(2, RunStatus::parse)?,
            })
        })?;
    let mut without_jobs = Vec::new();
    for phase in begun {
        skip_handlers_of_other_outcomes(connection, &phase, now_ms)?;
        release_handlers(connection, &phase, now_ms)?;
        if count_jobs(connection, phase.run_id)? == 0 {
            without_jobs.push(phase.run_id);
        }
    }
    connection.wake(WakeUps::PENDING | WakeUps::PROGRESS);
    Ok(without_jobs)
}

fn skip_handlers_of_other_outcomes(
    connection: &mut dyn Connection,
    BegunPhase { run_id, phase, outcome }: &BegunPhase,
    now_ms: i64,
) -> Result<()> {
    let reason = format!("skipped: the run is {outcome}");
    connection.execute(
        "UPDATE jobs SET status = 'SKIPPED', upstream_failed = 0, last_error = $4, updated_at = $5, finished_at = $5
         WHERE run_id = $1 AND phase = $2 AND handles <> $3 AND {guard status = 'BLOCKED'}",
        &[(*run_id).into(), (*phase).into(), outcome.as_str().into(), (&reason).into(), now_ms.into()],
    )?;
    Ok(())
}

/// Lets the handlers of a phase wait for one thing less: the phase. Those that need no other handler become ready.
fn release_handlers(
    connection: &mut dyn Connection,
    BegunPhase { run_id, phase, .. }: &BegunPhase,
    now_ms: i64,
) -> Result<()> {
    connection.execute(
        "UPDATE jobs SET blocked_by = blocked_by - 1, updated_at = $3
         WHERE run_id = $1 AND phase = $2 AND {guard status = 'BLOCKED'} AND blocked_by > 0",
        &[(*run_id).into(), (*phase).into(), now_ms.into()],
    )?;
    let ready = all(
        connection,
        "SELECT id, concurrency_key, CASE WHEN join_rule IS NOT NULL OR control IS NOT NULL THEN 1 ELSE 0 END FROM jobs
         WHERE run_id = $1 AND phase = $2 AND {guard status = 'BLOCKED'} AND blocked_by = 0 ORDER BY id",
        &[(*run_id).into(), (*phase).into()],
        |row| Ok((row.integer(0)?, row.lossy_text(1)?, row.integer(2)? != 0)),
    )?;
    let (undecided, ready): (Vec<_>, Vec<_>) =
        ready.into_iter().partition(|(_id, _key, needs_decision)| *needs_decision);
    let ids = |jobs: &[(i64, Option<String>, bool)]| jobs.iter().map(|job| job.0).collect::<Vec<i64>>();
    ask_for_decisions(connection, &ids(&undecided), now_ms)?;
    unblock(connection, &ids(&ready), now_ms)?;
    let keys: Vec<String> = ready.into_iter().filter_map(|(_id, key, _needs_decision)| key).collect();
    admit(connection, &keys, now_ms)?;
    Ok(())
}

/// Counts the unfinished jobs of the phase that begins.
fn count_jobs(connection: &mut dyn Connection, run_id: i64) -> Result<i64> {
    one(
        connection,
        "UPDATE runs
         SET unfinished_jobs = (SELECT count(*) FROM jobs
                                WHERE jobs.run_id = runs.id AND jobs.phase = runs.phase AND jobs.finished_at IS NULL)
         WHERE id = $1 RETURNING unfinished_jobs",
        &[run_id.into()],
        |row| row.integer(0),
    )
}
