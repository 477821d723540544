-- Additions to the core tables that only PostgreSQL needs.

-- A job changes its state several times, and each change leaves a dead row. Autovacuum removes dead rows once there
-- are some thousands of them, no matter how many finished rows the table has, and without pauses. The low fill factor
-- leaves space for the next state of a row in its own page. Otherwise the server must log that the row moves, and
-- look for another page.
ALTER TABLE jobs SET (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 5000,
    autovacuum_analyze_scale_factor = 0.02, autovacuum_analyze_threshold = 5000,
    autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE runs SET (
    fillfactor = 80,
    autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 2000,
    autovacuum_analyze_scale_factor = 0.02, autovacuum_analyze_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0);
-- These tables have few rows, which change often but not in their indexed columns. Each update stays in its page.
ALTER TABLE workers SET (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 500,
    autovacuum_vacuum_cost_delay = 0);
ALTER TABLE schedules SET (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 500,
    autovacuum_vacuum_cost_delay = 0);
ALTER TABLE queues SET (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 500,
    autovacuum_vacuum_cost_delay = 0);
ALTER TABLE queue_starts SET (
    autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0);
ALTER TABLE occurrences SET (
    autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0);

-- Sends a notification when another program inserts jobs: one for each statement, and one for each transaction,
-- because the server drops duplicates. Windlass sends its own notifications after its commits, and disables the
-- triggers.
CREATE FUNCTION notify_of_jobs() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('windlass_' || TG_TABLE_SCHEMA, '');
    RETURN NULL;
END
$$;

CREATE TRIGGER jobs_inserted AFTER INSERT ON jobs
    FOR EACH STATEMENT
    WHEN (coalesce(current_setting('windlass.tells', true), '') <> 'itself')
    EXECUTE FUNCTION notify_of_jobs();

-- Sends a notification when a worker in another language claims or reports a job, which it does with an UPDATE.
CREATE TRIGGER jobs_changed AFTER UPDATE OF status ON jobs
    FOR EACH STATEMENT
    WHEN (coalesce(current_setting('windlass.tells', true), '') <> 'itself')
    EXECUTE FUNCTION notify_of_jobs();

-- If several such workers claimed at the same time, each would count the same free capacity. So this view leaves out
-- queues with a limit. Windlass's own workers claim from those, because they lock a queue before they count.
CREATE OR REPLACE VIEW claimable_jobs AS
    SELECT id, run_id, name, kind, queue, priority, execute_after, payload, attempt, failures, max_attempts,
           timeout_ms, created_at,
           (greatest(-4000000000000000000, least(4000000000000000000, execute_after))
            - greatest(-1000000, least(1000000, priority)) * 60000) AS claim_order
    FROM jobs
    WHERE status = 'PENDING' AND kind > '' AND requires = '[]' AND code_version = 0
      AND queue NOT IN (
          SELECT queues.name FROM queues
          WHERE queues.paused_at IS NOT NULL OR queues.rate_jobs IS NOT NULL OR queues.fifo = 1
             OR queues.max_running IS NOT NULL);
