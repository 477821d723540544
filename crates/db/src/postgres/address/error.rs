//! The error of an invalid address.

/// Why an address can't be used: a message, and the next step. It never contains a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}; {next_step}")]
pub struct AddressError {
    message: String,
    next_step: String,
}

impl AddressError {
    pub(super) fn new(message: impl Into<String>, next_step: impl Into<String>) -> AddressError {
        AddressError { message: message.into(), next_step: next_step.into() }
    }

    /// What is wrong, and where.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What to do about it.
    #[must_use]
    pub fn next_step(&self) -> &str {
        &self.next_step
    }
}
