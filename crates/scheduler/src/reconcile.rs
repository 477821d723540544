//! Reconciliation: recounts the unfinished jobs of runs, a few runs at a time. Another program may have ended jobs without
//! updating the counters of their runs.

use windlass_engine::{Result, Store};

/// Time between two steps of a round.
const STEP_MS: i64 = 1_000;
/// Time between two rounds over all unfinished runs.
const ROUND_MS: i64 = 30_000;

/// Reconciles all unfinished runs, in rounds.
#[derive(Debug, Default)]
pub(crate) struct Reconciler {
    /// The id of the last run that this round has checked.
    cursor: i64,
    /// When the next step is due, by the monotonic clock.
    next_ms: Option<i64>,
}

impl Reconciler {
    /// Recounts the jobs of the next few runs, if a step is due.
    pub(crate) fn step(&mut self, store: &Store) -> Result<()> {
        let now_ms = store.clock().monotonic_ms();
        if now_ms < *self.next_ms.get_or_insert(now_ms + STEP_MS) {
            return Ok(());
        }
        let reconciled = store.for_scheduler().reconcile_step(self.cursor)?;
        if reconciled.repaired > 0 {
            tracing::warn!(
                runs = reconciled.repaired,
                "corrected runs whose jobs were ended by other programs"
            );
        }
        let pause_ms = if reconciled.cursor.is_some() { STEP_MS } else { ROUND_MS };
        self.cursor = reconciled.cursor.unwrap_or(0);
        self.next_ms = Some(now_ms + pause_ms);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use windlass_engine::RunStatus;
    use windlass_test_database::Access;

    use super::*;
    use crate::test_store::TestStore;

    /// 45 runs of one job each. Another program ended the jobs of two of them.
    const RUNS: &str = "
        WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 45)
        INSERT INTO runs (id, workflow, total_jobs, unfinished_jobs, updated_at) SELECT n, 'w', 1, 1, 0 FROM numbers;
        INSERT INTO jobs (run_id, kind, name, status) SELECT id, 'noop', 'a', 'PENDING' FROM runs;
        UPDATE jobs SET status = 'SUCCESSFUL', finished_at = 1 WHERE run_id IN (1, 45)";

    #[test]
    fn a_round_covers_all_unfinished_runs() {
        let TestStore { store, clock, database, .. } = &TestStore::at(1_000_000);
        database.sql(Access::Write).execute(RUNS);
        let ended = || [1, 45].map(|id| store.runs().get(id).unwrap().status == RunStatus::Successful);
        let mut reconciler = Reconciler::default();
        reconciler.step(store).unwrap();
        assert_eq!(ended(), [false, false], "not at once after the start");
        for expected in [[true, false], [true, false], [true, true]] {
            clock.advance_ms(STEP_MS);
            reconciler.step(store).unwrap();
            assert_eq!(ended(), expected);
        }
        assert_eq!(store.upkeep().check().unwrap(), []);
    }
}
