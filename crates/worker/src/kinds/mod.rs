//! What executes the jobs of each built-in kind, one folder a kind.

pub(crate) mod shell;
