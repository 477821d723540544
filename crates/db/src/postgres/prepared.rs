//! The prepared statements of one connection: a bounded cache.
//!
//! A prepared statement exists in one session of the server: see [`super::token`].

use std::collections::HashMap;

use postgres::Statement;
use postgres::types::Type;

use super::client::Client;
use super::preamble::Purpose;
use super::sizes::Sizes;
use crate::statement::StatementKey;

/// The most statements of a connection. Beyond that the least recently used one is removed.
pub(super) const TEXTS_MAX: usize = 128;

/// How often a connection reads the sizes of the tables.
pub(super) const SIZES_TICK_MS: i64 = 1_000;

/// The statements that a connection has used.
pub(super) struct Prepared {
    used: HashMap<StatementKey, UsedText>,
    /// Statements that were removed and are not closed yet. Dropping one closes it in the session of the next message.
    evicted: Vec<Statement>,
    /// Counts uses, to find the least recently used statement.
    uses: u64,
    /// The tables whose sizes decide about plans.
    growing_tables: &'static [&'static str],
    /// The sizes for which plans were made.
    sizes: Sizes,
    /// The SQL that reads the sizes.
    query: String,
    /// When the sizes were last read.
    sizes_read_ms: Option<i64>,
    /// The start of this transaction, if it must read the sizes before it uses the tables.
    sizes_due_ms: Option<i64>,
}

struct UsedText {
    last_use: u64,
    /// Set at the second use. A statement that is run once is not prepared.
    statement: Option<Statement>,
}

impl Prepared {
    /// An empty cache, for the tables of a schema.
    pub(super) fn new(schema: &str, growing_tables: &'static [&'static str]) -> Prepared {
        Prepared {
            used: HashMap::new(),
            evicted: Vec::new(),
            uses: 0,
            growing_tables,
            sizes: Sizes::default(),
            query: Sizes::query(schema, growing_tables),
            sizes_read_ms: None,
            sizes_due_ms: None,
        }
    }

    /// To be called at the start of a transaction. A transaction that only reads needs no sizes, because its statements are
    /// planned each time.
    pub(super) fn begin(&mut self, purpose: Purpose, now_ms: i64) {
        let is_due = self.sizes_read_ms.is_none_or(|sizes_read_ms| now_ms - sizes_read_ms >= SIZES_TICK_MS);
        self.sizes_due_ms = (purpose == Purpose::Write && is_due).then_some(now_ms);
    }

    /// Returns the prepared statement of a text, and prepares it at its second use. `None`: run it without a name.
    ///
    /// # Errors
    /// The server's error.
    pub(super) fn statement(
        &mut self,
        client: &mut Client,
        key: StatementKey,
        text: &str,
        types: &[Type],
    ) -> Result<Option<Statement>, postgres::Error> {
        self.check_sizes(client, text)?;
        if client.has_begun() {
            self.close_evicted();
        }
        let Some(used) = self.count_use(key) else { return Ok(None) };
        match &used.statement {
            Some(statement) if fits(statement.params(), types) => {}
            // Prepared again if a type was inferred from NULL and is known now.
            Some(_) | None => used.statement = Some(client.prepare_typed(text, types)?),
        }
        Ok(used.statement.clone())
    }

    /// Whether the text of a statement contains the name of a growing table.
    fn uses_growing_table(&self, sql: &str) -> bool {
        self.growing_tables.iter().any(|table| sql.contains(table))
    }

    /// Reads the sizes of the tables if that is due. If a table has grown much, closes all statements, so that they are
    /// planned again.
    fn check_sizes(&mut self, client: &mut Client, sql: &str) -> Result<(), postgres::Error> {
        let Some(now_ms) = self.sizes_due_ms.filter(|_now_ms| self.uses_growing_table(sql)) else {
            return Ok(());
        };
        let now = Sizes::read(client, &self.query)?;
        if self.sizes.have_grown(&now) {
            self.close_all();
        }
        self.sizes = now;
        self.sizes_read_ms = Some(now_ms);
        self.sizes_due_ms = None;
        Ok(())
    }

    /// Closes all statements. To be called only in the session that prepared them.
    pub(super) fn close_all(&mut self) {
        self.close_evicted();
        self.used.values_mut().for_each(|used| used.statement = None);
    }

    /// Closes the statements that were removed. To be called only in the session that prepared them, which is known only
    /// after the transaction has begun.
    pub(super) fn close_evicted(&mut self) {
        self.evicted.clear();
    }

    /// Whether this connection has no prepared statement on the server.
    pub(super) fn is_empty(&self) -> bool {
        self.evicted.is_empty() && self.used.values().all(|used| used.statement.is_none())
    }

    /// Counts a use of a text; `None` at its first use.
    fn count_use(&mut self, key: StatementKey) -> Option<&mut UsedText> {
        self.uses += 1;
        let is_new = !self.used.contains_key(&key);
        if is_new {
            self.evict_oldest();
        }
        let used = self.used.entry(key).or_insert(UsedText { last_use: 0, statement: None });
        used.last_use = self.uses;
        if is_new { None } else { Some(used) }
    }

    fn evict_oldest(&mut self) {
        if self.used.len() < TEXTS_MAX {
            return;
        }
        let oldest = self.used.iter().min_by_key(|(_key, used)| used.last_use).map(|(key, _known)| *key);
        let left = oldest.and_then(|key| self.used.remove(&key));
        self.evicted.extend(left.and_then(|used| used.statement));
    }
}

/// Whether values of these types can be parameters of a statement. NULL fits any type.
fn fits(parameters: &[Type], types: &[Type]) -> bool {
    parameters.len() == types.len()
        && parameters.iter().zip(types).all(|(parameter, kind)| *kind == Type::UNKNOWN || parameter == kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_fit_a_statement_of_their_types_and_null_fits_any() {
        let parameters = [Type::INT8, Type::TEXT];
        for (types, expected) in [
            (vec![Type::INT8, Type::TEXT], true),
            (vec![Type::UNKNOWN, Type::TEXT], true),
            (vec![Type::INT8, Type::UNKNOWN], true),
            (vec![Type::TEXT, Type::TEXT], false),
            (vec![Type::INT8], false),
        ] {
            assert_eq!(fits(&parameters, &types), expected, "{types:?}");
        }
    }

    #[test]
    fn the_least_recently_used_statement_is_removed_at_the_limit() {
        let mut prepared = Prepared::new("windlass", &["jobs"]);
        let texts: Vec<StatementKey> = (0..=TEXTS_MAX)
            .map(|number| crate::Statement::Plain(format!("SELECT {number}").leak()).key())
            .collect();
        for key in &texts[..TEXTS_MAX] {
            prepared.count_use(*key);
        }
        prepared.count_use(texts[0]);
        prepared.count_use(texts[TEXTS_MAX]);
        assert_eq!(prepared.used.len(), TEXTS_MAX);
        assert!(prepared.used.contains_key(&texts[0]), "it was used again");
        assert!(!prepared.used.contains_key(&texts[1]), "nothing was unused for longer");
        assert!(prepared.is_empty(), "nothing was used twice by a server");
    }
}
