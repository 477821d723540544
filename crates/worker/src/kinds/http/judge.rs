//! What an answer means for its attempt. Pure.

use chrono::DateTime;
use windlass_engine::transition::Repeat;

/// The longest wait that a `Retry-After` can ask for, in milliseconds: a year. `max_delay` is usually shorter.
const RETRY_AFTER_MAX_MS: i64 = 365 * 24 * 60 * 60 * 1_000;

/// Whether an answer with this status is a success.
pub(super) fn is_success(status: u16) -> bool {
    status < 400
}

/// Whether a request with this status is tried again. `asked_ms` is the wait that the server asks for.
pub(super) fn repeat(status: u16, asked_ms: Option<i64>) -> Repeat {
    match (status, asked_ms) {
        (408 | 425 | 429 | 500..=599, None) => Repeat::Allowed,
        (408 | 425 | 429 | 500..=599, Some(wait_ms)) => Repeat::NotWithin { wait_ms },
        _ => Repeat::Pointless,
    }
}

/// The wait that the header `Retry-After` asks for: seconds, or a time. A time is read with the clock of the server, which
/// the header `Date` shows, because the clocks of two machines differ.
pub(super) fn retry_after_ms(retry_after: &str, date: Option<&str>, now_ms: i64) -> Option<i64> {
    let retry_after = retry_after.trim();
    if !retry_after.is_empty() && retry_after.bytes().all(|byte| byte.is_ascii_digit()) {
        let seconds = retry_after.parse::<i64>().unwrap_or(i64::MAX);
        return Some(seconds.saturating_mul(1_000).min(RETRY_AFTER_MAX_MS));
    }
    let at_ms = time_ms(retry_after)?;
    let now_ms = date.and_then(time_ms).unwrap_or(now_ms);
    Some(at_ms.saturating_sub(now_ms).clamp(0, RETRY_AFTER_MAX_MS))
}

fn time_ms(text: &str) -> Option<i64> {
    DateTime::parse_from_rfc2822(text.trim()).ok().map(|time| time.timestamp_millis())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_pass_is_tried_again() {
        for status in [408, 425, 429, 500, 502, 503, 504, 599] {
            assert_eq!(repeat(status, None), Repeat::Allowed, "{status}");
            assert_eq!(repeat(status, Some(7)), Repeat::NotWithin { wait_ms: 7 }, "{status}");
        }
        for status in [400, 401, 403, 404, 409, 410, 422, 600] {
            assert_eq!(repeat(status, Some(7)), Repeat::Pointless, "{status}");
        }
        assert!(is_success(200) && is_success(304) && is_success(399) && !is_success(400));
    }

    #[test]
    fn retry_after_is_seconds_or_a_time() {
        // 2026-01-01 00:00:00 UTC.
        let now_ms = 1_767_225_600_000;
        let wait = |text: &str, date: Option<&str>| retry_after_ms(text, date, now_ms);
        assert_eq!(wait("0", None), Some(0));
        assert_eq!(wait(" 120 ", None), Some(120_000));
        assert_eq!(wait("99999999999999999999", None), Some(RETRY_AFTER_MAX_MS));
        assert_eq!(wait("Thu, 01 Jan 2026 00:01:00 GMT", None), Some(60_000));
        assert_eq!(wait("Wed, 31 Dec 2025 00:00:00 GMT", None), Some(0), "it is over");
        let slow_server = Some("Wed, 31 Dec 2025 23:59:30 GMT");
        assert_eq!(wait("Thu, 01 Jan 2026 00:00:00 GMT", slow_server), Some(30_000));
        for wrong in ["", "soon", "-1", "1.5", "Thu, 99 Jan 2026"] {
            assert_eq!(wait(wrong, None), None, "{wrong}");
        }
    }
}
