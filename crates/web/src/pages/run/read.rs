//! Reads what the page of a run shows.

use windlass_engine::decide::for_each::GROUP_KIND;
use windlass_engine::store::{
    Failures, FocusedJob, Job, JobOrder, JobPart, JobWindow, JobsOfRun, LogLine, LogPosition, LogStream,
    Reason, Run,
};
use windlass_engine::{JobStatus, Result, RunSource, RunStatus, StopReason, Store, WaitsFor};
use windlass_system::first_error::first_error;

use super::graph::{AROUND_MAX, WHOLE_MAX};
use super::single::SingleData;
use super::tree::failed_below;
use super::{
    CalledFailure, FailureData, ITEMS_OF_WINDOW, JOBS_OF_WINDOW, JobData, JobState, LINES_BEFORE_ERROR,
    LINES_OF_WINDOW, LINES_READ_MAX, LogData, OtherRuns, Panel, Parent, RunData, RunQuery, TREE_RUNS_MAX,
    TreeRun, View,
};

const LINES_OF_READ: i64 = 5_000;
/// The most hits that are counted.
const HITS_MAX: usize = 10_000;

/// Makes the sentence about a reason.
pub type Sentence<'s> = &'s dyn Fn(&Reason, &Job) -> String;

/// Reads what the page shows.
///
/// # Errors
/// [`windlass_engine::Error::NotFound`] and the database's.
pub fn read(store: &Store, run_id: i64, query: RunQuery, sentence: Sentence<'_>) -> Result<RunData> {
    let run = store.runs().get(run_id)?;
    let counts = store.runs().job_counts(run_id)?;
    let focused = store.runs().focused_jobs(&[run_id])?.remove(&run_id);
    let is_large = counts.total() > JOBS_OF_WINDOW;
    // Items have windows of their own in the job that they belong to.
    let is_filtered = query.state != JobState::Any || query.name.is_some();
    let part = if is_large && !is_filtered { JobPart::WithoutItems } else { JobPart::All };
    let window = JobWindow {
        statuses: statuses(query.state),
        name: query.name.clone(),
        part,
        order: if is_large { JobOrder::Attention } else { JobOrder::Definition },
        offset: query.offset,
        limit: JOBS_OF_WINDOW,
    };
    let window = match query.view {
        View::Graph => JobWindow {
            statuses: vec![],
            name: None,
            part: JobPart::WithoutItems,
            order: JobOrder::Definition,
            offset: 0,
            limit: WHOLE_MAX,
        },
        View::Timeline | View::Table => window,
    };
    let mut found = store.jobs().window(run_id, &window)?;
    let ids: Vec<i64> = found.rows.iter().map(|job| job.id).collect();
    let mut query = query;
    let job_id = query.job.or(focused.as_ref().map(|job| job.id)).or(ids.first().copied());
    let definitions = store.runs().definitions(run_id)?;
    let shown = match job_id {
        Some(id) => job(store, Some(&run), id, &mut query, sentence)?,
        None => None,
    };
    let mut edges = Vec::new();
    let mut middle = None;
    if query.view == View::Graph && found.matching > WHOLE_MAX {
        middle = shown.as_ref().map(|data| data.job.group_id.unwrap_or(data.job.id)).or(ids.first().copied());
        let around = middle.map(|id| store.jobs().around(id, AROUND_MAX)).transpose()?.unwrap_or_default();
        (found.rows, edges) = (around.jobs, around.edges);
    } else if query.view == View::Graph {
        edges = store.jobs().dependencies(run_id)?;
    }
    let tree = tree(store, &run)?;
    Ok(RunData {
        version: definitions.last().and_then(|definition| definition.version),
        definitions: definitions.len(),
        parent: parent(store, &run)?,
        schedule: run.schedule_id.map(|id| store.schedules().get(id)).transpose()?.map(|found| found.name),
        slot_holders: match run.concurrency.as_ref().filter(|_| run.waits_for.is_some()) {
            Some((key, _limit)) => store.runs().slot_holders(key)?,
            None => Vec::new(),
        },
        usual_ms: store.runs().usual_durations(&[&run.workflow])?.remove(&run.workflow),
        attempts: store.jobs().attempts_of_each(&ids)?,
        edges,
        middle,
        trigger: match run.source {
            Some(RunSource::Event) => store.runs().triggered(&[run_id])?.remove(&run_id),
            Some(RunSource::Schedule | RunSource::Catchup | RunSource::Backfill | RunSource::Manual)
            | None => None,
        },
        cancelled_by: match run.stop_reason {
            Some(StopReason::Cancelled) => store.runs().cancelled_by(run_id)?,
            Some(StopReason::TimedOut | StopReason::Skipped) | None => None,
        },
        failure: match &focused {
            // An allowed failure is no error of a run that succeeded.
            Some(job) if job.status == JobStatus::Failed && run.status != RunStatus::Successful => {
                Some(failure(store, &run, job, shown.as_ref(), &tree)?)
            }
            Some(_) | None => None,
        },
        tree,
        job: shown,
        jobs: found.rows,
        matching: found.matching,
        query,
        run,
        counts,
        focused,
    })
}

/// Reads what the page of a job without a run shows; `None` if it has a run.
///
/// # Errors
/// [`windlass_engine::Error::NotFound`] and the database's.
pub fn single(
    store: &Store,
    job_id: i64,
    mut query: RunQuery,
    sentence: Sentence<'_>,
) -> Result<Option<SingleData>> {
    // One that does not exist is an error here.
    store.jobs().get(job_id)?;
    let Some(job) = job(store, None, job_id, &mut query, sentence)? else { return Ok(None) };
    let first_error = match job.job.status {
        JobStatus::Failed => first_error_of(store, job_id, job.job.attempt, Some(&job))?,
        JobStatus::Blocked
        | JobStatus::Scheduled
        | JobStatus::Pending
        | JobStatus::Running
        | JobStatus::Waiting
        | JobStatus::Successful
        | JobStatus::Skipped
        | JobStatus::Cancelled => None,
    };
    Ok(Some(SingleData { query, job, first_error }))
}

/// The job that started a run.
fn parent(store: &Store, run: &Run) -> Result<Option<Parent>> {
    let Some(job_id) = run.parent_job_id else { return Ok(None) };
    let job = store.jobs().get(job_id)?;
    Ok(Some(Parent { run_id: job.run_id, job_id, name: job.name.unwrap_or_default() }))
}

/// The run at the top of all calls, and those below it.
fn tree(store: &Store, run: &Run) -> Result<Vec<TreeRun>> {
    let top_id = run.root_run_id.unwrap_or(run.id);
    let below = store.runs().below(top_id, 0, TREE_RUNS_MAX)?;
    let top = if top_id == run.id { Some(run.clone()) } else { store.runs().find(top_id)? };
    let top =
        top.map(|top| TreeRun { id: top.id, workflow: top.workflow, status: top.status, started_by: None });
    let below = below.into_iter().map(|child| TreeRun {
        id: child.run_id,
        workflow: child.workflow,
        status: child.status,
        started_by: child.parent_run_id.map(|id| (id, child.parent_name.unwrap_or_default())),
    });
    Ok(top.into_iter().chain(below).collect())
}

fn statuses(state: JobState) -> Vec<JobStatus> {
    match state {
        JobState::Any => vec![],
        JobState::Failed => vec![JobStatus::Failed],
        JobState::Running => vec![JobStatus::Running],
        JobState::Successful => vec![JobStatus::Successful],
        JobState::Unfinished => JobStatus::ALL.into_iter().filter(|status| !status.is_terminal()).collect(),
    }
}

/// The error of a run, and how it was in other runs.
fn failure(
    store: &Store,
    run: &Run,
    job: &FocusedJob,
    shown: Option<&JobData>,
    tree: &[TreeRun],
) -> Result<FailureData> {
    let others = other_runs(store.runs().failures_since(0)?, run);
    let first = first_error_of(store, job.id, job.attempt, shown)?;
    Ok(FailureData {
        job: job.clone(),
        others,
        last_successful: store.runs().last_successful_before(&run.workflow, run.id)?,
        first_error: first,
        called: match failed_below(tree, run.id) {
            Some(below) => {
                let job = store.runs().focused_jobs(&[below.id])?.remove(&below.id);
                let workflow = below.workflow.clone();
                job.filter(|job| job.status == JobStatus::Failed).map(|job| CalledFailure { workflow, job })
            }
            None => None,
        },
    })
}

/// The other runs that failed as this one did. The groups have the runs at the top of all calls, and only the newest failures.
fn other_runs(failures: Failures, run: &Run) -> OtherRuns {
    let top_id = run.root_run_id.unwrap_or(run.id);
    let is_own = |group: &windlass_engine::store::FailureGroup| {
        group.workflow == run.workflow && group.run_ids.contains(&top_id)
    };
    let Some(group) = failures.groups.into_iter().find(is_own) else { return OtherRuns::Unknown };
    let known_since = (failures.since_ms > 0).then_some(failures.since_ms);
    let run_ids: Vec<i64> = group.run_ids.into_iter().filter(|id| *id != top_id).collect();
    match run_ids.is_empty() {
        true => OtherRuns::None { known_since },
        false => OtherRuns::Some { run_ids, first_at: group.first_at, known_since },
    }
}

/// The number and the text of the first error's line of the last attempt of a job that failed. If its output is shown, the line
/// was found for that.
fn first_error_of(
    store: &Store,
    job_id: i64,
    attempt: i64,
    shown: Option<&JobData>,
) -> Result<Option<(i64, String)>> {
    let log = shown.filter(|shown| shown.job.id == job_id).and_then(|shown| shown.log.as_ref());
    if let Some(log) = log.filter(|log| log.attempt == attempt) {
        return Ok(log.first_error.clone());
    }
    let lines = all_lines(store, job_id, attempt)?;
    let texts: Vec<String> = lines.iter().map(text_of).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    Ok(first_error(&texts).map(|found| (lines[found.at].line, lines[found.at].text.clone())))
}

/// The text in which an error is looked for: what the engine says about an attempt is none of its output.
fn text_of(line: &LogLine) -> String {
    match line.stream {
        LogStream::Engine => String::new(),
        LogStream::Stdout | LogStream::Stderr => crate::pages::escape::without_terminal_sequences(&line.text),
    }
}

/// The lines of an attempt from its beginning, up to a bound.
fn all_lines(store: &Store, job_id: i64, attempt: i64) -> Result<Vec<LogLine>> {
    let mut lines: Vec<LogLine> = Vec::new();
    let mut line = 0;
    while (lines.len() as i64) < LINES_READ_MAX {
        let position = LogPosition { job_id, attempt, line };
        let read = store.logs().after(position, LINES_OF_READ)?;
        let count = read.len() as i64;
        let own = read.into_iter().take_while(|line| line.attempt == attempt);
        let before = lines.len() as i64;
        lines.extend(own);
        match lines.last() {
            Some(last) if lines.len() as i64 - before == LINES_OF_READ && count == LINES_OF_READ => {
                line = last.line;
            }
            Some(_) | None => break,
        }
    }
    Ok(lines)
}

fn job(
    store: &Store,
    run: Option<&Run>,
    job_id: i64,
    query: &mut RunQuery,
    sentence: Sentence<'_>,
) -> Result<Option<JobData>> {
    let is_group = |job: &Job| job.kind == GROUP_KIND;
    let job = match store.jobs().get(job_id) {
        Ok(job) if job.run_id == run.map(|run| run.id) => job,
        // An old address of a job that is gone, or of another run.
        Ok(_) | Err(windlass_engine::Error::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    if query.panel == Panel::Log && is_group(&job) {
        // It has no output of its own.
        query.panel = Panel::Items;
    }
    let (mut reasons, mut definition) = (Vec::new(), None);
    let (mut artifacts, mut needs) = (Vec::new(), Vec::new());
    match query.panel {
        Panel::Why => {
            let why = store.jobs().why(job_id)?;
            reasons = why.reasons.iter().map(|reason| sentence(reason, &why.job)).collect();
        }
        Panel::Definition => {
            definition = run.map(|run| definition_of(store, run, &job)).transpose()?.flatten();
        }
        Panel::Data => {
            if let Some(run) = run {
                let kept = store.runs().artifacts(run.id, job.name.as_deref())?;
                artifacts = kept.into_iter().map(|kept| kept.artifact).collect();
            }
            needs = store.jobs().parents(job_id)?.into_iter().filter_map(|parent| parent.name).collect();
        }
        // What has not started has no output yet, so its place says why.
        Panel::Log if job.attempt == 0 => {
            let why = store.jobs().why(job_id)?;
            reasons = why.reasons.iter().map(|reason| sentence(reason, &why.job)).collect();
        }
        Panel::Log | Panel::Attempts | Panel::Items => {}
    }
    let items = match (query.panel, run) {
        (Panel::Items, Some(run)) if is_group(&job) => Some(items(store, run.id, job_id, query.items)?),
        (Panel::Items, Some(_) | None)
        | (Panel::Log | Panel::Attempts | Panel::Data | Panel::Why | Panel::Definition, _) => None,
    };
    Ok(Some(JobData {
        attempts: store.jobs().attempts(job_id)?,
        approval: match job.waits_for {
            Some(WaitsFor::Approval) => store.jobs().open_approval(job_id)?,
            Some(WaitsFor::Slot | WaitsFor::Decision | WaitsFor::Event | WaitsFor::Items | WaitsFor::Run)
            | None => None,
        },
        log: match query.panel {
            Panel::Log => Some(log(store, run, &job, query)?),
            Panel::Attempts | Panel::Data | Panel::Why | Panel::Definition | Panel::Items => None,
        },
        started_run: store.runs().started_by(job_id, job.attempt)?,
        is_group: is_group(&job),
        items,
        reasons,
        definition,
        artifacts,
        needs,
        job,
    }))
}

/// The part of the pinned definition that a job has, as text.
fn definition_of(store: &Store, run: &Run, job: &Job) -> Result<Option<String>> {
    let workflow = store.runs().workflow(run.id)?;
    let name = job.name.as_deref().unwrap_or_default();
    let name = name.split_once('[').map_or(name, |(group, _)| group);
    Ok(crate::pages::definition::text::job(&workflow, name))
}

/// A window of the items of a job with `for_each`.
fn items(store: &Store, run_id: i64, group_id: i64, offset: i64) -> Result<JobsOfRun> {
    let window = JobWindow {
        statuses: vec![],
        name: None,
        part: JobPart::ItemsOf(group_id),
        order: JobOrder::Attention,
        offset,
        limit: ITEMS_OF_WINDOW,
    };
    store.jobs().window(run_id, &window)
}

fn log(store: &Store, run: Option<&Run>, job: &Job, query: &RunQuery) -> Result<LogData> {
    let attempt = query.attempt.unwrap_or(job.attempt).clamp(0, job.attempt.max(0));
    if attempt == 0 {
        return Ok(LogData::default());
    }
    let last_line = store.logs().last(job.id, attempt, 1)?.last().map_or(0, |line| line.line);
    let failed = job.status != JobStatus::Successful || attempt < job.attempt;
    let (mut first, mut hits) = (None, Vec::new());
    if query.find.is_some() || failed {
        let lines = all_lines(store, job.id, attempt)?;
        let texts: Vec<String> = lines.iter().map(text_of).collect();
        if failed {
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            first = first_error(&texts).map(|found| (lines[found.at].line, lines[found.at].text.clone()));
        }
        if let Some(find) = &query.find {
            let find = find.to_ascii_lowercase();
            let has_hit = |line: &&LogLine| {
                let text = crate::pages::escape::without_terminal_sequences(&line.text);
                text.to_ascii_lowercase().contains(&find)
            };
            hits = lines.iter().filter(has_hit).map(|line| line.line).take(HITS_MAX).collect();
        }
    }
    let has_failed = run.map_or(job.status == JobStatus::Failed, |run| run.status == RunStatus::Failed);
    // The next hit; behind the last one it is the first one.
    let hit = hits.iter().copied().find(|hit| query.line.is_some_and(|line| *hit >= line));
    let asked_line = hit.or(hits.first().copied()).or(query.line);
    let is_open = job.status == JobStatus::Running && attempt == job.attempt;
    let of_end = last_line - LINES_OF_WINDOW + 1;
    let from = match (query.from, asked_line, &first, is_open) {
        (Some(from), ..) => from.min(of_end),
        (None, Some(line), ..) => line.min(last_line) - LINES_BEFORE_ERROR,
        (None, None, Some((error, _text)), _) => error - LINES_BEFORE_ERROR,
        // What runs is read at its end.
        (None, None, None, true) => of_end,
        (None, None, None, false) if has_failed => of_end,
        (None, None, None, false) => 1,
    };
    let position = LogPosition { job_id: job.id, attempt, line: from.max(1) - 1 };
    let mut lines = store.logs().after(position, LINES_OF_WINDOW)?;
    lines.retain(|line| line.attempt == attempt);
    Ok(LogData {
        attempt,
        attempts: job.attempt,
        lines,
        last_line,
        first_error: first,
        asked_line,
        found: query.find.clone().map(|find| (find, hits)),
        is_open,
    })
}
