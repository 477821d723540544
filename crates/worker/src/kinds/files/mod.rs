//! The files that a job gets before an attempt, and those that it keeps after a success.

mod inputs;
mod search;

use std::path::{Path, PathBuf};

use windlass_engine::store::{Artifact, LogStream};
use windlass_engine::transition::Outcome;
use windlass_engine::{PlaceError, RunFiles};
use windlass_system::files::{Links, open_regular};
use windlass_workflow::files::{FilePattern, Input, NoMatch};
use windlass_workflow::kinds::shell::Payload;
use windlass_workflow::limits;

use super::values::TemplateValues;
use crate::handler::{Attempt, failed, failed_for_good};
use search::Search;

/// What an attempt does with files, with the values of its templates.
pub(super) struct JobFiles {
    inputs: Vec<(Input, FilePattern)>,
    keep: FilesToKeep,
}

/// The files that a job keeps if the attempt succeeds.
#[derive(Debug)]
struct FilesToKeep {
    /// The folder of the job.
    folder: PathBuf,
    patterns: Vec<(FilePattern, NoMatch)>,
}

impl JobFiles {
    /// Reads what the payload says. Nothing if the job has no files.
    pub(super) fn of(
        attempt: &Attempt,
        payload: &Payload,
        values: &TemplateValues<'_>,
        folder: Option<&Path>,
    ) -> Result<Option<JobFiles>, Outcome> {
        if payload.inputs.is_empty() && payload.artifacts.is_empty() {
            return Ok(None);
        }
        let _known = folder_for_files(attempt)?;
        let mut inputs = Vec::new();
        for input in &payload.inputs {
            let place = || format!("inputs.{:?}", input.to);
            inputs.push((input.clone(), pattern(&values.render(&input.path, place)?, &place())?));
        }
        let mut patterns = Vec::new();
        for artifact in &payload.artifacts {
            let text = values.render(&artifact.glob, || "artifacts".to_owned())?;
            patterns.push((pattern(&text, "artifacts")?, artifact.no_match));
        }
        let keep = FilesToKeep { folder: folder.unwrap_or(Path::new(".")).to_owned(), patterns };
        Ok(Some(JobFiles { inputs, keep }))
    }

    /// Puts the inputs into the folder, and remembers what to keep. The processes of earlier attempts have ended.
    pub(super) fn put(self, attempt: &Attempt) -> Result<(), Outcome> {
        for (input, pattern) in &self.inputs {
            inputs::put(attempt, &self.keep.folder, input, pattern)?;
        }
        if !self.keep.patterns.is_empty() {
            let keep = self.keep;
            attempt.keep_files_by(Box::new(move |attempt| keep.keep(attempt)));
        }
        Ok(())
    }
}

/// The folder for files of runs.
fn folder_for_files(attempt: &Attempt) -> Result<&RunFiles, Outcome> {
    attempt.files().ok_or_else(|| failed_for_good(super::workspace::UNKNOWN_FOLDER))
}

fn pattern(text: &str, place: &str) -> Result<FilePattern, Outcome> {
    FilePattern::parse(text).map_err(|reason| failed_for_good(format!("`{place}`: `{text}`: {reason}")))
}

impl FilesToKeep {
    /// Copies the files into the folder for files.
    fn keep(&self, attempt: &Attempt) -> Result<Vec<Artifact>, Outcome> {
        let files = folder_for_files(attempt)?;
        let mut search = Search::below(&self.folder, files).map_err(|error| failed(error.to_string()))?;
        for (pattern, no_match) in &self.patterns {
            let found = search.find(pattern).map_err(failed_for_good)?;
            match (found, no_match) {
                (0, NoMatch::Fail) => {
                    return Err(failed(format!("no file matches `{}` of `artifacts`", pattern.text())));
                }
                (0, NoMatch::Warn) => {
                    let line = format!("no file matches `{}` of `artifacts`", pattern.text());
                    attempt.log(LogStream::Engine, line);
                }
                (_some, _) => {}
            }
        }
        for line in search.left_out() {
            attempt.log(LogStream::Engine, line);
        }
        let found = search.found();
        let mut artifacts = Vec::with_capacity(found.len());
        for (number, (path, real)) in found.into_iter().enumerate() {
            refuse_secret(attempt, &path)?;
            let name = format!("{}-{}-{number}", attempt.job().id, attempt.number());
            artifacts.push(keep_one(attempt, files, path, &real, &name)?);
        }
        Ok(artifacts)
    }
}

/// A path is shown in lists, so it may have no secret.
fn refuse_secret(attempt: &Attempt, path: &str) -> Result<(), Outcome> {
    match attempt.masker() {
        Some(masker) if masker.text(path) != path => {
            Err(failed_for_good("the path of an artifact contains a secret"))
        }
        Some(_) | None => Ok(()),
    }
}

fn keep_one(
    attempt: &Attempt,
    files: &RunFiles,
    path: String,
    real: &Path,
    name: &str,
) -> Result<Artifact, Outcome> {
    let mut file =
        open_regular(real, Links::Refuse).map_err(|error| failed(format!("the artifact {path} {error}")))?;
    let may_go_on = || attempt.stop().cause().is_none();
    match files.place(&mut file, name, limits::ARTIFACT_BYTES, &may_go_on) {
        Ok(content) => {
            let bytes = i64::try_from(content.bytes).unwrap_or(i64::MAX);
            Ok(Artifact { path, hash: content.hash, bytes })
        }
        Err(PlaceError::TooLarge(max)) => {
            Err(failed_for_good(format!("the artifact {path} is larger than {} MiB", max >> 20)))
        }
        Err(PlaceError::Stopped) => Err(failed("it was stopped while its artifacts were copied")),
        Err(PlaceError::Io(error)) => Err(failed(format!("the artifact {path} can't be kept: {error}"))),
    }
}
