//! Tells other processes that something changed: one NOTIFY for many commits.
//!
//! A NOTIFY inside the transactions themselves would make their commits wait for each other, because the
//! server writes notifications in one order. So it is sent after the commit, by a thread of its own, at
//! once when none was sent lately and else together with what comes meanwhile: soon when it is something to be done,
//! and later when it only says how far something is. When the process dies
//! in between, the others find the change by looking.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use postgres::types::Type;

use super::error::{Failure, from_postgres};
use super::session::{CONNECTIONS_MAX, Sessions};
use crate::error::{Result, no_thread};
use windlass_system::wake_ups::WakeUps;

/// Between two notifications of a process at least. Each wakes whoever is idle, on every host, and costs the server a
/// transaction.
const PAUSE: Duration = Duration::from_millis(5);
/// The same while nobody is told of anything to do: a chain of short jobs would notify as often as it commits.
const PAUSE_OF_PROGRESS: Duration = Duration::from_millis(20);

/// The handle of the thread. Dropping it sends what is left and ends it.
pub(super) struct Notifier {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    wake_ups: WakeUps,
    is_ending: bool,
}

impl State {
    /// Somebody may have to do something.
    fn is_to_be_done(&self) -> bool {
        self.wake_ups.intersects(WakeUps::PENDING | WakeUps::DUE | WakeUps::CANCEL)
    }
}

impl Notifier {
    pub(super) fn start(sessions: Arc<Sessions>) -> Result<Notifier> {
        let shared = Arc::new(Shared::default());
        let of_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("windlass-notifier".to_owned())
            .spawn(move || serve(&sessions, &of_thread))
            .map_err(|error| no_thread("start the notifier", &error))?;
        Ok(Notifier { shared, thread: Some(thread) })
    }

    /// Has other processes told, soon.
    pub(super) fn announce(&self, wake_ups: WakeUps) {
        if wake_ups.is_empty() {
            return;
        }
        let mut state = self.shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        let before = (state.wake_ups.is_empty(), state.is_to_be_done());
        state.wake_ups = state.wake_ups | wake_ups;
        let is_news = before != (state.wake_ups.is_empty(), state.is_to_be_done());
        drop(state);
        // More of the same goes with what waits already.
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
            // They look by themselves before long.
            tracing::debug!(%error, "other processes could not be told of a change");
        }
        rest(shared, PAUSE, |state| !state.is_ending);
        rest(shared, PAUSE_OF_PROGRESS - PAUSE, |state| !state.is_ending && !state.is_to_be_done());
    }
}

/// Waits for so long, or until it is over.
fn rest(shared: &Shared, pause: Duration, goes_on: impl Fn(&State) -> bool) {
    let state = shared.state.lock().unwrap_or_else(PoisonError::into_inner);
    let _over = shared.changed.wait_timeout_while(state, pause, |state| goes_on(state));
}

/// Waits for something to tell; `None` at the end.
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

/// Sends a notification at once. Connections that ended while they lay in the pool are passed over.
pub(super) fn notify(sessions: &Sessions, payload: &str) -> Result<()> {
    const WHAT: &str = "tell other processes of a change";
    let mut tries_left = CONNECTIONS_MAX + 1;
    loop {
        let mut session = sessions.connection(WHAT)?;
        tries_left -= 1;
        let sent = session.client.query_typed(
            // What it tells of is durable, and it is a hint itself: nobody waits for the disk again.
            "SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, $2)",
            &[(&sessions.channel(), Type::TEXT), (&payload, Type::TEXT)],
        );
        let Err(error) = sent else { return Ok(()) };
        session.discard();
        if Failure::of(&error) != Failure::ConnectionLost || tries_left == 0 {
            return Err(from_postgres(WHAT, &error));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use postgres::fallible_iterator::FallibleIterator;
    use windlass_test_server::PrivateServer;

    use super::super::PostgresAddress;
    use super::super::preamble::IsAsynchronous;
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
    fn a_connection_that_ended_in_the_pool_keeps_nobody_from_being_told() {
        let server = PrivateServer::new(&[]);
        let address = PostgresAddress::parse(&server.url(), &|_name| None).expect("an address");
        let (clock, random) = (Clock::system(), Random::from_seed(7));
        let sessions =
            Sessions::new(&address, &NO_TABLES, &clock, &random, Durability::Full, IsAsynchronous::No);
        let sessions = sessions.expect("a server");
        notify(&sessions, "before").expect("told");
        assert!(server.kill_backends() > 0);
        let mut listener = server.client();
        listener.batch_execute(&format!("LISTEN {}", sessions.channel())).expect("it listens");
        notify(&sessions, "after").expect("told");
        let mut told = listener.notifications();
        let first = told.timeout_iter(Duration::from_secs(60)).next().expect("the server answers");
        assert_eq!(first.map(|first| first.payload().to_owned()).as_deref(), Some("after"));
    }
}
