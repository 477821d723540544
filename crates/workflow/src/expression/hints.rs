//! What to write instead of operators and functions of other languages.

use minijinja::machinery::ast::Expr;

use super::filters::FILTERS;

/// What to write instead of the operator in an expression that can't be read from byte `at` on.
pub(super) fn instead_of_operator(expression: &str, at: usize) -> Option<String> {
    // The parser may have read the first sign of two.
    let (read, rest) = expression.split_at_checked(at)?;
    let begun = read.trim_end_matches(['&', '|', '=', '!']).len();
    let rest = if begun < read.len() { &expression[begun..] } else { rest };
    let instead = [("&&", "and"), ("||", "or"), ("===", "=="), ("=~", "in"), ("=", "=="), ("!", "not")];
    let (operator, ours) = instead.iter().find(|(operator, _)| rest.trim_start().starts_with(operator))?;
    Some(format!("write `{ours}` instead of `{operator}`"))
}

/// What to write instead of a call of a function.
pub(super) fn instead_of_function(function: &Expr<'_>) -> String {
    let name = match function {
        Expr::Var(variable) => variable.id,
        Expr::GetAttr(attribute) => attribute.name,
        Expr::Const(_)
        | Expr::Slice(_)
        | Expr::UnaryOp(_)
        | Expr::BinOp(_)
        | Expr::Compare(_)
        | Expr::IfExpr(_)
        | Expr::Filter(_)
        | Expr::Test(_)
        | Expr::GetItem(_)
        | Expr::Call(_)
        | Expr::List(_)
        | Expr::Tuple(_)
        | Expr::Map(_) => "",
    };
    let folded = name.to_ascii_lowercase().replace('_', "");
    if let Some(filter) = FILTERS.iter().find(|filter| filter.name == folded) {
        return format!("write it as a filter: `x | {}`", filter.name);
    }
    let help = match folded.as_str() {
        "always" => "write when = \"all_finished\" in the job",
        "failure" | "failed" => {
            "write when = \"any_failed\" in the job; a job for a failed run stands in [on_failure]"
        }
        "success" | "succeeded" => "leave it out: a job runs if the jobs that it needs succeeded",
        "cancelled" | "canceled" => "a job for a cancelled run stands in [on_cancel]",
        "contains" | "includes" | "has" => "write `'part' in x`",
        "len" | "size" | "count" => "write `x | length`",
        "now" | "today" | "date" | "datetime" | "utcnow" => {
            "`run.created_at` is the time of the run, and `run.created_at | date` its day"
        }
        "tolower" => "write it as a filter: `x | lower`",
        "toupper" => "write it as a filter: `x | upper`",
        "strip" => "write it as a filter: `x | trim`",
        _ => {
            let names: Vec<&str> = FILTERS.iter().map(|filter| filter.name).collect();
            return format!("use a filter, as in `x | upper`; the filters are {}", names.join(", "));
        }
    };
    help.to_owned()
}
