//! Ctrl-C and SIGTERM: the first asks politely, the second insists.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use windlass::signal::{Hints, Listener};

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
    count: Arc<AtomicU32>,
    /// What was told by [`StopRequests::news`] already.
    told: Option<Urgency>,
}

impl StopRequests {
    /// Begins to count signals, and wakes the listener for each.
    pub(crate) fn listen(listener: Listener) -> Result<StopRequests, Failure> {
        let requests = StopRequests::default();
        let count = Arc::clone(&requests.count);
        let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(internal)?;
        thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || {
                for _signal in signals.forever() {
                    count.fetch_add(1, Ordering::SeqCst);
                    listener.raise(Hints::STOP);
                }
            })
            .map_err(internal)?;
        Ok(requests)
    }

    /// What is asked for since the last call, if it is more urgent than what was before.
    pub(crate) fn news(&mut self) -> Option<Urgency> {
        let urgency = self.urgency();
        let is_news = urgency > self.told;
        self.told = urgency.max(self.told);
        urgency.filter(|_| is_news)
    }

    fn urgency(&self) -> Option<Urgency> {
        match self.count.load(Ordering::SeqCst) {
            0 => None,
            1 => Some(Urgency::Drain),
            2.. => Some(Urgency::Leave),
        }
    }
}

fn internal(error: std::io::Error) -> Failure {
    Failure::Internal {
        message: format!("signals cannot be handled: {error}"),
        help: "the limits of this process may be too low; `ulimit -a` shows them".to_owned(),
    }
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
            requests.count.fetch_add(1, Ordering::SeqCst);
        }
        use Urgency::{Drain, Leave};
        assert_eq!(seen, [None, Some(Drain), Some(Leave), None]);
    }
}
