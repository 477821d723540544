//! What happens when the answer to a commit is lost, so that it is unknown whether the transaction was kept.
//!
//! The server's own record of the transaction can't be trusted: after a crash or a failover the server gives the numbers of
//! lost transactions to other transactions. So each write says how to find out. It does so only after the transaction has
//! ended, because until then it may still be committed.

use super::Connection;
use crate::error::Result;

/// Whether a transaction was kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitOutcome {
    /// Its changes are in the tables.
    Kept,
    /// None of its changes is in the tables.
    NotKept,
}

/// Reads the evidence: rows that only this transaction can have written. Returns whether it was kept.
pub type OutcomeCheck = Box<dyn FnMut(&mut dyn Connection) -> Result<CommitOutcome> + Send>;

/// What a write does when the answer to its commit is lost.
pub enum Recovery {
    /// It checks whether it was kept, and runs again if not.
    Check(OutcomeCheck),
    /// It runs again. That is harmless: if the first run was kept, the result of the second run is correct too.
    Repeat,
    /// It reports an unknown outcome: [`crate::error::Unavailable::CommitUnknown`].
    Report,
}
