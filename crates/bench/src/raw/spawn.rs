//! Starts processes as the executor does: with std's `Command`, which uses `posix_spawn`, and each in its own process group.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::error::BenchError;
use crate::interruption::Interruption;

/// Starts `true` and waits for its end, this many times one after the other.
pub(crate) fn spawn_chain(processes: usize, interruption: &Interruption) -> Result<Duration, BenchError> {
    let began = Instant::now();
    for _process in 0..processes {
        interruption.check()?;
        spawn()?;
    }
    Ok(began.elapsed())
}

/// The same on several threads, each with a part of the processes.
pub(crate) fn spawn_fan(
    processes: usize,
    threads: usize,
    interruption: &Interruption,
) -> Result<Duration, BenchError> {
    let began = Instant::now();
    std::thread::scope(|scope| {
        let shares =
            (0..threads).map(|thread| processes / threads + usize::from(thread < processes % threads));
        let threads: Vec<_> = shares
            .map(|share| {
                let chain = move || spawn_chain(share, interruption).map(|_time| ());
                std::thread::Builder::new().spawn_scoped(scope, chain)
            })
            .collect::<std::io::Result<_>>()
            .map_err(BenchError::machine("start a thread"))?;
        let panicked = |_panic| BenchError::Child("a thread that starts processes panicked".to_owned());
        threads.into_iter().try_for_each(|thread| thread.join().map_err(panicked)?)
    })?;
    Ok(began.elapsed())
}

pub(super) fn spawn() -> Result<(), BenchError> {
    let mut command = Command::new("true");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    let status = command.status().map_err(BenchError::machine("start `true`"))?;
    match status.success() {
        true => Ok(()),
        false => Err(BenchError::Child(format!("`true` ended with {status}"))),
    }
}
