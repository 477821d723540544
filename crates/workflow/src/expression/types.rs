//! What an expression gives, as far as that is known when the file is read. A condition must give true or false.

use std::ops::Range;

use minijinja::machinery::ast::{BinOpKind, CallArg, Expr, UnaryOpKind};
use minijinja::machinery::parse_expr;
use minijinja::value::{Value, ValueKind};
use serde_json::Value as Json;

use super::allowed::range_of;
use super::choices;
use super::fault::Fault;
use super::scope::Scope;
use crate::params::{Param, ParamKind};

/// What an expression gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Type {
    Boolean,
    Number,
    Text,
    List,
    /// It is known only when the run gets there.
    Unknown,
}

/// Checks that the expression gives true or false, and so do the operands of `and`, `or`, `not` and `if` in it. A type that is
/// not known yet is accepted.
pub(crate) fn check_condition(text: &str, scope: &Scope<'_>) -> Result<(), Fault> {
    let Ok(parsed) = parse_expr(text) else { return Ok(()) };
    Types { text, scope, truth: Truth::Boolean }.check_truth(&parsed, "it")
}

/// Checks that the expression gives a list. A type that is not known yet is accepted.
pub(crate) fn check_list(text: &str, scope: &Scope<'_>) -> Result<(), Fault> {
    let Ok(parsed) = parse_expr(text) else { return Ok(()) };
    let kind = match (Types { text, scope, truth: Truth::Boolean }).of(&parsed)? {
        Type::List | Type::Unknown => return Ok(()),
        Type::Boolean => "true or false",
        Type::Number => "a number",
        Type::Text => "text",
    };
    Err(Fault::new(0..text.len(), format!("it gives {kind}, not a list"))
        .help("a list comes from a parameter of type \"list\", or from the output of a job"))
}

/// Checks that the operands of `-`, `/`, `//` and `%` in an expression of a template are no texts, lists or booleans.
pub(crate) fn check_arithmetic(text: &str, scope: &Scope<'_>) -> Result<(), Fault> {
    let Ok(parsed) = parse_expr(text) else { return Ok(()) };
    Types { text, scope, truth: Truth::Any }.of(&parsed).map(|_| ())
}

/// What may stand for true and false.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Truth {
    /// True and false.
    Boolean,
    /// Any value, as in templates.
    Any,
}

struct Types<'c> {
    text: &'c str,
    scope: &'c Scope<'c>,
    truth: Truth,
}

impl Types<'_> {
    /// Checks that a part gives true or false. `what` is the part, for the message.
    fn check_truth(&self, part: &Expr<'_>, what: &str) -> Result<(), Fault> {
        let found = self.of(part)?;
        if self.truth == Truth::Any {
            return Ok(());
        }
        let (kind, operator) = match found {
            Type::Boolean | Type::Unknown => return Ok(()),
            Type::Number if self.path(part).last().is_some_and(|name| name == "exit_code") => {
                ("a number", " == 0".to_owned())
            }
            Type::Number => ("a number", " > 0".to_owned()),
            Type::Text => ("text", format!(" == {}", self.example(part))),
            Type::List => ("a list", " | length > 0".to_owned()),
        };
        let range = self.range(part);
        let written = self.text.get(range.clone()).unwrap_or_default();
        Err(Fault::new(range, format!("{what} gives {kind}, not true or false"))
            .help(format!("compare it: `{written}{operator}`")))
    }

    /// The type of a part. Checks the conditions in it.
    fn of(&self, part: &Expr<'_>) -> Result<Type, Fault> {
        match part {
            Expr::Const(constant) => Ok(of_constant(&constant.value)),
            Expr::Var(_) | Expr::GetAttr(_) | Expr::GetItem(_) => Ok(self.of_lookup(part)),
            Expr::UnaryOp(operation) => match operation.op {
                UnaryOpKind::Not => {
                    self.check_truth(&operation.expr, "the operand of `not`").map(|()| Type::Boolean)
                }
                UnaryOpKind::Neg => Ok(Type::Number),
            },
            Expr::BinOp(operation) => self.of_binary(operation.op, &operation.left, &operation.right),
            Expr::Compare(comparison) => {
                self.check_not_null(&comparison.expr)?;
                self.of(&comparison.expr)?;
                for next in &comparison.ops {
                    self.check_not_null(&next.expr)?;
                    self.of(&next.expr)?;
                }
                Ok(Type::Boolean)
            }
            Expr::Test(test) => {
                self.check_defined(test.name, &test.expr)?;
                self.of(&test.expr).map(|_| Type::Boolean)
            }
            Expr::IfExpr(choice) => {
                self.check_truth(&choice.test_expr, "the condition of `if`")?;
                let first = self.of(&choice.true_expr)?;
                let second = choice.false_expr.as_ref().map_or(Ok(Type::Unknown), |part| self.of(part))?;
                Ok(if first == second { first } else { Type::Unknown })
            }
            Expr::Filter(filter) => {
                let input = filter.expr.as_ref().map_or(Ok(Type::Unknown), |part| self.of(part))?;
                Ok(match filter.name {
                    "date" | "join" | "lower" | "replace" | "tojson" | "trim" | "upper" => Type::Text,
                    "length" => Type::Number,
                    "range" | "split" => Type::List,
                    "default" => match filter.args.first() {
                        Some(CallArg::Pos(instead)) if self.of(instead)? == input => input,
                        Some(_) | None => Type::Unknown,
                    },
                    _ => Type::Unknown,
                })
            }
            Expr::List(_) => Ok(Type::List),
            Expr::Slice(_) | Expr::Call(_) | Expr::Tuple(_) | Expr::Map(_) => Ok(Type::Unknown),
        }
    }

    fn of_binary(&self, operator: BinOpKind, left: &Expr<'_>, right: &Expr<'_>) -> Result<Type, Fault> {
        match operator {
            BinOpKind::ScAnd | BinOpKind::ScOr => {
                self.check_truth(left, "an operand of `and` and `or`")?;
                self.check_truth(right, "an operand of `and` and `or`")?;
                Ok(Type::Boolean)
            }
            BinOpKind::Eq
            | BinOpKind::Ne
            | BinOpKind::Lt
            | BinOpKind::Lte
            | BinOpKind::Gt
            | BinOpKind::Gte
            | BinOpKind::In => {
                self.check_not_null(left)?;
                self.check_not_null(right)?;
                self.of(left)?;
                self.of(right)?;
                self.check_texts(operator, left, right)?;
                self.check_texts(operator, right, left)?;
                Ok(Type::Boolean)
            }
            BinOpKind::Add => {
                let (left, right) = (self.of(left)?, self.of(right)?);
                Ok(if left == right { left } else { Type::Unknown })
            }
            BinOpKind::Sub => self.of_numbers("-", left, right),
            BinOpKind::Div => self.of_numbers("/", left, right),
            BinOpKind::FloorDiv => self.of_numbers("//", left, right),
            BinOpKind::Rem => self.of_numbers("%", left, right),
            BinOpKind::Mul | BinOpKind::Pow => Ok(Type::Number),
            BinOpKind::Concat => Ok(Type::Text),
        }
    }

    /// The type of an operation with two numbers.
    fn of_numbers(&self, sign: &str, left: &Expr<'_>, right: &Expr<'_>) -> Result<Type, Fault> {
        self.check_number(sign, left)?;
        self.check_number(sign, right)?;
        Ok(Type::Number)
    }

    /// Checks that an operand may be a number.
    fn check_number(&self, sign: &str, operand: &Expr<'_>) -> Result<(), Fault> {
        let kind = match self.of(operand)? {
            Type::Number | Type::Unknown => return Ok(()),
            Type::Boolean => "true or false",
            Type::Text => "text",
            Type::List => "a list",
        };
        let range = self.range(operand);
        let written = self.text.get(range.clone()).unwrap_or_default().trim().to_owned();
        let fault = Fault::new(range, format!("`{sign}` needs two numbers, and `{written}` gives {kind}"));
        Err(match kind {
            "text" => fault.help("dates and times are texts; `| date(days=-1)` gives the day before, and a script computes the rest"),
            _ => fault,
        })
    }

    /// Null is unequal to everything, so a comparison with the word `none` is always the same.
    fn check_not_null(&self, operand: &Expr<'_>) -> Result<(), Fault> {
        if self.truth == Truth::Boolean
            && let Expr::Const(constant) = operand
            && constant.value.is_none()
        {
            let fault = Fault::new(self.range(operand), "`none` is unequal to everything");
            return Err(fault.help("write `x is none` or `x is not none`"));
        }
        Ok(())
    }

    /// A parameter without a value is null, which is a value for `is defined`.
    fn check_defined(&self, test: &str, operand: &Expr<'_>) -> Result<(), Fault> {
        let path = self.path(operand);
        let [params, name] = path.as_slice() else { return Ok(()) };
        if params != "params" || !["defined", "undefined"].contains(&test) {
            return Ok(());
        }
        let instead = if test == "defined" { "is not none" } else { "is none" };
        Err(Fault::new(
            self.range(operand),
            format!("`params.{name}` is always defined, also without a value"),
        )
        .help(format!("write `params.{name} {instead}`")))
    }

    /// Checks that a value that can be a few texts only is not compared with another one.
    fn check_texts(&self, operator: BinOpKind, value: &Expr<'_>, other: &Expr<'_>) -> Result<(), Fault> {
        let Some(texts) = choices::texts_of(&self.path(value), self.scope) else { return Ok(()) };
        for (part, text) in choices::written_texts(operator, other) {
            if !texts.contains(&text) {
                let written = self.text.get(self.range(value)).unwrap_or_default().trim();
                let fault = Fault::new(self.range(part), format!("`{written}` is never '{text}'"));
                return Err(fault.help(format!("it is one of {}", texts.join(", "))));
            }
        }
        Ok(())
    }

    fn of_lookup(&self, part: &Expr<'_>) -> Type {
        let path = self.path(part);
        match path.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            ["params", name] => self.param(name).map_or(Type::Unknown, |param| match param.kind {
                ParamKind::String
                | ParamKind::Date
                | ParamKind::Datetime
                | ParamKind::Duration
                | ParamKind::Choice => Type::Text,
                ParamKind::Integer | ParamKind::Number => Type::Number,
                ParamKind::Boolean => Type::Boolean,
                ParamKind::List => Type::List,
            }),
            ["run", "id"] => Type::Number,
            ["run", "workflow" | "created_at" | "key" | "outcome"] => Type::Text,
            ["run", "failed"] => Type::List,
            ["jobs", _, "status" | "error"] => Type::Text,
            ["jobs", _, "exit_code" | "failures"] => Type::Number,
            ["exit_code" | "signal" | "attempt" | "status"] => Type::Number,
            ["timed_out"] => Type::Boolean,
            ["index"] => Type::Number,
            _ => Type::Unknown,
        }
    }

    /// The names of a look-up. An index is an empty name, and a part that is no look-up has no names.
    fn path(&self, part: &Expr<'_>) -> Vec<String> {
        let mut path = Vec::new();
        let mut at = part;
        loop {
            if let Expr::GetAttr(attribute) = at {
                path.push(attribute.name.to_owned());
                at = &attribute.expr;
            } else if let Expr::GetItem(item) = at {
                path.push(constant_text(&item.subscript_expr));
                at = &item.expr;
            } else {
                break;
            }
        }
        let Expr::Var(variable) = at else { return Vec::new() };
        path.push(variable.id.to_owned());
        path.reverse();
        path
    }

    fn param(&self, name: &str) -> Option<&Param> {
        self.scope.params.iter().find(|param| param.name == name)
    }

    /// A text that the part could be compared with.
    fn example(&self, part: &Expr<'_>) -> String {
        let path = self.path(part);
        let text = match path.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            ["params", name] => self.param(name).and_then(|param| param.choices.first()).map(String::as_str),
            ["jobs", _, "status"] => Some("SUCCESSFUL"),
            ["run", "outcome"] => Some("FAILED"),
            _ => None,
        };
        format!("'{}'", text.unwrap_or("…"))
    }

    fn range(&self, part: &Expr<'_>) -> Range<usize> {
        // The span of a field is that of its name only.
        let mut first = part;
        loop {
            if let Expr::GetAttr(attribute) = first {
                first = &attribute.expr;
            } else if let Expr::GetItem(item) = first {
                first = &item.expr;
            } else {
                break;
            }
        }
        let start = range_of(first.span()).start;
        let end = range_of(part.span()).end.max(start);
        match self.text.is_char_boundary(start) && self.text.is_char_boundary(end) && end <= self.text.len() {
            true => start..end,
            false => 0..self.text.len(),
        }
    }
}

fn of_constant(value: &Value) -> Type {
    match value.kind() {
        ValueKind::Bool => Type::Boolean,
        ValueKind::Number => Type::Number,
        ValueKind::String => Type::Text,
        ValueKind::Undefined
        | ValueKind::None
        | ValueKind::Bytes
        | ValueKind::Seq
        | ValueKind::Map
        | ValueKind::Iterable
        | ValueKind::Plain
        | ValueKind::Invalid
        | _ => Type::Unknown,
    }
}

/// The text between the brackets of `x["text"]`, or nothing.
fn constant_text(subscript: &Expr<'_>) -> String {
    let Expr::Const(constant) = subscript else { return String::new() };
    constant.value.as_str().unwrap_or_default().to_owned()
}

/// What a value is, for people.
pub(super) fn kind_of(value: &Json) -> &'static str {
    match value {
        Json::Null => "null",
        Json::Bool(_) => "a boolean",
        Json::Number(_) => "a number",
        Json::String(_) => "text",
        Json::Array(_) => "a list",
        Json::Object(_) => "an object",
    }
}
