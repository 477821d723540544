-- What the core tables need on PostgreSQL only.

-- Rows of the hot tables change state several times and leave a dead row each time. They are taken out when
-- there are some thousands of them, however large the table of finished rows has grown, and without pauses. The next
-- state of a row finds room in its own page: else the server notes in its log that the row moves, and looks for a page.
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
-- A few rows that change all the time, none of their indexed columns: updates within their page.
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

-- A row that another program inserts is heard of at once. One notification a statement and, as the server
-- drops equal ones, one a transaction. Windlass itself tells after its commits and is left out.
CREATE FUNCTION tell_of_jobs() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('windlass_' || TG_TABLE_SCHEMA, '');
    RETURN NULL;
END
$$;

CREATE TRIGGER jobs_inserted AFTER INSERT ON jobs
    FOR EACH STATEMENT
    WHEN (coalesce(current_setting('windlass.tells', true), '') <> 'itself')
    EXECUTE FUNCTION tell_of_jobs();

-- Workers in other languages claim and report by an update. It is heard of at once, as an insert is.
CREATE TRIGGER jobs_changed AFTER UPDATE OF status ON jobs
    FOR EACH STATEMENT
    WHEN (coalesce(current_setting('windlass.tells', true), '') <> 'itself')
    EXECUTE FUNCTION tell_of_jobs();

-- Several of them may claim at the same time, and would each count the same room: queues with a limit are
-- left to Windlass's own workers, which lock what they count.
CREATE OR REPLACE VIEW claimable_jobs AS
    SELECT id, run_id, name, kind, queue, priority, execute_after, payload, attempt, failures, max_attempts,
           timeout_ms, created_at,
           (greatest(-4000000000000000000, least(4000000000000000000, execute_after))
            - greatest(-1000000, least(1000000, priority)) * 60000) AS claim_order
    FROM jobs
    WHERE status = 'PENDING' AND kind > '' AND requires = '[]' AND version = 0
      AND queue NOT IN (
          SELECT queues.name FROM queues
          WHERE queues.paused_at IS NOT NULL OR queues.rate_jobs IS NOT NULL OR queues.fifo = 1
             OR queues.max_running IS NOT NULL);
