//! The reaper: a tiny process beside the engine that kills the engine's jobs when the engine dies, or when it
//! is stopped for longer than its lease.
//!
//! Even `kill -9` closes the pipe between them; the reaper then kills every group that it finds on the board and
//! ends. And it is told how long the lease is confirmed: a process that is stopped (by SIGSTOP, a debugger,
//! a frozen cgroup) can't stop what it runs, and on another host nobody else can. It is a shell, so nothing
//! has to be installed or found. Where no shell is, on one machine nothing is lost but time: the next
//! attempt of a job sweeps what an earlier one left.

mod board;

use std::fs::File;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use self::board::Board;
use super::scratch::Scratch;
use windlass_system::clock::Clock;
use windlass_system::process::Reach;

const SCRIPT: &str = include_str!("reaper.sh");
/// So long before the lease's end the reaper is told of every group: by its own clock the lease may be over, and
/// then it looks at the board only when it is told to.
const TELL_BEFORE_MS: i64 = 1_000;

/// What the reaper has to know. Its process is started with the first one that it keeps.
#[derive(Debug)]
pub(in super::super::super) struct Reaper {
    /// Its name is in the environment of every process of a job.
    scratch: Scratch,
    reach: Reach,
    /// Made with the first attempt that it keeps.
    board: OnceLock<Board>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    process: Option<Child>,
    /// Until when the lease is confirmed: by the clock's monotonic time, and as `/proc/uptime` counts.
    until: Option<Until>,
    /// It could not be started, and that was said.
    is_missing: bool,
}

#[derive(Debug, Clone, Copy)]
struct Until {
    monotonic_ms: i64,
    uptime_cs: i64,
}

/// An attempt that the reaper ends when it has to, until [`Kept::end`]. One that is dropped before stays so: who
/// panics has not seen what it ran end.
#[must_use]
pub(super) struct Kept<'a> {
    reaper: &'a Reaper,
    board: &'a Board,
    line: usize,
}

impl Kept<'_> {
    /// A process group of the attempt runs.
    pub(super) fn add_group(&self, group: Pid, clock: &Clock) {
        // It can't fail: the line is there already.
        let _written = self.board.add_group(self.line, group);
        let mut state = self.reaper.lock();
        if state.until.is_some_and(|until| clock.monotonic_ms() + TELL_BEFORE_MS >= until.monotonic_ms) {
            self.reaper.tell(&mut state, "! .\n");
        }
    }

    /// Nothing of its group runs, whose number may soon be another one's.
    pub(super) fn end_group(&self) {
        let _written = self.board.clear_group(self.line);
    }

    /// Nothing of the attempt runs, or what does may go on.
    pub(super) fn end(self) {
        let _written = self.board.clear(self.line);
    }
}

impl Reaper {
    /// `reach` says where the others are that wait for the end of the lease.
    pub(in super::super::super) fn new(reach: Reach) -> Reaper {
        Reaper { scratch: Scratch::default(), reach, board: OnceLock::new(), state: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The folder for what attempts write their output to, each in a file of its name. The reaper removes it
    /// when the engine is gone.
    ///
    /// # Errors
    /// When it can't be made.
    pub(super) fn scratch(&self) -> std::io::Result<&Path> {
        self.scratch.folder()
    }

    /// Processes of an attempt are going to be started.
    ///
    /// # Errors
    /// When it can't be noted, for want of memory.
    pub(super) fn begin(&self, attempt: &str) -> std::io::Result<Kept<'_>> {
        let board = self.board()?;
        let line = board.add(attempt)?;
        let mut state = self.lock();
        if state.process.is_none() {
            self.start(&mut state, board);
        }
        Ok(Kept { reaper: self, board, line })
    }

    fn board(&self) -> std::io::Result<&Board> {
        if self.board.get().is_none() {
            let _made_meanwhile = self.board.set(Board::new()?);
        }
        self.board.get().ok_or_else(|| std::io::Error::other("no board"))
    }

    /// The lease is confirmed until an instant of the clock's monotonic time.
    pub(in super::super::super) fn confirm(&self, until_ms: i64, clock: &Clock) {
        let Some(uptime_cs) = clock.uptime_cs_at(until_ms) else { return };
        let mut state = self.lock();
        state.until = Some(Until { monotonic_ms: until_ms, uptime_cs });
        let Some(board) = self.board.get() else { return };
        if state.has_died() {
            tracing::warn!("the reaper of the jobs' processes was ended by somebody: starting another");
            self.replace(&mut state, board);
        } else if state.process.is_some() {
            self.tell(&mut state, &format!("= {uptime_cs}\n"));
        } else if !board.is_blank() {
            self.start(&mut state, board);
        }
    }

    /// Ends everything that it knows of, and itself: nobody else here is left to do it.
    pub(in super::super::super) fn close(&self) {
        if let Some(mut process) = self.lock().process.take() {
            drop(process.stdin.take());
            // Somebody may have stopped it.
            let _gone = kill_process_group(Pid::from_child(&process), Signal::CONT);
            let _gone = process.wait();
        }
    }

    /// One write a message, so that none is torn. The pipe does not block: a reaper that does not read must
    /// not hold the engine up, and is none. Another one finds everything on the board.
    fn tell(&self, state: &mut State, message: &str) {
        let Some(pipe) = state.process.as_mut().and_then(|process| process.stdin.as_mut()) else { return };
        if let Err(error) = pipe.write_all(message.as_bytes())
            && let Some(board) = self.board.get()
        {
            tracing::warn!(%error, "the reaper of the jobs' processes does not listen: starting another");
            self.replace(state, board);
        }
    }

    fn replace(&self, state: &mut State, board: &Board) {
        state.kill();
        self.start(state, board);
    }

    fn start(&self, state: &mut State, board: &Board) {
        match self.try_start(state, board) {
            Ok(()) => state.is_missing = false,
            Err(error) => {
                state.kill();
                if !std::mem::replace(&mut state.is_missing, true) {
                    tracing::warn!(%error, "no shell to keep watch: jobs may outlive a killed engine for a while");
                }
            }
        }
    }

    fn try_start(&self, state: &mut State, board: &Board) -> std::io::Result<()> {
        let child = spawn(self.scratch.folder()?, self.reach, board.file()?)?;
        let confirmed = state.until.map(|until| format!("= {}\n", until.uptime_cs)).unwrap_or_default();
        let child = state.process.insert(child);
        child.stdin.as_mut().map_or(Ok(()), |pipe| pipe.write_all(confirmed.as_bytes()))
    }
}

impl Drop for Reaper {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(pipe) = state.process.as_mut().and_then(|process| process.stdin.as_mut())
            && self.board.get().is_none_or(Board::is_blank)
        {
            let _full_or_gone = pipe.write_all(b". .\n");
        }
        self.close();
    }
}

impl State {
    /// Kills the reaper before it could do anything, and its timer.
    fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            // It is not waited for yet, so nobody else can have its number.
            let _gone = kill_process_group(Pid::from_child(&process), Signal::KILL);
            let _gone = process.wait();
        }
    }

    fn has_died(&self) -> bool {
        let Some(process) = &self.process else { return false };
        let seen = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        !matches!(waitid(WaitId::Pid(Pid::from_child(process)), seen), Ok(None))
    }
}

fn spawn(scratch: &Path, reach: Reach, board: File) -> std::io::Result<Child> {
    if scratch.as_os_str().as_encoded_bytes().contains(&b'\n') {
        return Err(std::io::Error::other("the folder for temporary files has a line break in its name"));
    }
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", &without_comments(SCRIPT), "windlass-reaper"])
        .arg(scratch)
        .arg(match reach {
            Reach::OneKernel => "one-kernel",
            Reach::ManyHosts => "many-hosts",
        })
        // Of a job's environment it must have nothing: it would be swept as a part of that job.
        .env_clear()
        .process_group(0)
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(board)
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

/// Shorter, where lists of processes show it.
fn without_comments(script: &str) -> String {
    let lines = script.lines().filter(|line| !line.trim_start().starts_with('#') && !line.is_empty());
    lines.flat_map(|line| [line, "\n"]).collect()
}

#[cfg(test)]
mod tests;
