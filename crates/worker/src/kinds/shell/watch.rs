//! Watches one process: reads both pipes as they fill, hears of its end and of stop requests, all in
//! one `poll` on the executor's own thread.
//!
//! The write ends of the pipes stay open here until the process has ended. So the end of a process that says
//! nothing wakes this thread once, and not once more for each pipe that it closes. Where files are scarce they are
//! closed at once.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, pidfd_open, waitid};
use windlass_workflow::kinds::shell::OutputSource;

use super::output::OUTPUT_MAX_BYTES;
use super::stream::{Said, Stream, Streams, WriteEnds};
use super::{LOOK_AGAIN, group, kill};
use crate::attempt::Attempt;
use crate::stop::StopCause;
use windlass_engine::store::LogStream;
use windlass_system::shortage::is_shortage;

/// After the process's own end, others of its group may finish writing for so long.
const LINGER_MS: i64 = 100;
/// Then the group is killed, and what is left in the pipes is read for so long: a process in a session
/// of its own may hold them open for ever.
const DRAIN_MS: i64 = 500;
/// How often a group that was asked to end is looked at.
const GROUP_TICK_MS: i64 = 20;
/// Read at once.
const CHUNK_BYTES: usize = 16 * 1024;

/// What was seen of a process.
#[derive(Debug, Default)]
pub(super) struct Watched {
    /// Its standard output, when that is its output; one byte over the limit at most.
    pub(super) stdout: Vec<u8>,
    /// How it was stopped, if it was.
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
    /// It has ended; others of its group may still write.
    Lingering {
        kill_at_ms: i64,
    },
    /// Everything was killed; the pipes are read out.
    Draining {
        until_ms: i64,
    },
}

impl Phase {
    fn has_ended(self) -> bool {
        match self {
            Phase::Running | Phase::Terminating { .. } | Phase::Killed => false,
            Phase::Lingering { .. } | Phase::Draining { .. } => true,
        }
    }

    fn next_at_ms(self) -> Option<i64> {
        match self {
            Phase::Running | Phase::Killed => None,
            Phase::Terminating { kill_at_ms } | Phase::Lingering { kill_at_ms } => Some(kill_at_ms),
            Phase::Draining { until_ms } => Some(until_ms),
        }
    }
}

/// Which files have something to say.
#[derive(Debug, Clone, Copy)]
struct Ready {
    stdout: Said,
    stderr: Said,
    ended: bool,
    stop: bool,
}

struct Watch<'a> {
    attempt: &'a Attempt,
    group: Pid,
    stdout: Stream,
    stderr: Stream,
    /// The command that started the process has them, until the process ends.
    write_ends: Option<Command>,
    phase: Phase,
    stopped: Option<String>,
}

/// Watches until the process has ended and its pipes are read out. It is not waited for: until then
/// its group's number stays its own.
pub(super) fn watch(
    attempt: &Attempt,
    child: &Child,
    streams: Streams,
    command: Command,
    source: OutputSource,
) -> std::io::Result<Watched> {
    let group = Pid::from_child(child);
    // Without one, for want of files, its end is looked for.
    let ended = pidfd_open(group, PidfdFlags::empty()).ok();
    let Streams { stdout, stderr, write_ends: kept_here } = streams;
    let mut watch = Watch {
        attempt,
        group,
        stdout,
        stderr,
        write_ends: match kept_here {
            WriteEnds::Stay => Some(command),
            WriteEnds::Go => {
                drop(command);
                None
            }
        },
        phase: Phase::Running,
        stopped: None,
    };
    let keep = match source {
        OutputSource::File => 0,
        OutputSource::Text | OutputSource::Json => OUTPUT_MAX_BYTES + 1,
    };
    let mut kept = Vec::new();
    // Many processes write nothing.
    let mut buffer = Vec::new();
    while !watch.is_over() {
        let ready = watch.wait(ended.as_ref())?;
        if buffer.is_empty() && [ready.stdout, ready.stderr].contains(&Said::Bytes) {
            buffer.resize(CHUNK_BYTES, 0);
        }
        let read = watch.stdout.hear(ready.stdout, attempt, &mut buffer);
        let room = keep - kept.len();
        kept.extend_from_slice(&buffer[..read.min(room)]);
        watch.stderr.hear(ready.stderr, attempt, &mut buffer);
        if !watch.step(ready) {
            break;
        }
    }
    watch.stdout.finish(attempt);
    watch.stderr.finish(attempt);
    Ok(Watched { stdout: kept, stopped: watch.stopped, status: None })
}

impl Watch<'_> {
    /// The process has ended, its pipes are read out, and of a group that was asked to end nobody is
    /// left.
    fn is_over(&self) -> bool {
        let is_read_out = self.stdout.has_ended() && self.stderr.has_ended();
        match self.phase {
            Phase::Running | Phase::Terminating { .. } | Phase::Killed => false,
            Phase::Lingering { .. } => is_read_out && (self.stopped.is_none() || group::is_gone(self.group)),
            Phase::Draining { .. } => is_read_out,
        }
    }

    fn wait(&self, process: Option<&OwnedFd>) -> std::io::Result<Ready> {
        let stop = self.attempt.stop().wake_file()?;
        let mut files = Vec::with_capacity(4);
        // A closed place in the list would be reported as an error at once: leave it out.
        let stdout = add(&mut files, self.stdout.file());
        let stderr = add(&mut files, self.stderr.file());
        let process = process.filter(|_file| !self.phase.has_ended());
        let end = add(&mut files, process.map(AsFd::as_fd));
        let stop = add(&mut files, Some(stop));
        let is_looked_for = process.is_none() && !self.phase.has_ended();
        match poll(&mut files, self.timeout(is_looked_for).as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) if is_shortage(&error.into()) => std::thread::sleep(LOOK_AGAIN),
            Err(error) => return Err(error.into()),
        }
        let of = |place: Option<usize>| place.map_or(PollFlags::empty(), |place| files[place].revents());
        Ok(Ready {
            stdout: Said::of(of(stdout)),
            stderr: Said::of(of(stderr)),
            ended: !of(end).is_empty() || (is_looked_for && self.is_dead()),
            stop: !of(stop).is_empty(),
        })
    }

    fn is_dead(&self) -> bool {
        let seen = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        !matches!(waitid(WaitId::Pid(self.group), seen), Ok(None))
    }

    fn timeout(&self, is_looked_for: bool) -> Option<Timespec> {
        let clock = self.attempt.store.clock();
        let next_ms = self.phase.next_at_ms().map(|at_ms| (at_ms - clock.monotonic_ms()).max(0));
        let is_ticking = is_looked_for || (self.stopped.is_some() && self.phase.has_ended());
        let wait_ms = match next_ms {
            // Nothing tells when the last of a group ends: look.
            next_ms if is_ticking => next_ms.map_or(GROUP_TICK_MS, |next_ms| next_ms.min(GROUP_TICK_MS)),
            next_ms => next_ms?,
        };
        let wait = clock.until(None, Duration::from_millis(u64::try_from(wait_ms).unwrap_or(0)));
        Timespec::try_from(wait).ok()
    }

    /// Goes on to the next phase when it is time. `false` ends the watch.
    fn step(&mut self, ready: Ready) -> bool {
        let now_ms = self.attempt.store.clock().monotonic_ms();
        if ready.stop {
            // Before the wishes are looked at: one that comes later rings again.
            self.attempt.stop().heard();
        }
        let is_fenced = self.attempt.stop().is_fenced();
        let is_urgent = is_fenced || self.attempt.stop().cause() == Some(StopCause::Killed);
        if ready.ended && !self.phase.has_ended() {
            // The shell of a script ends at once when it is asked to; its children have the same grace.
            let kill_at_ms = match self.phase {
                Phase::Terminating { kill_at_ms } => kill_at_ms,
                Phase::Running | Phase::Killed | Phase::Lingering { .. } | Phase::Draining { .. } => {
                    now_ms + LINGER_MS
                }
            };
            drop(self.write_ends.take());
            self.phase = Phase::Lingering { kill_at_ms: if is_urgent { now_ms } else { kill_at_ms } };
            return true;
        }
        let is_time = is_urgent || self.phase.next_at_ms().is_some_and(|at_ms| at_ms <= now_ms);
        match self.phase {
            Phase::Running => {
                if let Some(cause) = self.attempt.stop().cause() {
                    self.terminate(cause, now_ms);
                }
            }
            Phase::Terminating { .. } if is_time => {
                self.say(if is_fenced {
                    "its worker lost the lease: sending SIGKILL"
                } else {
                    "it did not end after SIGTERM: sending SIGKILL"
                });
                kill::group(self.group, Signal::KILL);
                self.stopped = self.stopped.take().map(|stopped| format!("{stopped}, then SIGKILL"));
                self.phase = Phase::Killed;
            }
            Phase::Lingering { .. } if is_time => {
                if let Some(stopped) = self.stopped.take_if(|_| !is_fenced && !group::is_gone(self.group)) {
                    self.say("its children did not end after SIGTERM: sending SIGKILL");
                    self.stopped = Some(format!("{stopped}, then SIGKILL"));
                }
                kill::group(self.group, Signal::KILL);
                self.phase = Phase::Draining { until_ms: now_ms + DRAIN_MS };
            }
            Phase::Draining { until_ms } if until_ms <= now_ms => return false,
            Phase::Terminating { .. } | Phase::Killed | Phase::Lingering { .. } | Phase::Draining { .. } => {}
        }
        true
    }

    fn terminate(&mut self, cause: StopCause, now_ms: i64) {
        let why = match cause {
            StopCause::Cancelled => "cancelled".to_owned(),
            StopCause::TimedOut => match self.attempt.job().timeout_ms {
                Some(timeout_ms) => format!("timed out after {}", seconds(timeout_ms)),
                None => "timed out".to_owned(),
            },
            StopCause::Leaving => "stopped with its worker".to_owned(),
            StopCause::Fenced => "stopped: its worker lost the lease".to_owned(),
            StopCause::Killed => "cancelled at once".to_owned(),
        };
        let (signal, name, phase) = if cause == StopCause::Killed || self.attempt.stop().is_fenced() {
            // Of a fenced one somebody else may start the job at this moment: no time for grace.
            (Signal::KILL, "SIGKILL", Phase::Killed)
        } else {
            let kill_at_ms = now_ms + self.attempt.grace_ms;
            (Signal::TERM, "SIGTERM", Phase::Terminating { kill_at_ms })
        };
        self.say(format!("{why}: sending {name}"));
        kill::group(self.group, signal);
        self.stopped = Some(format!("{why}: sent {name}"));
        self.phase = phase;
    }

    fn say(&self, text: impl Into<String>) {
        self.attempt.log(LogStream::Engine, text);
    }
}

/// Adds a file to wait for, if there is one, and returns its place.
fn add<'a>(files: &mut Vec<PollFd<'a>>, file: Option<BorrowedFd<'a>>) -> Option<usize> {
    files.push(PollFd::from_borrowed_fd(file?, PollFlags::IN));
    Some(files.len() - 1)
}

fn seconds(duration_ms: i64) -> String {
    if duration_ms % 1_000 == 0 { format!("{} s", duration_ms / 1_000) } else { format!("{duration_ms} ms") }
}
