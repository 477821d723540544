//! What a handler knows of the attempt that it executes.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value as Json};

use super::masker::Masker;
use super::output_log::OutputLog;
use super::run_context_cache::RunContextCache;
use super::stop::Stop;
use windlass_db::error::Result;
use windlass_engine::RunFiles;
use windlass_engine::attempt_end::AttemptResult;
use windlass_engine::set_variables::SetVariable;
use windlass_engine::store::{Artifact, ClaimedJob, KeptArtifact, LogStream, RunContext, Store};
use windlass_engine::trace::{SpanId, TraceParent};
use windlass_engine::transition::Outcome;
use windlass_engine::values::{JobValues, RunEnd};
use windlass_system::Clock;
use windlass_system::wake_ups::{WakeUpListener, WakeUps};

/// One attempt of a job, as its handler sees it.
pub struct Attempt {
    parts: NewAttempt,
    exit_code: OnceLock<i64>,
    /// What the handler found, for the conditions of the job.
    result: OnceLock<AttemptResult>,
    /// What the job keeps if the attempt succeeds.
    keep_files: OnceLock<KeepFiles>,
}

/// Keeps the files of an attempt that has succeeded.
pub(crate) type KeepFiles =
    Box<dyn Fn(&Attempt) -> std::result::Result<Vec<Artifact>, Outcome> + Send + Sync>;

/// What an attempt is made of.
pub(crate) struct NewAttempt {
    pub(crate) job: ClaimedJob,
    pub(crate) store: Store,
    pub(crate) run_contexts: Arc<RunContextCache>,
    pub(crate) instance: Arc<str>,
    pub(crate) stop: Stop,
    pub(crate) log: Arc<OutputLog>,
    pub(crate) log_writer: WakeUpListener,
    pub(crate) grace_ms: i64,
}

impl Attempt {
    pub(crate) fn new(parts: NewAttempt) -> Attempt {
        Attempt { parts, exit_code: OnceLock::new(), result: OnceLock::new(), keep_files: OnceLock::new() }
    }

    /// The job.
    #[must_use]
    pub fn job(&self) -> &ClaimedJob {
        &self.parts.job
    }

    /// The attempt's number, from 1.
    #[must_use]
    pub fn number(&self) -> i64 {
        self.parts.job.retry_state.attempt
    }

    /// What the job is to do, as JSON.
    #[must_use]
    pub fn payload(&self) -> &str {
        &self.parts.job.payload
    }

    /// A key that all attempts of this job share, and that no other job of any database has. Send it to services
    /// that ignore repeated requests.
    #[must_use]
    pub fn idempotency_key(&self) -> String {
        self.parts.job.idempotency_key()
    }

    /// Tells whether the attempt should stop. A handler that takes long checks it often, or waits with
    /// [`Stop::wait`].
    #[must_use]
    pub fn stop(&self) -> &Stop {
        &self.parts.stop
    }

    /// Adds a line to the attempt's output.
    pub fn log(&self, stream: LogStream, text: impl Into<String>) {
        if self.parts.log.push(self.parts.store.clock().now_ms(), stream, text.into()) {
            self.parts.log_writer.raise(WakeUps::EXECUTOR);
        }
    }

    /// The job's run, unless the job was enqueued alone.
    ///
    /// # Errors
    /// Those of the database.
    pub fn run(&self) -> Result<Option<Arc<RunContext>>> {
        let NewAttempt { job, run_contexts, store, .. } = &self.parts;
        job.run_id.map(|run_id| run_contexts.of(store, run_id, job.definition)).transpose()
    }

    /// The place of the attempt in the trace of its run.
    #[must_use]
    pub fn traceparent(&self, run: &RunContext) -> TraceParent {
        run.trace.at(SpanId::of_attempt(self.parts.job.row_key(), self.number()))
    }

    /// The outputs of some jobs of the run, as `{"name": {"output": …}}`.
    ///
    /// # Errors
    /// Those of the database.
    pub fn outputs(&self, names: &[String]) -> Result<Map<String, Json>> {
        let Some(run_id) = self.parts.job.run_id else { return Ok(Map::new()) };
        if names.is_empty() {
            return Ok(Map::new());
        }
        let jobs = self.parts.store.jobs().values(run_id, names)?;
        Ok(jobs
            .into_iter()
            .map(|job| {
                let output =
                    job.output.and_then(|json| serde_json::from_str(&json).ok()).unwrap_or(Json::Null);
                (job.name, serde_json::json!({ "output": output }))
            })
            .collect())
    }

    /// What templates and expressions can read of some jobs of the run.
    pub(crate) fn values_of(&self, names: &[String]) -> Result<Vec<JobValues>> {
        let NewAttempt { job, store, .. } = &self.parts;
        job.run_id.map_or(Ok(Vec::new()), |run_id| store.jobs().values(run_id, names))
    }

    /// The values of those of these variables that are set.
    pub(crate) fn variables(&self, names: &BTreeSet<String>) -> Result<Map<String, Json>> {
        self.parts.store.variables().values(names)
    }

    /// Why the job can't set these variables.
    pub(crate) fn refused_variables(&self, variables: &[SetVariable]) -> Result<Option<String>> {
        self.parts.store.variables().refused(variables)
    }

    /// Keeps the exit code of the attempt's process, for `jobs.exit_code`.
    pub(crate) fn record_exit_code(&self, exit_code: i64) {
        // An attempt has one process. A second exit code would be ignored.
        let _first = self.exit_code.set(exit_code);
    }

    /// Whether conditions of the job are asked at the end of the attempt. Then its handler calls
    /// [`Attempt::record_result`].
    pub(crate) fn has_conditions(&self) -> bool {
        self.parts.job.conditions.is_some()
    }

    /// Keeps what the handler found at the end of its work, whether it is a success or not. The names are those that the
    /// job's kind gives to conditions: see `Place::AttemptEnd` of the workflow.
    pub(crate) fn record_result(&self, result: AttemptResult) {
        let _first = self.result.set(result);
    }

    pub(crate) fn result(&self) -> Option<&AttemptResult> {
        self.result.get()
    }

    pub(crate) fn exit_code(&self) -> Option<i64> {
        self.exit_code.get().copied()
    }

    /// For a handler of the run's end: what the jobs of the run came to.
    pub(crate) fn run_end(&self) -> Result<Option<RunEnd>> {
        let NewAttempt { job, store, .. } = &self.parts;
        match job.run_id {
            Some(run_id) if job.phase > 0 => store.runs().end(run_id),
            Some(_) | None => Ok(None),
        }
    }

    /// Has files kept by this function if the attempt succeeds.
    pub(crate) fn keep_files_by(&self, keep: KeepFiles) {
        let _first = self.keep_files.set(keep);
    }

    /// Keeps the files of an attempt that has succeeded. The error is the outcome of the attempt then.
    pub(crate) fn keep_files(&self) -> std::result::Result<Vec<Artifact>, Outcome> {
        self.keep_files.get().map_or(Ok(Vec::new()), |keep| keep(self))
    }

    /// The artifacts of a job of the same run, and of its items.
    pub(crate) fn artifacts_of(&self, job: &str) -> Result<Vec<KeptArtifact>> {
        let NewAttempt { job: own, store, .. } = &self.parts;
        own.run_id.map_or(Ok(Vec::new()), |run_id| store.runs().artifacts(run_id, Some(job)))
    }

    /// The folder for files of runs, if this worker knows it.
    pub(crate) fn files(&self) -> Option<&RunFiles> {
        self.parts.store.files()
    }

    /// The id of the database. A copy of the database has another one.
    pub(crate) fn database_instance(&self) -> &str {
        &self.parts.instance
    }

    /// Masks these secrets in everything that leaves the attempt from now on.
    pub(crate) fn mask(&self, masker: Masker) {
        self.parts.log.mask(Arc::new(masker));
    }

    /// Finds the secrets of the attempt, if it has any.
    pub(crate) fn masker(&self) -> Option<&Arc<Masker>> {
        self.parts.log.masker()
    }

    /// The variables of this process that may have values of secrets. Jobs get those that they name, and no others.
    pub(crate) fn secret_variables(&self) -> Result<Arc<[String]>> {
        self.parts.run_contexts.secret_variables(&self.parts.store)
    }

    /// The line of the output that says what went wrong.
    pub(crate) fn error_in_output(&self) -> Option<String> {
        self.parts.log.error()
    }

    /// How long the attempt may take to end after it was asked to, in milliseconds.
    pub(crate) fn grace_ms(&self) -> i64 {
        self.parts.grace_ms
    }

    pub(crate) fn clock(&self) -> &Clock {
        self.parts.store.clock()
    }
}
