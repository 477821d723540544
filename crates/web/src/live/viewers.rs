//! Who has a stream open, and what each of them was not told yet.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use windlass_engine::Clock;
use windlass_engine::store::{CredentialKind, LogLine, LogPosition, Watched};
use windlass_system::wake_ups::{WakeUpListener, WakeUps};

use crate::problem::Problem;

/// How many streams may be open.
pub(crate) const STREAMS_MAX: usize = 200;
/// How many of them one caller may have: a token with all sessions that began with it. The others are for everybody else.
pub(crate) const STREAMS_OF_CALLER_MAX: usize = 32;
/// How long a stream is open. A browser then opens it again, and shows its secret anew.
const STREAM_TIME_MAX_MS: i64 = 600_000;
/// The pages that are open are to take a tenth of the time of one processor: they pause so many times as long as reading all of
/// them once takes.
const PAUSES_OF_PAGES: i64 = 9;
/// The longest pause of a page.
const PAGE_PAUSE_MAX_MS: i64 = 60_000;
/// How many lines of output are kept for a viewer that has not taken them.
pub(super) const LINES_MAX: usize = 1_000;

/// A thing that can change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Topic {
    /// All of them: nobody knows what has changed.
    Everything,
    Runs,
    Run(i64),
    Queues,
    Workflows,
    System,
}

impl Topic {
    /// Its name in a message.
    pub(crate) fn name(self) -> String {
        match self {
            Topic::Everything => "everything".to_owned(),
            Topic::Runs => "runs".to_owned(),
            Topic::Run(id) => format!("run {id}"),
            Topic::Queues => "queues".to_owned(),
            Topic::Workflows => "workflows".to_owned(),
            Topic::System => "system".to_owned(),
        }
    }
}

/// Who opens a stream, and what for.
#[derive(Debug, Clone)]
pub(crate) struct NewViewer {
    /// The sort and the hash of the secret that was shown.
    pub(crate) caller: (CredentialKind, String),
    /// The name of the caller's token, or of who opened the session.
    pub(crate) name: String,
    /// When the caller ends.
    pub(crate) expires_at: Option<i64>,
    /// The run whose page is open.
    pub(crate) run_id: Option<i64>,
    /// The job whose output is followed.
    pub(crate) job_id: Option<i64>,
}

/// A stream that is open.
pub(crate) struct Viewer {
    new: NewViewer,
    opened_at_ms: i64,
    /// What it was not told yet. It is a set, so a slow viewer needs no more memory than a fast one.
    untold: Mutex<Untold>,
    changed: Notify,
    over: watch::Sender<bool>,
}

/// What a viewer was not told.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Untold {
    pub(crate) topics: BTreeSet<Topic>,
    pub(crate) output: OutputNews,
}

/// What is new in the output that a viewer follows.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct OutputNews {
    /// Lines that the hub has read for all.
    pub(crate) parts: Vec<LinesAfter>,
    /// There are lines that the hub has not read, or that a slow viewer has missed: the viewer reads by itself.
    pub(crate) is_behind: bool,
    /// The job is over.
    pub(crate) is_over: bool,
}

/// Lines that follow each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LinesAfter {
    /// The position before the first of them.
    pub(crate) position: LogPosition,
    pub(crate) lines: Arc<Vec<LogLine>>,
}

/// What a viewer gets next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum News {
    Told(Untold),
    /// The stream ends.
    Closed,
}

impl OutputNews {
    fn is_empty(&self) -> bool {
        self.parts.is_empty() && !self.is_behind && !self.is_over
    }

    /// Adds news. Lines beyond a bound are left out, and the viewer reads them later.
    fn add(&mut self, news: &OutputNews) {
        self.is_behind |= news.is_behind;
        self.is_over |= news.is_over;
        self.parts.extend(news.parts.iter().cloned());
        if self.parts.iter().map(|part| part.lines.len()).sum::<usize>() > LINES_MAX {
            self.parts.clear();
            self.is_behind = true;
        }
    }
}

impl Viewer {
    /// Waits until there is something to tell.
    pub(crate) async fn news(&self) -> News {
        loop {
            if self.is_closed() {
                return News::Closed;
            }
            let untold = std::mem::take(&mut *locked(&self.untold));
            if !untold.topics.is_empty() || !untold.output.is_empty() {
                return News::Told(untold);
            }
            // A notification that came in between is kept.
            self.changed.notified().await;
        }
    }

    /// Waits until the stream is over.
    pub(crate) async fn closed(&self) {
        // The sender is a part of this.
        let mut over = self.over.subscribe();
        let _over = over.wait_for(|over| *over).await;
    }

    /// Adds what has changed, as far as this viewer looks at it.
    pub(super) fn tell(&self, topics: &BTreeSet<Topic>) {
        let wanted = topics.iter().copied().filter(|topic| match topic {
            Topic::Run(id) => self.new.run_id == Some(*id),
            Topic::Everything | Topic::Runs | Topic::Queues | Topic::Workflows | Topic::System => true,
        });
        let mut untold = locked(&self.untold);
        untold.topics.extend(wanted);
        if !untold.topics.is_empty() {
            self.changed.notify_one();
        }
    }

    /// Adds what is new in the output that this viewer follows.
    pub(super) fn tell_output(&self, news: &OutputNews) {
        locked(&self.untold).output.add(news);
        self.changed.notify_one();
    }

    pub(super) fn job_id(&self) -> Option<i64> {
        self.new.job_id
    }

    pub(super) fn close(&self) {
        self.over.send_replace(true);
        self.changed.notify_one();
    }

    pub(super) fn is_closed(&self) -> bool {
        *self.over.borrow()
    }

    pub(super) fn caller(&self) -> &(CredentialKind, String) {
        &self.new.caller
    }

    /// Whether its time is over.
    fn is_over(&self, clock: &Clock) -> bool {
        self.new.expires_at.is_some_and(|at| at <= clock.now_ms())
            || clock.monotonic_ms() - self.opened_at_ms >= STREAM_TIME_MAX_MS
    }
}

/// All streams that are open.
pub(crate) struct Viewers {
    state: Mutex<State>,
    changed: Condvar,
    /// Where the hub waits for wake-ups.
    listener: WakeUpListener,
    clock: Clock,
    /// How long it takes to read a page again, in microseconds: an average of the last ones.
    page_us: AtomicI64,
    /// How often the hub has waited for wake-ups.
    #[cfg(test)]
    waits: std::sync::atomic::AtomicUsize,
}

#[derive(Default)]
struct State {
    next: u64,
    open: BTreeMap<u64, Arc<Viewer>>,
    is_stopping: bool,
}

/// A stream that is open until this is dropped.
pub(crate) struct Opened {
    viewers: Arc<Viewers>,
    number: u64,
    pub(crate) viewer: Arc<Viewer>,
}

impl Drop for Opened {
    fn drop(&mut self) {
        locked(&self.viewers.state).open.remove(&self.number);
        self.viewer.close();
    }
}

impl Viewers {
    pub(crate) fn new(listener: WakeUpListener, clock: Clock) -> Viewers {
        Viewers {
            state: Mutex::default(),
            changed: Condvar::new(),
            listener,
            clock,
            page_us: AtomicI64::new(0),
            #[cfg(test)]
            waits: Default::default(),
        }
    }

    /// Opens a stream. The viewer does not know what changed before, so its first news is everything.
    pub(crate) fn open(self: &Arc<Self>, new: NewViewer) -> Result<Opened, Problem> {
        let mut state = locked(&self.state);
        if state.is_stopping {
            return Err(Problem::stopping());
        }
        if state.open.len() >= STREAMS_MAX {
            return Err(Problem::too_many_streams(STREAMS_MAX));
        }
        let is_of_caller = |viewer: &&Arc<Viewer>| viewer.new.name == new.name;
        if state.open.values().filter(is_of_caller).count() >= STREAMS_OF_CALLER_MAX {
            return Err(Problem::too_many_streams_of_caller(STREAMS_OF_CALLER_MAX));
        }
        let number = state.next;
        state.next += 1;
        let viewer = Arc::new(Viewer {
            new,
            opened_at_ms: self.clock.monotonic_ms(),
            untold: Mutex::new(Untold {
                topics: BTreeSet::from([Topic::Everything]),
                output: OutputNews::default(),
            }),
            changed: Notify::new(),
            over: watch::Sender::new(false),
        });
        state.open.insert(number, Arc::clone(&viewer));
        drop(state);
        self.wake();
        if viewer.new.job_id.is_some() {
            // The job may have ended since somebody looked at it.
            self.listener.raise(WakeUps::PROGRESS);
        }
        Ok(Opened { viewers: Arc::clone(self), number, viewer })
    }

    /// Ends all streams, and takes no new ones.
    pub(crate) fn stop(&self) {
        let mut state = locked(&self.state);
        state.is_stopping = true;
        for viewer in state.open.values() {
            viewer.close();
        }
        drop(state);
        self.wake();
    }

    /// Lets the hub look at the streams again.
    fn wake(&self) {
        self.changed.notify_all();
        self.listener.raise(WakeUps::STOP);
    }

    /// How often the hub has waited for wake-ups.
    #[cfg(test)]
    pub(crate) fn waits(&self) -> usize {
        self.waits.load(std::sync::atomic::Ordering::SeqCst)
    }

    /// Measures how long it took to read a page again.
    pub(crate) fn observe_page_us(&self, took_us: i64) {
        let before_us = self.page_us.load(Ordering::Relaxed);
        let page_us = if before_us == 0 { took_us } else { (before_us * 7 + took_us) / 8 };
        self.page_us.store(page_us, Ordering::Relaxed);
    }

    /// How long a page waits before it is read again, in milliseconds: the longer the more are open, so that pages don't take the
    /// time of what they show.
    pub(crate) fn page_pause_ms(&self) -> i64 {
        page_pause_ms(self.count(), self.page_us.load(Ordering::Relaxed))
    }

    /// How many streams are open.
    pub(crate) fn count(&self) -> usize {
        locked(&self.state).open.len()
    }

    /// Waits until somebody looks. `false` at the end.
    pub(super) fn until_somebody_looks(&self) -> bool {
        let mut state = locked(&self.state);
        while state.open.is_empty() && !state.is_stopping {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        !state.is_stopping
    }

    /// Waits for a time, or for the end.
    pub(super) fn pause(&self, time: Duration) {
        let state = locked(&self.state);
        let _ended = self.changed.wait_timeout_while(state, time, |state| !state.is_stopping);
    }

    /// How long until the time of a stream is over, in milliseconds. A stream that is closed and not dropped yet has no end
    /// to wait for.
    fn next_end_in_ms(&self) -> Option<i64> {
        let (wall_ms, monotonic_ms) = (self.clock.now_ms(), self.clock.monotonic_ms());
        let left_ms = |viewer: &Arc<Viewer>| {
            let left_ms = viewer.opened_at_ms + STREAM_TIME_MAX_MS - monotonic_ms;
            viewer.new.expires_at.map_or(left_ms, |at| left_ms.min(at - wall_ms))
        };
        locked(&self.state).open.values().filter(|viewer| !viewer.is_closed()).map(left_ms).min()
    }

    /// Waits for wake-ups, but not after a stream's time is over. Returns whether there were any.
    pub(super) fn until_wake_up(&self) -> bool {
        let next_end = self.next_end_in_ms().map(|left_ms| self.clock.now_ms() + left_ms);
        let longest = Duration::from_millis(STREAM_TIME_MAX_MS.unsigned_abs());
        let wake_ups = self.listener.wait(self.clock.until(next_end, longest));
        #[cfg(test)]
        self.waits.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        wake_ups.intersects(WakeUps::FOREIGN)
    }

    /// Ends the streams whose time is over.
    pub(super) fn close_those_over(&self) {
        for viewer in locked(&self.state).open.values().filter(|viewer| viewer.is_over(&self.clock)) {
            viewer.close();
        }
    }

    /// Those that are open now.
    pub(super) fn all(&self) -> Vec<Arc<Viewer>> {
        locked(&self.state).open.values().filter(|viewer| !viewer.is_closed()).cloned().collect()
    }
}

/// The pause of each of several pages. One alone need not wait.
fn page_pause_ms(pages: usize, page_us: i64) -> i64 {
    let others = i64::try_from(pages.saturating_sub(1)).unwrap_or(i64::MAX);
    let all_us = page_us.max(0).saturating_mul(others);
    (all_us.saturating_mul(PAUSES_OF_PAGES) / 1_000).min(PAGE_PAUSE_MAX_MS)
}

/// What the viewers look at.
pub(super) fn watched(viewers: &[Arc<Viewer>]) -> Watched {
    Watched {
        run_ids: viewers.iter().filter_map(|viewer| viewer.new.run_id).collect(),
        job_ids: viewers.iter().filter_map(|viewer| viewer.new.job_id).collect(),
        callers: viewers.iter().map(|viewer| viewer.new.caller.clone()).collect(),
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_system::wake_ups::WakeUpChannel;

    #[test]
    fn a_stream_that_is_over_and_not_dropped_has_no_end_to_wait_for() {
        let clock = Clock::manual(1_000_000);
        let viewers =
            Arc::new(Viewers::new(WakeUpChannel::default().listen(WakeUps::FOREIGN), clock.clone()));
        let new = |expires_at| NewViewer {
            caller: (CredentialKind::Token, String::new()),
            name: "a".to_owned(),
            expires_at,
            run_id: None,
            job_id: None,
        };
        let Ok(_expiring) = viewers.open(new(Some(1_000_100))) else { panic!("it is open") };
        let Ok(_other) = viewers.open(new(None)) else { panic!("it is open") };
        assert_eq!(viewers.next_end_in_ms(), Some(100));
        clock.advance_ms(100);
        viewers.close_those_over();
        assert_eq!(viewers.next_end_in_ms(), Some(STREAM_TIME_MAX_MS - 100), "that of the other one");
        assert_eq!(viewers.all().len(), 1);
    }

    #[test]
    fn pages_pause_the_longer_the_more_are_open() {
        for (pages, page_ms, pause_ms) in
            [(0, 19, 0), (1, 19, 0), (11, 19, 1_710), (101, 19, 17_100), (200, 2_000, 60_000), (5, -1, 0)]
        {
            assert_eq!(page_pause_ms(pages, page_ms * 1_000), pause_ms, "{pages} {page_ms}");
        }
        let viewers = Viewers::new(WakeUpChannel::default().listen(WakeUps::FOREIGN), Clock::manual(0));
        for took_us in [8_000, 16_000] {
            viewers.observe_page_us(took_us);
        }
        assert_eq!(viewers.page_us.load(Ordering::Relaxed), 9_000, "an average");
    }

    fn part(first: i64, count: i64) -> LinesAfter {
        let line = |line| LogLine {
            job_id: 1,
            attempt: 1,
            line,
            at: 0,
            stream: windlass_engine::store::LogStream::Stdout,
            text: String::new(),
        };
        let lines = (first..first + count).map(line).collect();
        LinesAfter {
            position: LogPosition { job_id: 1, attempt: 1, line: first - 1 },
            lines: Arc::new(lines),
        }
    }

    #[test]
    fn what_a_slow_viewer_was_not_told_has_a_bound() {
        let mut untold = OutputNews::default();
        let of = |part| OutputNews { parts: vec![part], ..OutputNews::default() };
        untold.add(&of(part(1, 600)));
        assert!(!untold.is_behind);
        for round in 1..100 {
            untold.add(&of(part(600 * round + 1, 600)));
            assert!(untold.parts.iter().map(|part| part.lines.len()).sum::<usize>() <= LINES_MAX);
            assert!(untold.is_behind, "it reads by itself");
        }
    }
}
