//! Makes the command that runs a container out of the command that the container executes.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use windlass_engine::transition::Outcome;
use windlass_workflow::kinds::shell::{Container, check_argument};

use super::{JOB_FOLDER, LABEL};
use crate::handler::failed_for_good;
use crate::kinds::values::TemplateValues;

/// What the container sees of the machine.
pub(in super::super) struct ContainerPlan<'a> {
    /// The container program.
    pub(in super::super) program: &'a str,
    pub(in super::super) container: &'a Container,
    /// The values of templates.
    pub(in super::super) values: &'a TemplateValues<'a>,
    /// The mark of the job.
    pub(in super::super) mark: &'a str,
    /// The folder of the workflow file, against which volumes are resolved.
    pub(in super::super) run_folder: Option<&'a Path>,
    /// The folder of the job.
    pub(in super::super) dir: Option<&'a Path>,
    /// The run's workspace, if it has one.
    pub(in super::super) workspace: Option<&'a Path>,
    /// The file that WINDLASS_OUTPUT names.
    pub(in super::super) output_file: &'a Path,
    /// Whether the process reads a text from its standard input.
    pub(in super::super) has_stdin: bool,
}

/// Makes the command of the client. `inner` is what the container executes: its words, and the variables that were set for it.
/// Only those are passed on, by their names, so that no value is on a command line.
pub(in super::super) fn wrap(inner: &Command, plan: &ContainerPlan<'_>) -> Result<Command, Outcome> {
    let ContainerPlan { program, container, values, .. } = *plan;
    let mut command = Command::new(program);
    command.args(["run", "--rm", "--label"]).arg(format!("{LABEL}={}", plan.mark));
    command.arg(format!("--pull={}", container.pull.as_str()));
    if plan.has_stdin {
        command.arg("--interactive");
    }
    for (option, value) in [("--network", &container.network), ("--user", &container.user)] {
        if let Some(value) = value {
            command.arg(option).arg(value);
        }
    }
    for volume in volumes(plan)? {
        command.arg("--volume").arg(volume);
    }
    if plan.dir.is_some() {
        command.args(["--workdir", JOB_FOLDER]);
    }
    let names: BTreeSet<&OsStr> =
        inner.get_envs().filter_map(|(name, value)| value.map(|_value| name)).collect();
    for name in names {
        command.arg("--env").arg(name);
    }
    let image = values.render(&container.image, || "container.image".to_owned())?;
    check_argument(&image).map_err(|reason| {
        failed_for_good(format!("`container.image` is {image:?}, which can't be used: {reason}"))
    })?;
    command.arg("--entrypoint").arg(inner.get_program()).arg(image).args(inner.get_args());
    for (name, value) in inner.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    Ok(command)
}

/// The folder of the job, the workspace and the output file, each at a path that the job knows, and the volumes of the file.
fn volumes(plan: &ContainerPlan<'_>) -> Result<Vec<OsString>, Outcome> {
    let mut volumes = Vec::new();
    if let Some(dir) = plan.dir {
        volumes.push(volume(&absolute(dir)?, Path::new(JOB_FOLDER))?);
    }
    // These paths are in variables, so they are the same in the container.
    for path in plan.workspace.into_iter().chain([plan.output_file]) {
        volumes.push(volume(path, path)?);
    }
    for (at, written) in plan.container.volumes.iter().enumerate() {
        let text = plan.values.render(written, || format!("container.volumes[{at}]"))?;
        let unusable = |reason: &str| {
            failed_for_good(format!("`container.volumes[{at}]` is {text:?}, which can't be used: {reason}"))
        };
        check_argument(&text).map_err(unusable)?;
        let (source, target) = text.split_once(':').ok_or_else(|| unusable("it is not SOURCE:TARGET"))?;
        volumes.push(match source.starts_with('.') {
            true => {
                let source = absolute(&plan.run_folder.unwrap_or(Path::new("")).join(source))?;
                let mut volume = source.into_os_string();
                volume.push(format!(":{target}"));
                volume
            }
            false => OsString::from(&text),
        });
    }
    Ok(volumes)
}

/// A path that has a colon can't be named to a container program.
fn volume(source: &Path, target: &Path) -> Result<OsString, Outcome> {
    use std::os::unix::ffi::OsStrExt;
    if source.as_os_str().as_bytes().contains(&b':') {
        let message = format!("a container can't get {source:?}, because its path has a colon");
        return Err(failed_for_good(message));
    }
    let mut volume = source.as_os_str().to_owned();
    volume.push(":");
    volume.push(target);
    Ok(volume)
}

fn absolute(path: &Path) -> Result<PathBuf, Outcome> {
    std::path::absolute(path)
        .map_err(|error| failed_for_good(format!("the path {path:?} can't be resolved: {error}")))
}
