//! A fake of the kind `shell`: no process starts. Templates are filled in, and the end means what it always means.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::Arc;

use windlass_engine::store::LogStream;
use windlass_engine::transition::Outcome;
use windlass_workflow::kinds::shell::{OutputSource, Payload};

use super::command::{Filling, fill_in};
use super::watch::why_stopped;
use super::{ProcessEnd, conclude, output};
use crate::handler::{Attempt, DEFAULT_CONTAINER_PROGRAM, Handler, failed, failed_for_good};
use crate::kinds::fake::{FakeEnd, FakeEnds, HowItEnds};
use crate::kinds::secrets::Secrets;
use crate::kinds::values::{TemplateValues, read_with_retries};

/// The signal that a process gets first when its attempt is to stop.
const SIGTERM: u8 = 15;

/// Makes the handler.
pub(crate) fn start_fake(ends: Arc<FakeEnds>) -> impl Handler {
    move |attempt: &Attempt| execute(attempt, &ends).unwrap_or_else(|outcome| outcome)
}

fn execute(attempt: &Attempt, ends: &Arc<FakeEnds>) -> Result<Outcome, Outcome> {
    let mut payload = Payload::parse(attempt.payload()).map_err(failed_for_good)?;
    // These files are often on other machines only.
    payload.env_files.clear();
    check_templates(attempt, &payload)?;
    let FakeEnd { how, output, error } = ends(attempt);
    if let Some(line) = error {
        attempt.log(LogStream::Stderr, line);
    }
    let cause = attempt.stop().cause();
    let stopped =
        cause.map(|cause| format!("{}: sent SIGTERM", why_stopped(cause, attempt.job().timeout_ms)));
    let status = match (how, cause) {
        (HowItEnds::Exit(_) | HowItEnds::Signal(_), Some(_cause)) => signalled(SIGTERM),
        (HowItEnds::Exit(code), None) => ExitStatus::from_raw(i32::from(code) << 8),
        (HowItEnds::Signal(signal), None) => signalled(signal),
        (HowItEnds::Answer { .. } | HowItEnds::NoAnswer, _) => {
            return Err(failed("its fake has the end of a request, and it is a process"));
        }
    };
    let output = if status.success() || attempt.has_conditions() {
        output::of_bytes(payload.output, &output.unwrap_or_else(|| nothing(payload.output).to_vec()))
    } else {
        Ok(None)
    };
    Ok(conclude(attempt, ProcessEnd { status, stopped }, output))
}

/// What a job prints that has nothing to say.
fn nothing(source: OutputSource) -> &'static [u8] {
    match source {
        OutputSource::Json => b"null",
        OutputSource::File | OutputSource::Text | OutputSource::Lines => b"",
    }
}

fn signalled(signal: u8) -> ExitStatus {
    ExitStatus::from_raw(i32::from(signal))
}

/// Fills in the templates of the job, with secrets that are made up. The error is the outcome of an attempt whose process
/// would not start.
fn check_templates(attempt: &Attempt, payload: &Payload) -> Result<(), Outcome> {
    let run = read_with_retries(attempt, || attempt.run())?;
    let run = run.as_deref();
    let values = TemplateValues::of(attempt, run, &payload.uses)?;
    let secrets = Secrets::fake(&payload.secrets);
    let container_program = DEFAULT_CONTAINER_PROGRAM;
    let filling = Filling { attempt, payload, run, container_program, values: &values, secrets: &secrets };
    fill_in(&filling, Path::new("")).map(drop)
}
