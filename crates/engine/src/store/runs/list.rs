//! Pages of runs.
//!
//! A page is read along an index in the order of ids: finished runs by workflow and state or by state, unfinished runs, or
//! all runs by id. Runs with a tag are found in `run_tags`. A page with several states reads one range of its index for each. The index of unfinished runs has no
//! workflow, because an index that has one would be written at each change of a run's state. So unfinished runs are compared
//! row by row, up to the bound of a search. A new filter that has an index of its own becomes one more [`AccessPath`].

use serde_json::Value as Json;

use crate::status::{RunSource, RunStatus, StopReason};
use crate::store::accepted::{ListedTable, TimeRange, ids_accepted_in};
use crate::store::page::{Cursor, IdRange, Page, SearchBound, SearchReach, page, search_text};
use crate::store::round_trip::{PlainQuery, rows_of_each};
use crate::store::runs::{Run, read_run};
use crate::store::{Runs, json_ids, json_list};
use windlass_db::error::{Error, Result};
use windlass_db::{Connection, Fragment, Row, Value, all, first};

const LIST: &str = "list runs";
/// With how many params a run is compared.
const PARAMS_MAX: usize = 20;

/// A run in a list: without its params, its environment and its folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSummary {
    /// Its id.
    pub id: i64,
    /// The name of its workflow.
    pub workflow: String,
    /// Its state.
    pub status: RunStatus,
    /// Why it was stopped before its jobs had finished.
    pub stop_reason: Option<StopReason>,
    /// The caller's key.
    pub run_key: Option<String>,
    /// How many jobs it has.
    pub total_jobs: i64,
    /// How many of its jobs are unfinished.
    pub unfinished_jobs: i64,
    /// How many of its jobs failed without `allow_failure`, or were cancelled.
    pub failed_jobs: i64,
    /// When it was accepted.
    pub created_at: i64,
    /// When its first job was claimed.
    pub started_at: Option<i64>,
    /// When it finished.
    pub finished_at: Option<i64>,
    /// The schedule that started it.
    pub schedule_id: Option<i64>,
    /// The nominal time of its occurrence, if a schedule started it.
    pub scheduled_for: Option<i64>,
    /// Why a schedule started it. `None` if it was submitted.
    pub source: Option<RunSource>,
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
/// The workflow, the states, the tag, the run key and the time of creation are found by indexes. Of the runs with a tag, workflows
/// and states are compared row by row. All other filters compare row by row, and stop where [`SearchBound`] says. With a tag or
/// a trigger, they stop after a quarter of its rows. See [`Page::searched_to`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// Of this workflow.
    pub workflow: Option<String>,
    /// With this tag. A run that a job has started is under no tag.
    pub tag: Option<String>,
    /// In one of these states; in any if there is none.
    pub statuses: Vec<RunStatus>,
    /// Accepted in this time. The runs are found by ids, which grow with time. So runs that were accepted while a clock was
    /// wrong by more than a minute may be missing.
    pub created: TimeRange,
    /// First claimed in this time.
    pub started: TimeRange,
    /// With this key of the caller.
    pub run_key: Option<String>,
    /// With all of these values of params.
    pub params: Vec<ParamFilter>,
    /// Started by this.
    pub started_by: Option<StartedBy>,
    /// Started by this schedule.
    pub schedule_id: Option<i64>,
    /// Started by a trigger with this name.
    pub trigger: Option<String>,
    /// Runs that jobs have started, in place of all others.
    pub children: bool,
    /// Which part of the list.
    pub cursor: Cursor,
    /// How many rows a search looks at.
    pub search: SearchBound,
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
            || !self.params.is_empty()
            || self.started_by.is_some()
            || self.schedule_id.is_some()
    }

    /// Whether a run that was found by its key also has the workflow and the state of the filter.
    fn matches_rest(&self, run: &RunSummary) -> bool {
        self.workflow.as_ref().is_none_or(|workflow| *workflow == run.workflow)
            && (self.statuses.is_empty() || self.statuses.contains(&run.status))
    }
}

/// The index along which a page is read. Each has parameters from 12 on.
enum AccessPath<'f> {
    Id,
    /// A state of finished runs.
    Status(RunStatus),
    WorkflowAndStatus(&'f str, RunStatus),
    /// A state of unfinished runs, which are compared row by row.
    Unfinished(RunStatus),
    WorkflowAndUnfinished(&'f str, RunStatus),
    /// The run with a key of the caller, if it has this tag.
    RunKey(&'f str, Option<&'f str>),
    /// Runs with a tag. Workflows and states are compared row by row.
    Tag(&'f str, Compared<'f>),
    /// Runs that a trigger has started. They are compared row by row.
    Triggered(TriggeredPath<'f>),
    /// Runs that jobs have started. They are compared row by row.
    Children(Compared<'f>),
}

/// What the rows of an index are compared with, if it has no workflows and states.
#[derive(Clone, Copy)]
struct Compared<'f> {
    workflow: Option<&'f str>,
    /// A JSON list; any state if there is none.
    statuses: Option<&'f str>,
}

/// With what runs of a trigger are compared.
struct TriggeredPath<'f> {
    trigger: &'f str,
    compared: Compared<'f>,
    tag: Option<&'f str>,
    run_key: Option<&'f str>,
}

/// The columns of `runs` that a [`RunSummary`] is read from.
pub(crate) const RUN_SUMMARY: Fragment = Fragment {
    name: "run_summary",
    sql: "id, workflow, status, stop_reason, run_key, total_jobs, unfinished_jobs, failed_jobs, created_at,
          started_at, finished_at, schedule_id, scheduled_for, source",
};

/// The conditions of a [`RunFilter`] that are compared run by run, with parameters 4 to 11.
///
/// Few runs have the params, and reading the list of wanted texts for each run takes longer than the rest. So the two texts of
/// the first param are compared first: they are read once. The second is one of a number, which ends with a comma or a brace.
pub(crate) const RUN_COMPARISONS: Fragment = Fragment {
    name: "run_comparisons",
    sql: "(CAST($4 AS {integer}) IS NULL OR created_at >= $4)
          AND (CAST($5 AS {integer}) IS NULL OR created_at < $5)
          AND (CAST($6 AS {integer}) IS NULL OR started_at >= $6)
          AND (CAST($7 AS {integer}) IS NULL OR started_at < $7)
          AND (CAST($8 AS TEXT) IS NULL OR coalesce(source, 'submission') = $8)
          AND (CAST($9 AS {integer}) IS NULL OR schedule_id = $9)
          AND (CAST($10 AS TEXT) IS NULL
               OR ({position}(params, (SELECT value FROM {texts $10} AS first LIMIT 1)) > 0
                   OR {position}(params, (SELECT substr(value, 1, length(value) - 1) FROM {texts $10} AS second
                                          LIMIT 1 OFFSET 1)) > 0)
                  AND (SELECT count(*) FROM {texts $10} AS wanted WHERE {position}(params, wanted.value) > 0) = $11)",
};

impl<'f> AccessPath<'f> {
    fn of_status(status: RunStatus) -> AccessPath<'f> {
        if status.is_terminal() { AccessPath::Status(status) } else { AccessPath::Unfinished(status) }
    }

    fn of_workflow(workflow: &'f str, status: RunStatus) -> AccessPath<'f> {
        if status.is_terminal() {
            AccessPath::WorkflowAndStatus(workflow, status)
        } else {
            AccessPath::WorkflowAndUnfinished(workflow, status)
        }
    }

    /// Whether some rows that the path reads may not match, so that the search needs a bound.
    fn compares_rows(&self) -> bool {
        match self {
            AccessPath::Unfinished(_)
            | AccessPath::WorkflowAndUnfinished(..)
            | AccessPath::Triggered(_)
            | AccessPath::Children(..) => true,
            AccessPath::Tag(_, compared) => compared.workflow.is_some() || compared.statuses.is_some(),
            AccessPath::Id
            | AccessPath::Status(_)
            | AccessPath::WorkflowAndStatus(..)
            | AccessPath::RunKey(..) => false,
        }
    }

    /// How far a search of so many rows looks along the path.
    fn reach(&self, rows: i64) -> SearchReach {
        match self {
            // The run is looked up for each row.
            AccessPath::Tag(..) | AccessPath::Triggered(_) => SearchReach::by_lookups(rows),
            AccessPath::Id
            | AccessPath::Status(_)
            | AccessPath::WorkflowAndStatus(..)
            | AccessPath::Unfinished(_)
            | AccessPath::WorkflowAndUnfinished(..)
            | AccessPath::RunKey(..)
            | AccessPath::Children(..) => SearchReach::of(rows),
        }
    }

    fn page_sql(&self) -> &'static str {
        match self {
            AccessPath::Id => "SELECT {run_summary} FROM runs
                 WHERE parent_job_id IS NULL AND id >= $1 AND id < $2 AND {run_comparisons} ORDER BY id DESC LIMIT $3",
            AccessPath::Status(_) => "SELECT {run_summary} FROM runs
                 WHERE finished_at IS NOT NULL AND parent_job_id IS NULL AND status = $12 AND id >= $1 AND id < $2 AND {run_comparisons} ORDER BY id DESC LIMIT $3",
            AccessPath::WorkflowAndStatus(..) => {
                "SELECT {run_summary} FROM runs
                 WHERE finished_at IS NOT NULL AND parent_job_id IS NULL AND workflow = $13 AND status = $12 AND id >= $1 AND id < $2 AND {run_comparisons} ORDER BY id DESC LIMIT $3"
            }
            AccessPath::Unfinished(_) => "SELECT {run_summary} FROM runs
                 WHERE status IN ('PENDING', 'RUNNING') AND parent_job_id IS NULL AND status = $12 AND id >= $1 AND id < $2 AND {run_comparisons} ORDER BY id DESC LIMIT $3",
            AccessPath::WorkflowAndUnfinished(..) => {
                "SELECT {run_summary} FROM runs
                 WHERE status IN ('PENDING', 'RUNNING') AND parent_job_id IS NULL AND workflow = $13 AND status = $12 AND id >= $1 AND id < $2 AND {run_comparisons} ORDER BY id DESC LIMIT $3"
            }
            AccessPath::RunKey(..) => {
                "SELECT {run_summary} FROM runs
                 WHERE run_key = $12 AND id >= $1 AND id < $2 AND {run_comparisons}
                   AND (CAST($13 AS TEXT) IS NULL
                        OR EXISTS (SELECT 1 FROM run_tags WHERE tag = $13 AND run_id = runs.id))
                 ORDER BY id DESC LIMIT $3"
            }
            // OFFSET 0 keeps PostgreSQL from joining in another order, in which it would read all runs of a state.
            AccessPath::Tag(..) => {
                "SELECT {run_summary}
                 FROM (SELECT run_id AS found_id FROM run_tags
                       WHERE tag = $12 AND run_id >= $1 AND run_id < $2
                         AND EXISTS (SELECT 1 FROM runs WHERE id = run_id AND {run_comparisons}
                                       AND (CAST($13 AS TEXT) IS NULL OR workflow = $13)
                                       AND (CAST($14 AS TEXT) IS NULL OR status IN (SELECT value FROM {texts $14} AS wanted))
                                     LIMIT 1 OFFSET 0)
                       ORDER BY run_id DESC LIMIT $3) AS found
                 JOIN runs ON {by runs.id = found.found_id} ORDER BY id DESC LIMIT $3"
            }
            AccessPath::Triggered(_) => {
                "SELECT {run_summary}
                 FROM (SELECT run_id AS found_id FROM triggered_runs
                       WHERE trigger_name = $12 AND run_id >= $1 AND run_id < $2
                         AND EXISTS (SELECT 1 FROM runs WHERE id = run_id AND {run_comparisons}
                                       AND (CAST($13 AS TEXT) IS NULL OR workflow = $13)
                                       AND (CAST($14 AS TEXT) IS NULL OR status IN (SELECT value FROM {texts $14} AS wanted))
                                       AND (CAST($15 AS TEXT) IS NULL OR run_key = $15)
                                     LIMIT 1 OFFSET 0)
                         AND (CAST($16 AS TEXT) IS NULL
                              OR EXISTS (SELECT 1 FROM run_tags
                                         WHERE tag = $16 AND run_tags.run_id = triggered_runs.run_id))
                       ORDER BY run_id DESC LIMIT $3) AS found
                 JOIN runs ON {by runs.id = found.found_id} ORDER BY id DESC LIMIT $3"
            }
            AccessPath::Children(..) => "SELECT {run_summary} FROM runs
                 WHERE parent_job_id IS NOT NULL AND id >= $1 AND id < $2 AND {run_comparisons}
                   AND (CAST($12 AS TEXT) IS NULL OR workflow = $12) AND (CAST($13 AS TEXT) IS NULL OR status IN (SELECT value FROM {texts $13} AS wanted))
                 ORDER BY id DESC LIMIT $3",
        }
    }

    /// Selects the id of the last row that a search reads. Parameters 1 and 2 are the range, and 3 is the number of rows
    /// before it.
    fn last_id_sql(&self) -> &'static str {
        match self {
            AccessPath::Id | AccessPath::RunKey(..) => {
                "SELECT id FROM runs WHERE id >= $1 AND id < $2 ORDER BY id DESC LIMIT 1 OFFSET $3"
            }
            AccessPath::Tag(..) => {
                "SELECT run_id FROM run_tags WHERE tag = $4 AND run_id >= $1 AND run_id < $2
                 ORDER BY run_id DESC LIMIT 1 OFFSET $3"
            }
            AccessPath::Triggered(_) => {
                "SELECT run_id FROM triggered_runs WHERE run_id >= $1 AND run_id < $2
                 ORDER BY run_id DESC LIMIT 1 OFFSET $3"
            }
            AccessPath::Children(..) => {
                "SELECT id FROM runs WHERE parent_job_id IS NOT NULL AND id >= $1 AND id < $2
                 ORDER BY id DESC LIMIT 1 OFFSET $3"
            }
            AccessPath::Status(_) => {
                "SELECT id FROM runs
                 WHERE finished_at IS NOT NULL AND parent_job_id IS NULL AND status = $4 AND id >= $1 AND id < $2
                 ORDER BY id DESC LIMIT 1 OFFSET $3"
            }
            AccessPath::WorkflowAndStatus(..) => {
                "SELECT id FROM runs
                 WHERE finished_at IS NOT NULL AND parent_job_id IS NULL AND workflow = $5 AND status = $4 AND id >= $1 AND id < $2
                 ORDER BY id DESC LIMIT 1 OFFSET $3"
            }
            AccessPath::Unfinished(_) | AccessPath::WorkflowAndUnfinished(..) => {
                "SELECT id FROM runs WHERE status IN ('PENDING', 'RUNNING') AND id >= $1 AND id < $2
                 ORDER BY id DESC LIMIT 1 OFFSET $3"
            }
        }
    }

    /// The values for [`AccessPath::last_id_sql`].
    fn values_of_range(&self) -> Vec<Value<'_>> {
        match self {
            AccessPath::Triggered(_) | AccessPath::Children(..) => vec![],
            AccessPath::Tag(tag, ..) => vec![(*tag).into()],
            AccessPath::Id
            | AccessPath::Status(_)
            | AccessPath::WorkflowAndStatus(..)
            | AccessPath::Unfinished(_)
            | AccessPath::WorkflowAndUnfinished(..)
            | AccessPath::RunKey(..) => self.values(),
        }
    }

    fn values(&self) -> Vec<Value<'_>> {
        match self {
            AccessPath::Id => vec![],
            AccessPath::Status(status) | AccessPath::Unfinished(status) => vec![status.as_str().into()],
            AccessPath::WorkflowAndStatus(workflow, status)
            | AccessPath::WorkflowAndUnfinished(workflow, status) => {
                vec![status.as_str().into(), (*workflow).into()]
            }
            AccessPath::RunKey(key, tag) => vec![(*key).into(), (*tag).into()],
            AccessPath::Tag(tag, compared) => {
                vec![(*tag).into(), compared.workflow.into(), compared.statuses.into()]
            }
            AccessPath::Triggered(path) => vec![
                path.trigger.into(),
                path.compared.workflow.into(),
                path.compared.statuses.into(),
                path.run_key.into(),
                path.tag.into(),
            ],
            AccessPath::Children(compared) => vec![compared.workflow.into(), compared.statuses.into()],
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

    /// The same page with all values of the runs, also their params.
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
    let params = WantedParams::of(&filter.params)?;
    let workflow = match (&filter.workflow, filter.schedule_id) {
        (None, Some(schedule_id)) => workflow_of(connection, schedule_id)?,
        (workflow, _) => workflow.clone(),
    };
    let texts: Vec<&str> = filter.statuses.iter().map(|status| status.as_str()).collect();
    let statuses = if texts.is_empty() { None } else { Some(json_list(LIST, &texts)?) };
    let compared = Compared { workflow: workflow.as_deref(), statuses: statuses.as_deref() };
    let paths = access_paths(filter, compared);
    let mut ids =
        filter.cursor.ids().intersect(ids_accepted_in(connection, ListedTable::Runs, filter.created)?);
    let searched: Vec<&AccessPath<'_>> =
        paths.iter().filter(|path| filter.compares_rows() || path.compares_rows()).collect();
    let is_search = filter.run_key.is_none() || filter.trigger.is_some();
    let floor = if is_search { lowest_id_searched(connection, &searched, ids, filter.search)? } else { None };
    ids.from = floor.unwrap_or(ids.from);
    let started_by = filter.started_by.map(|started_by| match started_by {
        StartedBy::Submission => "submission",
        StartedBy::Schedule(source) => source.as_str(),
    });
    let common: [Value<'_>; 11] = [
        ids.from.into(),
        ids.below.into(),
        (filter.cursor.limit + 1).into(),
        filter.created.from_ms.into(),
        filter.created.until_ms.into(),
        filter.started.from_ms.into(),
        filter.started.until_ms.into(),
        started_by.into(),
        filter.schedule_id.into(),
        (&params.fragments).into(),
        params.count.into(),
    ];
    let queries: Vec<PlainQuery<'_>> =
        paths.iter().map(|path| (path.page_sql(), [common.to_vec(), path.values()].concat())).collect();
    let found = rows_of_each(connection, &queries, read_summary)?;
    let found = found.into_iter().flatten().filter(|run| filter.matches_rest(run));
    Ok(page(found.collect(), |run| run.id, filter.cursor.limit, floor))
}

/// The ranges of an index that together have the runs that match.
fn access_paths<'f>(filter: &'f RunFilter, compared: Compared<'f>) -> Vec<AccessPath<'f>> {
    let (tag, run_key) = (filter.tag.as_deref(), filter.run_key.as_deref());
    if let Some(trigger) = &filter.trigger {
        return vec![AccessPath::Triggered(TriggeredPath { trigger, compared, tag, run_key })];
    }
    if let (Some(tag), None) = (tag, run_key) {
        return vec![AccessPath::Tag(tag, compared)];
    }
    if filter.children && run_key.is_none() {
        return vec![AccessPath::Children(compared)];
    }
    let workflow = compared.workflow;
    let mut statuses = filter.statuses.clone();
    statuses.sort_unstable();
    statuses.dedup();
    if statuses.is_empty() && workflow.is_some() {
        statuses = RunStatus::ALL.to_vec();
    }
    match (run_key, workflow) {
        (Some(run_key), _) => vec![AccessPath::RunKey(run_key, tag)],
        (None, Some(workflow)) => {
            statuses.into_iter().map(|status| AccessPath::of_workflow(workflow, status)).collect()
        }
        (None, None) if statuses.is_empty() => vec![AccessPath::Id],
        (None, None) => statuses.into_iter().map(AccessPath::of_status).collect(),
    }
}

fn workflow_of(connection: &mut dyn Connection, schedule_id: i64) -> Result<Option<String>> {
    first(connection, "SELECT workflow FROM schedules WHERE id = $1", &[schedule_id.into()], |row| {
        row.text(0)
    })
}

/// The lowest id that a search reads, if there are more rows than it may read.
fn lowest_id_searched(
    connection: &mut dyn Connection,
    paths: &[&AccessPath<'_>],
    ids: IdRange,
    bound: SearchBound,
) -> Result<Option<i64>> {
    if paths.is_empty() {
        return Ok(None);
    }
    let rows = bound.for_each_of(paths.len());
    let reach: Vec<SearchReach> = paths.iter().map(|path| path.reach(rows)).collect();
    let mut queries: Vec<PlainQuery<'_>> = Vec::new();
    for (path, reach) in paths.iter().zip(&reach) {
        for rows in [1, reach.rows_apart, reach.rows] {
            let range = vec![ids.from.into(), ids.below.into(), (rows - 1).into()];
            queries.push((path.last_id_sql(), [range, path.values_of_range()].concat()));
        }
    }
    let found = rows_of_each(connection, &queries, |row| row.integer(0))?;
    let floors = reach.iter().zip(found.chunks(3)).filter_map(|(reach, ids)| {
        let id = |which: usize| ids.get(which)?.first().copied();
        reach.floor(id(0)?, id(1)?, id(2))
    });
    Ok(floors.max())
}

/// What the params of a run are compared with.
pub(in crate::store) struct WantedParams {
    /// A JSON list of texts. Nothing if no param is wanted.
    pub(in crate::store) fragments: Option<String>,
    /// How many of the texts the stored params contain if all values match.
    pub(in crate::store) count: i64,
}

impl WantedParams {
    pub(in crate::store) fn of(filters: &[ParamFilter]) -> Result<WantedParams> {
        if filters.len() > PARAMS_MAX {
            let reason = format!("{} params are compared; the limit is {PARAMS_MAX}", filters.len());
            return Err(Error::invalid(LIST, reason));
        }
        let mut alternatives = filters.iter().map(param_fragments).collect::<Result<Vec<_>>>()?;
        alternatives.sort();
        alternatives.dedup();
        let fragments: Vec<&str> = alternatives.iter().flatten().map(String::as_str).collect();
        let fragments = if fragments.is_empty() { None } else { Some(json_list(LIST, &fragments)?) };
        Ok(WantedParams { fragments, count: alternatives.len() as i64 })
    }
}

/// The stored params have the value exactly if they contain one of these texts: the value as a string, and as another
/// scalar before a further param or at the end. Quotes in strings are escaped, so no other params contain them, and no
/// params contain two of them.
fn param_fragments(param: &ParamFilter) -> Result<Vec<String>> {
    let ParamFilter { name, value } = param;
    search_text(LIST, name)?;
    search_text(LIST, value)?;
    let json = |text: &str| Json::from(text).to_string();
    let of_text = format!("{}:{}", json(name), json(value));
    match serde_json::from_str(value) {
        Ok(Json::Null | Json::Bool(_) | Json::Number(_)) => {
            let of_scalar = |end: &str| format!("{}:{value}{end}", json(name));
            Ok(vec![of_text, of_scalar(","), of_scalar("}")])
        }
        Ok(Json::String(_) | Json::Array(_) | Json::Object(_)) | Err(_) => Ok(vec![of_text]),
    }
}

pub(super) fn read_summary(row: &dyn Row) -> Result<RunSummary> {
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
