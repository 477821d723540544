//! Processes in containers. The job's process is then the client of a container program, `podman run` or `docker run`.
//!
//! A container can outlive its client. So it has the mark of its job as a label, and is removed by that label when an attempt was
//! stopped or failed, and before the next attempt starts.

mod command;
mod remove;

pub(super) use command::{ContainerPlan, wrap};
pub(super) use remove::remove;

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use windlass_engine::transition::Outcome;

use super::refusal::{self, Refused};
use crate::handler::failed_for_good;

/// The label with the mark of a job.
const LABEL: &str = "windlass.mark";
/// The folder of the job in the container.
const JOB_FOLDER: &str = "/work";

/// Makes the file that WINDLASS_OUTPUT names, because only a file that exists can be shown to a container. The process may be
/// another user in there. Nobody else reaches the folder of the file.
pub(super) fn make_output_file(path: &Path) -> io::Result<()> {
    let file = std::fs::File::create(path)?;
    file.set_permissions(std::fs::Permissions::from_mode(0o666))
}

/// Why the client did not start.
pub(super) fn cannot_start(command: &Command, error: &io::Error) -> Outcome {
    let program = command.get_program().to_string_lossy().into_owned();
    if error.kind() == io::ErrorKind::NotFound {
        return failed_for_good(format!(
            "the container program `{program}` was not found: install it, or name another one as `program` in [container] of \
             windlass.toml"
        ));
    }
    let what = format!("the container program `{program}` could not be started");
    refusal::outcome(Refused::Start, &what, error)
}
