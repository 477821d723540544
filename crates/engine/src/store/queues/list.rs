//! Pages of queues for people, by name. Jobs are counted up to a bound, so that a backlog of a million jobs makes no page slow.

use std::collections::{BTreeMap, BTreeSet};

use super::{Order, Queue, Rate};
use crate::store::metrics::{OTHER_STATES_MAX, count_pending, other_states};
use crate::store::round_trip::rows_of_each;
use crate::store::stats::Count;
use crate::store::{Queues, json_list};
use windlass_db::error::{Error, Result};
use windlass_db::{Connection, Row, all};

/// How many queues are listed at most.
pub const QUEUES_MAX: i64 = 10_000;
const LIST: &str = "list queues";
const NOTHING: Count = Count { number: 0, is_exact: true };

/// Part of the list of queues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuePage {
    /// Queues that have rules or unfinished jobs, by name.
    pub rows: Vec<Queue>,
    /// The name after which the next page begins, unless this is the last one.
    pub next: Option<String>,
}

/// The names of queues with PENDING jobs, after the name $1 and at most $2. Each is found by one step in the claim index, so
/// that no job is read twice.
const NAMES_OF_PENDING: &str = "WITH RECURSIVE names (name, number) AS (
         SELECT CASE WHEN CAST($1 AS TEXT) IS NULL
                     THEN (SELECT queue FROM jobs WHERE status = 'PENDING' AND kind > '' ORDER BY queue, kind LIMIT 1)
                     ELSE (SELECT queue FROM jobs WHERE status = 'PENDING' AND kind > '' AND queue > $1
                           ORDER BY queue, kind LIMIT 1) END, 1
         UNION ALL
         SELECT (SELECT jobs.queue FROM jobs
                 WHERE jobs.status = 'PENDING' AND jobs.kind > '' AND jobs.queue > names.name
                 ORDER BY jobs.queue, jobs.kind LIMIT 1), names.number + 1
         FROM names WHERE names.name IS NOT NULL AND names.number < $2
     )
     SELECT name FROM names WHERE name IS NOT NULL";
const NAMES_WITH_RULES: &str =
    "SELECT name FROM queues WHERE CAST($1 AS TEXT) IS NULL OR name > $1 ORDER BY name LIMIT $2";

impl Queues<'_> {
    /// The queues that have rules or unfinished jobs, by name: the first [`QUEUES_MAX`].
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn list(&self) -> Result<Vec<Queue>> {
        Ok(self.page(None, QUEUES_MAX)?.rows)
    }

    /// A page of the queues that have rules or unfinished jobs, by name: those after a name. Queues whose jobs all run, wait, or
    /// are not due are found among the first [`OTHER_STATES_MAX`] such jobs of each state.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a limit that is out of bounds, and the database's.
    pub fn page(&self, after: Option<&str>, limit: i64) -> Result<QueuePage> {
        if !(1..=QUEUES_MAX).contains(&limit) {
            let reason = format!("a page has 1 to {QUEUES_MAX} queues, and {limit} were asked for");
            return Err(Error::invalid(LIST, reason));
        }
        self.store.read(|connection| {
            let others = other_states(connection)?;
            let range = vec![after.into(), (limit + 1).into()];
            let asked = [(NAMES_OF_PENDING, range.clone()), (NAMES_WITH_RULES, range)];
            let found = rows_of_each(connection, &asked, |row| Ok(row.lossy_text(0)?.unwrap_or_default()))?;
            let mut names: BTreeSet<&str> = found.iter().flatten().map(String::as_str).collect();
            let of_others = others.iter().flat_map(|counts| counts.keys()).map(String::as_str);
            names.extend(of_others.filter(|name| after.is_none_or(|after| *name > after)));
            let limit = usize::try_from(limit).unwrap_or(0);
            let page: Vec<&str> = names.iter().copied().take(limit).collect();
            let next = page.last().filter(|_| names.len() > limit).map(|name| (*name).to_owned());
            let rules = rules_of(connection, &page)?;
            Ok(QueuePage { rows: counted(connection, &page, rules, &others)?, next })
        })
    }

    /// The queue with this name, if it has rules or unfinished jobs.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn find(&self, name: &str) -> Result<Option<Queue>> {
        self.store.read(|connection| {
            let others = other_states(connection)?;
            let rules = rules_of(connection, &[name])?;
            let has_rules = !rules.is_empty();
            let queue = counted(connection, &[name], rules, &others)?.pop();
            let is_there = |queue: &Queue| {
                let jobs = queue.pending + queue.running + queue.scheduled + queue.waiting;
                jobs.number > 0 || has_rules
            };
            Ok(queue.filter(is_there))
        })
    }
}

/// The queues with these names and rules, with their PENDING jobs and what was counted of the other states.
fn counted(
    connection: &mut dyn Connection,
    names: &[&str],
    mut rules: BTreeMap<String, Queue>,
    [running, scheduled, waiting]: &[BTreeMap<String, i64>; 3],
) -> Result<Vec<Queue>> {
    let pending = count_pending(connection, names)?;
    let of_state = |counts: &BTreeMap<String, i64>, name: &str| Count {
        number: counts.get(name).copied().unwrap_or(0),
        is_exact: counts.values().sum::<i64>() < OTHER_STATES_MAX,
    };
    let queue = |(name, pending): (&&str, Count)| Queue {
        pending,
        running: of_state(running, name),
        scheduled: of_state(scheduled, name),
        waiting: of_state(waiting, name),
        ..rules.remove(*name).unwrap_or_else(|| Queue::without_rules(name))
    };
    Ok(names.iter().zip(pending).map(queue).collect())
}

fn rules_of(connection: &mut dyn Connection, names: &[&str]) -> Result<BTreeMap<String, Queue>> {
    let rows = all(
        connection,
        "SELECT name, paused_at, max_running, rate_jobs, rate_interval_ms, fifo FROM queues
         WHERE name IN (SELECT value FROM {texts $1} AS wanted)",
        &[(&json_list(LIST, names)?).into()],
        read_rules,
    )?;
    Ok(rows.into_iter().map(|queue| (queue.name.clone(), queue)).collect())
}

impl Queue {
    /// A queue without rules and jobs, which is not listed.
    #[must_use]
    pub fn without_rules(name: &str) -> Queue {
        Queue {
            name: name.to_owned(),
            paused_at: None,
            max_running: None,
            rate: None,
            order: Order::Priority,
            pending: NOTHING,
            running: NOTHING,
            scheduled: NOTHING,
            waiting: NOTHING,
        }
    }
}

fn read_rules(row: &dyn Row) -> Result<Queue> {
    let rate = row.optional_integer(3)?.zip(row.optional_integer(4)?);
    let name = row.lossy_text(0)?.unwrap_or_default();
    Ok(Queue {
        paused_at: row.optional_integer(1)?,
        max_running: row.optional_integer(2)?,
        rate: rate.map(|(jobs, interval_ms)| Rate { jobs, interval_ms }),
        order: if row.integer(5)? != 0 { Order::Arrival } else { Order::Priority },
        ..Queue::without_rules(&name)
    })
}
