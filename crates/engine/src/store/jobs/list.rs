//! Pages of jobs.
//!
//! `jobs` has no index for lists, because it would slow each claim and each finish down. A page reads the jobs of one
//! run, or the indexes of states that few jobs are in, or the jobs in the order of ids.

use crate::status::JobStatus;
use crate::store::accepted::{ListedTable, TimeRange, ids_accepted_in};
use crate::store::jobs::{Job, read_job};
use crate::store::page::{Cursor, IdRange, Page, SEARCH_MAX, lookups_of, page, search_text};
use crate::store::round_trip::{PlainQuery, rows_of_each};
use crate::store::runs::list::{ParamFilter, WantedParams};
use crate::store::{Jobs, json_ids, json_list};
use windlass_db::error::Result;
use windlass_db::{Connection, Fragment, Row, Value, all, one};

const LIST: &str = "list jobs";
/// Jobs in one state that are read and sorted for a page. Where there are more, the page is found by ids.
const SORT_MAX: i64 = 20_000;
/// [`JobSummary::error`] has so many characters at most.
pub const ERROR_MAX: usize = 500;

/// A job in a list: without its payload and output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobSummary {
    /// Its id.
    pub id: i64,
    /// Its run. `None` if it was enqueued alone.
    pub run_id: Option<i64>,
    /// Its name in the run.
    pub name: Option<String>,
    /// What executes it.
    pub kind: String,
    /// The queue it waits in.
    pub queue: String,
    /// Its state.
    pub status: JobStatus,
    /// Higher is claimed first.
    pub priority: i64,
    /// Not claimed before this instant.
    pub execute_after: i64,
    /// Claims so far.
    pub attempt: i64,
    /// Failures that are allowed.
    pub max_attempts: i64,
    /// Its failure does not matter to its run.
    pub allow_failure: bool,
    /// Why the last attempt did not succeed, or why it was skipped: the first [`ERROR_MAX`] characters.
    pub error: Option<String>,
    /// The worker that executes or executed it.
    pub worker_id: Option<i64>,
    /// When it was asked to stop.
    pub cancel_requested_at: Option<i64>,
    /// When it was accepted.
    pub created_at: i64,
    /// When its last attempt was claimed.
    pub started_at: Option<i64>,
    /// When it finished.
    pub finished_at: Option<i64>,
}

/// Which jobs to list.
///
/// The run is found by an index, and so are the states PENDING, RUNNING, SCHEDULED, WAITING and FAILED as long as few jobs
/// are in them. All other filters compare job by job, and stop after [`SEARCH_MAX`] ids. If the runs of the jobs are compared,
/// they stop after a quarter of that. See [`Page::searched_to`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobFilter {
    /// In one of these states; in any if there is none. A job whose failure another program has reported may be retried; it is
    /// sure to be listed as FAILED once the scheduler has applied the report.
    pub statuses: Vec<JobStatus>,
    /// In this queue.
    pub queue: Option<String>,
    /// Of this kind.
    pub kind: Option<String>,
    /// Of this run.
    pub run_id: Option<i64>,
    /// With this name in their runs.
    pub name: Option<String>,
    /// Accepted in this time. The jobs are found by ids, which grow with time. So jobs that were accepted while a clock was
    /// wrong by more than a minute may be missing.
    pub created: TimeRange,
    /// Of runs of this workflow.
    pub workflow: Option<String>,
    /// Of runs with all of these values of params.
    pub params: Vec<ParamFilter>,
    /// With this text in the last error. The case of ASCII letters does not matter.
    pub error: Option<String>,
    /// Which part of the list.
    pub cursor: Cursor,
}

impl JobFilter {
    /// The newest jobs of all.
    #[must_use]
    pub fn newest(limit: i64) -> JobFilter {
        JobFilter { cursor: Cursor::newest(limit), ..JobFilter::default() }
    }

    /// Whether it has any condition, so that jobs must be compared with it.
    fn compares_rows(&self) -> bool {
        *self != JobFilter { cursor: self.cursor, ..JobFilter::default() }
    }

    /// How many ids a search looks through.
    fn ids_searched(&self) -> i64 {
        match self.workflow.is_some() || !self.params.is_empty() {
            true => lookups_of(SEARCH_MAX),
            false => SEARCH_MAX,
        }
    }
}

/// The columns of `jobs` that a [`JobSummary`] is read from.
pub(crate) const JOB_SUMMARY: Fragment = Fragment {
    name: "job_summary",
    sql: "id, run_id, name, kind, queue, status, priority, execute_after, attempt, max_attempts,
          allow_failure, substr(last_error, 1, 500), worker_id, cancel_requested_at, created_at,
          started_at, finished_at",
};

/// The conditions of a [`JobFilter`] that are compared job by job, with parameters 4 to 13. OFFSET 0 keeps
/// PostgreSQL from joining in another order, in which it would read all runs.
pub(crate) const JOB_FILTER: Fragment = Fragment {
    name: "job_filter",
    sql: "(CAST($4 AS TEXT) IS NULL OR status IN (SELECT value FROM {texts $4} AS statuses))
          AND (CAST($5 AS TEXT) IS NULL OR queue = $5)
          AND (CAST($6 AS TEXT) IS NULL OR kind = $6)
          AND (CAST($7 AS TEXT) IS NULL OR name = $7)
          AND (CAST($8 AS TEXT) IS NULL OR {position}(lower(last_error), $8) > 0)
          AND (CAST($9 AS {integer}) IS NULL OR created_at >= $9)
          AND (CAST($10 AS {integer}) IS NULL OR created_at < $10)
          AND (CAST($11 AS TEXT) IS NULL AND CAST($12 AS TEXT) IS NULL
               OR EXISTS (SELECT 1 FROM runs
                          WHERE runs.id = jobs.run_id AND (CAST($11 AS TEXT) IS NULL OR runs.workflow = $11)
                            AND (CAST($12 AS TEXT) IS NULL
                                 OR ({position}(runs.params, (SELECT value FROM {texts $12} AS first LIMIT 1)) > 0
                                     OR {position}(runs.params, (SELECT substr(value, 1, length(value) - 1)
                                                                 FROM {texts $12} AS second LIMIT 1 OFFSET 1)) > 0)
                                    AND (SELECT count(*) FROM {texts $12} AS wanted
                                     WHERE {position}(runs.params, wanted.value) > 0) = $13)
                          LIMIT 1 OFFSET 0))",
};

const PAGE_BY_ID: &str = "SELECT {job_summary} FROM jobs
    WHERE id >= $1 AND id < $2 AND {job_filter} ORDER BY id DESC LIMIT $3";
/// The ids are found first, so that only the rows of the page are read. The plus signs keep both databases from reading in
/// the order of ids, so that they use the index that the condition is for. The pages by state are written in the same way.
const PAGE_OF_RUN: &str = "SELECT {job_summary}
             FROM (SELECT id AS found_id FROM jobs WHERE run_id = $14
                     AND +id >= $1 AND +id < $2 AND {job_filter} ORDER BY +id DESC LIMIT $3) AS found
             JOIN jobs ON {by jobs.id = found.found_id} ORDER BY id DESC LIMIT $3";

/// The statements for a state that has an index of its own: a page, and a count of its jobs up to a bound. Their conditions
/// are those of the index.
fn by_status(status: JobStatus) -> Option<(&'static str, &'static str)> {
    match status {
        JobStatus::Pending => Some((
            "SELECT {job_summary}
             FROM (SELECT id AS found_id FROM jobs WHERE status = 'PENDING' AND kind > ''
                     AND +id >= $1 AND +id < $2 AND {job_filter} ORDER BY +id DESC LIMIT $3) AS found
             JOIN jobs ON {by jobs.id = found.found_id} ORDER BY id DESC LIMIT $3",
            "SELECT count(*) FROM (SELECT id FROM jobs WHERE status = 'PENDING' AND kind > '' LIMIT $1) AS counted",
        )),
        JobStatus::Running => Some((
            "SELECT {job_summary}
             FROM (SELECT id AS found_id FROM jobs WHERE worker_id IS NOT NULL AND status = 'RUNNING'
                     AND +id >= $1 AND +id < $2 AND {job_filter} ORDER BY +id DESC LIMIT $3) AS found
             JOIN jobs ON {by jobs.id = found.found_id} ORDER BY id DESC LIMIT $3",
            "SELECT count(*) FROM (SELECT id FROM jobs WHERE worker_id IS NOT NULL AND status = 'RUNNING' LIMIT $1) AS counted",
        )),
        JobStatus::Scheduled => Some((
            "SELECT {job_summary}
             FROM (SELECT id AS found_id FROM jobs WHERE status = 'SCHEDULED'
                     AND +id >= $1 AND +id < $2 AND {job_filter} ORDER BY +id DESC LIMIT $3) AS found
             JOIN jobs ON {by jobs.id = found.found_id} ORDER BY id DESC LIMIT $3",
            "SELECT count(*) FROM (SELECT id FROM jobs WHERE status = 'SCHEDULED' LIMIT $1) AS counted",
        )),
        JobStatus::Waiting => Some((
            "SELECT {job_summary}
             FROM (SELECT id AS found_id FROM jobs WHERE status = 'WAITING' AND waits_for IS NOT NULL
                     AND +id >= $1 AND +id < $2 AND {job_filter} ORDER BY +id DESC LIMIT $3) AS found
             JOIN jobs ON {by jobs.id = found.found_id} ORDER BY id DESC LIMIT $3",
            "SELECT count(*) FROM (SELECT id FROM jobs WHERE status = 'WAITING' AND waits_for IS NOT NULL LIMIT $1) AS counted",
        )),
        JobStatus::Failed => Some((
            "SELECT {job_summary}
             FROM (SELECT id AS found_id FROM jobs WHERE finished_at IS NOT NULL AND status = 'FAILED'
                     AND +id >= $1 AND +id < $2 AND {job_filter} ORDER BY +id DESC LIMIT $3) AS found
             JOIN jobs ON {by jobs.id = found.found_id} ORDER BY id DESC LIMIT $3",
            "SELECT count(*) FROM (SELECT id FROM jobs WHERE finished_at IS NOT NULL AND status = 'FAILED' LIMIT $1) AS counted",
        )),
        JobStatus::Blocked | JobStatus::Successful | JobStatus::Skipped | JobStatus::Cancelled => None,
    }
}

/// The index along which a page is read.
enum AccessPath {
    Id,
    Run(i64),
    /// Pages of one state each.
    Statuses(Vec<&'static str>),
}

impl Jobs<'_> {
    /// A page of the jobs that match, the newest first.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) for a limit or a text that is out of bounds, and the database's.
    pub fn list(&self, filter: &JobFilter) -> Result<Page<JobSummary>> {
        self.store.read(|connection| list(connection, filter))
    }

    /// The same page with all values of the jobs, also their payloads and outputs.
    ///
    /// # Errors
    /// As of [`Jobs::list`].
    pub fn list_full(&self, filter: &JobFilter) -> Result<Page<Job>> {
        self.store.read(|connection| {
            let page = list(connection, filter)?;
            let ids: Vec<i64> = page.rows.iter().map(|job| job.id).collect();
            let sql = "SELECT {job_columns} FROM jobs WHERE id {in $1} ORDER BY id DESC";
            let rows = all(connection, sql, &[(&json_ids(&ids)).into()], read_job)?;
            Ok(page.with_rows(rows))
        })
    }
}

fn list(connection: &mut dyn Connection, filter: &JobFilter) -> Result<Page<JobSummary>> {
    filter.cursor.check(LIST)?;
    let error = filter.error.as_ref().map(|error| search_text(LIST, error)).transpose()?;
    let path = access_path(connection, filter)?;
    let statuses: Vec<&str> = filter.statuses.iter().map(|status| status.as_str()).collect();
    let statuses = match &path {
        AccessPath::Id | AccessPath::Run(_) if !statuses.is_empty() => Some(json_list(LIST, &statuses)?),
        // Each page has the condition of its state.
        AccessPath::Id | AccessPath::Run(_) | AccessPath::Statuses(_) => None,
    };
    let params = WantedParams::of(&filter.params)?;
    let mut ids =
        filter.cursor.ids().intersect(ids_accepted_in(connection, ListedTable::Jobs, filter.created)?);
    let floor = match &path {
        AccessPath::Id if filter.compares_rows() => {
            lowest_id_searched(connection, ids, filter.ids_searched())?
        }
        AccessPath::Id | AccessPath::Run(_) | AccessPath::Statuses(_) => None,
    };
    ids.from = floor.unwrap_or(ids.from);
    let common: Vec<Value<'_>> = vec![
        ids.from.into(),
        ids.below.into(),
        (filter.cursor.limit + 1).into(),
        (&statuses).into(),
        (&filter.queue).into(),
        (&filter.kind).into(),
        (&filter.name).into(),
        (&error).into(),
        filter.created.from_ms.into(),
        filter.created.until_ms.into(),
        (&filter.workflow).into(),
        (&params.fragments).into(),
        params.count.into(),
    ];
    let queries: Vec<PlainQuery<'_>> = match path {
        AccessPath::Id => vec![(PAGE_BY_ID, common)],
        AccessPath::Run(run_id) => vec![(PAGE_OF_RUN, [common, vec![run_id.into()]].concat())],
        AccessPath::Statuses(pages) => pages.into_iter().map(|sql| (sql, common.clone())).collect(),
    };
    let found = rows_of_each(connection, &queries, read_summary)?;
    Ok(page(found.into_iter().flatten().collect(), |job| job.id, filter.cursor.limit, floor))
}

fn access_path(connection: &mut dyn Connection, filter: &JobFilter) -> Result<AccessPath> {
    if let Some(run_id) = filter.run_id {
        return Ok(AccessPath::Run(run_id));
    }
    let mut statuses = filter.statuses.clone();
    statuses.sort_unstable();
    statuses.dedup();
    let indexed: Option<Vec<_>> = statuses.into_iter().map(by_status).collect();
    let Some(indexed) = indexed.filter(|indexed| !indexed.is_empty()) else { return Ok(AccessPath::Id) };
    let queries: Vec<PlainQuery<'_>> =
        indexed.iter().map(|(_page, count)| (*count, vec![(SORT_MAX + 1).into()])).collect();
    let counts = rows_of_each(connection, &queries, |row| row.integer(0))?;
    match counts.into_iter().flatten().all(|count| count <= SORT_MAX) {
        true => Ok(AccessPath::Statuses(indexed.into_iter().map(|(page, _count)| page).collect())),
        false => Ok(AccessPath::Id),
    }
}

/// The lowest id that a search reads, if there are more ids than it may read. Ids of deleted jobs count too.
fn lowest_id_searched(
    connection: &mut dyn Connection,
    ids: IdRange,
    searched_max: i64,
) -> Result<Option<i64>> {
    let (lowest, highest) = one(
        connection,
        "SELECT (SELECT min(id) FROM jobs WHERE id >= $1 AND id < $2),
                (SELECT max(id) FROM jobs WHERE id >= $1 AND id < $2)",
        &[ids.from.into(), ids.below.into()],
        |row| Ok((row.optional_integer(0)?, row.optional_integer(1)?)),
    )?;
    let (Some(lowest), Some(highest)) = (lowest, highest) else { return Ok(None) };
    let floor = highest.saturating_sub(searched_max - 1);
    Ok((floor > lowest).then_some(floor))
}

/// Texts that are not valid UTF-8 are replaced, so that one invalid row does not hide all others.
fn read_summary(row: &dyn Row) -> Result<JobSummary> {
    Ok(JobSummary {
        id: row.integer(0)?,
        run_id: row.optional_integer(1)?,
        name: row.lossy_text(2)?,
        kind: row.lossy_text(3)?.unwrap_or_default(),
        queue: row.lossy_text(4)?.unwrap_or_default(),
        status: row.parsed(5, JobStatus::parse)?,
        priority: row.integer(6)?,
        execute_after: row.integer(7)?,
        attempt: row.integer(8)?,
        max_attempts: row.integer(9)?,
        allow_failure: row.integer(10)? != 0,
        error: row.lossy_text(11)?,
        worker_id: row.optional_integer(12)?,
        cancel_requested_at: row.optional_integer(13)?,
        created_at: row.integer(14)?,
        started_at: row.optional_integer(15)?,
        finished_at: row.optional_integer(16)?,
    })
}
