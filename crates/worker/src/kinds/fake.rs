//! Fakes of attempts, for tests of workflows. What the end of an attempt means is decided by the same code as always.

use std::collections::BTreeMap;

use crate::handler::Attempt;

/// Says how an attempt ends.
pub type FakeEnds = dyn Fn(&Attempt) -> FakeEnd + Send + Sync;

/// How a faked attempt ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FakeEnd {
    /// How its process or its request ends.
    pub how: HowItEnds,
    /// What it prints or writes as its output, or the body of the answer.
    pub output: Vec<u8>,
    /// A line that it prints to standard error.
    pub error: Option<String>,
}

/// How a faked process or request ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HowItEnds {
    /// A process exits.
    Exit(u8),
    /// A signal ends a process.
    Signal(u8),
    /// A request is answered.
    Answer {
        /// The status, from 100 to 999.
        status: u16,
        /// Its headers.
        headers: BTreeMap<String, String>,
    },
    /// A request gets no answer.
    NoAnswer,
}
