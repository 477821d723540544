//! A failure as JSON.

use windlass_views::{ErrorDetails, ErrorKind, ErrorView, FileError};

use super::{Failure, Form};

impl Failure {
    /// The failure for a program, or nothing if there is none.
    pub(super) fn view(&self) -> Option<ErrorView> {
        let kind = self.kind()?;
        let (message, next_step) = self.message_and_next_step();
        let error = ErrorDetails {
            kind,
            message,
            next_step: next_step.filter(|next_step| !next_step.is_empty()),
            exit_code: self.exit_code(),
            errors: self.listed_errors(),
        };
        Some(ErrorView { error })
    }

    /// The failure as errors of a file.
    pub(crate) fn file_errors(&self) -> Vec<FileError> {
        let listed = self.listed_errors();
        if !listed.is_empty() {
            return listed;
        }
        let (message, next_step) = self.message_and_next_step();
        vec![FileError { message, place: None, next_step: next_step.filter(|text| !text.is_empty()) }]
    }

    fn kind(&self) -> Option<ErrorKind> {
        Some(match self {
            Failure::ClosedPipe => return None,
            Failure::Usage { .. } => ErrorKind::Usage,
            Failure::InvalidWorkflow { .. } => ErrorKind::InvalidFile,
            Failure::InvalidFiles { .. } => ErrorKind::InvalidFile,
            Failure::InvalidParameters { .. } => ErrorKind::InvalidParameters,
            Failure::Conflict { .. } => ErrorKind::Conflict,
            Failure::File { .. } => ErrorKind::File,
            Failure::NotFound { .. } => ErrorKind::NotFound,
            Failure::Database { .. } => ErrorKind::Database,
            Failure::DamagedDatabase { .. } => ErrorKind::DamagedDatabase,
            Failure::RunFailed => ErrorKind::RunFailed,
            Failure::ProblemsFound => ErrorKind::ProblemsFound,
            Failure::CasesFailed => ErrorKind::CasesFailed,
            Failure::RunCancelled => ErrorKind::RunCancelled,
            Failure::RunTimedOut => ErrorKind::RunTimedOut,
            Failure::Interrupted { .. } => ErrorKind::Interrupted,
            Failure::Output { .. } => ErrorKind::Output,
            Failure::Internal { .. } => ErrorKind::Internal,
        })
    }

    /// What people were told before is said again in a few words.
    fn message_and_next_step(&self) -> (String, Option<String>) {
        match self.form() {
            Form::SaidBefore(brief) => (brief.to_owned(), None),
            Form::Report { report, help } => {
                let message = match report.diagnostics() {
                    [only] => only.message.clone(),
                    several => format!("{} has {} errors", report.path(), several.len() + report.omitted()),
                };
                (message, Some(help.to_owned()))
            }
            Form::Files { message, .. } => (message.unwrap_or("a file is invalid").to_owned(), None),
            Form::Message { message, help: next_step } | Form::Interrupted { message, resume: next_step } => {
                (message.to_owned(), Some(next_step.to_owned()))
            }
        }
    }

    fn listed_errors(&self) -> Vec<FileError> {
        match self.form() {
            Form::Report { report, .. } => FileError::all_of(report),
            Form::Files { errors, .. } => errors.to_vec(),
            Form::SaidBefore(_) | Form::Message { .. } | Form::Interrupted { .. } => Vec::new(),
        }
    }
}
