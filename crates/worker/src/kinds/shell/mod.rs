//! The kind `shell`: jobs that are processes.

mod blame;
mod command;
mod group;
mod kill;
mod lines;
mod output;
mod reaper;
mod scratch;
mod stream;
mod values;
mod watch;

use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use crate::attempt::Attempt;
use crate::handler::{Handler, failed, failed_for_good};
use crate::open_files;
use crate::stop::StopCause;
use blame::Refused;
use kill::Attempts;
use output::NotTaken;
use reaper::Kept;
pub(crate) use reaper::Reaper;
use stream::Streams;
use watch::Watched;
use windlass_engine::transition::Outcome;
use windlass_system::process::output_name;
use windlass_workflow::kinds::shell::Payload;

/// How often it is looked whether an output can be read that could not be before.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Executes scripts and programs as processes of their own group.
#[derive(Debug, Default)]
pub(crate) struct Shell;

impl Handler for Shell {
    fn execute(&self, attempt: &Attempt) -> Outcome {
        start(attempt).unwrap_or_else(|outcome| outcome)
    }
}

/// The early ways out are failures; so the error is an outcome too.
fn start(attempt: &Attempt) -> Result<Outcome, Outcome> {
    let payload = Payload::parse(attempt.payload()).map_err(failed_for_good)?;
    let scratch = attempt
        .reaper
        .scratch()
        .map_err(|error| blame::outcome(Refused::Folder, "no folder for WINDLASS_OUTPUT", &error))?;
    let name = output_name(attempt.job().id, attempt.number());
    let output_file = scratch.join(&name);
    let mut command = command::build(attempt, &payload, &output_file)?;
    if attempt.number() > 1 {
        // An earlier attempt may have lost its engine: nothing of it may run beside this one.
        kill::sweep(&attempt.mark(), Attempts::Before(attempt.number()))?;
    }
    if attempt.stop().cause().is_some() {
        return Err(Outcome::Unstarted);
    }
    let refused = |what| move |error| blame::outcome(Refused::Files, what, &error);
    let _file = attempt.stop().wake_file().map_err(refused("no file that wakes its thread"))?;
    let streams = Streams::of(&mut command).map_err(refused("no pipe for its output"))?;
    let kept = attempt
        .reaper
        .begin(&name)
        .map_err(refused("its processes could not be noted for the process reaper"))?;
    let child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            // Nothing of it ran.
            kept.end();
            return Err(cannot_start(&command, &error));
        }
    };
    let watched = supervise(attempt, &kept, Started { command, child, streams }, payload.output);
    let outcome = match watched {
        Ok(watched) => judge(attempt, &payload, &output_file, watched),
        Err(outcome) => outcome,
    };
    if !matches!(outcome, Outcome::Successful { .. }) {
        // A child in a session of its own has left the group.
        let _said_by_the_next_attempt = kill::sweep(&attempt.mark(), Attempts::Only(attempt.number()));
    }
    kept.end();
    Ok(outcome)
}

/// A process, and what it was started with.
struct Started {
    command: Command,
    child: Child,
    streams: Streams,
}

/// Waits for the end of the process, and ends its group with it.
fn supervise(
    attempt: &Attempt,
    kept: &Kept<'_>,
    started: Started,
    source: windlass_workflow::kinds::shell::OutputSource,
) -> Result<Watched, Outcome> {
    let Started { command, mut child, streams } = started;
    let group = rustix::process::Pid::from_child(&child);
    open_files::give_back(group);
    kept.add_group(group, attempt.store.clock());
    let watched = watch::watch(attempt, &child, streams, command, source);
    // The leader is not waited for yet, so nobody else can have its group's number.
    kill::group(group, rustix::process::Signal::KILL);
    kept.end_group();
    let status = child.wait();
    let mut watched = watched.map_err(|error| failed(format!("its output could not be read: {error}")))?;
    watched.status = Some(status.map_err(|error| failed(format!("its end could not be seen: {error}")))?);
    Ok(watched)
}

fn judge(attempt: &Attempt, payload: &Payload, output_file: &Path, watched: Watched) -> Outcome {
    let Some(status) = watched.status else { return failed("its end was not seen") };
    if status.success() {
        return take_output(attempt, payload, output_file, &watched.stdout);
    }
    output::discard(output_file);
    let how = describe(status);
    if let Some(stopped) = watched.stopped {
        return failed(format!("{stopped}; {how}"));
    }
    match attempt.log.last_stderr() {
        Some(line) => failed(format!("{how}: {line}")),
        None => failed(how),
    }
}

/// The job has done its work: what the engine lacks to read the output is waited for.
fn take_output(attempt: &Attempt, payload: &Payload, output_file: &Path, stdout: &[u8]) -> Outcome {
    loop {
        let error = match output::take(payload.output, stdout, output_file) {
            Ok(output) => return Outcome::Successful { output },
            Err(NotTaken::Wrong(error)) => return failed(error),
            Err(NotTaken::Shortage(error)) => error,
        };
        // A cancel or a timeout comes too late: the process is over.
        match attempt.stop().cause() {
            Some(StopCause::Leaving | StopCause::Fenced) => {
                return failed(format!("the file WINDLASS_OUTPUT could not be read: {error}"));
            }
            Some(StopCause::Cancelled | StopCause::TimedOut | StopCause::Killed) | None => {}
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}

fn describe(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("killed by signal {signal}{}", signal_name(signal)),
        (None, None) => "it ended in an unknown way".to_owned(),
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

/// Says which of program and folder is missing: the system's error is the same for both.
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
            "the arguments and environment of `{program}` are too long: hand large values on in files"
        )),
        _ => blame::outcome(Refused::Start, &format!("the program `{program}` could not be started"), error),
    }
}
