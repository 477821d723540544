//! How a database spells what the shared SQL leaves open, as `{token}`s.
//!
//! | token | meaning |
//! | --- | --- |
//! | `{in $1}` | is one of the integers of the JSON list in parameter 1 |
//! | `{in SELECT …}` | is one of the integers that a query gives; the rows are found by them |
//! | `{by a = b}` | the same number, and the row of `a` is found by it, one by one |
//! | `{guard condition}` | a condition that is checked on the rows that were found, not one to find them by |
//! | `{texts $1}` | the texts of the JSON list in parameter 1, as a table with the column `value` |
//! | `{rows $1: a integer, b text}` | the [`Value::Rows`](super::Value) of parameter 1 as a table; the first column is never NULL |
//! | `{bounded column number}` | the column, but at least `-number` and at most `number` |
//! | `{lock}` | keep the rows for this transaction; those that another one holds are skipped |
//! | `{wait}` | keep the rows for this transaction, after those that hold them now |
//! | `{share}` | no other transaction may change the rows before this one ends |
//! | `{now_ms}` | the database's clock, for defaults of rows inserted from outside |
//! | `{readable column}` | an instant as text |
//! | `{next_id table}` | the id that the next row of a table gets, as a subquery |
//! | `{tables}` | the names of all tables and views, as a table with the column `name` |
//! | `{version}` | the name and the version of the database |
//! | `{damage}` | what the storage's own check finds, as a table with the column `detail` |
//! | `{id}`, `{integer}`, `{text}`, `{strict}`, `{clustered}` | of tables |

use super::Fragment;

/// The spelling of one database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// SQLite 3.51.3 or newer.
    Sqlite,
    /// PostgreSQL 14 or newer.
    Postgres,
}

impl Dialect {
    /// Replaces every token of `sql`. A brace that no lower-case letter follows is left alone.
    #[must_use]
    pub fn translate(self, sql: &str, fragments: &[Fragment]) -> String {
        self.translate_for(sql, fragments, Room::of(1))
    }

    /// The same, with room for a number of rows where they are parameters one by one.
    #[must_use]
    pub(super) fn translate_for(self, sql: &str, fragments: &[Fragment], room: Room) -> String {
        let mut translated = String::with_capacity(sql.len() + 64);
        let mut spare = Spare { after: parameters(sql) };
        let mut rest = sql;
        while let Some(start) = rest.find('{') {
            let (before, token) = rest.split_at(start);
            translated.push_str(before);
            let starts_token = token[1..].starts_with(|character: char| character.is_ascii_lowercase());
            match (starts_token, token.find('}')) {
                (true, Some(end)) => {
                    let token = &token[1..end];
                    match fragments.iter().find(|fragment| fragment.name == token) {
                        Some(fragment) => {
                            translated.push_str(&self.translate_for(fragment.sql, &[], room));
                        }
                        None => translated.push_str(&self.token(token, room, &mut spare)),
                    }
                    rest = &rest[start + end + 1..];
                }
                (true, None) | (false, _) => {
                    translated.push('{');
                    rest = &token[1..];
                }
            }
        }
        translated.push_str(rest);
        translated
    }

    fn token(self, token: &str, room: Room, spare: &mut Spare) -> String {
        let (word, argument) = token.split_once(' ').unwrap_or((token, ""));
        match self {
            Dialect::Sqlite => sqlite_token(word, argument, room),
            Dialect::Postgres => postgres_token(word, argument, spare),
        }
    }

    /// Statements after which a table goes on with this id, whatever its rows are.
    #[must_use]
    pub fn continue_ids(self, table: &str, next_id: i64) -> String {
        match self {
            Dialect::Sqlite => format!(
                "DELETE FROM sqlite_sequence WHERE name = '{table}';
                 INSERT INTO sqlite_sequence (name, seq) VALUES ('{table}', {next_id} - 1);"
            ),
            Dialect::Postgres => format!("SELECT setval('{table}_id_seq', {next_id}, false);"),
        }
    }

    /// Has the database count the rows of tables, also those that this transaction has written; `None` where nobody
    /// plans by such counts.
    #[must_use]
    pub fn analyze(self, tables: &[&str]) -> Option<String> {
        match self {
            Dialect::Sqlite => None,
            Dialect::Postgres => Some(format!("ANALYZE {}", tables.join(", "))),
        }
    }
}

/// How the argument of `{in …}` begins when it is a query.
const QUERY: &str = "SELECT ";

fn sqlite_token(word: &str, argument: &str, room: Room) -> String {
    match word {
        // No id is ever given out twice, also after pruning: people and other programs keep them.
        "id" => "INTEGER PRIMARY KEY AUTOINCREMENT".to_owned(),
        "integer" => "INTEGER".to_owned(),
        "text" => "TEXT".to_owned(),
        "strict" => "STRICT".to_owned(),
        "clustered" => "STRICT, WITHOUT ROWID".to_owned(),
        // Other programs insert with the SQLite they have: `unixepoch('subsec')` is NULL before 3.42.
        // 63 bits by chance.
        "token" => "random() & 9223372036854775807".to_owned(),
        "now_ms" => "CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER)".to_owned(),
        // Each call of a function costs SQLite as much as ten comparisons.
        "bounded" => {
            let (column, bound) = column_and_bound(argument);
            format!(
                "CASE WHEN {column} > {bound} THEN {bound} WHEN {column} < -{bound} THEN -{bound} ELSE {column} END"
            )
        }
        "readable" => format!("strftime('%Y-%m-%d %H:%M:%f', {argument} / 1000.0, 'unixepoch')"),
        // One writer at a time: there is nobody to skip.
        "lock" | "wait" | "share" => String::new(),
        // One writer at a time has every lock.
        "try_lock" => format!("({argument}) IS NOT NULL"),
        "version" => "'SQLite ' || sqlite_version()".to_owned(),
        "tables" => "(SELECT name FROM sqlite_master WHERE type IN ('table', 'view'))".to_owned(),
        "next_id" => {
            format!("(SELECT coalesce((SELECT seq + 1 FROM sqlite_sequence WHERE name = '{argument}'), 1))")
        }
        "damage" => "(SELECT integrity_check AS detail FROM pragma_integrity_check
                       WHERE integrity_check <> 'ok'
                      UNION ALL
                      SELECT 'a row of ' || \"table\" || ' names a missing row of ' || parent
                      FROM pragma_foreign_key_check)"
            .to_owned(),
        "in" if argument.starts_with(QUERY) => format!("IN ({argument})"),
        "in" => format!("IN (SELECT value FROM json_each({argument}))"),
        "by" | "guard" => argument.to_owned(),
        "texts" => format!("json_each({argument})"),
        "rows" => sqlite_rows(argument, room),
        unknown => unreachable!("the SQL uses a token that no dialect knows: {unknown}"),
    }
}

/// What a statement has room for where rows are parameters one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Room {
    pub(super) rows: usize,
    /// The columns that have the same value in all rows, a bit for each: that value is one parameter.
    pub(super) same: u64,
}

impl Room {
    /// For so many rows that may differ in each column.
    pub(super) fn of(rows: usize) -> Room {
        Room { rows, same: 0 }
    }

    /// Whether a column, counted from 0, has the same value in all rows.
    pub(super) fn is_same(self, column: usize) -> bool {
        column < u64::BITS as usize && self.same & (1 << column) != 0
    }
}

/// The name of the first parameter of a set of rows; the others follow it without a name.
pub(super) const FIRST_OF_ROWS: &str = "$rows";

/// The name of the parameter of a column, counted from 0, that has the same value in all rows.
pub(super) fn same_of_rows(column: usize) -> String {
    format!("$same{column}")
}

/// `$1: id integer, name text` as a table of parameters: those rows whose first column is bound. A list in JSON would
/// be written and parsed for it, which costs more than what is done with the rows.
fn sqlite_rows(argument: &str, room: Room) -> String {
    let columns = argument.split_once(':').map_or("", |(_parameter, columns)| columns);
    let mut width = 0;
    let names: Vec<String> = columns
        .split(',')
        .enumerate()
        .map(|(index, column)| {
            let name = column.split_whitespace().next().unwrap_or_default();
            if room.is_same(index) {
                return format!("{} AS {name}", same_of_rows(index));
            }
            width += 1;
            format!("column{width} AS {name}")
        })
        .collect();
    let row = vec!["?"; width].join(", ");
    let values = vec![format!("({row})"); room.rows].join(", ").replacen('?', FIRST_OF_ROWS, 1);
    // A LIMIT would keep SQLite from reading the values where they are used: it would write all rows into a table of
    // its own first.
    format!("(SELECT {} FROM (VALUES {values}) WHERE column1 IS NOT NULL)", names.join(", "))
}

/// The two words of `{bounded column number}`.
fn column_and_bound(argument: &str) -> (&str, &str) {
    let Some(words) = argument.split_once(' ') else {
        unreachable!("the SQL bounds a column by no number: {argument}")
    };
    words
}

fn postgres_token(word: &str, argument: &str, spare: &mut Spare) -> String {
    match word {
        "id" => "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY".to_owned(),
        "integer" => "BIGINT".to_owned(),
        // A new version of the system's library may sort a language's texts in another way, and the indexes
        // that were built before would then miss rows. Bytes stay as they are.
        "text" => "TEXT COLLATE \"C\"".to_owned(),
        "strict" | "clustered" => String::new(),
        "token" => "hashtextextended(CAST(gen_random_uuid() AS TEXT), 0) & 9223372036854775807".to_owned(),
        // Of the moment, not of the transaction's beginning.
        "now_ms" => "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)".to_owned(),
        "bounded" => {
            let (column, bound) = column_and_bound(argument);
            format!("greatest(-{bound}, least({bound}, {column}))")
        }
        "readable" => format!(
            "to_char(to_timestamp({argument} / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.MS')"
        ),
        "lock" => "FOR UPDATE SKIP LOCKED".to_owned(),
        "wait" => "FOR UPDATE".to_owned(),
        "share" => "FOR SHARE".to_owned(),
        // A name is the lock of what has no row of its own, until the end of the transaction. It waits for
        // nobody, so it takes part in no circle of locks.
        "try_lock" => format!(
            "CAST(CAST(pg_try_advisory_xact_lock(hashtextextended(current_schema() || ' ' || {argument}, 0))
                  AS INTEGER) AS BIGINT)"
        ),
        "version" => "'PostgreSQL ' || current_setting('server_version')".to_owned(),
        "tables" => {
            "(SELECT CAST(relname AS TEXT) AS name FROM pg_catalog.pg_class
                       WHERE relnamespace = CAST(current_schema() AS regnamespace) AND relkind IN ('r', 'v'))"
                .to_owned()
        }
        "next_id" => {
            format!(
                "(SELECT CASE WHEN is_called THEN last_value + 1 ELSE last_value END FROM {argument}_id_seq)"
            )
        }
        // The server keeps foreign keys and checksums itself.
        "damage" => "(SELECT CAST(NULL AS TEXT) AS detail WHERE false)".to_owned(),
        // The planner expects few elements of a list, and so finds them one by one through the index of ids.
        // Two tables that are brought together could be read whole, each: see `by`.
        "in" if argument.starts_with(QUERY) => format!("= ANY (ARRAY({argument}))"),
        "in" => format!(
            "= ANY (ARRAY(SELECT CAST(value AS BIGINT) FROM jsonb_array_elements_text(CAST({argument} AS jsonb))))"
        ),
        // Two columns that are equal could also be brought together by reading a table in the order of the first,
        // which is done while the table is small, and goes on while it grows.
        "by" => {
            let Some((found, by)) = argument.split_once(" = ") else {
                unreachable!("the SQL finds rows by what is no comparison: {argument}")
            };
            format!("{found} = ANY (ARRAY[{by}])")
        }
        // It takes the condition of a partial index only as it is written there. Otherwise it would read all
        // rows of a state when its statistics are from a time at which they were few.
        "guard" => format!("({argument}) IS TRUE"),
        "texts" => format!("jsonb_array_elements_text(CAST({argument} AS jsonb))"),
        "rows" => postgres_rows(argument, spare),
        unknown => unreachable!("the SQL uses a token that no dialect knows: {unknown}"),
    }
}

/// The numbers of parameters that a text does not use itself.
struct Spare {
    after: usize,
}

impl Spare {
    fn next(&mut self) -> usize {
        self.after += 1;
        self.after
    }
}

/// The highest number of a parameter in a text.
fn parameters(sql: &str) -> usize {
    let numbers = sql.split('$').skip(1).filter_map(|rest| {
        let digits = rest.len() - rest.trim_start_matches(|character: char| character.is_ascii_digit()).len();
        rest[..digits].parse().ok()
    });
    numbers.max().unwrap_or(0)
}

/// What says that a parameter is the column of a set of rows, and of which type it is.
pub(super) fn column_cast(parameter: usize, kind: &str) -> String {
    format!("CAST(${parameter} AS {kind}[])")
}

/// `$1: id integer, name text` as a table over arrays, one for each column. The first has the number of the set, and
/// those of the others follow the last number in the text, in their order.
fn postgres_rows(argument: &str, spare: &mut Spare) -> String {
    let (parameter, columns) = argument.split_once(':').unwrap_or((argument, ""));
    let (mut names, mut arrays) = (Vec::new(), Vec::new());
    for (index, column) in columns.split(',').enumerate() {
        let mut words = column.split_whitespace();
        names.push(words.next().unwrap_or_default());
        let kind = if words.next() == Some("integer") { "BIGINT" } else { "TEXT" };
        let number = if index == 0 { parameters(parameter) } else { spare.next() };
        arrays.push(column_cast(number, kind));
    }
    let names = names.join(", ");
    format!("(SELECT {names} FROM unnest({}) AS given ({names}))", arrays.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_replaced_and_json_is_left_alone() {
        let translated = Dialect::Sqlite.translate("SELECT '{}' WHERE id {in $1}{lock} -- {", &[]);
        assert_eq!(translated, "SELECT '{}' WHERE id IN (SELECT value FROM json_each($1)) -- {");
    }

    #[test]
    fn rows_are_found_one_by_one() {
        let sql = "{by jobs.id = news.id}";
        assert_eq!(Dialect::Sqlite.translate(sql, &[]), "jobs.id = news.id");
        assert_eq!(Dialect::Postgres.translate(sql, &[]), "jobs.id = ANY (ARRAY[news.id])");
    }

    #[test]
    fn rows_become_a_table() {
        let translated = Dialect::Sqlite.translate("FROM {rows $2: id integer, status text} AS news", &[]);
        assert_eq!(
            translated,
            "FROM (SELECT column1 AS id, column2 AS status FROM (VALUES ($rows, ?)) \
             WHERE column1 IS NOT NULL) AS news"
        );
        let translated = Dialect::Sqlite.translate_for("{rows $1: id integer}", &[], Room::of(3));
        assert_eq!(
            translated,
            "(SELECT column1 AS id FROM (VALUES ($rows), (?), (?)) WHERE column1 IS NOT NULL)"
        );
        let room = Room { rows: 2, same: 0b101 };
        assert_eq!(
            Dialect::Sqlite.translate_for("{rows $1: a integer, id integer, b text}", &[], room),
            "(SELECT $same0 AS a, column1 AS id, $same2 AS b FROM (VALUES ($rows), (?)) \
             WHERE column1 IS NOT NULL)"
        );
        let sql = "FROM {rows $2: id integer, status text, name text} AS news WHERE at = $3 AND by = $1";
        assert_eq!(
            Dialect::Postgres.translate(sql, &[]),
            "FROM (SELECT id, status, name FROM unnest(CAST($2 AS BIGINT[]), CAST($4 AS TEXT[]), \
             CAST($5 AS TEXT[])) AS given (id, status, name)) AS news WHERE at = $3 AND by = $1"
        );
    }

    #[test]
    fn the_highest_number_of_a_parameter_is_found() {
        for (sql, expected) in [("SELECT 1", 0), ("$1 + $12 - $2", 12), ("$rows, $3", 3)] {
            assert_eq!(parameters(sql), expected, "{sql}");
        }
    }

    #[test]
    fn one_writer_locks_nothing_and_many_do() {
        let sql = "SELECT id FROM jobs{lock}; {wait}; {share}";
        assert_eq!(Dialect::Sqlite.translate(sql, &[]), "SELECT id FROM jobs; ; ");
        assert_eq!(
            Dialect::Postgres.translate("{lock}; {wait}; {share}", &[]),
            "FOR UPDATE SKIP LOCKED; FOR UPDATE; FOR SHARE"
        );
    }

    #[test]
    fn a_fragment_is_replaced_by_its_text_and_that_is_translated() {
        const URGENCY: Fragment = Fragment { name: "urgency", sql: "{bounded due 10} - 1" };
        let sql = "SELECT {urgency} FROM jobs ORDER BY {urgency}{lock}";
        assert_eq!(
            Dialect::Postgres.translate(sql, &[URGENCY]),
            "SELECT greatest(-10, least(10, due)) - 1 FROM jobs ORDER BY greatest(-10, least(10, due)) - 1\
             FOR UPDATE SKIP LOCKED"
        );
        let bounded = "CASE WHEN due > 10 THEN 10 WHEN due < -10 THEN -10 ELSE due END - 1";
        assert_eq!(
            Dialect::Sqlite.translate(sql, &[URGENCY]),
            format!("SELECT {bounded} FROM jobs ORDER BY {bounded}")
        );
    }
}
