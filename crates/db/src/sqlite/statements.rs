//! The translated statements of one connection.

use std::collections::HashMap;

use crate::Fragment;
use crate::dialect::RowsLayout;
use crate::statement::{SqliteTexts, Statement, StatementKey};

/// The most translated statements. At this limit all are removed.
const KEPT_MAX: usize = 512;

/// The translated statements. The writer keeps them between transactions.
pub(super) struct Statements {
    fragments: &'static [Fragment],
    translated: HashMap<(StatementKey, RowsLayout), SqliteTexts>,
}

impl Statements {
    /// An empty set. `fragments` are the parts that statements of this database share.
    pub(super) fn new(fragments: &'static [Fragment]) -> Statements {
        Statements { fragments, translated: HashMap::new() }
    }

    /// What SQLite runs for a statement with this layout.
    pub(super) fn texts(&mut self, statement: Statement, layout: RowsLayout) -> &SqliteTexts {
        let key = (statement.key(), layout);
        if self.translated.len() >= KEPT_MAX && !self.translated.contains_key(&key) {
            self.translated.clear();
        }
        self.translated.entry(key).or_insert_with(|| statement.sqlite_texts(self.fragments, layout))
    }
}
