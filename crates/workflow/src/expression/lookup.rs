//! The look-ups of an expression: names with the fields that follow them.

use std::ops::Range;

/// A name and the path that follows it, as in `jobs.count.output.total`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Lookup {
    pub(crate) path: Vec<Segment>,
    /// Where the look-up stands, in bytes of the expression.
    pub(crate) range: Range<usize>,
    pub(crate) if_absent: IfAbsent,
}

impl Lookup {
    /// The name of the variable that it reads; `None` if it reads something else.
    pub(crate) fn variable(&self) -> Option<&str> {
        match self.path.as_slice() {
            [Segment::Name(root), Segment::Name(name), ..] if root == "variables" => Some(name),
            _ => None,
        }
    }
}

/// What an expression makes of a look-up that finds nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IfAbsent {
    /// The expression has no value.
    Fail,
    /// There is another value, or the look-up is evaluated only under a condition: `x | default("")`, `x is defined`,
    /// `x if y else z`, `y and x`.
    Instead,
}

/// One step of a path.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Segment {
    /// `.name` or `["name"]`.
    Name(String),
    /// `[0]`.
    Index(i64),
    /// `[…]` with an expression inside. Its value is known only when the template is rendered.
    Computed,
}

/// The path as an expression has it.
pub(super) fn path_text(path: &[Segment]) -> String {
    let mut text = String::new();
    for segment in path {
        match segment {
            Segment::Name(name) if is_plain(name) => {
                if !text.is_empty() {
                    text.push('.');
                }
                text.push_str(name);
            }
            Segment::Name(name) => text.push_str(&format!("[{name:?}]")),
            Segment::Index(index) => text.push_str(&format!("[{index}]")),
            Segment::Computed => text.push_str("[…]"),
        }
    }
    text
}

/// Whether the name can follow a dot. Other names are written in brackets, as in `jobs["my-job"]`.
pub(super) fn is_plain(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}
