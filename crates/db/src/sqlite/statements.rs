//! The statements of one connection: their texts in SQLite's dialect, and in how many steps they are run.
//!
//! What `RETURNING` tells of is kept by SQLite in a table that is made for each statement, and for it every
//! column is read, old and new. Within a transaction that nobody else can write beside, reading the rows before
//! they are changed gives the same for a quarter of the time.

use std::collections::HashMap;

use crate::dialect::Room;
use crate::{Dialect, Fragment};

/// Where the parts of a statement begin that changes rows and tells of them.
const FROM: &str = "{from}";
const WHERE: &str = "{where}";
const RETURNING: &str = "{returning}";

/// Translated statements that are kept; then all are forgotten.
const KEPT_MAX: usize = 512;

/// Translated statements, kept between transactions where it pays.
pub(super) struct Statements {
    fragments: &'static [Fragment],
    translated: HashMap<Key, Steps>,
}

/// A text by its address and its length, as it is never moved nor freed: reading it anew each time would be 4% of what it
/// costs to enqueue one job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    address: usize,
    length: usize,
    room: Room,
}

/// What is run for a statement.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Steps {
    /// The statement itself.
    One(String),
    /// The rows are read as they are, and then changed.
    ReadThenChange { read: String, change: String },
    /// Rows are inserted whose ids follow each other.
    Insert(String),
}

impl Statements {
    /// None yet. `fragments` are the parts that statements of this database share.
    pub(super) fn new(fragments: &'static [Fragment]) -> Statements {
        Statements { fragments, translated: HashMap::new() }
    }

    /// The steps of a statement with this room.
    pub(super) fn steps(&mut self, sql: &'static str, room: Room) -> &Steps {
        let key = Key { address: sql.as_ptr().addr(), length: sql.len(), room };
        if self.translated.len() >= KEPT_MAX && !self.translated.contains_key(&key) {
            self.translated.clear();
        }
        self.translated.entry(key).or_insert_with(|| steps(sql, self.fragments, room))
    }
}

/// The texts that are run for a statement, for whoever asks how SQLite finds its rows.
#[must_use]
pub fn texts(sql: &str, fragments: &[Fragment]) -> Vec<String> {
    match steps(sql, fragments, Room::of(1)) {
        Steps::One(text) | Steps::Insert(text) => vec![text],
        Steps::ReadThenChange { read, change } => vec![read, change],
    }
}

fn steps(sql: &str, fragments: &[Fragment], room: Room) -> Steps {
    let translate = |sql: &str| Dialect::Sqlite.translate_for(sql, fragments, room);
    let Some((statement, told)) = sql.split_once(RETURNING) else { return Steps::One(translate(sql)) };
    let Some((before, condition)) = statement.split_once(WHERE) else {
        return Steps::Insert(translate(statement));
    };
    let (change, source) = match before.split_once(FROM) {
        Some((change, source)) => (change, Some(source)),
        None => (before, None),
    };
    let table = change.split_whitespace().nth(1).unwrap_or_default();
    // CROSS JOIN: the rows of the source find those of the table, not the other way round.
    let tables = source.map_or_else(|| table.to_owned(), |source| format!("{source} CROSS JOIN {table}"));
    Steps::ReadThenChange {
        read: translate(&format!("SELECT {told} FROM {tables} WHERE {condition}")),
        change: translate(statement),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_that_tells_of_its_rows_reads_them_first() {
        let sql = "UPDATE jobs SET n = jobs.n + 1 {from} {rows $1: id integer} AS news \
                   {where} jobs.id = news.id {returning} jobs.id, {after jobs.n: jobs.n + 1}";
        let source = "(SELECT column1 AS id FROM (VALUES ($rows), (?)) WHERE column1 IS NOT NULL) AS news";
        let Steps::ReadThenChange { read, change } = steps(sql, &[], Room::of(2)) else {
            panic!("two steps")
        };
        let words = |sql: &str| sql.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(
            words(&read),
            format!("SELECT jobs.id, jobs.n + 1 FROM {source} CROSS JOIN jobs WHERE jobs.id = news.id")
        );
        assert_eq!(
            words(&change),
            format!("UPDATE jobs SET n = jobs.n + 1 FROM {source} WHERE jobs.id = news.id")
        );
        let sql = "UPDATE runs SET n = 1 {where} id = $1 {returning} id";
        let Steps::ReadThenChange { read, change } = steps(sql, &[], Room::of(1)) else {
            panic!("two steps")
        };
        assert_eq!(words(&read), "SELECT id FROM runs WHERE id = $1");
        assert_eq!(words(&change), "UPDATE runs SET n = 1 WHERE id = $1");
    }

    #[test]
    fn what_tells_of_nothing_is_run_as_it_is() {
        let sql = "UPDATE jobs SET n = 1 WHERE id = $1";
        assert_eq!(steps(sql, &[], Room::of(1)), Steps::One(sql.to_owned()));
        assert_eq!(
            steps("INSERT INTO jobs (n) VALUES ($1) {returning} id", &[], Room::of(1)),
            Steps::Insert("INSERT INTO jobs (n) VALUES ($1) ".to_owned())
        );
    }

    /// The statements of the store that change rows and tell of them, each with its place.
    fn of_the_store() -> Vec<(String, String)> {
        let mut found = Vec::new();
        let mut folders = vec![std::path::PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/src/store"))];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).expect("the folder") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let source = std::fs::read_to_string(&path).expect("the source");
                let texts = source.split('"').filter(|text| text.contains(WHERE) && text.contains(RETURNING));
                found.extend(texts.map(|text| (path.display().to_string(), text.to_owned())));
            }
        }
        found
    }

    /// The parts between the commas that stand in no brackets.
    fn listed(text: &str) -> Vec<String> {
        let (mut depth, mut parts) = (0, vec![String::new()]);
        for character in text.chars() {
            match character {
                '(' | '{' => depth += 1,
                ')' | '}' => depth -= 1,
                ',' if depth == 0 => parts.push(String::new()),
                _ => {}
            }
            if depth > 0 || character != ',' {
                parts.last_mut().expect("a part").push(character);
            }
        }
        parts.iter().map(|part| part.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
    }

    #[test]
    fn what_is_told_of_a_row_is_what_it_becomes() {
        let statements = of_the_store();
        assert!(statements.len() >= 8, "{} statements", statements.len());
        for (place, sql) in statements {
            let (statement, told) = sql.split_once(RETURNING).expect("it tells of rows");
            let change = statement.split(FROM).next().and_then(|text| text.split(WHERE).next());
            let (table, set) = change.and_then(|change| change.split_once("SET ")).expect("it sets columns");
            let table = format!("{}.", table.split_whitespace().nth(1).expect("a table"));
            let bare = |column: &str| column.strip_prefix(&table).unwrap_or(column).to_owned();
            let set: HashMap<String, String> = listed(set)
                .iter()
                .filter_map(|part| part.split_once(" = "))
                .map(|(column, expression)| (column.to_owned(), expression.to_owned()))
                .collect();
            for told in listed(told) {
                let Some(after) = told.strip_prefix("{after ").and_then(|after| after.strip_suffix('}'))
                else {
                    let mut words = told.split(|character: char| {
                        !character.is_ascii_alphanumeric() && character != '_' && character != '.'
                    });
                    let changed = words.find(|word| set.contains_key(&bare(word)));
                    assert_eq!(changed, None, "told as it was before, in {place}: {told}");
                    continue;
                };
                let (column, expression) = after.split_once(": ").expect("a column and what it becomes");
                let becomes = set.get(&bare(column)).map(String::as_str);
                assert_eq!(becomes, Some(expression), "{column}, in {place}");
            }
        }
    }
}
