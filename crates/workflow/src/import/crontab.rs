//! Workflows from a crontab: one for each entry, because each entry has times of its own.

use std::collections::{BTreeMap, BTreeSet};

pub use super::crontab_line::UserColumn;
use super::crontab_line::{CrontabEntry, CrontabLine};
use super::{Imported, ImportedWorkflow};
use crate::source::Source;
use crate::{format_toml, parse};

/// What a crontab does not say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CrontabOptions {
    /// The IANA name of the zone in which cron reads the times.
    pub timezone: String,
    /// The folder in which cron starts the commands. Nothing leaves `dir` out.
    pub home: Option<String>,
    /// Whether the crontab names users.
    pub users: UserColumn,
}

/// Words at the beginning of a command that do not say what it is for.
const GENERIC_WORDS: [&str; 14] = [
    "cd", "test", "[", "sh", "bash", "env", "sudo", "nice", "ionice", "flock", "timeout", "python",
    "python3", "exec",
];

/// Makes a workflow of each entry of a crontab.
///
/// The workflows run at the times at which cron executes the entries, with cron's shell, folder and variables, and like cron
/// they do not wait for an earlier run and do not make up for missed times.
#[must_use]
pub fn crontab(text: &str, options: &CrontabOptions) -> Imported {
    let mut import =
        Import { options, variables: BTreeMap::new(), names: BTreeSet::new(), imported: Imported::default() };
    let mut comments = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        match CrontabLine::parse(line, options.users) {
            CrontabLine::Blank => comments.clear(),
            CrontabLine::Comment(comment) => comments.push(comment),
            CrontabLine::Variable { name, value } => import.set(name, value, number),
            CrontabLine::Entry(entry) => import.add(&entry, number, &std::mem::take(&mut comments)),
            CrontabLine::Unreadable(why) => import.leave_out(number, why),
        }
    }
    import.imported
}

struct Import<'o> {
    options: &'o CrontabOptions,
    variables: BTreeMap<String, String>,
    names: BTreeSet<String>,
    imported: Imported,
}

impl Import<'_> {
    fn leave_out(&mut self, number: usize, what: impl AsRef<str>) {
        self.imported.left_out.push(format!("line {number}: {}", what.as_ref()));
    }

    fn set(&mut self, name: &str, value: &str, number: usize) {
        if matches!(name, "MAILTO" | "MAILFROM") && !value.is_empty() {
            self.leave_out(
                number,
                format!("{name} sends no mail; write a job under `[on_failure]` that does"),
            );
        }
        if name == "RANDOM_DELAY" {
            self.leave_out(number, "RANDOM_DELAY is left out; write `jitter` in the schedules");
        }
        self.variables.insert(name.to_owned(), value.to_owned());
    }

    fn add(&mut self, entry: &CrontabEntry<'_>, number: usize, comments: &[&str]) {
        if let Some(reason) = unsupported(entry) {
            return self.leave_out(number, reason);
        }
        if let Some(user) = entry.user {
            self.leave_out(number, format!("the user {user} is left out; start the worker as this user"));
        }
        let name = self.name(&entry.command);
        let text = self.text(&name, entry, number, comments);
        let source = Source::new(format!("{name}.toml"), text.into_bytes());
        let checked = source.and_then(|source| {
            parse(&source)?;
            format_toml(&source)
        });
        match checked {
            Ok(text) => self.imported.workflows.push(ImportedWorkflow { name, text }),
            Err(report) => {
                let why = report.diagnostics().first().map_or(String::new(), |first| first.message.clone());
                self.leave_out(number, format!("the entry is left out: {why}"));
            }
        }
    }

    /// A name for the workflow that no other has.
    fn name(&mut self, command: &str) -> String {
        let words = command.split_whitespace().filter(|word| !word.contains('=') && !word.starts_with('-'));
        let mut names = words.filter_map(|word| {
            let base = word.rsplit('/').find(|part| !part.is_empty())?;
            let stem = base.split_once('.').map_or(base, |(stem, _extension)| stem);
            let name: String =
                stem.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-')).collect();
            let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic());
            (is_name && !GENERIC_WORDS.contains(&name.as_str())).then_some(name)
        });
        let base = names.next().unwrap_or_else(|| "job".to_owned());
        let base: String = base.chars().take(60).collect();
        let numbered = (2..).map(|number| format!("{base}-{number}"));
        let free = std::iter::once(base.clone()).chain(numbered).find(|name| !self.names.contains(name));
        let name = free.unwrap_or(base);
        self.names.insert(name.clone());
        name
    }

    fn text(&self, name: &str, entry: &CrontabEntry<'_>, number: usize, comments: &[&str]) -> String {
        let variable =
            |name: &str| self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty());
        let mut lines: Vec<String> = comments.iter().map(|comment| format!("# {comment}")).collect();
        lines.push(format!("# Made from line {number} of a crontab."));
        lines.push(format!("name = {}", quoted(name)));
        lines.push("[[schedules]]".to_owned());
        lines.push(format!("cron = {}", quoted(&entry.rule)));
        let timezone = variable("CRON_TZ").unwrap_or(&self.options.timezone);
        lines.push(format!("timezone = {}", quoted(timezone)));
        lines.push("overlap = \"allow\"".to_owned());
        lines.push("catchup = \"none\"".to_owned());
        lines.push(format!("[jobs.{name}]"));
        lines.push(format!("run = {}", quoted(&entry.command)));
        lines.push(format!("shell = {}", quoted(variable("SHELL").unwrap_or("/bin/sh"))));
        if let Some(stdin) = &entry.stdin {
            lines.push(format!("stdin = {}", quoted(stdin)));
        }
        if let Some(home) = variable("HOME").or(self.options.home.as_deref()) {
            lines.push(format!("dir = {}", quoted(home)));
        }
        let env: Vec<String> = self
            .variables
            .iter()
            .filter(|(name, _value)| is_for_commands(name))
            .map(|(name, value)| format!("{name} = {}", quoted(value)))
            .collect();
        if !env.is_empty() {
            lines.push(format!("env = {{ {} }}", env.join(", ")));
        }
        lines.join("\n")
    }
}

/// Why an entry has no equivalent.
fn unsupported(entry: &CrontabEntry<'_>) -> Option<&'static str> {
    if entry.rule.eq_ignore_ascii_case("@reboot") {
        return Some("`@reboot` is left out; let a service manager start `windlass run` with the machine");
    }
    let fields: Vec<&str> = entry.rule.split(' ').collect();
    if let [_minute, _hour, day, _month, weekday] = fields[..] {
        let is_step = |field: &str| field.starts_with('*') && field != "*" && field != "*/1";
        let is_restricted = |field: &str| !field.starts_with('*');
        if is_step(day) && (is_restricted(weekday) || is_step(weekday))
            || is_step(weekday) && is_restricted(day)
        {
            return Some(
                "the entry is left out: cron wants both a day of the month and a day of the week here, and in Windlass \
                 either is enough; list the days, or test one of them in the command",
            );
        }
    }
    let texts = std::iter::once(&entry.command).chain(&entry.stdin);
    if texts.into_iter().any(|text| text.contains('\0')) {
        return Some("the entry is left out: it contains a null character");
    }
    entry
        .stdin
        .as_ref()
        .filter(|stdin| stdin.contains("{{"))
        .map(|_stdin| "the entry is left out: its standard input contains `{{`, which begins a template")
}

/// Whether cron hands a variable to the commands, and not only reads it itself.
fn is_for_commands(name: &str) -> bool {
    let is_read_by_cron = matches!(name, "SHELL" | "MAILTO" | "MAILFROM" | "CRON_TZ" | "RANDOM_DELAY");
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    !is_read_by_cron && is_name
}

/// A text in the quotes of TOML.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> CrontabOptions {
        CrontabOptions {
            timezone: "Europe/Berlin".to_owned(),
            home: Some("/home/ann".to_owned()),
            users: UserColumn::Absent,
        }
    }

    #[test]
    fn each_entry_becomes_a_workflow_with_the_variables_above_it() {
        let text = "PATH=/bin\n# every night\n30 2 * * * /opt/backup.sh \\%F\nSHELL=/bin/bash\n@hourly cd /srv && ./backup.sh\n";
        let imported = crontab(text, &options());
        assert_eq!(imported.left_out, [""; 0]);
        let [first, second] = &imported.workflows[..] else { panic!("{imported:?}") };
        assert_eq!(
            first.text,
            "# every night\n# Made from line 3 of a crontab.\nname = \"backup\"\n\n[[schedules]]\n\
             cron = \"30 2 * * *\"\ntimezone = \"Europe/Berlin\"\noverlap = \"allow\"\ncatchup = \"none\"\n\n\
             [jobs.backup]\nrun = \"/opt/backup.sh %F\"\nshell = \"/bin/sh\"\ndir = \"/home/ann\"\n\
             env = { PATH = \"/bin\" }\n"
        );
        assert_eq!(second.name, "srv");
        assert!(second.text.contains("shell = \"/bin/bash\""), "{}", second.text);
    }

    #[test]
    fn what_has_no_equivalent_is_left_out_by_name() {
        let text =
            "MAILTO=ann\n@reboot a\n0 0 */2 * MON b\n61 * * * * c\nhello\nCRON_TZ=Mars/Base\n0 0 * * * d\n";
        let imported = crontab(text, &options());
        assert_eq!(imported.workflows, []);
        let found = ["line 1: MAILTO", "line 2: `@reboot`", "line 3: ", "line 4: ", "line 5: ", "line 7: "];
        assert_eq!(imported.left_out.len(), found.len(), "{:?}", imported.left_out);
        for (line, begin) in imported.left_out.iter().zip(found) {
            assert!(line.starts_with(begin), "{line}");
        }
    }

    #[test]
    fn two_entries_with_one_command_have_different_names() {
        let imported = crontab("@daily a\n@weekly a\n@weekly -x 12\n", &options());
        let names: Vec<&str> = imported.workflows.iter().map(|workflow| workflow.name.as_str()).collect();
        assert_eq!(names, ["a", "a-2", "job"]);
    }
}
