//! The claim of an idle worker: it is left with the database while nobody has the dispatcher's role, and run in the
//! transaction that makes a job claimable. So a job that comes starts as soon as it is acknowledged, without a commit
//! between.
//!
//! Only while nothing is claimed: then no executor has a result, and the room that the claim was left for stays.
//! Whoever has the role next takes it back before anything else.

use super::super::shared::Asking;
use super::{Dispatcher, Look, request};
use crate::error::Result;

impl Dispatcher<'_> {
    /// Leaves a claim if the worker has nothing to do.
    pub(super) fn leave_claim(&mut self) {
        let is_idle = self.desk.outstanding.count() == 0 && self.desk.look == Look::Not;
        // None when it is about to end.
        let room = self.room(self.shared.mode(), self.desk.outstanding.count());
        if !is_idle || room.limit == 0 {
            return;
        }
        // It lasts longer when it is renewed; that need not be known here.
        let until_ms = self.shared.running.lease().ends_at_ms();
        self.desk.standing = self.shared.store.claim_with_next(request(self.shared, room), until_ms);
    }

    /// Takes back what was left, or what it has claimed.
    pub(super) fn take_back(&mut self) -> Result<()> {
        let Some(standing) = self.desk.standing.take() else { return Ok(()) };
        // A transaction that has begun is waited for.
        self.shared.set_asking(Asking::Begins);
        let taken_back = standing.take_back();
        self.shared.set_asking(Asking::Ends);
        match taken_back {
            None => Ok(()),
            Some(Ok(claims)) => {
                let room = self.room(self.shared.mode(), 0);
                self.take_in(claims, room)
            }
            Some(Err(error)) => {
                tracing::debug!(%error, "the claim of an idle worker failed; claiming again");
                // It may have been heard all the same.
                self.desk.compare_at_ms = self.shared.store.clock().monotonic_ms();
                self.desk.look = Look::Now;
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::held::AddedBy;
    use super::super::super::sample::Sample;
    use super::super::{Dispatcher, EndGuard, Look};

    #[test]
    fn a_worker_that_gives_up_leaves_no_claim_behind() {
        let sample = Sample::new(1);
        let shared = &sample.shared;
        let end = EndGuard { shared };
        // The turn of an executor, when the dispatcher's thread has given up and not ended yet.
        let desk = shared.desk.lock().expect("nobody panicked");
        let mut dispatcher = Dispatcher { shared, desk, by: AddedBy::Executor };
        dispatcher.desk.look = Look::Not;
        dispatcher.leave_claim();
        drop(dispatcher);
        assert_eq!(sample.database.standing(), 1);
        drop(end);
        assert_eq!(sample.database.standing(), 0);
    }
}
