//! The items of a job with `for_each`: where they come from, and what they are.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use crate::expression::{Expression, JobField};
use crate::limits;
use crate::template;

/// For which items a job is executed, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForEach {
    /// Where the items come from.
    pub items: ItemSource,
    /// How many items may run at a time. Nothing means all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_parallel: Option<i64>,
    /// Whether the first item that fails ends the others.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fail_fast: bool,
    /// How many items there may be.
    pub limit: i64,
}

/// Where items come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemSource {
    /// A written list. Texts in it may be templates that read `params` and `run`.
    List(Vec<Json>),
    /// An expression that gives a list.
    In(Expression),
    /// All combinations of written values.
    Matrix(Matrix),
}

/// All combinations of written values. An item is an object with one value of each dimension.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Matrix {
    /// The dimensions in the order of the file. Texts in the values may be templates that read `params` and `run`.
    pub dimensions: Vec<(String, Vec<Json>)>,
    /// Combinations with all values of one of these objects are left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<Map<String, Json>>,
}

impl ForEach {
    /// Executes the job for each item of a source, all of them at a time.
    #[must_use]
    pub fn of(items: ItemSource) -> ForEach {
        ForEach { items, max_parallel: None, fail_fast: false, limit: limits::ITEMS_DEFAULT }
    }

    /// The expression that gives the items, if there is one.
    #[must_use]
    pub fn expression(&self) -> Option<&Expression> {
        match &self.items {
            ItemSource::In(expression) => Some(expression),
            ItemSource::List(_) | ItemSource::Matrix(_) => None,
        }
    }

    /// The items for these values.
    ///
    /// # Errors
    /// Why there are none, for people: the expression has no value or gives no list, a template fails, there are too many
    /// items, or one is too large.
    pub fn items(&self, values: &Json) -> Result<Vec<Json>, String> {
        let items = match &self.items {
            ItemSource::List(items) => {
                items.iter().map(|item| rendered(item, values)).collect::<Result<_, _>>()?
            }
            ItemSource::In(expression) => listed(expression, values)?,
            ItemSource::Matrix(matrix) => matrix.items(values)?,
        };
        self.check_count(items.len())?;
        for (index, item) in items.iter().enumerate() {
            check_item(index, item)?;
        }
        Ok(items)
    }

    /// Checks how many items there are.
    ///
    /// # Errors
    /// There are too many. The error is for people.
    pub(crate) fn check_count(&self, items: usize) -> Result<(), String> {
        let limit = self.limit;
        if i64::try_from(items).is_ok_and(|items| items <= limit) {
            return Ok(());
        }
        let advice = if limit < limits::ITEMS { "; set `for_each.limit`" } else { "" };
        Err(format!("`for_each` gives {items} items, at most {limit}{advice}"))
    }

    /// How many items a written list or matrix has at most, without looking at its templates and at `exclude`.
    pub(crate) fn written_count(&self) -> Option<usize> {
        match &self.items {
            ItemSource::List(items) => Some(items.len()),
            ItemSource::Matrix(matrix) if matrix.exclude.is_empty() => Some(matrix.count()),
            ItemSource::In(_) | ItemSource::Matrix(_) => None,
        }
    }

    /// The written texts that may be templates.
    pub(crate) fn texts(&self) -> Vec<&str> {
        let mut texts = Vec::new();
        match &self.items {
            ItemSource::List(items) => items.iter().for_each(|item| add_texts(item, &mut texts)),
            ItemSource::In(_) => {}
            ItemSource::Matrix(Matrix { dimensions, exclude }) => {
                dimensions
                    .iter()
                    .flat_map(|(_, values)| values)
                    .for_each(|value| add_texts(value, &mut texts));
                exclude.iter().flat_map(Map::values).for_each(|value| add_texts(value, &mut texts));
            }
        }
        texts
    }
}

impl Matrix {
    /// How many combinations there are, with those that are excluded.
    pub(crate) fn count(&self) -> usize {
        self.dimensions.iter().fold(1, |count, (_, values)| count.saturating_mul(values.len()))
    }

    /// The combinations. The values of the last dimension change first.
    fn items(&self, values: &Json) -> Result<Vec<Json>, String> {
        if self.count() > limits::MATRIX {
            return Err(format!(
                "`for_each.matrix` has {} combinations, at most {}",
                self.count(),
                limits::MATRIX
            ));
        }
        let render_all = |written: &[Json]| -> Result<Vec<Json>, String> {
            written.iter().map(|value| rendered(value, values)).collect()
        };
        let mut combinations = vec![Map::new()];
        for (name, written) in &self.dimensions {
            let rendered = render_all(written)?;
            let with = |combination: &Map<String, Json>, value: &Json| {
                let mut longer = combination.clone();
                longer.insert(name.clone(), value.clone());
                longer
            };
            combinations = combinations
                .iter()
                .flat_map(|combination| rendered.iter().map(move |value| with(combination, value)))
                .collect();
        }
        let exclude: Vec<Json> = self
            .exclude
            .iter()
            .map(|pairs| rendered(&Json::Object(pairs.clone()), values))
            .collect::<Result<_, _>>()?;
        let is_excluded = |combination: &Map<String, Json>| {
            let has_all = |pairs: &Map<String, Json>| {
                pairs.iter().all(|(name, value)| combination.get(name) == Some(value))
            };
            exclude.iter().filter_map(Json::as_object).any(has_all)
        };
        combinations.retain(|combination| !is_excluded(combination));
        Ok(combinations.into_iter().map(Json::Object).collect())
    }
}

/// The list that an expression gives.
fn listed(expression: &Expression, values: &Json) -> Result<Vec<Json>, String> {
    let value =
        expression.value(values).map_err(|error| format!("`for_each` could not be decided: {error}"))?;
    let kind = match value {
        Json::Array(items) => return Ok(items),
        Json::String(_) => "a text",
        Json::Null => "null",
        Json::Bool(_) => "a boolean",
        Json::Number(_) => "a number",
        Json::Object(_) => "an object",
    };
    let source = expression.reads().into_iter().find(|read| read.field == JobField::Output);
    let advice = match source {
        Some(read) => format!("; is `output = \"json\"` missing in `{}`?", read.job),
        None => String::new(),
    };
    Err(format!("`for_each` gives {kind}, not a list{advice}"))
}

/// The value with its templates rendered.
fn rendered(written: &Json, values: &Json) -> Result<Json, String> {
    Ok(match written {
        Json::String(text) if template::is_template(text) => {
            Json::String(template::render(text, values).map_err(|error| format!("`for_each`: {error}"))?)
        }
        Json::Array(items) => items.iter().map(|item| rendered(item, values)).collect::<Result<_, _>>()?,
        Json::Object(fields) => {
            let field = |(name, value): (&String, &Json)| Ok((name.clone(), rendered(value, values)?));
            Json::Object(fields.iter().map(field).collect::<Result<_, String>>()?)
        }
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => written.clone(),
    })
}

fn check_item(index: usize, item: &Json) -> Result<(), String> {
    let bytes = item.to_string().len();
    if bytes > limits::ITEM_BYTES {
        let limit = limits::ITEM_BYTES / 1024;
        return Err(format!(
            "`for_each`: item {index} has {} KiB as JSON, at most {limit} KiB; write it to a file, and let the item name the file",
            bytes.div_ceil(1024)
        ));
    }
    if item.as_str().is_some_and(|text| text.contains('\0')) {
        return Err(format!(
            "`for_each`: item {index} contains a NUL character, which no process can be given"
        ));
    }
    Ok(())
}

fn add_texts<'w>(value: &'w Json, texts: &mut Vec<&'w str>) {
    match value {
        Json::String(text) => texts.push(text),
        Json::Array(items) => items.iter().for_each(|item| add_texts(item, texts)),
        Json::Object(fields) => fields.values().for_each(|field| add_texts(field, texts)),
        Json::Null | Json::Bool(_) | Json::Number(_) => {}
    }
}

/// The value of the variable `WINDLASS_ITEM`: a text as it is, anything else as JSON.
#[must_use]
pub fn item_text(item: &Json) -> String {
    item.as_str().map_or_else(|| item.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn items(source: ItemSource) -> Result<Vec<Json>, String> {
        let values = json!({
            "params": { "regions": ["eu", 7], "mode": "full" }, "run": {},
            "jobs": { "list": { "output": "a,b" } },
        });
        ForEach::of(source).items(&values)
    }

    fn expression(text: &str) -> ItemSource {
        ItemSource::In(Expression::parse(text).unwrap())
    }

    #[test]
    fn items_are_written_computed_or_combined() {
        let written = vec![json!("x-{{ params.mode }}"), json!({ "a": ["{{ params.mode }}"] }), json!(3)];
        assert_eq!(
            items(ItemSource::List(written)).unwrap(),
            [json!("x-full"), json!({ "a": ["full"] }), json!(3)]
        );
        assert_eq!(items(expression("params.regions")).unwrap(), [json!("eu"), json!(7)]);
        let matrix = Matrix {
            dimensions: vec![
                ("py".to_owned(), vec![json!("3.12"), json!("3.13")]),
                ("os".to_owned(), vec![json!("{{ params.mode }}"), json!("b")]),
            ],
            exclude: vec![json!({ "py": "3.12", "os": "b" }).as_object().unwrap().clone()],
        };
        assert_eq!(
            items(ItemSource::Matrix(matrix)).unwrap(),
            [
                json!({ "py": "3.12", "os": "full" }),
                json!({ "py": "3.13", "os": "full" }),
                json!({ "py": "3.13", "os": "b" }),
            ]
        );
    }

    #[test]
    fn what_is_no_list_too_long_or_too_large_says_so() {
        for (source, why) in [
            (
                expression("jobs.list.output"),
                "`for_each` gives a text, not a list; is `output = \"json\"` missing in `list`?",
            ),
            (expression("params.mode"), "`for_each` gives a text, not a list"),
            (expression("params.regions | length"), "`for_each` gives a number, not a list"),
            (
                ItemSource::List(vec![json!(0); 12_000]),
                "`for_each` gives 12000 items, at most 10000; set `for_each.limit`",
            ),
            (
                ItemSource::List(vec![json!(0), json!("x".repeat(70_000))]),
                "`for_each`: item 1 has 69 KiB as JSON, at most 64 KiB; write it to a file, and let the item name the file",
            ),
            (
                ItemSource::List(vec![json!("a\0b")]),
                "`for_each`: item 0 contains a NUL character, which no process can be given",
            ),
        ] {
            assert_eq!(items(source).unwrap_err(), why);
        }
        let unknown = items(expression("params.regions[0].x.y")).unwrap_err();
        assert!(unknown.starts_with("`for_each` could not be decided: "), "{unknown}");
        let mut most = ForEach::of(ItemSource::List(vec![json!(0); 100_001]));
        most.limit = limits::ITEMS;
        assert_eq!(most.items(&json!({})).unwrap_err(), "`for_each` gives 100001 items, at most 100000");
    }

    #[test]
    fn a_process_gets_a_text_as_it_is_and_anything_else_as_json() {
        assert_eq!(item_text(&json!("a b")), "a b");
        assert_eq!(item_text(&json!({ "a": [1, null] })), r#"{"a":[1,null]}"#);
        assert_eq!(item_text(&json!(null)), "null");
    }
}
