-- The core tables. One text for every database; what differs is a token in braces of the dialect.
-- Instants are milliseconds since the Unix epoch, UTC. JSON is text. Flags are 0 and 1.
--
-- Where rows come by the thousand, a choice of more than two texts is written with OR, the frequent ones first:
-- for `IN` with a list SQLite would make a table of the list for each row that it writes.

-- The globally unique names of this database: of each, the first job that was made under it. A copy gets
-- a new one, so it has those of what it was copied from too; the last one is its own.
CREATE TABLE instances (
    first_job_id  {integer} NOT NULL PRIMARY KEY,
    instance      {text} NOT NULL UNIQUE
) {strict};

-- Immutable versions of definitions, by content.
CREATE TABLE workflows (
    id          {id},
    name        {text} NOT NULL,
    hash        {text} NOT NULL,
    definition  {text} NOT NULL,
    created_at  {integer} NOT NULL DEFAULT ({now_ms}),
    UNIQUE (name, hash)
) {strict};

CREATE TABLE schedules (
    id           {id},
    workflow     {text} NOT NULL,
    name         {text} NOT NULL,
    definition   {text} NOT NULL DEFAULT '{}',
    paused_at    {integer},
    next_at      {integer},
    created_at   {integer} NOT NULL DEFAULT ({now_ms}),
    updated_at   {integer} NOT NULL DEFAULT ({now_ms}),
    UNIQUE (workflow, name)
) {strict};

CREATE TABLE runs (
    id               {id},
    workflow_id      {integer} REFERENCES workflows (id),
    workflow         {text} NOT NULL,
    status           {text} NOT NULL DEFAULT 'PENDING'
                     CHECK (status = 'PENDING' OR status = 'RUNNING' OR status = 'SUCCESSFUL'
                            OR status = 'FAILED' OR status = 'CANCELLED'),
    -- Why a run ends other than by its jobs.
    stop_reason      {text} CHECK (stop_reason IN ('cancelled', 'timed_out')),
    params           {text} NOT NULL DEFAULT '{}',
    env              {text} NOT NULL DEFAULT '{}',
    -- The folder its jobs' relative paths start from.
    dir              {text},
    run_key          {text} UNIQUE,
    schedule_id      {integer} REFERENCES schedules (id),
    scheduled_for    {integer},
    -- Counters kept by the transactions that finish jobs: the outcome is known in O(1).
    total_jobs       {integer} NOT NULL DEFAULT 0,
    unfinished_jobs  {integer} NOT NULL DEFAULT 0 CHECK (unfinished_jobs >= 0),
    failed_jobs      {integer} NOT NULL DEFAULT 0 CHECK (failed_jobs >= 0),
    timeout_ms       {integer},
    deadline_at      {integer},
    created_at       {integer} NOT NULL DEFAULT ({now_ms}),
    started_at       {integer},
    finished_at      {integer},
    updated_at       {integer} NOT NULL DEFAULT ({now_ms}),
    UNIQUE (schedule_id, scheduled_for)
) {strict};

CREATE INDEX runs_unfinished ON runs (id) WHERE status IN ('PENDING', 'RUNNING');
CREATE INDEX runs_deadline ON runs (deadline_at)
    WHERE deadline_at IS NOT NULL AND stop_reason IS NULL AND status IN ('PENDING', 'RUNNING');
-- For pruning, which must not read what it does not delete.
CREATE INDEX runs_finished ON runs (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX runs_workflow ON runs (workflow_id);

CREATE TABLE jobs (
    id                   {id},
    run_id               {integer} REFERENCES runs (id) ON DELETE CASCADE,
    name                 {text},
    kind                 {text} NOT NULL,
    queue                {text} NOT NULL DEFAULT 'default',
    -- A row inserted from outside waits for its time, which is now unless it says otherwise: the
    -- scheduler makes it PENDING. Producers need to know nothing of the claim.
    status               {text} NOT NULL DEFAULT 'SCHEDULED'
                         CHECK (status = 'PENDING' OR status = 'RUNNING' OR status = 'SUCCESSFUL'
                                OR status = 'BLOCKED' OR status = 'SCHEDULED' OR status = 'WAITING'
                                OR status = 'FAILED' OR status = 'SKIPPED' OR status = 'CANCELLED'),
    priority             {integer} NOT NULL DEFAULT 0,
    execute_after        {integer} NOT NULL DEFAULT ({now_ms}),
    payload              {text} NOT NULL DEFAULT '{}',
    -- Claims so far, and the fencing token of the present one.
    attempt              {integer} NOT NULL DEFAULT 0,
    max_attempts         {integer} NOT NULL DEFAULT 3 CHECK (max_attempts >= 1),
    failures             {integer} NOT NULL DEFAULT 0,
    interruptions        {integer} NOT NULL DEFAULT 0,
    max_interruptions    {integer} NOT NULL DEFAULT 25,
    on_interrupt         {text} NOT NULL DEFAULT 'rerun' CHECK (on_interrupt IN ('rerun', 'fail')),
    allow_failure        {integer} NOT NULL DEFAULT 0 CHECK (allow_failure IN (0, 1)),
    retry                {text},
    timeout_ms           {integer},
    cancel_requested_at  {integer},
    last_error           {text},
    output               {text},
    -- Parents that are not finished.
    blocked_by           {integer} NOT NULL DEFAULT 0 CHECK (blocked_by >= 0),
    unique_key           {text},
    worker_id            {integer},
    created_at           {integer} NOT NULL DEFAULT ({now_ms}),
    updated_at           {integer} NOT NULL DEFAULT ({now_ms}),
    started_at           {integer},
    finished_at          {integer},
    -- Kept by the table, so that no path of any language can break it.
    CHECK (status <> 'RUNNING' OR worker_id IS NOT NULL)
) {strict};

-- Only what can be claimed now is in the claim indexes: a claim costs the same with ten rows
-- waiting as with ten million finished, delayed or blocked ones.
CREATE INDEX jobs_claim ON jobs (queue, kind, priority DESC, execute_after, id)
    WHERE status = 'PENDING';
CREATE INDEX jobs_claim_in_run ON jobs (run_id, priority DESC, execute_after, id)
    WHERE status = 'PENDING' AND run_id IS NOT NULL;
CREATE INDEX jobs_due ON jobs (execute_after, id) WHERE status = 'SCHEDULED';
CREATE INDEX jobs_running ON jobs (worker_id, id) WHERE status = 'RUNNING';
CREATE INDEX jobs_failed ON jobs (finished_at) WHERE status = 'FAILED';
-- For pruning: of a run's jobs the run's end counts, so theirs are not in it.
CREATE INDEX jobs_finished_alone ON jobs (finished_at)
    WHERE run_id IS NULL AND finished_at IS NOT NULL;
CREATE UNIQUE INDEX jobs_name ON jobs (run_id, name) WHERE run_id IS NOT NULL;
CREATE UNIQUE INDEX jobs_unique_key ON jobs (unique_key)
    WHERE unique_key IS NOT NULL
      AND status IN ('BLOCKED', 'SCHEDULED', 'PENDING', 'RUNNING', 'WAITING');

CREATE TABLE job_dependencies (
    parent_id  {integer} NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    child_id   {integer} NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    PRIMARY KEY (parent_id, child_id)
) {clustered};

CREATE INDEX job_dependencies_child ON job_dependencies (child_id, parent_id);

-- What went wrong in each attempt that did not succeed.
CREATE TABLE job_attempts (
    job_id       {integer} NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    attempt      {integer} NOT NULL,
    worker_id    {integer},
    outcome      {text} NOT NULL
                 CHECK (outcome IN ('failed', 'timed_out', 'interrupted', 'cancelled')),
    error        {text},
    started_at   {integer},
    finished_at  {integer} NOT NULL,
    PRIMARY KEY (job_id, attempt)
) {clustered};

-- Captured output, one row a line, in the order it was read.
CREATE TABLE job_logs (
    job_id   {integer} NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    attempt  {integer} NOT NULL,
    line     {integer} NOT NULL,
    at       {integer} NOT NULL,
    stream   {text} NOT NULL CHECK (stream = 'stdout' OR stream = 'stderr' OR stream = 'engine'),
    text     {text} NOT NULL,
    PRIMARY KEY (job_id, attempt, line)
) {clustered};

CREATE TABLE workers (
    id            {id},
    host          {text} NOT NULL,
    pid           {integer} NOT NULL,
    -- Opaque identity of the process, by which its death can be proved on its own host.
    process       {text} NOT NULL,
    status        {text} NOT NULL DEFAULT 'ALIVE'
                  CHECK (status IN ('ALIVE', 'DRAINING', 'STOPPED', 'DEAD')),
    -- What it claims: JSON lists; NULL is everything.
    queues        {text},
    run_ids       {text},
    kinds         {text} NOT NULL DEFAULT '[]',
    threads       {integer} NOT NULL DEFAULT 1,
    lease_ms      {integer} NOT NULL,
    -- Renewals of the lease so far: its standing still is what an observer measures.
    heartbeats    {integer} NOT NULL DEFAULT 0,
    heartbeat_at  {integer} NOT NULL,
    started_at    {integer} NOT NULL,
    stopped_at    {integer}
) {strict};

CREATE INDEX workers_live ON workers (id) WHERE status IN ('ALIVE', 'DRAINING');

CREATE TABLE queues (
    name        {text} NOT NULL PRIMARY KEY,
    paused_at   {integer},
    created_at  {integer} NOT NULL DEFAULT ({now_ms})
) {strict};

CREATE VIEW job_stats AS
    SELECT status, count(*) AS jobs FROM jobs GROUP BY status;

CREATE VIEW dead_letters AS
    SELECT id, run_id, name, kind, queue, payload, attempt, failures, interruptions, last_error,
           finished_at
    FROM jobs
    WHERE status = 'FAILED';

CREATE VIEW runs_readable AS
    SELECT id, workflow, status, stop_reason, params, run_key, total_jobs, unfinished_jobs,
           failed_jobs,
           {readable created_at} AS created_at,
           {readable started_at} AS started_at,
           {readable finished_at} AS finished_at
    FROM runs;

CREATE VIEW jobs_readable AS
    SELECT id, run_id, name, kind, queue, status, priority, attempt, max_attempts, failures,
           interruptions, worker_id, last_error, output,
           {readable execute_after} AS execute_after,
           {readable created_at} AS created_at,
           {readable started_at} AS started_at,
           {readable finished_at} AS finished_at
    FROM jobs;
