//! The only source of time. Tests and simulations control it with [`Clock::manual`].

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

/// How often the two clocks of [`Clock::wall_offset_ms`] are read, to find a pair of readings without a pause between.
const OFFSET_TRIES: u8 = 3;

/// A source of wall-clock and monotonic time, cheap to clone.
#[derive(Debug, Clone)]
pub struct Clock {
    source: Source,
}

#[derive(Debug, Clone)]
enum Source {
    System {
        started: Instant,
    },
    /// Its wall time can be set, for example to the time of a server.
    Adjustable {
        /// The time from the machine's start until the clock was made.
        started: Duration,
        /// The wall time when the clock was made.
        began_at_ms: Arc<AtomicI64>,
    },
    Manual(Arc<Mutex<ManualTime>>),
}

#[derive(Debug, Clone, Copy)]
struct ManualTime {
    wall_ms: i64,
    monotonic_ms: i64,
}

impl Clock {
    /// The machine's clock.
    #[must_use]
    pub fn system() -> Clock {
        Clock { source: Source::System { started: Instant::now() } }
    }

    /// A clock that moves only by [`Clock::advance_ms`].
    #[must_use]
    pub fn manual(wall_ms: i64) -> Clock {
        Clock { source: Source::Manual(Arc::new(Mutex::new(ManualTime { wall_ms, monotonic_ms: 0 }))) }
    }

    /// A clock that runs like the machine's, and whose wall time [`Clock::adjust`] can set. For a manual clock this is the
    /// clock itself, which [`Clock::adjust`] does not change.
    #[must_use]
    pub fn adjustable(&self) -> Clock {
        match &self.source {
            Source::System { started } => {
                let began_at_ms = self.now_ms() - self.monotonic_ms();
                let began_at_ms = Arc::new(AtomicI64::new(began_at_ms));
                let started = since_boot().saturating_sub(started.elapsed());
                Clock { source: Source::Adjustable { started, began_at_ms } }
            }
            Source::Adjustable { .. } | Source::Manual(_) => self.clone(),
        }
    }

    /// Sets the wall time of an adjustable clock: it was `now_ms` at some monotonic time in `monotonic_ms`. A clock that may
    /// be right is left alone, and one that is wrong is moved no further than it must. Otherwise each imprecise reading would
    /// move it a little, and a job could seem to start before the job that it needs has ended. Does nothing to other
    /// clocks.
    pub fn adjust(&self, now_ms: i64, monotonic_ms: RangeInclusive<i64>) {
        if let Source::Adjustable { began_at_ms, .. } = &self.source {
            // All times are rounded down to milliseconds.
            let earliest = now_ms - monotonic_ms.end() - 1;
            let latest = now_ms - monotonic_ms.start() + 1;
            let present = began_at_ms.load(Ordering::Acquire);
            began_at_ms.store(present.max(earliest).min(latest.max(earliest)), Ordering::Release);
        }
    }

    /// Milliseconds since the Unix epoch, UTC. May jump forward and back.
    #[must_use]
    pub fn now_ms(&self) -> i64 {
        match &self.source {
            Source::System { .. } => match SystemTime::now().duration_since(UNIX_EPOCH) {
                Ok(since) => i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
                Err(_before_1970) => 0,
            },
            Source::Adjustable { began_at_ms, .. } => {
                began_at_ms.load(Ordering::Acquire) + self.monotonic_ms()
            }
            Source::Manual(time) => time.lock().unwrap_or_else(PoisonError::into_inner).wall_ms,
        }
    }

    /// Milliseconds on a clock that cannot be set and that goes on while the machine sleeps. Its start is arbitrary.
    #[must_use]
    pub fn steady_ms(&self) -> i64 {
        match &self.source {
            Source::System { .. } => i64::try_from(since_boot().as_millis()).unwrap_or(i64::MAX),
            Source::Adjustable { .. } | Source::Manual(_) => self.monotonic_ms(),
        }
    }

    /// The wall time minus [`Clock::steady_ms`]. It changes when somebody sets the wall clock, and a little when a time
    /// server corrects it.
    #[must_use]
    pub fn wall_offset_ms(&self) -> i64 {
        match &self.source {
            Source::System { .. } => {
                // The two clocks are read one after the other. The try with the shortest pause between is the best.
                let tries = (0..OFFSET_TRIES).map(|_try| {
                    let before_ms = self.steady_ms();
                    let offset_ms = self.now_ms() - before_ms;
                    (self.steady_ms() - before_ms, offset_ms)
                });
                tries.min().map_or(0, |(_pause_ms, offset_ms)| offset_ms)
            }
            Source::Adjustable { began_at_ms, .. } => began_at_ms.load(Ordering::Acquire),
            Source::Manual(_) => self.now_ms() - self.monotonic_ms(),
        }
    }

    /// Milliseconds since this clock was made. Never goes back: for leases and elapsed time. A system clock stops while the
    /// machine sleeps. An adjustable clock goes on, because the clock that it was set to goes on too.
    #[must_use]
    pub fn monotonic_ms(&self) -> i64 {
        match &self.source {
            Source::System { started } => i64::try_from(started.elapsed().as_millis()).unwrap_or(i64::MAX),
            Source::Adjustable { started, .. } => {
                i64::try_from(since(*started).as_millis()).unwrap_or(i64::MAX)
            }
            Source::Manual(time) => time.lock().unwrap_or_else(PoisonError::into_inner).monotonic_ms,
        }
    }

    /// Microseconds since this clock was made. Never goes back: for measuring short work.
    #[must_use]
    pub fn monotonic_us(&self) -> i64 {
        match &self.source {
            Source::System { started } => i64::try_from(started.elapsed().as_micros()).unwrap_or(i64::MAX),
            Source::Adjustable { started, .. } => {
                i64::try_from(since(*started).as_micros()).unwrap_or(i64::MAX)
            }
            Source::Manual(_) => self.monotonic_ms().saturating_mul(1_000),
        }
    }

    /// What `/proc/uptime` will show when the monotonic time is `monotonic_ms`, in hundredths of a second. For another
    /// process, which can read that file. `None` if there is no such file, and for a manual clock.
    #[must_use]
    pub fn uptime_cs_at(&self, monotonic_ms: i64) -> Option<i64> {
        match &self.source {
            Source::System { .. } | Source::Adjustable { .. } => {
                // Read first, so that a pause between the two readings makes the result earlier, not later.
                let uptime_cs = parse_uptime_cs(&std::fs::read_to_string("/proc/uptime").ok()?)?;
                let left_ms = monotonic_ms.saturating_sub(self.monotonic_ms());
                Some(uptime_cs.saturating_add(left_ms.div_euclid(10)))
            }
            Source::Manual(_) => None,
        }
    }

    /// Whether only calls of [`Clock::advance_ms`] move this clock.
    #[must_use]
    pub fn is_manual(&self) -> bool {
        matches!(self.source, Source::Manual(_))
    }

    /// Moves a manual clock, wall and monotonic time. Does nothing to other clocks.
    pub fn advance_ms(&self, by_ms: i64) {
        if let Source::Manual(time) = &self.source {
            let mut time = time.lock().unwrap_or_else(PoisonError::into_inner);
            time.wall_ms += by_ms;
            time.monotonic_ms += by_ms.max(0);
        }
    }

    /// Moves the wall time of a manual clock forward or back, as a person or a time server does. Its monotonic time does
    /// not change.
    pub fn step_wall_ms(&self, by_ms: i64) {
        if let Source::Manual(time) = &self.source {
            time.lock().unwrap_or_else(PoisonError::into_inner).wall_ms += by_ms;
        }
    }

    /// How long a thread should sleep until `instant_ms` of the wall clock, at most `longest`. With a manual clock the
    /// sleep is short, because the clock can be moved at any time; the caller then asks again.
    #[must_use]
    pub fn until(&self, instant_ms: Option<i64>, longest: Duration) -> Duration {
        const MANUAL_TICK: Duration = Duration::from_millis(2);
        match (&self.source, instant_ms) {
            (Source::Manual(_), _) => MANUAL_TICK.min(longest),
            (Source::System { .. } | Source::Adjustable { .. }, None) => longest,
            (Source::System { .. } | Source::Adjustable { .. }, Some(instant_ms)) => {
                let wait_ms = instant_ms.saturating_sub(self.now_ms()).max(0);
                Duration::from_millis(u64::try_from(wait_ms).unwrap_or(0)).min(longest)
            }
        }
    }
}

/// The time since the machine's start, including the time for which it slept.
fn since_boot() -> Duration {
    let now = clock_gettime(ClockId::Boottime);
    let (seconds, nanoseconds) = (u64::try_from(now.tv_sec), u32::try_from(now.tv_nsec));
    Duration::new(seconds.unwrap_or(0), nanoseconds.unwrap_or(0))
}

fn since(started: Duration) -> Duration {
    since_boot().saturating_sub(started)
}

/// `12.08 3.55` is 1208.
fn parse_uptime_cs(text: &str) -> Option<i64> {
    let (seconds, hundredths) = text.split_whitespace().next()?.split_once('.')?;
    let hundredths: i64 = hundredths.parse().ok().filter(|hundredths| (0..100).contains(hundredths))?;
    seconds.parse::<i64>().ok()?.checked_mul(100)?.checked_add(hundredths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_is_converted_to_the_uptime_of_the_machine() {
        assert_eq!(parse_uptime_cs("12.08 3.55\n"), Some(1_208));
        assert_eq!(parse_uptime_cs("0.05 0.00"), Some(5));
        assert_eq!(
            (parse_uptime_cs(""), parse_uptime_cs("12"), parse_uptime_cs("1.234 5")),
            (None, None, None)
        );
        let clock = Clock::system();
        let read = || parse_uptime_cs(&std::fs::read_to_string("/proc/uptime").ok()?);
        let before = read().expect("Linux has it");
        let instant = clock.uptime_cs_at(clock.monotonic_ms() + 5_000).expect("Linux has it");
        let after = read().expect("Linux has it");
        assert!((before + 490..=after + 500).contains(&instant), "{before} {instant} {after}");
        assert_eq!(Clock::manual(0).uptime_cs_at(0), None);
    }

    #[test]
    fn a_manual_clock_moves_only_by_advance() {
        let clock = Clock::manual(1_000);
        let copy = clock.clone();
        clock.advance_ms(500);
        assert_eq!((copy.now_ms(), copy.monotonic_ms()), (1_500, 500));
        clock.advance_ms(-2_000);
        assert_eq!((copy.now_ms(), copy.monotonic_ms()), (-500, 500), "monotonic time never goes back");
    }

    #[test]
    fn adjusting_a_clock_sets_its_wall_time_and_not_its_monotonic_time() {
        let clock = Clock::system().adjustable();
        let before_ms = clock.monotonic_ms();
        clock.adjust(1_000_000, before_ms..=before_ms);
        let now_ms = clock.clone().now_ms();
        assert!((999_999..1_060_000).contains(&now_ms), "{now_ms}");
        assert!((before_ms..before_ms + 60_000).contains(&clock.monotonic_ms()), "no jump");
        let manual = Clock::manual(5);
        manual.adjustable().adjust(1_000, 0..=0);
        assert_eq!(manual.now_ms(), 5, "a manual clock can't be adjusted");
    }

    #[test]
    fn an_imprecise_reading_does_not_move_a_clock_that_may_be_right() {
        let clock = Clock::system().adjustable();
        clock.adjust(1_000_000, 0..=0);
        let offset_ms = clock.wall_offset_ms();
        for (now_ms, monotonic_ms, moved_by_ms) in [
            (1_000_000, 0..=200, 0),
            (1_000_150, 0..=200, 0),
            // It is at least 100 ms behind, and then at least 50 ms ahead.
            (1_000_300, 0..=199, 101),
            (1_000_051, 0..=0, 52),
        ] {
            clock.adjust(now_ms, monotonic_ms.clone());
            let moved = clock.wall_offset_ms() - offset_ms;
            assert!((moved - moved_by_ms).abs() <= 2, "{now_ms} {monotonic_ms:?}: {moved}");
        }
    }

    #[test]
    fn only_setting_the_wall_clock_changes_its_offset() {
        let clock = Clock::manual(1_000);
        let before_ms = clock.wall_offset_ms();
        clock.advance_ms(5_000);
        assert_eq!(clock.wall_offset_ms(), before_ms);
        clock.step_wall_ms(3_600_000);
        assert_eq!((clock.wall_offset_ms() - before_ms, clock.monotonic_ms()), (3_600_000, 5_000));
        let adjustable = Clock::system().adjustable();
        adjustable.adjust(1_000_000, 0..=adjustable.monotonic_ms());
        let before_ms = adjustable.wall_offset_ms();
        adjustable.adjust(2_000_000, 0..=adjustable.monotonic_ms());
        assert!((900_000..1_100_000).contains(&(adjustable.wall_offset_ms() - before_ms)));
        let system = Clock::system();
        let sum_ms = system.wall_offset_ms() + system.steady_ms();
        assert!((sum_ms - system.now_ms()).abs() < 60_000, "{sum_ms}");
    }

    #[test]
    fn a_wait_is_not_negative_and_at_most_the_longest() {
        let clock = Clock::system();
        let longest = Duration::from_secs(5);
        assert_eq!(clock.until(Some(0), longest), Duration::ZERO);
        assert_eq!(clock.until(Some(i64::MAX), longest), longest);
        assert_eq!(clock.until(None, longest), longest);
    }
}
