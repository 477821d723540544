//! The values that the templates of a job may name. They are read when the first template needs them, because most jobs
//! have no template.

use std::cell::OnceCell;
use std::time::Duration;

use serde_json::{Map, Value as Json, json};
use windlass_workflow::{limits, template};

use crate::handler::{Attempt, failed_for_good};
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
        values(run, end.as_ref(), jobs).map_err(failed_for_good)
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
