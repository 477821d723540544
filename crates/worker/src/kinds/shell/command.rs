//! Makes the command to start from a payload: fills in templates, sets the environment and the folder.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use windlass_workflow::for_each::item_text;
use windlass_workflow::kinds::shell::{OutputSource, Payload};
use windlass_workflow::params;

use super::container::{self, ContainerPlan};
use super::{env_file, stdin};
use crate::handler::{Attempt, failed_for_good};
use crate::kinds::files::JobFiles;
use crate::kinds::secrets::Secrets;
use crate::kinds::values::{TemplateValues, read_with_retries};
use crate::kinds::workspace;
use windlass_engine::store::RunContext;
use windlass_engine::transition::Outcome;
use windlass_system::process::OUTPUT_VARIABLE;

/// The shell that executes scripts unless the job names another one. `-e` ends a script at its first failing command.
const DEFAULT_SHELL: [&str; 2] = ["/bin/sh", "-e"];

/// Variables that the service manager sets for the engine. A job that used them could send messages to the manager in
/// the name of the engine.
const SERVICE_MANAGER_VARIABLES: [&str; 3] = ["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"];
/// The place of the process in a trace, and what belongs to it. Those of the engine are not those of the job.
const TRACE_VARIABLES: [&str; 2] = [TRACEPARENT_VARIABLE, "TRACESTATE"];
const TRACEPARENT_VARIABLE: &str = "TRACEPARENT";

/// The idempotency key of the job.
const IDEMPOTENCY_KEY_VARIABLE: &str = "WINDLASS_IDEMPOTENCY_KEY";
/// The processes of a job are found by its mark and the number of the attempt.
pub(super) const MARK_VARIABLE: &str = "WINDLASS_MARK";
/// What users set to choose colours.
const COLOUR_VARIABLES: [&str; 3] = ["NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE"];
/// The workspace of the run, if it has one.
const WORKSPACE_VARIABLE: &str = "WINDLASS_WORKSPACE";
pub(super) const ATTEMPT_VARIABLE: &str = "WINDLASS_ATTEMPT";

pub(super) fn build(
    attempt: &Attempt,
    payload: &Payload,
    container_program: &str,
    output_file: &Path,
) -> Result<(Command, Option<JobFiles>), Outcome> {
    let run = read_with_retries(attempt, || attempt.run())?;
    let run = run.as_deref();
    let values = TemplateValues::of(attempt, run, &payload.uses)?;
    let secrets = Secrets::resolve(attempt, &payload.secrets, folder_of(run))?;
    let filling = Filling { attempt, payload, run, container_program, values: &values, secrets: &secrets };
    fill_in(&filling, output_file)
}

/// What a command is made of.
pub(super) struct Filling<'a> {
    pub(super) attempt: &'a Attempt,
    pub(super) payload: &'a Payload,
    pub(super) run: Option<&'a RunContext>,
    pub(super) container_program: &'a str,
    pub(super) values: &'a TemplateValues<'a>,
    pub(super) secrets: &'a Secrets,
}

/// Makes the command with these values.
pub(super) fn fill_in(
    filling: &Filling<'_>,
    output_file: &Path,
) -> Result<(Command, Option<JobFiles>), Outcome> {
    let Filling { attempt, payload, run, container_program, values, secrets } = *filling;
    let run_folder = folder_of(run);
    let mut command = program(payload, values)?;
    remove_engine_environment(&mut command);
    remove_secret_variables(&mut command, attempt, payload)?;
    if let Some(run) = run {
        command.env(TRACEPARENT_VARIABLE, attempt.traceparent(run).to_string());
    }
    for file in &payload.env_files {
        env_file::add(&mut command, file, run_folder)?;
    }
    add_run_environment(&mut command, run, values)?;
    let private = values.with_secrets(secrets);
    for (name, value) in &payload.env {
        command.env(name, private.render(value, || format!("env.{name}"))?);
    }
    command.envs(secrets.variables());
    let workspace = workspace::make(attempt, run)?;
    add_job_environment(&mut command, attempt, output_file);
    if let Some(path) = &workspace {
        command.env(WORKSPACE_VARIABLE, path);
    }
    add_colour_variables(&mut command, payload.output);
    secrets.mask(attempt);
    let dir = folder(payload, run, workspace.clone(), values)?;
    if let Some(container) = &payload.container {
        let plan = ContainerPlan {
            program: container_program,
            container,
            values,
            mark: &super::mark(attempt),
            run_folder,
            dir: dir.as_deref(),
            workspace: workspace.as_deref(),
            output_file,
            has_stdin: payload.stdin.is_some(),
        };
        command = container::wrap(&command, &plan)?;
    }
    let files = JobFiles::of(attempt, payload, values, dir.as_deref())?;
    if let Some(dir) = dir {
        command.current_dir(dir);
    }
    {
        use std::os::unix::process::CommandExt;
        command.process_group(0);
    }
    command.stdin(match &payload.stdin {
        Some(text) => stdin::with(&private.render_stdin(text)?)?,
        None => Stdio::null(),
    });
    Ok((command, files))
}

fn folder_of(run: Option<&RunContext>) -> Option<&Path> {
    run.and_then(|run| run.dir.as_deref()).map(Path::new)
}

fn program(payload: &Payload, values: &TemplateValues<'_>) -> Result<Command, Outcome> {
    if let Some(script) = &payload.run {
        let mut words = payload.shell.iter().map(String::as_str).collect::<Vec<_>>();
        if words.is_empty() {
            words.extend(DEFAULT_SHELL);
        }
        let mut command = Command::new(words[0]);
        // The script has no templates. Values reach it only through the environment, so that no value is executed as
        // code.
        command.args(&words[1..]).arg("-c").arg(script);
        return Ok(command);
    }
    let items = payload.command.as_deref().unwrap_or_default();
    let mut words = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        words.push(values.render(item, || format!("command[{index}]"))?);
    }
    let (program, arguments) = words.split_first().ok_or_else(|| failed_for_good("`command` is empty"))?;
    let mut command = Command::new(program);
    command.args(arguments);
    Ok(command)
}

/// Removes what is meant for the engine itself from the environment that the job inherits.
fn remove_engine_environment(command: &mut Command) {
    /// Read once, because a process with threads does not change its environment.
    static NOT_FOR_JOBS: OnceLock<Vec<OsString>> = OnceLock::new();
    for name in NOT_FOR_JOBS.get_or_init(not_for_jobs) {
        command.env_remove(name);
    }
}

fn not_for_jobs() -> Vec<OsString> {
    let is_for_the_engine = |name: &str| {
        name.starts_with("WINDLASS_")
            || SERVICE_MANAGER_VARIABLES.contains(&name)
            || TRACE_VARIABLES.contains(&name)
    };
    std::env::vars_os()
        .map(|(name, _value)| name)
        .filter(|name| is_for_the_engine(&name.to_string_lossy()))
        .collect()
}

/// Removes the variables that may have values of secrets, of all workflows. The job gets those that it names.
fn remove_secret_variables(
    command: &mut Command,
    attempt: &Attempt,
    payload: &Payload,
) -> Result<(), Outcome> {
    let own = payload.secrets.iter().filter_map(|secret| secret.source.variable(&secret.name));
    for name in
        own.chain(read_with_retries(attempt, || attempt.secret_variables())?.iter().map(String::as_str))
    {
        command.env_remove(name);
    }
    Ok(())
}

fn add_run_environment(
    command: &mut Command,
    run: Option<&RunContext>,
    values: &TemplateValues<'_>,
) -> Result<(), Outcome> {
    let Some(run) = run else { return Ok(()) };
    let env: BTreeMap<String, String> = serde_json::from_str(&run.env)
        .map_err(|error| failed_for_good(format!("the run's env is not JSON: {error}")))?;
    for (name, value) in &env {
        command.env(name, values.render(value, || format!("env.{name}"))?);
    }
    for (name, value) in values.params() {
        if let Some(value) = params::env_value(value) {
            command.env(params::env_name(name), value);
        }
    }
    command.env("WINDLASS_RUN_ID", run.id.to_string());
    Ok(())
}

/// Sets the variables of the job itself. They come last, so that the workflow can't replace them.
fn add_job_environment(command: &mut Command, attempt: &Attempt, output_file: &Path) {
    let job = attempt.job();
    command
        .env("WINDLASS_JOB_ID", job.id.to_string())
        .env("WINDLASS_JOB_NAME", job.name.as_deref().unwrap_or(&job.kind))
        .env(ATTEMPT_VARIABLE, attempt.number().to_string())
        .env(IDEMPOTENCY_KEY_VARIABLE, attempt.idempotency_key())
        .env(MARK_VARIABLE, super::mark(attempt))
        .env(OUTPUT_VARIABLE, output_file);
    if let Some(item) = &job.item {
        command.env("WINDLASS_ITEM", item_text(&item.value)).env("WINDLASS_INDEX", item.index.to_string());
    }
}

/// Asks programs for colours, because their output is shown on terminals. Their standard output is a pipe, so they would use
/// none. A job whose standard output is a value gets no colours, and neither does one for which `NO_COLOR` is set.
fn add_colour_variables(command: &mut Command, output: OutputSource) {
    /// What the job inherits, read once, because a process with threads does not change its environment.
    static INHERITED: OnceLock<[Option<OsString>; 3]> = OnceLock::new();
    let is_value = match output {
        OutputSource::File => false,
        OutputSource::Text | OutputSource::Lines | OutputSource::Json => true,
    };
    if is_value {
        return;
    }
    let mut values = INHERITED.get_or_init(|| COLOUR_VARIABLES.map(std::env::var_os)).clone();
    for (name, value) in command.get_envs() {
        if let Some(index) = COLOUR_VARIABLES.iter().position(|known| name == *known) {
            values[index] = value.map(OsString::from);
        }
    }
    let [no_color, force_color, clicolor_force] = values;
    let is_off = no_color.is_some_and(|value| !value.is_empty());
    // Somebody who has set one of them has decided.
    if !is_off && force_color.is_none() && clicolor_force.is_none() {
        command.env("FORCE_COLOR", "1").env("CLICOLOR_FORCE", "1");
    }
}

/// The folder to start in: `dir`, relative to the folder of the workflow file. Without `dir` it is the workspace, if the run
/// has one.
fn folder(
    payload: &Payload,
    run: Option<&RunContext>,
    workspace: Option<PathBuf>,
    values: &TemplateValues<'_>,
) -> Result<Option<PathBuf>, Outcome> {
    let base = run.and_then(|run| run.dir.as_deref()).map(PathBuf::from);
    let Some(dir) = &payload.dir else { return Ok(workspace.or(base)) };
    let dir = values.render(dir, || "dir".to_owned())?;
    Ok(Some(base.unwrap_or_default().join(dir)))
}
