//! Finishing: what the ends of attempts make of their jobs, and writing that, together with a claim.

use super::claim::{Claimable, request};
use super::decided_end::DecidedEnd;
use super::finish_and_claim::finish_and_claim;
use super::operator_log;
use super::turn::{Turn, WriteTry};
use crate::shared::EndedAttempt;
use windlass_db::error::{Error, Result};
use windlass_engine::status::JobStatus;
use windlass_engine::store::{Claims, Finish, Finished};
use windlass_engine::transition::{AttemptOutcome, Outcome, RetryState, after_attempt};

impl Turn<'_> {
    /// Decides what the end of an attempt makes of its job.
    pub(super) fn decide(&self, ended: EndedAttempt) -> DecidedEnd {
        let EndedAttempt { owned, outcome, exit_code, logs, artifacts, variables } = ended;
        let has_begun = outcome.has_begun();
        let job = (owned.job.id, owned.job.run_id);
        let finish = self.decide_row(job, owned.worker_id, &owned.job.retry_state, outcome);
        if has_begun {
            operator_log::attempt_ended(&owned.job, &finish);
        }
        DecidedEnd { finish: Finish { exit_code, logs, artifacts, variables, ..finish }, has_begun }
    }

    /// The same for an attempt of which only the row is known: the ids of its job and run, and the retry state.
    pub(super) fn decide_row(
        &self,
        (job_id, run_id): (i64, Option<i64>),
        worker_id: i64,
        retry_state: &RetryState,
        outcome: Outcome,
    ) -> Finish {
        let transition = after_attempt(retry_state, outcome, self.shared.store.random().fraction());
        Finish {
            job_id,
            run_id,
            attempt: retry_state.attempt,
            worker_id,
            transition,
            exit_code: None,
            logs: Vec::new(),
            artifacts: Vec::new(),
            variables: Vec::new(),
        }
    }

    /// Writes the ends of attempts and claims jobs, both in one transaction. If the database can't be used, the ends
    /// are kept for the next turn.
    pub(super) fn finish_and_claim(
        &mut self,
        ends: Vec<DecidedEnd>,
        claimable: Claimable,
        write: WriteTry,
    ) -> Result<()> {
        let written = self.write(ends.iter().map(|end| end.finish.clone()).collect(), claimable);
        let (finished, claims) = match written {
            Ok(written) => written,
            Err(error) => {
                self.state.unwritten = ends;
                return Err(error);
            }
        };
        for end in &ends {
            if end.has_begun {
                self.state.in_flight.end(end.key());
            } else {
                self.state.in_flight.remove(end.key());
            }
        }
        self.report(&finished, write);
        if write == WriteTry::First {
            self.expect_renumbered(&finished, &ends);
        }
        self.take_in(claims, claimable)
    }

    /// If another program changes the number of a running attempt, its end is refused, and the row would stay RUNNING.
    /// So refused ends are compared with the tables at once.
    fn expect_renumbered(&mut self, finished: &Finished, ends: &[DecidedEnd]) {
        if finished.conflicts.is_empty() {
            return;
        }
        let worker_id = self.shared.worker_id();
        // Jobs that were claimed under a fenced id belong to others.
        let own = ends.iter().filter(|end| end.finish.worker_id == worker_id).map(|end| end.finish.job_id);
        let refused: Vec<i64> = own.filter(|job_id| finished.conflicts.contains(job_id)).collect();
        self.state.refused.extend(refused);
        self.state.check_at_ms = self.shared.clock().monotonic_ms();
    }

    fn report(&self, finished: &Finished, write: WriteTry) {
        for job_id in &finished.conflicts {
            match write {
                WriteTry::First => {
                    tracing::warn!(job_id, "another worker owns the job by now: the result was discarded");
                }
                WriteTry::Repeated => tracing::info!(
                    job_id,
                    "the result was written by an earlier try, or another worker owns the job"
                ),
            }
        }
        finished.ended_runs.iter().for_each(operator_log::run_ended);
    }

    /// Writes results and claims. If the database refuses the results together, each is written alone, so that a
    /// result that can't be stored fails only its own job.
    pub(super) fn write(
        &mut self,
        finishes: Vec<Finish>,
        claimable: Claimable,
    ) -> Result<(Finished, Claims)> {
        let together = self.ask("finish and claim jobs", |shared| {
            finish_and_claim(&shared.store, finishes.clone(), request(shared, claimable))
        });
        match together {
            Ok(written) => Ok(written),
            Err(error @ Error::Unavailable { .. }) => Err(error),
            Err(error) if finishes.is_empty() => Err(error),
            Err(_refused) => {
                let finished = self.write_each(finishes)?;
                // The claim was refused together with the results.
                let claims = self.ask("claim jobs", |shared| {
                    shared.store.for_workers().claim(request(shared, claimable))
                })?;
                Ok((finished, claims))
            }
        }
    }

    fn write_each(&mut self, finishes: Vec<Finish>) -> Result<Finished> {
        let mut all = Finished::default();
        for finish in finishes {
            let written = match self.write_alone(finish.clone()) {
                Err(error) if !is_unavailable(&error) => self.write_alone(refuse(&finish, &error)),
                written => written,
            };
            match written {
                Ok(finished) => {
                    all.conflicts.extend(finished.conflicts);
                    all.ended_runs.extend(finished.ended_runs);
                }
                Err(error) if is_unavailable(&error) => return Err(error),
                Err(error) => {
                    // One row that can't be written must not end the worker. The row stays RUNNING. The in-flight
                    // check tries again; if this worker ends first, another worker takes the job back.
                    tracing::error!(job_id = finish.job_id, %error, "the job could not be finished");
                }
            }
        }
        Ok(all)
    }

    fn write_alone(&mut self, finish: Finish) -> Result<Finished> {
        let written = self
            .ask("finish a job", |shared| shared.store.for_workers().finish_and_claim(vec![finish], None));
        written.map(|(finished, _no_claims)| finished)
    }
}

fn is_unavailable(error: &Error) -> bool {
    matches!(error, Error::Unavailable { .. })
}

/// The failure of an attempt whose result can't be stored.
fn refuse(finish: &Finish, error: &Error) -> Finish {
    tracing::error!(job_id = finish.job_id, %error, "the result could not be stored");
    let mut refused = finish.clone();
    refused.logs.clear();
    refused.artifacts.clear();
    refused.variables.clear();
    refused.transition.status = JobStatus::Failed;
    refused.transition.output = None;
    refused.transition.record = Some(AttemptOutcome::Failed);
    refused.transition.last_error = Some(format!("the result could not be stored: {error}"));
    refused
}
