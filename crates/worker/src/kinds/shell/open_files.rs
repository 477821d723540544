//! How many files this process may have open, and how many jobs at once that allows.
//!
//! A program that executes jobs raises its soft limit to what its threads need, as far as the hard limit allows. The
//! processes of jobs get the original limit back, because programs that call `select` break if they have more than 1,024
//! files. The library changes no limit by itself: call [`reserve`] for that.

use std::sync::OnceLock;

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};

use windlass_db::error::{Error, Result, Unavailable};

/// Files of a running job: two pipes, its process, and the wake file of its thread.
const FILES_PER_JOB: u64 = 4;
/// Files of a job at most. Some are open only while its process starts or is searched for.
const FILES_PER_JOB_MAX: u64 = 8;
/// Files that the engine opens later: connections to the database, write-ahead logs, the process reaper, and files that
/// are open for a moment.
const FILES_OF_ENGINE: u64 = 56;

/// How many files were open at the first call. The engine opens the others.
static OPEN_AT_FIRST_CALL: OnceLock<u64> = OnceLock::new();
/// The limit before it was raised.
static ORIGINAL_LIMIT: OnceLock<Rlimit> = OnceLock::new();

/// What a process may have and what it needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileDemand {
    threads: u64,
    open: u64,
    /// `None` is no limit.
    soft: Option<u64>,
    hard: Option<u64>,
}

/// What to do about a demand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LimitPlan {
    /// The new soft limit, if it changes.
    soft: Option<u64>,
    /// For how many threads there are files. 0 if there are not enough for one.
    threads: u64,
}

fn plan(demand: FileDemand) -> LimitPlan {
    let FileDemand { threads, open, soft, hard } = demand;
    let own = open.saturating_add(FILES_OF_ENGINE);
    let Some(present) = soft else { return LimitPlan { soft: None, threads } };
    let needed = own.saturating_add(threads.saturating_mul(FILES_PER_JOB));
    let wanted = own.saturating_add(threads.saturating_mul(FILES_PER_JOB_MAX));
    let allowed = wanted.min(hard.unwrap_or(u64::MAX));
    let raised = (present < needed && allowed > present).then_some(allowed);
    let served = raised.unwrap_or(present).saturating_sub(own) / FILES_PER_JOB;
    LimitPlan { soft: raised, threads: threads.min(served) }
}

/// Makes sure that each of these threads can run a job. Raises the soft limit of this process if it must. Returns how
/// many threads can: fewer if the hard limit does not allow more.
///
/// # Errors
/// [`Unavailable::OutOfResources`] if not even one thread can run a job.
pub fn reserve(threads: i64) -> Result<i64> {
    let limit = getrlimit(Resource::Nofile);
    let open = *OPEN_AT_FIRST_CALL
        .get_or_init(|| std::fs::read_dir("/proc/self/fd").map_or(0, |files| files.count() as u64));
    let wanted = u64::try_from(threads).unwrap_or(0);
    let LimitPlan { soft, threads } =
        plan(FileDemand { threads: wanted, open, soft: limit.current, hard: limit.maximum });
    let mut served = threads;
    if let Some(raised) = soft {
        match setrlimit(Resource::Nofile, Rlimit { current: Some(raised), maximum: limit.maximum }) {
            Ok(()) => {
                let _first = ORIGINAL_LIMIT.set(limit);
            }
            // The system does not allow it, so the present limit must do.
            Err(_refused) => {
                served = plan(FileDemand { threads: wanted, open, soft: limit.current, hard: limit.current })
                    .threads;
            }
        }
    }
    if served == 0 && wanted > 0 {
        let most = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
        let least = open + FILES_OF_ENGINE + FILES_PER_JOB;
        let detail = format!(
            "this process may open {most} files and needs {least} to execute one job at a time: raise the limit (ulimit -n)"
        );
        return Err(Error::unavailable("start a worker", Unavailable::OutOfResources(detail)));
    }
    Ok(i64::try_from(served).unwrap_or(i64::MAX))
}

/// Gives a process that was just started the limit that this process had before.
pub(super) fn restore_limit(process: Pid) {
    if let Some(original) = ORIGINAL_LIMIT.get() {
        // A program that runs as another user keeps the raised limit.
        let _not_ours = prlimit(Some(process), Resource::Nofile, Rlimit { ..*original });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_raised_as_far_as_needed_and_allowed_and_decides_how_many_threads_there_are() {
        let own = 10 + FILES_OF_ENGINE;
        for (what, threads, soft, hard, expected) in [
            ("enough", 8, Some(1_024), Some(20_000), LimitPlan { soft: None, threads: 8 }),
            ("no limit", 1_024, None, None, LimitPlan { soft: None, threads: 1_024 }),
            (
                "raised",
                300,
                Some(1_024),
                Some(20_000),
                LimitPlan { soft: Some(own + 300 * FILES_PER_JOB_MAX), threads: 300 },
            ),
            ("no hard limit", 300, Some(64), None, LimitPlan { soft: Some(own + 2_400), threads: 300 }),
            (
                "as far as allowed",
                300,
                Some(1_024),
                Some(own + 1_200),
                LimitPlan { soft: Some(own + 1_200), threads: 300 },
            ),
            (
                "capped",
                300,
                Some(1_024),
                Some(own + 403),
                LimitPlan { soft: None, threads: (1_024 - own) / FILES_PER_JOB },
            ),
            (
                "capped after it was raised",
                300,
                Some(100),
                Some(own + 403),
                LimitPlan { soft: Some(own + 403), threads: 100 },
            ),
            ("too few for one", 8, Some(own + 3), Some(own + 3), LimitPlan { soft: None, threads: 0 }),
            ("hardly any", 8, Some(5), Some(5), LimitPlan { soft: None, threads: 0 }),
        ] {
            assert_eq!(plan(FileDemand { threads, open: 10, soft, hard }), expected, "{what}");
        }
    }
}
