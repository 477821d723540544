//! What the databases can do differently, as far as their users must know.

use windlass_system::process::Reach;

use crate::Dialect;

/// What a database can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// How many transactions write at the same time.
    pub writers: Writers,
    /// Where the processes can be that use it.
    pub reach: Reach,
}

/// How many transactions write at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writers {
    /// One: what it has read stays as it is until its end, without locks.
    OneAtATime,
    /// Many: rows have to be locked before they are judged.
    SideBySide,
}

impl Dialect {
    /// What the database can do that speaks this dialect.
    #[must_use]
    pub fn capabilities(self) -> Capabilities {
        match self {
            // In WAL mode a database is shared through memory.
            Dialect::Sqlite => Capabilities { writers: Writers::OneAtATime, reach: Reach::OneKernel },
            Dialect::Postgres => Capabilities { writers: Writers::SideBySide, reach: Reach::ManyHosts },
        }
    }
}
