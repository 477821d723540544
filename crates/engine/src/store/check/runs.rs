//! Rules of runs: their counters and their outcome.

use super::Invariant;

const RECONCILE: &str = "a running `windlass serve` or `windlass worker` counts anew; `windlass cancel` ends a run \
                         that stays so";

pub(super) const INVARIANTS: &[Invariant] = &[
    Invariant {
        rule: "a run counts its unfinished jobs",
        sql: "SELECT 'run ' || id || ' counts ' || unfinished_jobs || ' unfinished jobs, and has ' || unfinished
              FROM (SELECT runs.id, runs.unfinished_jobs,
                           (SELECT count(*) FROM jobs
                            WHERE jobs.run_id = runs.id AND jobs.finished_at IS NULL) AS unfinished
                    FROM runs) AS counted
              WHERE unfinished_jobs <> unfinished
              LIMIT $1",
        next_step: RECONCILE,
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
        rule: "a run is over exactly when its last job is",
        sql: "SELECT 'run ' || id || ' is ' || status || ' with ' || unfinished_jobs || ' unfinished jobs'
              FROM runs
              WHERE (status IN ('PENDING', 'RUNNING')) <> (unfinished_jobs > 0)
                 OR (status IN ('PENDING', 'RUNNING')) <> (finished_at IS NULL)
              LIMIT $1",
        next_step: RECONCILE,
    },
    Invariant {
        rule: "a run is successful exactly when no job that matters failed",
        sql: "SELECT 'run ' || id || ' is ' || status || ' with ' || failed || ' failed jobs' FROM (
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
