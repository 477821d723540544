//! What follows if the operating system refuses something that an attempt needs. Either the engine lacks resources and
//! tries again later, or the job is wrong and its attempt fails. Pure.

use std::io;

use windlass_engine::transition::Outcome;
use windlass_system::shortage::is_shortage;

use crate::handler::failed;

/// What was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// The folder for the job's output file.
    Folder,
    /// Files of the engine that are opened before the process starts: pipes, the wake file, the reaper's table.
    Files,
    /// The start of the program.
    Start,
}

/// Who can do something about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Responsible {
    Engine,
    Job,
}

/// Who can do something about an error.
fn responsible(refused: Refused, error: &io::Error) -> Responsible {
    match refused {
        // Neither depends on the job.
        Refused::Folder | Refused::Files => Responsible::Engine,
        Refused::Start if is_shortage(error) => Responsible::Engine,
        Refused::Start => Responsible::Job,
    }
}

/// The outcome of an attempt that was refused something before its process ran.
pub(super) fn outcome(refused: Refused, what: &str, error: &io::Error) -> Outcome {
    match responsible(refused, error) {
        Responsible::Engine => Outcome::OutOfResources { reason: format!("{what}: {error}") },
        Responsible::Job => failed(format!("{what}: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;

    use super::*;

    #[test]
    fn a_lack_of_resources_is_no_failure_of_the_job() {
        const ENGINE: Responsible = Responsible::Engine;
        const JOB: Responsible = Responsible::Job;
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
            assert_eq!(responsible(Refused::Start, &error), when_starting, "{error}");
            for refused in [Refused::Folder, Refused::Files] {
                assert_eq!(responsible(refused, &error), ENGINE, "{refused:?} {error}");
            }
        }
        let own = io::Error::other("not the system's");
        assert_eq!((responsible(Refused::Start, &own), responsible(Refused::Files, &own)), (JOB, ENGINE));
    }
}
