//! The log writer writes the output of running attempts, so that people can read it before a job ends.

use std::sync::Arc;
use std::time::Duration;

use crate::shared::Shared;
use windlass_system::steps::{NextStep, run_steps};
use windlass_system::wake_ups::WakeUps;

/// Output waits in memory at most this long.
const FLUSH_MS: i64 = 200;
/// Time until the next try after a failed one. The output is kept meanwhile. It is bounded for each attempt, and what
/// is left when an attempt ends is written with its result.
const RETRY_MS: i64 = 1_000;
/// Bytes of text in one transaction, about. A heartbeat must not wait for many megabytes of output.
const FLUSH_MAX_BYTES: usize = 4 * 1024 * 1024;
/// How long the thread sleeps if no output waits. New output wakes it.
const IDLE: Duration = Duration::from_secs(3_600);

/// How an attempt to write went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flushed {
    /// Everything is written.
    All,
    /// More output waits.
    Part,
    /// The database could not be written to.
    Nothing,
}

/// The log writer of one worker.
pub(crate) struct LogWriter {
    shared: Arc<Shared>,
    /// When to write, if output waits.
    flush_at_ms: Option<i64>,
    /// The last write failed, and that was logged.
    is_failing: bool,
}

impl LogWriter {
    pub(crate) fn new(shared: Arc<Shared>) -> LogWriter {
        LogWriter { shared, flush_at_ms: None, is_failing: false }
    }

    /// What the log writer's thread does until the worker ends.
    pub(crate) fn run(mut self) {
        let shared = Arc::clone(&self.shared);
        run_steps(shared.clock(), &shared.log_writer, |wake_ups| self.step(wake_ups));
    }

    /// Writes the output that waits if it is time.
    pub(crate) fn step(&mut self, wake_ups: WakeUps) -> NextStep {
        if self.shared.has_ended() {
            return NextStep::Never;
        }
        let now_ms = self.shared.clock().monotonic_ms();
        if wake_ups.intersects(WakeUps::EXECUTOR) && self.flush_at_ms.is_none() {
            self.flush_at_ms = Some(now_ms + FLUSH_MS);
        }
        if self.flush_at_ms.is_some_and(|at_ms| at_ms <= now_ms) {
            let flushed = self.flush();
            let now_ms = self.shared.clock().monotonic_ms();
            self.flush_at_ms = match flushed {
                Flushed::All => None,
                Flushed::Part => Some(now_ms + FLUSH_MS),
                Flushed::Nothing => Some(now_ms + RETRY_MS),
            };
        }
        match self.flush_at_ms {
            Some(at_ms) => NextStep::at_ms(self.shared.clock(), at_ms),
            None => NextStep::After(IDLE),
        }
    }

    fn flush(&mut self) -> Flushed {
        let running = &self.shared.running;
        let lines = Arc::new(running.unwritten(FLUSH_MAX_BYTES));
        if lines.is_empty() {
            return Flushed::All;
        }
        match self.shared.store.for_workers().append_logs(Arc::clone(&lines)) {
            Ok(()) => {
                self.is_failing = false;
                running.written(&lines);
                if running.has_unwritten() { Flushed::Part } else { Flushed::All }
            }
            Err(error) => {
                self.shared.end_if_lasting(&error);
                if !std::mem::replace(&mut self.is_failing, true) {
                    tracing::warn!(%error, "output could not be written yet; it is kept");
                }
                Flushed::Nothing
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handler::{OutputLog, Stop};
    use crate::shared::{AddedBy, RunningAttempt};
    use crate::test_worker::TestWorker;
    use windlass_engine::store::LogStream;

    #[test]
    fn output_is_written_a_moment_after_it_came() {
        let worker = TestWorker::new(1);
        let shared = &worker.shared;
        let mut writer = LogWriter::new(Arc::clone(shared));
        worker.enqueue(1, "null");
        worker.turn(AddedBy::Dispatcher);
        let owned = worker.take();
        let log = Arc::new(OutputLog::new(owned.job.id, 1));
        let (stop, worker_id) = (Stop::default(), owned.worker_id);
        let running = RunningAttempt { stop, log: Arc::clone(&log), deadline_ms: None, worker_id };
        shared.running.begin(&owned, running, || 0);
        assert_eq!(writer.step(WakeUps::NONE), NextStep::After(IDLE));
        assert!(log.push(1, LogStream::Stdout, "a line".to_owned()), "the writer is to be woken");
        let wait = Duration::from_millis(FLUSH_MS.unsigned_abs());
        assert_eq!(writer.step(WakeUps::EXECUTOR), NextStep::After(wait));
        assert!(log.has_unwritten(), "not yet");
        shared.clock().advance_ms(FLUSH_MS);
        assert_eq!(writer.step(WakeUps::NONE), NextStep::After(IDLE));
        assert!(!log.has_unwritten());
        assert_eq!(worker.read_number("SELECT count(*) FROM job_logs WHERE text = 'a line'"), 1);
        shared.end();
        assert_eq!(writer.step(WakeUps::NONE), NextStep::Never);
    }
}
