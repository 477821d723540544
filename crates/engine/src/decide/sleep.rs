//! A job that sleeps: when it wakes up.

use serde_json::Value as Json;
use windlass_workflow::kinds::sleep::{Sleep, Wake};

use super::{Decision, EndWithoutAttempt};

/// Decides about a job that begins to sleep, with the values that its template reads. An instant in the past is reached.
#[must_use]
pub fn begin_sleep(sleep: &Sleep, values: &Json, now_ms: i64) -> Decision {
    let (until_ms, delay_ms) = match sleep.wake(values) {
        Ok(Wake::After(delay_ms)) => (now_ms.saturating_add(delay_ms), Some(delay_ms)),
        Ok(Wake::At(at_ms)) => (at_ms, None),
        Err(reason) => return Decision::End(EndWithoutAttempt::failed(reason)),
    };
    if until_ms <= now_ms { Decision::Done { output: None } } else { Decision::Sleep { until_ms, delay_ms } }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::status::JobStatus;

    #[test]
    fn a_sleep_ends_in_the_future_or_at_once() {
        let decided = |sleep| begin_sleep(&sleep, &json!({ "params": {} }), 1_000);
        let within = |text: &str| decided(Sleep::For(text.to_owned()));
        assert_eq!(within("2s"), Decision::Sleep { until_ms: 3_000, delay_ms: Some(2_000) });
        assert_eq!(within("0s"), Decision::Done { output: None });
        let until = |text: &str| decided(Sleep::Until(text.to_owned()));
        assert_eq!(until("1970-01-01T00:00:02Z"), Decision::Sleep { until_ms: 2_000, delay_ms: None });
        assert_eq!(until("1970-01-01T00:00:01Z"), Decision::Done { output: None });
        let Decision::End(end) = until("{{ params.at }}") else { unreachable!("it has no value") };
        assert_eq!(end.status, JobStatus::Failed);
    }
}
