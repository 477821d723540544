//! What happens when the answer to a commit is lost.
//!
//! Then nobody knows whether the transaction was kept. A server's own record of it can't be trusted: after a crash or a
//! failover the server gives the numbers of lost transactions to others. So each write says what it does. It is decided
//! only when the transaction is over: it can't be kept any more after that.

use super::Connection;
use crate::error::Result;

/// Whether a transaction was kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Everything that it wrote is in the tables.
    Kept,
    /// Nothing is.
    NotKept,
}

/// Reads whether a transaction was kept, from rows that only this transaction can have written.
pub type Proof = Box<dyn FnMut(&mut dyn Connection) -> Result<Fate> + Send>;

/// What a write does when the answer to its commit is lost.
pub enum Recovery {
    /// It asks, and runs again when it was not kept.
    Prove(Proof),
    /// It runs again. If the first run was kept, the second one changes nothing that matters, and its answer is true.
    Repeat,
    /// It reports that nobody knows: [`crate::error::Unavailable::CommitUnknown`].
    Report,
}
