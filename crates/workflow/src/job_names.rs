//! The names of the jobs of a file.

use std::collections::HashMap;

/// Finds a job by its name, and lists the names in the order of the file.
#[derive(Debug)]
pub(crate) struct JobNames<'t> {
    in_order: Vec<&'t str>,
    index_of: HashMap<&'t str, usize>,
}

impl<'t> JobNames<'t> {
    pub(crate) fn new(names: impl Iterator<Item = &'t str>) -> JobNames<'t> {
        let in_order: Vec<&str> = names.collect();
        let index_of = in_order.iter().copied().enumerate().map(|(index, name)| (name, index)).collect();
        JobNames { in_order, index_of }
    }

    pub(crate) fn index(&self, name: &str) -> Option<usize> {
        self.index_of.get(name).copied()
    }

    /// The name as the file has it, when there is such a job.
    pub(crate) fn known(&self, name: &str) -> Option<&'t str> {
        self.index_of.get_key_value(name).map(|(name, _)| *name)
    }

    /// In the order of the file, so that the same file always gets the same suggestion.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &'t str> {
        self.in_order.iter().copied()
    }
}
