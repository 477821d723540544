//! Names of queues and capabilities.

use windlass_workflow::limits;

/// Whether a queue or a capability may have this name.
pub(crate) fn check_name(text: &str) -> Result<(), String> {
    match text.chars().count() {
        0 => Err("a name is empty; write names separated by commas".to_owned()),
        count if count > limits::NAME_CHARS => {
            Err(format!("the name has {count} characters; the limit is {}", limits::NAME_CHARS))
        }
        _ if text.trim() != text => Err("the name begins or ends with a space".to_owned()),
        _ => Ok(()),
    }
}

/// Reads a name; for clap.
pub(crate) fn parse_name(text: &str) -> Result<String, String> {
    check_name(text).map(|()| text.to_owned())
}
