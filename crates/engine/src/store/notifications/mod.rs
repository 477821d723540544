//! Notifications: what people and other systems are told of ends of runs, late schedules and dead workers.
//!
//! `targets` has the rows that `serve` writes from its configuration, `mark` inserts what they want, in the transaction that
//! makes it happen, `deliver` is for the service that delivers, and `list` is for people.

pub(in crate::store) mod deliver;
pub(in crate::store) mod list;
pub(in crate::store) mod mark;
pub(in crate::store) mod targets;

use std::fmt;

/// What a target can be told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NotificationEvent {
    /// A run failed or timed out.
    RunFailed,
    /// A run was cancelled.
    RunCancelled,
    /// A run succeeded.
    RunSuccessful,
    /// An occurrence of a schedule was not decided for minutes after its time.
    ScheduleLate,
    /// A worker ended without a word.
    WorkerDead,
}

impl NotificationEvent {
    /// All events.
    pub const ALL: [NotificationEvent; 5] = [
        NotificationEvent::RunFailed,
        NotificationEvent::RunCancelled,
        NotificationEvent::RunSuccessful,
        NotificationEvent::ScheduleLate,
        NotificationEvent::WorkerDead,
    ];

    /// Its spelling in the tables, in the configuration and in messages.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            NotificationEvent::RunFailed => "run_failed",
            NotificationEvent::RunCancelled => "run_cancelled",
            NotificationEvent::RunSuccessful => "run_successful",
            NotificationEvent::ScheduleLate => "schedule_late",
            NotificationEvent::WorkerDead => "worker_dead",
        }
    }

    /// The event with that spelling.
    #[must_use]
    pub fn parse(text: &str) -> Option<NotificationEvent> {
        NotificationEvent::ALL.into_iter().find(|event| event.as_str() == text)
    }
}

impl fmt::Display for NotificationEvent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// How far a notification has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NotificationStatus {
    /// It is not delivered yet.
    Pending,
    /// Its target has taken it.
    Delivered,
    /// Nobody tries to deliver it any more.
    Failed,
}

impl NotificationStatus {
    /// All states.
    pub const ALL: [NotificationStatus; 3] =
        [NotificationStatus::Pending, NotificationStatus::Delivered, NotificationStatus::Failed];

    /// Its spelling in the tables.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            NotificationStatus::Pending => "PENDING",
            NotificationStatus::Delivered => "DELIVERED",
            NotificationStatus::Failed => "FAILED",
        }
    }

    /// The state with that spelling.
    #[must_use]
    pub fn parse(text: &str) -> Option<NotificationStatus> {
        NotificationStatus::ALL.into_iter().find(|status| status.as_str() == text)
    }
}

impl fmt::Display for NotificationStatus {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}
