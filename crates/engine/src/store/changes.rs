//! What has changed, for pages that are open: one number for each thing that a page shows, which differs when the thing does.
//! They are read in one snapshot, for all readers together.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::store::access::CredentialKind;
use crate::store::{Upkeep, json_ids, json_list};
use windlass_db::error::Result;
use windlass_db::{Query, Row, Statement, Value};

/// The newest runs that are looked at, and as many unfinished ones.
const RUNS_MAX: i64 = 200;
/// The most rows of any other sort that are looked at.
const ROWS_MAX: i64 = 1_000;

/// What is looked at besides lists.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Watched {
    /// The runs whose pages are open.
    pub run_ids: BTreeSet<i64>,
    /// The jobs whose output is followed.
    pub job_ids: BTreeSet<i64>,
    /// What the readers have shown: the sort and the hash of each secret.
    pub callers: BTreeSet<(CredentialKind, String)>,
}

/// A number for each thing. An equal number means that the thing is the same.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fingerprints {
    /// The list of runs.
    pub runs: u64,
    /// Queues, and how many jobs wait and run.
    pub queues: u64,
    /// Registered workflows and schedules.
    pub workflows: u64,
    /// Workers, rules of queues, schedules, and changes by people.
    pub system: u64,
    /// Each run that is looked at, and its jobs. 0 if the run does not exist.
    pub of_runs: BTreeMap<i64, u64>,
    /// How far the output of each job is. A job that does not exist is left out.
    pub outputs: BTreeMap<i64, OutputState>,
    /// Those who may still read.
    pub valid_callers: BTreeSet<(CredentialKind, String)>,
}

/// How far the output of a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputState {
    /// The last attempt; 0 if there was none.
    pub attempt: i64,
    /// The last line of this attempt; 0 if there is none.
    pub line: i64,
    /// Whether the job is over, so that it writes no more.
    pub is_over: bool,
}

/// A statement about a list: it, its parameter if it has one, and how many columns its rows have.
type OfLists = (&'static str, Option<i64>, usize);

const OF_RUNS: [OfLists; 6] = [
    (
        "SELECT id, status, unfinished_jobs, failed_jobs, updated_at FROM runs
         WHERE id > (SELECT max(id) FROM runs) - $1 ORDER BY id LIMIT $1",
        Some(RUNS_MAX),
        5,
    ),
    (
        "SELECT id, status, unfinished_jobs, failed_jobs, updated_at FROM runs
         WHERE status IN ('PENDING', 'RUNNING') ORDER BY id DESC LIMIT $1",
        Some(RUNS_MAX),
        5,
    ),
    ("SELECT max(finished_at) FROM runs WHERE finished_at IS NOT NULL AND parent_job_id IS NULL", None, 1),
    ("SELECT max(finished_at) FROM jobs WHERE finished_at IS NOT NULL AND status = 'FAILED'", None, 1),
    (
        "SELECT worker_id, id FROM jobs WHERE worker_id IS NOT NULL AND status = 'RUNNING' ORDER BY worker_id, id LIMIT $1",
        Some(ROWS_MAX),
        2,
    ),
    (
        "SELECT waits_for, id FROM jobs WHERE waits_for IS NOT NULL ORDER BY waits_for, id LIMIT $1",
        Some(ROWS_MAX),
        2,
    ),
];
const OF_QUEUE_RULES: [OfLists; 1] = [(
    "SELECT name, paused_at, max_running, rate_jobs, rate_interval_ms, fifo, turn_job_id
     FROM queues ORDER BY name LIMIT $1",
    Some(ROWS_MAX),
    7,
)];
const OF_QUEUED_JOBS: [OfLists; 2] = [
    (
        "SELECT count(*) FROM (SELECT id FROM jobs WHERE status = 'PENDING' AND kind > ''
                               ORDER BY queue, kind LIMIT $1) AS counted",
        Some(ROWS_MAX),
        1,
    ),
    ("SELECT max(id) FROM jobs", None, 1),
];
const OF_WORKFLOWS: [OfLists; 2] = [
    (
        "SELECT name, version, paused_at, updated_at FROM registrations ORDER BY name LIMIT $1",
        Some(ROWS_MAX),
        4,
    ),
    (
        "SELECT id, paused_at, next_at, updated_at, removed_at FROM schedules ORDER BY id LIMIT $1",
        Some(ROWS_MAX),
        5,
    ),
];
const OF_SYSTEM: [OfLists; 2] = [
    (
        "SELECT id, status, shortage FROM workers WHERE status IN ('ALIVE', 'DRAINING') ORDER BY id LIMIT $1",
        Some(ROWS_MAX),
        3,
    ),
    ("SELECT max(id) FROM audit", None, 1),
];

const RUN: &str = "SELECT id, status, unfinished_jobs, failed_jobs, updated_at FROM runs
    WHERE id {in $1} ORDER BY id";
const JOBS_OF_RUN: &str =
    "SELECT run_id, status, count(*), CAST(sum(attempt) AS {integer}), max(updated_at) FROM jobs
    WHERE run_id {in $1} GROUP BY run_id, status ORDER BY run_id, status";
const OUTPUTS: &str = "SELECT id, attempt, finished_at,
        (SELECT line FROM job_logs WHERE job_id = jobs.id AND job_logs.attempt = jobs.attempt
         ORDER BY line DESC LIMIT 1)
    FROM jobs WHERE id {in $1}";
const VALID_TOKENS: &str = "SELECT hash FROM tokens
    WHERE hash IN (SELECT value FROM {texts $1} AS shown) AND revoked_at IS NULL
      AND (expires_at IS NULL OR expires_at > $2)";
const VALID_SESSIONS: &str = "SELECT sessions.hash
    FROM sessions LEFT JOIN tokens ON tokens.id = sessions.token_id
    WHERE sessions.hash IN (SELECT value FROM {texts $1} AS shown) AND sessions.kind = 'session'
      AND sessions.expires_at > $2 AND tokens.revoked_at IS NULL
      AND (tokens.expires_at IS NULL OR tokens.expires_at > $2)";

/// What was read.
#[derive(Default)]
struct Found {
    /// A number for each group of statements about lists.
    lists: [DefaultHasher; 5],
    of_runs: BTreeMap<i64, DefaultHasher>,
    outputs: BTreeMap<i64, OutputState>,
    valid_callers: BTreeSet<(CredentialKind, String)>,
}

/// What the rows of a statement are for.
#[derive(Clone, Copy)]
enum Target {
    /// A group of lists, and how many columns a row has.
    List(usize, usize),
    /// The run that the first column names.
    Run,
    Output,
    Caller(CredentialKind),
}

impl Upkeep<'_> {
    /// Reads the fingerprints, in one snapshot and one round trip. The work has a bound, but for the jobs of the runs that are
    /// looked at.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn fingerprints(&self, watched: &Watched) -> Result<Fingerprints> {
        let now_ms = self.store.clock.now_ms();
        let run_ids = json_ids(&watched.run_ids.iter().copied().collect::<Vec<i64>>());
        let job_ids = json_ids(&watched.job_ids.iter().copied().collect::<Vec<i64>>());
        let (tokens, sessions) =
            (hashes(watched, CredentialKind::Token)?, hashes(watched, CredentialKind::Session)?);
        let mut asked: Vec<(&'static str, Vec<Value<'_>>, Target)> = Vec::new();
        let groups = [&OF_RUNS[..], &OF_QUEUE_RULES, &OF_QUEUED_JOBS, &OF_WORKFLOWS, &OF_SYSTEM];
        for (group, statements) in groups.iter().enumerate() {
            for (sql, bound, columns) in *statements {
                let parameters = bound.iter().map(|bound| (*bound).into()).collect();
                asked.push((sql, parameters, Target::List(group, *columns)));
            }
        }
        if !watched.run_ids.is_empty() {
            asked.extend([RUN, JOBS_OF_RUN].map(|sql| (sql, vec![(&run_ids).into()], Target::Run)));
        }
        if !watched.job_ids.is_empty() {
            asked.push((OUTPUTS, vec![(&job_ids).into()], Target::Output));
        }
        for (kind, hashes, sql) in [
            (CredentialKind::Token, &tokens, VALID_TOKENS),
            (CredentialKind::Session, &sessions, VALID_SESSIONS),
        ] {
            if let Some(hashes) = hashes {
                asked.push((sql, vec![hashes.into(), now_ms.into()], Target::Caller(kind)));
            }
        }
        let found = self.store.read(|connection| {
            let found = std::cell::RefCell::new(Found::default());
            let mut readers: Vec<_> = asked
                .iter()
                .map(|(_sql, _parameters, target)| |row: &dyn Row| found.borrow_mut().add(*target, row))
                .collect();
            let mut queries: Vec<Query<'_>> = asked
                .iter()
                .zip(&mut readers)
                .map(|((sql, parameters, _target), on_row)| Query {
                    statement: Statement::Plain(sql),
                    parameters,
                    on_row,
                })
                .collect();
            connection.query_all(&mut queries)?;
            drop(queries);
            drop(readers);
            Ok(found.into_inner())
        })?;
        Ok(found.fingerprints(&watched.run_ids))
    }
}

/// The hashes of one sort as a JSON list; `None` if there are none.
fn hashes(watched: &Watched, kind: CredentialKind) -> Result<Option<String>> {
    let of_kind: Vec<&str> = watched
        .callers
        .iter()
        .filter(|(known, _hash)| *known == kind)
        .map(|(_kind, hash)| hash.as_str())
        .collect();
    if of_kind.is_empty() {
        return Ok(None);
    }
    json_list("look for changes", &of_kind).map(Some)
}

impl Found {
    fn add(&mut self, target: Target, row: &dyn Row) -> Result<()> {
        match target {
            Target::List(group, columns) => add_row(&mut self.lists[group], row, columns),
            Target::Run => add_row(self.of_runs.entry(row.integer(0)?).or_default(), row, 5),
            Target::Output => {
                let state = OutputState {
                    attempt: row.integer(1)?,
                    line: row.optional_integer(3)?.unwrap_or(0),
                    is_over: row.optional_integer(2)?.is_some(),
                };
                self.outputs.insert(row.integer(0)?, state);
                Ok(())
            }
            Target::Caller(kind) => {
                self.valid_callers.insert((kind, row.text(0)?));
                Ok(())
            }
        }
    }

    fn fingerprints(self, run_ids: &BTreeSet<i64>) -> Fingerprints {
        let [runs, queue_rules, queued_jobs, workflows, system] = self.lists.each_ref().map(Hasher::finish);
        Fingerprints {
            runs,
            // What runs and waits is a part of the list of runs.
            queues: both(both(queue_rules, queued_jobs), runs),
            workflows,
            // Jobs come and go all the time, and the checks of the system are not made for each of them.
            system: both(system, both(queue_rules, workflows)),
            of_runs: run_ids.iter().map(|id| (*id, self.of_runs.get(id).map_or(0, Hasher::finish))).collect(),
            outputs: self.outputs,
            valid_callers: self.valid_callers,
        }
    }
}

fn both(left: u64, right: u64) -> u64 {
    let mut hasher = DefaultHasher::new();
    (left, right).hash(&mut hasher);
    hasher.finish()
}

/// Adds the values of a row.
fn add_row(hasher: &mut DefaultHasher, row: &dyn Row, columns: usize) -> Result<()> {
    for column in 0..columns {
        match row.value(column)? {
            Value::Null => 0_u8.hash(hasher),
            Value::Integer(number) => (1_u8, number).hash(hasher),
            Value::Real(number) => (2_u8, number.to_bits()).hash(hasher),
            Value::Text(text) => (3_u8, text).hash(hasher),
            Value::Rows { .. } => {}
        }
    }
    Ok(())
}
