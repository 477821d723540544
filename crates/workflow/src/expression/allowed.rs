//! Checks that an expression has only allowed parts, and lists the names that it looks up.

use std::ops::Range;

use minijinja::machinery::ast::{self, BinOpKind, CallArg, Expr};
use minijinja::machinery::{Span, parse_expr};

use super::fault::Fault;
use super::filters::{FILTERS, TESTS};
use super::hints;
use super::lookup::{IfAbsent, Lookup, Segment};
use crate::limits;

/// Checks the expression and lists its look-ups.
pub(crate) fn lookups(expression: &str) -> Result<Vec<Lookup>, Fault> {
    if expression.trim().is_empty() {
        return Err(Fault::new(0..expression.len(), "the expression is empty"));
    }
    check_nesting(expression)?;
    let parsed = parse_expr(expression).map_err(|error| {
        let reason = error.detail().unwrap_or("it cannot be read").to_owned();
        let range = clip(error.range().unwrap_or(0..expression.len()), expression);
        let help = hints::instead_of_operator(expression, range.start);
        Fault { help, ..Fault::new(range, format!("not an expression: {reason}")) }
    })?;
    let mut collector = LookupCollector { expression, lookups: Vec::new(), if_absent: IfAbsent::Fail };
    collector.visit(&parsed)?;
    Ok(collector.lookups)
}

/// Counts the brackets inside each other, and the signs and `not` in a row, before the expression is parsed. Those in texts
/// count too.
fn check_nesting(expression: &str) -> Result<(), Fault> {
    let limit = limits::EXPRESSION_NESTING;
    let (mut depth, mut prefixes, mut word_start) = (0_usize, 0_usize, 0);
    for (at, byte) in expression.bytes().enumerate() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => (),
        }
        if byte.is_ascii_alphanumeric() || byte == b'_' {
            // The prefix `not` is counted at its last letter.
            match &expression.as_bytes()[word_start..=at] {
                b"n" | b"no" => (),
                b"not" => prefixes += 1,
                _ => prefixes = 0,
            }
            continue;
        }
        word_start = at + 1;
        match byte {
            b'-' => prefixes += 1,
            b' ' | b'\t' | b'\r' | b'\n' => (),
            _ => prefixes = 0,
        }
        if depth > limit {
            let message = format!("an expression may have no more than {limit} brackets inside each other");
            return Err(Fault::new(at..at + 1, message));
        }
        if prefixes > limit {
            let message = format!("an expression may have no more than {limit} signs in a row");
            return Err(Fault::new(at..at + 1, message));
        }
    }
    Ok(())
}

/// Visits the parts of an expression and collects its look-ups.
struct LookupCollector<'e> {
    expression: &'e str,
    lookups: Vec<Lookup>,
    /// Of the look-ups in the part that is visited.
    if_absent: IfAbsent,
}

impl LookupCollector<'_> {
    // An expression has at most `limits::EXPRESSION_BYTES`, which bounds the depth of this recursion.
    fn visit(&mut self, expression: &Expr<'_>) -> Result<(), Fault> {
        match expression {
            Expr::Const(_) => Ok(()),
            Expr::Var(_) | Expr::GetAttr(_) | Expr::GetItem(_) => self.lookup(expression),
            Expr::Slice(slice) => {
                self.visit(&slice.expr)?;
                let parts = [&slice.start, &slice.stop, &slice.step];
                parts.into_iter().flatten().try_for_each(|part| self.visit(part))
            }
            Expr::UnaryOp(operation) => self.visit(&operation.expr),
            Expr::BinOp(operation) => {
                self.check_operator(operation.op, operation.span())?;
                self.visit(&operation.left)?;
                match operation.op {
                    BinOpKind::ScAnd | BinOpKind::ScOr => self.visit_conditional(&operation.right),
                    BinOpKind::Eq
                    | BinOpKind::Ne
                    | BinOpKind::Lt
                    | BinOpKind::Lte
                    | BinOpKind::Gt
                    | BinOpKind::Gte
                    | BinOpKind::Add
                    | BinOpKind::Sub
                    | BinOpKind::Mul
                    | BinOpKind::Div
                    | BinOpKind::FloorDiv
                    | BinOpKind::Rem
                    | BinOpKind::Pow
                    | BinOpKind::Concat
                    | BinOpKind::In => self.visit(&operation.right),
                }
            }
            Expr::Compare(comparison) => {
                self.visit(&comparison.expr)?;
                comparison.ops.iter().try_for_each(|part| self.visit(&part.expr))
            }
            Expr::IfExpr(choice) => {
                self.visit(&choice.test_expr)?;
                self.visit_conditional(&choice.true_expr)?;
                choice.false_expr.iter().try_for_each(|part| self.visit_conditional(part))
            }
            Expr::Filter(filter) => {
                self.check_filter(filter, filter.span())?;
                filter.expr.iter().try_for_each(|part| match filter.name {
                    "default" => self.visit_conditional(part),
                    _ => self.visit(part),
                })?;
                filter.args.iter().try_for_each(|argument| self.argument(argument, filter.span()))
            }
            Expr::Test(test) => {
                self.check_known(test.name, &TESTS, "test", test.span())?;
                self.visit_conditional(&test.expr)?;
                test.args.iter().try_for_each(|argument| self.argument(argument, test.span()))
            }
            Expr::List(list) => list.items.iter().try_for_each(|item| self.visit(item)),
            Expr::Call(call) => Err(self
                .refuse(call.span(), "expressions have no functions")
                .help(hints::instead_of_function(&call.expr))),
            Expr::Tuple(_) => Err(self
                .refuse(expression.span(), "a list stands in square brackets")
                .help("write [1, 2] instead of (1, 2)")),
            Expr::Map(_) => Err(self
                .refuse(expression.span(), "an expression can't make a table")
                .help("read a field of an output, as in jobs.a.output.field, or make the table in a script")),
        }
    }

    /// Visits a part whose look-ups may find nothing.
    fn visit_conditional(&mut self, expression: &Expr<'_>) -> Result<(), Fault> {
        let before = std::mem::replace(&mut self.if_absent, IfAbsent::Instead);
        let visited = self.visit(expression);
        self.if_absent = before;
        visited
    }

    fn argument(&mut self, argument: &CallArg<'_>, span: Span) -> Result<(), Fault> {
        match argument {
            CallArg::Pos(value) | CallArg::Kwarg(_, value) => self.visit(value),
            CallArg::PosSplat(_) | CallArg::KwargSplat(_) => {
                Err(self.refuse(span, "unpacking with `*` is not allowed"))
            }
        }
    }

    /// Collects a name and all fields that follow it as one look-up.
    fn lookup(&mut self, expression: &Expr<'_>) -> Result<(), Fault> {
        let mut path = Vec::new();
        let mut at = expression;
        let start = loop {
            match at {
                Expr::Var(variable) => {
                    path.push(Segment::Name(variable.id.to_owned()));
                    break range_of(variable.span()).start;
                }
                Expr::GetAttr(attribute) => {
                    path.push(Segment::Name(attribute.name.to_owned()));
                    at = &attribute.expr;
                }
                Expr::GetItem(item) => {
                    let segment = constant(&item.subscript_expr);
                    if segment == Segment::Computed {
                        self.visit(&item.subscript_expr)?;
                    }
                    path.push(segment);
                    at = &item.expr;
                }
                // A field of a computed value, as in `(a + b).c`. Only the look-ups inside the value count.
                Expr::Const(_)
                | Expr::Slice(_)
                | Expr::UnaryOp(_)
                | Expr::BinOp(_)
                | Expr::Compare(_)
                | Expr::IfExpr(_)
                | Expr::Filter(_)
                | Expr::Test(_)
                | Expr::Call(_)
                | Expr::List(_)
                | Expr::Tuple(_)
                | Expr::Map(_) => return self.visit(at),
            }
        };
        path.reverse();
        let range = clip(start..range_of(expression.span()).end, self.expression);
        self.lookups.push(Lookup { path, range, if_absent: self.if_absent });
        Ok(())
    }

    fn check_operator(&self, operator: BinOpKind, span: Span) -> Result<(), Fault> {
        match operator {
            BinOpKind::Mul | BinOpKind::Pow => Err(self
                .refuse(span, "expressions have no multiplication, because its result could fill the memory")
                .help("calculate in the job's script")),
            BinOpKind::Concat => Err(self
                .refuse(span, "expressions do not join texts with `~`")
                .help("write the parts one after the other: {{ a }}{{ b }}")),
            BinOpKind::Eq
            | BinOpKind::Ne
            | BinOpKind::Lt
            | BinOpKind::Lte
            | BinOpKind::Gt
            | BinOpKind::Gte
            | BinOpKind::ScAnd
            | BinOpKind::ScOr
            | BinOpKind::Add
            | BinOpKind::Sub
            | BinOpKind::Div
            | BinOpKind::FloorDiv
            | BinOpKind::Rem
            | BinOpKind::In => Ok(()),
        }
    }

    /// Checks that a filter exists, and what stands in its brackets.
    fn check_filter(&self, written: &ast::Filter<'_>, span: Span) -> Result<(), Fault> {
        let names: Vec<&str> = FILTERS.iter().map(|filter| filter.name).collect();
        self.check_known(written.name, &names, "filter", span)?;
        let filter = FILTERS.iter().find(|filter| filter.name == written.name);
        let complaint = filter.and_then(|filter| filter.complaint(&written.args));
        complaint.map_or(Ok(()), |message| Err(self.refuse(span, message)))
    }

    fn check_known(&self, name: &str, known: &[&str], noun: &str, span: Span) -> Result<(), Fault> {
        if known.contains(&name) {
            return Ok(());
        }
        let fault = self.refuse(span, format!("there is no {noun} `{name}`"));
        let mut budget = known.len();
        Err(match crate::suggest::nearest(name, known.iter().copied(), &mut budget) {
            Some(near) => fault.help(format!("did you mean `{near}`?")),
            None => fault.help(format!("the {noun}s are {}", known.join(", "))),
        })
    }

    fn refuse(&self, span: Span, message: impl Into<String>) -> Fault {
        Fault::new(clip(range_of(span), self.expression), message)
    }
}

fn constant(subscript: &Expr<'_>) -> Segment {
    let Expr::Const(constant) = subscript else { return Segment::Computed };
    match (constant.value.as_str(), constant.value.as_i64()) {
        (Some(name), _) => Segment::Name(name.to_owned()),
        (None, Some(index)) => Segment::Index(index),
        (None, None) => Segment::Computed,
    }
}

pub(super) fn range_of(span: Span) -> Range<usize> {
    span.start_offset as usize..span.end_offset as usize
}

fn clip(range: Range<usize>, text: &str) -> Range<usize> {
    let end = text.floor_char_boundary(range.end);
    text.floor_char_boundary(range.start).min(end)..end
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// The look-ups, with `/` between the segments.
    fn paths(expression: &str) -> Vec<String> {
        let render = |segment: &Segment| match segment {
            Segment::Name(name) => name.clone(),
            Segment::Index(index) => index.to_string(),
            Segment::Computed => "?".to_owned(),
        };
        let lookups = lookups(expression).unwrap();
        lookups.iter().map(|lookup| lookup.path.iter().map(render).collect::<Vec<_>>().join("/")).collect()
    }

    #[test]
    fn every_lookup_is_found() {
        assert_eq!(paths("params.day"), ["params/day"]);
        assert_eq!(paths("jobs['my-job'].output.rows[0]"), ["jobs/my-job/output/rows/0"]);
        assert_eq!(paths("a if b.c else d | default(e)"), ["b/c", "a", "d", "e"]);
        assert_eq!(paths("jobs.a.output[params.i]"), ["params/i", "jobs/a/output/?"]);
        assert_eq!(paths("a[b:c] in [d, 'x'] and not e"), ["a", "b", "c", "d", "e"]);
        assert_eq!(paths("(a + b).c"), ["a", "b"]);
        assert_eq!(paths("a is defined"), ["a"]);
    }

    #[test]
    fn an_absent_value_is_an_error_unless_there_is_another() {
        let absent = |expression: &str| lookups(expression).unwrap()[0].if_absent;
        for expression in ["a", "a == 1", "a | upper", "not a", "a and true", "1 if a else 2"] {
            assert_eq!(absent(expression), IfAbsent::Fail, "{expression}");
        }
        for expression in
            ["a | default('')", "a.b | upper | default('')", "a is defined", "true and a", "a if true else 1"]
        {
            assert_eq!(absent(expression), IfAbsent::Instead, "{expression}");
        }
    }

    #[test]
    fn parts_that_could_grow_or_call_are_refused() {
        let cases = [
            ("'x' * 1000000000", "multiplication"),
            ("2 ** 99999", "multiplication"),
            ("a ~ b", "`~`"),
            ("range(10)", "no functions"),
            ("a.split(',')", "no functions"),
            ("{'a': 1}", "can't make a table"),
            ("(1, 2)", "square brackets"),
            ("a | indent(1000000)", "no filter `indent`"),
            ("a | center(1000000000)", "no filter"),
            ("a | batch(10)", "no filter"),
            ("a | join(*b)", "unpacking"),
            ("a | date('%Y', day=1)", "`date` takes no `day`; it takes `days`"),
            ("a | upper(3)", "`upper` takes no value in brackets, and here are 1"),
            ("a | replace('b')", "`replace` takes 2 values in brackets, and here are 1"),
            ("a | default", "`default` takes one value in brackets, and here are 0"),
            ("a | split(',', 2)", "`split` takes at most 1 value in brackets, and here are 2"),
            ("a is divisibleby 3", "no test"),
            ("", "empty"),
            ("a b", "not an expression"),
            ("a.", "not an expression"),
        ];
        for (expression, reason) in cases {
            let message = lookups(expression).expect_err(expression).message;
            assert!(message.contains(reason), "{expression}: {message}");
        }
    }

    #[test]
    fn operators_and_functions_of_other_languages_lead_to_ours() {
        let cases = [
            ("a == 1 && b == 2", "write `and` instead of `&&`"),
            ("a || b", "write `or` instead of `||`"),
            ("!a", "write `not` instead of `!`"),
            ("a = 1", "write `==` instead of `=`"),
            ("a === 1", "write `==` instead of `===`"),
            ("always()", "when = \"all_finished\""),
            ("a.split(',')", "write it as a filter: `x | split`"),
            ("fromJSON(a)", "write it as a filter: `x | fromjson`"),
            ("contains(a, 'b')", "write `'part' in x`"),
            ("now()", "`run.created_at`"),
            ("strange()", "the filters are date, default"),
        ];
        for (expression, help) in cases {
            let found = lookups(expression).expect_err(expression).help.expect(expression);
            assert!(found.contains(help), "{expression}: {found}");
        }
    }

    #[test]
    fn the_nearest_filter_is_suggested() {
        assert_eq!(lookups("a | uper").unwrap_err().help.unwrap(), "did you mean `upper`?");
    }
}
