//! Hears of changes by other processes: one connection that listens, and looking where nothing is heard.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use super::client::Client;
use super::error::from_postgres;
use super::notifier::notify;
use super::open::lead;
use super::session::Sessions;
use crate::error::{Error, Result, Unavailable, no_thread};
use windlass_system::wake_ups::{WakeUpChannel, WakeUps};

const LISTENING: &str = "listen for changes";
/// How long one wait for a notification is: an end is heard between two.
const TICK: Duration = Duration::from_millis(250);
/// How often a listening connection is asked for the time, which also shows that it is alive.
const CLOCK_TICK_MS: i64 = 10_000;
/// How often everybody looks while nothing can be heard.
const BLIND_TICK: Duration = Duration::from_millis(500);
/// A notification to oneself comes back within this time, or none ever will: a pooler stands between.
const ECHO_MAX_MS: i64 = 5_000;
/// Said by a listener to itself, to hear whether it hears. Over another connection: behind a pooler it would
/// hear what it says over its own.
const ECHO: &str = "echo";

/// The handle of the thread. Dropping it ends it.
pub(super) struct NotificationListener {
    /// Dropping it is the sign. Nobody waits for the thread: it keeps nothing but its connection, and ends
    /// within a tick, or when it has connected or no server has answered in its time.
    _end: Sender<()>,
}

impl NotificationListener {
    pub(super) fn start(sessions: Arc<Sessions>, wake_ups: WakeUpChannel) -> Result<NotificationListener> {
        let (end, ended) = channel();
        std::thread::Builder::new()
            .name("windlass-listener".to_owned())
            .spawn(move || serve(&sessions, &wake_ups, &ended))
            .map_err(|error| no_thread(LISTENING, &error))?;
        Ok(NotificationListener { _end: end })
    }
}

/// How listening ended.
enum Ended {
    /// The process ends.
    Told,
    /// Notifications do not come through.
    Deaf,
}

fn serve(sessions: &Sessions, wake_ups: &WakeUpChannel, ended: &Receiver<()>) {
    let mut is_failing = false;
    loop {
        match listen(sessions, wake_ups, ended, &mut is_failing) {
            Ok(Ended::Told) => return,
            Ok(Ended::Deaf) => {
                tracing::info!(
                    "notifications do not come through, as behind a pooler in transaction mode: \
                     looking for changes twice a second instead"
                );
                look(sessions, wake_ups, ended);
                return;
            }
            Err(error) => {
                if !std::mem::replace(&mut is_failing, true) {
                    tracing::debug!(%error, "changes by other processes are not heard; looking instead");
                }
            }
        }
        // What was missed meanwhile, and what is missed from now on.
        wake_ups.publish(WakeUps::FOREIGN);
        if !matches!(ended.recv_timeout(BLIND_TICK), Err(RecvTimeoutError::Timeout)) {
            return;
        }
    }
}

/// Has everybody look from time to time, to the end, and goes on asking for the time.
fn look(sessions: &Sessions, wake_ups: &WakeUpChannel, ended: &Receiver<()>) {
    let mut asked_ms = None;
    while matches!(ended.recv_timeout(BLIND_TICK), Err(RecvTimeoutError::Timeout)) {
        wake_ups.publish(WakeUps::FOREIGN);
        let now_ms = sessions.clock.monotonic_ms();
        if asked_ms.is_none_or(|asked_ms| now_ms - asked_ms >= CLOCK_TICK_MS) {
            asked_ms = Some(now_ms);
            let operation = "read the database's clock";
            let told = sessions.connection(operation).and_then(|mut session| {
                lead(&sessions.clock, |question| session.client.query_typed(question, &[]))
                    .inspect_err(|_error| session.discard())
            });
            if let Err(error) = told {
                tracing::debug!(%error, "the clock goes on by itself");
            }
        }
    }
}

fn listen(
    sessions: &Sessions,
    wake_ups: &WakeUpChannel,
    ended: &Receiver<()>,
    is_failing: &mut bool,
) -> Result<Ended> {
    let failed = |error: postgres::Error| from_postgres(LISTENING, &error);
    let mut client =
        Client::connect(&sessions.address).map_err(|error| error.of(LISTENING, &sessions.address))?;
    let channel = sessions.channel();
    // The schema's name needs no quotes within.
    client.batch_execute(&format!("LISTEN \"{channel}\"")).map_err(failed)?;
    notify(sessions, ECHO)?;
    *is_failing = false;
    // What changed before anybody listened.
    wake_ups.publish(WakeUps::FOREIGN);
    let began_ms = sessions.clock.monotonic_ms();
    let mut asked_ms = began_ms;
    let mut hears = false;
    loop {
        let heard = client.hear(TICK).map_err(failed)?;
        if let Some(notification) = heard {
            hears = true;
            wake_ups.publish(meant(notification.payload(), &sessions.sender));
        } else if client.is_closed() {
            let reason = Unavailable::Unreachable("the connection was closed".to_owned());
            return Err(Error::unavailable(LISTENING, reason));
        }
        if !matches!(ended.try_recv(), Err(std::sync::mpsc::TryRecvError::Empty)) {
            return Ok(Ended::Told);
        }
        let now_ms = sessions.clock.monotonic_ms();
        if !hears && now_ms - began_ms > ECHO_MAX_MS {
            return Ok(Ended::Deaf);
        }
        if now_ms - asked_ms >= CLOCK_TICK_MS {
            asked_ms = now_ms;
            lead(&sessions.clock, |question| client.query_typed(question, &[]))?;
        }
    }
}

/// What a notification says has changed: `3 SENDER` from a process of ours. Another program's may say
/// nothing, and so means everything.
fn meant(payload: &str, this_sender: &str) -> WakeUps {
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
    fn a_notification_means_what_it_says_or_everything() {
        assert_eq!(meant("echo", "a"), WakeUps::NONE);
        assert_eq!(meant(&format!("{} b", WakeUps::CANCEL.bits()), "a"), WakeUps::CANCEL);
        assert_eq!(meant(&format!("{} a", WakeUps::CANCEL.bits()), "a"), WakeUps::NONE, "one's own");
        assert_eq!(meant("", "a"), WakeUps::FOREIGN, "another program's");
        assert_eq!(meant("255 b", "a"), WakeUps::FOREIGN, "what is for one process only is not heard");
    }
}
