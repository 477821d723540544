-- What a long-running service needs: registered workflows, schedules, limits of queues and jobs.

-- The version of a workflow that is in force under its name: what `run NAME` starts and schedules fire.
CREATE TABLE registrations (
    name         {text} NOT NULL PRIMARY KEY,
    version      {integer} NOT NULL,
    workflow_id  {integer} NOT NULL REFERENCES workflows (id),
    -- Where it was read from, and the folder its jobs' relative paths start from.
    file         {text},
    dir          {text},
    paused_at    {integer},
    created_at   {integer} NOT NULL DEFAULT ({now_ms}),
    updated_at   {integer} NOT NULL DEFAULT ({now_ms})
) {strict};

-- Every version that was ever put in force, counted from 1 for each name; kept when the name is removed.
CREATE TABLE registration_versions (
    name         {text} NOT NULL,
    version      {integer} NOT NULL,
    workflow_id  {integer} NOT NULL REFERENCES workflows (id),
    file         {text},
    applied_at   {integer} NOT NULL,
    PRIMARY KEY (name, version)
) {clustered};

CREATE INDEX registration_versions_workflow ON registration_versions (workflow_id);
CREATE INDEX registrations_workflow ON registrations (workflow_id);

-- A schedule is never deleted, so that one that comes back under its name fires nothing twice.
ALTER TABLE schedules ADD COLUMN origin {text} NOT NULL DEFAULT 'command'
    CHECK (origin IN ('file', 'command'));
-- Whatever was to happen up to here is decided.
ALTER TABLE schedules ADD COLUMN decided_until {integer};
ALTER TABLE schedules ADD COLUMN removed_at {integer};

CREATE INDEX schedules_due ON schedules (next_at)
    WHERE next_at IS NOT NULL AND paused_at IS NULL AND removed_at IS NULL;

-- What started a run that nobody submitted by hand.
ALTER TABLE runs ADD COLUMN source {text}
    CHECK (source IN ('schedule', 'catchup', 'backfill', 'trigger'));

-- Runs of a schedule that are not over, for its rule about overlaps.
CREATE INDEX runs_of_schedule ON runs (schedule_id, id)
    WHERE schedule_id IS NOT NULL AND status IN ('PENDING', 'RUNNING');
-- For keeping a number of runs of each workflow.
CREATE INDEX runs_finished_of_workflow ON runs (workflow, finished_at) WHERE finished_at IS NOT NULL;

-- Occurrences of schedules that have no run: those that wait for theirs, and those that get none.
CREATE TABLE occurrences (
    schedule_id    {integer} NOT NULL REFERENCES schedules (id),
    scheduled_for  {integer} NOT NULL,
    status         {text} NOT NULL CHECK (status IN ('WAITING', 'SKIPPED')),
    source         {text} NOT NULL CHECK (source IN ('schedule', 'catchup', 'backfill')),
    -- Of a backfill: how many of its runs may be unfinished at a time.
    at_once        {integer} CHECK (at_once >= 1),
    -- Not before this instant: the nominal time and what jitter added.
    start_after    {integer} NOT NULL,
    -- Why it gets no run.
    reason         {text},
    created_at     {integer} NOT NULL DEFAULT ({now_ms}),
    updated_at     {integer} NOT NULL DEFAULT ({now_ms}),
    PRIMARY KEY (schedule_id, scheduled_for)
) {clustered};

CREATE INDEX occurrences_waiting ON occurrences (start_after, schedule_id, scheduled_for)
    WHERE status = 'WAITING';
-- The head of what waits of one schedule.
CREATE INDEX occurrences_of_schedule ON occurrences (schedule_id, source, start_after, scheduled_for)
    WHERE status = 'WAITING';
CREATE INDEX occurrences_skipped ON occurrences (updated_at) WHERE status = 'SKIPPED';

-- A job that was asked to stop gets no time to end: its processes are killed.
ALTER TABLE jobs ADD COLUMN cancel_at_once {integer} NOT NULL DEFAULT 0 CHECK (cancel_at_once IN (0, 1));
-- What a worker must have to see the job: all of these capabilities (a sorted JSON list), and this version
-- or a later one.
ALTER TABLE jobs ADD COLUMN requires {text} NOT NULL DEFAULT '[]';
ALTER TABLE jobs ADD COLUMN version {integer} NOT NULL DEFAULT 0
    CHECK (version >= 0 AND version <= 9007199254740991);
-- So many jobs with the same key may be PENDING or RUNNING at a time; the others are WAITING.
ALTER TABLE jobs ADD COLUMN concurrency_key {text};
ALTER TABLE jobs ADD COLUMN concurrency_limit {integer} CHECK (concurrency_limit >= 1);
ALTER TABLE jobs ADD COLUMN on_full {text} NOT NULL DEFAULT 'wait'
    CHECK (on_full = 'wait' OR on_full = 'skip' OR on_full = 'cancel_oldest');

-- The order of claiming: the time a job became due, with a head start for each point of priority. Both
-- grow old at the same pace, so the order of two jobs never changes and none waits for ever.
DROP INDEX jobs_claim;
DROP INDEX jobs_claim_in_run;
-- Who claims by run does not say `kind > ''`, and so can't be led through the lanes of all others.
CREATE INDEX jobs_claim ON jobs (queue, kind, requires, version, {rank}, id)
    WHERE status = 'PENDING' AND kind > '';
CREATE INDEX jobs_claim_in_run ON jobs (run_id, {rank}, id)
    WHERE status = 'PENDING' AND run_id IS NOT NULL;
-- Says also how many of a queue's jobs run.
DROP INDEX jobs_running;
CREATE INDEX jobs_running ON jobs (worker_id, id, queue) WHERE status = 'RUNNING';

CREATE INDEX jobs_key_taken ON jobs (concurrency_key, id)
    WHERE concurrency_key IS NOT NULL AND status IN ('PENDING', 'RUNNING');
-- Those that do not simply wait.
CREATE INDEX jobs_key_impatient ON jobs (concurrency_key, id)
    WHERE concurrency_key IS NOT NULL AND status = 'WAITING' AND on_full <> 'wait';
CREATE INDEX jobs_key_waiting ON jobs (concurrency_key, {rank}, id)
    WHERE concurrency_key IS NOT NULL AND status = 'WAITING';

ALTER TABLE workers ADD COLUMN capabilities {text} NOT NULL DEFAULT '[]';
ALTER TABLE workers ADD COLUMN version {integer} NOT NULL DEFAULT 0;

ALTER TABLE queues ADD COLUMN max_running {integer} CHECK (max_running >= 0);
ALTER TABLE queues ADD COLUMN rate_jobs {integer} CHECK (rate_jobs >= 1);
ALTER TABLE queues ADD COLUMN rate_interval_ms {integer} CHECK (rate_interval_ms >= 1);
ALTER TABLE queues ADD COLUMN fifo {integer} NOT NULL DEFAULT 0 CHECK (fifo IN (0, 1));
-- Of a queue that keeps the order of arrival: the job whose turn it is, until it is over.
ALTER TABLE queues ADD COLUMN turn_job_id {integer};
-- Queues whose next job may go when one ends.
CREATE INDEX queues_limited ON queues (name) WHERE max_running IS NOT NULL OR fifo = 1;

-- Attempts that queues with a rate began, until they no longer count.
CREATE TABLE queue_starts (
    queue       {text} NOT NULL,
    expires_at  {integer} NOT NULL,
    jobs        {integer} NOT NULL,
    PRIMARY KEY (queue, expires_at)
) {clustered};

-- Workers in other languages report an end by the state alone. It counts when Windlass has given it its
-- consequences (another attempt, children, the run's counters) and its time: then it leaves this index.
CREATE INDEX jobs_reported ON jobs (id)
    WHERE finished_at IS NULL AND (status = 'SUCCESSFUL' OR status = 'FAILED' OR status = 'CANCELLED');
-- What was reported may still be tried again: it keeps its key.
DROP INDEX jobs_unique_key;
CREATE UNIQUE INDEX jobs_unique_key ON jobs (unique_key)
    WHERE unique_key IS NOT NULL AND finished_at IS NULL;

-- What a worker in another language may claim now, for each queue and kind in the order of `claim_order, id`.
CREATE VIEW claimable_jobs AS
    SELECT id, run_id, name, kind, queue, priority, execute_after, payload, attempt, failures, max_attempts,
           timeout_ms, created_at, {rank} AS claim_order
    FROM jobs
    WHERE status = 'PENDING' AND kind > '' AND requires = '[]' AND version = 0
      AND queue NOT IN (
          SELECT queues.name FROM queues
          WHERE queues.paused_at IS NOT NULL OR queues.rate_jobs IS NOT NULL OR queues.fifo = 1
             OR queues.max_running <= (SELECT count(*) FROM jobs AS running
                                       WHERE running.status = 'RUNNING' AND running.queue = queues.name));
