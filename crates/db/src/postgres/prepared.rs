//! The prepared statements of one connection: a bounded store of texts and the names they have on the server.
//!
//! A name belongs to one session of the server: see [`super::token`].

use std::collections::HashMap;

use postgres::Statement;
use postgres::types::Type;

use super::client::Client;
use super::preamble::Purpose;
use super::sizes::Sizes;
use crate::statement::Key;

/// Texts a connection knows at most. Above that the one that was not used for longest is forgotten.
pub(super) const TEXTS_MAX: usize = 128;

/// Between two questions how large the tables are, of one connection.
pub(super) const LOOK_TICK_MS: i64 = 1_000;

/// What a connection knows of its statements.
pub(super) struct Prepared {
    texts: HashMap<Key, Known>,
    /// What there was no room for. Dropping one closes it on the server, in whatever session comes next.
    leaving: Vec<Statement>,
    /// Counts uses, to tell which was the last.
    uses: u64,
    /// The tables whose size decides about plans.
    growing_tables: &'static [&'static str],
    /// What plans were made for.
    sizes: Sizes,
    /// How the server is asked for them.
    question: String,
    /// When it was asked last.
    looked_ms: Option<i64>,
    /// When this transaction began, if it is to ask before it uses the tables.
    look_due_ms: Option<i64>,
}

struct Known {
    last_use: u64,
    /// From the second use on: what is run once need not be kept.
    statement: Option<Statement>,
}

impl Prepared {
    /// None yet, for the tables of a schema.
    pub(super) fn new(schema: &str, growing_tables: &'static [&'static str]) -> Prepared {
        Prepared {
            texts: HashMap::new(),
            leaving: Vec::new(),
            uses: 0,
            growing_tables,
            sizes: Sizes::default(),
            question: Sizes::question(schema, growing_tables),
            looked_ms: None,
            look_due_ms: None,
        }
    }

    /// To be called where a transaction has begun in which names may be used. What only reads is planned for the
    /// tables as they are.
    pub(super) fn begin(&mut self, purpose: Purpose, now_ms: i64) {
        let is_due = self.looked_ms.is_none_or(|looked_ms| now_ms - looked_ms >= LOOK_TICK_MS);
        self.look_due_ms = (purpose == Purpose::Write && is_due).then_some(now_ms);
    }

    /// The statement of a text, which is prepared when it is used for the second time. `None`: it is to be run
    /// without a name.
    ///
    /// # Errors
    /// The server's.
    pub(super) fn statement(
        &mut self,
        client: &mut Client,
        key: Key,
        text: &str,
        types: &[Type],
    ) -> Result<Option<Statement>, postgres::Error> {
        self.look(client, text)?;
        if client.has_begun() {
            self.close_leaving();
        }
        let Some(known) = self.note(key) else { return Ok(None) };
        match &known.statement {
            Some(statement) if fits(statement.params(), types) => {}
            // Types that were inferred from NULL are told now.
            Some(_) | None => known.statement = Some(client.prepare_typed(text, types)?),
        }
        Ok(known.statement.clone())
    }

    /// Whether a statement uses a table that grows, as far as its text tells.
    fn uses_growing_table(&self, sql: &str) -> bool {
        self.growing_tables.iter().any(|table| sql.contains(table))
    }

    /// Forgets what was planned for much smaller tables: it is prepared anew when it is used.
    fn look(&mut self, client: &mut Client, sql: &str) -> Result<(), postgres::Error> {
        let Some(now_ms) = self.look_due_ms.filter(|_now_ms| self.uses_growing_table(sql)) else {
            return Ok(());
        };
        let now = Sizes::ask(client, &self.question)?;
        if self.sizes.have_grown(&now) {
            self.forget();
        }
        self.sizes = now;
        self.looked_ms = Some(now_ms);
        self.look_due_ms = None;
        Ok(())
    }

    /// Closes every statement on the server, before anything else of this transaction. To be called only in the
    /// session that prepared them.
    pub(super) fn forget(&mut self) {
        self.close_leaving();
        self.texts.values_mut().for_each(|known| known.statement = None);
    }

    /// Closes on the server what there was no room for. To be called only in the session that prepared it: where the
    /// transaction has not begun that is not known yet.
    pub(super) fn close_leaving(&mut self) {
        self.leaving.clear();
    }

    /// Whether the server keeps statements for this connection.
    pub(super) fn is_empty(&self) -> bool {
        self.leaving.is_empty() && self.texts.values().all(|known| known.statement.is_none())
    }

    /// Notes a use of a text; `None` at the first.
    fn note(&mut self, key: Key) -> Option<&mut Known> {
        self.uses += 1;
        let is_new = !self.texts.contains_key(&key);
        if is_new {
            self.make_room();
        }
        let known = self.texts.entry(key).or_insert(Known { last_use: 0, statement: None });
        known.last_use = self.uses;
        if is_new { None } else { Some(known) }
    }

    fn make_room(&mut self) {
        if self.texts.len() < TEXTS_MAX {
            return;
        }
        let oldest = self.texts.iter().min_by_key(|(_key, known)| known.last_use).map(|(key, _known)| *key);
        let left = oldest.and_then(|key| self.texts.remove(&key));
        self.leaving.extend(left.and_then(|known| known.statement));
    }
}

/// Whether values of these types can be parameters of a statement. NULL fits everywhere.
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
    fn the_texts_of_a_connection_are_bounded_and_the_oldest_goes() {
        let mut prepared = Prepared::new("windlass", &["jobs"]);
        let texts: Vec<Key> = (0..=TEXTS_MAX)
            .map(|number| crate::Statement::Plain(format!("SELECT {number}").leak()).key())
            .collect();
        for key in &texts[..TEXTS_MAX] {
            prepared.note(*key);
        }
        prepared.note(texts[0]);
        prepared.note(texts[TEXTS_MAX]);
        assert_eq!(prepared.texts.len(), TEXTS_MAX);
        assert!(prepared.texts.contains_key(&texts[0]), "it was used again");
        assert!(!prepared.texts.contains_key(&texts[1]), "nothing was unused for longer");
        assert!(prepared.is_empty(), "nothing was used twice by a server");
    }
}
