//! The kind `shell`: jobs that are processes. Everything about processes of jobs is in this folder.

mod command;
mod container;
mod env_file;
mod fake;
mod group;
mod kill;
mod lines;
pub mod open_files;
mod output;
mod output_folder;
mod reaper;
mod refusal;
mod stdin;
mod stream;
mod watch;

use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::time::Duration;

use crate::handler::{Attempt, Handler, StopCause, WorkerContext, failed, failed_for_good};
use kill::AttemptRange;
use output::OutputError;
use reaper::{Reaper, TableEntry};
use refusal::Refused;
use serde_json::{Map, Value as Json};
use stream::Streams;
use watch::Watched;
use windlass_engine::attempt_end::AttemptResult;
use windlass_engine::store::LogStream;
use windlass_engine::transition::Outcome;
use windlass_system::Clock;
use windlass_system::process::output_file_name;
use windlass_workflow::kinds::shell::{OutputSource, Payload};

pub(super) use fake::start_fake;

/// Time between two tries of something that the system refused because files or memory were short.
const RETRY_PAUSE: Duration = Duration::from_millis(50);

/// Makes the handler for one worker.
pub(super) fn start(worker: &WorkerContext) -> Arc<dyn Handler> {
    Arc::new(Shell {
        reaper: Reaper::new(worker.host_scope),
        clock: worker.clock.clone(),
        container_program: Arc::clone(&worker.container_program),
    })
}

/// Executes scripts and programs, each as a process in a group of its own.
#[derive(Debug)]
struct Shell {
    reaper: Reaper,
    clock: Clock,
    container_program: Arc<str>,
}

impl Handler for Shell {
    fn execute(&self, attempt: &Attempt) -> Outcome {
        self.execute(attempt).unwrap_or_else(|outcome| outcome)
    }

    fn lease_confirmed(&self, backstop_at_ms: i64) {
        self.reaper.confirm(backstop_at_ms, &self.clock);
    }

    fn abandon(&self) {
        self.reaper.close();
    }
}

/// The mark in the environment of all processes of a job, whichever attempt started them. It names this database and
/// the job. A copy of the database has another name.
fn mark(attempt: &Attempt) -> String {
    format!("{}-{}", attempt.database_instance(), attempt.job().id)
}

impl Shell {
    /// Executes one attempt. The error is an outcome too: that of an attempt whose process did not start.
    fn execute(&self, attempt: &Attempt) -> Result<Outcome, Outcome> {
        let payload = Payload::parse(attempt.payload()).map_err(failed_for_good)?;
        let folder = self
            .reaper
            .output_folder()
            .map_err(|error| refusal::outcome(Refused::Folder, "no folder for WINDLASS_OUTPUT", &error))?;
        let name = output_file_name(attempt.job().id, attempt.number());
        let output_file = folder.join(&name);
        let (mut command, files) = command::build(attempt, &payload, &self.container_program, &output_file)?;
        if attempt.number() > 1 {
            self.end_earlier_attempts(attempt, &payload)?;
        }
        if attempt.stop().cause().is_some() {
            return Err(Outcome::Unstarted);
        }
        if let Some(files) = files {
            files.put(attempt)?;
        }
        let refused = |what| move |error| refusal::outcome(Refused::Files, what, &error);
        if payload.container.is_some() {
            container::make_output_file(&output_file).map_err(refused("no file for WINDLASS_OUTPUT"))?;
        }
        let _file = attempt.stop().wake_file().map_err(refused("no file to wake its thread"))?;
        let streams =
            Streams::of(&mut command, attempt.masker()).map_err(refused("no pipe for its output"))?;
        let entry = self
            .reaper
            .add_attempt(&name)
            .map_err(refused("its processes could not be added to the table of the process reaper"))?;
        let child = match command.spawn() {
            Ok(child) => child,
            Err(error) => {
                // No process was started.
                entry.end();
                return Err(match payload.container {
                    Some(_) => container::cannot_start(&command, &error),
                    None => cannot_start(&command, &error),
                });
            }
        };
        let watched = supervise(attempt, &entry, StartedProcess { command, child, streams }, payload.output);
        let outcome = match watched {
            Ok(watched) => outcome_of_process(attempt, &payload, &output_file, watched),
            Err(outcome) => outcome,
        };
        if !matches!(outcome, Outcome::Successful { .. }) {
            self.end_left_processes(attempt, &payload);
        }
        entry.end();
        Ok(outcome)
    }

    /// Ends what earlier attempts left: their workers may have died, and nothing of them may run beside this attempt.
    fn end_earlier_attempts(&self, attempt: &Attempt, payload: &Payload) -> Result<(), Outcome> {
        if payload.container.is_some() {
            container::remove(&self.container_program, &mark(attempt), &self.clock).map_err(|error| {
                failed(format!("a container of an earlier attempt may still be there: {error}"))
            })?;
        }
        kill::sweep(&mark(attempt), AttemptRange::Before(attempt.number()))
    }

    /// Ends what an attempt left that was not successful: a container that outlives its client, and a child in a session of
    /// its own, which has left the group. If it can't be ended, the next attempt says so.
    fn end_left_processes(&self, attempt: &Attempt, payload: &Payload) {
        if payload.container.is_some()
            && let Err(error) = container::remove(&self.container_program, &mark(attempt), &self.clock)
        {
            attempt.log(LogStream::Stderr, format!("its container may still be there: {error}"));
        }
        let _left = kill::sweep(&mark(attempt), AttemptRange::Only(attempt.number()));
    }
}

/// A process that was started, and what it was started with.
struct StartedProcess {
    command: Command,
    child: Child,
    streams: Streams,
}

/// Waits for the end of the process, and kills what is left of its group then.
fn supervise(
    attempt: &Attempt,
    entry: &TableEntry<'_>,
    started: StartedProcess,
    source: OutputSource,
) -> Result<Watched, Outcome> {
    let StartedProcess { command, mut child, streams } = started;
    let group = rustix::process::Pid::from_child(&child);
    open_files::restore_limit(group);
    entry.add_group(group, attempt.clock());
    let watched = watch::watch(attempt, &child, streams, command, source);
    // The leader of the group was not waited for yet, so no other group can have its number.
    kill::group(group, rustix::process::Signal::KILL);
    entry.end_group();
    let status = child.wait();
    let mut watched = watched.map_err(|error| failed(format!("its output could not be read: {error}")))?;
    watched.status = Some(
        status.map_err(|error| failed(format!("the end of its process could not be observed: {error}")))?,
    );
    Ok(watched)
}

fn outcome_of_process(attempt: &Attempt, payload: &Payload, output_file: &Path, watched: Watched) -> Outcome {
    let Some(status) = watched.status else { return failed("the end of its process was not observed") };
    let output = if status.success() || attempt.has_conditions() {
        take_output(attempt, payload, output_file, &watched.stdout)
    } else {
        output::discard(output_file);
        Ok(None)
    };
    // The client of a container that gets a signal before the container has started may exit with 0.
    if let (Some(_container), Some(stopped), true) = (&payload.container, &watched.stopped, status.success())
    {
        return failed(format!("{stopped}; the container program ended with exit code 0"));
    }
    conclude(attempt, ProcessEnd { status, stopped: watched.stopped }, output)
}

/// How a process ended.
struct ProcessEnd {
    status: ExitStatus,
    /// How it was stopped, if it was, for people.
    stopped: Option<String>,
}

/// What the end of a process means for its attempt. `output` is its output as JSON, or why there is none.
fn conclude(attempt: &Attempt, end: ProcessEnd, output: Result<Option<String>, String>) -> Outcome {
    let ProcessEnd { status, stopped } = end;
    if let Some(exit_code) = status.code() {
        attempt.record_exit_code(exit_code.into());
    }
    if attempt.has_conditions() {
        attempt.record_result(AttemptResult { names: names_of(status), output: output.clone() });
    }
    if status.success() {
        return output.map_or_else(failed, |output| Outcome::Successful { output });
    }
    let how = describe_status(status);
    if let Some(stopped) = stopped {
        return failed(format!("{stopped}; {how}"));
    }
    match attempt.error_in_output() {
        Some(line) => failed(format!("{how}: {line}")),
        None => failed(how),
    }
}

/// The names of this kind that conditions can read.
fn names_of(status: ExitStatus) -> Map<String, Json> {
    use std::os::unix::process::ExitStatusExt;
    let names = [("exit_code", status.code()), ("signal", status.signal())];
    names.into_iter().map(|(name, number)| (name.to_owned(), number.into())).collect()
}

/// Reads the output of a process that ended. The job has done its work, so this waits for the resources to read the output
/// if the system refuses them. The error says why there is no output.
fn take_output(
    attempt: &Attempt,
    payload: &Payload,
    output_file: &Path,
    stdout: &[u8],
) -> Result<Option<String>, String> {
    // A list of lines has no secret of several lines in one piece, so these are masked before.
    let stdout = match (attempt.masker(), payload.output) {
        (Some(masker), OutputSource::Lines) => masker.bytes(stdout),
        (_, OutputSource::File | OutputSource::Text | OutputSource::Json | OutputSource::Lines) => {
            stdout.into()
        }
    };
    loop {
        let error = match output::take(payload.output, &stdout, output_file) {
            Ok(output) => return Ok(output),
            Err(OutputError::Invalid(error)) => return Err(error),
            Err(OutputError::Shortage(error)) => error,
        };
        // A cancellation or a timeout comes too late, because the process has ended.
        match attempt.stop().cause() {
            Some(StopCause::Leaving | StopCause::Fenced) => {
                return Err(format!("the file WINDLASS_OUTPUT could not be read: {error}"));
            }
            Some(
                StopCause::Cancelled | StopCause::TimedOut | StopCause::Killed | StopCause::PastDeadline,
            )
            | None => {}
        }
        std::thread::sleep(RETRY_PAUSE);
    }
}

fn describe_status(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("killed by signal {signal}{}", signal_name(signal)),
        (None, None) => "it ended with an unknown status".to_owned(),
    }
}

fn signal_name(signal: i32) -> &'static str {
    match signal {
        1 => " (SIGHUP)",
        2 => " (SIGINT)",
        3 => " (SIGQUIT)",
        6 => " (SIGABRT)",
        9 => " (SIGKILL)",
        11 => " (SIGSEGV)",
        13 => " (SIGPIPE)",
        15 => " (SIGTERM)",
        _ => "",
    }
}

/// Why the process did not start. The system's error is the same for a missing program and a missing folder, so this
/// looks which of them is missing.
fn cannot_start(command: &Command, error: &std::io::Error) -> Outcome {
    let program = command.get_program().to_string_lossy().into_owned();
    if let Some(dir) = command.get_current_dir()
        && !dir.is_dir()
    {
        return failed_for_good(format!("the folder {} does not exist: check `dir`", dir.display()));
    }
    #[allow(clippy::wildcard_enum_match_arm, reason = "the enum is the system's and open")]
    match error.kind() {
        std::io::ErrorKind::NotFound => failed_for_good(format!(
            "the program `{program}` was not found: install it, or correct `command` or `shell`"
        )),
        std::io::ErrorKind::PermissionDenied => failed_for_good(format!(
            "the program `{program}` may not be executed: make it executable (chmod +x) or name its interpreter"
        )),
        std::io::ErrorKind::ArgumentListTooLong => failed_for_good(format!(
            "the arguments and environment of `{program}` are too long: pass large values in files"
        )),
        _ => {
            refusal::outcome(Refused::Start, &format!("the program `{program}` could not be started"), error)
        }
    }
}
