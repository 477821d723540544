-- The core tables. Both databases use this text; tokens in braces are replaced by the dialect. Instants are
-- milliseconds since the Unix epoch, UTC. JSON is stored as text. Flags are 0 and 1.
--
-- In checks and indexes on tables with many inserted rows, alternatives are written with OR, the most frequent first.
-- For an `IN` with a list, SQLite would build a table of the list for each inserted row; for a list of two it would
-- convert texts to numbers. A condition that fails for most rows and compares no text comes first, because SQLite
-- stops there.

-- The globally unique name of this database. A copy has a different name. The processes of jobs are marked with it.
CREATE TABLE instance (
    id    {integer} NOT NULL PRIMARY KEY CHECK (id = 1),
    name  {text} NOT NULL
) {strict};

-- Workflow definitions. A row never changes; the same content is stored once.
CREATE TABLE workflows (
    id          {id},
    name        {text} NOT NULL,
    hash        {text} NOT NULL,
    -- A JSON list; NULL if it has none. It stands before the definition, because that may be long.
    tags        {text},
    definition  {text} NOT NULL,
    created_at  {integer} NOT NULL DEFAULT ({now_ms}),
    -- The variables of workers that may have values of its secrets, as a JSON list. Only jobs that name them get them.
    secret_variables {text},
    UNIQUE (name, hash)
) {strict};

CREATE INDEX workflows_with_secrets ON workflows (id) WHERE secret_variables IS NOT NULL;

-- The active version of each registered workflow. `run NAME` and schedules start runs of it.
CREATE TABLE registrations (
    name         {text} NOT NULL PRIMARY KEY,
    version      {integer} NOT NULL,
    workflow_id  {integer} NOT NULL REFERENCES workflows (id),
    -- The file that it was read from, and the folder against which its jobs resolve relative paths.
    file         {text},
    dir          {text},
    paused_at    {integer},
    created_at   {integer} NOT NULL DEFAULT ({now_ms}),
    updated_at   {integer} NOT NULL DEFAULT ({now_ms})
) {strict};

-- Every version that was ever active, counted from 1 for each name. Kept when the name is removed.
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

-- A schedule's row is never deleted, so that a schedule that is added again does not repeat occurrences.
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
    -- The cursor: all occurrences up to this instant are decided.
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
    -- Why the run was stopped before its jobs had finished.
    stop_reason      {text} CHECK (stop_reason IN ('cancelled', 'timed_out', 'skipped')),
    params           {text} NOT NULL DEFAULT '{}',
    env              {text} NOT NULL DEFAULT '{}',
    -- The folder against which its jobs resolve relative paths.
    dir              {text},
    run_key          {text} UNIQUE,
    schedule_id      {integer} REFERENCES schedules (id),
    scheduled_for    {integer},
    -- Counters that every transaction which finishes jobs updates, so that the run's outcome is known without
    -- counting.
    total_jobs       {integer} NOT NULL DEFAULT 0,
    -- The unfinished jobs of the present phase.
    unfinished_jobs  {integer} NOT NULL DEFAULT 0 CHECK (unfinished_jobs >= 0),
    failed_jobs      {integer} NOT NULL DEFAULT 0 CHECK (failed_jobs >= 0),
    timeout_ms       {integer},
    deadline_at      {integer},
    created_at       {integer} NOT NULL DEFAULT ({now_ms}),
    started_at       {integer},
    finished_at      {integer},
    -- How long it took before its last retry, without the time between. A retry sets the two above to NULL.
    ran_before_ms    {integer} NOT NULL DEFAULT 0,
    updated_at       {integer} NOT NULL DEFAULT ({now_ms}),
    -- Why a schedule started it, or `event` if a trigger did; NULL if a person submitted it.
    source           {text} CHECK (source IN ('schedule', 'catchup', 'backfill', 'manual', 'event')),
    -- The caller that submitted it or fired its schedule by hand, by its name in `audit`. NULL if no caller is known.
    started_by       {text},
    -- Proves that the run's transaction was kept, if the answer to its commit was lost.
    token            {integer} NOT NULL DEFAULT ({token}),
    -- Whether some of its jobs are handlers, and which of its jobs run: 0 is its jobs, 1 the handlers of its outcome, 2 the
    -- handlers that run always.
    has_handlers     {integer} NOT NULL DEFAULT 0 CHECK (has_handlers = 0 OR has_handlers = 1),
    phase            {integer} NOT NULL DEFAULT 0 CHECK (phase >= 0 AND phase <= 2),
    -- The last event before the run, or the run at the top of its calls, was created: its jobs wait for later ones.
    first_event_id   {integer} NOT NULL DEFAULT 0,
    -- The state in which its jobs ended it, before its handlers ran. NULL without handlers.
    outcome          {text} CHECK (outcome IN ('SUCCESSFUL', 'FAILED', 'CANCELLED')),
    -- The job that called the workflow and its attempt, and the run at the top of all calls. NULL for a run that no job
    -- started. The job's row is deleted after this one. If a retry made the items of a group anew, the runs of the old items
    -- have the group here, and no attempt.
    parent_job_id    {integer},
    parent_attempt   {integer},
    root_run_id      {integer},
    -- 1 while the job that called the workflow waits for the end of this run. 2 if a retry has chosen this run: it goes on,
    -- with what failed in it, when the job is decided.
    call_open        {integer} NOT NULL DEFAULT 0 CHECK (call_open = 0 OR call_open = 1 OR call_open = 2),
    -- The number of its definition, which is the one of `workflow_id`: above 1 if a retry has replaced the first one.
    definition       {integer} NOT NULL DEFAULT 1 CHECK (definition >= 1),
    -- How many runs with the same key may be active at a time, and what happens to one more. NULL for a run without a limit.
    -- The keys of runs and those of jobs are apart.
    concurrency_key    {text},
    concurrency_limit  {integer} CHECK (concurrency_limit >= 1),
    on_full            {text} CHECK (on_full = 'wait' OR on_full = 'skip' OR on_full = 'cancel_oldest'),
    -- `slot` while the run waits for a slot of its key: its jobs are BLOCKED, also those that need no other. An unfinished run
    -- that does not wait has a slot.
    waits_for          {text} CHECK (waits_for = 'slot'),
    -- The place in the trace of the caller that submitted it, as a W3C `traceparent`. NULL if the caller has none, and for runs
    -- that jobs have started.
    traceparent        {text},
    CHECK ((concurrency_key IS NULL) = (concurrency_limit IS NULL) AND (concurrency_key IS NULL) = (on_full IS NULL)),
    CHECK ((parent_job_id IS NULL) = (root_run_id IS NULL)),
    UNIQUE (schedule_id, scheduled_for)
) {strict};

-- One run for each attempt of a job that calls a workflow.
CREATE UNIQUE INDEX runs_parent ON runs (parent_job_id, parent_attempt) WHERE parent_job_id IS NOT NULL;
CREATE INDEX runs_of_root ON runs (root_run_id, id) WHERE root_run_id IS NOT NULL;
-- For lists of child runs, newest first.
CREATE INDEX runs_children ON runs (id) WHERE parent_job_id IS NOT NULL;
-- Runs that are over, and whose calling jobs were not told.
CREATE INDEX runs_calls_over ON runs (id) WHERE call_open = 1 AND finished_at IS NOT NULL;
CREATE INDEX runs_unfinished ON runs (id) WHERE status IN ('PENDING', 'RUNNING');
CREATE INDEX runs_deadline ON runs (deadline_at)
    WHERE deadline_at IS NOT NULL AND stop_reason IS NULL AND status IN ('PENDING', 'RUNNING');
-- For pruning, which must read only what it deletes. Child runs are pruned with the run at the top.
CREATE INDEX runs_finished ON runs (finished_at) WHERE finished_at IS NOT NULL AND parent_job_id IS NULL;
CREATE INDEX runs_workflow ON runs (workflow_id);
-- For lists of finished runs, newest first. A list of all states of a workflow reads one range for each state.
CREATE INDEX runs_by_workflow ON runs (workflow, status, id)
    WHERE finished_at IS NOT NULL AND parent_job_id IS NULL;
CREATE INDEX runs_by_status ON runs (status, id) WHERE finished_at IS NOT NULL AND parent_job_id IS NULL;
-- The unfinished runs of a schedule, for its overlap rule.
CREATE INDEX runs_of_schedule ON runs (schedule_id, id)
    WHERE schedule_id IS NOT NULL AND status IN ('PENDING', 'RUNNING');
-- For keeping a number of the newest runs of each workflow.
CREATE INDEX runs_finished_of_workflow ON runs (workflow, finished_at)
    WHERE finished_at IS NOT NULL AND parent_job_id IS NULL;

-- Runs that have a slot of their concurrency key.
CREATE INDEX runs_key_holders ON runs (concurrency_key, id)
    WHERE concurrency_key IS NOT NULL AND waits_for IS NULL AND status IN ('PENDING', 'RUNNING');
-- Runs that wait for one, the oldest first, and those of them that are skipped or that cancel the oldest holder.
CREATE INDEX runs_key_waiting ON runs (concurrency_key, id) WHERE waits_for IS NOT NULL;
CREATE INDEX runs_key_on_full ON runs (concurrency_key, id) WHERE waits_for IS NOT NULL AND on_full <> 'wait';

-- The definitions of runs that came from a file or were replaced, in order. Other runs have one definition and no row here.
CREATE TABLE run_definitions (
    run_id         {integer} NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    number         {integer} NOT NULL CHECK (number >= 1),
    workflow_id    {integer} NOT NULL REFERENCES workflows (id),
    -- What a person called, or what started the run.
    verb           {text} NOT NULL CHECK (verb IN ('submit', 'run', 'rerun', 'retry', 'schedule', 'catchup', 'backfill',
                                                   'manual', 'event')),
    pinned_at      {integer} NOT NULL,
    -- The file as it was named, its absolute path, and the SHA-256 of its text and of the files that it includes; NULL if
    -- it came from no file.
    file           {text},
    path           {text},
    file_hash      {text},
    -- The jobs to which `--only` has reduced the file, as a JSON list, and whether those that they need were kept too.
    only_jobs      {text},
    with_upstream  {integer} NOT NULL DEFAULT 0 CHECK (with_upstream = 0 OR with_upstream = 1),
    PRIMARY KEY (run_id, number),
    CHECK ((file IS NULL) = (path IS NULL) AND (file IS NULL) = (file_hash IS NULL))
) {clustered};

CREATE INDEX run_definitions_workflow ON run_definitions (workflow_id);

-- The tags of the definitions of runs, for lists of the runs with a tag. A run without tags has no row.
CREATE TABLE run_tags (
    tag     {text} NOT NULL,
    run_id  {integer} NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    PRIMARY KEY (tag, run_id)
) {clustered};

CREATE INDEX run_tags_run ON run_tags (run_id);

-- The folders of runs whose workflow has `workspace`. A row is `open` until its run is over and somebody has kept or removed
-- the folder.
CREATE TABLE workspaces (
    run_id  {integer} NOT NULL PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE,
    keep    {text} NOT NULL CHECK (keep IN ('never', 'on_failure', 'always')),
    state   {text} NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'kept', 'removed'))
) {strict};

CREATE INDEX workspaces_open ON workspaces (run_id) WHERE state = 'open';

-- Occurrences that wait for a run, and those that were skipped.
CREATE TABLE occurrences (
    schedule_id    {integer} NOT NULL REFERENCES schedules (id),
    scheduled_for  {integer} NOT NULL,
    status         {text} NOT NULL CHECK (status IN ('WAITING', 'SKIPPED')),
    source         {text} NOT NULL CHECK (source IN ('schedule', 'catchup', 'backfill')),
    -- For a backfill: how many of its runs may be unfinished at a time.
    at_once        {integer} CHECK (at_once >= 1),
    -- The earliest start: the nominal time plus jitter.
    start_after    {integer} NOT NULL,
    -- Why it was skipped.
    reason         {text},
    created_at     {integer} NOT NULL DEFAULT ({now_ms}),
    updated_at     {integer} NOT NULL DEFAULT ({now_ms}),
    PRIMARY KEY (schedule_id, scheduled_for)
) {clustered};

CREATE INDEX occurrences_waiting ON occurrences (start_after, schedule_id, scheduled_for)
    WHERE status = 'WAITING';
-- The first waiting occurrences of one schedule.
CREATE INDEX occurrences_of_schedule ON occurrences (schedule_id, source, start_after, scheduled_for)
    WHERE status = 'WAITING';
CREATE INDEX occurrences_skipped ON occurrences (updated_at) WHERE status = 'SKIPPED';

CREATE TABLE jobs (
    id                   {id},
    run_id               {integer} REFERENCES runs (id) ON DELETE CASCADE,
    name                 {text},
    kind                 {text} NOT NULL,
    queue                {text} NOT NULL DEFAULT 'default',
    -- The state of a row that another program inserts. The scheduler makes it PENDING when its time comes, so that
    -- other programs need not know how jobs are claimed.
    status               {text} NOT NULL DEFAULT 'SCHEDULED',
    priority             {integer} NOT NULL DEFAULT 0,
    execute_after        {integer} NOT NULL DEFAULT ({now_ms}),
    payload              {text} NOT NULL DEFAULT '{}',
    -- How often the job was claimed. The number is the fencing token of the current claim.
    attempt              {integer} NOT NULL DEFAULT 0,
    max_attempts         {integer} NOT NULL DEFAULT 3 CHECK (max_attempts >= 1),
    failures             {integer} NOT NULL DEFAULT 0,
    interruptions        {integer} NOT NULL DEFAULT 0,
    max_interruptions    {integer} NOT NULL DEFAULT 25,
    on_interrupt         {text} NOT NULL DEFAULT 'rerun' CHECK (on_interrupt = 'rerun' OR on_interrupt = 'fail'),
    allow_failure        {integer} NOT NULL DEFAULT 0 CHECK (allow_failure = 0 OR allow_failure = 1),
    -- The number of unfinished parents. A handler also waits for its phase, an item for its turn, and a group for its
    -- items.
    blocked_by           {integer} NOT NULL DEFAULT 0 CHECK (blocked_by >= 0),
    created_at           {integer} NOT NULL DEFAULT ({now_ms}),
    updated_at           {integer} NOT NULL DEFAULT ({now_ms}),
    -- Whether a job that is asked to stop is killed at once, without a grace time.
    cancel_at_once       {integer} NOT NULL DEFAULT 0 CHECK (cancel_at_once = 0 OR cancel_at_once = 1),
    -- What a worker needs to claim the job: all of these capabilities (a sorted JSON list), and this version of the
    -- code or a later one.
    requires             {text} NOT NULL DEFAULT '[]',
    code_version         {integer} NOT NULL DEFAULT 0 CHECK (code_version >= 0 AND code_version <= 9007199254740991),
    -- What happens to a job that finds all slots of its concurrency key taken.
    on_full              {text} NOT NULL DEFAULT 'wait'
                         CHECK (on_full = 'wait' OR on_full = 'skip' OR on_full = 'cancel_oldest'),
    -- Together with `created_at` this is the job's idempotency key, which is unique among all jobs of all databases.
    -- Both stay the same in all attempts and in copies of the database. The token also proves that the job's
    -- transaction was kept, if the answer to its commit was lost.
    token                {integer} NOT NULL DEFAULT ({token}),
    -- Why a SKIPPED job was skipped: 1 if a job before it failed or was cancelled, 0 if it was not needed.
    upstream_failed      {integer} NOT NULL DEFAULT 0 CHECK (upstream_failed = 0 OR upstream_failed = 1),
    -- The phase of its run in which the job runs: see `runs.phase`. A handler of phase 1 runs after one outcome.
    phase                {integer} NOT NULL DEFAULT 0 CHECK (phase = 0 OR phase = 1 OR phase = 2),
    -- The number of the definition of its run with which it runs, or with which it ended.
    definition           {integer} NOT NULL DEFAULT 1,
    -- From here on a column is NULL in most rows, and the more often the later it stands. SQLite as Windlass builds it does
    -- not store the NULLs at the end of a row, and most of the time of a claim goes to reading and writing the row.
    worker_id            {integer},
    -- When it became PENDING for its last attempt: no later than its claim. Until it is claimed, `updated_at` says it.
    ready_at             {integer},
    started_at           {integer},
    finished_at          {integer},
    output               {text},
    -- The exit code of the last attempt; NULL if a signal ended it, or if it has none.
    exit_code            {integer},
    retry                {text},
    last_error           {text},
    timeout_ms           {integer},
    unique_key           {text},
    -- How many jobs with the same key may be PENDING or RUNNING at a time. The others are WAITING for a slot.
    concurrency_key      {text},
    concurrency_limit    {integer} CHECK (concurrency_limit >= 1),
    -- The run at the top of all calls, if its own run was started by a job.
    root_run_id          {integer},
    -- When the job runs, by the ends of its parents. NULL means `all_successful`, the default, without a look at it when
    -- the last parent ends: the other ends have skipped the job before. `all_successful` is written when a parent was not
    -- needed, so that the job is decided when its last parent ends.
    join_rule            {text} CHECK (join_rule IS NULL OR join_rule = 'all_successful' OR join_rule = 'none_failed'
                                       OR join_rule = 'any_successful' OR join_rule = 'any_failed'
                                       OR join_rule = 'all_finished'),
    -- What the scheduler decides before the job runs, as JSON; NULL for a job that runs when its parents have passed.
    control              {text},
    handles              {text} CHECK (handles IS NULL OR handles = 'SUCCESSFUL' OR handles = 'FAILED' OR handles = 'CANCELLED'),
    -- How long a SCHEDULED job waits, if it waits for a duration and not for an instant that a person named. Then
    -- `execute_after` is the end of that duration by the current setting of the clock.
    delay_ms             {integer},
    cancel_requested_at  {integer},
    -- What a WAITING job waits for, and NULL in all other states: a slot of its concurrency key, a decision of the
    -- scheduler, an event, a person, the ends of its items, or the run that it has started. The indexes of waiting jobs go
    -- by this column and not by `status`, so that claims and ends of other jobs do not touch them.
    waits_for            {text} CHECK (waits_for IS NULL OR waits_for = 'slot' OR waits_for = 'decision'
                                       OR waits_for = 'event' OR waits_for = 'approval' OR waits_for = 'items'
                                       OR waits_for = 'run'),
    -- Of an item: the job with `for_each` that it belongs to, and a JSON list of its place among the items and its value.
    group_id             {integer},
    item                 {text},
    -- When the scheduler decided that the job runs. A SCHEDULED job that has a `control` and is not decided goes to the
    -- scheduler when its time comes: it sleeps. A decided one is retried, and goes to the workers.
    decided_at           {integer},
    -- When the job must be over: the end of its `deadline`, which began when it was decided.
    deadline_at          {integer},
    -- The event that a job waits for: its name, a slash, and its key, which is empty for an event without one.
    event                {text},
    -- When a wait ends without what it waits for.
    wait_ends_at         {integer},
    -- Of a group: how many of its items may run at a time.
    max_parallel         {integer} CHECK (max_parallel >= 1),
    -- What a row in each state has, the most frequent states first. The table checks it, so that no other program can
    -- break it. A job in one of the last states is finished, or its end was reported. SQLite evaluates a check in each update
    -- that writes one of its columns, so what names `status` is in this one.
    CONSTRAINT jobs_status_check CHECK (
        waits_for IS NULL AND (
            status = 'PENDING' AND finished_at IS NULL
            OR status = 'RUNNING' AND worker_id IS NOT NULL AND finished_at IS NULL
            OR status = 'SUCCESSFUL'
            OR finished_at IS NULL AND (status = 'BLOCKED' OR status = 'SCHEDULED')
            OR status = 'FAILED' OR status = 'SKIPPED' OR status = 'CANCELLED')
        OR status = 'WAITING' AND waits_for IS NOT NULL AND finished_at IS NULL)
) {strict};

-- The claim indexes contain only PENDING jobs, so the cost of a claim does not depend on the number of other rows.
--
-- Jobs are claimed in the order in which they became due, with a head start for each point of priority. The order of
-- two jobs never changes, so no job waits for ever.
--
-- A claim of one run does not mention `kind > ''`, so that the database can't use the index of all queues for it.
CREATE INDEX jobs_claim ON jobs (queue, kind, requires, code_version, {rank}, id)
    WHERE status = 'PENDING' AND kind > '';
-- The run at the top has the jobs of all runs below it.
CREATE INDEX jobs_claim_in_run ON jobs (coalesce(root_run_id, run_id), {rank}, id)
    WHERE run_id IS NOT NULL AND status = 'PENDING';
CREATE INDEX jobs_due ON jobs (execute_after, id) WHERE status = 'SCHEDULED';
-- Also counts the running jobs of a queue.
CREATE INDEX jobs_running ON jobs (worker_id, id, queue) WHERE worker_id IS NOT NULL AND status = 'RUNNING';
CREATE INDEX jobs_failed ON jobs (finished_at) WHERE finished_at IS NOT NULL AND status = 'FAILED';
-- For pruning standalone jobs. Jobs of a run are pruned with their run.
CREATE INDEX jobs_finished_alone ON jobs (finished_at)
    WHERE run_id IS NULL AND finished_at IS NOT NULL;
CREATE UNIQUE INDEX jobs_name ON jobs (run_id, name) WHERE run_id IS NOT NULL;
-- Ends that workers in other languages reported: they write only the state. Windlass applies the consequences (a
-- retry, children, the run's counters) and sets `finished_at`, which removes the row from this index. The
-- conditions on the two most frequent states follow from the others, but SQLite stops there for most rows.
CREATE INDEX jobs_reported ON jobs (id)
    WHERE finished_at IS NULL AND status <> 'PENDING' AND status <> 'RUNNING'
      AND (status = 'SUCCESSFUL' OR status = 'FAILED' OR status = 'CANCELLED');
-- A reported job may be retried, so it keeps its key until it is finished.
CREATE UNIQUE INDEX jobs_unique_key ON jobs (unique_key)
    WHERE unique_key IS NOT NULL AND finished_at IS NULL;
-- Jobs that hold a slot of a concurrency key.
CREATE INDEX jobs_key_holders ON jobs (concurrency_key, id)
    WHERE concurrency_key IS NOT NULL AND status IN ('PENDING', 'RUNNING');
-- Waiting jobs that are skipped, or that cancel the oldest holder of a slot.
CREATE INDEX jobs_key_on_full ON jobs (concurrency_key, id)
    WHERE concurrency_key IS NOT NULL AND waits_for = 'slot' AND on_full <> 'wait';
CREATE INDEX jobs_key_waiting ON jobs (concurrency_key, {rank}, id)
    WHERE concurrency_key IS NOT NULL AND waits_for = 'slot';
-- The items of a group: those that run, and the next that may run.
CREATE INDEX jobs_group ON jobs (group_id, status, id) WHERE group_id IS NOT NULL;
-- Unfinished jobs with a deadline that were not asked to stop.
CREATE INDEX jobs_deadline ON jobs (deadline_at)
    WHERE deadline_at IS NOT NULL AND finished_at IS NULL AND cancel_requested_at IS NULL;
-- All waiting jobs, for counts, lists, and the scheduler's decisions.
CREATE INDEX jobs_waiting ON jobs (waits_for, id) WHERE waits_for IS NOT NULL;

-- Jobs whose runs must be stopped.
CREATE INDEX jobs_calls_stopping ON jobs (id)
    WHERE waits_for = 'run' AND cancel_requested_at IS NOT NULL;
-- Jobs that wait for an event, by the event.
CREATE INDEX jobs_waiting_for_event ON jobs (event, id) WHERE event IS NOT NULL AND waits_for = 'event';
CREATE INDEX jobs_wait_ends ON jobs (wait_ends_at) WHERE wait_ends_at IS NOT NULL AND waits_for IS NOT NULL;

-- Signals. Their numbers come from `event_counter`, whose row is locked until the event is committed. So a smaller number
-- was committed earlier.
CREATE TABLE events (
    id             {integer} NOT NULL PRIMARY KEY,
    name           {text} NOT NULL,
    -- Empty for an event without a key.
    event_key      {text} NOT NULL DEFAULT '',
    payload        {text} NOT NULL DEFAULT 'null',
    -- The sender's id: a second signal with the same one is the first.
    event_id       {text} UNIQUE,
    received_at    {integer} NOT NULL,
    -- When the jobs that waited for it were told.
    dispatched_at  {integer},
    -- How many runs of triggers have started each other, up to the run whose job has sent it; 0 for all other events.
    depth          {integer} NOT NULL DEFAULT 0 CHECK (depth >= 0)
) {strict};

CREATE INDEX events_of_name ON events (name, event_key, id);
-- For pruning.
CREATE INDEX events_received ON events (received_at);
CREATE INDEX events_undispatched ON events (id) WHERE dispatched_at IS NULL;

-- The number of the last event, in one row. No number is used twice, even after pruning.
CREATE TABLE event_counter (
    id    {integer} NOT NULL PRIMARY KEY CHECK (id = 1),
    last  {integer} NOT NULL
) {strict};

-- What starts runs of registered workflows besides people and schedules. The rows follow the active definitions.
CREATE TABLE triggers (
    workflow        {text} NOT NULL,
    name            {text} NOT NULL,
    definition      {text} NOT NULL,
    -- The event that it takes; empty for the ends of runs of other workflows.
    event_name      {text} NOT NULL,
    -- It takes events with a higher number.
    after_event_id  {integer} NOT NULL,
    created_at      {integer} NOT NULL,
    -- The last thing that it took and that started no run because of an error; NULL once it has started a run again.
    failed_at       {integer},
    failed_source   {text},
    last_error      {text},
    PRIMARY KEY (workflow, name)
) {clustered};

CREATE INDEX triggers_of_event ON triggers (event_name);

-- Ends of runs that were not called by a job, as long as no trigger was asked about them. They are written only if a trigger
-- takes ends of runs.
CREATE TABLE run_ends (
    finished_at  {integer} NOT NULL,
    run_id       {integer} NOT NULL,
    workflow     {text} NOT NULL,
    status       {text} NOT NULL CHECK (status IN ('SUCCESSFUL', 'FAILED', 'CANCELLED')),
    PRIMARY KEY (finished_at, run_id)
) {clustered};

-- The runs that triggers have started.
CREATE TABLE triggered_runs (
    run_id        {integer} NOT NULL PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE,
    trigger_name  {text} NOT NULL,
    -- The event or the end of a run: `event:5`, or `run:12:1767225600000`.
    started_by    {text} NOT NULL,
    -- How many such runs have started each other, with this one.
    depth         {integer} NOT NULL CHECK (depth >= 1)
) {strict};

-- Where notifications go. Each `serve` writes rows of its own from its configuration. Commands and addresses are only there:
-- they may contain secrets.
CREATE TABLE notification_targets (
    name        {text} NOT NULL,
    -- The worker of the service that has the target.
    worker_id   {integer} NOT NULL,
    updated_at  {integer} NOT NULL,
    PRIMARY KEY (name, worker_id)
) {strict};

-- What a target wants: events; if it has rows for workflows, only of these; if it has rows for tags, only with one of these.
CREATE TABLE notification_filters (
    target     {text} NOT NULL,
    worker_id  {integer} NOT NULL,
    sort       {text} NOT NULL CHECK (sort IN ('event', 'workflow', 'tag')),
    -- The name of a workflow may end with `*`.
    value      {text} NOT NULL,
    PRIMARY KEY (target, worker_id, sort, value),
    FOREIGN KEY (target, worker_id) REFERENCES notification_targets (name, worker_id) ON DELETE CASCADE
) {clustered};

CREATE INDEX notification_filters_of_sort ON notification_filters (sort, value);

-- What a target is told: the end of a run, a late schedule, a dead worker; once for each. The transaction that makes it happen
-- inserts the row.
CREATE TABLE notifications (
    id           {id},
    target       {text} NOT NULL,
    event        {text} NOT NULL CHECK (event IN ('run_failed', 'run_cancelled', 'run_successful', 'schedule_late',
                                                  'worker_dead')),
    -- The id of the run, the schedule or the worker, and the name of the workflow, of the schedule or of the worker's host.
    subject_id   {integer} NOT NULL,
    subject      {text} NOT NULL,
    -- When the run ended, when the schedule was due, or when the worker was found dead.
    happened_at  {integer} NOT NULL,
    status       {text} NOT NULL DEFAULT 'PENDING' CHECK (status IN ('PENDING', 'DELIVERED', 'FAILED')),
    -- How often it was taken for delivery. The number guards what is written about a delivery.
    attempt      {integer} NOT NULL DEFAULT 0,
    -- When it may be taken. While it is delivered, the end of the lease of the service that does so.
    next_at      {integer} NOT NULL,
    last_error   {text},
    -- Together with `created_at` this is the id of the message, the same in all deliveries.
    token        {integer} NOT NULL DEFAULT ({token}),
    created_at   {integer} NOT NULL,
    finished_at  {integer},
    UNIQUE (event, subject_id, happened_at, target)
) {strict};

CREATE INDEX notifications_due ON notifications (target, next_at, id) WHERE status = 'PENDING';
-- For giving up, and for pruning.
CREATE INDEX notifications_pending ON notifications (created_at) WHERE status = 'PENDING';
CREATE INDEX notifications_finished ON notifications (finished_at) WHERE finished_at IS NOT NULL;
-- For counts and lists.
CREATE INDEX notifications_failed ON notifications (id) WHERE status = 'FAILED';

-- Values that are kept between runs, in one space for all workflows. They belong to no run, so pruning leaves them.
CREATE TABLE variables (
    name        {text} NOT NULL PRIMARY KEY,
    -- JSON. A text that is none is taken as a text.
    value       {text} NOT NULL,
    -- The run whose job has set it, even if the run is deleted; NULL if somebody else has set it.
    run_id      {integer},
    changed_at  {integer} NOT NULL DEFAULT ({now_ms})
) {strict};

CREATE TABLE job_dependencies (
    parent_id  {integer} NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    child_id   {integer} NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    PRIMARY KEY (parent_id, child_id)
) {clustered};

CREATE INDEX job_dependencies_child ON job_dependencies (child_id, parent_id);

-- The attempts that did not succeed, and their errors. An attempt that succeeded is here if its job was retried after it.
CREATE TABLE job_attempts (
    job_id       {integer} NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    attempt      {integer} NOT NULL,
    worker_id    {integer},
    outcome      {text} NOT NULL
                 CHECK (outcome IN ('failed', 'timed_out', 'interrupted', 'cancelled', 'successful')),
    error        {text},
    -- As in `jobs`, for this attempt.
    ready_at     {integer},
    started_at   {integer},
    finished_at  {integer} NOT NULL,
    -- When its run was retried, if this was the last attempt before.
    retried_at   {integer},
    PRIMARY KEY (job_id, attempt)
) {clustered};

-- The output of jobs, one row for each line, in the order in which it was read.
CREATE TABLE job_logs (
    job_id   {integer} NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    attempt  {integer} NOT NULL,
    line     {integer} NOT NULL,
    at       {integer} NOT NULL,
    stream   {text} NOT NULL CHECK (stream = 'stdout' OR stream = 'stderr' OR stream = 'engine'),
    text     {text} NOT NULL,
    PRIMARY KEY (job_id, attempt, line)
) {clustered};

-- The files that jobs kept when they succeeded. Their bytes are in the folder for files, under the SHA-256 of their content.
CREATE TABLE artifacts (
    job_id  {integer} NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    path    {text} NOT NULL,
    hash    {text} NOT NULL,
    bytes   {integer} NOT NULL CHECK (bytes >= 0),
    PRIMARY KEY (job_id, path)
) {clustered};

CREATE INDEX artifacts_hash ON artifacts (hash);

CREATE TABLE workers (
    id            {id},
    host          {text} NOT NULL,
    pid           {integer} NOT NULL,
    -- Identity of the process. On its own host it proves whether the process is gone.
    process       {text} NOT NULL,
    status        {text} NOT NULL DEFAULT 'ALIVE'
                  CHECK (status IN ('ALIVE', 'DRAINING', 'STOPPED', 'DEAD')),
    -- What it may claim, as JSON lists; NULL means everything.
    queues        {text},
    run_ids       {text},
    kinds         {text} NOT NULL DEFAULT '[]',
    threads       {integer} NOT NULL DEFAULT 1,
    lease_ms      {integer} NOT NULL,
    -- How often the lease was renewed. An observer measures how long this number has not changed.
    heartbeats    {integer} NOT NULL DEFAULT 0,
    heartbeat_at  {integer} NOT NULL,
    started_at    {integer} NOT NULL,
    stopped_at    {integer},
    capabilities  {text} NOT NULL DEFAULT '[]',
    code_version  {integer} NOT NULL DEFAULT 0,
    -- What its machine lacks to start jobs, for people: open files, processes, memory, temporary files.
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
    -- In a queue that keeps the order of arrival: the job whose turn it is, until it is finished.
    turn_job_id       {integer}
) {strict};

-- Queues in which another job may start when one ends.
CREATE INDEX queues_limited ON queues (name) WHERE max_running IS NOT NULL OR fifo = 1;

-- Starts that count against the rate of a queue, until they expire.
CREATE TABLE queue_starts (
    queue       {text} NOT NULL,
    expires_at  {integer} NOT NULL,
    jobs        {integer} NOT NULL,
    PRIMARY KEY (queue, expires_at)
) {clustered};

-- Tokens of writes that insert no other row by which they could be recognized. A token proves that its transaction
-- was kept, if the answer to the commit was lost.
CREATE TABLE commit_tokens (
    committed_at  {integer} NOT NULL,
    token         {integer} NOT NULL,
    PRIMARY KEY (committed_at, token)
) {clustered};

-- Changes of the wall clock by somebody who set it. The ends of all durations were moved by each of them, once.
CREATE TABLE clock_steps (
    number  {integer} NOT NULL PRIMARY KEY,
    at      {integer} NOT NULL,
    by_ms   {integer} NOT NULL
) {strict};

-- Who may use the web interface. The secret of a token is nowhere: `hash` is its SHA-256.
CREATE TABLE tokens (
    id          {id},
    name        {text} NOT NULL,
    hash        {text} NOT NULL UNIQUE,
    role        {text} NOT NULL CHECK (role IN ('metrics', 'view', 'run', 'edit', 'admin')),
    created_at  {integer} NOT NULL,
    expires_at  {integer},
    revoked_at  {integer}
) {strict};

CREATE UNIQUE INDEX tokens_by_name ON tokens (name) WHERE revoked_at IS NULL;

-- Sessions of browsers, and links that become a session when they are used. `hash` is the SHA-256 of the secret.
CREATE TABLE sessions (
    id          {id},
    hash        {text} NOT NULL UNIQUE,
    kind        {text} NOT NULL CHECK (kind IN ('link', 'session')),
    name        {text} NOT NULL,
    role        {text} NOT NULL CHECK (role IN ('metrics', 'view', 'run', 'edit', 'admin')),
    -- The token with which it began. It ends with the token.
    token_id    {integer} REFERENCES tokens (id),
    created_at  {integer} NOT NULL,
    expires_at  {integer} NOT NULL
) {strict};

CREATE INDEX sessions_by_end ON sessions (expires_at);

-- What people changed, each row by the transaction of the change.
CREATE TABLE audit (
    id       {id},
    at       {integer} NOT NULL,
    -- The name of a token, or of a user of the command line.
    caller   {text} NOT NULL,
    -- From where; NULL for the command line.
    address  {text},
    action   {text} NOT NULL,
    subject  {text} NOT NULL,
    -- How the subject was before, as a JSON object. NULL if it was not there.
    before   {text},
    -- What came of it, for example the run that was started.
    result   {text}
) {strict};

-- Requests that were sent with a key: the same request is made once. The row is written by the transactions of its changes.
CREATE TABLE idempotency_keys (
    id           {id},
    -- Whose key it is, for example `token 3`.
    caller       {text} NOT NULL,
    request_key  {text} NOT NULL,
    -- The SHA-256 of the request.
    request      {text} NOT NULL,
    -- What each change of the request returned, as a JSON object.
    results      {text} NOT NULL,
    -- The answer that was sent. NULL until it is known, or if it is too long.
    status       {integer},
    answer       {text},
    created_at   {integer} NOT NULL,
    CHECK ((status IS NULL) = (answer IS NULL))
) {strict};

CREATE UNIQUE INDEX idempotency_keys_by_key ON idempotency_keys (caller, request_key);

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

-- The jobs that a worker in another language may claim now. Sorted by `claim_order, id` for each queue and kind.
CREATE VIEW claimable_jobs AS
    SELECT id, run_id, name, kind, queue, priority, execute_after, payload, attempt, failures, max_attempts,
           timeout_ms, created_at, {rank} AS claim_order
    FROM jobs
    WHERE status = 'PENDING' AND kind > '' AND requires = '[]' AND code_version = 0
      AND queue NOT IN (
          SELECT queues.name FROM queues
          WHERE queues.paused_at IS NOT NULL OR queues.rate_jobs IS NOT NULL OR queues.fifo = 1
             OR queues.max_running <= (SELECT count(*) FROM jobs AS running
                                       WHERE running.status = 'RUNNING' AND running.queue = queues.name));
