-- What the core tables need on PostgreSQL only.

-- Rows of the hot tables change state several times and leave a dead row each time. They are taken out when
-- there are some thousands of them, however large the table of finished rows has grown, and without pauses.
ALTER TABLE jobs SET (
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
