//! Whose fault it is when the operating system refuses something on the way to a job's end: the job's, whose attempt fails,
//! or the engine's, which tries again. Pure.

use std::io;

use windlass_engine::transition::Outcome;
use windlass_system::shortage::is_shortage;

use crate::handler::failed;

/// What was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// The folder for the job's output file.
    Folder,
    /// Files of the engine's own, made before the process starts: pipes, what wakes the thread, the note for the
    /// process reaper.
    Files,
    /// To start the program.
    Start,
}

/// Who must do something about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Blame {
    Engine,
    Job,
}

/// Whose fault an error is.
pub(super) fn blame(refused: Refused, error: &io::Error) -> Blame {
    match refused {
        // Nothing of these depends on the job.
        Refused::Folder | Refused::Files => Blame::Engine,
        Refused::Start if is_shortage(error) => Blame::Engine,
        Refused::Start => Blame::Job,
    }
}

/// The outcome of an attempt that was refused something before its process ran.
pub(super) fn outcome(refused: Refused, what: &str, error: &io::Error) -> Outcome {
    match blame(refused, error) {
        Blame::Engine => Outcome::OutOfResources { reason: format!("{what}: {error}") },
        Blame::Job => failed(format!("{what}: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;

    use super::*;

    #[test]
    fn what_the_engine_lacks_is_not_the_jobs_fault() {
        const ENGINE: Blame = Blame::Engine;
        const JOB: Blame = Blame::Job;
        for (errno, when_starting) in [
            (Errno::MFILE, ENGINE),
            (Errno::NFILE, ENGINE),
            (Errno::AGAIN, ENGINE),
            (Errno::NOMEM, ENGINE),
            (Errno::NOBUFS, ENGINE),
            (Errno::NOENT, JOB),
            (Errno::NOTDIR, JOB),
            (Errno::ACCESS, JOB),
            (Errno::PERM, JOB),
            (Errno::TOOBIG, JOB),
            (Errno::NOEXEC, JOB),
            (Errno::TXTBSY, JOB),
            (Errno::LOOP, JOB),
            (Errno::NAMETOOLONG, JOB),
            (Errno::INVAL, JOB),
            (Errno::IO, JOB),
            (Errno::NOSPC, JOB),
            (Errno::ROFS, JOB),
        ] {
            let error = io::Error::from(errno);
            assert_eq!(blame(Refused::Start, &error), when_starting, "{error}");
            for refused in [Refused::Folder, Refused::Files] {
                assert_eq!(blame(refused, &error), ENGINE, "{refused:?} {error}");
            }
        }
        let own = io::Error::other("not the system's");
        assert_eq!((blame(Refused::Start, &own), blame(Refused::Files, &own)), (JOB, ENGINE));
    }
}
