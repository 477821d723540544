//! Looks now and then for runs whose jobs ended without consequences: a net under workers in other languages.

use windlass_engine::{Result, Store};

/// Between two looks at a few runs, in milliseconds.
const STEP_MS: i64 = 1_000;
/// Between two rounds over all unfinished runs, in milliseconds.
const ROUND_MS: i64 = 30_000;

/// Where a round stands.
#[derive(Debug, Default)]
pub(crate) struct Reconciler {
    cursor: i64,
    /// When it looks again, by its monotonic clock.
    next_ms: Option<i64>,
}

impl Reconciler {
    /// Looks at the next few runs, when it is time.
    pub(crate) fn look(&mut self, store: &Store) -> Result<()> {
        let now_ms = store.clock().monotonic_ms();
        if now_ms < *self.next_ms.get_or_insert(now_ms + STEP_MS) {
            return Ok(());
        }
        let reconciled = store.for_scheduler().reconcile_step(self.cursor)?;
        if reconciled.repaired > 0 {
            tracing::warn!(
                runs = reconciled.repaired,
                "counted runs anew whose jobs were ended from outside"
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

    use windlass_engine::{Clock, Random, RunStatus};
    use windlass_test_database::{Access, TestDatabase};

    use super::*;

    /// 45 runs of one job, of which two were ended from outside.
    const RUNS: &str = "
        WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 45)
        INSERT INTO runs (id, workflow, total_jobs, unfinished_jobs, updated_at) SELECT n, 'w', 1, 1, 0 FROM numbers;
        INSERT INTO jobs (run_id, kind, name, status) SELECT id, 'noop', 'a', 'PENDING' FROM runs;
        UPDATE jobs SET status = 'SUCCESSFUL', finished_at = 1 WHERE run_id IN (1, 45)";

    #[test]
    fn all_unfinished_runs_are_looked_at_in_turns() {
        let folder = tempfile::tempdir().unwrap();
        let database = TestDatabase::in_folder(folder.path());
        let clock = Clock::manual(1_000_000);
        let store = Store::new(crate::tests::open(&database, &clock), clock.clone(), Random::from_seed(1));
        database.sql(Access::Write).execute(RUNS);
        let ended = || [1, 45].map(|id| store.runs().get(id).unwrap().status == RunStatus::Successful);
        let mut reconciler = Reconciler::default();
        reconciler.look(&store).unwrap();
        assert_eq!(ended(), [false, false], "not at once after the start");
        for expected in [[true, false], [true, false], [true, true]] {
            clock.advance_ms(STEP_MS);
            reconciler.look(&store).unwrap();
            assert_eq!(ended(), expected);
        }
        assert_eq!(store.upkeep().check().unwrap(), []);
    }
}
