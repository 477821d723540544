//! Artifacts: the rows of the files that jobs keep. `crate::files` has their contents.

use std::collections::HashSet;

use windlass_db::error::Result;
use windlass_db::{Connection, Row, Value, all};

use crate::files::Named;
use crate::store::check::Problem;
use crate::store::finish::Finish;
use crate::store::{ForScheduler, Runs, Upkeep, json_ids};

/// Rows in one statement, and contents that are looked at together.
const CHUNK: usize = 500;

/// A file that a job keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artifact {
    /// Its path below the folder of the job.
    pub path: String,
    /// The SHA-256 of its content, in hexadecimal.
    pub hash: String,
    /// Its size.
    pub bytes: i64,
}

/// An artifact, with its job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptArtifact {
    /// The job.
    pub job_id: i64,
    /// Its name in the run.
    pub job: String,
    /// The artifact.
    pub artifact: Artifact,
}

impl Runs<'_> {
    /// The artifacts of a run: those of one job and its items, or of all jobs. They are sorted by job and path.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn artifacts(&self, run_id: i64, job: Option<&str>) -> Result<Vec<KeptArtifact>> {
        self.store.read(|connection| match job {
            None => all(
                connection,
                "SELECT jobs.id, jobs.name, artifacts.path, artifacts.hash, artifacts.bytes
                 FROM jobs JOIN artifacts ON {by artifacts.job_id = jobs.id}
                 WHERE jobs.run_id = $1 ORDER BY jobs.id, artifacts.path",
                &[run_id.into()],
                read,
            ),
            Some(job) => all(
                connection,
                "SELECT jobs.id, jobs.name, artifacts.path, artifacts.hash, artifacts.bytes
                 FROM jobs JOIN artifacts ON {by artifacts.job_id = jobs.id}
                 WHERE jobs.id {in SELECT id FROM jobs WHERE run_id = $1 AND name = CAST($2 AS TEXT)
                                   UNION ALL
                                   SELECT item.id FROM jobs AS item
                                   WHERE item.group_id IS NOT NULL
                                     AND item.group_id = (SELECT id FROM jobs AS job_group
                                                          WHERE job_group.run_id = $1
                                                            AND job_group.name = CAST($2 AS TEXT))}
                 ORDER BY jobs.id, artifacts.path",
                &[run_id.into(), job.into()],
                read,
            ),
        })
    }
}

fn read(row: &dyn Row) -> Result<KeptArtifact> {
    let artifact = Artifact { path: row.text(2)?, hash: row.text(3)?, bytes: row.integer(4)? };
    Ok(KeptArtifact { job_id: row.integer(0)?, job: row.lossy_text(1)?.unwrap_or_default(), artifact })
}

/// Writes the artifacts of the attempts that ended.
pub(super) fn replace(connection: &mut dyn Connection, finishes: &[&Finish]) -> Result<()> {
    let rows: Vec<[Value<'_>; 4]> = finishes
        .iter()
        .flat_map(|finish| {
            finish.artifacts.iter().map(|artifact| {
                [
                    finish.job_id.into(),
                    (&artifact.path).into(),
                    (&artifact.hash).into(),
                    artifact.bytes.into(),
                ]
            })
        })
        .collect();
    for rows in rows.chunks(CHUNK) {
        connection.execute(
            "INSERT INTO artifacts (job_id, path, hash, bytes)
             SELECT job_id, path, hash, bytes
             FROM {rows $1: job_id integer, path text, hash text, bytes integer} AS news
             WHERE true
             ON CONFLICT (job_id, path) DO UPDATE SET hash = excluded.hash, bytes = excluded.bytes",
            &[Value::rows(rows)],
        )?;
    }
    Ok(())
}

/// Deletes the artifacts of jobs that are executed again.
pub(super) fn delete(connection: &mut dyn Connection, job_ids: &[i64]) -> Result<()> {
    connection.execute("DELETE FROM artifacts WHERE job_id {in $1}", &[(&json_ids(job_ids)).into()])?;
    Ok(())
}

/// Deletes the artifacts of the handlers of a run.
pub(super) fn delete_of_handlers(connection: &mut dyn Connection, run_id: i64) -> Result<()> {
    connection.execute(
        "DELETE FROM artifacts WHERE job_id {in SELECT id FROM jobs WHERE run_id = $1 AND phase > 0}",
        &[run_id.into()],
    )?;
    Ok(())
}

/// Which of these hashes a row names.
fn named(connection: &mut dyn Connection, hashes: &[String]) -> Result<HashSet<String>> {
    let rows: Vec<[Value<'_>; 1]> = hashes.iter().map(|hash| [hash.into()]).collect();
    let mut named = HashSet::new();
    for rows in rows.chunks(CHUNK) {
        named.extend(all(
            connection,
            "SELECT candidates.hash FROM {rows $1: hash text} AS candidates
             WHERE EXISTS (SELECT 1 FROM artifacts WHERE artifacts.hash = candidates.hash)",
            &[Value::rows(rows)],
            |row| row.text(0),
        )?);
    }
    Ok(named)
}

impl ForScheduler<'_> {
    /// Removes contents that no row names, in one of the 256 folders. Returns what could not be removed.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn remove_unnamed_contents(&self, folder: u8) -> Result<Vec<String>> {
        let Some(files) = self.store.files() else { return Ok(Vec::new()) };
        let now_ms = self.store.clock.now_ms();
        let mut failures = Vec::new();
        let mut note = |done: std::io::Result<()>| {
            failures.extend(done.err().map(|error| format!("{}: {error}", files.root().display())));
        };
        note(files.remove_unfinished(now_ms));
        match files.old_contents(folder, now_ms) {
            Ok(old) => {
                let named = self.store.read(|connection| named(connection, &old))?;
                old.iter().filter(|hash| !named.contains(*hash)).for_each(|hash| note(files.take_away(hash)));
            }
            Err(error) => note(Err(error)),
        }
        match files.leaving() {
            Ok(leaving) => {
                let named = self.store.read(|connection| named(connection, &leaving))?;
                for hash in leaving {
                    let is_named = if named.contains(&hash) { Named::Yes } else { Named::No };
                    note(files.put_back_or_remove(&hash, is_named, now_ms));
                }
            }
            Err(error) => note(Err(error)),
        }
        Ok(failures)
    }
}

/// How many damaged artifacts are shown.
const SHOWN_MAX: usize = 20;

impl Upkeep<'_> {
    /// Compares the rows of artifacts with the sizes of their contents.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn check_files(&self) -> Result<Vec<Problem>> {
        let mut problems = Vec::new();
        let mut after = (i64::MIN, String::new());
        loop {
            let rows = self.store.read(|connection| {
                all(
                    connection,
                    "SELECT job_id, path, hash, bytes FROM artifacts
                     WHERE (job_id, path) > ($1, CAST($2 AS TEXT)) ORDER BY job_id, path LIMIT 500",
                    &[after.0.into(), (&after.1).into()],
                    |row| Ok((row.integer(0)?, row.text(1)?, row.text(2)?, row.integer(3)?)),
                )
            })?;
            for (job_id, path, hash, bytes) in &rows {
                if let Some(detail) = self.damage(hash, *bytes) {
                    problems.push(Problem {
                        check: "the content of an artifact is there",
                        detail: format!("artifact {path} of job j{job_id}: {detail}"),
                        next_step: "restore the folder for files from a copy, or retry the run from that job",
                    });
                }
            }
            match rows.last() {
                Some((job_id, path, _, _)) if rows.len() == CHUNK && problems.len() < SHOWN_MAX => {
                    after = (*job_id, path.clone());
                }
                Some(_) | None => return Ok(problems),
            }
        }
    }

    fn damage(&self, hash: &str, bytes: i64) -> Option<String> {
        let Some(files) = self.store.files() else {
            return Some("the folder for files is not known here".to_owned());
        };
        match files.content_bytes(hash) {
            Ok(Some(found)) if i64::try_from(found) == Ok(bytes) => None,
            Ok(Some(found)) => Some(format!("{hash} has {found} bytes, and had {bytes}")),
            Ok(None) => Some(format!("{hash} is not in {}", files.root().display())),
            Err(error) => Some(format!("{hash}: {error}")),
        }
    }
}
