//! The names of the jobs of a workflow.

use std::collections::HashMap;

/// Finds the index of a job by its name.
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

    /// The same name, borrowed from the file, if there is such a job.
    pub(crate) fn known(&self, name: &str) -> Option<&'t str> {
        self.index_of.get_key_value(name).map(|(name, _)| *name)
    }

    /// The names in the order of the file. The order is fixed, so that suggestions do not change from run to run.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &'t str> {
        self.in_order.iter().copied()
    }
}
