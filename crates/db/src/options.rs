//! How a database is opened: options of both databases.

/// What a commit survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// `kill -9` and a power cut: each commit is flushed to the disk.
    #[default]
    Full,
    /// `kill -9` of this process. A power cut, or a crash of a server, may undo the latest commits. The database stays
    /// consistent.
    Normal,
}

/// Whether missing tables, or a missing file, are created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OpenMode {
    /// Create them.
    #[default]
    Create,
    /// Report an error.
    Existing,
}
