//! The values of `--overlap` and `--catchup`.

use clap::ValueEnum;
use windlass_workflow::model::{Catchup, Overlap};

/// What happens at an occurrence while an earlier run is unfinished. The comments are the help.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(super) enum OverlapArgument {
    /// Skip the occurrence
    Skip,
    /// Only the latest occurrence waits
    #[value(alias = "queue-one")]
    QueueOne,
    /// All occurrences wait, in order
    #[value(alias = "queue-all")]
    QueueAll,
    /// Start the run beside the earlier one
    Allow,
    /// Cancel the earlier run
    #[value(alias = "cancel-running")]
    CancelRunning,
    /// Kill the earlier run at once
    #[value(alias = "terminate-running")]
    TerminateRunning,
}

impl OverlapArgument {
    pub(super) fn overlap(self) -> Overlap {
        match self {
            OverlapArgument::Skip => Overlap::Skip,
            OverlapArgument::QueueOne => Overlap::QueueOne,
            OverlapArgument::QueueAll => Overlap::QueueAll,
            OverlapArgument::Allow => Overlap::Allow,
            OverlapArgument::CancelRunning => Overlap::CancelRunning,
            OverlapArgument::TerminateRunning => Overlap::TerminateRunning,
        }
    }
}

/// What happens to missed runs. The comments are the help.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(super) enum CatchupArgument {
    /// Start no missed run
    None,
    /// Start the latest missed run
    Last,
    /// Start every missed run
    All,
}

impl CatchupArgument {
    pub(super) fn catchup(self) -> Catchup {
        match self {
            CatchupArgument::None => Catchup::None,
            CatchupArgument::Last => Catchup::Last,
            CatchupArgument::All => Catchup::All,
        }
    }
}
