//! Writing the rows of a run for its next definition.

use super::prepared::{PreparedRun, to_json};
use super::submit::{NewRun, RunStart, insert_edges, insert_job_rows, insert_tags, job_row};
use crate::decide::next_definition::Continuation;
use crate::store::{artifacts, json_ids};
use windlass_db::error::{Error, Result};
use windlass_db::{Connection, UpdateReturning, Value, all, all_updated, one};
use windlass_workflow::limits;

/// Rows in one statement.
const CHUNK: usize = 2_000;

/// The definition that is written, and its run.
pub(super) struct JobWriter<'w> {
    pub(super) run_id: i64,
    pub(super) run: &'w NewRun,
    pub(super) prepared: &'w PreparedRun,
    pub(super) now_ms: i64,
}

/// Deletes jobs with their items, their output and their attempts.
pub(super) fn delete_jobs(connection: &mut dyn Connection, job_ids: &[i64]) -> Result<()> {
    if job_ids.is_empty() {
        return Ok(());
    }
    let ids = json_ids(job_ids);
    let items = all(
        connection,
        "SELECT id FROM jobs WHERE group_id IS NOT NULL AND group_id {in $1}",
        &[(&ids).into()],
        |row| row.integer(0),
    )?;
    let all_ids: Vec<i64> = job_ids.iter().chain(&items).copied().collect();
    artifacts::delete(connection, &all_ids)?;
    connection.execute("DELETE FROM jobs WHERE id {in $1}", &[(&json_ids(&all_ids)).into()])?;
    Ok(())
}

/// Writes the columns that come from the definition. What the job did stays. A job that repeats and has succeeded keeps the
/// number of its rounds.
static WRITE_JOBS: UpdateReturning = UpdateReturning {
    table: "jobs",
    set: &[
        ("kind", "news.kind"),
        ("queue", "news.queue"),
        ("priority", "news.priority"),
        ("payload", "news.payload"),
        ("max_attempts", "news.max_attempts"),
        ("max_interruptions", "news.max_interruptions"),
        ("on_interrupt", "news.on_interrupt"),
        ("allow_failure", "news.allow_failure"),
        (
            "retry",
            "CASE WHEN jobs.status = 'SUCCESSFUL' AND jobs.retry LIKE '%\"rounds\":%' THEN jobs.retry ELSE news.retry END",
        ),
        ("timeout_ms", "news.timeout_ms"),
        ("requires", "news.requires"),
        ("code_version", "news.code_version"),
        ("concurrency_key", "news.concurrency_key"),
        ("concurrency_limit", "news.concurrency_limit"),
        ("on_full", "news.on_full"),
        ("join_rule", "news.join_rule"),
        ("control", "news.control"),
        ("phase", "news.phase"),
        ("handles", "news.handles"),
        ("updated_at", "$2"),
    ],
    from: Some(
        "{rows $1: id integer, kind text, name text, queue text, priority integer, payload text, max_attempts integer,
                   max_interruptions integer, on_interrupt text, allow_failure integer, retry text, timeout_ms integer,
                   blocked_by integer, status text, requires text, code_version integer, concurrency_key text,
                   concurrency_limit integer, on_full text, token integer, join_rule text, control text, phase integer,
                   handles text} AS news",
    ),
    condition: "{by jobs.id = news.id}",
    returning: &["jobs.id"],
};

impl JobWriter<'_> {
    /// Inserts and writes jobs, and the edges between all jobs. Returns the ids of the new ones.
    pub(super) fn write(
        &self,
        connection: &mut dyn Connection,
        continuation: &Continuation,
    ) -> Result<Vec<i64>> {
        let jobs = |index: usize| (&self.run.workflow.jobs[index], &self.prepared.jobs[index]);
        for chunk in continuation.updated.chunks(CHUNK) {
            let rows: Vec<[Value<'_>; 24]> = chunk
                .iter()
                .map(|(id, index)| {
                    let (job, prepared) = jobs(*index);
                    with_id(*id, job_row(job, prepared, RunStart::AtOnce))
                })
                .collect();
            let parameters = [Value::rows(&rows), self.now_ms.into()];
            all_updated(connection, &WRITE_JOBS, &parameters, |row| row.integer(0))?;
        }
        let updated: Vec<i64> = continuation.updated.iter().map(|(id, _index)| *id).collect();
        self.write_items(connection, &updated)?;
        let rows: Vec<[Value<'_>; 23]> = continuation
            .inserted
            .iter()
            .map(|index| {
                let (job, prepared) = jobs(*index);
                // Reopening the run decides when it starts.
                job_row(job, prepared, RunStart::AtOnce)
            })
            .collect();
        let inserted = insert_job_rows(connection, self.run_id, None, &rows, self.now_ms)?;
        if continuation.has_other_edges {
            self.write_edges(connection)?;
        }
        Ok(inserted)
    }

    /// The items of groups are executed as their groups say.
    fn write_items(&self, connection: &mut dyn Connection, updated: &[i64]) -> Result<()> {
        connection.execute(
            "UPDATE jobs
             SET (queue, priority, payload, max_attempts, max_interruptions, on_interrupt, allow_failure, timeout_ms, requires,
                  code_version, concurrency_key, concurrency_limit, on_full, retry)
                 = (SELECT groups.queue, groups.priority, groups.payload, groups.max_attempts, groups.max_interruptions,
                           groups.on_interrupt, groups.allow_failure, groups.timeout_ms, groups.requires, groups.code_version,
                           groups.concurrency_key, groups.concurrency_limit, groups.on_full,
                           CASE WHEN jobs.status = 'SUCCESSFUL' THEN jobs.retry ELSE groups.retry END
                    FROM jobs AS groups WHERE groups.id = jobs.group_id)
             WHERE group_id IS NOT NULL AND group_id {in $1}",
            &[(&json_ids(updated)).into()],
        )?;
        Ok(())
    }

    fn write_edges(&self, connection: &mut dyn Connection) -> Result<()> {
        connection.execute(
            "DELETE FROM job_dependencies WHERE child_id {in SELECT id FROM jobs WHERE run_id = $1}",
            &[self.run_id.into()],
        )?;
        let found = all(
            connection,
            "SELECT name, id FROM jobs WHERE run_id = $1 AND {guard group_id IS NULL}",
            &[self.run_id.into()],
            |row| Ok((row.lossy_text(0)?.unwrap_or_default(), row.integer(1)?)),
        )?;
        let by_name: std::collections::HashMap<String, i64> = found.into_iter().collect();
        let id_of = |name: &String| {
            let missing =
                || Error::internal("retry a run", format!("run {} has no job `{name}`", self.run_id));
            by_name.get(name).copied().ok_or_else(missing)
        };
        let workflow = &self.run.workflow;
        let ids = workflow.jobs.iter().map(|job| id_of(&job.name)).collect::<Result<Vec<i64>>>()?;
        insert_edges(connection, workflow, &ids)
    }
}

fn with_id<'v>(id: i64, row: [Value<'v>; 23]) -> [Value<'v>; 24] {
    let mut with_id = [Value::Null; 24];
    with_id[0] = id.into();
    with_id[1..].copy_from_slice(&row);
    with_id
}

/// Writes what the run's own row and its tags have of the definition. Its counters of unfinished jobs are written when it
/// is reopened.
pub(super) fn write_run(
    connection: &mut dyn Connection,
    writer: &JobWriter<'_>,
    workflow_id: i64,
) -> Result<()> {
    let JobWriter { run_id, run, prepared, now_ms } = writer;
    let concurrency = prepared.concurrency.as_ref();
    let total = one(
        connection,
        "UPDATE runs
         SET workflow_id = $2, definition = definition + 1, params = $3, env = $4, timeout_ms = $5, has_handlers = $6,
             total_jobs = (SELECT count(*) FROM jobs WHERE jobs.run_id = runs.id), updated_at = $7,
             concurrency_key = $8, concurrency_limit = $9, on_full = $10
         WHERE id = $1
         RETURNING total_jobs",
        &[
            (*run_id).into(),
            workflow_id.into(),
            (&to_json(&run.params)?).into(),
            (&to_json(&run.workflow.env)?).into(),
            run.workflow.timeout_ms.into(),
            i64::from(run.workflow.jobs.iter().any(|job| job.handler.is_some())).into(),
            (*now_ms).into(),
            concurrency.map(|concurrency| concurrency.key.as_str()).into(),
            concurrency.map(|concurrency| concurrency.limit).into(),
            concurrency.map(|concurrency| concurrency.on_full).into(),
        ],
        |row| row.integer(0),
    )?;
    if total > limits::JOBS as i64 {
        let reason = format!("it would have {total} jobs with its items, and the limit is {}", limits::JOBS);
        return Err(Error::conflict(format!("retry run {run_id}"), reason));
    }
    connection.execute("DELETE FROM run_tags WHERE run_id = $1", &[(*run_id).into()])?;
    insert_tags(connection, *run_id, &run.workflow.tags)?;
    let Some(keep) = run.workflow.workspace else { return Ok(()) };
    connection.execute(
        "INSERT INTO workspaces (run_id, keep) VALUES ($1, $2)
         ON CONFLICT (run_id) DO UPDATE SET keep = excluded.keep",
        &[(*run_id).into(), keep.as_str().into()],
    )?;
    Ok(())
}
