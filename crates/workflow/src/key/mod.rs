//! What a key of a workflow file is. The list of all keys is in `keys` and in the files of `kinds`.

pub(crate) mod name;

use crate::expression::Place;
use crate::support::Support;
pub(crate) use name::{KeyName, by_synonym, report_unknown, unknown};

/// A table of a workflow file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    /// The top level of the file.
    Workflow,
    /// A parameter, in `params`.
    Param,
    /// An item of `schedules`.
    Schedule,
    /// An item of `triggers`.
    Trigger,
    /// `defaults`. It has the keys of a job that are marked with [`InDefaults::Yes`].
    Defaults,
    /// A workflow in `workflows`. It has some keys of the top level.
    LocalWorkflow,
    /// A secret, in `secrets`.
    Secret,
    /// `workspace` of the file.
    Workspace,
    /// A job, in `jobs`, `on_success`, `on_failure`, `on_cancel` or `finally`.
    Job,
    /// `retry` of a job.
    Retry,
    /// `repeat` of a job.
    Repeat,
    /// `concurrency` of a job.
    Concurrency,
    /// `concurrency` of the file.
    RunConcurrency,
    /// `for_each` of a job.
    ForEach,
    /// An item of `artifacts` of a job.
    Artifact,
    /// `container` of a job.
    Container,
    /// `http` of a job.
    Http,
    /// `auth` of `http`.
    Auth,
    /// `sleep` of a job.
    Sleep,
    /// `wait_for` of a job.
    WaitFor,
    /// `approval` of a job.
    Approval,
    /// `signal` of a job.
    Signal,
}

/// A key of a table.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    pub(crate) key_name: KeyName,
    /// What the value may be, the usual form first.
    pub types: &'static [ValueType],
    /// The words that a [`ValueType::Word`] may be.
    pub words: &'static [&'static str],
    /// Whether texts in the value are templates.
    pub text: TextKind,
    /// The value of a table without the key, for people.
    pub default: Option<&'static str>,
    /// What the key says, for people.
    pub about: &'static str,
    /// Whether `[defaults]` may have this key of a job.
    pub in_defaults: InDefaults,
    /// Whether this version supports the key.
    pub support: Support,
}

/// What a value may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueType {
    /// A string.
    Text,
    /// One of a few strings.
    Word,
    /// `true` or `false`.
    Boolean,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// A string like `"1h 30m"`.
    Duration,
    /// A date or a time.
    Instant,
    /// A list of strings.
    Texts,
    /// A list of strings and tables with these keys.
    TextsOrTables(Table),
    /// A list of any values.
    Items,
    /// A list of strings and numbers.
    Words,
    /// A table of names and strings, numbers, booleans or dates.
    Values,
    /// A table of names and any values.
    AnyValues,
    /// A table of names and lists of any values.
    Lists,
    /// Any value that JSON has.
    Json,
    /// A table with these keys.
    Table(Table),
    /// A table of names and tables with these keys.
    Tables(Table),
    /// A list of tables with these keys.
    List(Table),
}

/// What the texts in a value are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextKind {
    /// Texts as they are.
    Plain,
    /// Texts with `{{ … }}`. The place says which names they can look up.
    Template(Place),
    /// A condition without braces.
    Expression(Place),
    /// An expression without braces that may give any value.
    Value(Place),
}

/// Whether `[defaults]` may have a key of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InDefaults {
    /// It may.
    Yes,
    /// Only jobs have it.
    No,
}

impl Table {
    /// The table's name for people.
    pub(crate) fn noun(self) -> &'static str {
        match self {
            Table::Workflow => "a workflow",
            Table::LocalWorkflow => "`workflows`",
            Table::Param => "a parameter",
            Table::Schedule => "a schedule",
            Table::Trigger => "a trigger",
            Table::Secret => "a secret",
            Table::Defaults => "`defaults`",
            Table::Workspace => "`workspace`",
            Table::Job => "a job",
            Table::Retry => "`retry`",
            Table::Repeat => "`repeat`",
            Table::Concurrency | Table::RunConcurrency => "`concurrency`",
            Table::ForEach => "`for_each`",
            Table::Artifact => "an artifact",
            Table::Container => "`container`",
            Table::Http => "`http`",
            Table::Auth => "`auth`",
            Table::Sleep => "`sleep`",
            Table::WaitFor => "`wait_for`",
            Table::Approval => "`approval`",
            Table::Signal => "`signal`",
        }
    }
}

impl Key {
    /// A supported key with plain texts, which only jobs have if it is a key of jobs.
    pub(crate) const fn new(name: &'static str, types: &'static [ValueType], about: &'static str) -> Key {
        Key {
            key_name: KeyName::new(name),
            types,
            words: &[],
            text: TextKind::Plain,
            default: None,
            about,
            in_defaults: InDefaults::No,
            support: Support::Supported,
        }
    }

    /// Adds the words of other tools for the key.
    pub(crate) const fn elsewhere(self, elsewhere: &'static [&'static str]) -> Key {
        Key { key_name: KeyName { elsewhere, ..self.key_name }, ..self }
    }

    pub(crate) const fn words(self, words: &'static [&'static str]) -> Key {
        Key { words, ..self }
    }

    pub(crate) const fn template(self, place: Place) -> Key {
        Key { text: TextKind::Template(place), ..self }
    }

    pub(crate) const fn default(self, default: &'static str) -> Key {
        Key { default: Some(default), ..self }
    }

    pub(crate) const fn in_defaults(self) -> Key {
        Key { in_defaults: InDefaults::Yes, ..self }
    }

    pub(crate) const fn expression(self, place: Place) -> Key {
        Key { text: TextKind::Expression(place), ..self }
    }

    pub(crate) const fn value(self, place: Place) -> Key {
        Key { text: TextKind::Value(place), ..self }
    }

    pub(crate) const fn support(self, support: Support) -> Key {
        Key { support, ..self }
    }

    /// The key as a file has it.
    pub fn name(&self) -> &'static str {
        self.key_name.name
    }
}
