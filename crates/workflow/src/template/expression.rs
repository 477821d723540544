//! What an expression may be made of, and which names it looks up.

use std::ops::Range;

use minijinja::machinery::ast::{BinOpKind, CallArg, Expr};
use minijinja::machinery::{Span, parse_expr};

use super::filters::{FILTERS, TESTS};
use super::split::Refusal;

/// A look-up of a name and what follows it: `jobs.count.output.total`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Reference {
    pub(super) path: Vec<Segment>,
    /// Where, in bytes of the expression.
    pub(super) range: Range<usize>,
}

/// One step of a path.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Segment {
    /// `.name` or `["name"]`.
    Name(String),
    /// `[0]`.
    Index(i64),
    /// `[…]` with something that is known only when it is evaluated.
    Computed,
}

/// Checks that the expression is made of allowed parts only, and lists its look-ups.
pub(super) fn references(expression: &str) -> Result<Vec<Reference>, Refusal> {
    if expression.trim().is_empty() {
        return Err(Refusal::new(0..expression.len(), "the expression is empty"));
    }
    let parsed = parse_expr(expression).map_err(|error| {
        let reason = error.detail().unwrap_or("it cannot be read").to_owned();
        let range = error.range().unwrap_or(0..expression.len());
        Refusal::new(clip(range, expression), format!("not an expression: {reason}"))
    })?;
    let mut walk = Walk { expression, references: Vec::new() };
    walk.visit(&parsed)?;
    Ok(walk.references)
}

struct Walk<'e> {
    expression: &'e str,
    references: Vec<Reference>,
}

impl Walk<'_> {
    // The depth of the recursion is bounded by the length of an expression.
    fn visit(&mut self, expression: &Expr<'_>) -> Result<(), Refusal> {
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
                self.visit(&operation.right)
            }
            Expr::Compare(comparison) => {
                self.visit(&comparison.expr)?;
                comparison.ops.iter().try_for_each(|part| self.visit(&part.expr))
            }
            Expr::IfExpr(choice) => {
                self.visit(&choice.test_expr)?;
                self.visit(&choice.true_expr)?;
                choice.false_expr.iter().try_for_each(|part| self.visit(part))
            }
            Expr::Filter(filter) => {
                self.check_known(filter.name, &FILTERS, "filter", filter.span())?;
                filter.expr.iter().try_for_each(|part| self.visit(part))?;
                filter.args.iter().try_for_each(|argument| self.argument(argument, filter.span()))
            }
            Expr::Test(test) => {
                self.check_known(test.name, &TESTS, "test", test.span())?;
                self.visit(&test.expr)?;
                test.args.iter().try_for_each(|argument| self.argument(argument, test.span()))
            }
            Expr::List(list) => list.items.iter().try_for_each(|item| self.visit(item)),
            Expr::Call(call) => Err(self
                .refuse(call.span(), "there are no functions in templates")
                .help(format!("there are filters, as in {{{{ x | upper }}}}: {}", FILTERS.join(", ")))),
            Expr::Tuple(_) | Expr::Map(_) => {
                Err(self.refuse(expression.span(), format!("a {} is not allowed", expression.description())))
            }
        }
    }

    fn argument(&mut self, argument: &CallArg<'_>, span: Span) -> Result<(), Refusal> {
        match argument {
            CallArg::Pos(value) | CallArg::Kwarg(_, value) => self.visit(value),
            CallArg::PosSplat(_) | CallArg::KwargSplat(_) => {
                Err(self.refuse(span, "unpacking with `*` is not allowed"))
            }
        }
    }

    /// A name with all that follows it, as one reference.
    fn lookup(&mut self, expression: &Expr<'_>) -> Result<(), Refusal> {
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
                // Not a name but a value, as in `("a" ~ b).c`: that value has look-ups of its own.
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
        self.references.push(Reference { path, range });
        Ok(())
    }

    fn check_operator(&self, operator: BinOpKind, span: Span) -> Result<(), Refusal> {
        match operator {
            BinOpKind::Mul | BinOpKind::Pow => Err(self
                .refuse(span, "multiplication is not allowed in templates: it could fill the memory")
                .help("calculate in the job's script")),
            BinOpKind::Concat => Err(self
                .refuse(span, "joining with `~` is not needed in templates")
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

    fn check_known(&self, name: &str, known: &[&str], noun: &str, span: Span) -> Result<(), Refusal> {
        if known.contains(&name) {
            return Ok(());
        }
        let refusal = self.refuse(span, format!("there is no {noun} `{name}`"));
        let mut budget = known.len();
        Err(match crate::suggest::nearest(name, known.iter().copied(), &mut budget) {
            Some(near) => refusal.help(format!("did you mean `{near}`?")),
            None => refusal.help(format!("there are {}", known.join(", "))),
        })
    }

    fn refuse(&self, span: Span, message: impl Into<String>) -> Refusal {
        Refusal::new(clip(range_of(span), self.expression), message)
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

fn range_of(span: Span) -> Range<usize> {
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

    fn paths(expression: &str) -> Vec<String> {
        let render = |segment: &Segment| match segment {
            Segment::Name(name) => name.clone(),
            Segment::Index(index) => index.to_string(),
            Segment::Computed => "?".to_owned(),
        };
        let references = references(expression).unwrap();
        references.iter().map(|one| one.path.iter().map(render).collect::<Vec<_>>().join("/")).collect()
    }

    #[test]
    fn finds_every_look_up() {
        assert_eq!(paths("params.day"), ["params/day"]);
        assert_eq!(paths("jobs['my-job'].output.rows[0]"), ["jobs/my-job/output/rows/0"]);
        assert_eq!(paths("a if b.c else d | default(e)"), ["b/c", "a", "d", "e"]);
        assert_eq!(paths("jobs.a.output[params.i]"), ["params/i", "jobs/a/output/?"]);
        assert_eq!(paths("a[b:c] in [d, 'x'] and not e"), ["a", "b", "c", "d", "e"]);
        assert_eq!(paths("(a + b).c"), ["a", "b"]);
        assert_eq!(paths("a is defined"), ["a"]);
    }

    #[test]
    fn refuses_what_could_grow_or_call() {
        let cases = [
            ("'x' * 1000000000", "multiplication"),
            ("2 ** 99999", "multiplication"),
            ("a ~ b", "not needed"),
            ("range(10)", "no functions"),
            ("a.split(',')", "no functions"),
            ("{'a': 1}", "map literal"),
            ("(1, 2)", "tuple"),
            ("a | indent(1000000)", "no filter `indent`"),
            ("a | center(1000000000)", "no filter"),
            ("a | batch(10)", "no filter"),
            ("a | join(*b)", "unpacking"),
            ("a is divisibleby 3", "no test"),
            ("", "empty"),
            ("a b", "not an expression"),
            ("a.", "not an expression"),
        ];
        for (expression, reason) in cases {
            let message = references(expression).expect_err(expression).message;
            assert!(message.contains(reason), "{expression}: {message}");
        }
    }

    #[test]
    fn the_nearest_filter_is_suggested() {
        assert_eq!(references("a | uper").unwrap_err().help.unwrap(), "did you mean `upper`?");
    }

    #[test]
    fn the_deepest_expression_fits_a_small_stack() {
        let limit = crate::limits::EXPRESSION_BYTES;
        let expressions = [
            "(".repeat(limit),
            "[".repeat(limit),
            "-".repeat(limit),
            "not ".repeat(limit / 4),
            format!("a{}", "+a".repeat(limit / 2 - 1)),
            format!("a{}", ".a".repeat(limit / 2 - 1)),
            format!("a{}", "|lower".repeat(limit / 6 - 1)),
            format!("a{}", " if a else a".repeat(limit / 12 - 1)),
            format!("{}a{}", "a[".repeat(limit / 3 - 1), "]".repeat(limit / 3 - 1)),
        ];
        let check = move || {
            for expression in expressions {
                let source = format!("{{{{{expression}}}}}");
                let _ = super::super::render(&source, &serde_json::json!({"a": 1}));
            }
        };
        // A quarter of what a thread has by default.
        std::thread::Builder::new().stack_size(512 * 1024).spawn(check).unwrap().join().unwrap();
    }
}
