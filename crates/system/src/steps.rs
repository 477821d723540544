//! Threads as loops of steps: make a step, wait, make the next one.
//!
//! A step never waits. It returns when the next step is due. So a test can make the steps of many threads on one thread, in
//! any order, with its own clock.

use std::time::Duration;

use crate::clock::Clock;
use crate::wake_ups::{WakeUpListener, WakeUps};

/// When a thread makes its next step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextStep {
    /// Immediately, because there may be more to do.
    Now,
    /// After this time, or sooner if the thread's listener receives a wake-up.
    After(Duration),
    /// Never. The thread ends.
    Never,
}

impl NextStep {
    /// At an instant of the clock's monotonic time, or sooner if the listener receives a wake-up.
    #[must_use]
    pub fn at_ms(clock: &Clock, instant_ms: i64) -> NextStep {
        let wait_ms = instant_ms.saturating_sub(clock.monotonic_ms()).max(0);
        NextStep::After(Duration::from_millis(wait_ms.unsigned_abs()))
    }
}

/// Makes steps and waits between them, until a step returns [`NextStep::Never`]. Each step gets the wake-ups since the step
/// before; they are empty if the wait timed out.
pub fn run_steps(clock: &Clock, listener: &WakeUpListener, mut step: impl FnMut(WakeUps) -> NextStep) {
    let mut wake_ups = WakeUps::NONE;
    loop {
        let step_began_us = clock.monotonic_us();
        wake_ups = match step(wake_ups) {
            NextStep::Now => listener.wait(Duration::ZERO),
            NextStep::After(longest) => {
                // Someone may move a manual clock after the step has read it. This time counts as waited, because otherwise
                // nobody would move the clock again and the wait would never end. A long step of a real clock must not
                // shorten the wait.
                let began_us = if clock.is_manual() { step_began_us } else { clock.monotonic_us() };
                wait(clock, listener, began_us, longest)
            }
            NextStep::Never => return,
        };
    }
}

/// Waits before a thread that has no listener tries something again. With a manual clock the wait is short.
pub fn pause(clock: &Clock, pause: Duration) {
    std::thread::sleep(clock.until(None, pause));
}

/// Waits for a wake-up, at most until `longest` after `began_us` of the clock's monotonic time.
fn wait(clock: &Clock, listener: &WakeUpListener, began_us: i64, longest: Duration) -> WakeUps {
    loop {
        let passed_us = u64::try_from(clock.monotonic_us() - began_us).unwrap_or(0);
        let left = longest.saturating_sub(Duration::from_micros(passed_us));
        // A manual clock can be moved at any time, so this thread reads it again and again.
        let wake_ups = listener.wait(clock.until(None, left));
        if !wake_ups.is_empty() || left.is_zero() {
            return wake_ups;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wake_ups::WakeUpChannel;

    #[test]
    fn a_step_gets_the_wake_ups_since_the_last_one_and_never_ends_the_loop() {
        let listener = WakeUpChannel::default().listen(WakeUps::PENDING | WakeUps::STOP);
        let clock = Clock::system();
        let mut heard = Vec::new();
        listener.raise(WakeUps::PENDING);
        run_steps(&clock, &listener, |wake_ups| {
            heard.push(wake_ups);
            match heard.len() {
                1 => NextStep::Now,
                2 => NextStep::After(Duration::from_millis(1)),
                3 => {
                    listener.raise(WakeUps::STOP);
                    NextStep::After(Duration::from_secs(600))
                }
                _ => NextStep::Never,
            }
        });
        assert_eq!(heard, [WakeUps::NONE, WakeUps::PENDING, WakeUps::NONE, WakeUps::STOP]);
    }

    #[test]
    fn a_manual_clock_that_is_moved_during_a_step_ends_the_wait() {
        let listener = WakeUpChannel::default().listen(WakeUps::STOP);
        let clock = Clock::manual(0);
        let mut steps = 0;
        run_steps(&clock, &listener, |_wake_ups| {
            steps += 1;
            clock.advance_ms(5_000);
            if steps == 2 { NextStep::Never } else { NextStep::After(Duration::from_secs(5)) }
        });
        assert_eq!(steps, 2);
    }

    #[test]
    fn the_time_between_steps_is_measured_by_the_clock() {
        let listener = WakeUpChannel::default().listen(WakeUps::STOP);
        let clock = Clock::manual(0);
        let mut steps = 0;
        std::thread::scope(|scope| {
            let running = scope.spawn(|| {
                run_steps(&clock, &listener, |_wake_ups| {
                    steps += 1;
                    if steps == 2 { NextStep::Never } else { NextStep::After(Duration::from_secs(3_600)) }
                });
            });
            while !running.is_finished() {
                clock.advance_ms(600_000);
                std::thread::yield_now();
            }
        });
        assert_eq!(steps, 2);
        assert!(clock.monotonic_ms() >= 3_600_000);
    }
}
