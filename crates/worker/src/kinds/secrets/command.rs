//! A program that prints the value of a secret.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use windlass_system::Clock;

use super::SECRET_MAX_BYTES;
use super::source::{Missing, without_line_end};
use crate::handler::Stop;

/// How long the program may take.
const TIMEOUT_MS: i64 = 10_000;

/// Runs the program and takes its standard output. It gets the environment of the worker, because it may need to prove who
/// it is. What it writes to standard error is not kept: it may contain the secret.
pub(super) fn output(
    stop: &Stop,
    clock: &Clock,
    words: &[String],
    dir: Option<&Path>,
) -> Result<Vec<u8>, Missing> {
    let Some((program, arguments)) = words.split_first() else {
        return Err(Missing::Unusable("its command names no program".to_owned()));
    };
    let mut command = Command::new(program);
    command
        .args(arguments)
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    if let Some(dir) = dir {
        command.current_dir(dir);
    }
    let child = command.spawn().map_err(|error| {
        Missing::Io(format!("its command `{}` could not be started", words.join(" ")), error)
    })?;
    let mut running = Running { child };
    let read = running.read(stop, clock);
    let status = running.end();
    let said = |what: String| Missing::Failed(format!("its command `{}` {what}", words.join(" ")));
    match (read?, status) {
        (ReadOutput::Late, _) => Err(said(format!("took longer than {} s", TIMEOUT_MS / 1_000))),
        (ReadOutput::TooMuch, _) => Err(said(format!("wrote more than {SECRET_MAX_BYTES} bytes"))),
        (ReadOutput::All(output), Ok(status)) if status.success() => Ok(without_line_end(output)),
        (ReadOutput::All(_), Ok(status)) => {
            Err(said(format!("failed ({status}); run it by hand as the user of the worker")))
        }
        (ReadOutput::All(_), Err(error)) => {
            Err(Missing::Io("the end of its command could not be observed".to_owned(), error))
        }
    }
}

/// A program that was started.
struct Running {
    child: Child,
}

/// What a program wrote.
enum ReadOutput {
    All(Vec<u8>),
    Late,
    TooMuch,
}

impl Running {
    /// Reads the output until the program has ended.
    fn read(&mut self, stop: &Stop, clock: &Clock) -> Result<ReadOutput, Missing> {
        let failed =
            |error: std::io::Error| Missing::Io("its command could not be watched".to_owned(), error);
        let process = pidfd_open(Pid::from_child(&self.child), PidfdFlags::empty());
        let process = process.map_err(|error| failed(error.into()))?;
        let stop_file = stop.wake_file().map_err(failed)?;
        let mut pipe = self.child.stdout.take();
        let until_ms = clock.monotonic_ms() + TIMEOUT_MS;
        let mut output = Vec::new();
        loop {
            let left_ms = until_ms - clock.monotonic_ms();
            if left_ms <= 0 {
                return Ok(ReadOutput::Late);
            }
            let timeout = Timespec { tv_sec: left_ms / 1_000, tv_nsec: left_ms % 1_000 * 1_000_000 };
            let mut files =
                vec![PollFd::new(&stop_file, PollFlags::IN), PollFd::new(&process, PollFlags::IN)];
            files.extend(pipe.as_ref().map(|pipe| PollFd::new(pipe, PollFlags::IN)));
            match poll(&mut files, Some(&timeout)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(failed(error.into())),
            }
            let is_ready = |at: usize| files.get(at).is_some_and(|file| !file.revents().is_empty());
            let (is_stop, has_ended, has_output) = (is_ready(0), is_ready(1), is_ready(2));
            if is_stop {
                stop.reset_wake_file();
            }
            if let Some(cause) = stop.cause() {
                return Err(Missing::Stopped(cause));
            }
            if has_output && let Some(open) = &mut pipe {
                let mut chunk = [0; 4_096];
                match open.read(&mut chunk).map_err(failed)? {
                    0 => pipe = None,
                    read => output.extend_from_slice(&chunk[..read]),
                }
                if output.len() > SECRET_MAX_BYTES {
                    return Ok(ReadOutput::TooMuch);
                }
            } else if has_ended {
                return Ok(ReadOutput::All(output));
            }
        }
    }

    /// Kills what is left of the program and of its group, and waits for it. The program's number stays its own until then.
    fn end(&mut self) -> std::io::Result<ExitStatus> {
        let _gone = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        self.child.wait()
    }
}
