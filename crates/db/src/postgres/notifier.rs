//! The notifier: a thread that tells other processes about changes, with one NOTIFY for many commits.
//!
//! A NOTIFY inside a transaction would make commits wait for each other, because the server writes notifications in one order.
//! So this thread sends it after the commit. It sends at once if it has sent none recently, and otherwise after a pause,
//! together with later changes. The pause is short if another process has work to do, and longer if only progress is
//! reported. If this process dies before it sends, the others find the change by polling.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use postgres::types::Type;

use super::error::{Failure, from_postgres};
use super::session::{CONNECTIONS_MAX, Sessions};
use crate::error::{Result, no_thread};
use windlass_system::wake_ups::WakeUps;

/// The shortest time between two notifications of a process. Each wakes idle processes on all hosts, and costs the server
/// a transaction.
const WORK_PAUSE: Duration = Duration::from_millis(5);
/// The same if only progress is reported. A chain of short jobs would otherwise notify for each commit.
const PROGRESS_PAUSE: Duration = Duration::from_millis(20);

/// The handle of the notifier thread. Dropping it sends the remaining wake-ups and ends the thread.
pub(super) struct Notifier {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<NotifierState>,
    changed: Condvar,
}

#[derive(Default)]
struct NotifierState {
    wake_ups: WakeUps,
    is_ending: bool,
}

impl NotifierState {
    /// Whether another process may have something to do.
    fn has_work(&self) -> bool {
        self.wake_ups.intersects(WakeUps::PENDING | WakeUps::DUE | WakeUps::CANCEL)
    }
}

impl Notifier {
    pub(super) fn start(sessions: Arc<Sessions>) -> Result<Notifier> {
        let shared = Arc::new(Shared::default());
        let thread_shared = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("windlass-notifier".to_owned())
            .spawn(move || serve(&sessions, &thread_shared))
            .map_err(|error| no_thread("start the notifier", &error))?;
        Ok(Notifier { shared, thread: Some(thread) })
    }

    /// Tells other processes soon.
    pub(super) fn announce(&self, wake_ups: WakeUps) {
        if wake_ups.is_empty() {
            return;
        }
        let mut state = self.shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        let before = (state.wake_ups.is_empty(), state.has_work());
        state.wake_ups = state.wake_ups | wake_ups;
        let is_news = before != (state.wake_ups.is_empty(), state.has_work());
        drop(state);
        // The thread need not wake for wake-ups of a sort that it is about to send.
        if is_news {
            self.shared.changed.notify_one();
        }
    }
}

impl Drop for Notifier {
    fn drop(&mut self) {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner).is_ending = true;
        self.shared.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}

fn serve(sessions: &Sessions, shared: &Shared) {
    loop {
        let Some(wake_ups) = next(shared) else { return };
        let payload = format!("{} {}", wake_ups.bits(), sessions.sender);
        if let Err(error) = notify(sessions, &payload) {
            // They find the change by polling.
            tracing::debug!(%error, "other processes could not be notified of a change");
        }
        pause(shared, WORK_PAUSE, |state| !state.is_ending);
        pause(shared, PROGRESS_PAUSE - WORK_PAUSE, |state| !state.is_ending && !state.has_work());
    }
}

/// Waits while `goes_on` is true, at most for `longest`.
fn pause(shared: &Shared, longest: Duration, goes_on: impl Fn(&NotifierState) -> bool) {
    let state = shared.state.lock().unwrap_or_else(PoisonError::into_inner);
    let _over = shared.changed.wait_timeout_while(state, longest, |state| goes_on(state));
}

/// Waits for wake-ups to send; `None` when the thread must end.
fn next(shared: &Shared) -> Option<WakeUps> {
    let mut state = shared.state.lock().unwrap_or_else(PoisonError::into_inner);
    while state.wake_ups.is_empty() {
        if state.is_ending {
            return None;
        }
        state = shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
    }
    Some(std::mem::take(&mut state.wake_ups))
}

/// Sends a notification at once. If a connection of the pool has ended, it tries another one.
pub(super) fn notify(sessions: &Sessions, payload: &str) -> Result<()> {
    const OPERATION: &str = "notify other processes of a change";
    let mut tries_left = CONNECTIONS_MAX + 1;
    loop {
        let mut session = sessions.connection(OPERATION)?;
        tries_left -= 1;
        let sent = session.client.query_typed(
            // The notification need not be durable: the change is, and a lost wake-up does no harm.
            "SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, $2)",
            &[(&sessions.channel(), Type::TEXT), (&payload, Type::TEXT)],
        );
        let Err(error) = sent else { return Ok(()) };
        session.discard();
        if Failure::of(&error) != Failure::ConnectionLost || tries_left == 0 {
            return Err(from_postgres(OPERATION, &error));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use postgres::fallible_iterator::FallibleIterator;
    use windlass_test_server::PrivateServer;

    use super::super::PostgresAddress;
    use super::super::preamble::ServerCommits;
    use super::*;
    use crate::Tables;

    static NO_TABLES: Tables = Tables {
        migrations: &[],
        names: &[],
        growing: &[],
        fragments: &[],
        name_database: "",
        rename_database: "",
    };
    use crate::Durability;
    use windlass_system::clock::Clock;
    use windlass_system::random::Random;

    #[test]
    fn a_notification_is_sent_even_if_a_connection_ended_in_the_pool() {
        let server = PrivateServer::new(&[]);
        let address = PostgresAddress::parse(&server.url(), &|_name| None).expect("an address");
        let (clock, random) = (Clock::system(), Random::from_seed(7));
        let sessions = Sessions::new(
            &address,
            &NO_TABLES,
            &clock,
            &random,
            Durability::Full,
            ServerCommits::Synchronous,
        );
        let sessions = sessions.expect("a server");
        notify(&sessions, "before").expect("sent");
        assert!(server.kill_backends() > 0);
        let mut listener = server.client();
        listener.batch_execute(&format!("LISTEN {}", sessions.channel())).expect("it listens");
        notify(&sessions, "after").expect("sent");
        let mut told = listener.notifications();
        let first = told.timeout_iter(Duration::from_secs(60)).next().expect("the server answers");
        assert_eq!(first.map(|first| first.payload().to_owned()).as_deref(), Some("after"));
    }
}
