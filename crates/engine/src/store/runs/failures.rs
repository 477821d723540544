//! Failures since an instant, in groups: by workflow, job and first line of the error. One cause that fails many runs is one
//! group.

use std::collections::BTreeSet;

use crate::store::Runs;
use windlass_db::all;
use windlass_db::error::Result;

/// So many failed jobs are read, the newest first.
pub const FAILURES_MAX: i64 = 1_000;
/// What is said of a run that reached its timeout.
const TIMED_OUT: &str = "the run reached its timeout";

/// A job that failed, as the groups are made of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedJob {
    /// The run at the top of all calls, or the job itself if it stands alone.
    pub failed: Failed,
    /// The workflow of the job; empty for a job that stands alone.
    pub workflow: String,
    /// The name of the job in its run, or the kind of a job that stands alone. Empty if the run reached its timeout.
    pub job: String,
    /// The beginning of its error.
    pub error: String,
    /// When it failed.
    pub failed_at: i64,
}

/// What failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Failed {
    /// A run.
    Run(i64),
    /// A job without a run.
    Job(i64),
}

/// Runs, or jobs without a run, that failed in the same way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailureGroup {
    /// The workflow of the job; empty for jobs without a run.
    pub workflow: String,
    /// The name of the job; without the place of the item, if it is an item of a job with `for_each`. The kind, if the job has
    /// no run. Empty if the runs reached their timeout.
    pub job: String,
    /// The first line of the error.
    pub error: String,
    /// The runs at the top of all calls, the one that failed last first.
    pub run_ids: Vec<i64>,
    /// The jobs without a run, the one that failed last first.
    pub job_ids: Vec<i64>,
    /// When the first of them failed.
    pub first_at: i64,
    /// When the last of them failed.
    pub last_at: i64,
}

/// The failures since an instant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failures {
    /// The groups, the largest first.
    pub groups: Vec<FailureGroup>,
    /// The instant since which they are complete: later than the one that was asked for if there are more than
    /// [`FAILURES_MAX`].
    pub since_ms: i64,
}

impl Failures {
    /// How many runs failed.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.groups.iter().map(|group| group.run_ids.len()).sum()
    }

    /// How many jobs without a run failed.
    #[must_use]
    pub fn jobs(&self) -> usize {
        self.groups.iter().map(|group| group.job_ids.len()).sum()
    }
}

impl Runs<'_> {
    /// The runs with jobs that have failed since an instant, those that reached their timeout, and the jobs without a run that
    /// failed, in groups. Of each run, the job counts that failed first. At most the newest [`FAILURES_MAX`] failed jobs and
    /// the newest [`FAILURES_MAX`] failed runs are read.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn failures_since(&self, since_ms: i64) -> Result<Failures> {
        let failed = self.store.read(|connection| {
            all(
                connection,
                "SELECT coalesce(failed.root_run_id, failed.run_id), runs.workflow,
                        CASE WHEN failed.run_id IS NULL THEN failed.kind ELSE failed.name END,
                        substr(failed.last_error, 1, 500), failed.finished_at, failed.allow_failure, failed.id
                 FROM (SELECT id, run_id, root_run_id, kind, name, last_error, finished_at, allow_failure FROM jobs
                       WHERE status = 'FAILED' AND finished_at >= $1
                       ORDER BY finished_at DESC LIMIT $2) AS failed
                 LEFT JOIN runs ON {by runs.id = failed.run_id}
                 ORDER BY failed.finished_at DESC, failed.id DESC LIMIT $2",
                &[since_ms.into(), FAILURES_MAX.into()],
                |row| {
                    let job = FailedJob {
                        failed: match row.optional_integer(0)? {
                            Some(run_id) => Failed::Run(run_id),
                            None => Failed::Job(row.integer(6)?),
                        },
                        workflow: row.lossy_text(1)?.unwrap_or_default(),
                        job: row.optional_text(2)?.unwrap_or_default(),
                        error: row.optional_text(3)?.unwrap_or_default(),
                        failed_at: row.integer(4)?,
                    };
                    Ok((job, row.integer(5)? == 0))
                },
            )
        })?;
        let is_complete = (failed.len() as i64) < FAILURES_MAX;
        let oldest_ms = failed.last().map(|(job, _counts)| job.failed_at);
        let counted = failed.into_iter().filter(|(_job, counts)| *counts).map(|(job, _counts)| job);
        let mut counted: Vec<FailedJob> = counted.chain(self.timed_out_since(since_ms)?).collect();
        counted.sort_by_key(|job| std::cmp::Reverse(job.failed_at));
        let groups = groups(counted);
        let since_ms = if is_complete { since_ms } else { oldest_ms.unwrap_or(since_ms) };
        Ok(Failures { groups, since_ms })
    }

    /// The runs that reached their timeout: their jobs are cancelled, and none of them need have failed.
    fn timed_out_since(&self, since_ms: i64) -> Result<Vec<FailedJob>> {
        self.store.read(|connection| {
            all(
                connection,
                "SELECT id, workflow, finished_at
                 FROM (SELECT id, workflow, finished_at, stop_reason FROM runs
                       WHERE finished_at IS NOT NULL AND parent_job_id IS NULL AND status = 'FAILED'
                       ORDER BY id DESC LIMIT $2) AS failed
                 WHERE stop_reason = 'timed_out' AND finished_at >= $1",
                &[since_ms.into(), FAILURES_MAX.into()],
                |row| {
                    Ok(FailedJob {
                        failed: Failed::Run(row.integer(0)?),
                        workflow: row.lossy_text(1)?.unwrap_or_default(),
                        job: String::new(),
                        error: TIMED_OUT.to_owned(),
                        failed_at: row.integer(2)?,
                    })
                },
            )
        })
    }
}

/// Groups jobs that are in the order of their ends, the last one first.
fn groups(failed: Vec<FailedJob>) -> Vec<FailureGroup> {
    let mut seen = BTreeSet::new();
    let mut groups: Vec<FailureGroup> = Vec::new();
    // The first job of a run that failed is the cause: the others may have failed because of it.
    for job in failed.into_iter().rev() {
        if !seen.insert(job.failed) {
            continue;
        }
        let name = without_index(&job.job);
        let error = first_line(&job.error);
        let (run_ids, job_ids) = match job.failed {
            Failed::Run(id) => (vec![id], vec![]),
            Failed::Job(id) => (vec![], vec![id]),
        };
        match groups
            .iter_mut()
            .find(|group| group.workflow == job.workflow && group.job == name && group.error == error)
        {
            Some(group) => {
                group.run_ids.splice(0..0, run_ids);
                group.job_ids.splice(0..0, job_ids);
                group.last_at = job.failed_at;
            }
            None => groups.push(FailureGroup {
                workflow: job.workflow.clone(),
                job: name.to_owned(),
                error: error.to_owned(),
                run_ids,
                job_ids,
                first_at: job.failed_at,
                last_at: job.failed_at,
            }),
        }
    }
    groups.sort_by_key(|group| {
        (std::cmp::Reverse(group.run_ids.len() + group.job_ids.len()), std::cmp::Reverse(group.last_at))
    });
    groups
}

/// The first line of an error that has text.
#[must_use]
pub fn first_line(error: &str) -> &str {
    error.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default()
}

/// The name of an item without its place: `load` for `load[3]`.
fn without_index(job: &str) -> &str {
    match job.strip_suffix(']').and_then(|rest| rest.rsplit_once('[')) {
        Some((name, index)) if !index.is_empty() && index.bytes().all(|byte| byte.is_ascii_digit()) => name,
        Some(_) | None => job,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(run_id: i64, job: &str, error: &str, failed_at: i64) -> FailedJob {
        FailedJob {
            failed: Failed::Run(run_id),
            workflow: "w".to_owned(),
            job: job.to_owned(),
            error: error.to_owned(),
            failed_at,
        }
    }

    #[test]
    fn runs_with_the_same_job_and_first_line_are_one_group() {
        let jobs = vec![
            failed(4, "b", "refused", 90),
            failed(3, "a", "refused\nother detail", 70),
            failed(2, "a", "\n refused\ndetail", 50),
            failed(1, "a", "timed out", 30),
        ];
        let found = groups(jobs);
        let sizes: Vec<(&str, &str, Vec<i64>)> =
            found.iter().map(|group| (&*group.job, &*group.error, group.run_ids.clone())).collect();
        assert_eq!(
            sizes,
            [("a", "refused", vec![3, 2]), ("b", "refused", vec![4]), ("a", "timed out", vec![1])]
        );
        assert_eq!((found[0].first_at, found[0].last_at), (50, 70));
    }

    #[test]
    fn a_run_counts_once_by_the_job_that_failed_first() {
        let jobs = vec![failed(1, "load", "2 of 9 items failed", 60), failed(1, "load[3]", "refused", 40)];
        let found = groups(jobs);
        assert_eq!((found.len(), &*found[0].job, &*found[0].error), (1, "load", "refused"));
    }

    #[test]
    fn only_a_place_of_an_item_is_cut_off() {
        let names = ["load[12]", "load[]", "load[x]", "load", "a[1][2]"].map(without_index);
        assert_eq!(names, ["load", "load[]", "load[x]", "load", "a[1]"]);
    }
}
