//! The store: all SQL of Windlass, one file a noun. A transition is a guarded UPDATE. If it changes no row, that is a
//! conflict, and the caller gets it as an error.

mod accepted;
mod access;
mod apply;
mod artifacts;
mod cancel;
mod changes;
mod check;
mod claim;
mod copy;
mod events;
mod evidence;
mod finish;
mod for_scheduler;
mod for_workers;
mod groups;
mod health;
mod jobs;
mod logs;
mod metrics;
mod notifications;
mod page;
mod queues;
mod registrations;
mod restore;
mod round_trip;
mod runs;
mod schedules;
mod secrets;
mod stats;
mod triggers;
mod variables;
mod workers;

use std::sync::{Arc, Mutex, PoisonError};

use access::record::Record;
use evidence::{CommitToken, Evidence, recovery};
use windlass_db::error::{Error, Result};
use windlass_db::{Capabilities, Connection, Database};
use windlass_system::clock::Clock;
use windlass_system::random::Random;
use windlass_system::wake_ups::{WakeUpChannel, WakeUpListener, WakeUps};
use windlass_workflow::Workflow;

use crate::files::RunFiles;
use crate::measurements::Measurements;

pub use accepted::TimeRange;
pub use access::{
    AuditEntry, AuditFilter, Caller, Change, CredentialKind, IDEMPOTENCY_KEY_BYTES_MAX, IdempotencyKey,
    KEPT_ANSWER_BYTES_MAX, KeptAnswer, NewToken, Role, Secret, Subject, Token, secret_hash,
};
pub use apply::Applied;
pub use artifacts::{Artifact, KeptArtifact};
pub use cancel::{Cancellation, Urgency};
pub(crate) use cancel::{IS_STOPPED_LATER, WAITS_FOR_ITEMS};
pub use changes::{Fingerprints, OutputState, Watched};
pub use check::Problem;
pub use claim::capabilities::WorkerCapabilities;
pub use claim::job::ClaimedJob;
pub(crate) use claim::partition::RANK;
pub use claim::request::{CLAIM_MAX, ClaimRequest, Claims, Scope};
pub use copy::{Copied, CopyError};
pub use events::{NewSignal, Signalled};
pub(crate) use finish::items::{COUNTS_AS_FAILED, IS_BROKEN};
pub use finish::run_end::EndedRun;
pub use finish::slots::CONCURRENCY_LIMIT_MAX;
pub use finish::{Finish, Finished};
pub use for_scheduler::clock_steps::{ClockReading, ClockStep, MovedDurations};
pub use for_scheduler::due::{PromotedDue, Upcoming};
pub use for_scheduler::prune::{Prune, Pruned};
pub use for_scheduler::reconcile::Reconciled;
pub(crate) use for_scheduler::reports::IS_REPORTED;
pub use for_scheduler::rescue::{Rescued, StuckJob};
pub(crate) use for_workers::OF_RUNS_IN_ACTIVE_QUEUES;
pub use groups::{
    Access, Events, ForRestore, ForScheduler, ForWorkers, HasStore, Jobs, Logs, Notifications, Queues,
    Registrations, Runs, Schedules, Upkeep, Variables, Workers,
};
pub use health::{Health, JOBS_COUNTED_MAX, OldPending};
pub(crate) use jobs::JOB_COLUMNS;
pub use jobs::Job;
pub use jobs::approvals::Verdict;
pub use jobs::around::JobsAround;
pub use jobs::attempts::Attempt;
pub use jobs::broken::BrokenBefore;
pub use jobs::change::{JobChange, StartTime};
pub(crate) use jobs::dead_letters::DEAD_LETTER;
pub use jobs::dead_letters::{
    DEAD_LETTERS_BATCH, DEAD_LETTERS_COUNTED_MAX, DeadLetterBatch, DeadLetterCursor, DeadLetters,
};
pub use jobs::enqueue::{DEFAULT_MAX_ATTEMPTS, ENQUEUE_MAX, NewJob};
pub use jobs::list::{ERROR_MAX, JobFilter, JobSummary};
pub(crate) use jobs::list::{JOB_FILTER, JOB_SUMMARY};
pub use jobs::needs::NeededJob;
pub(crate) use jobs::of_run::{IN_WINDOW, JOB_OF_RUN};
pub use jobs::of_run::{JobInGrid, JobOfRun, JobOrder, JobPart, JobWindow, JobsOfRun, WINDOW_MAX};
pub use jobs::open_approvals::{OPEN_APPROVALS_MAX, OpenApproval};
pub use jobs::rounds::Rounds;
pub use jobs::why::{Reason, RunSlot, Why};
pub use logs::{LogLine, LogPosition, LogStream};
pub use metrics::{DatabaseMetrics, OTHER_STATES_MAX, PENDING_OF_ONE_MAX, QueueMetrics};
pub use notifications::deliver::{
    ClaimedNotification, DELIVERY_ATTEMPTS_MAX, DeliveryResult, LateSchedule, MessageDetails, RunDetails,
    WorkerDetails,
};
pub use notifications::list::{Notification, NotificationFilter, TargetSummary};
pub(crate) use notifications::mark::WANTS_WORKFLOW;
pub use notifications::targets::{NewTarget, TARGETS_MAX};
pub use notifications::{NotificationEvent, NotificationStatus};
pub use page::{Cursor, PAGE_MAX, Page, SEARCH_MAX, SEARCH_TEXT_MAX, SearchBound};
pub use queues::paused::PausedQueue;
pub(crate) use queues::rules::{PRIORITY, RULED};
pub use queues::waiting_keys::{KeyOf, KeyUser, OldestJob, WAITING_KEYS_MAX, WaitingKey};
pub use queues::{Order, QUEUES_MAX, Queue, QueueLimits, QueuePage, RATE_INTERVAL_MAX_MS, Rate, Setting};
pub(crate) use registrations::REGISTRATION_COLUMNS;
pub(crate) use registrations::versions::VERSION_COLUMNS;
pub use registrations::{
    ListedVersion, NewRegistration, RegisteredVersion, Registration, RegistrationChange,
};
pub use restore::Restored;
pub(crate) use runs::RUN_COLUMNS;
pub use runs::children::ChildRun;
pub use runs::definitions::{DefinitionFile, DefinitionOrigin, DefinitionVerb, OnlyJobs, RunDefinition};
pub use runs::failures::{FAILURES_MAX, Failed, FailedJob, FailureGroup, Failures, first_line};
pub use runs::focus::{FocusedJob, KeyHolder};
pub use runs::histogram::{HistogramPart, PARTS_MAX};
pub use runs::list::{ParamFilter, RunFilter, RunSummary, StartedBy};
pub(crate) use runs::list::{RUN_COMPARISONS, RUN_SUMMARY};
pub(crate) use runs::retry::AS_BEFORE_ITS_FIRST_ATTEMPT;
pub use runs::retry::RetrySelection;
pub use runs::retry_with::{Continued, NextDefinition, RetryPreview};
pub use runs::submit::{NewRun, Occasion, Submitted};
pub use runs::traced::{TRACED_MAX, TracedJob, TracedRun};
pub use runs::triggered::{Taken, Triggered};
pub use runs::workspaces::{SettledWorkspaces, Workspace, WorkspaceState};
pub use runs::{JobCounts, Run, RunContext, RunFolder};
pub(crate) use schedules::SCHEDULE_COLUMNS;
pub use schedules::{
    AT_ONCE_MAX, BACKFILL_MAX, Backfill, BackfillResult, ChangedSchedule, Fired, MISSED_COUNT_MAX,
    ON_TIME_MS, Occurrence, OccurrenceStatus, RECORDED_MAX, Schedule, ScheduleChange, ScheduleOrigin,
    WAITING_MAX,
};
pub use secrets::SecretVariables;
pub use stats::{COUNT_MAX, Count, Stats};
pub use triggers::start::TRIGGER_DEPTH_MAX;
pub use triggers::start::{Dispatched, TriggeredRun};
pub use triggers::{RegisteredTrigger, TriggerFailure};
pub use variables::{VARIABLES_LISTED_MAX, Variable};
pub use workers::{NewWorker, Worker};

/// All operations on the tables. Cheap to clone.
#[derive(Clone)]
pub struct Store {
    database: Arc<dyn Database>,
    clock: Clock,
    random: Random,
    files: Option<RunFiles>,
    measurements: Arc<Measurements>,
    /// Who makes the changes, if they are recorded.
    change: Option<Arc<Change>>,
    /// The key of the request that makes the changes, if they are made once.
    key: Option<Arc<IdempotencyKey>>,
}

impl Store {
    /// Makes a store for an open database.
    #[must_use]
    pub fn new(database: Arc<dyn Database>, clock: Clock, random: Random) -> Store {
        Store { database, clock, random, files: None, measurements: Arc::default(), change: None, key: None }
    }

    /// The same store with a folder for files of runs.
    #[must_use]
    pub fn with_files(self, files: RunFiles) -> Store {
        Store { files: Some(files), ..self }
    }

    /// The folder for files of runs, if this process knows it.
    #[must_use]
    pub fn files(&self) -> Option<&RunFiles> {
        self.files.as_ref()
    }

    /// Refuses a workflow whose runs need files if this process does not know where to put them.
    fn check_files(&self, operation: &str, workflow: &Workflow) -> Result<()> {
        match (&self.files, workflow.key_with_files()) {
            (None, Some(key)) => Err(Error::invalid(
                operation,
                format!(
                    "`{key}` needs a folder for files that all workers share: set `dir` under [files] in windlass.toml, \
                     or WINDLASS_FILES"
                ),
            )),
            (Some(_), _) | (None, None) => Ok(()),
        }
    }

    /// The source of time.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The source of chance.
    #[must_use]
    pub fn random(&self) -> &Random {
        &self.random
    }

    /// What this process has measured. All copies of a store share it.
    #[must_use]
    pub fn measurements(&self) -> &Measurements {
        &self.measurements
    }

    /// Returns a listener for wake-ups of certain kinds.
    #[must_use]
    pub fn listen(&self, wants: WakeUps) -> WakeUpListener {
        self.wake_ups().listen(wants)
    }

    /// The channel on which wake-ups are published.
    #[must_use]
    pub fn wake_ups(&self) -> &WakeUpChannel {
        self.database.wake_ups()
    }

    /// Starts to publish wake-ups for commits by other processes.
    pub fn watch(&self) {
        self.database.watch();
    }

    /// What the database can do.
    #[must_use]
    pub fn database_capabilities(&self) -> Capabilities {
        self.database.capabilities()
    }

    /// Runs `operation`, whose reads on this thread belong together: those of a page. On a server they cost one transaction, and
    /// not one each, if they have a [`windlass_db::ReadDeadline`].
    pub fn read_together(&self, operation: impl FnOnce()) {
        let mut operation = Some(operation);
        self.database.read_together(&mut || {
            if let Some(operation) = operation.take() {
                operation();
            }
        });
    }

    /// Reads in one snapshot.
    fn read<T>(&self, mut operation: impl FnMut(&mut dyn Connection) -> Result<T>) -> Result<T> {
        let mut value = None;
        self.database.read(&mut |connection| {
            value = Some(operation(connection)?);
            Ok(())
        })?;
        value.ok_or_else(|| Error::internal("read", "the operation did not run"))
    }

    /// Writes in one transaction. Returns the result of `operation` once the transaction is durable. If the answer to
    /// the commit is lost, `evidence` says how to find out whether the transaction was kept.
    fn write<T: Send + 'static>(
        &self,
        name: &'static str,
        evidence: Evidence<T>,
        mut operation: impl FnMut(&mut dyn Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        // Rows can't prove that a change was kept which found everything as it wanted it: it would be recorded twice.
        let evidence = match (evidence, self.is_recorded()) {
            (Evidence::Rows(_) | Evidence::Repeat, true) => Evidence::Token,
            (evidence, _) => evidence,
        };
        let slot = Arc::new(Mutex::new(None));
        let filled = Arc::clone(&slot);
        let token = match &evidence {
            Evidence::Token => Some(CommitToken { token: self.random.token(), now_ms: self.clock.now_ms() }),
            Evidence::Rows(_) | Evidence::Reread(_) | Evidence::Repeat => None,
        };
        let recovery = recovery(evidence, token, &slot);
        let (change, key) = (self.change.clone(), self.key.clone());
        let record = Record { action: name, change, key, now_ms: self.clock.now_ms() };
        let began_us = self.clock.monotonic_us();
        self.database.write(
            name,
            Box::new(move |connection| {
                let value = record.run(connection, &mut operation)?;
                token.map_or(Ok(()), |token| token.insert(connection))?;
                *filled.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
                Ok(())
            }),
            recovery,
        )?;
        self.measurements.commits.observe_us(self.clock.monotonic_us() - began_us);
        let value = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
        value.ok_or_else(|| Error::internal(name, "the operation did not run"))
    }

    /// Whether the transactions of changes have rows besides what is changed.
    fn is_recorded(&self) -> bool {
        self.change.is_some() || self.key.is_some()
    }

    /// The globally unique name of this database. A copy has a different name.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn instance(&self) -> Result<String> {
        self.read(|connection| {
            windlass_db::one(connection, "SELECT name FROM instance", &[], |row| row.text(0))
        })
    }
}

/// Formats ids as the JSON list that `{in $n}` reads.
fn json_ids(ids: &[i64]) -> String {
    let mut json = String::with_capacity(ids.len() * 8 + 2);
    json.push('[');
    for (index, id) in ids.iter().enumerate() {
        if index > 0 {
            json.push(',');
        }
        json.push_str(&id.to_string());
    }
    json.push(']');
    json
}

/// Formats a list as JSON.
fn json_list<T: serde::Serialize>(operation: &'static str, rows: &[T]) -> Result<String> {
    serde_json::to_string(rows).map_err(|error| Error::internal(operation, error.to_string()))
}
