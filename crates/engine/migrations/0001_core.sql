-- The core tables. One text for every database; what differs is a token in braces of the dialect.
-- Instants are milliseconds since the Unix epoch, UTC. JSON is text. Flags are 0 and 1.
--
-- Where rows come by the thousand, a choice is written with OR, the frequent ones first: for `IN` with a list
-- SQLite would make a table of the list for each row that it writes, and for one of two it reads texts as numbers.
-- What most rows are told apart by, and is no text, comes first in a condition: SQLite stops there.

-- The globally unique name of this database, which no copy of it shares: processes are marked with it.
CREATE TABLE instance (
    id    {integer} NOT NULL PRIMARY KEY CHECK (id = 1),
    name  {text} NOT NULL
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

-- The version of a workflow that is active under its name: what `run NAME` starts and schedules fire.
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

-- Every version that was ever active, counted from 1 for each name; kept when the name is removed.
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
CREATE TABLE schedules (
    id             {id},
    workflow       {text} NOT NULL,
    name           {text} NOT NULL,
    definition     {text} NOT NULL DEFAULT '{}',
    paused_at      {integer},
    next_at        {integer},
    created_at     {integer} NOT NULL DEFAULT ({now_ms}),
    updated_at     {integer} NOT NULL DEFAULT ({now_ms}),
    origin         {text} NOT NULL DEFAULT 'command' CHECK (origin IN ('file', 'command')),
    -- Whatever was to happen up to here is decided.
    decided_until  {integer},
    removed_at     {integer},
    UNIQUE (workflow, name)
) {strict};

CREATE INDEX schedules_due ON schedules (next_at)
    WHERE next_at IS NOT NULL AND paused_at IS NULL AND removed_at IS NULL;

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
    -- What started it, when nobody submitted it by hand.
    source           {text} CHECK (source IN ('schedule', 'catchup', 'backfill', 'trigger')),
    -- By it is known whether a commit was kept whose answer was lost.
    token            {integer} NOT NULL DEFAULT ({token}),
    UNIQUE (schedule_id, scheduled_for)
) {strict};

CREATE INDEX runs_unfinished ON runs (id) WHERE status IN ('PENDING', 'RUNNING');
CREATE INDEX runs_deadline ON runs (deadline_at)
    WHERE deadline_at IS NOT NULL AND stop_reason IS NULL AND status IN ('PENDING', 'RUNNING');
-- For pruning, which must not read what it does not delete.
CREATE INDEX runs_finished ON runs (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX runs_workflow ON runs (workflow_id);
-- For lists of runs, newest first. A list of all states of a workflow reads one range for each state.
CREATE INDEX runs_by_workflow ON runs (workflow, status, id);
CREATE INDEX runs_by_status ON runs (status, id);
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
    on_interrupt         {text} NOT NULL DEFAULT 'rerun' CHECK (on_interrupt = 'rerun' OR on_interrupt = 'fail'),
    allow_failure        {integer} NOT NULL DEFAULT 0 CHECK (allow_failure = 0 OR allow_failure = 1),
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
    -- A job that was asked to stop gets no time to end: its processes are killed.
    cancel_at_once       {integer} NOT NULL DEFAULT 0 CHECK (cancel_at_once = 0 OR cancel_at_once = 1),
    -- What a worker must have to see the job: all of these capabilities (a sorted JSON list), and this
    -- version or a later one.
    requires             {text} NOT NULL DEFAULT '[]',
    version              {integer} NOT NULL DEFAULT 0 CHECK (version >= 0 AND version <= 9007199254740991),
    -- So many jobs with the same key may be PENDING or RUNNING at a time; the others are WAITING.
    concurrency_key      {text},
    concurrency_limit    {integer} CHECK (concurrency_limit >= 1),
    on_full              {text} NOT NULL DEFAULT 'wait'
                         CHECK (on_full = 'wait' OR on_full = 'skip' OR on_full = 'cancel_oldest'),
    -- Together with `created_at` it is the job's idempotency key, which no other job of any database has. Both stay the
    -- same in all attempts and in copies of the database. By it is also known whether a commit was kept whose answer
    -- was lost.
    token                {integer} NOT NULL DEFAULT ({token}),
    -- Of a SCHEDULED job that waits for so long, and not for an instant that somebody named: how long.
    -- `execute_after` is the end of it by the clock as it is set now.
    delay_ms             {integer},
    -- Kept by the table, so that no path of any language can break it.
    CHECK (status <> 'RUNNING' OR worker_id IS NOT NULL)
) {strict};

-- Only what can be claimed now is in the claim indexes: a claim costs the same with ten rows
-- waiting as with ten million finished, delayed or blocked ones.
--
-- The order of claiming: the time a job became due, with a head start for each point of priority. Both
-- grow old at the same pace, so the order of two jobs never changes and none waits for ever.
--
-- Who claims by run does not say `kind > ''`, and so can't be led through the lanes of all others.
CREATE INDEX jobs_claim ON jobs (queue, kind, requires, version, {rank}, id)
    WHERE status = 'PENDING' AND kind > '';
CREATE INDEX jobs_claim_in_run ON jobs (run_id, {rank}, id)
    WHERE run_id IS NOT NULL AND status = 'PENDING';
CREATE INDEX jobs_due ON jobs (execute_after, id) WHERE status = 'SCHEDULED';
-- Says also how many of a queue's jobs run.
CREATE INDEX jobs_running ON jobs (worker_id, id, queue) WHERE status = 'RUNNING';
CREATE INDEX jobs_failed ON jobs (finished_at) WHERE status = 'FAILED';
-- For pruning: of a run's jobs the run's end counts, so theirs are not in it.
CREATE INDEX jobs_finished_alone ON jobs (finished_at)
    WHERE run_id IS NULL AND finished_at IS NOT NULL;
CREATE UNIQUE INDEX jobs_name ON jobs (run_id, name) WHERE run_id IS NOT NULL;
-- Workers in other languages report an end by the state alone. It counts when Windlass has given it its
-- consequences (another attempt, children, the run's counters) and its time: then it leaves this index.
CREATE INDEX jobs_reported ON jobs (id)
    WHERE finished_at IS NULL AND (status = 'SUCCESSFUL' OR status = 'FAILED' OR status = 'CANCELLED');
-- What was reported may still be tried again: it keeps its key.
CREATE UNIQUE INDEX jobs_unique_key ON jobs (unique_key)
    WHERE unique_key IS NOT NULL AND finished_at IS NULL;
CREATE INDEX jobs_key_taken ON jobs (concurrency_key, id)
    WHERE concurrency_key IS NOT NULL AND status IN ('PENDING', 'RUNNING');
-- Those that do not simply wait.
CREATE INDEX jobs_key_impatient ON jobs (concurrency_key, id)
    WHERE concurrency_key IS NOT NULL AND status = 'WAITING' AND on_full <> 'wait';
CREATE INDEX jobs_key_waiting ON jobs (concurrency_key, {rank}, id)
    WHERE concurrency_key IS NOT NULL AND status = 'WAITING';

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
    stopped_at    {integer},
    capabilities  {text} NOT NULL DEFAULT '[]',
    version       {integer} NOT NULL DEFAULT 0,
    -- What it lacks to start jobs, for people: open files, processes, memory, temporary files.
    shortage      {text}
) {strict};

CREATE INDEX workers_live ON workers (id) WHERE status IN ('ALIVE', 'DRAINING');

CREATE TABLE queues (
    name              {text} NOT NULL PRIMARY KEY,
    paused_at         {integer},
    created_at        {integer} NOT NULL DEFAULT ({now_ms}),
    max_running       {integer} CHECK (max_running >= 0),
    rate_jobs         {integer} CHECK (rate_jobs >= 1),
    rate_interval_ms  {integer} CHECK (rate_interval_ms >= 1),
    fifo              {integer} NOT NULL DEFAULT 0 CHECK (fifo IN (0, 1)),
    -- Of a queue that keeps the order of arrival: the job whose turn it is, until it is over.
    turn_job_id       {integer}
) {strict};

-- Queues whose next job may go when one ends.
CREATE INDEX queues_limited ON queues (name) WHERE max_running IS NOT NULL OR fifo = 1;

-- Attempts that queues with a rate began, until they no longer count.
CREATE TABLE queue_starts (
    queue       {text} NOT NULL,
    expires_at  {integer} NOT NULL,
    jobs        {integer} NOT NULL,
    PRIMARY KEY (queue, expires_at)
) {clustered};

-- What writes leave behind that have no row of their own to be known by: a token in the transaction that each of them
-- is. Where the answer to a commit is lost, it tells whether the transaction was kept.
CREATE TABLE commit_tokens (
    committed_at  {integer} NOT NULL,
    token         {integer} NOT NULL,
    PRIMARY KEY (committed_at, token)
) {clustered};

-- Each time that somebody set the clock: all that waits for a duration was moved by it, once.
CREATE TABLE clock_steps (
    number  {integer} NOT NULL PRIMARY KEY,
    at      {integer} NOT NULL,
    by_ms   {integer} NOT NULL
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
