//! What a program can read and do, grouped by noun.

use windlass_engine::HasStore;
use windlass_engine::store::{
    Jobs, Logs, Queues, Registrations, Runs, Schedules, Upkeep, Variables, Workers,
};

use crate::open::Windlass;

impl Windlass {
    /// Runs: submit, read, cancel and retry them.
    ///
    /// ```no_run
    /// # fn main() -> windlass::Result<()> {
    /// let windlass = windlass::Windlass::open("windlass.db")?;
    /// windlass.runs().cancel(3)?;
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn runs(&self) -> Runs<'_> {
        self.store().runs()
    }

    /// Jobs: enqueue, read and cancel them, and find out why one does not run.
    #[must_use]
    pub fn jobs(&self) -> Jobs<'_> {
        self.store().jobs()
    }

    /// The output of jobs.
    #[must_use]
    pub fn logs(&self) -> Logs<'_> {
        self.store().logs()
    }

    /// Queues: pause, resume and limit them.
    #[must_use]
    pub fn queues(&self) -> Queues<'_> {
        self.store().queues()
    }

    /// Schedules: add, pause, resume, trigger and backfill them.
    #[must_use]
    pub fn schedules(&self) -> Schedules<'_> {
        self.store().schedules()
    }

    /// Registered workflows: apply a definition, and read the versions.
    #[must_use]
    pub fn registrations(&self) -> Registrations<'_> {
        self.store().registrations()
    }

    /// Values that are kept between runs: set, read, list and delete them.
    #[must_use]
    pub fn variables(&self) -> Variables<'_> {
        self.store().variables()
    }

    /// Workers that are alive.
    #[must_use]
    pub fn workers(&self) -> Workers<'_> {
        self.store().workers()
    }

    /// The database as a whole: check it, and count what it holds.
    #[must_use]
    pub fn upkeep(&self) -> Upkeep<'_> {
        self.store().upkeep()
    }
}
