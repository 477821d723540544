//! How a database spells what the shared SQL leaves open, as `{token}`s.
//!
//! | token | meaning |
//! | --- | --- |
//! | `{ids $1}` | the integers of the JSON list in parameter 1, as a subquery for `IN` |
//! | `{texts $1}` | the texts of the JSON list in parameter 1, as a table with the column `value` |
//! | `{rows $1: a integer, b text}` | a JSON list of lists in parameter 1 as a table with these columns |
//! | `{lock}` | skip rows that another transaction holds |
//! | `{now_ms}` | the database's clock, for defaults of rows inserted from outside |
//! | `{readable column}` | an instant as text |
//! | `{tables}` | the names of all tables and views, as a table with the column `name` |
//! | `{damage}` | what the storage's own check finds, as a table with the column `detail` |
//! | `{id}`, `{integer}`, `{strict}`, `{clustered}` | of tables |

/// The spelling of one database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// SQLite 3.51.3 or newer.
    Sqlite,
}

impl Dialect {
    /// Replaces every token of `sql`. A brace that no lower-case letter follows is left alone.
    #[must_use]
    pub fn translate(self, sql: &str) -> String {
        let mut translated = String::with_capacity(sql.len() + 64);
        let mut rest = sql;
        while let Some(start) = rest.find('{') {
            let (before, token) = rest.split_at(start);
            translated.push_str(before);
            let starts_token = token[1..].starts_with(|character: char| character.is_ascii_lowercase());
            match (starts_token, token.find('}')) {
                (true, Some(end)) => {
                    translated.push_str(&self.token(&token[1..end]));
                    rest = &token[end + 1..];
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

    fn token(self, token: &str) -> String {
        let (word, argument) = token.split_once(' ').unwrap_or((token, ""));
        match self {
            Dialect::Sqlite => sqlite_token(word, argument),
        }
    }
}

fn sqlite_token(word: &str, argument: &str) -> String {
    match word {
        // No id is ever given out twice, also after pruning: idempotency keys are made of them.
        "id" => "INTEGER PRIMARY KEY AUTOINCREMENT".to_owned(),
        "integer" => "INTEGER".to_owned(),
        "strict" => "STRICT".to_owned(),
        "clustered" => "STRICT, WITHOUT ROWID".to_owned(),
        // Other programs insert with the SQLite they have: `unixepoch('subsec')` is NULL before 3.42.
        "now_ms" => "CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER)".to_owned(),
        "readable" => format!("strftime('%Y-%m-%d %H:%M:%f', {argument} / 1000.0, 'unixepoch')"),
        // One writer at a time: there is nobody to skip.
        "lock" => String::new(),
        "tables" => "(SELECT name FROM sqlite_master WHERE type IN ('table', 'view'))".to_owned(),
        "damage" => "(SELECT integrity_check AS detail FROM pragma_integrity_check
                       WHERE integrity_check <> 'ok'
                      UNION ALL
                      SELECT 'a row of ' || \"table\" || ' names a missing row of ' || parent
                      FROM pragma_foreign_key_check)"
            .to_owned(),
        "ids" => format!("(SELECT value FROM json_each({argument}))"),
        "texts" => format!("json_each({argument})"),
        "rows" => sqlite_rows(argument),
        unknown => unreachable!("the SQL uses a token that no dialect knows: {unknown}"),
    }
}

/// `$1: id integer, name text` as a table over `json_each`. SQLite keeps the types of JSON.
fn sqlite_rows(argument: &str) -> String {
    let (parameter, columns) = argument.split_once(':').unwrap_or((argument, ""));
    let columns: Vec<String> = columns
        .split(',')
        .enumerate()
        .map(|(index, column)| {
            let name = column.split_whitespace().next().unwrap_or_default();
            format!("value ->> {index} AS {name}")
        })
        .collect();
    format!("(SELECT {} FROM json_each({parameter}))", columns.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_replaced_and_json_is_left_alone() {
        let translated = Dialect::Sqlite.translate("SELECT '{}' WHERE id IN {ids $1}{lock} -- {");
        assert_eq!(translated, "SELECT '{}' WHERE id IN (SELECT value FROM json_each($1)) -- {");
    }

    #[test]
    fn rows_become_a_table() {
        let translated = Dialect::Sqlite.translate("FROM {rows $2: id integer, status text} AS news");
        assert_eq!(
            translated,
            "FROM (SELECT value ->> 0 AS id, value ->> 1 AS status FROM json_each($2)) AS news"
        );
    }
}
