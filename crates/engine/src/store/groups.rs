//! The verbs of the store, grouped by noun: `store.runs().cancel(…)`. What workers and the scheduler call is apart from
//! what people call.

use super::Store;

/// What people do with runs. See [`Store::runs`].
#[derive(Clone, Copy)]
pub struct Runs<'s> {
    pub(in crate::store) store: &'s Store,
}

/// What people do with jobs. See [`Store::jobs`].
#[derive(Clone, Copy)]
pub struct Jobs<'s> {
    pub(in crate::store) store: &'s Store,
}

/// What jobs have written. See [`Store::logs`].
#[derive(Clone, Copy)]
pub struct Logs<'s> {
    pub(in crate::store) store: &'s Store,
}

/// What people do with queues. See [`Store::queues`].
#[derive(Clone, Copy)]
pub struct Queues<'s> {
    pub(in crate::store) store: &'s Store,
}

/// What people do with schedules. See [`Store::schedules`].
#[derive(Clone, Copy)]
pub struct Schedules<'s> {
    pub(in crate::store) store: &'s Store,
}

/// What people do with registered workflows. See [`Store::registrations`].
#[derive(Clone, Copy)]
pub struct Registrations<'s> {
    pub(in crate::store) store: &'s Store,
}

/// The workers that are registered. See [`Store::workers`].
#[derive(Clone, Copy)]
pub struct Workers<'s> {
    pub(in crate::store) store: &'s Store,
}

/// What people do with the database as a whole. See [`Store::upkeep`].
#[derive(Clone, Copy)]
pub struct Upkeep<'s> {
    pub(in crate::store) store: &'s Store,
}

/// What workers do: they claim jobs and end attempts. See [`Store::for_workers`].
#[derive(Clone, Copy)]
pub struct ForWorkers<'s> {
    pub(in crate::store) store: &'s Store,
}

/// What the scheduler and the upkeep thread do. See [`Store::for_scheduler`].
#[derive(Clone, Copy)]
pub struct ForScheduler<'s> {
    pub(in crate::store) store: &'s Store,
}

impl Store {
    /// What people do with runs.
    #[must_use]
    pub fn runs(&self) -> Runs<'_> {
        Runs { store: self }
    }

    /// What people do with jobs.
    #[must_use]
    pub fn jobs(&self) -> Jobs<'_> {
        Jobs { store: self }
    }

    /// What jobs have written.
    #[must_use]
    pub fn logs(&self) -> Logs<'_> {
        Logs { store: self }
    }

    /// What people do with queues.
    #[must_use]
    pub fn queues(&self) -> Queues<'_> {
        Queues { store: self }
    }

    /// What people do with schedules.
    #[must_use]
    pub fn schedules(&self) -> Schedules<'_> {
        Schedules { store: self }
    }

    /// What people do with registered workflows.
    #[must_use]
    pub fn registrations(&self) -> Registrations<'_> {
        Registrations { store: self }
    }

    /// The workers that are registered.
    #[must_use]
    pub fn workers(&self) -> Workers<'_> {
        Workers { store: self }
    }

    /// What people do with the database as a whole.
    #[must_use]
    pub fn upkeep(&self) -> Upkeep<'_> {
        Upkeep { store: self }
    }

    /// What workers do: they claim jobs and end attempts.
    #[must_use]
    pub fn for_workers(&self) -> ForWorkers<'_> {
        ForWorkers { store: self }
    }

    /// What the scheduler and the upkeep thread do.
    #[must_use]
    pub fn for_scheduler(&self) -> ForScheduler<'_> {
        ForScheduler { store: self }
    }
}
