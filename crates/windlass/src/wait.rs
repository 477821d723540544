//! Waiting until a job or a run is over, whoever executes it.

use std::time::Duration;
use windlass_engine::HasStore;

use windlass_engine::Result;
use windlass_engine::store::{Job, Run};
use windlass_system::wake_ups::WakeUps;

use crate::open::Windlass;

/// How often it is looked without a word: what other processes tell may be lost.
const POLL: Duration = Duration::from_secs(1);
/// Between two looks there is this part of the time that was waited so far, …
const REST_PART: u32 = 16;
/// … and no more than this. So a short job is heard of at once, and a long one costs whoever works meanwhile little.
const REST_MAX: Duration = Duration::from_millis(50);

impl Windlass {
    /// Waits until a job is over, whoever executes it, and returns it; `None` when it is not over after `longest`. A
    /// job that another worker has reported as failed is over when it is not to be tried again.
    ///
    /// The thread sleeps meanwhile. In an async runtime use `spawn_blocking`.
    ///
    /// # Errors
    /// [`Error::NotFound`](crate::Error::NotFound), also when it is deleted meanwhile, and the database's.
    pub fn wait_for_job(&self, job_id: i64, longest: Duration) -> Result<Option<Job>> {
        self.wait_for(longest, || {
            let job = self.store().jobs().get(job_id)?;
            let is_over = job.status.is_terminal() && job.finished_at.is_some();
            Ok(is_over.then_some(job))
        })
    }

    /// Waits until a run is over, whoever executes its jobs, and returns it; `None` when it is not over after `longest`.
    ///
    /// The thread sleeps meanwhile. In an async runtime use `spawn_blocking`.
    ///
    /// # Errors
    /// [`Error::NotFound`](crate::Error::NotFound), also when it is deleted meanwhile, and the database's.
    pub fn wait_for_run(&self, run_id: i64, longest: Duration) -> Result<Option<Run>> {
        self.wait_for(longest, || {
            let run = self.store().runs().get(run_id)?;
            Ok(run.status.is_terminal().then_some(run))
        })
    }

    fn wait_for<T>(
        &self,
        longest: Duration,
        mut look: impl FnMut() -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        let clock = self.store().clock();
        let progress = self.store().listen(WakeUps::PROGRESS);
        self.store().watch();
        let began_ms = clock.monotonic_ms();
        loop {
            if let Some(over) = look()? {
                return Ok(Some(over));
            }
            let waited_ms = u64::try_from(clock.monotonic_ms() - began_ms).unwrap_or(0);
            let waited = Duration::from_millis(waited_ms);
            let Some(left) = longest.checked_sub(waited).filter(|left| !left.is_zero()) else {
                return Ok(None);
            };
            std::thread::sleep((waited / REST_PART).min(REST_MAX).min(left));
            progress.wait(POLL.min(left));
        }
    }
}
