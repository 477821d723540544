//! The names that a file declares.

use crate::job_names::JobNames;
use crate::model::KeepWorkspace;
use crate::params::Param;

/// The names in a file that expressions can look up, and the text of the file for positions in it.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'a> {
    /// The text of the file.
    pub(crate) file: &'a str,
    pub(crate) params: &'a [Param],
    pub(crate) jobs: &'a JobNames<'a>,
    /// The names of the secrets, in the order of the file.
    pub(crate) secrets: &'a [&'a str],
    pub(crate) reader: Reader,
    pub(crate) has_items: HasItems,
    pub(crate) has_workspace: HasWorkspace,
}

/// Whether the runs of the workflow have a folder, so that `run.workspace` is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HasWorkspace {
    Yes,
    No,
}

impl HasWorkspace {
    pub(crate) fn of(workspace: Option<KeepWorkspace>) -> HasWorkspace {
        if workspace.is_some() { HasWorkspace::Yes } else { HasWorkspace::No }
    }
}

/// Whether the reader is executed for each item of a list, so that it knows `item` and `index`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum HasItems {
    Yes,
    #[default]
    No,
}

/// What reads the values of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    /// The whole workflow, its `defaults` or a schedule. It reads no jobs.
    Workflow,
    /// A job. It reads the jobs that it needs, directly or not.
    Job,
    /// A job of `on_success`, `on_failure`, `on_cancel` or `finally`. It reads every job, and how the run ended.
    Handler,
    /// `outputs` of the workflow. They read every job.
    Outputs,
}
