//! Rules of runs: their counters and their outcome.

use super::Invariant;

const COUNTED_ANEW: &str = "a running `windlass serve` or `windlass worker` counts anew and ends the run, a minute \
                            after it moved last";
const REOPEN: &str = "nothing in Windlass writes that, and nothing repairs it: `UPDATE runs SET status = 'RUNNING', \
                      finished_at = NULL WHERE id = ID` opens the run again, and a running `windlass serve` or \
                      `windlass worker` then counts anew and ends it when its jobs are over";

pub(super) const INVARIANTS: &[Invariant] = &[
    Invariant {
        rule: "a run that is not over counts its unfinished jobs",
        sql: "SELECT 'run ' || id || ' counts ' || unfinished_jobs || ' unfinished jobs, and has ' || unfinished
              FROM (SELECT runs.id, runs.unfinished_jobs,
                           (SELECT count(*) FROM jobs
                            WHERE jobs.run_id = runs.id AND jobs.finished_at IS NULL) AS unfinished
                    FROM runs WHERE runs.status IN ('PENDING', 'RUNNING')) AS counted
              WHERE unfinished_jobs <> unfinished
              LIMIT $1",
        next_step: COUNTED_ANEW,
    },
    Invariant {
        rule: "a run that is not over has all its jobs",
        sql: "SELECT 'run ' || id || ' counts ' || total_jobs || ' jobs, and has ' || present
              FROM (SELECT runs.id, runs.total_jobs,
                           (SELECT count(*) FROM jobs WHERE jobs.run_id = runs.id) AS present
                    FROM runs WHERE runs.status IN ('PENDING', 'RUNNING')) AS counted
              WHERE total_jobs <> present
              LIMIT $1",
        next_step: "`windlass cancel` it and submit it anew",
    },
    Invariant {
        rule: "a run whose jobs are all over is over",
        sql: "SELECT 'run ' || id || ' is ' || status || ', and all its jobs are over' FROM runs
              WHERE status IN ('PENDING', 'RUNNING') AND unfinished_jobs = 0
                AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.run_id = runs.id AND jobs.finished_at IS NULL)
              LIMIT $1",
        next_step: COUNTED_ANEW,
    },
    Invariant {
        rule: "a run that is over has no unfinished jobs",
        sql: "SELECT 'run ' || id || ' is ' || status || ', and '
                     || CASE WHEN unfinished > 0 THEN 'has ' || unfinished ELSE 'counts ' || unfinished_jobs END
                     || ' unfinished jobs'
              FROM (SELECT runs.id, runs.status, runs.unfinished_jobs,
                           (SELECT count(*) FROM jobs
                            WHERE jobs.run_id = runs.id AND jobs.finished_at IS NULL) AS unfinished
                    FROM runs WHERE runs.status IN ('SUCCESSFUL', 'FAILED', 'CANCELLED')) AS counted
              WHERE unfinished > 0 OR unfinished_jobs > 0
              LIMIT $1",
        next_step: REOPEN,
    },
    Invariant {
        rule: "a run has a finished_at when it is over, and not before",
        sql: "SELECT 'run ' || id || ' is ' || status || ', and its finished_at is '
                     || CASE WHEN finished_at IS NULL THEN 'NULL' ELSE 'set' END
              FROM runs
              WHERE (status IN ('PENDING', 'RUNNING')) <> (finished_at IS NULL)
              LIMIT $1",
        next_step: "of a run that is not over its end corrects it; of one that is over, which would never be pruned, \
                    `UPDATE runs SET finished_at = updated_at WHERE id = ID` does",
    },
    Invariant {
        rule: "a run is successful exactly when no job that matters failed",
        sql: "SELECT 'run ' || id || ' is ' || status || ', and of its jobs ' || failed
                     || ' failed or were cancelled' FROM (
                  SELECT runs.id, runs.status, runs.total_jobs,
                         (SELECT count(*) FROM jobs WHERE jobs.run_id = runs.id
                          AND (jobs.status = 'CANCELLED'
                               OR (jobs.status = 'FAILED' AND jobs.allow_failure = 0))) AS failed
                  FROM runs WHERE runs.stop_reason IS NULL) AS judged
              WHERE (status = 'SUCCESSFUL' AND failed > 0)
                 -- Of one that is pruned in part, the jobs that failed may be gone.
                 OR (status = 'FAILED' AND failed = 0
                     AND total_jobs <= (SELECT count(*) FROM jobs WHERE jobs.run_id = judged.id))
              LIMIT $1",
        next_step: "look at its jobs with `windlass inspect`; their states are what happened",
    },
];
