//! The thread that hears the wake-ups of the engine, and reads for all viewers together. Without viewers, and without wake-ups, it
//! reads nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use std::{io, thread};

use windlass_engine::Store;
use windlass_engine::store::{Fingerprints, LogLine, LogPosition, OutputState};
use windlass_system::wake_ups::WakeUps;

use super::viewers::{LINES_MAX, LinesAfter, OutputNews, Topic, Viewers, watched};
use crate::threads::{Alive, READ_MAX, begin_to_read};

const THREAD_NAME: &str = "windlass-web-hub";
/// The shortest time from one read to the next: at most four a second.
const INTERVAL_MIN_US: i64 = 250_000;
/// The pause after a read is so many times as long as the read: reads take at most a fifth of the time.
const PAUSES_OF_READ: i64 = 4;
/// The longest pause after a read: that after the longest read.
const PAUSE_MAX: Duration = READ_MAX.saturating_mul(4);

/// The thread.
pub(crate) struct Hub {
    store: Store,
    viewers: Arc<Viewers>,
}

impl Hub {
    /// Starts the thread. It ends when the viewers are stopped.
    pub(crate) fn start(store: &Store, alive: Alive) -> io::Result<Arc<Viewers>> {
        let viewers = Arc::new(Viewers::new(store.listen(WakeUps::FOREIGN), store.clock().clone()));
        let hub = Hub { store: store.clone(), viewers: Arc::clone(&viewers) };
        thread::Builder::new().name(THREAD_NAME.to_owned()).spawn(move || {
            hub.serve();
            drop(hub);
            drop(alive);
        })?;
        Ok(viewers)
    }

    fn serve(&self) {
        let mut before: Option<Fingerprints> = None;
        let mut must_read = false;
        while self.viewers.until_somebody_looks() {
            // Changes of other processes are wake-ups too.
            self.store.watch();
            must_read = must_read || self.viewers.until_wake_up();
            self.viewers.close_those_over();
            if !must_read {
                continue;
            }
            let began_us = self.store.clock().monotonic_us();
            // After an error the change is still to be told, so it is read again, without waiting for the next one.
            must_read = !self.read(&mut before);
            self.viewers.pause(pause_after(self.store.clock().monotonic_us() - began_us));
        }
    }

    /// What is new in each output that is followed. New lines are read once for all viewers.
    fn outputs(&self, before: Option<&Fingerprints>, now: &Fingerprints) -> BTreeMap<i64, OutputNews> {
        let mut news = BTreeMap::new();
        for (job_id, state) in &now.outputs {
            let is_over = state.is_over;
            let found = match step(before, *job_id, *state) {
                Step::Same => continue,
                Step::Unknown => OutputNews { is_behind: true, is_over, parts: Vec::new() },
                Step::Over => OutputNews { is_over, ..OutputNews::default() },
                Step::Longer(position) => match self.lines_after(position) {
                    Some(lines) => OutputNews {
                        parts: vec![LinesAfter { position, lines: Arc::new(lines) }],
                        is_behind: false,
                        is_over,
                    },
                    None => OutputNews { is_behind: true, is_over, parts: Vec::new() },
                },
            };
            news.insert(*job_id, found);
        }
        news
    }

    /// The lines after a position; `None` if there are too many to keep.
    fn lines_after(&self, position: LogPosition) -> Option<Vec<LogLine>> {
        let lines = self.store.logs().after(position, LINES_MAX as i64 + 1).ok()?;
        (lines.len() <= LINES_MAX).then_some(lines)
    }

    /// Reads, and tells each viewer what has changed. Returns whether it could be read.
    fn read(&self, before: &mut Option<Fingerprints>) -> bool {
        let viewers = self.viewers.all();
        if viewers.is_empty() {
            // The first news of the next viewer is everything.
            return true;
        }
        begin_to_read(&self.store);
        let now = match self.store.upkeep().fingerprints(&watched(&viewers)) {
            Ok(now) => now,
            Err(error) => {
                tracing::debug!(%error, "what has changed could not be read");
                return false;
            }
        };
        let changed = changes(before.as_ref(), &now);
        let outputs = self.outputs(before.as_ref(), &now);
        for viewer in &viewers {
            if !now.valid_callers.contains(viewer.caller()) {
                viewer.close();
                continue;
            }
            viewer.tell(&changed);
            if let Some(news) = viewer.job_id().and_then(|job_id| outputs.get(&job_id)) {
                viewer.tell_output(news);
            }
        }
        *before = Some(now);
        true
    }
}

/// How far the output of a job was, and is.
fn step(before: Option<&Fingerprints>, job_id: i64, now: OutputState) -> Step {
    match before.and_then(|before| before.outputs.get(&job_id)) {
        // Nobody followed it before, so each viewer reads by itself.
        None => Step::Unknown,
        Some(before) if (before.attempt, before.line) == (now.attempt, now.line) => match now.is_over {
            true if !before.is_over => Step::Over,
            true | false => Step::Same,
        },
        Some(before) => Step::Longer(LogPosition { job_id, attempt: before.attempt, line: before.line }),
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Step {
    Unknown,
    Same,
    /// The job is over, and has written nothing since.
    Over,
    /// There are lines after the position.
    Longer(LogPosition),
}

/// How long to wait after a read.
fn pause_after(read_us: i64) -> Duration {
    let pause_us = (INTERVAL_MIN_US - read_us).max(read_us.saturating_mul(PAUSES_OF_READ));
    // A machine that slept during a read seems to have read for hours.
    Duration::from_micros(pause_us.max(0).unsigned_abs()).min(PAUSE_MAX)
}

/// What differs. A thing that was not looked at before counts as changed.
fn changes(before: Option<&Fingerprints>, now: &Fingerprints) -> BTreeSet<Topic> {
    let mut changed: BTreeSet<Topic> = [
        (Topic::Runs, before.map(|before| before.runs), now.runs),
        (Topic::Queues, before.map(|before| before.queues), now.queues),
        (Topic::Workflows, before.map(|before| before.workflows), now.workflows),
        (Topic::System, before.map(|before| before.system), now.system),
    ]
    .into_iter()
    .filter(|(_topic, before, now)| *before != Some(*now))
    .map(|(topic, _before, _now)| topic)
    .collect();
    let of_before = |id: &i64| before.and_then(|before| before.of_runs.get(id));
    let runs = now.of_runs.iter().filter(|(id, number)| of_before(id) != Some(*number));
    changed.extend(runs.map(|(id, _number)| Topic::Run(*id)));
    changed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_take_a_fifth_of_the_time_and_happen_four_times_a_second() {
        for (read_ms, pause_ms) in
            [(0, 250), (10, 240), (50, 200), (51, 204), (1_000, 4_000), (3_600_000, 8_000)]
        {
            assert_eq!(pause_after(read_ms * 1_000), Duration::from_millis(pause_ms), "{read_ms}");
        }
    }

    #[test]
    fn only_what_differs_has_changed() {
        let now = Fingerprints { runs: 1, of_runs: [(7, 3), (8, 4)].into(), ..Fingerprints::default() };
        assert_eq!(changes(None, &now).len(), 6);
        assert!(changes(Some(&now), &now).is_empty());
        let before = Fingerprints { runs: 2, of_runs: [(7, 3)].into(), ..now.clone() };
        assert_eq!(changes(Some(&before), &now), BTreeSet::from([Topic::Runs, Topic::Run(8)]));
    }
}
