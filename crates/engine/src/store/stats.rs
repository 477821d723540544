//! Counts of all jobs and runs by state, for people and monitors.

use std::fmt;
use std::ops::Add;

use crate::status::{JobStatus, RunStatus};
use crate::store::Upkeep;
use crate::store::round_trip::rows_of_each;
use crate::store::runs::JobCounts;
use windlass_db::error::Result;
use windlass_db::{Connection, all, one};

/// [`Upkeep::stats`] stops counting the jobs or runs of a finished state at this number.
pub const COUNT_MAX: i64 = 100_000;

/// How many there are, or how many there are at least.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    /// The number that was counted.
    pub number: i64,
    /// There are no more than this number.
    pub is_exact: bool,
}

impl Count {
    /// What was counted by a statement that stops after `bound` and one more.
    pub(in crate::store) fn up_to(bound: i64, counted: i64) -> Count {
        Count { number: counted.min(bound), is_exact: counted <= bound }
    }
}

impl Add for Count {
    type Output = Count;

    fn add(self, other: Count) -> Count {
        Count { number: self.number + other.number, is_exact: self.is_exact && other.is_exact }
    }
}

impl fmt::Display for Count {
    /// `123`, or `100000+` where the count stopped.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Count { number, is_exact } = self;
        formatter.pad(&format!("{number}{}", if *is_exact { "" } else { "+" }))
    }
}

/// Counts of all jobs and runs by state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stats {
    /// Jobs by state.
    pub jobs: JobCounts,
    /// The states of which there may be more jobs than were counted.
    pub jobs_at_least: Vec<JobStatus>,
    /// Runs by state, every state once.
    pub runs: Vec<(RunStatus, Count)>,
}

impl Stats {
    /// The jobs in a state.
    #[must_use]
    pub fn jobs_of(&self, status: JobStatus) -> Count {
        Count { number: self.jobs.of(status), is_exact: !self.jobs_at_least.contains(&status) }
    }
}

impl Upkeep<'_> {
    /// Counts jobs and runs by state, in a time that does not grow with the tables.
    ///
    /// Unfinished jobs and runs are counted exactly by the indexes that hold only them, FAILED jobs and finished runs
    /// up to [`COUNT_MAX`]. Jobs that are SUCCESSFUL, SKIPPED or CANCELLED have no index, because each job would pay
    /// for it: they are counted among the newest [`COUNT_MAX`] jobs. BLOCKED jobs are counted among as many jobs of
    /// unfinished runs.
    ///
    /// Runs that jobs have started are not counted.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn stats(&self) -> Result<Stats> {
        self.store.read(|connection| {
            let (jobs, jobs_at_least) = count_jobs(connection)?;
            Ok(Stats { jobs, jobs_at_least, runs: count_runs(connection)? })
        })
    }

    /// Counts jobs and runs by state exactly. Reads every row of `jobs`, which takes seconds for some millions.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn exact_stats(&self) -> Result<Stats> {
        self.store.read(|connection| {
            let mut jobs = JobCounts::default();
            connection.query("SELECT status, jobs FROM job_stats", &[], &mut |row| {
                jobs.add(row.parsed(0, JobStatus::parse)?, row.integer(1)?);
                Ok(())
            })?;
            let counted = all(
                connection,
                "SELECT status, count(*) FROM runs WHERE parent_job_id IS NULL GROUP BY status",
                &[],
                |row| Ok((row.parsed(0, RunStatus::parse)?, row.integer(1)?)),
            )?;
            let of = |status| {
                let number = counted.iter().find(|(counted, _)| *counted == status).map_or(0, |(_, n)| *n);
                (status, Count { number, is_exact: true })
            };
            Ok(Stats { jobs, jobs_at_least: Vec::new(), runs: RunStatus::ALL.map(of).to_vec() })
        })
    }
}

fn count_runs(connection: &mut dyn Connection) -> Result<Vec<(RunStatus, Count)>> {
    let bound = |status: RunStatus| if status.is_terminal() { COUNT_MAX } else { i64::MAX - 1 };
    let asked = RunStatus::ALL.map(|status| {
        let sql = if status.is_terminal() {
            "SELECT count(*) FROM (SELECT id FROM runs WHERE finished_at IS NOT NULL AND parent_job_id IS NULL AND status = $1
                                   ORDER BY id DESC LIMIT $2) AS counted"
        } else {
            "SELECT count(*) FROM (SELECT id FROM runs WHERE status IN ('PENDING', 'RUNNING') AND parent_job_id IS NULL
                                     AND status = $1
                                   ORDER BY id DESC LIMIT $2) AS counted"
        };
        (sql, vec![status.as_str().into(), (bound(status) + 1).into()])
    });
    let counted = rows_of_each(connection, &asked, |row| row.integer(0))?;
    Ok(RunStatus::ALL
        .into_iter()
        .zip(counted.into_iter().flatten())
        .map(|(status, counted)| (status, Count::up_to(bound(status), counted)))
        .collect())
}

/// The counts of jobs, and the states of which there may be more.
fn count_jobs(connection: &mut dyn Connection) -> Result<(JobCounts, Vec<JobStatus>)> {
    let (mut counts, mut at_least) = (JobCounts::default(), Vec::new());
    let counted = indexed_jobs(connection)?.into_iter().chain(blocked_jobs(connection)?);
    for (status, count) in counted.chain(newest_finished_jobs(connection)?) {
        counts.add(status, count.number);
        if !count.is_exact {
            at_least.push(status);
        }
    }
    Ok((counts, at_least))
}

/// The jobs that succeeded, were skipped or cancelled, among the newest.
fn newest_finished_jobs(connection: &mut dyn Connection) -> Result<[(JobStatus, Count); 3]> {
    one(
        connection,
        "SELECT count(*), count(CASE WHEN status = 'SUCCESSFUL' THEN 1 END),
                count(CASE WHEN status = 'SKIPPED' THEN 1 END), count(CASE WHEN status = 'CANCELLED' THEN 1 END)
         FROM (SELECT status FROM jobs ORDER BY id DESC LIMIT $1) AS newest",
        &[(COUNT_MAX + 1).into()],
        |row| {
            let is_exact = row.integer(0)? <= COUNT_MAX;
            Ok([
                (JobStatus::Successful, Count { number: row.integer(1)?, is_exact }),
                (JobStatus::Skipped, Count { number: row.integer(2)?, is_exact }),
                (JobStatus::Cancelled, Count { number: row.integer(3)?, is_exact }),
            ])
        },
    )
}

/// The BLOCKED jobs: each is of an unfinished run.
fn blocked_jobs(connection: &mut dyn Connection) -> Result<[(JobStatus, Count); 1]> {
    one(
        connection,
        "SELECT count(*), count(CASE WHEN status = 'BLOCKED' THEN 1 END)
         FROM (SELECT jobs.status FROM runs JOIN jobs ON {by jobs.run_id = runs.id}
               WHERE runs.status IN ('PENDING', 'RUNNING') LIMIT $1) AS of_unfinished_runs",
        &[(COUNT_MAX + 1).into()],
        |row| {
            let is_exact = row.integer(0)? <= COUNT_MAX;
            Ok([(JobStatus::Blocked, Count { number: row.integer(1)?, is_exact })])
        },
    )
}

/// The jobs of the states that have an index of their own. Each condition is that of its index.
fn indexed_jobs(connection: &mut dyn Connection) -> Result<[(JobStatus, Count); 5]> {
    let exact = |number| Count { number, is_exact: true };
    one(
        connection,
        "SELECT (SELECT count(*) FROM jobs WHERE status = 'PENDING' AND kind > ''),
                (SELECT count(*) FROM jobs WHERE worker_id IS NOT NULL AND status = 'RUNNING'),
                (SELECT count(*) FROM jobs WHERE status = 'SCHEDULED'),
                (SELECT count(*) FROM jobs WHERE status = 'WAITING' AND waits_for IS NOT NULL),
                (SELECT count(*) FROM (SELECT id FROM jobs WHERE finished_at IS NOT NULL AND status = 'FAILED'
                                       ORDER BY finished_at DESC LIMIT $1) AS failed)",
        &[(COUNT_MAX + 1).into()],
        |row| {
            Ok([
                (JobStatus::Pending, exact(row.integer(0)?)),
                (JobStatus::Running, exact(row.integer(1)?)),
                (JobStatus::Scheduled, exact(row.integer(2)?)),
                (JobStatus::Waiting, exact(row.integer(3)?)),
                (JobStatus::Failed, Count::up_to(COUNT_MAX, row.integer(4)?)),
            ])
        },
    )
}
