//! What the verbs about the whole database say, as JSON.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

/// A copy of the database in a file.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Backup")]
pub struct BackupView {
    /// The database that was copied.
    pub database: String,
    /// The new file.
    pub backup: String,
    /// Its size.
    pub bytes: u64,
}

/// A database that was copied into another one.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Copied")]
pub struct CopiedView {
    /// The database that was copied.
    pub from: String,
    /// The database that was filled.
    pub to: String,
    /// How many rows each table has.
    #[schemars(with = "BTreeMap<String, i64>")]
    pub tables: Map<String, Value>,
}

/// A database whose tables are of this version.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Migrated")]
pub struct MigratedView {
    /// The database.
    pub database: String,
    /// The version of its tables.
    pub schema_version: i64,
}

/// What was deleted because it ended long ago.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Pruned")]
pub struct PrunedView {
    /// How many runs.
    pub deleted_runs: i64,
    /// How many jobs, those of the runs included.
    pub deleted_jobs: i64,
}

/// A file whose free pages were returned to the disk.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Vacuumed")]
pub struct VacuumedView {
    /// The file.
    pub database: String,
    /// Its size before.
    pub bytes_before: i64,
    /// Its size.
    pub bytes: i64,
    /// How much of it is free.
    pub free_bytes: i64,
    /// The size of its write-ahead log.
    pub wal_bytes: i64,
}

/// A database that was replaced with a backup.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Restored")]
pub struct RestoredView {
    /// The database.
    pub database: String,
    /// The backup; null with `--fence`.
    pub backup: Option<String>,
    /// How many workers of the backup were fenced.
    pub fenced_workers: i64,
    /// How many schedules were paused.
    pub paused_schedules: i64,
    /// How many jobs were running.
    pub interrupted_jobs: i64,
    /// The names of the first of them.
    pub interrupted: Vec<String>,
    /// How many runs have not ended.
    pub unfinished_runs: i64,
    /// The first of them.
    pub unfinished: Vec<i64>,
    /// Events and ends of runs for which triggers may start runs.
    pub undispatched: i64,
    /// How many jobs the next worker starts.
    pub pending_jobs: i64,
    /// How many jobs wait.
    pub waiting_jobs: i64,
}

/// Whether the rows are consistent.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Check")]
pub struct CheckView {
    /// There are no problems.
    pub ok: bool,
    /// What is inconsistent.
    pub problems: Vec<ProblemView>,
}

/// Something inconsistent.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Problem")]
pub struct ProblemView {
    /// The check that found it.
    pub check: &'static str,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub next_step: &'static str,
}
