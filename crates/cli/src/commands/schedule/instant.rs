//! The value of an option that is an instant.

use windlass_workflow::schedule::parse_instant;

use crate::error::Failure;

/// Reads the value of `option`. An instant without an offset is in `timezone`.
pub(super) fn parse(option: &str, text: Option<&str>, timezone: &str) -> Result<Option<i64>, Failure> {
    let Some(text) = text else { return Ok(None) };
    match parse_instant(text, timezone) {
        Ok(at_ms) => Ok(Some(at_ms)),
        Err(help) => Err(Failure::usage(format!("{option} {text} is not an instant"), help)),
    }
}
