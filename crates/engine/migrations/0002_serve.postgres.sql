-- What the tables of the service need on PostgreSQL only: rows that change all the time.
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
