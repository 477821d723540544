//! Evaluates a bare expression.
//!
//! It differs from the evaluation of templates in four rules. Three make mistakes visible: `and`, `or`, `not` and `if` need
//! true or false, an order exists only between two numbers or two texts, and null is unequal to everything. The fourth: two
//! texts that are times with offsets are compared as instants.
//! Look-ups, arithmetic and filters are those of templates.

use std::cmp::Ordering;

use chrono::{DateTime, FixedOffset};
use minijinja::Error;
use minijinja::machinery::ast::{
    BinOpKind, CallArg, Compare, CompareOpKind, Expr, Filter, GetAttr, GetItem, IfExpr, List, Slice, Test,
    UnaryOp, UnaryOpKind,
};
use minijinja::machinery::parse_expr;
use minijinja::value::{Kwargs, Serde, Value, ValueKind};
use serde_json::Value as Json;

use super::filters::environment;
use super::lookups;
use super::missing::explain_absent;
use crate::limits;

/// The value of the expression. The error has names and no values.
pub(super) fn evaluate(text: &str, values: &Json) -> Result<Json, String> {
    let lookups = lookups(text).map_err(|fault| fault.message)?;
    let parsed = parse_expr(text).map_err(|error| error.to_string())?;
    let root = Value::from(Serde(values));
    let mut evaluation = Evaluation { root, steps: 0 };
    let value = evaluation.value(&parsed).map_err(|failure| match failure {
        Failure::Missing => {
            explain_absent(&lookups, values).unwrap_or_else(|| "a name has no value".to_owned())
        }
        Failure::Message(message) => message,
    })?;
    if value.is_undefined() {
        return Err(explain_absent(&lookups, values).unwrap_or_else(|| "it has no value".to_owned()));
    }
    serde_json::to_value(&value).map_err(|_| "the value cannot be written as JSON".to_owned())
}

/// Why there is no value.
enum Failure {
    /// A look-up found nothing.
    Missing,
    Message(String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let message = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
        Failure::Message(message)
    }
}

struct Evaluation {
    /// The object with all names.
    root: Value,
    steps: u64,
}

impl Evaluation {
    /// The value of a part, which may be undefined.
    // The length of an expression bounds the depth of this recursion.
    fn value(&mut self, part: &Expr<'_>) -> Result<Value, Failure> {
        self.steps += 1;
        if self.steps > limits::TEMPLATE_FUEL {
            return fail("it takes too many steps");
        }
        // Each arm is a call, so that the frame of this recursive function stays small.
        match part {
            Expr::Const(constant) => Ok(constant.value.clone()),
            Expr::Var(variable) => field(&self.root, &Value::from(variable.id)),
            Expr::GetAttr(attribute) => self.attribute(attribute),
            Expr::GetItem(item) => self.item(item),
            Expr::Slice(slice) => self.slice(slice),
            Expr::UnaryOp(operation) => self.unary(operation),
            Expr::BinOp(operation) => self.binary(operation.op, &operation.left, &operation.right),
            Expr::Compare(comparison) => self.comparison(comparison),
            Expr::IfExpr(choice) => self.choice(choice),
            Expr::Filter(filter) => self.filter(filter),
            Expr::Test(test) => self.test(test),
            Expr::List(list) => self.list(list),
            // `lookups` refused these before.
            Expr::Call(_) | Expr::Tuple(_) | Expr::Map(_) => fail("a part of it is not allowed"),
        }
    }

    fn attribute(&mut self, attribute: &GetAttr<'_>) -> Result<Value, Failure> {
        field(&self.value(&attribute.expr)?, &Value::from(attribute.name))
    }

    fn item(&mut self, item: &GetItem<'_>) -> Result<Value, Failure> {
        let key = self.present(&item.subscript_expr)?;
        field(&self.value(&item.expr)?, &key)
    }

    fn unary(&mut self, operation: &UnaryOp<'_>) -> Result<Value, Failure> {
        match operation.op {
            UnaryOpKind::Not => Ok(Value::from(!self.truth(&operation.expr)?)),
            UnaryOpKind::Neg => native("-a", [("a", self.present(&operation.expr)?)]),
        }
    }

    /// A chain of comparisons, as in `1 < x <= 3`.
    fn comparison(&mut self, comparison: &Compare<'_>) -> Result<Value, Failure> {
        let mut left = self.present(&comparison.expr)?;
        for next in &comparison.ops {
            let right = self.present(&next.expr)?;
            if !compare(next.op, &left, &right)? {
                return Ok(Value::from(false));
            }
            left = right;
        }
        Ok(Value::from(true))
    }

    fn choice(&mut self, choice: &IfExpr<'_>) -> Result<Value, Failure> {
        match (self.truth(&choice.test_expr)?, &choice.false_expr) {
            (true, _) => self.value(&choice.true_expr),
            (false, Some(other)) => self.value(other),
            (false, None) => Ok(Value::UNDEFINED),
        }
    }

    fn list(&mut self, list: &List<'_>) -> Result<Value, Failure> {
        let items: Result<Vec<Value>, Failure> = list.items.iter().map(|item| self.present(item)).collect();
        items.map(Value::from)
    }

    /// The value of a part, which must have one. Null is a value.
    fn present(&mut self, part: &Expr<'_>) -> Result<Value, Failure> {
        let value = self.value(part)?;
        if value.is_undefined() { Err(Failure::Missing) } else { Ok(value) }
    }

    /// The value of a part that must be true or false.
    fn truth(&mut self, part: &Expr<'_>) -> Result<bool, Failure> {
        let value = self.present(part)?;
        if value.kind() == ValueKind::Bool {
            return Ok(value.is_true());
        }
        fail(format!("`and`, `or`, `not` and `if` need true or false, not {}", kind_text(value.kind())))
    }

    fn binary(&mut self, operator: BinOpKind, left: &Expr<'_>, right: &Expr<'_>) -> Result<Value, Failure> {
        let comparison = match operator {
            BinOpKind::ScAnd => return Ok(Value::from(self.truth(left)? && self.truth(right)?)),
            BinOpKind::ScOr => return Ok(Value::from(self.truth(left)? || self.truth(right)?)),
            BinOpKind::Eq => CompareOpKind::Eq,
            BinOpKind::Ne => CompareOpKind::Ne,
            BinOpKind::Lt => CompareOpKind::Lt,
            BinOpKind::Lte => CompareOpKind::Lte,
            BinOpKind::Gt => CompareOpKind::Gt,
            BinOpKind::Gte => CompareOpKind::Gte,
            BinOpKind::In => CompareOpKind::In,
            BinOpKind::Add => return self.arithmetic("a + b", left, right),
            BinOpKind::Sub => return self.arithmetic("a - b", left, right),
            BinOpKind::Div => return self.arithmetic("a / b", left, right),
            BinOpKind::FloorDiv => return self.arithmetic("a // b", left, right),
            BinOpKind::Rem => return self.arithmetic("a % b", left, right),
            // `lookups` refused these before.
            BinOpKind::Mul | BinOpKind::Pow | BinOpKind::Concat => return fail("an operator is not allowed"),
        };
        let (left, right) = (self.present(left)?, self.present(right)?);
        compare(comparison, &left, &right).map(Value::from)
    }

    fn arithmetic(
        &mut self,
        source: &'static str,
        left: &Expr<'_>,
        right: &Expr<'_>,
    ) -> Result<Value, Failure> {
        let (left, right) = (self.present(left)?, self.present(right)?);
        native(source, [("a", left), ("b", right)])
    }

    fn slice(&mut self, slice: &Slice<'_>) -> Result<Value, Failure> {
        let value = self.present(&slice.expr)?;
        let mut bound = |part: &Option<Expr<'_>>| match part {
            Some(part) => self.present(part),
            None => Ok(Value::from(())),
        };
        let (start, stop, step) = (bound(&slice.start)?, bound(&slice.stop)?, bound(&slice.step)?);
        let step = if step.is_none() { Value::from(1) } else { step };
        let part =
            native("a[start:stop:step]", [("a", value), ("start", start), ("stop", stop), ("step", step)])?;
        // A part of a list is an iterator until it is collected.
        if part.kind() == ValueKind::Iterable {
            return Ok(part.try_iter()?.collect());
        }
        Ok(part)
    }

    fn filter(&mut self, filter: &Filter<'_>) -> Result<Value, Failure> {
        let Some(part) = &filter.expr else { return fail("a filter has no value") };
        // Only `default` has a use for a value that is missing.
        let value = match filter.name {
            "default" => self.value(part)?,
            _ => self.present(part)?,
        };
        let mut arguments = vec![value];
        let mut named = Vec::new();
        for argument in &filter.args {
            match argument {
                CallArg::Pos(value) => arguments.push(self.present(value)?),
                CallArg::Kwarg(name, value) => named.push((*name, self.present(value)?)),
                CallArg::PosSplat(_) | CallArg::KwargSplat(_) => return fail("a part of it is not allowed"),
            }
        }
        if !named.is_empty() {
            arguments.push(Value::from(named.into_iter().collect::<Kwargs>()));
        }
        Ok(environment().empty_state().apply_filter(filter.name, &arguments)?)
    }

    fn test(&mut self, test: &Test<'_>) -> Result<Value, Failure> {
        let value = self.value(&test.expr)?;
        match test.name {
            "defined" => Ok(Value::from(!value.is_undefined())),
            "undefined" => Ok(Value::from(value.is_undefined())),
            "none" => Ok(Value::from(value.is_none())),
            // `lookups` refused other tests before.
            _ => fail("a part of it is not allowed"),
        }
    }
}

/// A field or an item of a value. It is undefined if the value does not have it.
fn field(value: &Value, key: &Value) -> Result<Value, Failure> {
    if value.is_undefined() {
        return Err(Failure::Missing);
    }
    // Null, a text, a number and a boolean have no fields.
    Ok(value.get_item(key).unwrap_or(Value::UNDEFINED))
}

/// Compares two values. Null is unequal to everything, and neither less nor greater.
fn compare(operator: CompareOpKind, left: &Value, right: &Value) -> Result<bool, Failure> {
    match operator {
        CompareOpKind::Eq => Ok(are_equal(left, right)),
        CompareOpKind::Ne => Ok(!are_equal(left, right)),
        CompareOpKind::Lt => order(left, right).map(|order| order == Some(Ordering::Less)),
        CompareOpKind::Lte => order(left, right).map(|order| order.is_some_and(Ordering::is_le)),
        CompareOpKind::Gt => order(left, right).map(|order| order == Some(Ordering::Greater)),
        CompareOpKind::Gte => order(left, right).map(|order| order.is_some_and(Ordering::is_ge)),
        CompareOpKind::In => contains(right, left),
        CompareOpKind::NotIn => contains(right, left).map(|is_there| !is_there),
    }
}

fn are_equal(left: &Value, right: &Value) -> bool {
    let is_same = || match (instant(left), instant(right)) {
        (Some(left), Some(right)) => left == right,
        (_, _) => left == right,
    };
    !left.is_none() && left.kind() == right.kind() && is_same()
}

/// The instant of a text that is a time with its offset. Two such texts are compared by what they mean.
fn instant(value: &Value) -> Option<DateTime<FixedOffset>> {
    let text = value.as_str().filter(|text| text.len() >= "2026-01-31T12:00:00Z".len())?;
    DateTime::parse_from_rfc3339(text).ok()
}

/// The order of two numbers, two instants or two texts. Null has no order.
fn order(left: &Value, right: &Value) -> Result<Option<Ordering>, Failure> {
    match (left.kind(), right.kind()) {
        (ValueKind::None, _) | (_, ValueKind::None) => Ok(None),
        (ValueKind::Number, ValueKind::Number) => Ok(Some(left.cmp(right))),
        (ValueKind::String, ValueKind::String) => Ok(Some(match (instant(left), instant(right)) {
            (Some(left), Some(right)) => left.cmp(&right),
            (_, _) => left.cmp(right),
        })),
        (one, other) => fail(format!(
            "`<` and `>` compare two numbers or two texts, not {} with {}",
            kind_text(one),
            kind_text(other)
        )),
    }
}

/// Whether a list has the item, an object the key, or a text the part.
fn contains(container: &Value, item: &Value) -> Result<bool, Failure> {
    match (container.kind(), item.kind()) {
        (ValueKind::None, _) | (_, ValueKind::None) => Ok(false),
        (ValueKind::Seq, _) => Ok(container.try_iter()?.any(|known| are_equal(&known, item))),
        (ValueKind::Map, _) => Ok(!container.get_item(item)?.is_undefined()),
        (ValueKind::String, ValueKind::String) => {
            let (text, part) = (container.as_str().unwrap_or_default(), item.as_str().unwrap_or_default());
            Ok(text.contains(part))
        }
        (container, item) => fail(format!(
            "`in` needs a list, or a text in a text, not {} in {}",
            kind_text(item),
            kind_text(container)
        )),
    }
}

/// Evaluates an operation as a template does.
fn native<const COUNT: usize>(
    source: &'static str,
    operands: [(&'static str, Value); COUNT],
) -> Result<Value, Failure> {
    Ok(environment().compile_expression(source)?.eval(Value::from_pairs(operands))?)
}

fn kind_text(kind: ValueKind) -> &'static str {
    match kind {
        ValueKind::Undefined | ValueKind::None => "null",
        ValueKind::Bool => "a boolean",
        ValueKind::Number => "a number",
        ValueKind::String => "text",
        ValueKind::Seq | ValueKind::Iterable => "a list",
        ValueKind::Map => "an object",
        ValueKind::Bytes | ValueKind::Plain | ValueKind::Invalid | _ => "another value",
    }
}

fn fail<T>(message: impl Into<String>) -> Result<T, Failure> {
    Err(Failure::Message(message.into()))
}
