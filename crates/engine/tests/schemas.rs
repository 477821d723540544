//! The tables of both databases are the same in every column, so that programs which use plain SQL need not know
//! which database it is.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use std::collections::BTreeSet;

use windlass_engine::Clock;
use windlass_test_database::{Access, DatabaseKind, Row, Sql, TestDatabase};

/// One line for each part of a schema, in words that are the same for both databases.
type Description = BTreeSet<String>;

#[test]
fn both_databases_have_the_same_tables() {
    let folder = tempfile::tempdir().unwrap();
    let sqlite = TestDatabase::of_kind(DatabaseKind::Sqlite, folder.path());
    let postgres = TestDatabase::of_kind(DatabaseKind::Postgres, folder.path());
    for database in [&sqlite, &postgres] {
        drop(support::open(database, &Clock::system()));
    }
    let server = postgres.sql(Access::Write);
    let (of_sqlite, of_postgres) =
        (describe_sqlite(&sqlite.sql(Access::Read), &server), describe_postgres(&server));
    let only_sqlite: Vec<_> = of_sqlite.difference(&of_postgres).collect();
    let only_postgres: Vec<_> = of_postgres.difference(&of_sqlite).collect();
    assert!(
        only_sqlite.is_empty() && only_postgres.is_empty(),
        "only SQLite has {only_sqlite:#?}, only PostgreSQL has {only_postgres:#?}"
    );
    for kind in ["column", "order", "default", "key", "unique", "index", "check", "foreign key", "view"] {
        assert!(of_sqlite.iter().any(|line| line.starts_with(kind)), "no {kind} was compared");
    }
}

/// Each of these changes must be found. Otherwise the comparison proves nothing.
const DIFFERENCES: [&str; 18] = [
    "ALTER TABLE jobs ADD COLUMN more BIGINT",
    "ALTER TABLE jobs DROP COLUMN priority CASCADE",
    "ALTER TABLE jobs ALTER COLUMN name SET NOT NULL",
    "ALTER TABLE job_attempts ALTER COLUMN attempt TYPE INT",
    "ALTER TABLE job_attempts ALTER COLUMN error TYPE TEXT COLLATE \"POSIX\"",
    "ALTER TABLE jobs ALTER COLUMN priority DROP DEFAULT",
    "ALTER TABLE jobs ALTER COLUMN priority SET DEFAULT 1",
    "ALTER TABLE workers ALTER COLUMN id DROP IDENTITY",
    "ALTER TABLE queues DROP CONSTRAINT queues_pkey; ALTER TABLE queues ALTER COLUMN name SET NOT NULL",
    "ALTER TABLE runs DROP CONSTRAINT runs_run_key_key",
    "DROP INDEX jobs_claim",
    "DROP INDEX jobs_due; CREATE INDEX jobs_due ON jobs (execute_after, id DESC) WHERE status = 'SCHEDULED'",
    "DROP INDEX jobs_due; CREATE INDEX jobs_due ON jobs (execute_after, id)",
    "DROP INDEX jobs_due; CREATE UNIQUE INDEX jobs_due ON jobs (execute_after, id) WHERE status = 'SCHEDULED'",
    "ALTER TABLE jobs DROP CONSTRAINT jobs_status_check",
    "ALTER TABLE job_logs DROP CONSTRAINT job_logs_job_id_fkey",
    "DROP VIEW job_stats",
    "DROP VIEW job_stats; CREATE VIEW job_stats AS SELECT count(*) AS jobs, 1 AS status",
];

#[test]
fn a_difference_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let postgres = TestDatabase::of_kind(DatabaseKind::Postgres, folder.path());
    drop(support::open(&postgres, &Clock::system()));
    let server = postgres.sql(Access::Write);
    let whole = describe_postgres(&server);
    for difference in DIFFERENCES {
        server.execute(&format!("BEGIN; {difference}"));
        assert_ne!(describe_postgres(&server), whole, "{difference}");
        server.execute("ROLLBACK");
    }
    assert_eq!(describe_postgres(&server), whole);
}

fn column(table: &str, name: &str, kind: &str, is_null: IsNull) -> String {
    let null = match is_null {
        IsNull::Allowed => "",
        IsNull::Refused => " NOT NULL",
    };
    format!("column {table}.{name} {kind}{null}")
}

#[derive(Clone, Copy)]
enum IsNull {
    Allowed,
    Refused,
}

impl IsNull {
    fn refused(is_refused: bool) -> IsNull {
        if is_refused { IsNull::Refused } else { IsNull::Allowed }
    }
}

/// A constant as it is written. Expressions are not compared, because the dialect spells them differently.
fn default(table: &str, column: &str, text: &str) -> String {
    let constant = text.split("::").next().unwrap_or(text);
    let is_constant = constant.starts_with('\'') || constant.parse::<i64>().is_ok();
    format!("default of {table}.{column}: {}", if is_constant { constant } else { "an expression" })
}

/// A condition as PostgreSQL prints it, so that different spellings of the same condition are equal.
fn as_postgres_prints_it(server: &Sql, table: &str, predicate: &str) -> String {
    server.execute(&format!(
        "CREATE TABLE compared (LIKE {table}); ALTER TABLE compared ADD CONSTRAINT it CHECK ({predicate})"
    ));
    let text = server.value(
        "SELECT pg_get_expr(conbin, conrelid) FROM pg_constraint
                             WHERE conname = 'it' AND conrelid = CAST('compared' AS regclass)",
    );
    server.execute("DROP TABLE compared");
    text
}

fn describe_sqlite(file: &Sql, server: &Sql) -> Description {
    let mut found = Description::new();
    let objects = file.rows(
        "SELECT type, name, tbl_name, sql FROM sqlite_master
         WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%'",
        |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get::<_, String>(3)?)),
    );
    for (kind, name, sql) in &objects {
        if kind == "view" {
            found.insert(view(
                name,
                file.rows(&format!("SELECT name FROM pragma_table_info('{name}')"), text),
            ));
            continue;
        }
        sqlite_columns(file, name, sql, &mut found);
        sqlite_indexes(file, server, name, &mut found);
        for check in checks(sql) {
            found.insert(format!("check of {name}: {}", as_postgres_prints_it(server, name, check)));
        }
        let keys = format!("SELECT \"from\", \"table\", on_delete FROM pragma_foreign_key_list('{name}')");
        found.extend(file.rows(&keys, |row| foreign_key(name, row)));
    }
    found
}

fn text(row: &Row) -> windlass_test_database::Result<String> {
    row.get(0)
}

fn view(name: &str, columns: Vec<String>) -> String {
    format!("view {name}: {}", columns.join(", "))
}

/// The order of the columns, on which an INSERT without column names depends.
fn order<'a>(table: &str, columns: impl Iterator<Item = &'a str>) -> String {
    format!("order of {table}: {}", columns.collect::<Vec<_>>().join(", "))
}

fn foreign_key(table: &str, row: &Row) -> windlass_test_database::Result<String> {
    let (column, other, action): (String, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
    Ok(format!("foreign key {table}.{column} to {other}, then {action}"))
}

fn sqlite_columns(file: &Sql, table: &str, sql: &str, found: &mut Description) {
    let columns = file.rows(
        &format!("SELECT name, type, \"notnull\", dflt_value, pk FROM pragma_table_info('{table}')"),
        |row| {
            let default: Option<String> = row.get(3)?;
            Ok((
                row.get::<_, String>(0)?,
                row.get::<_, String>(1)?,
                row.get::<_, bool>(2)?,
                default,
                row.get::<_, i64>(4)?,
            ))
        },
    );
    found.insert(order(table, columns.iter().map(|column| column.0.as_str())));
    let mut key: Vec<(i64, &str)> = Vec::new();
    for (name, kind, is_not_null, its_default, place_in_key) in &columns {
        let is_generated = *place_in_key > 0 && sql.contains("AUTOINCREMENT");
        let kind = if is_generated { "generated INTEGER" } else { kind };
        found.insert(column(table, name, kind, IsNull::refused(*is_not_null || *place_in_key > 0)));
        found.extend(its_default.as_deref().map(|text| default(table, name, text)));
        if *place_in_key > 0 {
            key.push((*place_in_key, name));
        }
    }
    key.sort_unstable();
    let key: Vec<&str> = key.into_iter().map(|(_, name)| name).collect();
    found.insert(format!("key of {table}: {}", key.join(", ")));
}

/// Stands for an expression in an index, which the dialect spells differently.
const EXPRESSION: &str = "an expression";

fn sqlite_indexes(file: &Sql, server: &Sql, table: &str, found: &mut Description) {
    let indexes = file.rows(
        &format!(
            "SELECT list.name, list.\"unique\", list.origin, master.sql FROM pragma_index_list('{table}') AS list
             LEFT JOIN sqlite_master AS master ON master.name = list.name WHERE list.origin <> 'pk'"
        ),
        |row| Ok((row.get::<_, String>(0)?, row.get::<_, bool>(1)?, row.get::<_, String>(2)?, row.get::<_, Option<String>>(3)?)),
    );
    for (name, is_unique, origin, sql) in indexes {
        let columns = file.rows(
            &format!("SELECT name, \"desc\" FROM pragma_index_xinfo('{name}') WHERE key = 1 ORDER BY seqno"),
            |row| {
                let column = row.get::<_, Option<String>>(0)?.unwrap_or_else(|| EXPRESSION.to_owned());
                Ok(format!("{column}{}", if row.get(1)? { " DESC" } else { "" }))
            },
        );
        let predicate = sql.as_deref().and_then(|sql| sql.split_once(" WHERE "));
        let predicate = predicate.map(|(_, predicate)| as_postgres_prints_it(server, table, predicate));
        let name = if origin == "u" { None } else { Some(name.as_str()) };
        found.insert(index(table, name, is_unique, &columns, predicate.as_deref()));
    }
}

/// An index that belongs to a constraint has a name that the database chose.
fn index(
    table: &str,
    name: Option<&str>,
    is_unique: bool,
    columns: &[String],
    predicate: Option<&str>,
) -> String {
    let kind = if is_unique { "unique" } else { "index" };
    let (name, predicate) = (name.unwrap_or("of a constraint"), predicate.unwrap_or("everywhere"));
    format!("{kind} {name} on {table}: {} {predicate}", columns.join(", "))
}

/// The texts in the parentheses after each CHECK.
fn checks(sql: &str) -> Vec<&str> {
    let after_each = sql.match_indices("CHECK (").map(|(start, word)| &sql[start + word.len()..]);
    after_each
        .map(|rest| {
            let mut depth = 1;
            let end = rest.find(|character: char| {
                depth += match character {
                    '(' => 1,
                    ')' => -1,
                    _other => 0,
                };
                depth == 0
            });
            &rest[..end.unwrap()]
        })
        .collect()
}

fn describe_postgres(server: &Sql) -> Description {
    let mut found = Description::new();
    let tables = server.rows(
        "SELECT CAST(relname AS text), relkind = 'v' FROM pg_class
         WHERE relnamespace = CAST(current_schema() AS regnamespace) AND relkind IN ('r', 'p', 'v')",
        |row| Ok((row.get::<_, String>(0)?, row.get::<_, bool>(1)?)),
    );
    for (name, is_view) in &tables {
        let columns = postgres_columns(server, name);
        if *is_view {
            found.insert(view(name, columns.into_iter().map(|column| column.name).collect()));
            continue;
        }
        found.insert(order(name, columns.iter().map(|column| column.name.as_str())));
        for its in columns {
            found.insert(column(name, &its.name, &its.kind, IsNull::refused(its.is_not_null)));
            found.extend(its.default.map(|text| default(name, &its.name, &text)));
        }
        found.extend(server.rows(
            &format!(
                "SELECT pg_get_expr(conbin, conrelid) FROM pg_constraint
             WHERE contype = 'c' AND conrelid = CAST('{name}' AS regclass)"
            ),
            |row| Ok(format!("check of {name}: {}", row.get::<_, String>(0)?)),
        ));
        found.extend(server.rows(&format!(
            "SELECT attname, confrelid::regclass, CASE confdeltype WHEN 'a' THEN 'NO ACTION' WHEN 'c' THEN 'CASCADE'
                    ELSE confdeltype::text END
             FROM pg_constraint JOIN pg_attribute ON attrelid = conrelid AND attnum = ANY (conkey)
             WHERE contype = 'f' AND conrelid = CAST('{name}' AS regclass)"),
            |row| foreign_key(name, row)));
        postgres_indexes(server, name, &mut found);
    }
    found
}

struct ColumnOfPostgres {
    name: String,
    kind: String,
    is_not_null: bool,
    default: Option<String>,
}

fn postgres_columns(server: &Sql, table: &str) -> Vec<ColumnOfPostgres> {
    let sql = format!(
        "SELECT attname, attnotnull, pg_get_expr(adbin, adrelid),
                CASE WHEN attidentity = 'd' THEN 'generated ' ELSE attidentity::text END
                || CASE format_type(atttypid, atttypmod) || coalesce(' ' || collname, '')
                   WHEN 'bigint' THEN 'INTEGER' WHEN 'text C' THEN 'TEXT' ELSE format_type(atttypid, atttypmod) END
         FROM pg_attribute LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
         LEFT JOIN pg_collation ON pg_collation.oid = attcollation
         WHERE attrelid = CAST('{table}' AS regclass) AND attnum > 0 AND NOT attisdropped ORDER BY attnum"
    );
    server.rows(&sql, |row| {
        Ok(ColumnOfPostgres {
            name: row.get(0)?,
            is_not_null: row.get(1)?,
            default: row.get(2)?,
            kind: row.get(3)?,
        })
    })
}

fn postgres_indexes(server: &Sql, table: &str, found: &mut Description) {
    let indexes = server.rows(&format!(
        "SELECT relname, indisprimary, indisunique, pg_get_expr(indpred, indrelid),
                (SELECT string_agg(CASE indkey[place - 1] WHEN 0 THEN '{EXPRESSION}'
                                   ELSE pg_get_indexdef(indexrelid, place, false) END
                        || CASE WHEN pg_index_column_has_property(indexrelid, place, 'desc') THEN ' DESC' ELSE '' END,
                        ', ' ORDER BY place) FROM generate_series(1, indnkeyatts) AS place),
                EXISTS (SELECT 1 FROM pg_constraint WHERE conindid = indexrelid AND contype IN ('u', 'p'))
         FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
         WHERE indrelid = CAST('{table}' AS regclass)"), |row| {
            let columns: String = row.get(4)?;
            if row.get(1)? {
                return Ok(format!("key of {table}: {columns}"));
            }
            let name: String = row.get(0)?;
            let name = if row.get(5)? { None } else { Some(name.as_str()) };
            let predicate: Option<String> = row.get(3)?;
            Ok(index(table, name, row.get(2)?, &[columns], predicate.as_deref()))
        });
    found.extend(indexes);
}
