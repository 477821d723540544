//! The threads of a worker: what they are for, and waiting for their ends.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use windlass_db::error::{Result, no_thread};
use windlass_system::event::Event;

/// A thread of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thread {
    /// Is woken for new jobs; finishes and claims.
    Dispatcher,
    /// Runs handlers. There are as many as the worker has threads.
    Executor(i64),
    /// Renews the lease.
    Heartbeat,
    /// Stops attempts: at their deadlines, and at the end of the lease.
    DeadlineMonitor,
    /// Reads which jobs were cancelled.
    CancellationPoller,
    /// Writes output of attempts that run.
    LogWriter,
}

impl Thread {
    /// One of each sort.
    pub const ALL: [Thread; 6] = [
        Thread::Dispatcher,
        Thread::Executor(0),
        Thread::Heartbeat,
        Thread::DeadlineMonitor,
        Thread::CancellationPoller,
        Thread::LogWriter,
    ];

    /// What sort of thread it is.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Thread::Dispatcher => "dispatcher",
            Thread::Executor(_number) => "executor",
            Thread::Heartbeat => "heartbeat",
            Thread::DeadlineMonitor => "deadline monitor",
            Thread::CancellationPoller => "cancellation poller",
            Thread::LogWriter => "log writer",
        }
    }

    /// Its name for the system, as `windlass-executor-3`. A process that an executor starts has this name until its
    /// program runs. By the part `windlass-` other workers recognize it: see `windlass_system::process::sweep`.
    #[must_use]
    pub fn system_name(self) -> String {
        let name = format!("windlass-{}", self.name().replace(' ', "-"));
        match self {
            Thread::Executor(number) => format!("{name}-{number}"),
            Thread::Dispatcher
            | Thread::Heartbeat
            | Thread::DeadlineMonitor
            | Thread::CancellationPoller
            | Thread::LogWriter => name,
        }
    }
}

/// Time between two checks of whether waiting for the threads is still worth it.
const TICK: Duration = Duration::from_millis(100);

/// Threads that end together. A wait for them has a limit, because one of them may be in a call into the database that
/// does not return for minutes.
pub(crate) struct ThreadGroup {
    threads: Vec<JoinHandle<()>>,
    /// Each thread has a copy. The last copy to be dropped sets `ended`.
    alive: Option<Arc<SetOnDrop>>,
    ended: Arc<Event>,
    /// They were waited for long enough.
    is_given_up: bool,
}

struct SetOnDrop(Arc<Event>);

impl Drop for SetOnDrop {
    fn drop(&mut self) {
        self.0.set();
    }
}

impl ThreadGroup {
    pub(crate) fn new() -> ThreadGroup {
        let ended = Arc::<Event>::default();
        let alive = Some(Arc::new(SetOnDrop(Arc::clone(&ended))));
        ThreadGroup { threads: Vec::new(), alive, ended, is_given_up: false }
    }

    pub(crate) fn spawn(&mut self, thread: Thread, body: impl FnOnce() + Send + 'static) -> Result<()> {
        let alive = self.alive.clone();
        let handle = std::thread::Builder::new()
            .name(thread.system_name())
            .spawn(move || {
                let _alive = alive;
                body();
            })
            .map_err(|error| no_thread("start a worker", &error))?;
        self.threads.push(handle);
        Ok(())
    }

    /// Waits until all have ended, as long as `is_worth_it`. Returns whether they have. The others go on by themselves.
    pub(crate) fn join_while(&mut self, is_worth_it: impl Fn() -> bool) -> bool {
        drop(self.alive.take());
        while !self.ended.wait_for(TICK) {
            if self.is_given_up || !is_worth_it() {
                self.is_given_up = true;
                return false;
            }
        }
        for thread in self.threads.drain(..) {
            let _panicked = thread.join();
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_for_threads_ends_with_them_or_when_it_is_not_worth_it() {
        let release = Arc::<Event>::default();
        let (mut held, waits) = (ThreadGroup::new(), Arc::clone(&release));
        held.spawn(Thread::Heartbeat, move || waits.wait()).expect("a thread");
        assert!(!held.join_while(|| false));
        release.set();
        let mut ending = ThreadGroup::new();
        for number in 0..2 {
            ending.spawn(Thread::Executor(number), || {}).expect("a thread");
        }
        assert!(ending.join_while(|| true));
        assert!(ThreadGroup::new().join_while(|| true), "no thread was started");
    }
}
