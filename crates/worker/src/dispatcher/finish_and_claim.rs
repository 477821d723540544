//! Finishing and claiming in one transaction. If both are large, and the database has several writers, they are two
//! transactions at the same time.

use windlass_db::Writers;
use windlass_db::error::{Error, Result};
use windlass_engine::Store;
use windlass_engine::store::{ClaimRequest, Claims, Finish, Finished};

/// From this many results and this many requested jobs on, finishing and claiming are two transactions.
const TWO_TRANSACTIONS_MIN: usize = 200;

/// Writes results and claims jobs.
pub(super) fn finish_and_claim(
    store: &Store,
    finishes: Vec<Finish>,
    request: ClaimRequest,
) -> Result<(Finished, Claims)> {
    let is_large = finishes.len() >= TWO_TRANSACTIONS_MIN && request.limit >= TWO_TRANSACTIONS_MIN;
    match store.database_capabilities().writers {
        Writers::SideBySide if is_large => in_two_transactions(store, finishes, request),
        Writers::SideBySide | Writers::OneAtATime => {
            store.for_workers().finish_and_claim(finishes, Some(request))
        }
    }
}

/// Finishes and claims at the same time, because a server has more than one core. The jobs that these results unblock
/// come with the next claim. That does no harm where so many jobs are claimed.
///
/// If one transaction fails, the other may have been kept. A result that is offered again is refused, because the
/// attempt is no longer owned. The in-flight check finds the jobs of a claim whose answer was lost.
fn in_two_transactions(
    store: &Store,
    finishes: Vec<Finish>,
    request: ClaimRequest,
) -> Result<(Finished, Claims)> {
    std::thread::scope(|scope| {
        let claim = request.clone();
        let claiming = std::thread::Builder::new()
            .name("windlass-claiming".to_owned())
            .spawn_scoped(scope, || store.for_workers().claim(claim));
        let finished = store.for_workers().finish_and_claim(finishes, None);
        let Ok(claiming) = claiming else {
            // The system has no thread to give: one after the other.
            return Ok((finished?.0, store.for_workers().claim(request)?));
        };
        let claims = claiming.join().map_err(|_panic| Error::internal("claim jobs", "it panicked"))?;
        Ok((finished?.0, claims?))
    })
}
