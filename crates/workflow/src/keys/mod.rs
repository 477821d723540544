//! The keys of a workflow file, in one list.
//!
//! The list says which keys each table has, what a value is, whether it is a template, and whether this version supports
//! the key. Reading a file, suggestions for misspelled keys and the guide's reference follow it. `list.rs` has the
//! keys of the file and of all jobs, and the files in `kinds` have the keys of each kind.

mod foreign;
mod list;
mod unknown;

pub use crate::key::{InDefaults, Key, Table, TextKind, ValueType};
use crate::kinds;
pub use crate::support::{Accepted, Support};
pub(crate) use list::{
    CONCURRENCY_KEY, FOR_EACH, FOR_EACH_IN, IF, INCLUDE, MATRIX, OUTPUTS, REPEAT_UNTIL, RETRY_IF,
    RUN_CONCURRENCY_KEY, SCHEDULE_PARAMS, SET_VARIABLES, SKIP_IF, SUCCESS_IF, TRIGGER_IF, TRIGGER_PARAMS,
    WORKFLOW_ENV,
};
pub(crate) use unknown::find;

/// Every key, with the table in which it stands. The keys of `[defaults]` are not repeated.
pub fn list() -> impl Iterator<Item = (Table, &'static Key)> {
    tables()
        .filter(|table| !matches!(table, Table::Defaults | Table::LocalWorkflow))
        .flat_map(|table| table.keys().map(move |key| (table, key)))
}

/// Every table.
pub(crate) fn tables() -> impl Iterator<Item = Table> {
    let tables = [
        Table::Workflow,
        Table::LocalWorkflow,
        Table::Defaults,
        Table::Param,
        Table::Schedule,
        Table::Trigger,
        Table::Secret,
        Table::Workspace,
        Table::Job,
        Table::Retry,
        Table::Repeat,
        Table::Concurrency,
        Table::RunConcurrency,
        Table::ForEach,
        Table::Artifact,
        Table::Container,
        Table::Http,
        Table::Auth,
        Table::Sleep,
        Table::WaitFor,
        Table::Approval,
        Table::Signal,
    ];
    tables.into_iter()
}

impl Table {
    /// The keys of the table, in the order in which messages list them.
    pub fn keys(self) -> impl Iterator<Item = &'static Key> {
        let (of_kinds, own): (&[&Key], &[Key]) = match self {
            Table::Workflow | Table::LocalWorkflow => (&[], list::WORKFLOW),
            Table::Param => (&[], list::PARAM),
            Table::Schedule => (&[], list::SCHEDULE),
            Table::Trigger => (&[], list::TRIGGER),
            Table::Secret => (&[], list::SECRET),
            Table::Workspace => (&[], list::WORKSPACE),
            Table::Defaults | Table::Job => (kinds::keys(), list::JOB),
            Table::Retry => (&[], list::RETRY),
            Table::Repeat => (&[], list::REPEAT),
            Table::Concurrency => (&[], list::CONCURRENCY),
            Table::RunConcurrency => (&[], list::RUN_CONCURRENCY),
            Table::ForEach => (&[], list::FOR_EACH_TABLE),
            Table::Artifact => (&[], kinds::ARTIFACT_KEYS),
            Table::Container => (&[], kinds::CONTAINER_KEYS),
            Table::Http => (&[], kinds::HTTP_KEYS),
            Table::Auth => (&[], kinds::AUTH_KEYS),
            Table::Sleep => (&[], list::SLEEP),
            Table::WaitFor => (&[], list::WAIT_FOR),
            Table::Approval => (&[], list::APPROVAL),
            Table::Signal => (&[], list::SIGNAL),
        };
        let is_there = move |key: &&Key| match self {
            Table::Defaults => key.in_defaults == InDefaults::Yes,
            Table::LocalWorkflow => list::LOCAL_WORKFLOW.contains(&key.name()),
            Table::Workflow
            | Table::Param
            | Table::Schedule
            | Table::Trigger
            | Table::Secret
            | Table::Workspace
            | Table::Job
            | Table::Retry
            | Table::Repeat
            | Table::Concurrency
            | Table::RunConcurrency
            | Table::Artifact
            | Table::Container
            | Table::Http
            | Table::ForEach
            | Table::Auth
            | Table::Sleep
            | Table::WaitFor
            | Table::Approval
            | Table::Signal => true,
        };
        of_kinds.iter().copied().chain(own).filter(is_there)
    }
}
