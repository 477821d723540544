//! What this version supports. A feature that the engine does not execute yet is switched off here.

/// Whether this version supports a key, a value or a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Support {
    /// A file may use it.
    Supported,
    /// Using it is an error: "this version does not support it".
    Planned,
}

/// The keys `if` and `when` of a job.
pub(crate) const CONDITIONS: Support = Support::Supported;
/// `success_if` and `skip_if` of a job, and `retry.if`.
pub(crate) const RESULT_CONDITIONS: Support = Support::Supported;
/// The fields of `jobs.NAME` in templates, besides `output`.
pub(crate) const JOB_FIELDS: Support = Support::Supported;
/// `deadline` of a job.
pub(crate) const DEADLINE: Support = Support::Supported;
/// `stdin` of a job.
pub(crate) const STDIN: Support = Support::Supported;
/// `secrets` of the workflow and of a job, and the name `secrets` in templates.
pub(crate) const SECRETS: Support = Support::Supported;
/// `env_files` of a job.
pub(crate) const ENV_FILES: Support = Support::Supported;
/// `output = "lines"`.
pub(crate) const OUTPUT_LINES: Support = Support::Supported;
/// `on_success`, `on_failure`, `on_cancel` and `finally` of the workflow, and what only they can look up.
pub(crate) const HANDLERS: Support = Support::Supported;

/// `workflow` of a job, and `workflows` and `outputs` of the workflow.
pub(crate) const CALLS: Support = Support::Supported;

/// What a file may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Accepted {
    /// What this version supports.
    #[default]
    Supported,
    /// Everything, for tests of features that are not supported yet.
    Everything,
}

impl Accepted {
    pub(crate) fn accepts(self, support: Support) -> bool {
        match (self, support) {
            (Accepted::Supported | Accepted::Everything, Support::Supported)
            | (Accepted::Everything, Support::Planned) => true,
            (Accepted::Supported, Support::Planned) => false,
        }
    }
}
