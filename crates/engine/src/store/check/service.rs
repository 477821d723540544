//! The invariants of queues, schedules and registrations.

use super::Invariant;

const LIMIT: &str = "if the limit was lowered while they ran, nothing: it applies to the next jobs; otherwise stop \
                     other programs that claim from the queue";
const APPLY: &str = "`windlass apply` the workflow's file again";

pub(super) const INVARIANTS: &[Invariant] = &[
    Invariant {
        rule: "a queue runs no more jobs than its limit allows",
        sql: "SELECT 'queue ' || name || ' runs ' || running || ' jobs, and its limit is ' || most
              FROM (SELECT queues.name,
                           CASE WHEN queues.fifo = 1 THEN 1 ELSE queues.max_running END AS most,
                           (SELECT count(*) FROM jobs
                            WHERE jobs.worker_id IS NOT NULL AND jobs.status = 'RUNNING' AND jobs.queue = queues.name) AS running
                    FROM queues) AS counted
              WHERE running > most
              LIMIT $1",
        next_step: LIMIT,
    },
    Invariant {
        rule: "an occurrence either has a run, or waits, or was skipped",
        sql: "SELECT 'schedule ' || schedules.workflow || '/' || schedules.name || ' has run ' || runs.id
                     || ' for ' || occurrences.scheduled_for || ', and the occurrence is '
                     || occurrences.status || ' too'
              FROM occurrences
              JOIN runs ON {by runs.schedule_id = occurrences.schedule_id}
                       AND {by runs.scheduled_for = occurrences.scheduled_for}
              JOIN schedules ON {by schedules.id = occurrences.schedule_id}
              LIMIT $1",
        next_step: "nothing: the run counts, and the tables refuse a second run for the same time",
    },
    Invariant {
        rule: "the next occurrence of a schedule is after its cursor",
        sql: "SELECT 'schedule ' || workflow || '/' || name || ' is next at ' || next_at
                     || ', and everything up to ' || decided_until || ' is decided'
              FROM schedules
              WHERE removed_at IS NULL AND next_at <= decided_until
              LIMIT $1",
        next_step: "`windlass schedule pause` and `windlass schedule resume` compute it again",
    },
    Invariant {
        rule: "a trigger belongs to a registered workflow",
        sql: "SELECT 'trigger ' || workflow || '/' || name || ' is there, and its workflow is not registered'
              FROM triggers
              WHERE NOT EXISTS (SELECT 1 FROM registrations WHERE registrations.name = triggers.workflow)
              LIMIT $1",
        next_step: APPLY,
    },
    Invariant {
        rule: "the value of a variable is within its limit",
        sql: "SELECT 'variable ' || name || ' has a value of ' || length(value) || ' characters'
              FROM variables WHERE length(value) > 65536 LIMIT $1",
        next_step: "set it again with `windlass variable set`, or delete it with `windlass variable delete`",
    },
    Invariant {
        rule: "a notification is pending until it has an end",
        sql: "SELECT 'notification ' || id || ' is ' || status || ', and '
                     || CASE WHEN finished_at IS NULL THEN 'has no end' ELSE 'has an end' END
              FROM notifications
              WHERE (status = 'PENDING' AND finished_at IS NOT NULL) OR (status <> 'PENDING' AND finished_at IS NULL)
              LIMIT $1",
        next_step: "look for another program that changes `notifications`",
    },
    Invariant {
        rule: "the active version of a workflow exists",
        sql: "SELECT 'workflow ' || registrations.name || ' is registered as version '
                     || registrations.version || ', which is not among its versions'
              FROM registrations
              WHERE NOT EXISTS (SELECT 1 FROM registration_versions AS versions
                                WHERE versions.name = registrations.name
                                  AND versions.version = registrations.version
                                  AND versions.workflow_id = registrations.workflow_id)
                 OR NOT EXISTS (SELECT 1 FROM workflows WHERE workflows.id = registrations.workflow_id)
              LIMIT $1",
        next_step: APPLY,
    },
];
