//! Waiting until a job or a run has ended, in whichever process it is executed.

use std::time::Duration;
use windlass_engine::HasStore;

use windlass_engine::Result;
use windlass_engine::store::{Job, Run};
use windlass_system::wake_ups::WakeUps;

use crate::open::Windlass;

/// The longest time between two reads, because a wake-up from another process may be lost.
const POLL: Duration = Duration::from_secs(1);
/// The pause between two reads is this fraction of the time waited so far. So the end of a short job is noticed at once,
/// and waiting for a long job takes little time from the workers.
const PAUSE_PART: u32 = 16;
/// The longest pause between two reads.
const PAUSE_MAX: Duration = Duration::from_millis(50);

impl Windlass {
    /// Waits until a job has ended, and returns it. Returns `None` if the job has not ended after `longest`. If a worker
    /// in another language reports a failure, the job has ended only if there is no further attempt.
    ///
    /// The call blocks its thread. In an async runtime use `spawn_blocking`.
    ///
    /// # Errors
    /// Returns [`Error::NotFound`](crate::Error::NotFound) if the job does not exist or is deleted during the wait, or
    /// the database's error.
    pub fn wait_for_job(&self, job_id: i64, longest: Duration) -> Result<Option<Job>> {
        self.wait_for(longest, || {
            let job = self.store().jobs().get(job_id)?;
            let has_ended = job.status.is_terminal() && job.finished_at.is_some();
            Ok(has_ended.then_some(job))
        })
    }

    /// Waits until a run has ended, and returns it. Returns `None` if the run has not ended after `longest`.
    ///
    /// The call blocks its thread. In an async runtime use `spawn_blocking`.
    ///
    /// # Errors
    /// Returns [`Error::NotFound`](crate::Error::NotFound) if the run does not exist or is deleted during the wait, or
    /// the database's error.
    pub fn wait_for_run(&self, run_id: i64, longest: Duration) -> Result<Option<Run>> {
        self.wait_for(longest, || {
            let run = self.store().runs().get(run_id)?;
            Ok(run.status.is_terminal().then_some(run))
        })
    }

    fn wait_for<T>(
        &self,
        longest: Duration,
        mut read_if_ended: impl FnMut() -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        let clock = self.store().clock();
        let progress = self.store().listen(WakeUps::PROGRESS);
        self.store().watch();
        let began_ms = clock.monotonic_ms();
        loop {
            if let Some(ended) = read_if_ended()? {
                return Ok(Some(ended));
            }
            let waited_ms = u64::try_from(clock.monotonic_ms() - began_ms).unwrap_or(0);
            let waited = Duration::from_millis(waited_ms);
            let Some(left) = longest.checked_sub(waited).filter(|left| !left.is_zero()) else {
                return Ok(None);
            };
            std::thread::sleep((waited / PAUSE_PART).min(PAUSE_MAX).min(left));
            progress.wait(POLL.min(left));
        }
    }
}
