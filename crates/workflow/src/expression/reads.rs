//! What an expression reads of other jobs.

use super::lookup::{Lookup, Segment};

/// A field of `jobs.NAME`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JobField {
    /// The result of the job, if it has one.
    Output,
    /// The status, such as `FAILED`.
    Status,
    /// Why the job failed or was skipped, as text, or null.
    Error,
    /// The exit code of the last attempt, or null.
    ExitCode,
    /// How many attempts failed.
    Failures,
    /// The files that it keeps. No expression reads them.
    Artifacts,
}

impl JobField {
    /// All fields of expressions, in the order in which messages list them.
    pub const ALL: [JobField; 5] =
        [JobField::Output, JobField::Status, JobField::Error, JobField::ExitCode, JobField::Failures];

    /// The field as an expression has it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            JobField::Output => "output",
            JobField::Status => "status",
            JobField::Error => "error",
            JobField::ExitCode => "exit_code",
            JobField::Failures => "failures",
            JobField::Artifacts => "artifacts",
        }
    }

    pub(super) fn of_name(name: &str) -> Option<JobField> {
        JobField::ALL.into_iter().find(|field| field.name() == name)
    }
}

/// A field of a job that an expression reads.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobRead {
    /// The name of the job.
    pub job: String,
    /// The field.
    pub field: JobField,
}

impl JobRead {
    /// What a look-up reads. Nothing if it reads no job.
    pub(super) fn of(lookup: &Lookup) -> Option<JobRead> {
        match lookup.path.as_slice() {
            [Segment::Name(root), Segment::Name(job), Segment::Name(field), ..] if root == "jobs" => {
                Some(JobRead { job: job.clone(), field: JobField::of_name(field)? })
            }
            _ => None,
        }
    }
}
