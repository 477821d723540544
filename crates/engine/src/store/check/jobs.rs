//! The invariants of jobs and their dependencies.

use super::Invariant;

const REPORT: &str = "Windlass itself never writes this: look for another program that changes `jobs`, and restore \
                      a backup if the job matters";
const RECONCILED: &str = "a running `windlass serve` or `windlass worker` repairs the count if no other job of its run \
                            can run; if the count is too small, the job may start too early: `windlass cancel` stops it";

pub(super) const INVARIANTS: &[Invariant] = &[
    Invariant {
        rule: "a running job has a registered worker",
        sql: "SELECT 'job j' || id || ' is RUNNING, and worker ' || worker_id || ' is unknown' FROM jobs
              WHERE worker_id IS NOT NULL AND status = 'RUNNING'
                AND NOT EXISTS (SELECT 1 FROM workers WHERE {by workers.id = jobs.worker_id})
              LIMIT $1",
        next_step: "`windlass resume`, or any worker, takes it back",
    },
    Invariant {
        rule: "the jobs of a dead worker are taken back within a minute",
        sql: "SELECT 'job j' || jobs.id || ' is RUNNING, and its worker ' || workers.id || ' is '
                     || workers.status
              FROM jobs JOIN workers ON {by workers.id = jobs.worker_id}
              WHERE jobs.status = 'RUNNING' AND workers.status IN ('STOPPED', 'DEAD')
                AND workers.stopped_at < $2 - 60000
              LIMIT $1",
        next_step: "`windlass resume`, or any worker, takes it back",
    },
    Invariant {
        rule: "no job starts before its parents are finished",
        // Each edge looks up its two jobs, because a server with outdated statistics may choose a slow plan for a join.
        sql: "SELECT 'job j' || child_id || ' is ' || child_status || ', and its parent j' || parent_id || ' is '
                     || hindrance
              FROM (SELECT edges.child_id, edges.parent_id,
                           (SELECT child.status FROM jobs AS child
                            WHERE child.id = edges.child_id
                              AND (child.status IN ('SCHEDULED', 'PENDING', 'RUNNING', 'SUCCESSFUL', 'FAILED')
                                   OR (child.status = 'WAITING' AND child.waits_for <> 'decision'))) AS child_status,
                           (SELECT parent.status || CASE WHEN parent.finished_at IS NULL THEN ', unfinished' ELSE '' END
                            FROM jobs AS parent
                            WHERE parent.id = edges.parent_id
                              AND (parent.finished_at IS NULL
                                   OR (parent.status <> 'SUCCESSFUL'
                                       AND NOT (parent.status = 'FAILED' AND parent.allow_failure = 1)
                                       -- With a rule of its own a child may run after a parent that failed.
                                       AND NOT EXISTS (SELECT 1 FROM jobs AS child
                                                       WHERE child.id = edges.child_id
                                                         AND child.join_rule <> 'all_successful')))) AS hindrance
                    FROM job_dependencies AS edges) AS looked
              WHERE child_status IS NOT NULL AND hindrance IS NOT NULL
              LIMIT $1",
        next_step: "cancel the child if it is unfinished, because it may need what its parent has not made",
    },
    Invariant {
        rule: "no two jobs share an idempotency key",
        sql: "SELECT 'jobs j' || min(id) || ' and j' || max(id) || ' have the key '
                     || created_at || '-' || token
              FROM jobs GROUP BY created_at, token HAVING count(*) > 1
              LIMIT $1",
        next_step: "another program has copied a row: give the newer job a different `token`",
    },
    Invariant {
        rule: "a blocked job has unfinished parents, and counts them in blocked_by",
        sql: "SELECT 'job j' || id || CASE WHEN unfinished = 0 THEN ' is BLOCKED, and all its parents are finished'
                                         ELSE ' counts ' || blocked_by || ' unfinished parents, and has '
                                              || unfinished END
              FROM (SELECT jobs.id, jobs.run_id, jobs.blocked_by,
                           (SELECT count(*) FROM job_dependencies AS edges
                            JOIN jobs AS parent ON {by parent.id = edges.parent_id}
                            WHERE {by edges.child_id = jobs.id} AND parent.finished_at IS NULL)
                           -- A handler also waits for its phase.
                           + (SELECT count(*) FROM runs WHERE runs.id = jobs.run_id AND runs.phase < jobs.phase)
                           -- An item waits for its turn.
                           + CASE WHEN jobs.group_id IS NOT NULL THEN 1 ELSE 0 END
                           AS unfinished
                    FROM jobs WHERE jobs.status = 'BLOCKED') AS blocked
              WHERE blocked_by <> unfinished
                 -- While its run waits for a slot, a job is BLOCKED without parents.
                 OR (unfinished = 0 AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.id = blocked.run_id
                                                    AND runs.waits_for IS NOT NULL))
              LIMIT $1",
        next_step: RECONCILED,
    },
    Invariant {
        rule: "a job that waits for a decision is decided within a minute",
        sql: "SELECT 'job j' || id || ' waits for a decision' FROM jobs
              WHERE status = 'WAITING' AND waits_for = 'decision' AND updated_at < $2 - 60000
              LIMIT $1",
        next_step: "a running `windlass serve` or `windlass worker` decides it",
    },
    Invariant {
        rule: "a job that waits for an event names it, and one that waits for a person does not",
        sql: "SELECT 'job j' || id || ' waits for ' || waits_for FROM jobs
              WHERE status = 'WAITING' AND ((waits_for = 'event' AND event IS NULL)
                                            OR (waits_for = 'approval' AND event IS NOT NULL))
              LIMIT $1",
        next_step: REPORT,
    },
    Invariant {
        rule: "a job that waits for a run has started it",
        sql: "SELECT 'job j' || jobs.id || ' waits for a run, and attempt ' || jobs.attempt || ' has none' FROM jobs
              WHERE jobs.status = 'WAITING' AND jobs.waits_for = 'run'
                AND NOT EXISTS (SELECT 1 FROM runs
                                WHERE runs.parent_job_id IS NOT NULL AND {by runs.parent_job_id = jobs.id}
                                  AND {by runs.parent_attempt = jobs.attempt} AND {guard runs.call_open = 1})
              LIMIT $1",
        next_step: REPORT,
    },
    Invariant {
        rule: "an event is dispatched within a minute",
        sql: "SELECT 'event ' || id || ' is not dispatched' FROM events
              WHERE dispatched_at IS NULL AND received_at < $2 - 60000
              LIMIT $1",
        next_step: "a running `windlass serve` or `windlass worker` dispatches it",
    },
    Invariant {
        rule: "a job is stopped within a minute of its deadline",
        sql: "SELECT 'job j' || id || ' is ' || status || ', and its deadline is over' FROM jobs
              WHERE deadline_at IS NOT NULL AND finished_at IS NULL AND cancel_requested_at IS NULL
                AND deadline_at < $2 - 60000
                -- Without a live worker nobody stops jobs.
                AND EXISTS (SELECT 1 FROM workers WHERE status IN ('ALIVE', 'DRAINING'))
              LIMIT $1",
        next_step: "a running `windlass serve` or `windlass worker` stops it",
    },
    Invariant {
        rule: "a group counts its unfinished items in blocked_by, and ends with the last of them",
        sql: "SELECT 'job j' || id || CASE WHEN unfinished = 0 THEN ' waits for items, and all are finished'
                                         ELSE ' counts ' || blocked_by || ' unfinished items, and has '
                                              || unfinished END
              FROM (SELECT jobs.id, jobs.blocked_by,
                           (SELECT count(*) FROM jobs AS item
                            WHERE item.group_id IS NOT NULL AND item.group_id = jobs.id AND item.finished_at IS NULL)
                           AS unfinished
                    FROM jobs WHERE jobs.status = 'WAITING' AND jobs.waits_for = 'items') AS waiting
              WHERE blocked_by <> unfinished OR unfinished = 0
              LIMIT $1",
        next_step: RECONCILED,
    },
    Invariant {
        rule: "an unfinished item belongs to a group that waits for it",
        sql: "SELECT 'job j' || jobs.id || ' is an item of job j' || jobs.group_id || ', which '
                     || CASE WHEN jobs.status = 'BLOCKED' THEN 'will not let it run' ELSE 'does not wait for it' END
              FROM jobs
              WHERE jobs.group_id IS NOT NULL AND jobs.finished_at IS NULL
                AND NOT EXISTS (SELECT 1 FROM jobs AS owner
                                WHERE owner.id = jobs.group_id AND owner.run_id = jobs.run_id
                                  AND owner.status = 'WAITING' AND owner.waits_for = 'items')
              LIMIT $1",
        next_step: REPORT,
    },
    Invariant {
        rule: "no more items of a group run than its max_parallel allows",
        sql: "SELECT 'job j' || id || ' has ' || running || ' items that run or may run, and its max_parallel is '
                     || max_parallel
              FROM (SELECT jobs.id, jobs.max_parallel,
                           (SELECT count(*) FROM jobs AS item
                            WHERE item.group_id IS NOT NULL AND item.group_id = jobs.id
                              AND item.status IN ('PENDING', 'RUNNING', 'SCHEDULED', 'WAITING')) AS running
                    FROM jobs WHERE jobs.status = 'WAITING' AND jobs.waits_for = 'items') AS counted
              WHERE running > max_parallel
              LIMIT $1",
        next_step: REPORT,
    },
    Invariant {
        // The table refuses a finished_at of an unfinished job.
        rule: "a SKIPPED job has a finished_at",
        sql: "SELECT 'job j' || id || ' is SKIPPED, and its finished_at is NULL' FROM jobs
              WHERE status = 'SKIPPED' AND finished_at IS NULL LIMIT $1",
        next_step: REPORT,
    },
    Invariant {
        rule: "failures and interruptions stay within their limits",
        sql: "SELECT 'job j' || id
                     || CASE WHEN failures > max_attempts
                             THEN ' counts ' || failures || ' failures, and max_attempts is ' || max_attempts
                             ELSE ' counts ' || interruptions ||  ' interruptions, and max_interruptions is '
                                  || max_interruptions END
              FROM jobs
              WHERE failures > max_attempts OR interruptions > max_interruptions + 1
              LIMIT $1",
        next_step: REPORT,
    },
    Invariant {
        rule: "a concurrency key is held by no more jobs than its limit allows",
        sql: "SELECT 'key ' || concurrency_key || ' is held by ' || count(*) || ' jobs, and its limit is '
                     || max(concurrency_limit)
              FROM jobs
              WHERE concurrency_key IS NOT NULL AND status IN ('PENDING', 'RUNNING')
              GROUP BY concurrency_key
              HAVING count(*) > max(concurrency_limit)
              LIMIT $1",
        next_step: "`windlass cancel` stops one of them if they must not run at the same time",
    },
    Invariant {
        rule: "a job waits for its concurrency key only while other jobs hold it, and for a minute at most after",
        sql:
            "SELECT 'job j' || id || ' waits for key ' || concurrency_key || ', which no job holds' FROM jobs
              WHERE status = 'WAITING' AND waits_for = 'slot' AND updated_at < $2 - 60000
                AND NOT EXISTS (SELECT 1 FROM jobs AS holder
                                WHERE holder.concurrency_key = jobs.concurrency_key
                                  AND holder.concurrency_key IS NOT NULL
                                  AND (holder.status IN ('PENDING', 'RUNNING')
                                       OR (holder.finished_at IS NULL
                                           AND holder.status IN ('SUCCESSFUL', 'FAILED', 'CANCELLED'))))
                -- The slot may have become free just now.
                AND concurrency_key NOT IN (SELECT ended.concurrency_key FROM jobs AS ended
                                            WHERE ended.concurrency_key IS NOT NULL
                                              AND ended.finished_at >= $2 - 60000)
                -- Without a live worker nobody gives slots to waiting jobs.
                AND EXISTS (SELECT 1 FROM workers WHERE status IN ('ALIVE', 'DRAINING'))
              LIMIT $1",
        next_step: "a running `windlass serve` or `windlass worker` gives it the free slot",
    },
];
