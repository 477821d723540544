//! Ctrl-C and SIGTERM: the first asks politely, the second insists. To a service SIGHUP says to read its
//! configuration again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use windlass::wake_ups::{WakeUpListener, WakeUps};

use crate::error::Failure;

/// How urgent the request to stop is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Urgency {
    /// Finish what runs, start nothing new.
    Drain,
    /// Stop what runs.
    Leave,
}

/// The signals that came so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct StopRequests {
    heard: Arc<Heard>,
    /// What was told by [`StopRequests::news`] already.
    told: Option<Urgency>,
}

#[derive(Debug, Default)]
struct Heard {
    stops: AtomicU32,
    /// A person at a terminal was among those who asked for the end.
    interrupts: AtomicU32,
    reload: AtomicBool,
}

impl Heard {
    fn hear(&self, signal: i32) {
        if signal == SIGHUP {
            self.reload.store(true, Ordering::SeqCst);
            return;
        }
        if signal == SIGINT {
            self.interrupts.fetch_add(1, Ordering::SeqCst);
        }
        self.stops.fetch_add(1, Ordering::SeqCst);
    }
}

impl StopRequests {
    /// Begins to count requests to stop, and wakes the listener for each.
    pub(crate) fn listen(listener: WakeUpListener) -> Result<StopRequests, Failure> {
        StopRequests::listen_for(&[SIGINT, SIGTERM], listener)
    }

    /// The same for a service, which also hears that it is to reload.
    pub(crate) fn listen_with_reload(listener: WakeUpListener) -> Result<StopRequests, Failure> {
        StopRequests::listen_for(&[SIGINT, SIGTERM, SIGHUP], listener)
    }

    fn listen_for(signals: &[i32], listener: WakeUpListener) -> Result<StopRequests, Failure> {
        let requests = StopRequests::default();
        let heard = Arc::clone(&requests.heard);
        let mut signals = Signals::new(signals).map_err(no_resources)?;
        thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || {
                for signal in signals.forever() {
                    heard.hear(signal);
                    listener.raise(WakeUps::STOP);
                }
            })
            .map_err(no_resources)?;
        Ok(requests)
    }

    /// What is asked for since the last call, if it is more urgent than what was before.
    pub(crate) fn news(&mut self) -> Option<Urgency> {
        let urgency = self.urgency();
        let is_news = urgency > self.told;
        self.told = urgency.max(self.told);
        urgency.filter(|_| is_news)
    }

    /// Somebody asked for the end.
    pub(crate) fn is_stopping(&self) -> bool {
        self.urgency().is_some()
    }

    /// The end was asked for by a service manager, and by nobody at a terminal.
    fn came_from_a_manager(&self) -> bool {
        self.is_stopping() && self.heard.interrupts.load(Ordering::SeqCst) == 0
    }

    /// Whether a reload was asked for since the last call.
    pub(crate) fn reload_is_wanted(&self) -> bool {
        self.heard.reload.swap(false, Ordering::SeqCst)
    }

    /// How a command ends that was stopped after it had put everything in order. A service manager that asked
    /// for it must not take it for a failure.
    pub(crate) fn outcome(&self, resume: impl FnOnce() -> String) -> Result<(), Failure> {
        if !self.is_stopping() || self.came_from_a_manager() {
            return Ok(());
        }
        Err(Failure::Interrupted {
            message: "it was stopped; what is unfinished is kept".to_owned(),
            resume: resume(),
        })
    }

    fn urgency(&self) -> Option<Urgency> {
        match self.heard.stops.load(Ordering::SeqCst) {
            0 => None,
            1 => Some(Urgency::Drain),
            2.. => Some(Urgency::Leave),
        }
    }
}

fn no_resources(error: std::io::Error) -> Failure {
    Failure::no_resources(&format!("signals cannot be handled: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_signal_drains_and_the_second_insists() {
        let mut requests = StopRequests::default();
        let mut seen = Vec::new();
        for _signal in 0..4 {
            seen.push(requests.news());
            assert_eq!(requests.news(), None, "each is told once");
            requests.heard.hear(SIGTERM);
        }
        use Urgency::{Drain, Leave};
        assert_eq!(seen, [None, Some(Drain), Some(Leave), None]);
        assert!(requests.came_from_a_manager());
        requests.heard.hear(SIGINT);
        assert!(!requests.came_from_a_manager());
    }

    #[test]
    fn a_reload_is_no_request_to_stop() {
        let mut requests = StopRequests::default();
        assert!(!requests.reload_is_wanted());
        requests.heard.hear(SIGHUP);
        assert!(requests.reload_is_wanted());
        assert!(!requests.reload_is_wanted(), "it is told once");
        assert_eq!(requests.news(), None);
        assert!(!requests.came_from_a_manager());
    }
}
