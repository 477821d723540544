//! The listener: a thread that receives notifications of other processes, over a connection of its own. If notifications do
//! not arrive, it publishes a wake-up twice a second instead.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use super::client::Client;
use super::error::from_postgres;
use super::notifier::notify;
use super::open::synchronize_clock;
use super::session::Sessions;
use crate::error::{Error, Result, Unavailable, no_thread};
use windlass_system::wake_ups::{WakeUpChannel, WakeUps};

const OPERATION: &str = "listen for changes";
/// The longest wait for a notification. Between two waits the thread checks whether it must end.
const TICK: Duration = Duration::from_millis(250);
/// How often the server's clock is read, which also shows that the connection works.
const CLOCK_TICK_MS: i64 = 10_000;
/// How often a wake-up is published while notifications can't be received.
const POLL_TICK: Duration = Duration::from_millis(500);
/// If the test notification has not arrived after this time, a pooler prevents notifications.
const ECHO_MAX_MS: i64 = 5_000;
/// The test notification, which a listener sends to find out whether notifications arrive. It is sent over another connection,
/// because behind a pooler a notification over the same connection would arrive.
const ECHO: &str = "echo";

/// The handle of the listener thread. Dropping it ends the thread.
pub(super) struct NotificationListener {
    /// Dropping it tells the thread to end. The thread is not joined: it owns only its connection, and ends soon, or after
    /// an attempt to connect.
    _end: Sender<()>,
}

impl NotificationListener {
    pub(super) fn start(sessions: Arc<Sessions>, wake_ups: WakeUpChannel) -> Result<NotificationListener> {
        let (end, ended) = channel();
        std::thread::Builder::new()
            .name("windlass-listener".to_owned())
            .spawn(move || serve(&sessions, &wake_ups, &ended))
            .map_err(|error| no_thread(OPERATION, &error))?;
        Ok(NotificationListener { _end: end })
    }
}

/// Why listening ended.
enum ListenEnd {
    /// The handle was dropped.
    Stopped,
    /// Notifications do not arrive.
    NothingHeard,
}

fn serve(sessions: &Sessions, wake_ups: &WakeUpChannel, ended: &Receiver<()>) {
    let mut is_failing = false;
    loop {
        match listen(sessions, wake_ups, ended, &mut is_failing) {
            Ok(ListenEnd::Stopped) => return,
            Ok(ListenEnd::NothingHeard) => {
                tracing::info!(
                    "notifications of other processes do not arrive, as behind a pooler in transaction mode: \
                     looking for changes twice a second instead"
                );
                poll(sessions, wake_ups, ended);
                return;
            }
            Err(error) => {
                if !std::mem::replace(&mut is_failing, true) {
                    tracing::debug!(%error, "notifications can't be received; looking for changes instead");
                }
            }
        }
        // Notifications were missed.
        wake_ups.publish(WakeUps::FOREIGN);
        if !matches!(ended.recv_timeout(POLL_TICK), Err(RecvTimeoutError::Timeout)) {
            return;
        }
    }
}

/// Publishes a wake-up at regular intervals, until the handle is dropped, and reads the server's clock.
fn poll(sessions: &Sessions, wake_ups: &WakeUpChannel, ended: &Receiver<()>) {
    let mut clock_read_ms = None;
    while matches!(ended.recv_timeout(POLL_TICK), Err(RecvTimeoutError::Timeout)) {
        wake_ups.publish(WakeUps::FOREIGN);
        let now_ms = sessions.clock.monotonic_ms();
        if clock_read_ms.is_none_or(|clock_read_ms| now_ms - clock_read_ms >= CLOCK_TICK_MS) {
            clock_read_ms = Some(now_ms);
            let operation = "read the database's clock";
            let read = sessions.connection(operation).and_then(|mut session| {
                synchronize_clock(&sessions.clock, |question| session.client.query_typed(question, &[]))
                    .inspect_err(|_error| session.discard())
            });
            if let Err(error) = read {
                tracing::debug!(%error, "the server's clock could not be read");
            }
        }
    }
}

fn listen(
    sessions: &Sessions,
    wake_ups: &WakeUpChannel,
    ended: &Receiver<()>,
    is_failing: &mut bool,
) -> Result<ListenEnd> {
    let failed = |error: postgres::Error| from_postgres(OPERATION, &error);
    let mut client =
        Client::connect(&sessions.address).map_err(|error| error.into_error(OPERATION, &sessions.address))?;
    let channel = sessions.channel();
    // The schema's name needs no quotes within.
    client.batch_execute(&format!("LISTEN \"{channel}\"")).map_err(failed)?;
    notify(sessions, ECHO)?;
    *is_failing = false;
    // Changes before LISTEN were missed.
    wake_ups.publish(WakeUps::FOREIGN);
    let began_ms = sessions.clock.monotonic_ms();
    let mut clock_read_ms = began_ms;
    let mut has_heard = false;
    loop {
        let notification = client.next_notification(TICK).map_err(failed)?;
        if let Some(notification) = notification {
            has_heard = true;
            wake_ups.publish(wake_ups_of(notification.payload(), &sessions.sender));
        } else if client.is_closed() {
            let reason = Unavailable::Unreachable("the connection was closed".to_owned());
            return Err(Error::unavailable(OPERATION, reason));
        }
        if !matches!(ended.try_recv(), Err(std::sync::mpsc::TryRecvError::Empty)) {
            return Ok(ListenEnd::Stopped);
        }
        let now_ms = sessions.clock.monotonic_ms();
        if !has_heard && now_ms - began_ms > ECHO_MAX_MS {
            return Ok(ListenEnd::NothingHeard);
        }
        if now_ms - clock_read_ms >= CLOCK_TICK_MS {
            clock_read_ms = now_ms;
            synchronize_clock(&sessions.clock, |question| client.query_typed(question, &[]))?;
        }
    }
}

/// The wake-ups of a notification. A process of Windlass sends `BITS SENDER`. A notification of another program may be empty,
/// and stands for all wake-ups.
fn wake_ups_of(payload: &str, this_sender: &str) -> WakeUps {
    if payload == ECHO {
        return WakeUps::NONE;
    }
    match payload.split_once(' ') {
        Some((_bits, sender)) if sender == this_sender => WakeUps::NONE,
        Some((bits, _other)) => bits.parse().map_or(WakeUps::FOREIGN, WakeUps::from_bits),
        None => WakeUps::FOREIGN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notification_has_wake_ups_or_stands_for_all() {
        assert_eq!(wake_ups_of("echo", "a"), WakeUps::NONE);
        assert_eq!(wake_ups_of(&format!("{} b", WakeUps::CANCEL.bits()), "a"), WakeUps::CANCEL);
        assert_eq!(wake_ups_of(&format!("{} a", WakeUps::CANCEL.bits()), "a"), WakeUps::NONE, "one's own");
        assert_eq!(wake_ups_of("", "a"), WakeUps::FOREIGN, "another program's");
        assert_eq!(wake_ups_of("255 b", "a"), WakeUps::FOREIGN, "wake-ups inside a process are not sent");
    }
}
