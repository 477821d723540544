//! One line of a crontab, as `crontab(5)` of Debian describes it.

/// What a line of a crontab says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CrontabLine<'t> {
    Blank,
    Comment(&'t str),
    /// It sets a variable for the entries below.
    Variable {
        name: &'t str,
        value: &'t str,
    },
    Entry(CrontabEntry<'t>),
    /// What is wrong with it, for people.
    Unreadable(&'static str),
}

/// When a command is executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CrontabEntry<'t> {
    /// Five fields, or a word like `@daily`.
    pub(super) rule: String,
    /// The user, in a system's crontab.
    pub(super) user: Option<&'t str>,
    pub(super) command: String,
    /// The standard input: what follows the first `%`.
    pub(super) stdin: Option<String>,
}

/// Whether a crontab has a column for the user after the times, as `/etc/crontab` has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserColumn {
    /// `30 2 * * * command`
    Absent,
    /// `30 2 * * * root command`
    Present,
}

impl<'t> CrontabLine<'t> {
    pub(super) fn parse(line: &'t str, users: UserColumn) -> CrontabLine<'t> {
        let line = line.trim();
        if line.is_empty() {
            return CrontabLine::Blank;
        }
        if let Some(comment) = line.strip_prefix('#') {
            return CrontabLine::Comment(comment.trim());
        }
        if line.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '*' | '@')) {
            return entry(line, users).map_or_else(CrontabLine::Unreadable, CrontabLine::Entry);
        }
        match line.split_once('=') {
            Some((name, value)) => {
                CrontabLine::Variable { name: unquoted(name.trim()), value: unquoted(value.trim()) }
            }
            None => CrontabLine::Unreadable("it is neither a variable nor times with a command"),
        }
    }
}

fn entry(line: &str, users: UserColumn) -> Result<CrontabEntry<'_>, &'static str> {
    let fields = if line.starts_with('@') { 1 } else { 5 };
    let mut rest = line;
    let mut rule = Vec::new();
    for _field in 0..fields {
        let (field, after) = word(rest).ok_or("it has too few fields")?;
        rule.push(field);
        rest = after;
    }
    let mut user = None;
    if users == UserColumn::Present {
        let (name, after) = word(rest).ok_or("it has no user")?;
        (user, rest) = (Some(name), after);
    }
    if rest.is_empty() {
        return Err("it has no command");
    }
    let (command, stdin) = split_at_percent(rest);
    Ok(CrontabEntry { rule: rule.join(" "), user, command, stdin })
}

/// The first word, and the rest without the spaces before it.
fn word(text: &str) -> Option<(&str, &str)> {
    let end = text.find(char::is_whitespace)?;
    Some((&text[..end], text[end..].trim_start()))
}

/// The first `%` ends the command, and the others are newlines of the standard input. `\%` is a percent sign.
fn split_at_percent(text: &str) -> (String, Option<String>) {
    let (mut command, mut stdin) = (String::new(), None);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let c = match c {
            '\\' if chars.peek() == Some(&'%') => chars.next().unwrap_or(c),
            '%' if stdin.is_none() => {
                stdin = Some(String::new());
                continue;
            }
            '%' => '\n',
            c => c,
        };
        stdin.as_mut().unwrap_or(&mut command).push(c);
    }
    if let Some(stdin) = &mut stdin {
        stdin.push('\n');
    }
    (command.trim_end().to_owned(), stdin)
}

fn unquoted(text: &str) -> &str {
    for quote in ['"', '\''] {
        if let Some(inner) = text.strip_prefix(quote).and_then(|text| text.strip_suffix(quote)) {
            return inner;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> CrontabLine<'_> {
        CrontabLine::parse(line, UserColumn::Absent)
    }

    #[test]
    fn comments_variables_and_entries_are_told_apart() {
        assert_eq!(parsed("  "), CrontabLine::Blank);
        assert_eq!(parsed(" # at night "), CrontabLine::Comment("at night"));
        assert_eq!(parsed("A = 'x y' "), CrontabLine::Variable { name: "A", value: "x y" });
        assert_eq!(parsed("A="), CrontabLine::Variable { name: "A", value: "" });
        for (line, rule, command) in [
            ("*/5 * * * *   a=1 b ", "*/5 * * * *", "a=1 b"),
            ("@daily\tb", "@daily", "b"),
            ("30 2 1,15 JAN-MAR mon c", "30 2 1,15 JAN-MAR mon", "c"),
        ] {
            let CrontabLine::Entry(entry) = parsed(line) else { panic!("{line}") };
            assert_eq!((entry.rule.as_str(), entry.command.as_str()), (rule, command), "{line}");
        }
        for line in ["1 2 3", "@daily", "* * * * *", "hello"] {
            assert!(matches!(parsed(line), CrontabLine::Unreadable(_)), "{line}");
        }
    }

    #[test]
    fn a_percent_sign_begins_the_standard_input() {
        let split = |text| split_at_percent(text);
        assert_eq!(split(r"date +\%F"), ("date +%F".to_owned(), None));
        assert_eq!(split(r"mail a%hello%\% b"), ("mail a".to_owned(), Some("hello\n% b\n".to_owned())));
    }

    #[test]
    fn a_crontab_of_the_system_names_users() {
        let line = CrontabLine::parse("1 2 * * * root a b", UserColumn::Present);
        let CrontabLine::Entry(entry) = line else { panic!("{line:?}") };
        assert_eq!((entry.user, entry.command.as_str()), (Some("root"), "a b"));
    }
}
