//! A command that gets a message on its standard input.

use std::env;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::event::PollFlags;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use super::{Message, MessageCommand, MessageOutput, NotSent};
use crate::kinds::http::patience::{Over, Patience};

/// Executes the command as a process group of its own, and kills what is left of the group at the end or after the timeout.
/// It gets the environment of this process without the variables of Windlass, which may contain a password.
pub(super) fn execute(
    target: &MessageCommand,
    message: &Message,
    patience: &Patience,
    output: MessageOutput,
) -> Result<String, NotSent> {
    let Some((program, arguments)) = target.words.split_first() else {
        return Err(NotSent::Failed("the command names no program".to_owned()));
    };
    let streams = || match output {
        MessageOutput::Discarded => Stdio::null(),
        MessageOutput::Shown => Stdio::from(io::stderr()),
    };
    let mut command = Command::new(program);
    command.args(arguments).process_group(0).stdin(Stdio::piped()).stdout(streams()).stderr(streams());
    for (name, _value) in env::vars_os() {
        if name.as_encoded_bytes().starts_with(b"WINDLASS_") {
            command.env_remove(name);
        }
    }
    command.envs(message.variables.iter().map(|(name, value)| (name, value)));
    if let Some(dir) = &target.dir {
        command.current_dir(dir);
    }
    let child = command.spawn().map_err(|error| failed(&format!("the command can't be started: {error}")))?;
    let mut running = Running { child };
    let waited = running.give(message).and_then(|()| running.wait(patience));
    let status = running.end();
    match (waited, patience.over()) {
        (Ok(()), _) => {}
        (Err(_), Some(Over::Stopped)) => return Err(NotSent::Interrupted),
        (Err(_), Some(Over::TimedOut)) => return Err(failed("the command took longer than its timeout")),
        (Err(error), None) => return Err(failed(&format!("the command can't be observed: {error}"))),
    }
    let status = status.map_err(|error| failed(&format!("the command can't be observed: {error}")))?;
    if status.success() { Ok(describe(status)) } else { Err(failed(&describe(status))) }
}

fn failed(reason: &str) -> NotSent {
    NotSent::Failed(reason.to_owned())
}

fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("ended by signal {signal}"),
        (None, None) => "ended".to_owned(),
    }
}

/// A command that was started.
struct Running {
    child: Child,
}

impl Running {
    /// Writes the message. The pipe is empty and large enough, so this does not wait for a reader. A command that does not
    /// read it is no error.
    fn give(&mut self, message: &Message) -> io::Result<()> {
        let Some(mut pipe) = self.child.stdin.take() else { return Ok(()) };
        match pipe.write_all(message.json.as_bytes()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Waits for the end of the command.
    fn wait(&self, patience: &Patience) -> io::Result<()> {
        let process = pidfd_open(Pid::from_child(&self.child), PidfdFlags::empty())?;
        patience.wait(process.as_fd(), PollFlags::IN)
    }

    /// Kills what is left of the command and of its group, and waits for it. The number stays its own until then.
    fn end(&mut self) -> io::Result<ExitStatus> {
        let _gone = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        self.child.wait()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use windlass_system::Clock;

    use super::*;
    use crate::handler::{Stop, StopCause};

    fn message() -> Message {
        let variables = vec![("WINDLASS_NOTIFICATION", "msg_1".to_owned())];
        Message { id: "msg_1".to_owned(), sent_at_s: 1, json: r#"{"type":"test"}"#.to_owned(), variables }
    }

    fn run(script: &str, timeout_ms: i64, stop: &Stop) -> (Result<String, NotSent>, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let words = ["sh", "-c", script].map(str::to_owned).to_vec();
        let target = MessageCommand { words, dir: Some(folder.path().to_owned()) };
        let clock = Clock::system();
        let deadline_ms = clock.monotonic_ms() + timeout_ms;
        let patience = Patience { stop: stop.clone(), clock, deadline_ms };
        (execute(&target, &message(), &patience, MessageOutput::Discarded), folder)
    }

    #[test]
    fn a_command_gets_the_message_and_its_exit_code_counts() {
        let (sent, folder) = run("cat > in; echo $WINDLASS_NOTIFICATION > id", 60_000, &Stop::default());
        assert_eq!(sent, Ok("exit code 0".to_owned()));
        let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
        assert_eq!((read("in").as_str(), read("id").as_str()), (r#"{"type":"test"}"#, "msg_1\n"));
        assert_eq!(run("exit 3", 60_000, &Stop::default()).0, Err(failed("exit code 3")));
        assert_eq!(run("kill -9 $$", 60_000, &Stop::default()).0, Err(failed("ended by signal 9")));
        // It need not read the message.
        assert_eq!(run("exec <&-; exit 0", 60_000, &Stop::default()).0, Ok("exit code 0".to_owned()));
    }

    #[test]
    fn a_command_that_takes_too_long_is_killed_with_its_group() {
        let script = "sleep 1000 & echo $! > child; echo $$ > own; wait";
        let (sent, folder) = run(script, 300, &Stop::default());
        assert_eq!(sent, Err(failed("the command took longer than its timeout")));
        for name in ["child", "own"] {
            let pid = std::fs::read_to_string(folder.path().join(name)).unwrap();
            let state = || std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
            let began = std::time::Instant::now();
            // A killed child ends soon, and may still wait for its new parent.
            while !(state().is_empty() || state().contains(") Z ")) {
                assert!(began.elapsed().as_secs() < 30, "{name}: {}", state());
                std::thread::yield_now();
            }
        }
    }

    #[test]
    fn a_request_to_stop_ends_the_command() {
        let stop = Stop::default();
        stop.request(StopCause::Leaving);
        assert_eq!(run("sleep 1000", 60_000, &stop).0, Err(NotSent::Interrupted));
    }
}
