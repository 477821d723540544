//! The differences between the SQL of the two databases. Shared SQL contains `{token}`s, which the dialect replaces.
//!
//! | token | meaning |
//! | --- | --- |
//! | `{in $1}` | is one of the integers of the JSON list in parameter 1 |
//! | `{in SELECT …}` | is one of the integers that a query gives; the rows are found by them |
//! | `{by a = b}` | two equal numbers; the rows of `a` are found one by one through the index of `a` |
//! | `{guard condition}` | a condition that is checked on rows that were found by another condition |
//! | `{texts $1}` | the texts of the JSON list in parameter 1, as a table with the column `value` |
//! | `{rows $1: a integer, b text}` | the [`Value::Rows`](super::Value) of parameter 1 as a table; the first column is never NULL |
//! | `{position}(text, part)` | where the part begins in the text, counted from 1; 0 if the text does not contain it |
//! | `{bounded column number}` | the column, but at least `-number` and at most `number` |
//! | `{with_integer column key number}` | the JSON object in a column, with this integer under the key |
//! | `{lock}` | lock the rows; rows that another transaction has locked are skipped |
//! | `{wait}` | lock the rows, and wait for transactions that have locked them |
//! | `{share}` | no other transaction may change the rows before this one ends |
//! | `{try_lock name}` | 1 if this transaction got the lock of this name, without waiting |
//! | `{token}` | a random number of 63 bits |
//! | `{now_ms}` | the database's clock, for defaults of rows inserted from outside |
//! | `{readable column}` | an instant as text |
//! | `{next_id table}` | the id that the next row of a table gets, as a subquery |
//! | `{tables}` | the names of all tables and views, as a table with the column `name` |
//! | `{version}` | the name and the version of the database |
//! | `{damage}` | the defects that the database's own check finds, as a table with the column `detail` |
//! | `{id}`, `{integer}`, `{text}`, `{strict}`, `{clustered}` | types of columns and kinds of tables, for CREATE TABLE |

use super::Fragment;

/// The SQL of one database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// SQLite 3.51.3 or newer.
    Sqlite,
    /// PostgreSQL 14 or newer.
    Postgres,
}

impl Dialect {
    /// Replaces every token of `sql`. A brace without a lower-case letter after it is not a token.
    #[must_use]
    pub fn translate(self, sql: &str, fragments: &[Fragment]) -> String {
        self.translate_rows(sql, fragments, RowsLayout::rows(1))
    }

    /// The same, for a `{rows …}` of several rows on SQLite.
    #[must_use]
    pub(super) fn translate_rows(self, sql: &str, fragments: &[Fragment], layout: RowsLayout) -> String {
        let mut translated = String::with_capacity(sql.len() + 64);
        let mut free = FreeParameters { highest_used: highest_parameter(sql) };
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
                            translated.push_str(&self.translate_rows(fragment.sql, &[], layout));
                        }
                        None => translated.push_str(&self.token(token, layout, &mut free)),
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

    fn token(self, token: &str, layout: RowsLayout, free: &mut FreeParameters) -> String {
        let (word, argument) = token.split_once(' ').unwrap_or((token, ""));
        match self {
            Dialect::Sqlite => sqlite_token(word, argument, layout),
            Dialect::Postgres => postgres_token(word, argument, free),
        }
    }

    /// Statements that set the id of the next row of a table.
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

    /// The statement that updates the statistics of tables, which includes rows of this transaction. `None` if the database
    /// does not plan by such statistics.
    #[must_use]
    pub fn analyze(self, tables: &[&str]) -> Option<String> {
        match self {
            Dialect::Sqlite => None,
            Dialect::Postgres => Some(format!("ANALYZE {}", tables.join(", "))),
        }
    }
}

/// The beginning of an argument of `{in …}` that is a query.
const QUERY: &str = "SELECT ";

fn sqlite_token(word: &str, argument: &str, layout: RowsLayout) -> String {
    match word {
        // No id is used twice, even after pruning, because people and other programs keep ids.
        "id" => "INTEGER PRIMARY KEY AUTOINCREMENT".to_owned(),
        "integer" => "INTEGER".to_owned(),
        "text" => "TEXT".to_owned(),
        "strict" => "STRICT".to_owned(),
        "clustered" => "STRICT, WITHOUT ROWID".to_owned(),
        "token" => "random() & 9223372036854775807".to_owned(),
        // Other programs may insert with an older SQLite: `unixepoch('subsec')` is NULL before 3.42.
        "now_ms" => "CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER)".to_owned(),
        // CASE, because a call of a function costs SQLite as much as ten comparisons.
        "bounded" => {
            let (column, bound) = column_and_bound(argument);
            format!(
                "CASE WHEN {column} > {bound} THEN {bound} WHEN {column} < -{bound} THEN -{bound} ELSE {column} END"
            )
        }
        "with_integer" => {
            let [column, key, number] = three(argument);
            format!("json_set({column}, '$.{key}', {number})")
        }
        "readable" => format!("strftime('%Y-%m-%d %H:%M:%f', {argument} / 1000.0, 'unixepoch')"),
        // There is one writer at a time, so no other transaction has a lock.
        "lock" | "wait" | "share" => String::new(),
        // The only writer has every lock.
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
        "position" => "instr".to_owned(),
        "rows" => sqlite_rows(argument, layout),
        unknown => unreachable!("the SQL uses a token that no dialect knows: {unknown}"),
    }
}

/// How SQLite gets the rows of a `{rows …}`: each value is a parameter of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct RowsLayout {
    /// How many rows the statement has parameters for.
    pub(super) rows: usize,
    /// The columns that have the same value in all rows, one bit for each. Such a value is one parameter for all rows.
    pub(super) constant_columns: u64,
}

impl RowsLayout {
    /// A layout for rows that may differ in all columns.
    pub(super) fn rows(rows: usize) -> RowsLayout {
        RowsLayout { rows, constant_columns: 0 }
    }

    /// Whether a column, counted from 0, has the same value in all rows.
    pub(super) fn is_constant(self, column: usize) -> bool {
        column < u64::BITS as usize && self.constant_columns & (1 << column) != 0
    }
}

/// The name of the first parameter of a set of rows. The other parameters follow it and have no name.
pub(super) const FIRST_ROWS_PARAMETER: &str = "$rows";

/// The name of the parameter of a column, counted from 0, that has the same value in all rows.
pub(super) fn constant_parameter(column: usize) -> String {
    format!("$constant{column}")
}

/// `$1: id integer, name text` as a table of parameters. Rows whose first column is not bound are left out. Writing and
/// parsing a JSON list instead would cost more than the work with the rows.
fn sqlite_rows(argument: &str, layout: RowsLayout) -> String {
    let columns = argument.split_once(':').map_or("", |(_parameter, columns)| columns);
    let mut width = 0;
    let names: Vec<String> = columns
        .split(',')
        .enumerate()
        .map(|(index, column)| {
            let name = column.split_whitespace().next().unwrap_or_default();
            if layout.is_constant(index) {
                return format!("{} AS {name}", constant_parameter(index));
            }
            width += 1;
            format!("column{width} AS {name}")
        })
        .collect();
    let row = vec!["?"; width].join(", ");
    let values = vec![format!("({row})"); layout.rows].join(", ").replacen('?', FIRST_ROWS_PARAMETER, 1);
    // Not a LIMIT: with one, SQLite would first copy all rows into a temporary table.
    format!("(SELECT {} FROM (VALUES {values}) WHERE column1 IS NOT NULL)", names.join(", "))
}

/// The two words of `{bounded column number}`.
fn column_and_bound(argument: &str) -> (&str, &str) {
    let Some(words) = argument.split_once(' ') else {
        unreachable!("the SQL bounds a column by no number: {argument}")
    };
    words
}

/// The three words of `{with_integer column key number}`.
fn three(argument: &str) -> [&str; 3] {
    let mut words = argument.splitn(3, ' ');
    match (words.next(), words.next(), words.next()) {
        (Some(column), Some(key), Some(number)) => [column, key, number],
        (_, _, _) => unreachable!("the SQL changes JSON without a column, a key and a number: {argument}"),
    }
}

fn postgres_token(word: &str, argument: &str, free: &mut FreeParameters) -> String {
    match word {
        "id" => "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY".to_owned(),
        "integer" => "BIGINT".to_owned(),
        // Sorted by bytes. A new version of the system's library may sort the texts of a language in another order, and
        // indexes that were built before would then miss rows.
        "text" => "TEXT COLLATE \"C\"".to_owned(),
        "strict" | "clustered" => String::new(),
        "token" => "hashtextextended(CAST(gen_random_uuid() AS TEXT), 0) & 9223372036854775807".to_owned(),
        // The time of the statement, not that of the transaction's start.
        "now_ms" => "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)".to_owned(),
        "bounded" => {
            let (column, bound) = column_and_bound(argument);
            format!("greatest(-{bound}, least({bound}, {column}))")
        }
        "with_integer" => {
            let [column, key, number] = three(argument);
            format!(
                "CAST(jsonb_set(CAST({column} AS jsonb), '{{{key}}}', to_jsonb(CAST({number} AS BIGINT))) AS TEXT)"
            )
        }
        "readable" => format!(
            "to_char(to_timestamp({argument} / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.MS')"
        ),
        "lock" => "FOR UPDATE SKIP LOCKED".to_owned(),
        "wait" => "FOR UPDATE".to_owned(),
        "share" => "FOR SHARE".to_owned(),
        // An advisory lock, until the end of the transaction, for things that have no row to lock. It never waits, so it
        // can't be part of a deadlock.
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
        // The server checks foreign keys and checksums itself.
        "damage" => "(SELECT CAST(NULL AS TEXT) AS detail WHERE false)".to_owned(),
        // The planner expects an array to be short, and looks up its elements one by one in the index of ids. For a join it
        // might read both tables completely: see `by`.
        "in" if argument.starts_with(QUERY) => format!("= ANY (ARRAY({argument}))"),
        "in" => format!(
            "= ANY (ARRAY(SELECT CAST(value AS BIGINT) FROM jsonb_array_elements_text(CAST({argument} AS jsonb))))"
        ),
        // For a plain join the planner may choose to read a whole table while it is small, and keep that plan while the
        // table grows.
        "by" => {
            let Some((found, by)) = argument.split_once(" = ") else {
                unreachable!("the SQL finds rows by what is no comparison: {argument}")
            };
            format!("{found} = ANY (ARRAY[{by}])")
        }
        // With IS TRUE the condition does not match that of a partial index. Otherwise the planner might read all rows of
        // a state through that index, because of old statistics by which they are few.
        "guard" => format!("({argument}) IS TRUE"),
        "texts" => format!("jsonb_array_elements_text(CAST({argument} AS jsonb))"),
        // A comparison of texts before and after `replace` takes twice as long, and lets the planner expect that all rows match.
        "position" => "strpos".to_owned(),
        "rows" => postgres_rows(argument, free),
        unknown => unreachable!("the SQL uses a token that no dialect knows: {unknown}"),
    }
}

/// Hands out numbers of parameters that a text does not use.
struct FreeParameters {
    highest_used: usize,
}

impl FreeParameters {
    fn next(&mut self) -> usize {
        self.highest_used += 1;
        self.highest_used
    }
}

/// The highest number of a parameter in a text.
fn highest_parameter(sql: &str) -> usize {
    let numbers = sql.split('$').skip(1).filter_map(|rest| {
        let digits = rest.len() - rest.trim_start_matches(|character: char| character.is_ascii_digit()).len();
        rest[..digits].parse().ok()
    });
    numbers.max().unwrap_or(0)
}

/// The cast that marks a parameter as a column of a set of rows, with the column's type.
pub(super) fn array_cast(parameter: usize, kind: &str) -> String {
    format!("CAST(${parameter} AS {kind}[])")
}

/// `$1: id integer, name text` as a table of arrays, one for each column. The first array has the number of the argument;
/// the others have the numbers after the highest one in the text.
fn postgres_rows(argument: &str, free: &mut FreeParameters) -> String {
    let (parameter, columns) = argument.split_once(':').unwrap_or((argument, ""));
    let (mut names, mut arrays) = (Vec::new(), Vec::new());
    for (index, column) in columns.split(',').enumerate() {
        let mut words = column.split_whitespace();
        names.push(words.next().unwrap_or_default());
        let kind = if words.next() == Some("integer") { "BIGINT" } else { "TEXT" };
        let number = if index == 0 { highest_parameter(parameter) } else { free.next() };
        arrays.push(array_cast(number, kind));
    }
    let names = names.join(", ");
    format!("(SELECT {names} FROM unnest({}) AS given ({names}))", arrays.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_replaced_and_other_braces_are_not() {
        let translated = Dialect::Sqlite.translate("SELECT '{}' WHERE id {in $1}{lock} -- {", &[]);
        assert_eq!(translated, "SELECT '{}' WHERE id IN (SELECT value FROM json_each($1)) -- {");
    }

    #[test]
    fn by_becomes_an_array_comparison_on_postgres() {
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
        let translated = Dialect::Sqlite.translate_rows("{rows $1: id integer}", &[], RowsLayout::rows(3));
        assert_eq!(
            translated,
            "(SELECT column1 AS id FROM (VALUES ($rows), (?), (?)) WHERE column1 IS NOT NULL)"
        );
        let layout = RowsLayout { rows: 2, constant_columns: 0b101 };
        assert_eq!(
            Dialect::Sqlite.translate_rows("{rows $1: a integer, id integer, b text}", &[], layout),
            "(SELECT $constant0 AS a, column1 AS id, $constant2 AS b FROM (VALUES ($rows), (?)) \
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
            assert_eq!(highest_parameter(sql), expected, "{sql}");
        }
    }

    #[test]
    fn only_postgres_locks_rows() {
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
