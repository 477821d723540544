//! How a database is opened, whichever it is.

/// What a commit survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// `kill -9` and a power cut: each commit is flushed to the disk.
    #[default]
    Full,
    /// `kill -9` of this process; a power cut, or a crash of a server, may take the last moments, never the
    /// consistency.
    Normal,
}

/// Whether missing tables, or a missing file, are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OpenMode {
    /// Make them.
    #[default]
    Create,
    /// Report it.
    Existing,
}
