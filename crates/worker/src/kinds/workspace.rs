//! The workspace of a run, made before an attempt that may use it.

use std::path::PathBuf;

use windlass_engine::store::{RunContext, RunFolder};
use windlass_engine::transition::Outcome;

use crate::handler::{Attempt, failed, failed_for_good};

/// The error of a worker that was not told where files are.
pub(super) const UNKNOWN_FOLDER: &str = "this worker does not know the folder for files: set `dir` under [files] in \
                                         windlass.toml, or WINDLASS_FILES, to the folder that all workers share";

/// Makes the workspace of the run unless it is there. Nothing if the run has none.
pub(super) fn make(attempt: &Attempt, run: Option<&RunContext>) -> Result<Option<PathBuf>, Outcome> {
    let Some(run) = run else { return Ok(None) };
    match (&run.workspace, attempt.files()) {
        (RunFolder::None, _) => Ok(None),
        (RunFolder::At(_), Some(files)) => match files.make_workspace(run.id) {
            Ok(path) => Ok(Some(path)),
            Err(error) => {
                let path = files.workspace(run.id);
                Err(failed(format!("the workspace {} can't be made: {error}", path.display())))
            }
        },
        (RunFolder::Unknown, _) | (RunFolder::At(_), None) => Err(failed_for_good(UNKNOWN_FOLDER)),
    }
}
