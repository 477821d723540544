//! Values as text.

use minijinja::value::Value;

/// The value as a template renders it: a text as it is, everything else as JSON.
pub(crate) fn to_text(value: &Value) -> Result<String, String> {
    if value.is_undefined() || value.is_none() {
        return Err("has no value".to_owned());
    }
    match value.as_str() {
        Some(text) => Ok(text.to_owned()),
        None => serde_json::to_string(value).map_err(|_| "the value cannot be written as JSON".to_owned()),
    }
}
