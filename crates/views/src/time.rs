//! Instants and durations as JSON.

use std::borrow::Cow;

use chrono::{DateTime, SecondsFormat, Utc};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;

/// An instant: RFC 3339 in UTC with milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Instant(String);

impl Instant {
    /// From milliseconds since 1970.
    #[must_use]
    pub fn at(at_ms: i64) -> Instant {
        Instant(rfc3339(at_ms))
    }
}

impl JsonSchema for Instant {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Instant".into()
    }

    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "date-time" })
    }
}

/// RFC 3339 in UTC with milliseconds.
pub fn rfc3339(at_ms: i64) -> String {
    match DateTime::<Utc>::from_timestamp_millis(at_ms) {
        Some(instant) => instant.to_rfc3339_opts(SecondsFormat::Millis, true),
        None => format!("{at_ms} ms"),
    }
}

pub(crate) fn instant(at_ms: Option<i64>) -> Option<Instant> {
    at_ms.map(Instant::at)
}

pub(crate) fn duration_ms(started_at: Option<i64>, finished_at: Option<i64>) -> Option<i64> {
    Some((finished_at? - started_at?).max(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_rfc_3339_with_milliseconds() {
        assert_eq!(rfc3339(1_795_215_928_123), "2026-11-20T23:05:28.123Z");
    }

    #[test]
    fn an_instant_outside_the_calendar_is_shown_as_a_number() {
        assert_eq!(rfc3339(i64::MAX), format!("{} ms", i64::MAX));
    }

    #[test]
    fn a_duration_is_never_negative() {
        assert_eq!(duration_ms(Some(1_000), Some(2_500)), Some(1_500));
        assert_eq!(duration_ms(Some(2_500), Some(1_000)), Some(0));
        assert_eq!(duration_ms(Some(1_000), None), None);
    }
}
