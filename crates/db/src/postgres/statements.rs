//! Translated statements, shared by the connections of a process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::Fragment;
use crate::statement::{Statement, StatementKey};

/// Translated statements.
#[derive(Debug, Default)]
pub(super) struct Statements {
    fragments: &'static [Fragment],
    translated: Mutex<HashMap<StatementKey, Arc<str>>>,
}

impl Statements {
    /// An empty set. `fragments` are the parts that statements of this database share.
    pub(super) fn new(fragments: &'static [Fragment]) -> Statements {
        Statements { fragments, translated: Mutex::default() }
    }

    /// What PostgreSQL runs for a statement.
    pub(super) fn text(&self, statement: Statement) -> Arc<str> {
        let mut translated = self.translated.lock().unwrap_or_else(PoisonError::into_inner);
        let text = translated.entry(statement.key());
        Arc::clone(text.or_insert_with(|| statement.postgres_text(self.fragments).into()))
    }
}
