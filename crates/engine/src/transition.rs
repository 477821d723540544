//! What happens to a job after an attempt. These decisions are pure, and the store writes them to the tables.

use serde::{Deserialize, Serialize};
use windlass_workflow::{OnInterrupt, Retry};

use crate::status::JobStatus;

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It succeeded.
    Successful {
        /// Its output, as JSON.
        output: Option<String>,
    },
    /// It failed.
    Failed {
        /// The reason, for people.
        error: String,
        /// Whether a retry may help.
        repeat: Repeat,
    },
    /// It found that there was nothing to do: `skip_if` was true.
    Skipped {
        /// Why, for people.
        reason: String,
    },
    /// It succeeded, and `repeat.until` does not hold yet: another round follows.
    Again {
        /// How many rounds there were, with this one.
        rounds: i64,
        /// The pause before the next round, in milliseconds.
        wait_ms: i64,
        /// Why there is another round, for people.
        reason: String,
    },
    /// It was stopped at its timeout.
    TimedOut {
        /// What was done to stop it.
        error: String,
        /// Whether a retry may help.
        repeat: Repeat,
    },
    /// It was stopped at the request of a person, or because its run reached its deadline.
    Cancelled {
        /// Why.
        error: String,
    },
    /// Its worker died or left before the attempt ended. Whether it did its work is unknown.
    Interrupted {
        /// What is known.
        error: String,
    },
    /// The claim was given back before anything was started.
    Unstarted,
    /// Its worker lacked something to start it: open files, processes, memory, or a folder for temporary files.
    /// Nothing was started. This counts neither as a failure nor as an interruption. The job can be claimed again at
    /// once, but this worker claims nothing for a moment.
    OutOfResources {
        /// What was lacking, for people.
        reason: String,
    },
}

impl Outcome {
    /// Whether some part of the attempt may have run.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        match self {
            Outcome::Successful { .. }
            | Outcome::Failed { .. }
            | Outcome::Skipped { .. }
            | Outcome::Again { .. }
            | Outcome::TimedOut { .. }
            | Outcome::Cancelled { .. }
            | Outcome::Interrupted { .. } => true,
            Outcome::Unstarted | Outcome::OutOfResources { .. } => false,
        }
    }
}

/// Whether a failed attempt may be followed by another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeat {
    /// It is retried up to `max_attempts`.
    Allowed,
    /// It is retried up to `max_attempts`, and the next attempt starts no earlier than the job's service asks for. The
    /// wait is at most `max_delay`.
    NotWithin {
        /// The shortest wait, in milliseconds.
        wait_ms: i64,
    },
    /// It is never retried, because it would fail again.
    Pointless,
}

/// How long to wait between attempts. Absent fields of the stored JSON take the defaults.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Backoff {
    /// The wait before the second attempt, in milliseconds.
    pub delay_ms: i64,
    /// The factor by which the wait grows from one retry to the next.
    pub factor: f64,
    /// The longest wait, in milliseconds.
    pub max_delay_ms: i64,
    /// The share of the wait that chance may add or take away, 0 to 1.
    pub jitter: f64,
}

impl Default for Backoff {
    fn default() -> Self {
        Backoff::from(&Retry::default())
    }
}

impl From<&Retry> for Backoff {
    fn from(retry: &Retry) -> Self {
        Backoff {
            delay_ms: retry.delay_ms,
            factor: retry.factor,
            max_delay_ms: retry.max_delay_ms,
            jitter: retry.jitter,
        }
    }
}

impl Backoff {
    /// Returns the wait after the given number of failures (at least 1), in milliseconds: `delay * factor^(failures -
    /// 1)`, changed by up to `jitter`, and never more than `max_delay` or [`DELAY_MAX_MS`]. `chance` is a share in
    /// [0, 1).
    #[must_use]
    pub fn wait_ms(&self, failures: i64, chance: f64) -> i64 {
        if self.delay_ms <= 0 {
            // Zero times an overflowed power would not be a number.
            return 0;
        }
        let exponent = i32::try_from(failures.saturating_sub(1).max(0)).unwrap_or(i32::MAX);
        let longest = self.max_delay_ms.clamp(0, DELAY_MAX_MS) as f64;
        let grown = (self.delay_ms as f64 * self.factor.max(1.0).powi(exponent)).min(longest);
        let spread = 1.0 + self.jitter.clamp(0.0, 1.0) * (2.0 * chance - 1.0);
        // The value is finite and not negative, so the conversion only rounds.
        (grown * spread).min(longest).round() as i64
    }

    /// The same, and at least `shortest_ms`, unless that is more than `max_delay`.
    fn wait_of_at_least_ms(&self, shortest_ms: i64, failures: i64, chance: f64) -> i64 {
        let longest_ms = self.max_delay_ms.clamp(0, DELAY_MAX_MS);
        self.wait_ms(failures, chance).max(shortest_ms.min(longest_ms))
    }
}

/// The longest wait between two attempts, and the longest delay of a job, in milliseconds: 100 years.
pub const DELAY_MAX_MS: i64 = 3_155_760_000_000;

/// What the decision about the next attempt depends on.
#[derive(Debug, Clone, PartialEq)]
pub struct RetryState {
    /// The attempt that ended.
    pub attempt: i64,
    /// Failures before this attempt.
    pub failures: i64,
    /// How many failures are allowed.
    pub max_attempts: i64,
    /// Interruptions before this attempt.
    pub interruptions: i64,
    /// How many interruptions are allowed.
    pub max_interruptions: i64,
    /// What to do after an interruption.
    pub on_interrupt: OnInterrupt,
    /// How long to wait between attempts.
    pub backoff: Backoff,
}

/// What changes in a job after an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transition {
    /// The new state.
    pub status: JobStatus,
    /// The attempts so far: one less than before if the claim was given back.
    pub attempt: i64,
    /// The failures so far.
    pub failures: i64,
    /// The interruptions so far.
    pub interruptions: i64,
    /// How long it waits for the next attempt, in milliseconds, from the time when this is written.
    pub delay_ms: Option<i64>,
    /// Why it did not succeed.
    pub last_error: Option<String>,
    /// Its output, as JSON.
    pub output: Option<String>,
    /// How the attempt is recorded, if it did not succeed.
    pub record: Option<AttemptOutcome>,
    /// The rounds so far, if the attempt was a round and another one follows.
    pub rounds: Option<i64>,
}

/// How an attempt that did not succeed is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptOutcome {
    /// It failed.
    Failed,
    /// It was stopped at its timeout.
    TimedOut,
    /// Its worker died or left.
    Interrupted,
    /// It was asked to stop.
    Cancelled,
}

impl AttemptOutcome {
    /// Its spelling in the tables.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            AttemptOutcome::Failed => "failed",
            AttemptOutcome::TimedOut => "timed_out",
            AttemptOutcome::Interrupted => "interrupted",
            AttemptOutcome::Cancelled => "cancelled",
        }
    }
}

/// Decides what an attempt's outcome makes of its job. `chance` is a share in [0, 1).
#[must_use]
pub fn after_attempt(retry_state: &RetryState, outcome: Outcome, chance: f64) -> Transition {
    let stay = |status: JobStatus| Transition {
        status,
        attempt: retry_state.attempt,
        failures: retry_state.failures,
        interruptions: retry_state.interruptions,
        delay_ms: None,
        last_error: None,
        output: None,
        record: None,
        rounds: None,
    };
    match outcome {
        Outcome::Successful { output } => Transition { output, ..stay(JobStatus::Successful) },
        Outcome::Failed { error, repeat } => {
            after_failure(retry_state, stay(JobStatus::Failed), error, AttemptOutcome::Failed, repeat, chance)
        }
        Outcome::Skipped { reason } => Transition { last_error: Some(reason), ..stay(JobStatus::Skipped) },
        // A round that succeeded says that the job can do its work, so the next one has all its attempts.
        Outcome::Again { rounds, wait_ms, reason } => Transition {
            failures: 0,
            interruptions: 0,
            delay_ms: Some(wait_ms.clamp(0, DELAY_MAX_MS)),
            last_error: Some(reason),
            rounds: Some(rounds),
            ..stay(JobStatus::Scheduled)
        },
        Outcome::TimedOut { error, repeat } => after_failure(
            retry_state,
            stay(JobStatus::Failed),
            error,
            AttemptOutcome::TimedOut,
            repeat,
            chance,
        ),
        Outcome::Cancelled { error } => Transition {
            last_error: Some(error),
            record: Some(AttemptOutcome::Cancelled),
            ..stay(JobStatus::Cancelled)
        },
        Outcome::Interrupted { error } => after_interruption(retry_state, stay(JobStatus::Pending), &error),
        Outcome::Unstarted => {
            Transition { attempt: retry_state.attempt.saturating_sub(1), ..stay(JobStatus::Pending) }
        }
        Outcome::OutOfResources { reason } => Transition {
            attempt: retry_state.attempt.saturating_sub(1),
            last_error: Some(format!("not started: {reason}")),
            ..stay(JobStatus::Pending)
        },
    }
}

fn after_failure(
    retry_state: &RetryState,
    failed: Transition,
    error: String,
    record: AttemptOutcome,
    repeat: Repeat,
    chance: f64,
) -> Transition {
    let failures = retry_state.failures.saturating_add(1);
    let failed = Transition { failures, last_error: Some(error), record: Some(record), ..failed };
    let shortest_ms = match repeat {
        Repeat::Pointless => return failed,
        Repeat::Allowed => 0,
        Repeat::NotWithin { wait_ms } => wait_ms,
    };
    if failures >= retry_state.max_attempts {
        return failed;
    }
    let delay_ms = retry_state.backoff.wait_of_at_least_ms(shortest_ms, failures, chance);
    Transition { status: JobStatus::Scheduled, delay_ms: Some(delay_ms), ..failed }
}

fn after_interruption(retry_state: &RetryState, again: Transition, error: &str) -> Transition {
    let interruptions = retry_state.interruptions.saturating_add(1);
    let interrupted = Transition { interruptions, record: Some(AttemptOutcome::Interrupted), ..again };
    match retry_state.on_interrupt {
        OnInterrupt::Fail => Transition {
            status: JobStatus::Failed,
            last_error: Some(format!("interrupted, outcome unknown: {error}")),
            ..interrupted
        },
        OnInterrupt::Rerun if interruptions > retry_state.max_interruptions => Transition {
            status: JobStatus::Failed,
            last_error: Some(format!(
                "interrupted {interruptions} times, more than max_interruptions = {}: {error}",
                retry_state.max_interruptions
            )),
            ..interrupted
        },
        OnInterrupt::Rerun => Transition { last_error: Some(format!("interrupted: {error}")), ..interrupted },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn retry_state() -> RetryState {
        RetryState {
            attempt: 3,
            failures: 1,
            max_attempts: 3,
            interruptions: 1,
            max_interruptions: 2,
            on_interrupt: OnInterrupt::Rerun,
            backoff: Backoff { delay_ms: 100, factor: 3.0, max_delay_ms: 500, jitter: 0.0 },
        }
    }

    fn failed(repeat: Repeat) -> Outcome {
        Outcome::Failed { error: "exit code 1".to_owned(), repeat }
    }

    #[test]
    fn backoff_grows_to_its_maximum_with_jitter() {
        let backoff = retry_state().backoff;
        let waits: Vec<i64> = (1..=4).map(|failures| backoff.wait_ms(failures, 0.5)).collect();
        assert_eq!(waits, [100, 300, 500, 500]);
        let jittered = Backoff { jitter: 0.2, ..backoff };
        assert_eq!((jittered.wait_ms(1, 0.0), jittered.wait_ms(1, 0.5)), (80, 100));
        assert!(jittered.wait_ms(1, 0.999) <= 120);
        let at_once = Backoff { delay_ms: 0, factor: 2.0, ..backoff };
        assert_eq!(
            (at_once.wait_ms(1, 0.5), at_once.wait_ms(2_000, 0.5)),
            (0, 0),
            "after any number of failures"
        );
        let extreme = Backoff { delay_ms: i64::MAX, factor: f64::MAX, max_delay_ms: 7, jitter: 9.0 };
        assert_eq!(extreme.wait_ms(i64::MAX, 0.999), 7, "overflow and strange values stay bounded");
    }

    #[test]
    fn jitter_never_exceeds_the_longest_wait() {
        for jitter in [0.0, 0.1, 0.5, 1.0] {
            let backoff = Backoff { jitter, ..retry_state().backoff };
            for failures in 1..20 {
                for step in 0..100 {
                    let wait_ms = backoff.wait_ms(failures, f64::from(step) / 100.0);
                    assert!((0..=500).contains(&wait_ms), "{wait_ms} after {failures} with {jitter}");
                }
            }
            let least_ms = (500.0 * (1.0 - jitter)).round() as i64;
            assert_eq!(backoff.wait_ms(9, 0.0), least_ms, "jitter still shortens the longest wait");
        }
        let endless = Backoff { max_delay_ms: i64::MAX, delay_ms: i64::MAX, ..retry_state().backoff };
        assert_eq!(endless.wait_ms(1, 0.5), DELAY_MAX_MS);
    }

    #[test]
    fn a_failure_is_retried_and_the_last_one_is_final() {
        let retried = after_attempt(&retry_state(), failed(Repeat::Allowed), 0.5);
        assert_eq!((retried.status, retried.delay_ms), (JobStatus::Scheduled, Some(300)));
        assert_eq!((retried.failures, retried.attempt), (2, 3));
        let last = RetryState { failures: 2, ..retry_state() };
        let given_up = after_attempt(&last, failed(Repeat::Allowed), 0.5);
        assert_eq!((given_up.status, given_up.failures), (JobStatus::Failed, 3));
        let pointless = after_attempt(&retry_state(), failed(Repeat::Pointless), 0.5);
        assert_eq!((pointless.status, pointless.delay_ms), (JobStatus::Failed, None));
    }

    #[test]
    fn a_round_is_followed_by_the_next_with_all_its_attempts() {
        let outcome = Outcome::Again { rounds: 7, wait_ms: 30_000, reason: "not yet".to_owned() };
        let round = after_attempt(&RetryState { failures: 2, ..retry_state() }, outcome, 0.5);
        assert_eq!((round.status, round.delay_ms), (JobStatus::Scheduled, Some(30_000)));
        assert_eq!((round.attempt, round.failures, round.interruptions), (3, 0, 0));
        assert_eq!((round.rounds, round.record), (Some(7), None));
        assert_eq!(after_attempt(&retry_state(), failed(Repeat::Allowed), 0.5).rounds, None);
    }

    #[test]
    fn a_service_can_ask_for_a_longer_wait_up_to_the_maximum() {
        let asked = |wait_ms| {
            let outcome = failed(Repeat::NotWithin { wait_ms });
            after_attempt(&retry_state(), outcome, 0.5).delay_ms
        };
        assert_eq!(asked(100), Some(300), "the backoff is longer");
        assert_eq!(asked(400), Some(400));
        assert_eq!(asked(60_000), Some(500), "max_delay");
        assert_eq!(asked(i64::MIN), Some(300));
        let last = RetryState { failures: 2, ..retry_state() };
        let given_up = after_attempt(&last, failed(Repeat::NotWithin { wait_ms: 1 }), 0.5);
        assert_eq!((given_up.status, given_up.delay_ms), (JobStatus::Failed, None));
    }

    #[test]
    fn an_interruption_does_not_count_as_a_failure_but_is_limited() {
        let outcome = || Outcome::Interrupted { error: "worker 7 is gone".to_owned() };
        let again = after_attempt(&retry_state(), outcome(), 0.5);
        assert_eq!((again.status, again.failures, again.interruptions), (JobStatus::Pending, 1, 2));
        let over = RetryState { interruptions: 2, ..retry_state() };
        assert_eq!(after_attempt(&over, outcome(), 0.5).status, JobStatus::Failed);
        let fail = RetryState { on_interrupt: OnInterrupt::Fail, ..retry_state() };
        let failed = after_attempt(&fail, outcome(), 0.5);
        assert_eq!(failed.status, JobStatus::Failed);
        assert!(failed.last_error.is_some_and(|error| error.starts_with("interrupted, outcome unknown")));
    }

    #[test]
    fn a_claim_that_is_given_back_does_not_count() {
        let lacking = Outcome::OutOfResources { reason: "no more files".to_owned() };
        for (outcome, error) in [(Outcome::Unstarted, None), (lacking, Some("not started: no more files"))] {
            assert!(!outcome.has_begun());
            let back = after_attempt(&retry_state(), outcome, 0.5);
            assert_eq!((back.status, back.attempt, back.record), (JobStatus::Pending, 2, None));
            assert_eq!((back.failures, back.interruptions, back.delay_ms), (1, 1, None));
            assert_eq!(back.last_error.as_deref(), error);
        }
    }

    #[test]
    fn success_skip_and_cancellation_are_final() {
        let success = after_attempt(&retry_state(), Outcome::Successful { output: None }, 0.5);
        assert_eq!((success.status, success.record), (JobStatus::Successful, None));
        let cancelled = after_attempt(&retry_state(), Outcome::Cancelled { error: String::new() }, 0.5);
        assert_eq!(cancelled.status, JobStatus::Cancelled);
        let skipped = after_attempt(&retry_state(), Outcome::Skipped { reason: "skipped".to_owned() }, 0.5);
        assert_eq!((skipped.status, skipped.failures, skipped.record), (JobStatus::Skipped, 1, None));
    }
}
