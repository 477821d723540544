//! The values that the templates of a job may name. They are read when the first template needs them, because most jobs
//! have no template.

use std::cell::OnceCell;
use std::time::Duration;

use serde_json::{Map, Value as Json, json};
use windlass_workflow::limits;
use windlass_workflow::template::{self, variables_read_in};

use crate::handler::{Attempt, failed_for_good};
use crate::kinds::secrets::Secrets;
use windlass_db::error::Error;
use windlass_engine::store::RunContext;
use windlass_engine::transition::Outcome;
use windlass_engine::values::values;

/// How often a read before the start of a process is tried, with a pause between two tries.
const READ_TRIES_MAX: u32 = 300;
const READ_PAUSE: Duration = Duration::from_millis(200);

pub(crate) struct TemplateValues<'a> {
    attempt: &'a Attempt,
    run: Option<&'a RunContext>,
    uses: &'a [String],
    params: Map<String, Json>,
    /// All values, as templates see them.
    context: OnceCell<Json>,
}

impl<'a> TemplateValues<'a> {
    /// The values of a job that reads the outputs of the jobs `uses`.
    pub(crate) fn of(
        attempt: &'a Attempt,
        run: Option<&'a RunContext>,
        uses: &'a [String],
    ) -> Result<TemplateValues<'a>, Outcome> {
        let params = run.map_or(Ok(Map::new()), |run| serde_json::from_str(&run.params));
        let params = params
            .map_err(|error| failed_for_good(format!("the run's params are no JSON object: {error}")))?;
        Ok(TemplateValues { attempt, run, uses, params, context: OnceCell::new() })
    }

    pub(crate) fn params(&self) -> &Map<String, Json> {
        &self.params
    }

    /// The text for the standard input, with the values of its templates.
    pub(super) fn render_stdin(&self, source: &str) -> Result<String, Outcome> {
        if !template::is_template(source) {
            return Ok(source.to_owned());
        }
        template::render_up_to(source, self.context()?, limits::STDIN_BYTES)
            .map_err(|error| failed_for_good(format!("`stdin`: {error}")))
    }

    /// Replaces the templates in a text by their values. `place` names the key of the text, for error messages.
    pub(crate) fn render(&self, source: &str, place: impl Fn() -> String) -> Result<String, Outcome> {
        if !template::is_template(source) {
            return Ok(source.to_owned());
        }
        template::render(source, self.context()?)
            .map_err(|error| failed_for_good(format!("`{}`: {error}", place())))
    }

    /// The value of a text in a JSON value. A text that is one template keeps the type of its value.
    pub(crate) fn render_json(&self, source: &str, place: impl Fn() -> String) -> Result<Json, Outcome> {
        if !template::is_template(source) {
            return Ok(Json::from(source));
        }
        template::render_json(source, self.context()?)
            .map_err(|error| failed_for_good(format!("`{}`: {error}", place())))
    }

    /// The values with those of the secrets, for the places that may read secrets.
    pub(crate) fn with_secrets<'v>(&'v self, secrets: &'v Secrets) -> SecretValues<'v> {
        SecretValues { values: self, secrets }
    }

    fn context(&self) -> Result<&Json, Outcome> {
        if let Some(context) = self.context.get() {
            return Ok(context);
        }
        let context = self.read()?;
        Ok(self.context.get_or_init(|| context))
    }

    fn read(&self) -> Result<Json, Outcome> {
        let Some(run) = self.run else { return Ok(json!({ "params": {}, "run": {}, "jobs": {} })) };
        let jobs = read_with_retries(self.attempt, || self.attempt.values_of(self.uses))?;
        let end = read_with_retries(self.attempt, || self.attempt.run_end())?;
        let mut names = variables_read_in(self.attempt.payload());
        names.extend(variables_read_in(&run.env));
        let variables = read_with_retries(self.attempt, || self.attempt.variables(&names))?;
        values(run, end.as_ref(), jobs, self.attempt.job().item.as_ref(), variables).map_err(failed_for_good)
    }
}

/// The values that templates may name where they may read secrets.
pub(crate) struct SecretValues<'a> {
    values: &'a TemplateValues<'a>,
    secrets: &'a Secrets,
}

impl SecretValues<'_> {
    /// As [`TemplateValues::render`].
    pub(crate) fn render(&self, source: &str, place: impl Fn() -> String) -> Result<String, Outcome> {
        let Some(context) = self.context_of(source)? else { return self.values.render(source, place) };
        let text = template::render(source, &context)
            .map_err(|error| failed_for_good(format!("`{}`: {error}", place())))?;
        self.secrets.note_rendered(source, &text);
        self.secrets.note_parts(source, &context);
        Ok(text)
    }

    /// As [`TemplateValues::render_json`].
    pub(crate) fn render_json(&self, source: &str, place: impl Fn() -> String) -> Result<Json, Outcome> {
        let Some(context) = self.context_of(source)? else { return self.values.render_json(source, place) };
        let value = template::render_json(source, &context)
            .map_err(|error| failed_for_good(format!("`{}`: {error}", place())))?;
        self.secrets.note_rendered(source, value.as_str().unwrap_or_default());
        self.secrets.note_parts(source, &context);
        Ok(value)
    }

    /// As [`TemplateValues::render_stdin`].
    pub(super) fn render_stdin(&self, source: &str) -> Result<String, Outcome> {
        let Some(context) = self.context_of(source)? else { return self.values.render_stdin(source) };
        self.secrets.note_parts(source, &context);
        template::render_up_to(source, &context, limits::STDIN_BYTES)
            .map_err(|error| failed_for_good(format!("`stdin`: {error}")))
    }

    /// The values for a text that reads secrets.
    fn context_of(&self, source: &str) -> Result<Option<Json>, Outcome> {
        if template::secrets_read(source).is_empty() {
            return Ok(None);
        }
        let mut context = self.values.context()?.clone();
        context["secrets"] = self.secrets.values().into();
        Ok(Some(context))
    }
}

/// Reads from the database, and waits if it can't be read for now, because that is no failure of the job.
pub(crate) fn read_with_retries<T>(
    attempt: &Attempt,
    read: impl Fn() -> Result<T, Error>,
) -> Result<T, Outcome> {
    for _ in 0..READ_TRIES_MAX {
        match read() {
            Ok(value) => return Ok(value),
            Err(error) if !error.is_temporary() => return Err(failed_for_good(error.to_string())),
            Err(_passing) => {
                if attempt.stop().wait(READ_PAUSE).is_some() {
                    return Err(Outcome::Unstarted);
                }
            }
        }
    }
    Err(Outcome::Interrupted { error: "the database could not be read before it started".to_owned() })
}
