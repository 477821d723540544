//! Signals: the first Ctrl-C or SIGTERM drains, the second stops running jobs. SIGHUP reloads a service.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use windlass_system::wake_ups::{WakeUpListener, WakeUps};

use crate::error::Failure;

/// How urgent a request to stop is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Urgency {
    /// Let running jobs finish and start no others.
    Drain,
    /// Stop running jobs.
    Leave,
}

/// The signals received so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct StopRequests {
    received: Arc<ReceivedSignals>,
    /// The urgency that [`StopRequests::new_request`] returned last.
    reported: Option<Urgency>,
}

#[derive(Debug, Default)]
struct ReceivedSignals {
    stops: AtomicU32,
    /// How many of the stops were Ctrl-C at a terminal.
    interrupts: AtomicU32,
    reload: AtomicBool,
}

impl ReceivedSignals {
    fn receive(&self, signal: i32) {
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
    /// Counts requests to stop from now on, and wakes the listener for each.
    pub(crate) fn listen(listener: WakeUpListener) -> Result<StopRequests, Failure> {
        StopRequests::listen_for(&[SIGINT, SIGTERM], listener)
    }

    /// The same for a service, which also accepts SIGHUP.
    pub(crate) fn listen_with_reload(listener: WakeUpListener) -> Result<StopRequests, Failure> {
        StopRequests::listen_for(&[SIGINT, SIGTERM, SIGHUP], listener)
    }

    fn listen_for(signals: &[i32], listener: WakeUpListener) -> Result<StopRequests, Failure> {
        let requests = StopRequests::default();
        let received = Arc::clone(&requests.received);
        let mut signals = Signals::new(signals).map_err(no_resources)?;
        thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || {
                for signal in signals.forever() {
                    received.receive(signal);
                    listener.raise(WakeUps::STOP);
                }
            })
            .map_err(no_resources)?;
        Ok(requests)
    }

    /// The most urgent request, if it is more urgent than at the last call.
    pub(crate) fn new_request(&mut self) -> Option<Urgency> {
        let urgency = self.urgency();
        let is_new = urgency > self.reported;
        self.reported = urgency.max(self.reported);
        urgency.filter(|_| is_new)
    }

    /// Whether a stop was requested.
    pub(crate) fn is_stopping(&self) -> bool {
        self.urgency().is_some()
    }

    /// Whether no Ctrl-C was received, so that the request came from a service manager.
    fn came_from_a_manager(&self) -> bool {
        self.is_stopping() && self.received.interrupts.load(Ordering::SeqCst) == 0
    }

    /// Whether a reload was requested since the last call.
    pub(crate) fn reload_is_wanted(&self) -> bool {
        self.received.reload.swap(false, Ordering::SeqCst)
    }

    /// The outcome of a command that was stopped by a signal. For a service manager, an orderly stop is a success.
    pub(crate) fn outcome(&self, resume: impl FnOnce() -> String) -> Result<(), Failure> {
        if !self.is_stopping() || self.came_from_a_manager() {
            return Ok(());
        }
        Err(Failure::Interrupted {
            message: "stopped; unfinished runs and jobs are kept".to_owned(),
            resume: resume(),
        })
    }

    fn urgency(&self) -> Option<Urgency> {
        match self.received.stops.load(Ordering::SeqCst) {
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
    fn the_first_signal_drains_and_the_second_stops_running_jobs() {
        let mut requests = StopRequests::default();
        let mut seen = Vec::new();
        for _signal in 0..4 {
            seen.push(requests.new_request());
            assert_eq!(requests.new_request(), None, "each is reported once");
            requests.received.receive(SIGTERM);
        }
        use Urgency::{Drain, Leave};
        assert_eq!(seen, [None, Some(Drain), Some(Leave), None]);
        assert!(requests.came_from_a_manager());
        requests.received.receive(SIGINT);
        assert!(!requests.came_from_a_manager());
    }

    #[test]
    fn a_reload_is_not_a_request_to_stop() {
        let mut requests = StopRequests::default();
        assert!(!requests.reload_is_wanted());
        requests.received.receive(SIGHUP);
        assert!(requests.reload_is_wanted());
        assert!(!requests.reload_is_wanted(), "it is reported once");
        assert_eq!(requests.new_request(), None);
        assert!(!requests.came_from_a_manager());
    }
}
