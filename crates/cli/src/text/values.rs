//! Values as text: counts, parameters, JSON, and labelled fields.

use serde_json::Value;

use crate::text::style::{DIM, headline, paint};

/// How many columns a value may take in a labelled field.
const VALUE_COLUMNS: usize = 400;

/// A number with the words for one or for several: `1 job is due`, `2 jobs are due`.
pub(crate) fn counted(count: i64, one: &str, several: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { several })
}

/// Parameters as `day=2026-11-20 dry=true`.
pub(crate) fn params(json: &str) -> String {
    let parts: Vec<String> = match serde_json::from_str(json) {
        Ok(Value::Object(params)) => params
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(name, value)| format!("{name}={}", plain_value(value)))
            .collect(),
        Ok(_) | Err(_) => vec![json.to_owned()],
    };
    headline(&parts.join(" "), VALUE_COLUMNS)
}

/// A JSON value in one line; text without its quotes.
pub(crate) fn value(json: &str, columns: usize) -> String {
    match serde_json::from_str(json) {
        Ok(value) => headline(&plain_value(&value), columns),
        Err(_) => headline(json, columns),
    }
}

/// A JSON value as text; text without its quotes.
pub(crate) fn plain_value(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            value.to_string()
        }
    }
}

/// Labelled fields, one a line, with the values aligned. A field without a value is left out.
pub(crate) fn fields(fields: &[(&str, Option<String>)]) -> String {
    let width = fields.iter().map(|(label, _)| label.len()).max().unwrap_or(0);
    let line = |label: &str, value: &str| format!("  {}  {value}\n", paint(DIM, format!("{label:width$}")));
    fields.iter().filter_map(|(label, value)| Some(line(label, value.as_ref()?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use anstream::adapter::strip_str;

    #[test]
    fn parameters_in_a_line() {
        let json = r#"{"day":"2026-11-20","count":3,"dry":false,"none":null,"list":[1]}"#;
        assert_eq!(params(json), "day=2026-11-20 count=3 dry=false list=[1]");
        assert_eq!(params("{}"), "");
    }

    #[test]
    fn fields_are_aligned_and_empty_ones_left_out() {
        let text = fields(&[("a", Some("1".into())), ("long", Some("2".into())), ("none", None)]);
        assert_eq!(strip_str(&text).to_string(), "  a     1\n  long  2\n");
    }
}
