//! Child processes of a measurement, for measuring memory and for the work of another process.
//!
//! The program starts itself with `bench --child TASK`. The address of the database is in the environment, so that a list of
//! processes shows no password.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::str::FromStr;
use windlass_engine::HasStore;

use serde::{Deserialize, Serialize};
use windlass::Windlass;
use windlass_db::Durability;
use windlass_engine::store::NewJob;

use crate::error::BenchError;
use crate::interruption::Interruption;
use crate::machine::{field, kilobytes};
use crate::noop::{self, NOOP, monotonic_ns};
use crate::scratch::Scratch;
use crate::workflows;

/// The variable that names the database to a child.
const DATABASE: &str = "WINDLASS_DB";
/// The variable with the durability of its commits.
const DURABILITY: &str = "WINDLASS_DURABILITY";

/// What a child does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChildTask {
    /// Enqueues a job for each line that it reads, and writes the time at which the job was accepted.
    Enqueue,
    /// Executes this many pending jobs.
    Drain(usize),
    /// Submits and executes a graph of about this many jobs.
    Graph(usize),
}

impl FromStr for ChildTask {
    type Err = String;

    fn from_str(text: &str) -> Result<ChildTask, String> {
        let (name, count) = text.split_once(':').unwrap_or((text, "0"));
        let count = count.parse().map_err(|error| format!("`{count}` is no number: {error}"))?;
        match name {
            "enqueue" => Ok(ChildTask::Enqueue),
            "drain" => Ok(ChildTask::Drain(count)),
            "graph" => Ok(ChildTask::Graph(count)),
            other => Err(format!("`{other}` is no task")),
        }
    }
}

impl std::fmt::Display for ChildTask {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ChildTask::Enqueue => formatter.write_str("enqueue"),
            ChildTask::Drain(jobs) => write!(formatter, "drain:{jobs}"),
            ChildTask::Graph(jobs) => write!(formatter, "graph:{jobs}"),
        }
    }
}

/// The measurements of a child process, which it writes as JSON.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct ChildReport {
    /// The most memory that it used, in bytes.
    pub(crate) peak_bytes: u64,
    /// The time to submit the run, in seconds.
    pub(crate) submit_s: f64,
    /// The time to execute it, in seconds.
    pub(crate) execute_s: f64,
}

/// Executes the task of a child process.
///
/// # Errors
/// The error of the database.
pub fn execute_child(task: ChildTask, windlass: &Windlass) -> Result<(), BenchError> {
    // The parent ends this process.
    let never = Interruption::default();
    match task {
        ChildTask::Enqueue => enqueue(windlass),
        ChildTask::Drain(jobs) => {
            let execute = noop::drain(windlass, jobs, &never)?;
            say(0.0, execute.as_secs_f64())
        }
        ChildTask::Graph(jobs) => {
            let times = noop::run(windlass, graph(jobs), &never)?;
            say(times.submit.as_secs_f64(), times.run.as_secs_f64())
        }
    }
}

/// A graph of layers of a hundred jobs, or of fewer if it is small.
fn graph(jobs: usize) -> windlass_workflow::Workflow {
    let width = jobs.isqrt().clamp(1, 100);
    workflows::layers(jobs / width, width)
}

fn enqueue(windlass: &Windlass) -> Result<(), BenchError> {
    for line in std::io::stdin().lock().lines() {
        line.map_err(BenchError::machine("read what to do"))?;
        windlass.store().jobs().enqueue(vec![NewJob::new(NOOP, "null")])?;
        let acknowledged_ns = monotonic_ns();
        write_line(&acknowledged_ns.to_string())?;
    }
    Ok(())
}

fn say(submit_s: f64, execute_s: f64) -> Result<(), BenchError> {
    let peak_bytes = field("/proc/self/status", "VmHWM").and_then(|text| kilobytes(&text)).unwrap_or(0);
    let report = ChildReport { peak_bytes, submit_s, execute_s };
    write_line(&serde_json::to_string(&report).map_err(|error| BenchError::Child(error.to_string()))?)
}

fn write_line(line: &str) -> Result<(), BenchError> {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{line}").and_then(|()| stdout.flush()).map_err(BenchError::machine("say what it did"))
}

/// A child process. It is killed when this is dropped.
pub(crate) struct Started {
    pub(crate) child: Child,
}

impl Drop for Started {
    fn drop(&mut self) {
        // This fails if it has ended already.
        let _gone = self.child.kill();
        let _status = self.child.wait();
    }
}

/// A command that starts this program on a database, in an empty folder.
pub(crate) fn command(scratch: &Scratch<'_>, address: &Path, arguments: &[&str]) -> Command {
    let durability = match scratch.plan.durability {
        Durability::Full => "full",
        Durability::Normal => "normal",
    };
    let mut command = Command::new(&scratch.plan.program);
    command.args(arguments).env(DATABASE, address).env(DURABILITY, durability);
    // A service would read a configuration in its folder. Ctrl-C is for the parent, which ends its children.
    command.current_dir(scratch.folder()).process_group(0);
    command
}

/// Starts a child process for a task, waits for its end, and returns its measurements.
pub(crate) fn measure(
    scratch: &Scratch<'_>,
    address: &Path,
    task: ChildTask,
) -> Result<ChildReport, BenchError> {
    let mut command = command(scratch, address, &["bench", "--child", &task.to_string()]);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut started = Started { child: command.spawn().map_err(BenchError::machine("start a process"))? };
    let mut output = started.child.stdout.take();
    noop::wait_until(&scratch.plan.interruption, "a process", || {
        let status = started.child.try_wait().map_err(BenchError::machine("wait for a process"))?;
        match status {
            None => Ok(false),
            Some(status) if status.success() => Ok(true),
            Some(status) => Err(BenchError::Child(format!("it ended with {status}"))),
        }
    })?;
    // The child writes one line, which fits into the pipe.
    let line = output.take().map(BufReader::new).and_then(|output| output.lines().next());
    let line = line.transpose().map_err(BenchError::machine("read from a process"))?.unwrap_or_default();
    serde_json::from_str(&line).map_err(|error| BenchError::Child(format!("it said `{line}`: {error}")))
}

/// Another process that enqueues a job on request.
pub(crate) struct Producer {
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
    _started: Started,
}

impl Producer {
    pub(crate) fn start(scratch: &Scratch<'_>, address: &Path) -> Result<Producer, BenchError> {
        let mut command = command(scratch, address, &["bench", "--child", &ChildTask::Enqueue.to_string()]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut started = Started { child: command.spawn().map_err(BenchError::machine("start a process"))? };
        let pipes = started.child.stdin.take().zip(started.child.stdout.take());
        let (requests, answers) = pipes.ok_or_else(|| BenchError::Child("it has no pipes".to_owned()))?;
        Ok(Producer { requests, answers: BufReader::new(answers), _started: started })
    }

    /// Lets it enqueue a job, and returns the time at which the job was accepted.
    pub(crate) fn enqueue(&mut self) -> Result<i64, BenchError> {
        let asked = self.requests.write_all(b"\n").and_then(|()| self.requests.flush());
        asked.map_err(BenchError::machine("ask a process"))?;
        let mut line = String::new();
        self.answers.read_line(&mut line).map_err(BenchError::machine("read from a process"))?;
        line.trim().parse().map_err(|_error| BenchError::Child(format!("it said `{line}`")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_read_as_they_are_written() {
        for task in [ChildTask::Enqueue, ChildTask::Drain(7), ChildTask::Graph(8)] {
            assert_eq!(task.to_string().parse(), Ok(task));
        }
        for text in ["", "dance", "drain:x"] {
            assert!(text.parse::<ChildTask>().is_err(), "{text}");
        }
    }
}
