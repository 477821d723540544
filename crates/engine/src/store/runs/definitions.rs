//! The definitions of a run, in order, and the files from which they came.

use super::prepared::to_json;
use crate::status::RunSource;
use crate::store::Runs;
use windlass_db::error::{Error, Result};
use windlass_db::{Connection, Row, all, first};

/// The file from which a definition came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefinitionFile {
    /// As a person named it.
    pub named: String,
    /// Its absolute path.
    pub path: String,
    /// The SHA-256 of its text and of the files that it includes, in hexadecimal.
    pub hash: String,
    /// The part of the file that the run has, if it does not have the whole.
    pub only: Option<OnlyJobs>,
}

/// The jobs to which a workflow was reduced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OnlyJobs {
    /// Their names.
    pub jobs: Vec<String>,
    /// Whether the jobs that they need were kept.
    pub with_upstream: bool,
}

/// What a person called that gave a run its definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefinitionVerb {
    /// A submission.
    Submit,
    /// `windlass run`.
    Run,
    /// `windlass rerun`: the definition of another run.
    Rerun,
    /// A retry, with the next definition.
    Retry,
}

impl DefinitionVerb {
    const ALL: [DefinitionVerb; 4] =
        [DefinitionVerb::Submit, DefinitionVerb::Run, DefinitionVerb::Rerun, DefinitionVerb::Retry];

    /// The word in the tables and in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            DefinitionVerb::Submit => "submit",
            DefinitionVerb::Run => "run",
            DefinitionVerb::Rerun => "rerun",
            DefinitionVerb::Retry => "retry",
        }
    }
}

/// Who gave a run its definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefinitionOrigin {
    /// A person, with this verb.
    Verb(DefinitionVerb),
    /// A schedule or a trigger.
    Source(RunSource),
    /// The job that called the workflow.
    Call,
}

impl DefinitionOrigin {
    fn parse(text: &str) -> Option<DefinitionOrigin> {
        let verb = DefinitionVerb::ALL.into_iter().find(|verb| verb.as_str() == text);
        verb.map(DefinitionOrigin::Verb).or_else(|| RunSource::parse(text).map(DefinitionOrigin::Source))
    }

    /// The word in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            DefinitionOrigin::Verb(verb) => verb.as_str(),
            DefinitionOrigin::Source(source) => source.as_str(),
            DefinitionOrigin::Call => "call",
        }
    }
}

/// A definition that a run has or had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunDefinition {
    /// Its place among the definitions of the run, from 1.
    pub number: i64,
    /// The row of `workflows` with its content.
    pub workflow_id: i64,
    /// The hash of its content. Comments and the order of keys in a file do not change it.
    pub hash: String,
    /// Who gave it to the run.
    pub origin: DefinitionOrigin,
    /// When the run got it, in milliseconds since the Unix epoch.
    pub pinned_at: i64,
    /// The file from which it came, if it came from one.
    pub file: Option<DefinitionFile>,
    /// The version of the registered workflow that has this content, if one has.
    pub version: Option<i64>,
}

impl Runs<'_> {
    /// The definitions of a run, the first one first. The last one is the definition that it has.
    ///
    /// # Errors
    /// [`Error::NotFound`] and the database's.
    pub fn definitions(&self, run_id: i64) -> Result<Vec<RunDefinition>> {
        self.store.read(|connection| definitions(connection, run_id))
    }
}

pub(super) fn definitions(connection: &mut dyn Connection, run_id: i64) -> Result<Vec<RunDefinition>> {
    let mut found = all(
        connection,
        "SELECT definitions.number, definitions.workflow_id, workflows.hash, definitions.pinned_at,
                (SELECT max(version) FROM registration_versions AS versions
                 WHERE versions.workflow_id = workflows.id AND versions.name = workflows.name),
                definitions.verb, definitions.file, definitions.path, definitions.file_hash, definitions.only_jobs,
                definitions.with_upstream
         FROM run_definitions AS definitions
         JOIN workflows ON {by workflows.id = definitions.workflow_id}
         WHERE definitions.run_id = $1 ORDER BY definitions.number",
        &[run_id.into()],
        read_definition,
    )?;
    if found.is_empty() {
        found.extend(first_definition(connection, run_id)?);
    }
    Ok(found)
}

/// The only definition of a run that came from no file.
fn first_definition(connection: &mut dyn Connection, run_id: i64) -> Result<Option<RunDefinition>> {
    let found = first(
        connection,
        "SELECT runs.definition, workflows.id, workflows.hash, runs.created_at,
                (SELECT max(version) FROM registration_versions AS versions
                 WHERE versions.workflow_id = workflows.id AND versions.name = workflows.name),
                runs.source, runs.parent_job_id
         FROM runs LEFT JOIN workflows ON {by workflows.id = runs.workflow_id}
         WHERE runs.id = $1",
        &[run_id.into()],
        |row| {
            // Another program may have inserted a run without a definition.
            let Some(workflow_id) = row.optional_integer(1)? else { return Ok(None) };
            let source = row.optional_text(5)?.as_deref().and_then(RunSource::parse);
            let origin = match (source, row.optional_integer(6)?) {
                (_, Some(_job_id)) => DefinitionOrigin::Call,
                (Some(source), None) => DefinitionOrigin::Source(source),
                (None, None) => DefinitionOrigin::Verb(DefinitionVerb::Submit),
            };
            Ok(Some(RunDefinition {
                number: row.integer(0)?,
                workflow_id,
                hash: row.text(2)?,
                origin,
                pinned_at: row.integer(3)?,
                file: None,
                version: row.optional_integer(4)?,
            }))
        },
    )?;
    found.ok_or_else(|| Error::not_found(format!("run {run_id}")))
}

fn read_definition(row: &dyn Row) -> Result<RunDefinition> {
    let file = match (row.lossy_text(6)?, row.lossy_text(7)?, row.lossy_text(8)?) {
        (Some(named), Some(path), Some(hash)) => {
            let with_upstream = row.integer(10)? != 0;
            let jobs = row.lossy_text(9)?.and_then(|jobs| serde_json::from_str(&jobs).ok());
            let only = jobs.map(|jobs| OnlyJobs { jobs, with_upstream });
            Some(DefinitionFile { named, path, hash, only })
        }
        (_, _, _) => None,
    };
    Ok(RunDefinition {
        number: row.integer(0)?,
        workflow_id: row.integer(1)?,
        hash: row.text(2)?,
        origin: row.parsed(5, DefinitionOrigin::parse)?,
        pinned_at: row.integer(3)?,
        file,
        version: row.optional_integer(4)?,
    })
}

/// A row to insert.
pub(super) struct NewDefinition<'d> {
    pub(super) run_id: i64,
    pub(super) number: i64,
    pub(super) workflow_id: i64,
    pub(super) verb: DefinitionVerb,
    pub(super) pinned_at: i64,
    pub(super) file: Option<&'d DefinitionFile>,
}

pub(super) fn insert_definition(connection: &mut dyn Connection, new: &NewDefinition<'_>) -> Result<()> {
    let only = new.file.and_then(|file| file.only.as_ref());
    let only_jobs = only.map(|only| to_json(&only.jobs)).transpose()?;
    connection.execute(
        "INSERT INTO run_definitions (run_id, number, workflow_id, verb, pinned_at, file, path, file_hash, only_jobs,
                                      with_upstream)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
        &[
            new.run_id.into(),
            new.number.into(),
            new.workflow_id.into(),
            new.verb.as_str().into(),
            new.pinned_at.into(),
            new.file.map(|file| file.named.as_str()).into(),
            new.file.map(|file| file.path.as_str()).into(),
            new.file.map(|file| file.hash.as_str()).into(),
            (&only_jobs).into(),
            i64::from(only.is_some_and(|only| only.with_upstream)).into(),
        ],
    )?;
    Ok(())
}

/// Inserts the row of the first definition, if the run has none.
pub(super) fn insert_first_definition(connection: &mut dyn Connection, run_id: i64) -> Result<()> {
    connection.execute(
        "INSERT INTO run_definitions (run_id, number, workflow_id, verb, pinned_at)
         SELECT id, definition, workflow_id, coalesce(source, 'submit'), created_at FROM runs
         WHERE id = $1 AND NOT EXISTS (SELECT 1 FROM run_definitions AS known WHERE known.run_id = runs.id)",
        &[run_id.into()],
    )?;
    Ok(())
}
