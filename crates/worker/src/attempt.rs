//! What a handler knows of the attempt it executes.

use std::sync::Arc;

use serde_json::{Map, Value as Json};

use super::contexts::RunContexts;
use super::kinds::shell::Reaper;
use super::output_log::OutputLog;
use super::stop::Stop;
use windlass_db::error::Result;
use windlass_engine::store::{ClaimedJob, LogStream, RunContext, Store};
use windlass_system::wake_ups::{WakeUpListener, WakeUps};

/// One attempt of a job, as its handler sees it.
pub struct Attempt {
    pub(super) job: ClaimedJob,
    pub(super) store: Store,
    pub(super) contexts: Arc<RunContexts>,
    pub(super) instance: Arc<str>,
    pub(super) stop: Stop,
    pub(super) log: Arc<OutputLog>,
    pub(super) log_writer: WakeUpListener,
    pub(super) reaper: Arc<Reaper>,
    pub(super) grace_ms: i64,
}

impl Attempt {
    /// The job.
    #[must_use]
    pub fn job(&self) -> &ClaimedJob {
        &self.job
    }

    /// The attempt's number, from 1.
    #[must_use]
    pub fn number(&self) -> i64 {
        self.job.retry_state.attempt
    }

    /// What the job is to do, as JSON.
    #[must_use]
    pub fn payload(&self) -> &str {
        &self.job.payload
    }

    /// The same for all attempts of a job, and for no other job of any database: give it to services
    /// that drop repeats.
    #[must_use]
    pub fn idempotency_key(&self) -> String {
        self.job.idempotency_key()
    }

    /// What the processes of this job are marked with: this database's own name, which no copy of it
    /// shares, and the job.
    pub(super) fn mark(&self) -> String {
        format!("{}-{}", self.instance, self.job.id)
    }

    /// Asks the attempt to stop; look at it, or wait with it, in whatever takes long.
    #[must_use]
    pub fn stop(&self) -> &Stop {
        &self.stop
    }

    /// Adds a line to the attempt's output.
    pub fn log(&self, stream: LogStream, text: impl Into<String>) {
        if self.log.push(self.store.clock().now_ms(), stream, text.into()) {
            self.log_writer.raise(WakeUps::EXECUTOR);
        }
    }

    /// The job's run, unless it stands alone.
    ///
    /// # Errors
    /// The database's.
    pub fn run(&self) -> Result<Option<Arc<RunContext>>> {
        self.job.run_id.map(|run_id| self.contexts.of(&self.store, run_id)).transpose()
    }

    /// The outputs of some jobs of the run, as `{"name": {"output": …}}`.
    ///
    /// # Errors
    /// The database's.
    pub fn outputs(&self, names: &[String]) -> Result<Map<String, Json>> {
        let Some(run_id) = self.job.run_id else { return Ok(Map::new()) };
        if names.is_empty() {
            return Ok(Map::new());
        }
        let outputs = self.store.jobs().outputs(run_id, names)?;
        Ok(outputs
            .into_iter()
            .map(|(name, output)| {
                let output = output.and_then(|json| serde_json::from_str(&json).ok()).unwrap_or(Json::Null);
                (name, serde_json::json!({ "output": output }))
            })
            .collect())
    }
}
