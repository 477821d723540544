//! Writing results, also those that the database refuses.

use super::{Dispatcher, Room, request};
use windlass_db::error::{Error, Result};
use windlass_engine::status::JobStatus;
use windlass_engine::store::{Claims, Finish, Finished};
use windlass_engine::transition::AttemptOutcome;

impl Dispatcher<'_> {
    /// Writes results. When the database refuses them together, each is written alone, so that one
    /// that can't be stored fails by itself.
    pub(super) fn write(&mut self, finishes: Vec<Finish>, room: Room) -> Result<(Finished, Claims)> {
        let together = self.retrying("finish and claim jobs", |shared| {
            shared.store.for_workers().finish_and_claim(finishes.clone(), Some(request(shared, room)))
        });
        match together {
            Ok(written) => Ok(written),
            Err(error @ Error::Unavailable { .. }) => Err(error),
            Err(error) if finishes.is_empty() => Err(error),
            Err(_refused) => {
                let finished = self.write_each(finishes)?;
                // The claim was refused together with the results.
                let claims = self.retrying("claim jobs", |shared| {
                    shared.store.for_workers().claim(request(shared, room))
                })?;
                Ok((finished, claims))
            }
        }
    }

    fn write_each(&mut self, finishes: Vec<Finish>) -> Result<Finished> {
        let mut all = Finished::default();
        for finish in finishes {
            let alone = self.retrying("finish a job", |shared| {
                shared.store.for_workers().finish_and_claim(vec![finish.clone()], None)
            });
            let (finished, _claims) = match alone {
                Ok(written) => written,
                Err(error @ Error::Unavailable { .. }) => return Err(error),
                Err(error) => match self.write_refused(&finish, &error) {
                    Ok(written) => written,
                    Err(error @ Error::Unavailable { .. }) => return Err(error),
                    Err(error) => {
                        // One row that can't be written must not end the worker. It stays RUNNING, and is
                        // tried again when it is found in the tables, or taken back when this worker is gone.
                        tracing::error!(job_id = finish.job_id, %error, "the job could not be finished");
                        continue;
                    }
                },
            };
            all.conflicts.extend(finished.conflicts);
            all.ended_runs.extend(finished.ended_runs);
        }
        Ok(all)
    }

    fn write_refused(&mut self, finish: &Finish, error: &Error) -> Result<(Finished, Claims)> {
        let refused = refuse(finish, error);
        self.retrying("finish a job", |shared| {
            shared.store.for_workers().finish_and_claim(vec![refused.clone()], None)
        })
    }
}

/// A result that can't be stored is a failure of its attempt.
fn refuse(finish: &Finish, error: &Error) -> Finish {
    tracing::error!(job_id = finish.job_id, %error, "the result could not be stored");
    let mut refused = finish.clone();
    refused.logs.clear();
    refused.transition.status = JobStatus::Failed;
    refused.transition.output = None;
    refused.transition.record = Some(AttemptOutcome::Failed);
    refused.transition.last_error = Some(format!("the result could not be stored: {error}"));
    refused
}
