//! A validator for the part of JSON Schema that the schema of workflow files uses. It panics at any other keyword.

use serde_json::Value as Json;

/// Whether a value is valid. `root` is the whole schema.
pub(crate) fn is_valid(schema: &Json, root: &Json, value: &Json) -> bool {
    let Json::Object(rules) = schema else { return schema == &Json::Bool(true) };
    rules.iter().all(|(keyword, rule)| holds(keyword, rule, schema, root, value))
}

fn holds(keyword: &str, rule: &Json, schema: &Json, root: &Json, value: &Json) -> bool {
    let all = || rule.as_array().expect("a list").iter();
    let count = || all().filter(|part| is_valid(part, root, value)).count();
    match keyword {
        "$schema" | "$defs" | "title" | "description" => true,
        "$ref" => {
            let pointer = rule.as_str().and_then(|text| text.strip_prefix('#')).expect("a reference inside");
            is_valid(root.pointer(pointer).expect("it exists"), root, value)
        }
        "type" => match rule.as_array() {
            Some(types) => types.iter().any(|name| has_type(name, value)),
            None => has_type(rule, value),
        },
        "enum" => all().any(|known| known == value),
        "pattern" => {
            assert_eq!(rule, r"^\s*([0-9]+\s*[a-z]+\s*)+$");
            value.as_str().is_none_or(is_duration)
        }
        "allOf" => all().all(|part| is_valid(part, root, value)),
        "anyOf" => count() > 0,
        "oneOf" => count() == 1,
        "not" => !is_valid(rule, root, value),
        "required" => all().all(|key| value.get(key.as_str().expect("a key")).is_some()),
        "minProperties" => {
            value.as_object().is_none_or(|table| table.len() as u64 >= rule.as_u64().expect("a number"))
        }
        "propertyNames" => value
            .as_object()
            .is_none_or(|table| table.keys().all(|key| is_valid(rule, root, &Json::from(key.as_str())))),
        "items" => value.as_array().is_none_or(|items| items.iter().all(|item| is_valid(rule, root, item))),
        "properties" => {
            let known = rule.as_object().expect("a table");
            value.as_object().is_none_or(|table| {
                table.iter().all(|(key, value)| known.get(key).is_none_or(|rule| is_valid(rule, root, value)))
            })
        }
        "additionalProperties" => value.as_object().is_none_or(|table| {
            let known = schema.get("properties").and_then(Json::as_object);
            let is_other = |key: &str| known.is_none_or(|known| !known.contains_key(key));
            table.iter().filter(|(key, _)| is_other(key)).all(|(_, value)| is_valid(rule, root, value))
        }),
        other => panic!("the validator does not know `{other}`"),
    }
}

fn has_type(name: &Json, value: &Json) -> bool {
    match name.as_str().expect("the name of a type") {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        other => panic!("the validator does not know the type `{other}`"),
    }
}

/// The pattern of durations.
fn is_duration(text: &str) -> bool {
    let mut rest = text.trim();
    while !rest.is_empty() {
        let digits = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        let unit = digits.trim_start();
        let after = unit.trim_start_matches(|c: char| c.is_ascii_lowercase());
        if digits.len() == rest.len() || after.len() == unit.len() {
            return false;
        }
        rest = after.trim_start();
    }
    !text.trim().is_empty()
}
