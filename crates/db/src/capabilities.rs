//! The differences between the databases that their users must know.

use windlass_system::process::HostScope;

use crate::Dialect;

/// What a database can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// How many transactions write at the same time.
    pub writers: Writers,
    /// Where the processes that use it can run.
    pub host_scope: HostScope,
}

/// How many transactions write at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writers {
    /// One: the rows that it has read do not change before it ends, without locks.
    OneAtATime,
    /// Many: a transaction must lock rows before it decides about them.
    SideBySide,
}

impl Dialect {
    /// What the database of this dialect can do.
    #[must_use]
    pub fn capabilities(self) -> Capabilities {
        match self {
            // In WAL mode the processes that use a file share memory.
            Dialect::Sqlite => {
                Capabilities { writers: Writers::OneAtATime, host_scope: HostScope::OneKernel }
            }
            Dialect::Postgres => {
                Capabilities { writers: Writers::SideBySide, host_scope: HostScope::ManyHosts }
            }
        }
    }
}
