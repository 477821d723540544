//! The statements that a program runs, and the SQL texts that each database runs for them.

use std::fmt;

use crate::dialect::RowsLayout;
use crate::{Dialect, Fragment};

/// A statement as a program gives it to a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Statement {
    /// SQL that both databases run as it is written. It may contain `RETURNING`.
    Plain(&'static str),
    /// See [`UpdateReturning`].
    UpdateReturning(&'static UpdateReturning),
    /// `INSERT INTO table …` without `RETURNING`: see [`crate::Connection::insert_returning_ids`].
    InsertReturningIds(&'static str),
}

/// An UPDATE that returns the rows that it changed, as they are after the change.
///
/// PostgreSQL runs one statement:
///
/// ```sql
/// UPDATE table SET column = value, … FROM from WHERE condition RETURNING returning
/// ```
///
/// SQLite runs two statements. The transaction is the only one that writes, so the rows stay as they were read:
///
/// ```sql
/// SELECT returning FROM from CROSS JOIN table WHERE condition;
/// UPDATE table SET column = value, … FROM from WHERE condition
/// ```
///
/// In the SELECT each changed column of `returning` is replaced by its new value from `set`. The UPDATE runs only if the
/// SELECT found rows. On SQLite this takes a quarter of the time of `RETURNING`, which keeps the returned rows in a
/// temporary table and reads every column for it.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UpdateReturning {
    /// The table whose rows are changed.
    pub table: &'static str,
    /// The changed columns, each with its new value: an expression over the row before the change.
    pub set: &'static [(&'static str, &'static str)],
    /// Other rows that the values and the condition use, usually `{rows …} AS name`.
    pub from: Option<&'static str>,
    /// Which rows are changed.
    pub condition: &'static str,
    /// The returned values of each row: the name of a changed column, or an expression without changed columns.
    pub returning: &'static [&'static str],
}

impl Statement {
    /// The texts that a database runs for this statement, in their order.
    ///
    /// # Panics
    /// When a [`UpdateReturning`] returns an expression with a changed column in it.
    #[must_use]
    pub fn texts(self, dialect: Dialect, fragments: &[Fragment]) -> Vec<String> {
        match dialect {
            Dialect::Sqlite => match self.sqlite_texts(fragments, RowsLayout::rows(1)) {
                SqliteTexts::Query(text) | SqliteTexts::Insert(text) => vec![text],
                SqliteTexts::ReadThenUpdate { read, update } => vec![read, update],
            },
            Dialect::Postgres => vec![self.postgres_text(fragments)],
        }
    }

    /// What SQLite runs, with parameters for the rows of this layout.
    pub(crate) fn sqlite_texts(self, fragments: &[Fragment], layout: RowsLayout) -> SqliteTexts {
        let translate = |sql: &str| Dialect::Sqlite.translate_rows(sql, fragments, layout);
        match self {
            Statement::Plain(sql) => SqliteTexts::Query(translate(sql)),
            Statement::UpdateReturning(update) => SqliteTexts::ReadThenUpdate {
                read: translate(&update.read()),
                update: translate(&update.without_returning()),
            },
            Statement::InsertReturningIds(sql) => SqliteTexts::Insert(translate(sql)),
        }
    }

    /// What PostgreSQL runs.
    pub(crate) fn postgres_text(self, fragments: &[Fragment]) -> String {
        Dialect::Postgres.translate(&self.to_string(), fragments)
    }

    /// The first words, which identify the statement in an error.
    pub(crate) fn summary(self) -> String {
        match self {
            Statement::Plain(sql) | Statement::InsertReturningIds(sql) => crate::summary(sql).to_owned(),
            Statement::UpdateReturning(update) => format!("UPDATE {}", update.table),
        }
    }

    /// Identifies this statement among all statements of the process.
    pub(crate) fn key(self) -> StatementKey {
        let kind = std::mem::discriminant(&self);
        let (address, length) = match self {
            Statement::Plain(sql) | Statement::InsertReturningIds(sql) => (sql.as_ptr().addr(), sql.len()),
            Statement::UpdateReturning(update) => (std::ptr::from_ref(update).addr(), 0),
        };
        StatementKey { kind, address, length }
    }
}

/// The SQL of the statement, before its tokens are translated.
impl fmt::Display for Statement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Statement::Plain(sql) => formatter.write_str(sql),
            Statement::UpdateReturning(update) => {
                write!(formatter, "{} RETURNING {}", update.without_returning(), update.returning.join(", "))
            }
            Statement::InsertReturningIds(sql) => write!(formatter, "{sql} RETURNING id"),
        }
    }
}

/// What SQLite runs for a statement.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SqliteTexts {
    /// The statement itself.
    Query(String),
    /// Reads the rows with their new values, and then changes them.
    ReadThenUpdate { read: String, update: String },
    /// Inserts rows whose ids follow each other.
    Insert(String),
}

/// Identifies a statement by the address and the length of its text, which is static. Hashing the text for each call would
/// take 4% of the time to enqueue one job on SQLite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct StatementKey {
    kind: std::mem::Discriminant<Statement>,
    address: usize,
    length: usize,
}

impl UpdateReturning {
    /// The statement without its returned rows.
    fn without_returning(&self) -> String {
        let set: Vec<String> = self.set.iter().map(|(column, value)| format!("{column} = {value}")).collect();
        let from = self.from.map_or_else(String::new, |from| format!(" FROM {from}"));
        format!("UPDATE {} SET {}{from} WHERE {}", self.table, set.join(", "), self.condition)
    }

    /// The first statement of SQLite.
    fn read(&self) -> String {
        let returned: Vec<&str> = self.returning.iter().map(|returned| self.after_change(returned)).collect();
        // CROSS JOIN makes SQLite read `from` first, and look up the rows of the table.
        let from = self.from.map_or_else(String::new, |from| format!("{from} CROSS JOIN "));
        format!("SELECT {} FROM {from}{} WHERE {}", returned.join(", "), self.table, self.condition)
    }

    /// A returned value, as an expression over the row before the change.
    fn after_change(&self, returned: &'static str) -> &'static str {
        if let Some(value) = self.new_value(returned) {
            return value;
        }
        let is_end_of_word =
            |character: char| !character.is_ascii_alphanumeric() && character != '_' && character != '.';
        if let Some(column) = returned.split(is_end_of_word).find(|word| self.new_value(word).is_some()) {
            unreachable!("an update of {} returns {returned}, and changes {column}", self.table);
        }
        returned
    }

    /// The new value of a column, when it is changed. The column may begin with the table's name.
    fn new_value(&self, column: &str) -> Option<&'static str> {
        let table = column.strip_prefix(self.table).and_then(|rest| rest.strip_prefix('.'));
        let column = table.unwrap_or(column);
        self.set.iter().find(|(changed, _value)| *changed == column).map(|(_changed, value)| *value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static COUNT: UpdateReturning = UpdateReturning {
        table: "jobs",
        set: &[("n", "jobs.n + 1"), ("at", "$2")],
        from: Some("{rows $1: id integer} AS news"),
        condition: "jobs.id = news.id",
        returning: &["jobs.id", "jobs.n", "news.n"],
    };

    #[test]
    fn postgres_runs_one_statement_for_an_update_that_returns_rows() {
        assert_eq!(
            Statement::UpdateReturning(&COUNT).texts(Dialect::Postgres, &[]),
            ["UPDATE jobs SET n = jobs.n + 1, at = $2 \
              FROM (SELECT id FROM unnest(CAST($1 AS BIGINT[])) AS given (id)) AS news \
              WHERE jobs.id = news.id RETURNING jobs.id, jobs.n, news.n"]
        );
    }

    #[test]
    fn sqlite_reads_the_new_values_and_then_updates_the_rows() {
        let from = "(SELECT column1 AS id FROM (VALUES ($rows), (?)) WHERE column1 IS NOT NULL) AS news";
        assert_eq!(
            Statement::UpdateReturning(&COUNT).sqlite_texts(&[], RowsLayout::rows(2)),
            SqliteTexts::ReadThenUpdate {
                read: format!(
                    "SELECT jobs.id, jobs.n + 1, news.n FROM {from} CROSS JOIN jobs WHERE jobs.id = news.id"
                ),
                update: format!(
                    "UPDATE jobs SET n = jobs.n + 1, at = $2 FROM {from} WHERE jobs.id = news.id"
                ),
            }
        );
        static ALONE: UpdateReturning = UpdateReturning {
            table: "runs",
            set: &[("status", "'RUNNING'")],
            from: None,
            condition: "id = $1",
            returning: &["id", "status"],
        };
        assert_eq!(
            Statement::UpdateReturning(&ALONE).texts(Dialect::Sqlite, &[]),
            [
                "SELECT id, 'RUNNING' FROM runs WHERE id = $1",
                "UPDATE runs SET status = 'RUNNING' WHERE id = $1"
            ]
        );
    }

    #[test]
    #[should_panic(expected = "an update of runs returns coalesce(runs.status, ''), and changes runs.status")]
    fn a_changed_column_is_not_returned_inside_an_expression() {
        static MIXED: UpdateReturning = UpdateReturning {
            table: "runs",
            set: &[("status", "'RUNNING'")],
            from: None,
            condition: "id = $1",
            returning: &["coalesce(runs.status, '')"],
        };
        let _texts = Statement::UpdateReturning(&MIXED).texts(Dialect::Sqlite, &[]);
    }

    #[test]
    fn an_insert_that_returns_ids_has_another_key_than_the_same_plain_insert() {
        let sql = "INSERT INTO jobs (n) VALUES ($1)";
        let insert = Statement::InsertReturningIds(sql);
        assert_eq!(insert.texts(Dialect::Sqlite, &[]), [sql]);
        assert_eq!(insert.texts(Dialect::Postgres, &[]), [format!("{sql} RETURNING id")]);
        assert_ne!(insert.key(), Statement::Plain(sql).key());
        assert_eq!(insert.key(), Statement::InsertReturningIds(sql).key());
    }
}
