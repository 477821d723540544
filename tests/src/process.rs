//! The engine as a process. It is killed at the end of the test.

use std::fs::{self, File};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::wait::eventually;

/// The exit code and the output of a process.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The exit code, or `None` if a signal ended the process.
    pub code: Option<i32>,
    /// The signal that ended the process.
    pub signal: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Outcome {
    /// Panics with all output unless the process exited with `code`.
    #[track_caller]
    pub fn exited(self, code: i32) -> Outcome {
        assert_eq!(
            self.code,
            Some(code),
            "exit code (left) is not the expected one; signal {:?}\n--- stdout\n{}\n--- stderr\n{}",
            self.signal,
            self.stdout,
            self.stderr
        );
        self
    }

    /// Standard output as JSON.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("stdout is not JSON: {error}\n{}\n{}", self.stdout, self.stderr))
    }
}

/// A running `windlass` process, killed when dropped.
#[derive(Debug)]
pub struct Engine {
    child: Child,
    what: String,
    stdout: PathBuf,
    stderr: PathBuf,
}

impl Engine {
    /// Starts `command` in its own process group. Its output goes to the files `output` with `.out` and `.err`.
    pub(crate) fn start(mut command: Command, output: PathBuf) -> Engine {
        let what = format!("{command:?}");
        let stdout = output.with_extension("out");
        let stderr = output.with_extension("err");
        let file = |path: &PathBuf| Stdio::from(File::create(path).expect("a sandbox can be written to"));
        let child = command
            .stdin(Stdio::null())
            .stdout(file(&stdout))
            .stderr(file(&stderr))
            .process_group(0)
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {what}: {error}"));
        Engine { child, what, stdout, stderr }
    }

    /// The process id.
    #[must_use]
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Sends a signal to this process alone, not to its group.
    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal)
            .unwrap_or_else(|error| panic!("{signal:?} to {}: {error}", self.what));
    }

    /// Sends SIGKILL and waits for the end. Processes of jobs get no signal.
    pub fn kill_9(&mut self) {
        self.child.kill().expect("a child can be killed");
        self.child.wait().expect("a child can be waited for");
    }

    /// Whether the process still runs.
    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("a child can be waited for").is_none()
    }

    /// The text on standard error so far.
    #[must_use]
    pub fn stderr_so_far(&self) -> String {
        read(&self.stderr)
    }

    /// The text on standard output so far.
    #[must_use]
    pub fn stdout_so_far(&self) -> String {
        read(&self.stdout)
    }

    /// Waits for the end of the process.
    pub fn wait(&mut self) -> Outcome {
        let what = format!("the end of {}", self.what);
        let status = eventually(&what, || self.child.try_wait().expect("a child can be waited for"));
        self.outcome(status)
    }

    fn outcome(&self, status: ExitStatus) -> Outcome {
        Outcome {
            code: status.code(),
            signal: status.signal(),
            stdout: read(&self.stdout),
            stderr: read(&self.stderr),
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // Both fail only if the process has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The text of a file with any bytes.
fn read(path: &PathBuf) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
}
