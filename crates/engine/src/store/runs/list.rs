//! Pages of runs.
//!
//! A page is read along an index in the order of ids: finished runs by workflow and state or by state, unfinished runs, or
//! all runs by id. A page with several states reads one range of its index for each. The index of unfinished runs has no
//! workflow, because an index that has one would be written at each change of a run's state. So unfinished runs are compared
//! row by row, up to the bound of a search. A filter by something new that has an index of its own
//! becomes one more [`Path`].

use serde_json::Value as Json;

use crate::status::{RunSource, RunStatus, StopReason};
use crate::store::page::{Cursor, IdRange, Page, SEARCH_MAX, page, search_text};
use crate::store::round_trip::{Asked, rows_of_each};
use crate::store::runs::{Run, read_run};
use crate::store::{Runs, json_ids};
use windlass_db::error::Result;
use windlass_db::{Connection, Fragment, Row, Value, all, first, one};

const LIST: &str = "list runs";
/// By how much two clocks may differ that gave runs their times, in milliseconds. By so much more than the times that
/// were asked for is looked at, because ids are not exactly in the order of time.
const CLOCKS_APART_MS: i64 = 60_000;

/// A run in a list: without its params, its environment and its folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSummary {
    /// Its id.
    pub id: i64,
    /// The name of its workflow.
    pub workflow: String,
    /// Its state.
    pub status: RunStatus,
    /// Why it ends other than by its jobs.
    pub stop_reason: Option<StopReason>,
    /// The caller's key.
    pub run_key: Option<String>,
    /// Its jobs.
    pub total_jobs: i64,
    /// Its jobs that are not over.
    pub unfinished_jobs: i64,
    /// Its jobs that failed and matter.
    pub failed_jobs: i64,
    /// When it was accepted.
    pub created_at: i64,
    /// When its first job was claimed.
    pub started_at: Option<i64>,
    /// When its last job was over.
    pub finished_at: Option<i64>,
    /// The schedule that made it.
    pub schedule_id: Option<i64>,
    /// The nominal time of the schedule's occurrence that it is.
    pub scheduled_for: Option<i64>,
    /// What it comes from, when none submitted it by hand.
    pub source: Option<RunSource>,
}

/// Times from one instant on and before another, in milliseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TimeRange {
    /// The first instant.
    pub from_ms: Option<i64>,
    /// The first instant after the range.
    pub until_ms: Option<i64>,
}

/// The value of a param that runs must have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParamFilter {
    /// The name of the param.
    pub name: String,
    /// Its value as text: `5` matches the number and the text.
    pub value: String,
}

/// Who started a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartedBy {
    /// A person or a program that submitted it.
    Submission,
    /// A schedule, in this way.
    Schedule(RunSource),
}

/// Which runs to list.
///
/// The workflow, the states, the run key and the time of creation are found by indexes. All other filters compare row by
/// row, and stop after [`SEARCH_MAX`] rows: see [`Page::searched_to`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// Of this workflow.
    pub workflow: Option<String>,
    /// In one of these states; in any if there is none.
    pub statuses: Vec<RunStatus>,
    /// Accepted in this time. It is found by ids, which grow with time: runs that were made while a clock was wrong by more
    /// than a minute may be missing.
    pub created: TimeRange,
    /// First claimed in this time.
    pub started: TimeRange,
    /// With this key of the caller.
    pub run_key: Option<String>,
    /// With this value of a param.
    pub param: Option<ParamFilter>,
    /// Started by this.
    pub started_by: Option<StartedBy>,
    /// Started by this schedule.
    pub schedule_id: Option<i64>,
    /// Which part of the list.
    pub cursor: Cursor,
}

impl RunFilter {
    /// The newest runs of all.
    #[must_use]
    pub fn newest(limit: i64) -> RunFilter {
        RunFilter { cursor: Cursor::newest(limit), ..RunFilter::default() }
    }

    /// Whether some rows of the index may not match, so that the search needs a bound.
    fn compares_rows(&self) -> bool {
        self.started != TimeRange::default()
            || self.param.is_some()
            || self.started_by.is_some()
            || self.schedule_id.is_some()
    }

    /// Whether a run that was found by its key is what else was asked for.
    fn takes(&self, run: &RunSummary) -> bool {
        self.workflow.as_ref().is_none_or(|workflow| *workflow == run.workflow)
            && (self.statuses.is_empty() || self.statuses.contains(&run.status))
    }
}

/// What the runs of a page are found by. Each has parameters from 13 on.
enum Path<'f> {
    Id,
    /// A state of finished runs.
    Status(RunStatus),
    WorkflowAndStatus(&'f str, RunStatus),
    /// A state of unfinished runs, which are compared row by row.
    Unfinished(RunStatus),
    WorkflowAndUnfinished(&'f str, RunStatus),
    RunKey(&'f str),
}

/// The columns of `runs` that a [`RunSummary`] is read from.
pub(crate) const RUN_SUMMARY: Fragment = Fragment {
    name: "run_summary",
    sql: "id, workflow, status, stop_reason, run_key, total_jobs, unfinished_jobs, failed_jobs, created_at,
          started_at, finished_at, schedule_id, scheduled_for, source",
};

/// The range of ids and the conditions of a [`RunFilter`] that are compared run by run, with parameters 1 to 12.
pub(crate) const RUN_FILTER: Fragment = Fragment {
    name: "run_filter",
    sql: "id >= $1 AND id < $2
          AND (CAST($4 AS {integer}) IS NULL OR created_at >= $4)
          AND (CAST($5 AS {integer}) IS NULL OR created_at < $5)
          AND (CAST($6 AS {integer}) IS NULL OR started_at >= $6)
          AND (CAST($7 AS {integer}) IS NULL OR started_at < $7)
          AND (CAST($8 AS TEXT) IS NULL OR coalesce(source, 'submission') = $8)
          AND (CAST($9 AS {integer}) IS NULL OR schedule_id = $9)
          AND (CAST($10 AS TEXT) IS NULL OR replace(params, $10, '') <> params
               OR replace(params, $11, '') <> params OR replace(params, $12, '') <> params)",
};

impl<'f> Path<'f> {
    fn of_status(status: RunStatus) -> Path<'f> {
        if status.is_terminal() { Path::Status(status) } else { Path::Unfinished(status) }
    }

    fn of_workflow(workflow: &'f str, status: RunStatus) -> Path<'f> {
        if status.is_terminal() {
            Path::WorkflowAndStatus(workflow, status)
        } else {
            Path::WorkflowAndUnfinished(workflow, status)
        }
    }

    /// Whether some rows that the path reads may not match, so that the search needs a bound.
    fn compares_rows(&self) -> bool {
        match self {
            Path::Unfinished(_) | Path::WorkflowAndUnfinished(..) => true,
            Path::Id | Path::Status(_) | Path::WorkflowAndStatus(..) | Path::RunKey(_) => false,
        }
    }

    fn page(&self) -> &'static str {
        match self {
            Path::Id => "SELECT {run_summary} FROM runs
                 WHERE {run_filter} ORDER BY id DESC LIMIT $3",
            Path::Status(_) => "SELECT {run_summary} FROM runs
                 WHERE finished_at IS NOT NULL AND status = $13 AND {run_filter} ORDER BY id DESC LIMIT $3",
            Path::WorkflowAndStatus(..) => {
                "SELECT {run_summary} FROM runs
                 WHERE finished_at IS NOT NULL AND workflow = $14 AND status = $13 AND {run_filter} ORDER BY id DESC LIMIT $3"
            }
            Path::Unfinished(_) => "SELECT {run_summary} FROM runs
                 WHERE status IN ('PENDING', 'RUNNING') AND status = $13 AND {run_filter} ORDER BY id DESC LIMIT $3",
            Path::WorkflowAndUnfinished(..) => {
                "SELECT {run_summary} FROM runs
                 WHERE status IN ('PENDING', 'RUNNING') AND workflow = $14 AND status = $13 AND {run_filter} ORDER BY id DESC LIMIT $3"
            }
            Path::RunKey(_) => "SELECT {run_summary} FROM runs
                 WHERE run_key = $13 AND {run_filter} ORDER BY id DESC LIMIT $3",
        }
    }

    /// The id of the last row that a search looks at, with the range in parameters 1 and 2 and the rows before it in 3.
    fn floor(&self) -> &'static str {
        match self {
            Path::Id | Path::RunKey(_) => {
                "SELECT id FROM runs WHERE id >= $1 AND id < $2 ORDER BY id DESC LIMIT 1 OFFSET $3"
            }
            Path::Status(_) => {
                "SELECT id FROM runs WHERE finished_at IS NOT NULL AND status = $4 AND id >= $1 AND id < $2
                 ORDER BY id DESC LIMIT 1 OFFSET $3"
            }
            Path::WorkflowAndStatus(..) => {
                "SELECT id FROM runs
                 WHERE finished_at IS NOT NULL AND workflow = $5 AND status = $4 AND id >= $1 AND id < $2
                 ORDER BY id DESC LIMIT 1 OFFSET $3"
            }
            Path::Unfinished(_) | Path::WorkflowAndUnfinished(..) => {
                "SELECT id FROM runs WHERE status IN ('PENDING', 'RUNNING') AND id >= $1 AND id < $2
                 ORDER BY id DESC LIMIT 1 OFFSET $3"
            }
        }
    }

    fn values(&self) -> Vec<Value<'_>> {
        match self {
            Path::Id => vec![],
            Path::Status(status) | Path::Unfinished(status) => vec![status.as_str().into()],
            Path::WorkflowAndStatus(workflow, status) | Path::WorkflowAndUnfinished(workflow, status) => {
                vec![status.as_str().into(), (*workflow).into()]
            }
            Path::RunKey(key) => vec![(*key).into()],
        }
    }
}

impl Runs<'_> {
    /// A page of the runs that match, the newest first.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) for a limit or a text that is out of bounds, and the database's.
    pub fn list(&self, filter: &RunFilter) -> Result<Page<RunSummary>> {
        self.store.read(|connection| list(connection, filter))
    }

    /// The same with everything that the runs have, also their params.
    ///
    /// # Errors
    /// As of [`Runs::list`].
    pub fn list_full(&self, filter: &RunFilter) -> Result<Page<Run>> {
        self.store.read(|connection| {
            let page = list(connection, filter)?;
            let ids: Vec<i64> = page.rows.iter().map(|run| run.id).collect();
            let sql = "SELECT {run_columns} FROM runs WHERE id {in $1} ORDER BY id DESC";
            let rows = all(connection, sql, &[(&json_ids(&ids)).into()], read_run)?;
            Ok(page.with_rows(rows))
        })
    }
}

fn list(connection: &mut dyn Connection, filter: &RunFilter) -> Result<Page<RunSummary>> {
    filter.cursor.check(LIST)?;
    let fragments = filter.param.as_ref().map(param_fragments).transpose()?;
    let workflow = match (&filter.workflow, filter.schedule_id) {
        (None, Some(schedule_id)) => workflow_of(connection, schedule_id)?,
        (workflow, _) => workflow.clone(),
    };
    let paths = paths(filter, workflow.as_deref());
    let mut ids = filter.cursor.ids().and(ids_of(connection, filter.created)?);
    let searched: Vec<&Path<'_>> =
        paths.iter().filter(|path| filter.compares_rows() || path.compares_rows()).collect();
    let floor = if filter.run_key.is_none() { floor(connection, &searched, ids)? } else { None };
    ids.from = floor.unwrap_or(ids.from);
    let started_by = filter.started_by.map(|started_by| match started_by {
        StartedBy::Submission => "submission",
        StartedBy::Schedule(source) => source.as_str(),
    });
    let [text, number, last_number] = match &fragments {
        Some(fragments) => fragments.each_ref().map(|fragment| Value::from(fragment.as_str())),
        None => [Value::Null; 3],
    };
    let common: [Value<'_>; 12] = [
        ids.from.into(),
        ids.below.into(),
        (filter.cursor.limit + 1).into(),
        filter.created.from_ms.into(),
        filter.created.until_ms.into(),
        filter.started.from_ms.into(),
        filter.started.until_ms.into(),
        started_by.into(),
        filter.schedule_id.into(),
        text,
        number,
        last_number,
    ];
    let asked: Vec<Asked<'_>> =
        paths.iter().map(|path| (path.page(), [common.to_vec(), path.values()].concat())).collect();
    let found = rows_of_each(connection, &asked, read_summary)?;
    let found = found.into_iter().flatten().filter(|run| filter.takes(run));
    Ok(page(found.collect(), |run| run.id, filter.cursor.limit, floor))
}

/// The ranges of an index that together hold the runs that match.
fn paths<'f>(filter: &'f RunFilter, workflow: Option<&'f str>) -> Vec<Path<'f>> {
    let mut statuses = filter.statuses.clone();
    statuses.sort_unstable();
    statuses.dedup();
    if statuses.is_empty() && workflow.is_some() {
        statuses = RunStatus::ALL.to_vec();
    }
    match (&filter.run_key, workflow) {
        (Some(run_key), _) => vec![Path::RunKey(run_key)],
        (None, Some(workflow)) => {
            statuses.into_iter().map(|status| Path::of_workflow(workflow, status)).collect()
        }
        (None, None) if statuses.is_empty() => vec![Path::Id],
        (None, None) => statuses.into_iter().map(Path::of_status).collect(),
    }
}

fn workflow_of(connection: &mut dyn Connection, schedule_id: i64) -> Result<Option<String>> {
    first(connection, "SELECT workflow FROM schedules WHERE id = $1", &[schedule_id.into()], |row| {
        row.text(0)
    })
}

/// The lowest id to look at, if there are more rows than a search looks at.
fn floor(connection: &mut dyn Connection, paths: &[&Path<'_>], ids: IdRange) -> Result<Option<i64>> {
    if paths.is_empty() {
        return Ok(None);
    }
    let rows_before = SEARCH_MAX / paths.len() as i64 - 1;
    let range = [ids.from.into(), ids.below.into(), rows_before.into()];
    let asked: Vec<Asked<'_>> =
        paths.iter().map(|path| (path.floor(), [range.to_vec(), path.values()].concat())).collect();
    let floors = rows_of_each(connection, &asked, |row| row.integer(0))?;
    Ok(floors.into_iter().flatten().max())
}

/// The ids of the runs that were accepted in a time, and of a few more.
fn ids_of(connection: &mut dyn Connection, created: TimeRange) -> Result<IdRange> {
    let from = match created.from_ms {
        Some(from_ms) => first_id_at(connection, from_ms.saturating_sub(CLOCKS_APART_MS))?,
        None => i64::MIN,
    };
    let below = match created.until_ms {
        Some(until_ms) => first_id_at(connection, until_ms.saturating_add(CLOCKS_APART_MS))?,
        None => i64::MAX,
    };
    Ok(IdRange { from, below })
}

/// The id of the first run that was accepted at an instant or later, found by halving the ids: an index by time would be
/// paid by each run, and would not give the runs in the order of ids.
fn first_id_at(connection: &mut dyn Connection, at_ms: i64) -> Result<i64> {
    one(
        connection,
        "WITH RECURSIVE halves (low, high) AS (
             SELECT coalesce((SELECT min(id) FROM runs), 0), coalesce((SELECT max(id) FROM runs), 0) + 1
             UNION ALL
             SELECT CASE WHEN (SELECT created_at FROM runs WHERE id >= low + (high - low) / 2
                               ORDER BY id LIMIT 1) < $1 THEN low + (high - low) / 2 + 1 ELSE low END,
                    CASE WHEN (SELECT created_at FROM runs WHERE id >= low + (high - low) / 2
                               ORDER BY id LIMIT 1) < $1 THEN high ELSE low + (high - low) / 2 END
             FROM halves WHERE low < high
         )
         SELECT min(high) FROM halves",
        &[at_ms.into()],
        |row| row.integer(0),
    )
}

/// What the stored params contain if the param has the value: a text, a number or truth value before another param, and
/// one at the end. Quotes in texts are escaped, so nothing else looks like this.
fn param_fragments(param: &ParamFilter) -> Result<[String; 3]> {
    let ParamFilter { name, value } = param;
    search_text(LIST, name)?;
    search_text(LIST, value)?;
    let json = |text: &str| Json::from(text).to_string();
    let of_text = format!("{}:{}", json(name), json(value));
    let is_scalar = match serde_json::from_str(value) {
        Ok(Json::Null | Json::Bool(_) | Json::Number(_)) => true,
        Ok(Json::String(_) | Json::Array(_) | Json::Object(_)) | Err(_) => false,
    };
    match is_scalar {
        true => Ok(["", ",", "}"].map(|end| match end {
            "" => of_text.clone(),
            end => format!("{}:{value}{end}", json(name)),
        })),
        false => Ok([of_text.clone(), of_text.clone(), of_text]),
    }
}

fn read_summary(row: &dyn Row) -> Result<RunSummary> {
    Ok(RunSummary {
        id: row.integer(0)?,
        workflow: row.text(1)?,
        status: row.parsed(2, RunStatus::parse)?,
        stop_reason: row.optional_text(3)?.as_deref().and_then(StopReason::parse),
        run_key: row.optional_text(4)?,
        total_jobs: row.integer(5)?,
        unfinished_jobs: row.integer(6)?,
        failed_jobs: row.integer(7)?,
        created_at: row.integer(8)?,
        started_at: row.optional_integer(9)?,
        finished_at: row.optional_integer(10)?,
        schedule_id: row.optional_integer(11)?,
        scheduled_for: row.optional_integer(12)?,
        source: row.optional_text(13)?.as_deref().and_then(RunSource::parse),
    })
}
