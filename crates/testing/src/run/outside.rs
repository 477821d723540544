//! What happens from outside of a run while it is made: signals, the decisions of people, and its cancellation.

use windlass_engine::{Result, WaitsFor};

use super::engine::Engine;

impl Engine {
    /// Sends signals, cancels the run and decides about approvals.
    pub(super) fn act_for_others(&mut self) -> Result<bool> {
        let now_ms = self.world().clock().now_ms();
        let began_at_ms = self.world().case().now_ms;
        let mut has_acted = false;
        while let Some((_, event)) =
            self.world().next_event(began_at_ms).filter(|(at_ms, _)| *at_ms <= now_ms)
        {
            self.store().events().signal(event.signal)?;
            self.world().event_was_sent();
            has_acted = true;
        }
        if self.world().cancels_at(began_at_ms).is_some_and(|at_ms| at_ms <= now_ms) {
            self.cancel_run()?;
            has_acted = true;
        }
        for (job_id, name) in self.waiting_approvals()? {
            let is_due = self.world().decision_at(job_id, &name).is_some_and(|at_ms| at_ms <= now_ms);
            let Some(approval) = self.world().approval(&name).filter(|_approval| is_due) else {
                continue;
            };
            self.store().jobs().decide_approval(job_id, approval.verdict.clone())?;
            self.world().was_decided(job_id);
            has_acted = true;
        }
        Ok(has_acted)
    }

    /// Cancels the run, unless it is being stopped by itself.
    fn cancel_run(&self) -> Result<()> {
        match self.store().runs().cancel(self.run_id()) {
            Ok(_cancellation) => {}
            Err(error) if error.is_conflict() => {}
            Err(error) => return Err(error),
        }
        self.world().run_was_cancelled();
        Ok(())
    }

    /// The jobs that wait for an approval, if the case decides about any.
    fn waiting_approvals(&mut self) -> Result<Vec<(i64, String)>> {
        if self.world().case().approvals.is_empty() {
            return Ok(Vec::new());
        }
        let waiting =
            self.waiting_jobs()?.into_iter().filter(|job| job.waits_for == Some(WaitsFor::Approval));
        waiting.map(|job| Ok((job.id, self.name(job.id)?))).collect()
    }

    /// When something comes from outside.
    pub(super) fn next_from_outside(&mut self) -> Result<Vec<i64>> {
        let began_at_ms = self.world().case().now_ms;
        let event = self.world().next_event(began_at_ms).map(|(at_ms, _event)| at_ms);
        let mut next: Vec<i64> = event.into_iter().chain(self.world().cancels_at(began_at_ms)).collect();
        for (job_id, name) in self.waiting_approvals()? {
            next.extend(self.world().decision_at(job_id, &name));
        }
        Ok(next)
    }
}
