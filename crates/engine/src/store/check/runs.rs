//! The invariants of runs: their counters and their outcome.

use super::Invariant;

const REPORT: &str = "Windlass itself never writes this; please report it";
const RECONCILED: &str = "a running `windlass serve` or `windlass worker` repairs the counter and ends the run, a minute \
                            after its last change";
const REOPEN: &str = "Windlass itself never writes this, and can't repair it: `UPDATE runs SET status = 'RUNNING', \
                      finished_at = NULL WHERE id = ID` reopens the run, and a running `windlass serve` or \
                      `windlass worker` then repairs its counter and ends it when its jobs are finished";

pub(super) const INVARIANTS: &[Invariant] = &[
    Invariant {
        rule: "an unfinished run counts its unfinished jobs in unfinished_jobs",
        sql: "SELECT 'run ' || id || ' counts ' || unfinished_jobs || ' unfinished jobs, and has ' || unfinished
              FROM (SELECT runs.id, runs.unfinished_jobs,
                           (SELECT count(*) FROM jobs
                            WHERE jobs.run_id = runs.id AND jobs.phase = runs.phase
                              AND jobs.finished_at IS NULL) AS unfinished
                    FROM runs WHERE runs.status IN ('PENDING', 'RUNNING')) AS counted
              WHERE unfinished_jobs <> unfinished
              LIMIT $1",
        next_step: RECONCILED,
    },
    Invariant {
        rule: "an unfinished run has all its jobs",
        sql: "SELECT 'run ' || id || ' counts ' || total_jobs || ' jobs, and has ' || present
              FROM (SELECT runs.id, runs.total_jobs,
                           (SELECT count(*) FROM jobs WHERE jobs.run_id = runs.id) AS present
                    FROM runs WHERE runs.status IN ('PENDING', 'RUNNING')) AS counted
              WHERE total_jobs <> present
              LIMIT $1",
        next_step: "`windlass cancel` the run, and submit it again",
    },
    Invariant {
        rule: "a run is finished if all its jobs are finished",
        sql: "SELECT 'run ' || id || ' is ' || status || ', and all its jobs are finished' FROM runs
              WHERE status IN ('PENDING', 'RUNNING') AND unfinished_jobs = 0
                -- A run that waits for a slot may have handlers to run again.
                AND waits_for IS NULL
                AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.run_id = runs.id AND jobs.finished_at IS NULL)
              LIMIT $1",
        next_step: RECONCILED,
    },
    Invariant {
        rule: "a run that waits for a slot of its concurrency key has one, and none of its jobs goes on",
        sql: "SELECT 'run ' || runs.id || ' waits for a slot, and '
                     || CASE WHEN runs.concurrency_key IS NULL THEN 'has no concurrency key'
                             WHEN runs.status <> 'PENDING' THEN 'is ' || runs.status
                             ELSE 'has a job that goes on' END
              FROM runs
              WHERE runs.waits_for IS NOT NULL
                AND (runs.concurrency_key IS NULL OR runs.status <> 'PENDING'
                     OR EXISTS (SELECT 1 FROM jobs
                                WHERE jobs.run_id = runs.id AND jobs.finished_at IS NULL AND jobs.status <> 'BLOCKED'
                                  -- A group whose items are retried waits for them.
                                  AND NOT (jobs.status = 'WAITING' AND jobs.waits_for = 'items')))
              LIMIT $1",
        next_step: REPORT,
    },
    Invariant {
        rule: "a run that a job has started has this job",
        sql: "SELECT 'run ' || runs.id || ' was started by job j' || runs.parent_job_id || ', which does not exist'
              FROM runs
              WHERE runs.parent_job_id IS NOT NULL
                AND NOT EXISTS (SELECT 1 FROM jobs WHERE {by jobs.id = runs.parent_job_id})
              LIMIT $1",
        next_step: "another program has deleted the job; delete the run too",
    },
    Invariant {
        rule: "a run and its jobs name the run at the top of all calls",
        sql: "SELECT 'run ' || runs.id || ' or one of its jobs does not name run ' || callers.root FROM runs
              JOIN (SELECT jobs.id, coalesce(jobs.root_run_id, jobs.run_id) AS root FROM jobs) AS callers
                ON {by callers.id = runs.parent_job_id}
              WHERE runs.parent_job_id IS NOT NULL
                AND (runs.root_run_id <> callers.root
                     OR EXISTS (SELECT 1 FROM jobs WHERE jobs.run_id = runs.id
                                AND (jobs.root_run_id IS NULL OR jobs.root_run_id <> callers.root)))
              LIMIT $1",
        next_step: REPORT,
    },
    Invariant {
        rule: "the end of a run is the end of the job that has started it within a minute",
        sql: "SELECT 'run ' || id || ' is ' || status || ', and job j' || parent_job_id || ' waits for it' FROM runs
              WHERE call_open = 1 AND finished_at IS NOT NULL AND finished_at < $2 - 60000
              LIMIT $1",
        next_step: "a running `windlass serve` or `windlass worker` ends the job",
    },
    Invariant {
        rule: "a finished run has no unfinished jobs",
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
        rule: "a run has a finished_at exactly if it is finished",
        sql: "SELECT 'run ' || id || ' is ' || status || ', and its finished_at is '
                     || CASE WHEN finished_at IS NULL THEN 'NULL' ELSE 'set' END
              FROM runs
              WHERE (status IN ('PENDING', 'RUNNING')) <> (finished_at IS NULL)
              LIMIT $1",
        next_step: "an unfinished run is repaired when it ends; a finished one would never be pruned: \
                    `UPDATE runs SET finished_at = updated_at WHERE id = ID` repairs it",
    },
    Invariant {
        rule: "the workspace of an unfinished run is open",
        sql: "SELECT 'run ' || runs.id || ' is ' || runs.status || ', and its workspace is ' || workspaces.state
              FROM workspaces JOIN runs ON {by runs.id = workspaces.run_id}
              WHERE workspaces.state <> 'open' AND runs.status IN ('PENDING', 'RUNNING')
              LIMIT $1",
        next_step: "`windlass cancel` the run, and submit it again: its files may be gone",
    },
    Invariant {
        rule: "a run is successful exactly if no job was cancelled, or failed without allow_failure",
        sql: "SELECT 'run ' || id || ' is ' || status || ', and of its jobs ' || failed
                     || ' failed or were cancelled' FROM (
                  SELECT runs.id, runs.status, runs.total_jobs,
                         (SELECT count(*) FROM jobs WHERE jobs.run_id = runs.id
                          AND (jobs.status = 'CANCELLED'
                               OR (jobs.status = 'FAILED' AND jobs.allow_failure = 0))) AS failed
                  FROM runs WHERE runs.stop_reason IS NULL) AS judged
              WHERE (status = 'SUCCESSFUL' AND failed > 0)
                 -- If a run was pruned in part, the failed jobs may be gone.
                 OR (status = 'FAILED' AND failed = 0
                     AND total_jobs <= (SELECT count(*) FROM jobs WHERE jobs.run_id = judged.id))
              LIMIT $1",
        next_step: "look at its jobs with `windlass inspect`; the states of the jobs are right",
    },
    Invariant {
        rule: "a run has the last definition that it got",
        sql: "SELECT 'run ' || runs.id || ' has definition ' || runs.definition || ', which is not the last one that it got'
              FROM runs
              WHERE (runs.definition > 1
                     OR EXISTS (SELECT 1 FROM run_definitions AS pinned WHERE pinned.run_id = runs.id))
                AND NOT EXISTS (SELECT 1 FROM run_definitions AS pinned
                                WHERE pinned.run_id = runs.id AND pinned.number = runs.definition
                                  AND pinned.workflow_id = runs.workflow_id
                                  AND NOT EXISTS (SELECT 1 FROM run_definitions AS later
                                                  WHERE later.run_id = runs.id AND later.number > pinned.number))
              LIMIT $1",
        next_step: REPORT,
    },
    Invariant {
        rule: "a job has a definition of its run",
        sql: "SELECT 'job j' || jobs.id || ' has definition ' || jobs.definition || ' of run ' || runs.id || ', which has '
                     || runs.definition
              FROM jobs JOIN runs ON {by runs.id = jobs.run_id}
              WHERE jobs.definition > runs.definition
              LIMIT $1",
        next_step: REPORT,
    },
    Invariant {
        rule: "a run has exactly the tags of its definition",
        sql: "SELECT 'run ' || id || ' is listed under ' || listed || ' tags, ' || known || ' of them among the '
                     || defined || ' tags of its definition'
              FROM (SELECT runs.id, count(run_tags.tag) AS listed,
                           coalesce(sum(CASE WHEN {position}(workflows.tags, '\"' || run_tags.tag || '\"') > 0
                                             THEN 1 ELSE 0 END), 0) AS known,
                           -- Each tag of the list stands between two quotes.
                           coalesce((length(workflows.tags) - length(replace(workflows.tags, '\"', ''))) / 2, 0) AS defined
                    FROM runs JOIN workflows ON workflows.id = runs.workflow_id
                    LEFT JOIN run_tags ON run_tags.run_id = runs.id
                    -- Runs that jobs have started are in no such list.
                    WHERE (workflows.tags IS NOT NULL AND runs.parent_job_id IS NULL) OR run_tags.run_id IS NOT NULL
                    GROUP BY runs.id, workflows.tags) AS counted
              WHERE listed <> known OR listed <> defined
              LIMIT $1",
        next_step: "`windlass runs --tag` lists it wrongly, and nothing else depends on it; \
                    change the rows of `run_tags` to the tags of its definition",
    },
];
