//! A failure as JSON.

use windlass_views::{ErrorDetails, ErrorKind, ErrorView, FileError, PlaceView};
use windlass_workflow::Report;

use super::Failure;

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
        let brief = |text: &str| (text.to_owned(), None);
        match self {
            Failure::ClosedPipe => brief("standard output was closed"),
            Failure::RunFailed => brief("a run ended FAILED"),
            Failure::RunCancelled => brief("a run ended CANCELLED"),
            Failure::RunTimedOut => brief("a run reached its timeout"),
            Failure::ProblemsFound => brief("problems were found; standard output lists them"),
            Failure::CasesFailed => brief("cases failed; standard output lists them"),
            Failure::InvalidWorkflow { report, help } => {
                let message = match report.diagnostics() {
                    [only] => only.message.clone(),
                    several => format!("{} has {} errors", report.path(), several.len() + report.omitted()),
                };
                (message, Some(help.clone()))
            }
            Failure::InvalidFiles { message, .. } => match message {
                Some(message) => (message.clone(), None),
                None => brief("a file is invalid"),
            },
            Failure::Usage { message, help }
            | Failure::InvalidParameters { message, help }
            | Failure::Conflict { message, help }
            | Failure::File { message, help }
            | Failure::NotFound { message, help }
            | Failure::Database { message, help }
            | Failure::DamagedDatabase { message, help }
            | Failure::Interrupted { message, resume: help }
            | Failure::Output { message, help }
            | Failure::Internal { message, help } => (message.clone(), Some(help.clone())),
        }
    }

    fn listed_errors(&self) -> Vec<FileError> {
        match self {
            Failure::InvalidWorkflow { report, .. } => errors_of(report),
            Failure::InvalidFiles { errors, .. } => errors.clone(),
            Failure::ClosedPipe
            | Failure::RunFailed
            | Failure::RunCancelled
            | Failure::RunTimedOut
            | Failure::ProblemsFound
            | Failure::CasesFailed
            | Failure::Usage { .. }
            | Failure::InvalidParameters { .. }
            | Failure::Conflict { .. }
            | Failure::File { .. }
            | Failure::NotFound { .. }
            | Failure::Database { .. }
            | Failure::DamagedDatabase { .. }
            | Failure::Interrupted { .. }
            | Failure::Output { .. }
            | Failure::Internal { .. } => Vec::new(),
        }
    }
}

/// The errors or the warnings of a report, each with its place.
pub(crate) fn errors_of(report: &Report) -> Vec<FileError> {
    let errors = report.diagnostics().iter().map(|diagnostic| FileError {
        message: diagnostic.message.clone(),
        place: Some(PlaceView {
            file: diagnostic.file.clone(),
            line: diagnostic.line,
            column: diagnostic.column,
        }),
        next_step: diagnostic.advice().map(str::to_owned),
    });
    errors.collect()
}
