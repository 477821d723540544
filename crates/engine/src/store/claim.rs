//! Claiming: who takes which jobs. One statement claims; it never cleans, sweeps or counts.

use std::collections::{HashMap, HashSet};

use windlass_workflow::OnInterrupt;

use super::candidates::{ClaimPosition, Claimable, candidates, claimable, has_claimable, is_for};
use super::claim_snapshot::ClaimSnapshot;
use super::evidence::{AttemptKey, Evidence, attempt_claimed};
use super::finish::{Finish, finish};
use super::limits;
use super::promotion::{Ready, release};
use super::worker_capabilities::WorkerCapabilities;
use super::{Store, json_ids};
use crate::status::JobStatus;
use crate::transition::{Backoff, Outcome, Repeat, RetryState, after_attempt};
use windlass_db::error::Result;
use windlass_db::{Connection, Fate, Reach, Row, Value, all};
use windlass_system::clock::Clock;
use windlass_system::wake_ups::WakeUps;

/// Jobs in one claim at most.
pub const CLAIM_MAX: usize = 2_000;
/// The same where one transaction is written at a time: everybody else waits for it.
const CLAIM_MAX_OF_ONE_WRITER: usize = 1_000;

/// Which jobs a worker takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// Whatever waits in any queue.
    Everything,
    /// Whatever waits in these queues.
    Queues(Vec<String>),
    /// Only the jobs of these runs.
    Runs(Vec<i64>),
}

/// What a worker asks for.
#[derive(Debug, Clone)]
pub struct ClaimRequest {
    /// The worker.
    pub worker_id: i64,
    /// Which jobs.
    pub scope: Scope,
    /// What it can execute.
    pub worker_capabilities: WorkerCapabilities,
    /// How many at most.
    pub limit: usize,
    /// How many of these start at once. The others wait in the worker's memory, and would count as
    /// interrupted if it died: a job that must not be interrupted is never among them.
    pub idle: usize,
}

/// What a claim came to.
#[derive(Debug, Clone, PartialEq)]
pub enum Claims {
    /// The claimed jobs, the most urgent first.
    Jobs(Vec<ClaimedJob>),
    /// The worker is fenced: it owns nothing any more and must register anew.
    Fenced,
}

/// A job that a worker owns.
#[derive(Debug, Clone, PartialEq)]
pub struct ClaimedJob {
    /// Its id.
    pub id: i64,
    /// When it was made, in milliseconds since the Unix epoch.
    pub created_at: i64,
    /// What tells it from other jobs that were made at the same instant.
    pub token: i64,
    /// Its run, unless it stands alone.
    pub run_id: Option<i64>,
    /// Its name in the run.
    pub name: Option<String>,
    /// What executes it.
    pub kind: String,
    /// What it is to do, as JSON.
    pub payload: String,
    /// How long this attempt may take, in milliseconds.
    pub timeout_ms: Option<i64>,
    /// The name of its workflow, when this claim was the first of its run.
    pub started_run: Option<String>,
    /// It waits in memory, and a more urgent job was left that must not: that one waits for it to start.
    pub has_overtaken: bool,
    /// What the end of the attempt is decided by.
    pub retry_state: RetryState,
}

/// A row that was taken, with the job that it holds or what is wrong with it.
struct Taken {
    id: i64,
    run_id: Option<i64>,
    /// Its run, when no other job of it has started yet.
    new_run_id: Option<i64>,
    retry_state: RetryState,
    job: std::result::Result<ClaimedJob, String>,
}

/// Reads [`RetryState`] from consecutive columns: attempt, failures, max_attempts, interruptions,
/// max_interruptions, on_interrupt, retry.
pub(super) fn read_retry_state(row: &dyn Row, from: usize) -> Result<RetryState> {
    let backoff = match row.value(from + 6) {
        Ok(Value::Text(json)) => serde_json::from_str(json).unwrap_or_default(),
        // Rows may come from outside: what can't be read means the default, not a stuck job.
        Ok(Value::Null | Value::Integer(_) | Value::Real(_) | Value::Rows { .. }) | Err(_) => {
            Backoff::default()
        }
    };
    Ok(RetryState {
        attempt: row.integer(from)?,
        failures: row.integer(from + 1)?,
        max_attempts: row.integer(from + 2)?,
        interruptions: row.integer(from + 3)?,
        max_interruptions: row.integer(from + 4)?,
        on_interrupt: row.parsed(from + 5, |text| match text {
            "rerun" => Some(OnInterrupt::Rerun),
            "fail" => Some(OnInterrupt::Fail),
            _ => None,
        })?,
        backoff,
    })
}

impl Store {
    /// Claims up to `limit` jobs.
    ///
    /// # Errors
    /// The database's.
    pub fn claim(&self, request: ClaimRequest) -> Result<Claims> {
        let clock = self.clock.clone();
        let worker_id = request.worker_id;
        let evidence = Evidence::rows(move |connection, claims: &Claims| match claims {
            Claims::Jobs(jobs) if !jobs.is_empty() => attempt_claimed(connection, jobs[0].key(worker_id)),
            Claims::Jobs(_) | Claims::Fenced => Ok(Fate::NotKept),
        });
        self.write("claim jobs", evidence, move |connection| {
            claim(connection, &request, None, Vec::new(), &clock)
        })
    }

    /// Jobs that a worker claims at a time, at most.
    #[must_use]
    pub fn claim_max(&self) -> usize {
        match self.reach() {
            Reach::OneKernel => CLAIM_MAX_OF_ONE_WRITER,
            Reach::ManyHosts => CLAIM_MAX,
        }
    }

    /// Whether a claim would find anything, without taking the write lock.
    ///
    /// # Errors
    /// The database's.
    pub fn has_claimable(&self, request: &ClaimRequest) -> Result<bool> {
        let now_ms = self.clock.now_ms();
        self.read(|connection| has_claimable(connection, request, now_ms))
    }
}

/// Claims inside the caller's transaction, also of what became ready in it; what it does not take of that is
/// released. `look` is that of the caller, if it had one.
pub(super) fn claim(
    connection: &mut dyn Connection,
    request: &ClaimRequest,
    look: Option<ClaimSnapshot>,
    ready: Vec<Ready>,
    clock: &Clock,
) -> Result<Claims> {
    let (in_hand, others): (Vec<Ready>, Vec<Ready>) =
        ready.into_iter().partition(|ready| may_take_at_once(request, ready));
    // First: limits are counted from rows, and who waits in a queue that has some is found there.
    release(connection, &others, clock.now_ms())?;
    let look = if others.is_empty() { look } else { look.map(ClaimSnapshot::without_candidates) };
    let places: Vec<ClaimPosition> = in_hand.iter().map(|ready| ready.head.place).collect();
    let claims = claim_among(connection, request, look, &places, clock)?;
    let taken: HashSet<i64> = match &claims {
        Claims::Jobs(jobs) => jobs.iter().map(|job| job.id).collect(),
        Claims::Fenced => HashSet::new(),
    };
    let left: Vec<Ready> =
        in_hand.into_iter().filter(|ready| !taken.contains(&ready.head.place.id)).collect();
    release(connection, &left, clock.now_ms())?;
    Ok(claims)
}

/// Whether nothing but the order of claiming stands between a request and what became ready.
fn may_take_at_once(request: &ClaimRequest, ready: &Ready) -> bool {
    let is_in_scope = match &request.scope {
        Scope::Everything | Scope::Queues(_) => true,
        Scope::Runs(run_ids) => ready.run_id.is_some_and(|run_id| run_ids.contains(&run_id)),
    };
    is_in_scope && !ready.head.lane.may_have_rules && is_for(request, &ready.head)
}

fn claim_among(
    connection: &mut dyn Connection,
    request: &ClaimRequest,
    look: Option<ClaimSnapshot>,
    in_hand: &[ClaimPosition],
    clock: &Clock,
) -> Result<Claims> {
    let ClaimSnapshot { owner, heads } = match look {
        Some(look) => look,
        None => ClaimSnapshot::after(connection, request, &mut [])?,
    };
    if !owner.is_alive() {
        return Ok(Claims::Fenced);
    }
    if request.limit == 0 {
        return Ok(Claims::Jobs(Vec::new()));
    }
    let heads = match (heads, &request.scope) {
        (Some(heads), _) => heads,
        (None, Scope::Everything | Scope::Queues(_)) => candidates(connection)?,
        (None, Scope::Runs(_)) => Vec::new(),
    };
    let counted_at_ms = clock.now_ms();
    let Claimable { places, limited } = claimable(connection, request, in_hand, heads, counted_at_ms)?;
    if places.is_empty() {
        return Ok(Claims::Jobs(Vec::new()));
    }
    // Dated after what it was counted against: no start seems earlier than the end that made room for it.
    let now_ms = clock.now_ms().max(counted_at_ms);
    let ids: Vec<i64> = places.iter().map(|place| place.id).collect();
    let in_hand: HashSet<i64> = in_hand.iter().map(|place| place.id).collect();
    // A start counts from its claim: what would wait in memory first is left until it can start.
    let rated: HashSet<i64> = limited
        .iter()
        .filter(|(rules, _ids)| rules.rate.is_some())
        .flat_map(|(_rules, ids)| ids.iter().copied())
        .collect();
    let chosen = Chosen { ids: &ids, in_hand: &in_hand, rated: &rated };
    let taken = take(connection, &chosen, request, now_ms)?;
    if !limited.is_empty() {
        let taken_ids: HashSet<i64> = taken.iter().map(|job| job.id).collect();
        for (rules, ids) in limited {
            let ids: Vec<i64> = ids.into_iter().filter(|id| taken_ids.contains(id)).collect();
            limits::record(connection, &rules, &ids, now_ms)?;
        }
    }
    let mut started = start_runs(connection, &taken, now_ms)?;
    let first_left = first_left(&ids, &taken);
    let mut jobs = keep_sound(connection, taken, request.worker_id, now_ms)?;
    // RETURNING promises no order.
    let order: HashMap<i64, usize> = ids.iter().enumerate().map(|(index, id)| (*id, index)).collect();
    let place_of = |job: &ClaimedJob| order.get(&job.id).copied();
    jobs.sort_by_cached_key(place_of);
    for job in &mut jobs {
        job.started_run = job.run_id.and_then(|run_id| started.remove(&run_id));
        job.has_overtaken = first_left.is_some() && place_of(job) > first_left;
    }
    connection.wake(WakeUps::PROGRESS);
    Ok(Claims::Jobs(jobs))
}

/// The place of the first chosen job that was not taken: one that must not wait in memory.
fn first_left(ids: &[i64], taken: &[Taken]) -> Option<usize> {
    if taken.len() == ids.len() {
        return None;
    }
    let taken: HashSet<i64> = taken.iter().map(|job| job.id).collect();
    ids.iter().position(|id| !taken.contains(id))
}

/// Fails the jobs whose rows no executor can take, in the transaction that took them; returns the
/// others. One row that another program spoilt must not hold up whatever waits beside it.
fn keep_sound(
    connection: &mut dyn Connection,
    taken: Vec<Taken>,
    worker_id: i64,
    now_ms: i64,
) -> Result<Vec<ClaimedJob>> {
    let (mut sound, mut spoilt) = (Vec::with_capacity(taken.len()), Vec::new());
    for Taken { id, run_id, retry_state, job, .. } in taken {
        match job {
            Ok(job) => sound.push(job),
            Err(error) => spoilt.push(Finish {
                job_id: id,
                run_id,
                attempt: retry_state.attempt,
                worker_id,
                transition: after_attempt(
                    &retry_state,
                    Outcome::Failed { error, repeat: Repeat::Pointless },
                    0.0,
                ),
                logs: Vec::new(),
            }),
        }
    }
    if !spoilt.is_empty() {
        finish(connection, &spoilt, now_ms)?;
        // What waits behind them was not looked at.
        connection.wake(WakeUps::PENDING);
    }
    Ok(sound)
}

/// What a claim is to take.
struct Chosen<'c> {
    /// The most urgent first.
    ids: &'c [i64],
    /// Of these, what is BLOCKED still.
    in_hand: &'c HashSet<i64>,
    /// Of these, what is in queues with a rate.
    rated: &'c HashSet<i64>,
}

fn take(
    connection: &mut dyn Connection,
    Chosen { ids, in_hand, rated }: &Chosen<'_>,
    request: &ClaimRequest,
    now_ms: i64,
) -> Result<Vec<Taken>> {
    let status_of = |id| if in_hand.contains(id) { JobStatus::Blocked } else { JobStatus::Pending };
    let chosen: Vec<[Value<'_>; 3]> = ids
        .iter()
        .enumerate()
        .filter(|(place, id)| *place < request.idle || !rated.contains(id))
        .map(|(place, id)| {
            [(*id).into(), status_of(id).as_str().into(), i64::from(place < request.idle).into()]
        })
        .collect();
    // The largest number has no successor: `read_taken` refuses it. The run of what was BLOCKED has started, with one
    // of its parents.
    all(
        connection,
        "UPDATE jobs
         SET status = 'RUNNING', worker_id = $2, blocked_by = 0,
             attempt = CASE WHEN jobs.attempt < 9223372036854775807 THEN jobs.attempt + 1 ELSE jobs.attempt END,
             started_at = $3, updated_at = $3, finished_at = NULL
         {from} {rows $1: id integer, status text, at_once integer} AS chosen
         {where} {by jobs.id = chosen.id} AND jobs.status = chosen.status
           AND (jobs.on_interrupt = 'rerun' OR chosen.at_once = 1)
         {returning} jobs.id, jobs.run_id, jobs.name, jobs.kind, jobs.payload, jobs.timeout_ms,
                   {after jobs.attempt: CASE WHEN jobs.attempt < 9223372036854775807 THEN jobs.attempt + 1
                                             ELSE jobs.attempt END},
                   jobs.failures, jobs.max_attempts, jobs.interruptions, jobs.max_interruptions,
                   jobs.on_interrupt, jobs.retry,
                   CASE WHEN chosen.status = 'PENDING'
                        THEN (SELECT runs.id FROM runs
                              WHERE runs.id = jobs.run_id AND {guard runs.status = 'PENDING'}) END,
                   jobs.created_at, jobs.token",
        &[Value::rows(&chosen), request.worker_id.into(), now_ms.into()],
        read_taken,
    )
}

fn read_taken(row: &dyn Row) -> Result<Taken> {
    let (id, run_id, timeout_ms) = (row.integer(0)?, row.optional_integer(1)?, row.optional_integer(5)?);
    let (retry_state, new_run_id) = (read_retry_state(row, 6)?, row.optional_integer(13)?);
    let (created_at, token) = (row.integer(14)?, row.integer(15)?);
    let text = |column: usize, what: &str| {
        row.optional_text(column)
            .map_err(|_no_text| format!("the row can't be read: its {what} is no UTF-8 text"))
    };
    let job = || {
        if retry_state.attempt == i64::MAX {
            return Err(format!(
                "the row can't be claimed: its attempt is {}, and no number is left",
                i64::MAX
            ));
        }
        Ok(ClaimedJob {
            id,
            created_at,
            token,
            run_id,
            name: text(2, "name")?,
            kind: text(3, "kind")?.unwrap_or_default(),
            payload: text(4, "payload")?.unwrap_or_default(),
            timeout_ms,
            started_run: None,
            has_overtaken: false,
            retry_state: retry_state.clone(),
        })
    };
    let job = job();
    Ok(Taken { id, run_id, new_run_id, retry_state, job })
}

/// The first claimed job starts its run, and the run's clock. Returns the runs that started, each with the
/// name of its workflow.
fn start_runs(connection: &mut dyn Connection, taken: &[Taken], now_ms: i64) -> Result<HashMap<i64, String>> {
    let mut run_ids: Vec<i64> = taken.iter().filter_map(|job| job.new_run_id).collect();
    run_ids.sort_unstable();
    run_ids.dedup();
    let mut started = HashMap::new();
    if run_ids.is_empty() {
        return Ok(started);
    }
    let mut has_deadline = false;
    connection.query(
        "UPDATE runs
         SET status = 'RUNNING', started_at = coalesce(started_at, $2), updated_at = $2,
             deadline_at = $2 + timeout_ms
         {where} id {in $1} AND {guard status = 'PENDING'}
         {returning} id, workflow, {after deadline_at: $2 + timeout_ms}",
        &[(&json_ids(&run_ids)).into(), now_ms.into()],
        &mut |row| {
            started.insert(row.integer(0)?, row.lossy_text(1)?.unwrap_or_default());
            has_deadline |= row.optional_integer(2)?.is_some();
            Ok(())
        },
    )?;
    if has_deadline {
        connection.wake(WakeUps::DUE);
    }
    Ok(started)
}

impl ClaimedJob {
    /// The attempt that a worker claimed.
    pub(super) fn key(&self, worker_id: i64) -> AttemptKey {
        AttemptKey { job_id: self.id, attempt: self.retry_state.attempt, worker_id }
    }

    /// The same for all its attempts, and for no other job of any database.
    #[must_use]
    pub fn idempotency_key(&self) -> String {
        format!("{}-{}", self.created_at, self.token)
    }

    /// How people know it: `3/fetch` or `j42`.
    #[must_use]
    pub fn label(&self) -> String {
        label(self.id, self.run_id, self.name.as_deref())
    }
}

/// How people know a job: `3/fetch` or `j42`.
#[must_use]
pub(super) fn label(id: i64, run_id: Option<i64>, name: Option<&str>) -> String {
    match (run_id, name) {
        (Some(run_id), Some(name)) => format!("{run_id}/{name}"),
        (Some(_), None) | (None, _) => format!("j{id}"),
    }
}
