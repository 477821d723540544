//! What a claim reads first: whether its worker is alive, and the candidate of each claim partition.

use crate::status::WorkerStatus;
use crate::store::claim::candidates::CANDIDATES;
use crate::store::claim::partition::{Candidate, read_candidate};
use crate::store::claim::request::{ClaimRequest, Scope};
use windlass_db::error::Result;
use windlass_db::{Connection, Query, Row, Statement};

/// Reads the claiming worker's status and locks its row. A process that wants to fence the worker waits until the claim
/// is committed, and then finds the claimed jobs.
const LOCK_WORKER: &str = "SELECT status FROM workers WHERE id = $1 {share}";

/// What a claim reads before it selects jobs.
pub(in crate::store) struct ClaimSnapshot {
    pub(in crate::store) worker: ClaimingWorker,
    /// The candidate of each partition; empty for a claim by runs. `None` if jobs became claimable after the read.
    pub(in crate::store) candidates: Option<Vec<Candidate>>,
}

impl ClaimSnapshot {
    /// Asks `others` first and reads the snapshot after them. On a server all of it is one round trip.
    pub(in crate::store) fn after(
        connection: &mut dyn Connection,
        request: &ClaimRequest,
        others: &mut [Query<'_>],
    ) -> Result<ClaimSnapshot> {
        let (mut worker, mut candidates) = (ClaimingWorker::default(), Vec::new());
        let worker_id = [request.worker_id.into()];
        let mut on_worker = |row: &dyn Row| worker.read(row);
        let mut on_candidate = |row: &dyn Row| {
            candidates.push(read_candidate(row)?);
            Ok(())
        };
        let mut questions: Vec<Query<'_>> = others
            .iter_mut()
            .map(|Query { statement, parameters, on_row }| Query {
                statement: *statement,
                parameters,
                on_row: &mut **on_row,
            })
            .collect();
        let worker_query = Query {
            statement: Statement::Plain(LOCK_WORKER),
            parameters: &worker_id,
            on_row: &mut on_worker,
        };
        questions.push(worker_query);
        let is_by_partition = match &request.scope {
            Scope::Everything | Scope::Queues(_) => request.limit > 0,
            Scope::Runs(_) => false,
        };
        if is_by_partition {
            let statement = Statement::Plain(CANDIDATES);
            questions.push(Query { statement, parameters: &[], on_row: &mut on_candidate });
        }
        connection.query_all(&mut questions)?;
        Ok(ClaimSnapshot { worker, candidates: Some(candidates) })
    }

    /// This snapshot after jobs became claimable: the candidates must be read again.
    pub(in crate::store) fn without_candidates(self) -> ClaimSnapshot {
        ClaimSnapshot { candidates: None, ..self }
    }
}

/// The worker that claims.
#[derive(Default)]
pub(in crate::store) struct ClaimingWorker {
    status: Option<WorkerStatus>,
}

impl ClaimingWorker {
    fn read(&mut self, row: &dyn Row) -> Result<()> {
        self.status = Some(row.parsed(0, WorkerStatus::parse)?);
        Ok(())
    }

    /// The worker is registered and not fenced.
    pub(in crate::store) fn is_alive(&self) -> bool {
        match self.status {
            Some(WorkerStatus::Alive | WorkerStatus::Draining) => true,
            Some(WorkerStatus::Stopped | WorkerStatus::Dead) | None => false,
        }
    }
}
