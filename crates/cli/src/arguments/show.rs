//! The option of verbs that show a run while it executes.

use clap::{Args, ValueEnum};

/// What of the output of jobs is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Args)]
pub(crate) struct ShowOptions {
    /// Show what jobs write: all of it, that of failed jobs, or none
    /// [default: all; on a terminal, of jobs that run side by side their last lines, and all if they fail]
    #[arg(long, value_name = "all|failed|none", hide_possible_values = true)]
    pub(crate) show: Option<Show>,
}

/// Which output of jobs is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Show {
    /// Every line.
    All,
    /// The output of a job that failed.
    Failed,
    /// No line.
    None,
}
