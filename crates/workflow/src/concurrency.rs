//! Fills in the template of a concurrency key, when a run is submitted.

use serde_json::{Map, Value, json};

use crate::limits;
use crate::model::Concurrency;
use crate::template::{TemplateError, render};

impl Concurrency {
    /// The key for a run of `workflow` with these parameters. The run does not exist yet, so the template can read only
    /// `params` and `run.workflow`.
    ///
    /// # Errors
    /// A parameter that the template reads has no value, or the key is empty or longer than
    /// [`limits::CONCURRENCY_KEY_BYTES`].
    pub fn render(&self, params: &Map<String, Value>, workflow: &str) -> Result<String, TemplateError> {
        let context = json!({ "params": params, "run": { "workflow": workflow } });
        let key = render(&self.key, &context)?;
        let refuse = |message: String| Err(TemplateError { expression: None, message });
        if key.trim().is_empty() {
            return refuse("the key is empty".to_owned());
        }
        if key.len() > limits::CONCURRENCY_KEY_BYTES {
            let limit = limits::CONCURRENCY_KEY_BYTES;
            return refuse(format!("the key has {} bytes; the limit is {limit}", key.len()));
        }
        Ok(key)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::model::OnFull;

    fn render(key: &str, params: &Value) -> Result<String, String> {
        let concurrency = Concurrency { key: key.to_owned(), limit: 1, on_full: OnFull::Wait };
        concurrency.render(params.as_object().unwrap(), "nightly").map_err(|error| error.to_string())
    }

    #[test]
    fn a_key_can_read_params_and_the_workflow() {
        let params = json!({ "tenant": "a", "none": null, "long": "x".repeat(1_000) });
        assert_eq!(render("tenant-{{ params.tenant }}", &params).unwrap(), "tenant-a");
        assert_eq!(render("{{ run.workflow }}", &params).unwrap(), "nightly");
        assert_eq!(render("plain", &params).unwrap(), "plain");
        assert_eq!(render("{{ params.long }}", &params).unwrap().len(), 1_000);
        for (key, reason) in [
            ("{{ params.none }}", "has no value"),
            ("{{ run.id }}", "no field `id`"),
            ("{{ params.none | default(' ') }}", "empty"),
            ("-{{ params.long }}", "1001 bytes; the limit is 1000"),
        ] {
            let message = render(key, &params).unwrap_err();
            assert!(message.contains(reason), "{key}: {message}");
        }
    }
}
