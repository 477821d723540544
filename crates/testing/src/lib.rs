//! Runs the cases of a test file. A case is a run of a workflow on a temporary database: the engine is the real one, the jobs
//! are fakes, and the clock jumps from one due instant to the next.
//!
//! `file` reads `x.test.toml`. `run` makes one run of a case, `check` compares it with what the case expects, and `crash`
//! makes it again for each of its commits and ends the engine there.

mod check;
mod crash;
pub mod file;
mod run;

pub use check::{Difference, check};
pub use crash::{COMMITS_MAX, Crashes, Repeated, crash_after, crash_everywhere};
pub use file::{Case, TestFile};
pub use run::{CaseError, Interruptions, Observed, ObservedJob, Subject, run};
