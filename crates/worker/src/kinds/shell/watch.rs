//! Watches one process on the thread of its executor. One `poll` waits for output in both pipes, for the end of the
//! process, and for requests to stop.
//!
//! The write ends of the pipes stay open here until the process has ended. So the end of a silent process wakes this
//! thread once, and not again for each pipe that is closed. If files are scarce, the write ends are closed at once.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, pidfd_open, waitid};
use windlass_workflow::kinds::shell::OutputSource;

use super::output::OUTPUT_MAX_BYTES;
use super::stream::{PipeEvent, Stream, Streams, WriteEnds};
use super::{RETRY_PAUSE, group, kill};
use crate::handler::{Attempt, StopCause};
use windlass_engine::store::LogStream;
use windlass_system::shortage::is_shortage;

/// How long other processes of the group may write after the process has ended.
const GROUP_WRITES_MS: i64 = 100;
/// How long the pipes are read after the group was killed. A process in a session of its own may keep them open for
/// ever.
const READ_REST_MS: i64 = 500;
/// Time between two checks of whether a group that was asked to end is gone.
const GROUP_CHECK_MS: i64 = 20;
/// How much is read from a pipe at once.
const CHUNK_BYTES: usize = 16 * 1024;

/// What was seen of a process.
#[derive(Debug, Default)]
pub(super) struct Watched {
    /// Its standard output, if that is the job's output. It is at most one byte longer than the limit.
    pub(super) stdout: Vec<u8>,
    /// How the process was stopped, if it was, for people.
    pub(super) stopped: Option<String>,
    pub(super) status: Option<ExitStatus>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Running,
    /// SIGTERM was sent.
    Terminating {
        kill_at_ms: i64,
    },
    /// SIGKILL was sent.
    Killed,
    /// The process has ended. Others of its group may still write.
    GroupEnding {
        kill_at_ms: i64,
    },
    /// The group was killed. The rest in the pipes is read.
    ReadingRest {
        until_ms: i64,
    },
}

impl Phase {
    fn has_ended(self) -> bool {
        match self {
            Phase::Running | Phase::Terminating { .. } | Phase::Killed => false,
            Phase::GroupEnding { .. } | Phase::ReadingRest { .. } => true,
        }
    }

    fn next_at_ms(self) -> Option<i64> {
        match self {
            Phase::Running | Phase::Killed => None,
            Phase::Terminating { kill_at_ms } | Phase::GroupEnding { kill_at_ms } => Some(kill_at_ms),
            Phase::ReadingRest { until_ms } => Some(until_ms),
        }
    }
}

/// What `poll` found.
#[derive(Debug, Clone, Copy)]
struct PollResult {
    stdout: PipeEvent,
    stderr: PipeEvent,
    ended: bool,
    stop: bool,
}

struct Watch<'a> {
    attempt: &'a Attempt,
    group: Pid,
    stdout: Stream,
    stderr: Stream,
    /// The command that started the process owns the write ends. It is dropped when the process has ended.
    write_ends: Option<Command>,
    phase: Phase,
    stopped: Option<String>,
}

/// Watches until the process has ended and its pipes are read. It does not wait for the process, so that no other group
/// can get the number of this group.
pub(super) fn watch(
    attempt: &Attempt,
    child: &Child,
    streams: Streams,
    command: Command,
    source: OutputSource,
) -> std::io::Result<Watched> {
    let group = Pid::from_child(child);
    // If the system has no file for that, `wait` checks whether the process has ended.
    let ended = pidfd_open(group, PidfdFlags::empty()).ok();
    let Streams { stdout, stderr, write_ends } = streams;
    let mut watch = Watch {
        attempt,
        group,
        stdout,
        stderr,
        write_ends: match write_ends {
            WriteEnds::StayOpen => Some(command),
            WriteEnds::Close => {
                drop(command);
                None
            }
        },
        phase: Phase::Running,
        stopped: None,
    };
    let keep = match source {
        OutputSource::File => 0,
        OutputSource::Text | OutputSource::Json | OutputSource::Lines => OUTPUT_MAX_BYTES + 1,
    };
    let mut kept = Vec::new();
    // Many processes write nothing, so the buffer is made with the first output.
    let mut buffer = Vec::new();
    while !watch.is_finished() {
        let found = watch.wait(ended.as_ref())?;
        if buffer.is_empty() && [found.stdout, found.stderr].contains(&PipeEvent::Bytes) {
            buffer.resize(CHUNK_BYTES, 0);
        }
        let read = watch.stdout.read_event(found.stdout, attempt, &mut buffer);
        let bytes_left = keep - kept.len();
        kept.extend_from_slice(&buffer[..read.min(bytes_left)]);
        watch.stderr.read_event(found.stderr, attempt, &mut buffer);
        if !watch.step(found) {
            break;
        }
    }
    watch.stdout.finish(attempt);
    watch.stderr.finish(attempt);
    Ok(Watched { stdout: kept, stopped: watch.stopped, status: None })
}

impl Watch<'_> {
    /// Whether the process has ended and its pipes are read. If the group was asked to end, it must be gone too.
    fn is_finished(&self) -> bool {
        let is_read = self.stdout.has_ended() && self.stderr.has_ended();
        match self.phase {
            Phase::Running | Phase::Terminating { .. } | Phase::Killed => false,
            Phase::GroupEnding { .. } => is_read && (self.stopped.is_none() || group::is_gone(self.group)),
            Phase::ReadingRest { .. } => is_read,
        }
    }

    fn wait(&self, process: Option<&OwnedFd>) -> std::io::Result<PollResult> {
        let stop = self.attempt.stop().wake_file()?;
        let mut files = Vec::with_capacity(4);
        // A closed file would be reported as an error at once, so it is not in the list.
        let stdout = add(&mut files, self.stdout.file());
        let stderr = add(&mut files, self.stderr.file());
        let process = process.filter(|_file| !self.phase.has_ended());
        let end = add(&mut files, process.map(AsFd::as_fd));
        let stop = add(&mut files, Some(stop));
        let must_check = process.is_none() && !self.phase.has_ended();
        match poll(&mut files, self.timeout(must_check).as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) if is_shortage(&error.into()) => std::thread::sleep(RETRY_PAUSE),
            Err(error) => return Err(error.into()),
        }
        let of = |index: Option<usize>| index.map_or(PollFlags::empty(), |index| files[index].revents());
        Ok(PollResult {
            stdout: PipeEvent::of(of(stdout)),
            stderr: PipeEvent::of(of(stderr)),
            ended: !of(end).is_empty() || (must_check && self.has_process_ended()),
            stop: !of(stop).is_empty(),
        })
    }

    fn has_process_ended(&self) -> bool {
        let seen = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        !matches!(waitid(WaitId::Pid(self.group), seen), Ok(None))
    }

    fn timeout(&self, must_check: bool) -> Option<Timespec> {
        let clock = self.attempt.clock();
        let next_ms = self.phase.next_at_ms().map(|at_ms| (at_ms - clock.monotonic_ms()).max(0));
        let is_ticking = must_check || (self.stopped.is_some() && self.phase.has_ended());
        let wait_ms = match next_ms {
            // No event tells that the last process of a group has ended.
            next_ms if is_ticking => next_ms.map_or(GROUP_CHECK_MS, |next_ms| next_ms.min(GROUP_CHECK_MS)),
            next_ms => next_ms?,
        };
        let wait = clock.until(None, Duration::from_millis(u64::try_from(wait_ms).unwrap_or(0)));
        Timespec::try_from(wait).ok()
    }

    /// Enters the next phase if it is due. Returns whether to go on watching.
    fn step(&mut self, found: PollResult) -> bool {
        let now_ms = self.attempt.clock().monotonic_ms();
        if found.stop {
            // The file is reset before the cause is read, so that a later request makes it readable again.
            self.attempt.stop().reset_wake_file();
        }
        let is_fenced = self.attempt.stop().is_fenced();
        let is_urgent = is_fenced || self.attempt.stop().cause() == Some(StopCause::Killed);
        if found.ended && !self.phase.has_ended() {
            // A shell ends at once when it is asked to. Its children have the same time to end.
            let kill_at_ms = match self.phase {
                Phase::Terminating { kill_at_ms } => kill_at_ms,
                Phase::Running | Phase::Killed | Phase::GroupEnding { .. } | Phase::ReadingRest { .. } => {
                    now_ms + GROUP_WRITES_MS
                }
            };
            drop(self.write_ends.take());
            self.phase = Phase::GroupEnding { kill_at_ms: if is_urgent { now_ms } else { kill_at_ms } };
            return true;
        }
        let is_due = is_urgent || self.phase.next_at_ms().is_some_and(|at_ms| at_ms <= now_ms);
        match self.phase {
            Phase::Running => {
                if let Some(cause) = self.attempt.stop().cause() {
                    self.terminate(cause, now_ms);
                }
            }
            Phase::Terminating { .. } if is_due => {
                self.log(if is_fenced {
                    "its worker lost the lease: sending SIGKILL"
                } else {
                    "it did not end after SIGTERM: sending SIGKILL"
                });
                kill::group(self.group, Signal::KILL);
                self.stopped = self.stopped.take().map(|stopped| format!("{stopped}, then SIGKILL"));
                self.phase = Phase::Killed;
            }
            Phase::GroupEnding { .. } if is_due => {
                if let Some(stopped) = self.stopped.take_if(|_| !is_fenced && !group::is_gone(self.group)) {
                    self.log("its children did not end after SIGTERM: sending SIGKILL");
                    self.stopped = Some(format!("{stopped}, then SIGKILL"));
                }
                kill::group(self.group, Signal::KILL);
                self.phase = Phase::ReadingRest { until_ms: now_ms + READ_REST_MS };
            }
            Phase::ReadingRest { until_ms } if until_ms <= now_ms => return false,
            Phase::Terminating { .. }
            | Phase::Killed
            | Phase::GroupEnding { .. }
            | Phase::ReadingRest { .. } => {}
        }
        true
    }

    fn terminate(&mut self, cause: StopCause, now_ms: i64) {
        let why = why_stopped(cause, self.attempt.job().timeout_ms);
        let (signal, name, phase) = if cause == StopCause::Killed || self.attempt.stop().is_fenced() {
            // Another worker may start the job of a fenced attempt at this moment, so there is no time to end.
            (Signal::KILL, "SIGKILL", Phase::Killed)
        } else {
            let kill_at_ms = now_ms + self.attempt.grace_ms();
            (Signal::TERM, "SIGTERM", Phase::Terminating { kill_at_ms })
        };
        self.log(format!("{why}: sending {name}"));
        kill::group(self.group, signal);
        self.stopped = Some(format!("{why}: sent {name}"));
        self.phase = phase;
    }

    fn log(&self, text: impl Into<String>) {
        self.attempt.log(LogStream::Engine, text);
    }
}

/// Why a process is stopped, for people.
pub(super) fn why_stopped(cause: StopCause, timeout_ms: Option<i64>) -> String {
    match cause {
        StopCause::Cancelled => "cancelled".to_owned(),
        StopCause::TimedOut => match timeout_ms {
            Some(timeout_ms) => format!("timed out after {}", seconds(timeout_ms)),
            None => "timed out".to_owned(),
        },
        StopCause::PastDeadline => "not over at its deadline".to_owned(),
        StopCause::Leaving => "stopped with its worker".to_owned(),
        StopCause::Fenced => "stopped: its worker lost the lease".to_owned(),
        StopCause::Killed => "cancelled at once".to_owned(),
    }
}

/// Adds a file to the list, if there is one, and returns its index.
fn add<'a>(files: &mut Vec<PollFd<'a>>, file: Option<BorrowedFd<'a>>) -> Option<usize> {
    files.push(PollFd::from_borrowed_fd(file?, PollFlags::IN));
    Some(files.len() - 1)
}

fn seconds(duration_ms: i64) -> String {
    if duration_ms % 1_000 == 0 { format!("{} s", duration_ms / 1_000) } else { format!("{duration_ms} ms") }
}
