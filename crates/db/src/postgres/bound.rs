//! Converts parameters for the server: their types, and characters that PostgreSQL can't store.

use std::borrow::Cow;
use std::fmt;

use postgres::types::private::BytesMut;
use postgres::types::{IsNull, ToSql, Type, to_sql_checked};

use crate::Value;
use crate::dialect::array_cast;

/// The parameters of a statement, with their types. A set of rows becomes an array for each column: see `{rows …}` of the
/// dialect.
pub(super) fn bind<'a>(sql: &str, parameters: &[Value<'a>]) -> Vec<(Bound<'a>, Type)> {
    let mut bound: Vec<(Bound<'a>, Type)> = parameters
        .iter()
        .enumerate()
        .map(|(index, value)| match value {
            // The server infers the type.
            Value::Null => (Bound::Null, Type::UNKNOWN),
            Value::Integer(value) => (Bound::Integer(*value), Type::INT8),
            Value::Real(value) => (Bound::Real(*value), Type::FLOAT8),
            Value::Text(text) => {
                let is_json = || sql.contains(&format!("CAST(${} AS jsonb)", index + 1));
                let text = without_nul(text);
                let text = if text.contains("\\u0000") && is_json() {
                    Cow::Owned(without_escaped_nul(&text))
                } else {
                    text
                };
                (Bound::Text(text), Type::TEXT)
            }
            Value::Rows { values, width } => column(sql, index + 1, values.iter().step_by((*width).max(1))),
        })
        .collect();
    for value in parameters {
        let Value::Rows { values, width } = value else { continue };
        // The first column has the number of the set. The other columns follow all other parameters.
        for index in 1..*width {
            let number = bound.len() + 1;
            bound.push(column(sql, number, values.iter().skip(index).step_by(*width)));
        }
    }
    bound
}

/// A column of a set of rows, as an array of the type that the statement names.
fn column<'v, 'a: 'v>(
    sql: &str,
    number: usize,
    values: impl Iterator<Item = &'v Value<'a>>,
) -> (Bound<'a>, Type) {
    if sql.contains(&array_cast(number, "BIGINT")) {
        (Bound::Integers(values.map(integer).collect()), Type::INT8_ARRAY)
    } else {
        (Bound::Texts(values.map(text).collect()), Type::TEXT_ARRAY)
    }
}

fn integer(value: &Value<'_>) -> Option<i64> {
    match value {
        Value::Integer(value) => Some(*value),
        Value::Null => None,
        Value::Real(_) | Value::Text(_) | Value::Rows { .. } => {
            unreachable!("a column of whole numbers was given {value:?}")
        }
    }
}

fn text<'a>(value: &Value<'a>) -> Option<Cow<'a, str>> {
    match value {
        Value::Text(text) => Some(without_nul(text)),
        Value::Null => None,
        Value::Integer(_) | Value::Real(_) | Value::Rows { .. } => {
            unreachable!("a column of texts was given {value:?}")
        }
    }
}

/// Replaces NUL by U+FFFD, because PostgreSQL can't store NUL.
fn without_nul(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { Cow::Owned(text.replace('\0', "\u{fffd}")) } else { Cow::Borrowed(text) }
}

/// Replaces the escape of NUL in JSON, `\u0000`, unless its backslash is itself escaped.
fn without_escaped_nul(json: &str) -> String {
    let mut cleaned = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(start) = rest.find('\\') {
        let (before, escape) = rest.split_at(start);
        cleaned.push_str(before);
        let length = if escape.starts_with("\\u0000") { 6 } else { 2.min(escape.len()) };
        // In JSON the character after a backslash is ASCII. Any other character is not changed.
        let length = if escape.is_char_boundary(length) { length } else { 1 };
        cleaned.push_str(if length == 6 { "\\ufffd" } else { &escape[..length] });
        rest = &escape[length..];
    }
    cleaned.push_str(rest);
    cleaned
}

/// A value that is bound to a parameter.
pub(super) enum Bound<'a> {
    Null,
    Integer(i64),
    Real(f64),
    Text(Cow<'a, str>),
    Integers(Vec<Option<i64>>),
    Texts(Vec<Option<Cow<'a, str>>>),
}

/// Does not show texts, because the client library logs parameters, and payloads of jobs must not be logged.
impl fmt::Debug for Bound<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bound::Null => formatter.write_str("NULL"),
            Bound::Integer(value) => value.fmt(formatter),
            Bound::Real(value) => value.fmt(formatter),
            Bound::Text(text) => write!(formatter, "a text of {} bytes", text.len()),
            Bound::Integers(values) => values.fmt(formatter),
            Bound::Texts(values) => write!(formatter, "{} texts", values.len()),
        }
    }
}

impl Bound<'_> {
    pub(super) fn into_owned(self) -> Bound<'static> {
        let owned = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        match self {
            Bound::Null => Bound::Null,
            Bound::Integer(value) => Bound::Integer(value),
            Bound::Real(value) => Bound::Real(value),
            Bound::Text(text) => Bound::Text(owned(text)),
            Bound::Integers(values) => Bound::Integers(values),
            Bound::Texts(values) => Bound::Texts(values.into_iter().map(|text| text.map(owned)).collect()),
        }
    }
}

impl ToSql for Bound<'_> {
    fn to_sql(
        &self,
        kind: &Type,
        out: &mut BytesMut,
    ) -> std::result::Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self {
            Bound::Null => Ok(IsNull::Yes),
            Bound::Integer(value) => value.to_sql(kind, out),
            Bound::Real(value) => value.to_sql(kind, out),
            Bound::Text(value) => value.as_ref().to_sql(kind, out),
            Bound::Integers(values) => values.to_sql(kind, out),
            Bound::Texts(values) => values.to_sql(kind, out),
        }
    }

    fn accepts(_kind: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nul_is_replaced_and_an_escaped_backslash_before_u0000_is_kept() {
        assert_eq!(without_nul("a\0b"), "a\u{fffd}b");
        for (json, expected) in [
            (r#"["a\u0000b"]"#, r#"["a\ufffdb"]"#),
            (r#"["a\\u0000b"]"#, r#"["a\\u0000b"]"#),
            (r#"["\\\u0000\n\""]"#, r#"["\\\ufffd\n\""]"#),
            (r#"["\é"]"#, r#"["\é"]"#),
            ("\\", "\\"),
        ] {
            assert_eq!(without_escaped_nul(json), expected, "{json}");
        }
    }

    #[test]
    fn the_debug_form_of_a_value_shows_no_text() {
        let bound = bind("", &[Value::Text("secret"), Value::Integer(7), Value::Null]);
        let values: Vec<String> = bound.iter().map(|(value, _kind)| format!("{value:?}")).collect();
        assert_eq!(values, ["a text of 6 bytes", "7", "NULL"]);
    }

    #[test]
    fn escaped_nul_is_replaced_only_in_json_parameters() {
        let sql = "SELECT $1, CAST($2 AS jsonb)";
        let bound = bind(sql, &[Value::Text(r#""\u0000""#), Value::Text(r#""\u0000""#)]);
        assert!(matches!(&bound[0].0, Bound::Text(text) if text == r#""\u0000""#));
        assert!(matches!(&bound[1].0, Bound::Text(text) if text == r#""\ufffd""#));
    }
}
