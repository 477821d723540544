//! The only source of time. Tests and simulations own it through [`Clock::manual`].

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

/// Readings of two clocks of which the closest pair is taken.
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
    /// Follows a clock elsewhere: the wall time that this process's monotonic time began at.
    Led {
        /// Since the machine's start.
        started: Duration,
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

    /// A clock that stands still until [`Clock::advance_ms`] moves it.
    #[must_use]
    pub fn manual(wall_ms: i64) -> Clock {
        Clock { source: Source::Manual(Arc::new(Mutex::new(ManualTime { wall_ms, monotonic_ms: 0 }))) }
    }

    /// A clock that goes with the machine's until [`Clock::lead`] tells it another time. A manual clock stays
    /// what it is: its owner leads it.
    #[must_use]
    pub fn led(&self) -> Clock {
        match &self.source {
            Source::System { started } => {
                let began_at_ms = self.now_ms() - self.monotonic_ms();
                let began_at_ms = Arc::new(AtomicI64::new(began_at_ms));
                let started = since_boot().saturating_sub(started.elapsed());
                Clock { source: Source::Led { started, began_at_ms } }
            }
            Source::Led { .. } | Source::Manual(_) => self.clone(),
        }
    }

    /// It was `now_ms` when the monotonic time was `monotonic_ms`, says who is followed. Other clocks than a
    /// led one do not listen.
    pub fn lead(&self, now_ms: i64, monotonic_ms: i64) {
        if let Source::Led { began_at_ms, .. } = &self.source {
            began_at_ms.store(now_ms - monotonic_ms, Ordering::Release);
        }
    }

    /// Milliseconds since the Unix epoch, UTC. May jump either way.
    #[must_use]
    pub fn now_ms(&self) -> i64 {
        match &self.source {
            Source::System { .. } => match SystemTime::now().duration_since(UNIX_EPOCH) {
                Ok(since) => i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
                Err(_before_1970) => 0,
            },
            Source::Led { began_at_ms, .. } => began_at_ms.load(Ordering::Acquire) + self.monotonic_ms(),
            Source::Manual(time) => time.lock().unwrap_or_else(PoisonError::into_inner).wall_ms,
        }
    }

    /// Milliseconds on a clock that nobody sets and that goes on while the machine sleeps, from any beginning.
    #[must_use]
    pub fn steady_ms(&self) -> i64 {
        match &self.source {
            Source::System { .. } => i64::try_from(since_boot().as_millis()).unwrap_or(i64::MAX),
            Source::Led { .. } | Source::Manual(_) => self.monotonic_ms(),
        }
    }

    /// What the wall clock shows more than [`Clock::steady_ms`]. It changes when somebody sets the wall clock, and
    /// otherwise by the small corrections of a clock that is kept in step.
    #[must_use]
    pub fn wall_offset_ms(&self) -> i64 {
        match &self.source {
            Source::System { .. } => {
                // The two clocks are read one after the other: the tries with the shortest pause between count.
                let tries = (0..OFFSET_TRIES).map(|_try| {
                    let before_ms = self.steady_ms();
                    let offset_ms = self.now_ms() - before_ms;
                    (self.steady_ms() - before_ms, offset_ms)
                });
                tries.min().map_or(0, |(_pause_ms, offset_ms)| offset_ms)
            }
            Source::Led { began_at_ms, .. } => began_at_ms.load(Ordering::Acquire),
            Source::Manual(_) => self.now_ms() - self.monotonic_ms(),
        }
    }

    /// Milliseconds since this clock was made. Never goes back: for leases and elapsed time. While the machine
    /// sleeps it stands still, as everybody on it does; but a led clock goes on, as whom it follows does.
    #[must_use]
    pub fn monotonic_ms(&self) -> i64 {
        match &self.source {
            Source::System { started } => i64::try_from(started.elapsed().as_millis()).unwrap_or(i64::MAX),
            Source::Led { started, .. } => i64::try_from(since(*started).as_millis()).unwrap_or(i64::MAX),
            Source::Manual(time) => time.lock().unwrap_or_else(PoisonError::into_inner).monotonic_ms,
        }
    }

    /// Microseconds since this clock was made. Never goes back: for measuring short work.
    #[must_use]
    pub fn monotonic_us(&self) -> i64 {
        match &self.source {
            Source::System { started } => i64::try_from(started.elapsed().as_micros()).unwrap_or(i64::MAX),
            Source::Led { started, .. } => i64::try_from(since(*started).as_micros()).unwrap_or(i64::MAX),
            Source::Manual(_) => self.monotonic_ms().saturating_mul(1_000),
        }
    }

    /// When the monotonic time will be `monotonic_ms`, in hundredths of a second as `/proc/uptime` counts
    /// them: for another process that reads the same file. `None` where there is no such file, and of a
    /// manual clock, which no other process follows.
    #[must_use]
    pub fn uptime_cs_at(&self, monotonic_ms: i64) -> Option<i64> {
        match &self.source {
            Source::System { .. } | Source::Led { .. } => {
                // First, so that a pause between the two makes the instant earlier, not later.
                let uptime_cs = parse_uptime_cs(&std::fs::read_to_string("/proc/uptime").ok()?)?;
                let left_ms = monotonic_ms.saturating_sub(self.monotonic_ms());
                Some(uptime_cs.saturating_add(left_ms.div_euclid(10)))
            }
            Source::Manual(_) => None,
        }
    }

    /// Moves a manual clock, wall and monotonic, forward. A system clock does not move.
    pub fn advance_ms(&self, by_ms: i64) {
        if let Source::Manual(time) = &self.source {
            let mut time = time.lock().unwrap_or_else(PoisonError::into_inner);
            time.wall_ms += by_ms;
            time.monotonic_ms += by_ms.max(0);
        }
    }

    /// Sets the wall time of a manual clock forward or back, as a person or a time server does. Its monotonic
    /// time does not change.
    pub fn step_wall_ms(&self, by_ms: i64) {
        if let Source::Manual(time) = &self.source {
            time.lock().unwrap_or_else(PoisonError::into_inner).wall_ms += by_ms;
        }
    }

    /// How long a thread may sleep until `instant_ms` (wall clock), at most `longest`. With a manual
    /// clock a real sleep would wait for nothing, so it is short and the caller looks again.
    #[must_use]
    pub fn until(&self, instant_ms: Option<i64>, longest: Duration) -> Duration {
        const MANUAL_TICK: Duration = Duration::from_millis(2);
        match (&self.source, instant_ms) {
            (Source::Manual(_), _) => MANUAL_TICK.min(longest),
            (Source::System { .. } | Source::Led { .. }, None) => longest,
            (Source::System { .. } | Source::Led { .. }, Some(instant_ms)) => {
                let wait_ms = instant_ms.saturating_sub(self.now_ms()).max(0);
                Duration::from_millis(u64::try_from(wait_ms).unwrap_or(0)).min(longest)
            }
        }
    }
}

/// Time since the machine's start, the time that it slept included.
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
    fn another_process_can_read_the_same_instant() {
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
    fn a_manual_clock_moves_only_when_told() {
        let clock = Clock::manual(1_000);
        let copy = clock.clone();
        clock.advance_ms(500);
        assert_eq!((copy.now_ms(), copy.monotonic_ms()), (1_500, 500));
        clock.advance_ms(-2_000);
        assert_eq!((copy.now_ms(), copy.monotonic_ms()), (-500, 500), "monotonic time never goes back");
    }

    #[test]
    fn a_led_clock_follows_and_its_monotonic_time_does_not() {
        let clock = Clock::system().led();
        let before_ms = clock.monotonic_ms();
        clock.lead(1_000_000, before_ms);
        let now_ms = clock.clone().now_ms();
        assert!((1_000_000..1_060_000).contains(&now_ms), "{now_ms}");
        assert!((before_ms..before_ms + 60_000).contains(&clock.monotonic_ms()), "no jump");
        let manual = Clock::manual(5);
        manual.led().lead(1_000, 0);
        assert_eq!(manual.now_ms(), 5, "its owner leads it");
    }

    #[test]
    fn only_setting_the_wall_clock_changes_its_offset() {
        let clock = Clock::manual(1_000);
        let before_ms = clock.wall_offset_ms();
        clock.advance_ms(5_000);
        assert_eq!(clock.wall_offset_ms(), before_ms);
        clock.step_wall_ms(3_600_000);
        assert_eq!((clock.wall_offset_ms() - before_ms, clock.monotonic_ms()), (3_600_000, 5_000));
        let led = Clock::system().led();
        led.lead(1_000_000, led.monotonic_ms());
        let before_ms = led.wall_offset_ms();
        led.lead(2_000_000, led.monotonic_ms());
        assert!((900_000..1_100_000).contains(&(led.wall_offset_ms() - before_ms)));
        let system = Clock::system();
        let sum_ms = system.wall_offset_ms() + system.steady_ms();
        assert!((sum_ms - system.now_ms()).abs() < 60_000, "{sum_ms}");
    }

    #[test]
    fn a_wait_is_bounded_both_ways() {
        let clock = Clock::system();
        let longest = Duration::from_secs(5);
        assert_eq!(clock.until(Some(0), longest), Duration::ZERO);
        assert_eq!(clock.until(Some(i64::MAX), longest), longest);
        assert_eq!(clock.until(None, longest), longest);
    }
}
