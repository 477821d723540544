//! The translated statements of one connection.

use std::collections::HashMap;

use crate::Fragment;
use crate::dialect::Room;
use crate::statement::{Key, SqliteTexts, Statement};

/// Translated statements that are kept; then all are forgotten.
const KEPT_MAX: usize = 512;

/// Translated statements, kept between transactions where it pays.
pub(super) struct Statements {
    fragments: &'static [Fragment],
    translated: HashMap<(Key, Room), SqliteTexts>,
}

impl Statements {
    /// None yet. `fragments` are the parts that statements of this database share.
    pub(super) fn new(fragments: &'static [Fragment]) -> Statements {
        Statements { fragments, translated: HashMap::new() }
    }

    /// What SQLite runs for a statement with this room.
    pub(super) fn texts(&mut self, statement: Statement, room: Room) -> &SqliteTexts {
        let key = (statement.key(), room);
        if self.translated.len() >= KEPT_MAX && !self.translated.contains_key(&key) {
            self.translated.clear();
        }
        self.translated.entry(key).or_insert_with(|| statement.on_sqlite(self.fragments, room))
    }
}
