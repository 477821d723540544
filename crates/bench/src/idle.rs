//! The processor time and the wake-ups of an idle process, as the kernel counts them.

use std::path::PathBuf;

use crate::error::BenchError;

/// What all threads of a process have used since their start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Processor time, in nanoseconds.
    pub(crate) cpu_ns: u64,
    /// How often a thread slept and was woken.
    pub(crate) wake_ups: u64,
}

impl Usage {
    /// The usage of all threads that the process has now.
    pub(crate) fn of(pid: u32) -> Result<Usage, BenchError> {
        let threads = PathBuf::from(format!("/proc/{pid}/task"));
        let entries =
            std::fs::read_dir(threads).map_err(BenchError::machine("read the threads of a process"))?;
        let mut usage = Usage { cpu_ns: 0, wake_ups: 0 };
        for thread in entries.flatten() {
            let status = crate::machine::field(thread.path().join("status"), "voluntary_ctxt_switches");
            let schedule = std::fs::read_to_string(thread.path().join("schedstat")).unwrap_or_default();
            usage.cpu_ns += first_number(&schedule);
            usage.wake_ups += status.as_deref().map_or(0, first_number);
        }
        Ok(usage)
    }

    /// The usage since an earlier one.
    pub(crate) fn since(self, before: Usage) -> Usage {
        Usage {
            cpu_ns: self.cpu_ns.saturating_sub(before.cpu_ns),
            wake_ups: self.wake_ups.saturating_sub(before.wake_ups),
        }
    }
}

fn first_number(text: &str) -> u64 {
    text.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_process_that_works_uses_the_processor() {
        let pid = std::process::id();
        let before = Usage::of(pid).unwrap();
        let mut sum = 0_u64;
        // The kernel updates its numbers only from time to time.
        while Usage::of(pid).unwrap().since(before).cpu_ns == 0 {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        assert_eq!(first_number("12 34 5"), 12);
        assert_eq!(first_number(""), 0);
    }
}
