//! Reads `for_each`: a list, an expression, or a table with one of them and settings.

use crate::expression::Expression;
use crate::for_each::{ForEach, ItemSource, Matrix};
use crate::keys::{self, FOR_EACH, FOR_EACH_IN, MATRIX, Table};
use crate::report::{Finding, Findings};
use crate::template::{self, Templates};
use crate::tree::{Entry, Node, Value};
use crate::{expect, limits};

const EXPECTED: &str =
    "a list, an expression in quotes, or a table like { in = \"jobs.list.output\", max_parallel = 10 }";

pub(super) fn read<'t>(
    entry: &'t Entry<'_>,
    templates: &mut Templates<'t>,
    findings: &mut Findings,
) -> Option<ForEach> {
    let for_each = if let Value::Table(_) = &entry.node.value {
        read_table(entry, templates, findings)?
    } else {
        ForEach::of(read_items(entry, &FOR_EACH, templates, findings)?)
    };
    if let Some(Err(error)) = for_each.written_count().map(|count| for_each.check_count(count)) {
        findings.push(Finding::new(entry.key_span.clone(), error));
    }
    Some(for_each)
}

/// Reads a written list, or an expression.
fn read_items<'t>(
    entry: &'t Entry<'_>,
    key: &keys::Key,
    templates: &mut Templates<'t>,
    findings: &mut Findings,
) -> Option<ItemSource> {
    if let Value::List(items) = &entry.node.value {
        items.iter().for_each(|item| add_texts(item, templates));
        return items.iter().map(Node::to_json).collect::<Option<_>>().map(ItemSource::List);
    }
    if let Value::Text(_) = &entry.node.value {
        let expression: Expression = expect::expression(entry, key, templates, findings)?;
        return Some(ItemSource::In(expression));
    }
    expect::wrong_type(&entry.node, &expect::quoted(entry), EXPECTED, findings);
    None
}

fn read_table<'t>(
    entry: &'t Entry<'_>,
    templates: &mut Templates<'t>,
    findings: &mut Findings,
) -> Option<ForEach> {
    let (mut source, mut exclude, mut is_wrong) = (None, None, false);
    let mut for_each = ForEach::of(ItemSource::List(Vec::new()));
    for part in expect::table(entry, usize::MAX, EXPECTED, findings)? {
        let Ok(key) = keys::find(part, Table::ForEach, findings) else {
            is_wrong = true;
            continue;
        };
        match key.name() {
            "in" | "matrix" if source.is_some() => {
                let message = "`for_each` has both `in` and `matrix`";
                let finding = Finding::new(part.key_span.clone(), message);
                findings.push(finding.help("one of `in`, `matrix`: keep the one that gives the items"));
                is_wrong = true;
            }
            "in" => source = Some(read_items(part, &FOR_EACH_IN, templates, findings)),
            "matrix" => source = Some(read_matrix(part, templates, findings).map(ItemSource::Matrix)),
            "exclude" => exclude = Some((part, read_exclude(part, templates, findings))),
            "max_parallel" => {
                for_each.max_parallel = expect::integer(part, 1..=limits::ITEMS, findings);
                is_wrong |= for_each.max_parallel.is_none();
            }
            "fail_fast" => for_each.fail_fast = expect::boolean(part, findings)?,
            "limit" => for_each.limit = expect::integer(part, 1..=limits::ITEMS, findings)?,
            _ => (),
        }
    }
    match source {
        Some(items) => for_each.items = items?,
        None if is_wrong => return None,
        None => {
            let finding = Finding::new(entry.key_span.clone(), "`for_each` has no items");
            findings.push(finding.help("add one of `in`, `matrix`"));
            return None;
        }
    }
    if let Some((part, combinations)) = exclude {
        exclude_from(&mut for_each.items, part, combinations, findings);
    }
    (!is_wrong).then_some(for_each)
}

fn read_matrix<'t>(
    entry: &'t Entry<'_>,
    templates: &mut Templates<'t>,
    findings: &mut Findings,
) -> Option<Matrix> {
    let expected = "a table of names and lists, like { os = [\"linux\", \"mac\"] }";
    let entries = expect::table(entry, limits::MATRIX_DIMENSIONS, expected, findings)?;
    let mut dimensions = Vec::with_capacity(entries.len());
    for dimension in entries {
        let values = expect::list(dimension, usize::MAX, "a list of values", findings)?;
        if values.is_empty() {
            let message = format!("`{}` of `matrix` is empty, so there is no combination", dimension.key);
            findings.push(Finding::new(dimension.node.span.clone(), message));
        }
        values.iter().for_each(|value| add_texts(value, templates));
        let values = values.iter().map(Node::to_json).collect::<Option<_>>()?;
        dimensions.push((dimension.key.to_string(), values));
    }
    if dimensions.is_empty() {
        let finding = Finding::new(entry.node.span.clone(), "`matrix` is empty");
        findings.push(finding.help("add a name and a list of values, as in os = [\"linux\", \"mac\"]"));
        return None;
    }
    let matrix = Matrix { dimensions, exclude: Vec::new() };
    if matrix.count() > limits::MATRIX {
        let message = format!("`matrix` has {} combinations, at most {}", matrix.count(), limits::MATRIX);
        findings.push(Finding::new(entry.key_span.clone(), message).help(format!(
            "remove values, or call a workflow that has a part of them; a job has {} items, or up to {} with `limit`",
            limits::ITEMS_DEFAULT,
            limits::ITEMS
        )));
        return None;
    }
    Some(matrix)
}

/// Reads the combinations that are left out.
fn read_exclude<'t, 's>(
    entry: &'t Entry<'s>,
    templates: &mut Templates<'t>,
    findings: &mut Findings,
) -> Vec<&'t Node<'s>> {
    let expected = "a list of tables like { os = \"mac\" }";
    let mut combinations = Vec::new();
    for node in expect::list(entry, limits::MATRIX_EXCLUDE, expected, findings).unwrap_or_default() {
        if let Value::Table(pairs) = &node.value {
            pairs.iter().for_each(|pair| add_texts(&pair.node, templates));
            combinations.push(node);
        } else {
            expect::wrong_type(node, "an item of `exclude`", "a table like { os = \"mac\" }", findings);
        }
    }
    combinations
}

/// Leaves combinations out. Each names dimensions of the matrix.
fn exclude_from(
    items: &mut ItemSource,
    entry: &Entry<'_>,
    combinations: Vec<&Node<'_>>,
    findings: &mut Findings,
) {
    let ItemSource::Matrix(matrix) = items else {
        let finding = Finding::new(entry.key_span.clone(), "`exclude` leaves out combinations of a `matrix`");
        findings.push(finding.help("remove `exclude`, or write a `matrix`"));
        return;
    };
    for node in combinations {
        let Value::Table(pairs) = &node.value else { continue };
        for pair in pairs {
            let known = || matrix.dimensions.iter().map(|(name, _)| name.as_str());
            if let Some((name, values)) = matrix.dimensions.iter().find(|(name, _)| *name == pair.key) {
                if let Some(finding) = unknown_value(name, values, &pair.node) {
                    findings.push(finding);
                }
                continue;
            }
            let finding = Finding::new(pair.key_span.clone(), format!("`matrix` has no `{}`", pair.key));
            let near = findings.nearest(&pair.key, known());
            findings.push(match near {
                Some(near) => finding.help(format!("did you mean `{near}`?")),
                None => finding,
            });
        }
        matrix.exclude.extend(node.to_json().and_then(|json| json.as_object().cloned()));
    }
}

/// A value to leave out that the dimension does not have, so that nothing would be left out. Templates are not known yet.
fn unknown_value(name: &str, values: &[serde_json::Value], node: &Node<'_>) -> Option<Finding> {
    let is_open = |value: &serde_json::Value| value.as_str().is_some_and(template::is_template);
    let wanted = node.to_json()?;
    if is_open(&wanted) || values.iter().any(|value| *value == wanted || is_open(value)) {
        return None;
    }
    let text = |value: &serde_json::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let help = match values.iter().find(|value| text(value) == text(&wanted)) {
        Some(same) => format!("write {same}: a number and a text are not the same"),
        None => {
            let known: Vec<String> = values.iter().take(10).map(ToString::to_string).collect();
            format!("the values are {}", known.join(", "))
        }
    };
    Some(Finding::new(node.span.clone(), format!("`{name}` of `matrix` has no value {wanted}")).help(help))
}

/// Adds the texts of a written value, which may be templates.
fn add_texts<'t>(node: &'t Node<'_>, templates: &mut Templates<'t>) {
    match &node.value {
        Value::Text(_) => templates.add(node, &MATRIX),
        Value::List(items) => items.iter().for_each(|item| add_texts(item, templates)),
        Value::Table(entries) => entries.iter().for_each(|entry| add_texts(&entry.node, templates)),
        Value::Integer(_)
        | Value::Number(_)
        | Value::Boolean(_)
        | Value::Date(_)
        | Value::Null
        | Value::Broken => {}
    }
}
