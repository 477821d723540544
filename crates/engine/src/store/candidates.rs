//! What can be claimed, in the order of claiming.
//!
//! A *claim partition* is a part of the claim index that is in claiming order by itself: the jobs of one queue and kind
//! that require the same, or one run. The first job of a partition is its *candidate*. The partitions are read from the
//! one with the most urgent candidate on, until no candidate is left that could come before what was found. So the most
//! urgent jobs are found in any number of partitions, and only partitions that give something are read past their
//! candidate.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::claim::{CLAIM_MAX, ClaimRequest, Scope};
use super::limits::{Allowance, Counting, QueueRules, allowances};
use super::{json_ids, json_list};
use windlass_db::error::Result;
use windlass_db::{Connection, Fragment, Row, Value, all};
use windlass_system::wake_ups::WakeUps;

/// The rank of a row of `jobs`: the least is claimed first. A job is due at `execute_after`, and each point of priority is
/// worth one minute. Both are bounded, so that nothing overflows.
pub(crate) const RANK: Fragment = Fragment {
    name: "rank",
    sql: "({bounded execute_after 4000000000000000000} - {bounded priority 1000000} * 60000)",
};

/// How often a run's jobs are read on past those of queues that have no room, in one claim.
const RUN_ROUNDS: usize = 16;

/// A job's place in the order of claiming.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ClaimPosition {
    pub(super) rank: i64,
    pub(super) id: i64,
}

/// The first job of a partition, or one that is to be in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) place: ClaimPosition,
    pub(super) lane: Rc<ClaimPartition>,
}

/// What the jobs of a partition have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ClaimPartition {
    pub(super) queue: String,
    pub(super) kind: String,
    pub(super) requires: String,
    pub(super) version: i64,
    /// Its queue has to be asked for limits.
    pub(super) may_have_rules: bool,
}

/// What a claim may take.
#[derive(Default)]
pub(super) struct Claimable {
    /// The most urgent first.
    pub(super) places: Vec<ClaimPosition>,
    /// Queues whose rules have to know what was taken, with the ids among the places.
    pub(super) limited: Vec<(QueueRules, Vec<i64>)>,
}

/// The most urgent claimable jobs, kept from other transactions, over all partitions of the request and what this
/// transaction has `in_hand`: jobs of queues without rules that are for the request. `heads` are those of all partitions,
/// unless it names runs.
pub(super) fn claimable(
    connection: &mut dyn Connection,
    request: &ClaimRequest,
    in_hand: &[ClaimPosition],
    mut heads: Vec<Candidate>,
    now_ms: i64,
) -> Result<Claimable> {
    let mut selection = Selection::new(request, Counting::Locked, now_ms);
    selection.choose(in_hand);
    match &request.scope {
        Scope::Everything | Scope::Queues(_) => {
            heads.sort_unstable_by_key(|head| head.place);
            selection.count(connection, &heads, &heads)?;
            let mut locked = in_hand.len();
            for head in heads.iter().filter(|head| is_for(request, head)) {
                if selection.is_full_before(head.place) {
                    break;
                }
                let found = match selection.room(&head.lane.queue) {
                    Room::Jobs(0) => continue,
                    Room::Jobs(limit) => read_partition(connection, head, limit)?,
                    Room::Only(job_id) => lock_jobs(connection, &[job_id])?,
                };
                locked += found.len();
                selection.add(&head.lane.queue, found);
            }
            if connection.dialect().has_many_writers() && locked > selection.chosen.len() {
                // Others pass over what is locked here, also what is left in the end.
                connection.wake(WakeUps::PENDING);
            }
        }
        Scope::Runs(run_ids) => {
            for run_id in run_ids {
                selection.add_run(connection, *run_id)?;
            }
            selection.lock_chosen(connection, in_hand)?;
        }
    }
    Ok(selection.into_claimable())
}

/// Whether there is anything to claim. Locks nothing.
pub(super) fn has_claimable(
    connection: &mut dyn Connection,
    request: &ClaimRequest,
    now_ms: i64,
) -> Result<bool> {
    let mut selection = Selection::new(request, Counting::Glance, now_ms);
    match &request.scope {
        Scope::Everything | Scope::Queues(_) => {
            let heads = candidates(connection)?;
            selection.count(connection, &heads, &heads)?;
            Ok(heads
                .iter()
                .filter(|head| is_for(request, head))
                .any(|head| selection.room(&head.lane.queue) != Room::Jobs(0)))
        }
        Scope::Runs(run_ids) => {
            for run_id in run_ids {
                selection.add_run(connection, *run_id)?;
                if !selection.chosen.is_empty() {
                    return Ok(true);
                }
            }
            Ok(false)
        }
    }
}

/// How many of a queue's jobs may still be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Room {
    Jobs(usize),
    /// This one and no other.
    Only(i64),
}

/// The jobs chosen so far.
struct Selection<'r> {
    request: &'r ClaimRequest,
    counting: Counting,
    now_ms: i64,
    limit: usize,
    chosen: Vec<ClaimPosition>,
    /// Of queues with rules: what is left of their allowance, and what was chosen.
    limited: HashMap<String, (QueueRules, Room, Vec<ClaimPosition>)>,
}

impl<'r> Selection<'r> {
    fn new(request: &'r ClaimRequest, counting: Counting, now_ms: i64) -> Selection<'r> {
        let limit = request.limit.min(CLAIM_MAX);
        Selection { request, counting, now_ms, limit, chosen: Vec::new(), limited: HashMap::new() }
    }

    /// Counts what the queues of these jobs allow. `partitions` are the candidates of all claim partitions.
    fn count(
        &mut self,
        connection: &mut dyn Connection,
        heads: &[Candidate],
        lanes: &[Candidate],
    ) -> Result<()> {
        let mut queues: Vec<&str> = heads
            .iter()
            .filter(|head| head.lane.may_have_rules && is_for(self.request, head))
            .filter(|head| !self.limited.contains_key(&head.lane.queue))
            .map(|head| head.lane.queue.as_str())
            .collect();
        queues.sort_unstable();
        queues.dedup();
        if queues.is_empty() {
            return Ok(());
        }
        for (queue, (rules, allowance)) in allowances(connection, &queues, self.counting, self.now_ms)? {
            let room = match allowance {
                Allowance::Jobs(jobs) => Room::Jobs(jobs),
                Allowance::Turn(job_id) => self.only(read_jobs(connection, &[job_id])?.first()),
                Allowance::Next if lanes.is_empty() => {
                    let lanes = candidates(connection)?;
                    self.only(first_arrived(&lanes, &queue))
                }
                Allowance::Next => self.only(first_arrived(lanes, &queue)),
            };
            self.limited.insert(queue, (rules, room, Vec::new()));
        }
        Ok(())
    }

    /// This job, unless it is for others: nobody overtakes it.
    fn only(&self, next: Option<&Candidate>) -> Room {
        match next.filter(|head| is_for(self.request, head)) {
            Some(head) => Room::Only(head.place.id),
            None => Room::Jobs(0),
        }
    }

    /// Chooses among a run's jobs, past those that are for others or whose queues have no room.
    fn add_run(&mut self, connection: &mut dyn Connection, run_id: i64) -> Result<()> {
        let (mut full, mut unfit): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
        let mut turns = Vec::new();
        for _round in 0..RUN_ROUNDS {
            let heads = read_run(connection, self.request, run_id, &full, &unfit, self.limit)?;
            self.count(connection, &heads, &[])?;
            let passed = full.len() + unfit.len();
            let mut unlimited = Vec::with_capacity(heads.len());
            for head in &heads {
                if !is_for(self.request, head) {
                    unfit.push(head.lane.requires.clone());
                    continue;
                }
                if self.is_used_up_before(&head.lane.queue, head.place) {
                    full.push(head.lane.queue.clone());
                    continue;
                }
                match self.room(&head.lane.queue) {
                    Room::Only(job_id) if job_id != head.place.id => {
                        turns.push(job_id);
                        full.push(head.lane.queue.clone());
                    }
                    Room::Jobs(0) => full.push(head.lane.queue.clone()),
                    Room::Jobs(_) if !self.limited.contains_key(&head.lane.queue) => {
                        unlimited.push(head.place)
                    }
                    Room::Only(_) | Room::Jobs(_) => self.add(&head.lane.queue, vec![head.place]),
                }
            }
            self.choose(&unlimited);
            let is_new = full.len() + unfit.len() > passed;
            let is_full = heads.last().is_none_or(|last| self.is_full_before(last.place));
            if heads.len() < self.limit || is_full || !is_new {
                break;
            }
            for passed in [&mut full, &mut unfit] {
                passed.sort_unstable();
                passed.dedup();
            }
        }
        // A job that is tried again has its turn, and is due after those that were passed.
        for head in read_jobs_of_run(connection, run_id, &turns)? {
            self.add(&head.lane.queue, vec![head.place]);
        }
        Ok(())
    }

    /// Keeps what was chosen from other transactions, and leaves out what they have.
    fn lock_chosen(&mut self, connection: &mut dyn Connection, in_hand: &[ClaimPosition]) -> Result<()> {
        if !connection.dialect().has_many_writers() {
            return Ok(());
        }
        let in_hand: HashSet<ClaimPosition> = in_hand.iter().copied().collect();
        let ids: Vec<i64> =
            self.chosen.iter().filter(|place| !in_hand.contains(place)).map(|place| place.id).collect();
        if ids.is_empty() {
            return Ok(());
        }
        let locked: HashSet<ClaimPosition> = lock_jobs(connection, &ids)?.into_iter().collect();
        if locked.len() < ids.len() {
            connection.wake(WakeUps::PENDING);
        }
        self.chosen.retain(|place| in_hand.contains(place) || locked.contains(place));
        Ok(())
    }

    fn room(&self, queue: &str) -> Room {
        match self.limited.get(queue) {
            Some((_rules, Room::Jobs(jobs), _chosen)) => Room::Jobs((*jobs).min(self.limit)),
            Some((_rules, only @ Room::Only(_), _chosen)) => *only,
            None => Room::Jobs(self.limit),
        }
    }

    /// All that the queue's rules allow is chosen, and nothing from this place on is more urgent.
    fn is_used_up_before(&self, queue: &str, place: ClaimPosition) -> bool {
        self.limited.get(queue).is_some_and(|(_rules, room, of_queue)| match room {
            Room::Jobs(jobs) => of_queue.len() >= *jobs && of_queue.last().is_none_or(|last| *last <= place),
            Room::Only(_) => !of_queue.is_empty(),
        })
    }

    /// Nothing from this place on can be added to the chosen.
    fn is_full_before(&self, place: ClaimPosition) -> bool {
        self.chosen.len() >= self.limit && self.chosen.last().is_some_and(|last| *last <= place)
    }

    fn add(&mut self, queue: &str, found: Vec<ClaimPosition>) {
        if let Some((_rules, room, of_queue)) = self.limited.get_mut(queue) {
            // Several partitions share the allowance: of all that they gave the most urgent are kept.
            let allowed = match room {
                Room::Jobs(jobs) => *jobs,
                Room::Only(_) => 1,
            };
            self.chosen.retain(|place| !of_queue.contains(place));
            of_queue.extend(found);
            of_queue.sort();
            of_queue.dedup();
            of_queue.truncate(allowed);
            let of_queue = of_queue.clone();
            self.choose(&of_queue);
        } else {
            self.choose(&found);
        }
    }

    /// Two sorted stretches become one: the sort that keeps equal items in order merges them.
    fn choose(&mut self, found: &[ClaimPosition]) {
        self.chosen.extend(found);
        self.chosen.sort();
        // A run is looked through several times, and a request may name it twice.
        self.chosen.dedup();
        self.chosen.truncate(self.limit);
    }

    fn into_claimable(self) -> Claimable {
        let Selection { chosen, limited, .. } = self;
        let limited = limited
            .into_values()
            .map(|(rules, _room, of_queue)| {
                (
                    rules,
                    of_queue.iter().filter(|place| chosen.contains(place)).map(|place| place.id).collect(),
                )
            })
            .filter(|(_rules, ids): &(QueueRules, Vec<i64>)| !ids.is_empty())
            .collect();
        Claimable { places: chosen, limited }
    }
}

/// Whether whoever asks takes jobs of this queue, and can execute this one.
pub(super) fn is_for(request: &ClaimRequest, head: &Candidate) -> bool {
    let takes_queue = match &request.scope {
        Scope::Everything | Scope::Runs(_) => true,
        Scope::Queues(queues) => queues.contains(&head.lane.queue),
    };
    takes_queue
        && request.worker_capabilities.check(&head.lane.kind, &head.lane.requires, head.lane.version).is_ok()
}

/// Finds the candidate of each claim partition, which [`read_candidate`] reads. It steps from partition to partition by one seek each, never over the
/// rows of a partition. SQLite compares lists of columns by an index only with what has no affinity of its own, hence
/// `coalesce`; and it begins at what is equal whatever the operator, hence the next version.
pub(super) const CANDIDATES: &str = "WITH RECURSIVE heads (id) AS (
             SELECT (SELECT id FROM jobs WHERE status = 'PENDING' AND kind > ''
                     ORDER BY queue, kind, requires, version, {rank}, id LIMIT 1)
             UNION ALL
             SELECT (SELECT next.id FROM jobs AS next
                     WHERE next.status = 'PENDING' AND next.kind > ''
                       AND (next.queue, next.kind, next.requires, next.version)
                           >= (coalesce(head.queue, ''), coalesce(head.kind, ''),
                               coalesce(head.requires, ''), coalesce(head.version, 0) + 1)
                     ORDER BY next.queue, next.kind, next.requires, next.version, {rank}, next.id LIMIT 1)
             FROM heads JOIN jobs AS head ON {by head.id = heads.id}
         ),
         found (id) AS MATERIALIZED (SELECT id FROM heads WHERE id IS NOT NULL)
         SELECT jobs.id, {rank}, queue, kind, requires, version,
                (SELECT count(*) FROM queues
                 WHERE name = jobs.queue AND {ruled})
         FROM found CROSS JOIN jobs WHERE {by jobs.id = found.id}";

/// The candidate of each claim partition, the most urgent first.
pub(super) fn candidates(connection: &mut dyn Connection) -> Result<Vec<Candidate>> {
    let mut heads = all(connection, CANDIDATES, &[], read_candidate)?;
    heads.sort_unstable_by_key(|head| head.place);
    Ok(heads)
}

/// Which job of a queue came first, whoever it is for.
fn first_arrived<'h>(lanes: &'h [Candidate], queue: &str) -> Option<&'h Candidate> {
    lanes.iter().filter(|head| head.lane.queue == queue).min_by_key(|head| head.place)
}

fn read_partition(
    connection: &mut dyn Connection,
    head: &Candidate,
    limit: usize,
) -> Result<Vec<ClaimPosition>> {
    // The partition is named by its head: texts that are no UTF-8 need not be read.
    all(
        connection,
        "SELECT id, {rank} FROM jobs
         WHERE status = 'PENDING' AND kind > '' AND queue = (SELECT queue FROM jobs WHERE id = $1)
           AND kind = (SELECT kind FROM jobs WHERE id = $1)
           AND requires = (SELECT requires FROM jobs WHERE id = $1)
           AND version = (SELECT version FROM jobs WHERE id = $1)
         ORDER BY {rank}, id LIMIT $2 {lock}",
        &[head.place.id.into(), (limit as i64).into()],
        read_position,
    )
}

/// Those of some jobs that can be claimed.
fn read_jobs(connection: &mut dyn Connection, ids: &[i64]) -> Result<Vec<Candidate>> {
    all(
        connection,
        "SELECT id, {rank}, queue, kind, requires, version, 1 FROM jobs
         WHERE id {in $1} AND {guard status = 'PENDING'}",
        &[(&json_ids(ids)).into()],
        read_candidate,
    )
}

/// The same, and only those of a run.
fn read_jobs_of_run(connection: &mut dyn Connection, run_id: i64, ids: &[i64]) -> Result<Vec<Candidate>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    all(
        connection,
        "SELECT id, {rank}, queue, kind, requires, version, 1 FROM jobs
         WHERE id {in $2} AND {guard run_id = $1} AND {guard status = 'PENDING'}",
        &[run_id.into(), (&json_ids(ids)).into()],
        read_candidate,
    )
}

/// Those of some jobs that can be claimed and that no other transaction has.
fn lock_jobs(connection: &mut dyn Connection, ids: &[i64]) -> Result<Vec<ClaimPosition>> {
    all(
        connection,
        "SELECT id, {rank} FROM jobs WHERE id {in $1} AND {guard status = 'PENDING'} {lock}",
        &[(&json_ids(ids)).into()],
        read_position,
    )
}

/// The first jobs of a run that wait in none of the full queues and require nothing unfit.
fn read_run(
    connection: &mut dyn Connection,
    request: &ClaimRequest,
    run_id: i64,
    full: &[String],
    unfit: &[String],
    limit: usize,
) -> Result<Vec<Candidate>> {
    let texts = |texts: &[String]| json_list("claim jobs", texts);
    all(
        connection,
        "SELECT id, {rank}, queue, kind, requires, version, 1 FROM jobs
         WHERE status = 'PENDING' AND run_id IS NOT NULL AND run_id = $1
           AND kind IN (SELECT value FROM {texts $2} AS kinds)
           AND version <= $3
           AND queue NOT IN (SELECT value FROM {texts $4} AS full_queues)
           AND requires NOT IN (SELECT value FROM {texts $5} AS unfit)
         ORDER BY {rank}, id LIMIT $6",
        &[
            run_id.into(),
            (&texts(&request.worker_capabilities.kinds)?).into(),
            request.worker_capabilities.version.into(),
            (&texts(full)?).into(),
            (&texts(unfit)?).into(),
            (limit as i64).into(),
        ],
        read_candidate,
    )
}

/// Reads a [`Candidate`] from the first seven columns.
pub(super) fn read_candidate(row: &dyn Row) -> Result<Candidate> {
    Ok(Candidate { place: read_position(row)?, lane: Rc::new(ClaimPartition::read(row)?) })
}

/// Reads a [`ClaimPosition`] from the first two.
pub(super) fn read_position(row: &dyn Row) -> Result<ClaimPosition> {
    Ok(ClaimPosition { id: row.integer(0)?, rank: row.integer(1)? })
}

impl ClaimPartition {
    /// Reads it from the five columns after the place.
    pub(super) fn read(row: &dyn Row) -> Result<ClaimPartition> {
        Ok(ClaimPartition {
            queue: row.lossy_text(2)?.unwrap_or_default(),
            kind: row.lossy_text(3)?.unwrap_or_default(),
            requires: row.lossy_text(4)?.unwrap_or_default(),
            version: row.integer(5)?,
            may_have_rules: row.integer(6)? > 0,
        })
    }

    /// Whether these columns say the same.
    pub(super) fn is_of(&self, row: &dyn Row) -> bool {
        let is_text = |column, text: &str| row.value(column) == Ok(Value::Text(text));
        is_text(2, &self.queue)
            && is_text(3, &self.kind)
            && is_text(4, &self.requires)
            && row.value(5) == Ok(Value::Integer(self.version))
            && row.value(6) == Ok(Value::Integer(i64::from(self.may_have_rules)))
    }
}
