//! Names that Dagu replaces in texts: `$NAME`, `${NAME}`, `${NAME.path}`, `$1`.

use std::ops::Range;

/// A name in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reference {
    pub(super) range: Range<usize>,
    pub(super) name: String,
    /// The fields after the name.
    pub(super) path: Vec<String>,
}

impl Reference {
    /// The variable that a script gets for it.
    pub(super) fn variable(&self) -> String {
        let parts: Vec<String> = std::iter::once(variable_of(&self.name))
            .chain(self.path.iter().map(|part| variable_of(part)))
            .collect();
        parts.join("_")
    }
}

/// The name of a variable: positional parameters become `P1`, `P2` and so on.
pub(super) fn variable_of(name: &str) -> String {
    match name.starts_with(|c: char| c.is_ascii_digit()) {
        true => format!("P{name}"),
        false => name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect(),
    }
}

/// The names in a text, in their order.
pub(super) fn references(text: &str) -> Vec<Reference> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(offset) = text[at..].find('$') {
        let start = at + offset;
        at = start + 1;
        let escaped = text[..start].ends_with('\\');
        let rest = &text[start + 1..];
        let (inner, end) = match rest.strip_prefix('{') {
            Some(inside) => match inside.find('}') {
                Some(length) => (&inside[..length], start + 2 + length + 1),
                None => continue,
            },
            None => {
                let is_digit = rest.starts_with(|c: char| c.is_ascii_digit());
                let length = match is_digit {
                    true => 1,
                    false => {
                        rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len())
                    }
                };
                (&rest[..length], start + 1 + length)
            }
        };
        let parts: Vec<&str> = inner.split('.').collect();
        let is_name = |part: &&str| {
            !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
        };
        // Fields have names of their own; `${A:-b}` and the like belong to the shell.
        let is_reference = parts.iter().all(is_name) && (parts.len() > 1 || !parts[0].contains('-'));
        if is_reference && !escaped {
            // Newer versions say what the name is one of.
            let scope = match parts.first() {
                Some(&("params" | "env" | "steps" | "secrets")) => 1,
                Some(_) | None => 0,
            };
            let skipped = if parts.len() > scope { scope } else { 0 };
            let mut parts = parts.into_iter().skip(skipped).map(str::to_owned);
            found.push(Reference {
                range: start..end,
                name: parts.next().unwrap_or_default(),
                path: parts.collect(),
            });
            at = end;
        }
    }
    found
}

/// Expressions with fields that [`references`] does not read, such as `${A.b[0]}`. A shell fails at them.
pub(super) fn unread(text: &str) -> Vec<&str> {
    let known: Vec<usize> = references(text).into_iter().map(|reference| reference.range.start).collect();
    let expression = |(start, _): (usize, &str)| {
        let written = &text[start..=start + text[start..].find('}')?];
        let name = written[2..].find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))?;
        let has_fields = name > 0 && written[2 + name..].starts_with('.');
        let is_unread = has_fields && !known.contains(&start) && !text[..start].ends_with('\\');
        is_unread.then_some(written)
    };
    text.match_indices("${").filter_map(expression).collect()
}

/// The text with each name replaced.
pub(super) fn replace(text: &str, mut with: impl FnMut(&Reference) -> Option<String>) -> Option<String> {
    let mut replaced = String::with_capacity(text.len());
    let mut at = 0;
    for reference in references(text) {
        replaced.push_str(&text[at..reference.range.start]);
        replaced.push_str(&with(&reference)?);
        at = reference.range.end;
    }
    replaced.push_str(&text[at..]);
    Some(replaced)
}

/// Whether the shell replaces a part of the text by the output of a command.
pub(super) fn has_command(text: &str) -> bool {
    text.contains('`') || text.contains("$(")
}

/// A text for a script: known names that a variable can't have are replaced by those of their variables.
pub(super) fn for_script(text: &str, is_known: impl Fn(&Reference) -> bool) -> String {
    let with = |reference: &Reference| {
        let written = &text[reference.range.clone()];
        let variable = reference.variable();
        let is_plain = written == format!("${variable}") || written == format!("${{{variable}}}");
        // A shell can't read `${env.A}`, and knows `${A}` even if the file of Dagu does not say where it comes from.
        let is_scoped = reference.path.is_empty() && written.contains('.');
        Some(match is_plain || !(is_scoped || is_known(reference)) {
            true => written.to_owned(),
            false => format!("${{{variable}}}"),
        })
    };
    replace(text, with).unwrap_or_else(|| text.to_owned())
}

/// Whether the byte of a script is between single quotes.
pub(super) fn is_quoted(text: &str, at: usize) -> bool {
    let (mut quote, mut is_escaped) = (None, false);
    for byte in text.bytes().take(at) {
        match (quote, byte) {
            (_, _) if is_escaped => is_escaped = false,
            (None | Some(b'"'), b'\\') => is_escaped = true,
            (None, b'\'' | b'"') => quote = Some(byte),
            (Some(open), _) if open == byte => quote = None,
            (_, _) => (),
        }
    }
    quote == Some(b'\'')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_and_expressions_of_the_shell_are_left_alone() {
        let found =
            |text: &str| references(text).iter().map(Reference::variable).collect::<Vec<_>>().join(" ");
        assert_eq!(found("echo $A ${B} $1 ${2}x ${OUT.outputs.rows}"), "A B P1 P2 OUT_outputs_rows");
        assert_eq!(found("echo ${A:-b} $(date) $$ \\$A ${a-b} $"), "");
        assert_eq!(found("${params.env} ${steps.s.outputs.x}"), "env s_outputs_x");
        assert_eq!(for_script("$A $1 ${O.a-b} ${params.p}", |_| true), "$A ${P1} ${O_a_b} ${p}");
        assert_eq!(for_script("awk '{print $1}'", |_| false), "awk '{print $1}'");
        assert_eq!(for_script("${env.HOME} ${O.x} $A", |_| false), "${HOME} ${O.x} $A");
        assert_eq!(unread("${A.b[0]} ${A.b} ${A:-b.c} ${a[0]} \\${A.b[1]}"), ["${A.b[0]}"]);
        assert!(is_quoted("awk '$1'", 5) && !is_quoted("echo \"it's\" $1", 12) && !is_quoted("'a' $1", 4));
    }
}
