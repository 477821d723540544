//! The threads that call the store. A thread of the async runtime never calls the database, and has no store, so that none is
//! dropped there.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{io, thread};

use tokio::sync::oneshot;
use windlass_db::ReadDeadline;
use windlass_engine::Store;

/// The threads that read. SQLite has eight connections for reading.
const READERS: usize = 4;
/// The threads that write.
const WRITERS: usize = 2;
const READER_THREAD_NAME: &str = "windlass-web-reader";
const WRITER_THREAD_NAME: &str = "windlass-web-writer";
/// How many calls wait for a thread. The next one is refused.
const WAITING_MAX: usize = 64;
/// How long the reads of a request may take together.
pub(crate) const READ_MAX: Duration = Duration::from_secs(2);
/// How long the end waits for calls that go on.
const END_MAX: Duration = Duration::from_secs(2);

/// What a call does with the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// Why a call has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoResult {
    /// Too many calls wait.
    Full,
    /// The server is stopping.
    Stopping,
    /// The call panicked.
    Panicked,
}

type Task = Box<dyn FnOnce(&Store) + Send>;

/// The queues of the threads.
pub(crate) struct DatabaseThreads {
    reads: SyncSender<Task>,
    writes: SyncSender<Task>,
}

/// Waits for the end of the threads, which end once [`DatabaseThreads`] is dropped.
pub(crate) struct ThreadsEnd {
    living: Arc<Living>,
}

#[derive(Default)]
struct Living {
    count: Mutex<usize>,
    changed: Condvar,
}

impl DatabaseThreads {
    pub(crate) fn start(store: &Store) -> io::Result<(DatabaseThreads, ThreadsEnd)> {
        let living = Arc::new(Living::default());
        let reads = start_group(store, Access::Read, &living)?;
        let writes = start_group(store, Access::Write, &living)?;
        Ok((DatabaseThreads { reads, writes }, ThreadsEnd { living }))
    }

    /// Calls the store on one of the threads.
    pub(crate) async fn call<T: Send + 'static>(
        &self,
        access: Access,
        call: impl FnOnce(&Store) -> T + Send + 'static,
    ) -> Result<T, NoResult> {
        let (sender, receiver) = oneshot::channel();
        let task: Task = Box::new(move |store| {
            // The client has gone, and nobody wants the result of a read.
            if access == Access::Read && sender.is_closed() {
                return;
            }
            let _gone = sender.send(call(store));
        });
        let queue = match access {
            Access::Read => &self.reads,
            Access::Write => &self.writes,
        };
        queue.try_send(task).map_err(|error| match error {
            TrySendError::Full(_) => NoResult::Full,
            TrySendError::Disconnected(_) => NoResult::Stopping,
        })?;
        receiver.await.map_err(|_dropped| NoResult::Panicked)
    }
}

impl ThreadsEnd {
    /// Another thread for which the end waits.
    pub(crate) fn one_more(&self) -> Alive {
        Alive::new(&self.living)
    }

    /// Waits until the threads have ended, but not for long.
    pub(crate) fn wait(self) {
        let began = Instant::now();
        let mut count = self.living.count.lock().unwrap_or_else(PoisonError::into_inner);
        while *count > 0 {
            let Some(left) = END_MAX.checked_sub(began.elapsed()) else { return };
            count = self.living.changed.wait_timeout(count, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// Gives the reads of this thread their time, from now on: a page that takes longer helps nobody, and keeps the write-ahead log
/// from shrinking.
pub(crate) fn begin_to_read(store: &Store) {
    ReadDeadline::set_for_this_thread(store.clock(), READ_MAX);
}

fn start_group(store: &Store, access: Access, living: &Arc<Living>) -> io::Result<SyncSender<Task>> {
    let (threads, name) = match access {
        Access::Read => (READERS, READER_THREAD_NAME),
        Access::Write => (WRITERS, WRITER_THREAD_NAME),
    };
    let (sender, receiver) = sync_channel(WAITING_MAX);
    let receiver = Arc::new(Mutex::new(receiver));
    for number in 1..=threads {
        let (store, receiver) = (store.clone(), Arc::clone(&receiver));
        let alive = Alive::new(living);
        thread::Builder::new().name(format!("{name}-{number}")).spawn(move || {
            run_tasks(access, &store, &receiver);
            drop(store);
            drop(alive);
        })?;
    }
    Ok(sender)
}

fn run_tasks(access: Access, store: &Store, receiver: &Mutex<Receiver<Task>>) {
    loop {
        // The lock is only held while waiting for a task.
        let task = receiver.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(task) = task else { return };
        let ended = catch_unwind(AssertUnwindSafe(|| match access {
            Access::Read => {
                begin_to_read(store);
                store.read_together(|| task(store));
            }
            Access::Write => task(store),
        }));
        if ended.is_err() {
            tracing::error!("a request of the web server met a defect of windlass");
        }
    }
}

/// Counts a thread while it lives.
pub(crate) struct Alive(Arc<Living>);

impl Alive {
    fn new(living: &Arc<Living>) -> Alive {
        *living.count.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        Alive(Arc::clone(living))
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        *self.0.count.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        self.0.changed.notify_all();
    }
}
