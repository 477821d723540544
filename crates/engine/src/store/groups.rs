//! The methods of the store, grouped by noun: `store.runs().cancel(…)`. Methods for workers and for the scheduler are
//! kept apart from methods for people.

use super::Store;

/// Operations on runs. See [`Store::runs`].
#[derive(Clone, Copy)]
pub struct Runs<'s> {
    pub(in crate::store) store: &'s Store,
}

/// Operations on jobs. See [`Store::jobs`].
#[derive(Clone, Copy)]
pub struct Jobs<'s> {
    pub(in crate::store) store: &'s Store,
}

/// Operations on events. See [`Store::events`].
#[derive(Clone, Copy)]
pub struct Events<'s> {
    pub(in crate::store) store: &'s Store,
}

/// Values that are kept between runs. See [`Store::variables`].
#[derive(Clone, Copy)]
pub struct Variables<'s> {
    pub(in crate::store) store: &'s Store,
}

/// Notifications and their targets. See [`Store::notifications`].
#[derive(Clone, Copy)]
pub struct Notifications<'s> {
    pub(in crate::store) store: &'s Store,
}

/// The output of jobs. See [`Store::logs`].
#[derive(Clone, Copy)]
pub struct Logs<'s> {
    pub(in crate::store) store: &'s Store,
}

/// Operations on queues. See [`Store::queues`].
#[derive(Clone, Copy)]
pub struct Queues<'s> {
    pub(in crate::store) store: &'s Store,
}

/// Operations on schedules. See [`Store::schedules`].
#[derive(Clone, Copy)]
pub struct Schedules<'s> {
    pub(in crate::store) store: &'s Store,
}

/// Operations on registered workflows. See [`Store::registrations`].
#[derive(Clone, Copy)]
pub struct Registrations<'s> {
    pub(in crate::store) store: &'s Store,
}

/// The registered workers. See [`Store::workers`].
#[derive(Clone, Copy)]
pub struct Workers<'s> {
    pub(in crate::store) store: &'s Store,
}

/// Operations on the whole database. See [`Store::upkeep`].
#[derive(Clone, Copy)]
pub struct Upkeep<'s> {
    pub(in crate::store) store: &'s Store,
}

/// Who may use the web interface, and what was changed by whom. See [`Store::access`].
#[derive(Clone, Copy)]
pub struct Access<'s> {
    pub(in crate::store) store: &'s Store,
}

/// Operations for workers: claiming jobs and finishing attempts. See [`Store::for_workers`].
#[derive(Clone, Copy)]
pub struct ForWorkers<'s> {
    pub(in crate::store) store: &'s Store,
}

/// Operations for the scheduler and the upkeep thread. See [`Store::for_scheduler`].
#[derive(Clone, Copy)]
pub struct ForScheduler<'s> {
    pub(in crate::store) store: &'s Store,
}

/// Operations for restoring a backup. See [`Store::for_restore`].
#[derive(Clone, Copy)]
pub struct ForRestore<'s> {
    pub(in crate::store) store: &'s Store,
}

impl Store {
    /// Operations on runs.
    #[must_use]
    pub fn runs(&self) -> Runs<'_> {
        Runs { store: self }
    }

    /// Operations on jobs.
    #[must_use]
    pub fn jobs(&self) -> Jobs<'_> {
        Jobs { store: self }
    }

    /// Operations on events.
    #[must_use]
    pub fn events(&self) -> Events<'_> {
        Events { store: self }
    }

    /// Values that are kept between runs.
    #[must_use]
    pub fn variables(&self) -> Variables<'_> {
        Variables { store: self }
    }

    /// Notifications and their targets.
    #[must_use]
    pub fn notifications(&self) -> Notifications<'_> {
        Notifications { store: self }
    }

    /// The output of jobs.
    #[must_use]
    pub fn logs(&self) -> Logs<'_> {
        Logs { store: self }
    }

    /// Operations on queues.
    #[must_use]
    pub fn queues(&self) -> Queues<'_> {
        Queues { store: self }
    }

    /// Operations on schedules.
    #[must_use]
    pub fn schedules(&self) -> Schedules<'_> {
        Schedules { store: self }
    }

    /// Operations on registered workflows.
    #[must_use]
    pub fn registrations(&self) -> Registrations<'_> {
        Registrations { store: self }
    }

    /// The registered workers.
    #[must_use]
    pub fn workers(&self) -> Workers<'_> {
        Workers { store: self }
    }

    /// Operations on the whole database.
    #[must_use]
    pub fn upkeep(&self) -> Upkeep<'_> {
        Upkeep { store: self }
    }

    /// Who may use the web interface, and what was changed by whom.
    #[must_use]
    pub fn access(&self) -> Access<'_> {
        Access { store: self }
    }

    /// Operations for workers: claiming jobs and finishing attempts.
    #[must_use]
    pub fn for_workers(&self) -> ForWorkers<'_> {
        ForWorkers { store: self }
    }

    /// Operations for the scheduler and the upkeep thread.
    #[must_use]
    pub fn for_scheduler(&self) -> ForScheduler<'_> {
        ForScheduler { store: self }
    }

    /// Operations for restoring a backup.
    #[must_use]
    pub fn for_restore(&self) -> ForRestore<'_> {
        ForRestore { store: self }
    }
}

/// Access to the store of an open database, for the crates of this workspace. The library `windlass` does not re-export
/// this trait. So a program that embeds Windlass can't claim jobs, finish attempts or rescue workers.
pub trait HasStore {
    /// The store.
    fn store(&self) -> &Store;
}
