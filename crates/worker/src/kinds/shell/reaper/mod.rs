//! The process reaper: a small process beside the engine that kills the processes of jobs if the engine dies, or if the
//! engine is stopped for longer than its lease.
//!
//! A pipe connects the two. Even `kill -9` of the engine closes it; then the reaper kills every process group in the
//! table of attempts, and ends. The engine also tells the reaper how long its lease is confirmed. An engine that is
//! stopped, by SIGSTOP, a debugger or a frozen cgroup, can't stop its jobs, and a process on another host can't either.
//!
//! The reaper is a script for `/bin/sh`, so nothing has to be installed. On a machine without a shell, the next attempt
//! of a job still kills what an earlier one left, only later.

mod attempt_table;

use std::fs::File;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use self::attempt_table::AttemptTable;
use super::output_folder::OutputFolder;
use windlass_system::clock::Clock;
use windlass_system::process::HostScope;

const SCRIPT: &str = include_str!("reaper.sh");
/// If less than this is left of the lease, the reaper gets a message for every new group. By the reaper's clock the lease
/// may be over already, and then it reads the table only when a message comes.
const MESSAGES_BEFORE_END_MS: i64 = 1_000;

/// The engine's side of the reaper. The reaper's process is started with the first attempt.
#[derive(Debug)]
pub(super) struct Reaper {
    /// Every process of a job has the name of this folder in its environment.
    output_folder: OutputFolder,
    host_scope: HostScope,
    /// Made with the first attempt.
    attempts: OnceLock<AttemptTable>,
    process: Mutex<ReaperProcess>,
}

#[derive(Debug, Default)]
struct ReaperProcess {
    child: Option<Child>,
    /// When the lease ends for the reaper.
    lease_end: Option<LeaseEnd>,
    /// How often the lease was confirmed.
    confirmations: u64,
    /// The reaper could not be started, and that was logged.
    is_missing: bool,
}

/// An instant by two clocks.
#[derive(Debug, Clone, Copy)]
struct LeaseEnd {
    monotonic_ms: i64,
    /// As `/proc/uptime` counts, in hundredths of a second.
    uptime_cs: i64,
}

/// An attempt in the reaper's table. [`TableEntry::end`] removes it. If the value is dropped without that, the attempt
/// stays in the table, because a thread that panics has not seen its processes end.
#[must_use]
pub(super) struct TableEntry<'a> {
    reaper: &'a Reaper,
    attempts: &'a AttemptTable,
    line: usize,
}

impl TableEntry<'_> {
    /// Adds the process group of the attempt.
    pub(super) fn add_group(&self, group: Pid, clock: &Clock) {
        // The line is there already, so this can't fail because memory is short.
        let _written = self.attempts.add_group(self.line, group);
        let mut process = self.reaper.lock();
        let is_near = |end: LeaseEnd| clock.monotonic_ms() + MESSAGES_BEFORE_END_MS >= end.monotonic_ms;
        if process.lease_end.is_some_and(is_near) {
            self.reaper.send(&mut process, "! .\n");
        }
    }

    /// Removes the group. None of its processes runs, and another group may soon have its number.
    pub(super) fn end_group(&self) {
        let _written = self.attempts.clear_group(self.line);
    }

    /// Removes the attempt. None of its processes runs, or those that run may go on.
    pub(super) fn end(self) {
        let _written = self.attempts.clear(self.line);
    }
}

impl Reaper {
    /// `host_scope` says where the other workers are that wait for the end of the lease.
    pub(super) fn new(host_scope: HostScope) -> Reaper {
        Reaper {
            output_folder: OutputFolder::default(),
            host_scope,
            attempts: OnceLock::new(),
            process: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, ReaperProcess> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The folder in which each attempt may write its output into a file of its name. The reaper removes the folder when
    /// the engine is gone.
    ///
    /// # Errors
    /// The system's, if the folder can't be made.
    pub(super) fn output_folder(&self) -> std::io::Result<&Path> {
        self.output_folder.path()
    }

    /// Notes an attempt before its processes start.
    ///
    /// # Errors
    /// The system's, if there is no memory for the note.
    pub(super) fn add_attempt(&self, attempt: &str) -> std::io::Result<TableEntry<'_>> {
        let attempts = self.attempts()?;
        let mut process = self.lock();
        let line = attempts.add(attempt, process.confirmations)?;
        if process.child.is_none() {
            self.start(&mut process, attempts);
        }
        Ok(TableEntry { reaper: self, attempts, line })
    }

    fn attempts(&self) -> std::io::Result<&AttemptTable> {
        if self.attempts.get().is_none() {
            let _made_meanwhile = self.attempts.set(AttemptTable::new()?);
        }
        self.attempts.get().ok_or_else(|| std::io::Error::other("no table of attempts"))
    }

    /// Notes that the lease is confirmed until an instant of the clock's monotonic time.
    pub(super) fn confirm(&self, until_ms: i64, clock: &Clock) {
        let Some(uptime_cs) = clock.uptime_cs_at(until_ms) else { return };
        let mut process = self.lock();
        process.lease_end = Some(LeaseEnd { monotonic_ms: until_ms, uptime_cs });
        process.confirmations += 1;
        let Some(attempts) = self.attempts.get() else { return };
        if process.has_died() {
            tracing::warn!("the process reaper was killed: starting another one");
            self.replace(&mut process, attempts);
        } else if process.child.is_some() {
            let message = process.confirmation();
            self.send(&mut process, &message);
        } else if !attempts.is_empty() {
            self.start(&mut process, attempts);
        }
    }

    /// Closes the pipe, so that the reaper kills every attempt in its table and ends. Waits for that.
    pub(super) fn close(&self) {
        if let Some(mut child) = self.lock().child.take() {
            drop(child.stdin.take());
            // Somebody may have stopped the reaper.
            let _gone = kill_process_group(Pid::from_child(&child), Signal::CONT);
            let _gone = child.wait();
        }
    }

    /// Sends a message in one write, so that it arrives in one piece. The pipe does not block, because a reaper that
    /// does not read must not delay the engine. Such a reaper is replaced: the next one finds everything in the table.
    fn send(&self, process: &mut ReaperProcess, message: &str) {
        let Some(pipe) = process.child.as_mut().and_then(|child| child.stdin.as_mut()) else { return };
        if let Err(error) = pipe.write_all(message.as_bytes())
            && let Some(attempts) = self.attempts.get()
        {
            tracing::warn!(%error, "the process reaper does not read its messages: starting another one");
            self.replace(process, attempts);
        }
    }

    fn replace(&self, process: &mut ReaperProcess, attempts: &AttemptTable) {
        process.kill();
        self.start(process, attempts);
    }

    fn start(&self, process: &mut ReaperProcess, attempts: &AttemptTable) {
        match self.try_start(process, attempts) {
            Ok(()) => process.is_missing = false,
            Err(error) => {
                process.kill();
                if !std::mem::replace(&mut process.is_missing, true) {
                    tracing::warn!(%error, "no process reaper: jobs may outlive a killed engine for a while");
                }
            }
        }
    }

    fn try_start(&self, process: &mut ReaperProcess, attempts: &AttemptTable) -> std::io::Result<()> {
        let child = spawn(self.output_folder.path()?, self.host_scope, attempts.file()?)?;
        let confirmed = process.confirmation();
        let child = process.child.insert(child);
        child.stdin.as_mut().map_or(Ok(()), |pipe| pipe.write_all(confirmed.as_bytes()))
    }
}

impl Drop for Reaper {
    fn drop(&mut self) {
        let process = self.process.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(pipe) = process.child.as_mut().and_then(|child| child.stdin.as_mut())
            && self.attempts.get().is_none_or(AttemptTable::is_empty)
        {
            let _full_or_gone = pipe.write_all(b". .\n");
        }
        self.close();
    }
}

impl ReaperProcess {
    /// The message that the lease is confirmed; nothing before the first confirmation.
    fn confirmation(&self) -> String {
        let Some(end) = self.lease_end else { return String::new() };
        format!("= {} {}\n", end.uptime_cs, self.confirmations)
    }

    /// Kills the reaper and its timer before they could do anything.
    fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            // The child was not waited for yet, so no other process can have its number.
            let _gone = kill_process_group(Pid::from_child(&child), Signal::KILL);
            let _gone = child.wait();
        }
    }

    fn has_died(&self) -> bool {
        let Some(child) = &self.child else { return false };
        let seen = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        !matches!(waitid(WaitId::Pid(Pid::from_child(child)), seen), Ok(None))
    }
}

fn spawn(output_folder: &Path, host_scope: HostScope, attempts: File) -> std::io::Result<Child> {
    if output_folder.as_os_str().as_encoded_bytes().contains(&b'\n') {
        return Err(std::io::Error::other("the folder for temporary files has a line break in its name"));
    }
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", &without_comments(SCRIPT), "windlass-reaper"])
        .arg(output_folder)
        .arg(match host_scope {
            HostScope::OneKernel => "one-kernel",
            HostScope::ManyHosts => "many-hosts",
        })
        // With variables of a job in its environment it would be killed as a process of that job.
        .env_clear()
        .process_group(0)
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(attempts)
        .stderr(Stdio::null());
    if let Some(path) = std::env::var_os("PATH") {
        command.env("PATH", path);
    }
    let child = command.spawn()?;
    if let Some(pipe) = &child.stdin {
        rustix::io::ioctl_fionbio(pipe, true)?;
    }
    Ok(child)
}

/// The script without comments, because lists of processes show all of it.
fn without_comments(script: &str) -> String {
    let lines = script.lines().filter(|line| !line.trim_start().starts_with('#') && !line.is_empty());
    lines.flat_map(|line| [line, "\n"]).collect()
}

#[cfg(test)]
mod tests;
