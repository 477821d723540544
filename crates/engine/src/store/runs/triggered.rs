//! Which triggers started runs, and by what, for lists of runs.

use std::collections::BTreeMap;

use crate::store::{Runs, json_ids};
use windlass_db::all;
use windlass_db::error::Result;

/// What a trigger took when it started a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Taken {
    /// An event.
    Event {
        /// Its number.
        id: i64,
        /// Its name; `None` if the event is no longer kept.
        name: Option<String>,
    },
    /// The end of this run.
    EndOfRun(i64),
}

/// How a trigger started a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Triggered {
    /// The name of the trigger.
    pub trigger: String,
    /// What it took.
    pub taken: Option<Taken>,
}

impl Taken {
    /// `event:5`, or `run:12:1767225600000`. An event has no name yet.
    fn parse(text: &str) -> Option<Taken> {
        let mut parts = text.split(':');
        let (sort, id) = (parts.next()?, parts.next()?.parse().ok()?);
        match sort {
            "event" => Some(Taken::Event { id, name: None }),
            "run" => Some(Taken::EndOfRun(id)),
            _unknown => None,
        }
    }

    /// The number of the event.
    fn event(&self) -> Option<i64> {
        match self {
            Taken::Event { id, .. } => Some(*id),
            Taken::EndOfRun(_) => None,
        }
    }

    /// The same with the name of its event.
    fn with_name(self, names: &BTreeMap<i64, String>) -> Taken {
        match self {
            Taken::Event { id, .. } => Taken::Event { id, name: names.get(&id).cloned() },
            Taken::EndOfRun(run_id) => Taken::EndOfRun(run_id),
        }
    }
}

impl Runs<'_> {
    /// How triggers started some runs. A run that no trigger started is left out.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn triggered(&self, run_ids: &[i64]) -> Result<BTreeMap<i64, Triggered>> {
        if run_ids.is_empty() {
            return Ok(BTreeMap::new());
        }
        self.store.read(|connection| {
            let found = all(
                connection,
                "SELECT run_id, trigger_name, started_by FROM triggered_runs WHERE run_id {in $1}",
                &[(&json_ids(run_ids)).into()],
                |row| {
                    let taken = row.lossy_text(2)?.and_then(|text| Taken::parse(&text));
                    Ok((row.integer(0)?, row.lossy_text(1)?.unwrap_or_default(), taken))
                },
            )?;
            let ids: Vec<i64> = found.iter().filter_map(|(.., taken)| taken.as_ref()?.event()).collect();
            let names: BTreeMap<i64, String> = all(
                connection,
                "SELECT id, name FROM events WHERE id {in $1}",
                &[(&json_ids(&ids)).into()],
                |row| Ok((row.integer(0)?, row.lossy_text(1)?.unwrap_or_default())),
            )?
            .into_iter()
            .collect();
            let triggered = found.into_iter().map(|(run_id, trigger, taken)| {
                let taken = taken.map(|taken| taken.with_name(&names));
                (run_id, Triggered { trigger, taken })
            });
            Ok(triggered.collect())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Taken;

    #[test]
    fn what_a_trigger_took_is_read_from_its_row() {
        assert_eq!(Taken::parse("event:5"), Some(Taken::Event { id: 5, name: None }));
        assert_eq!(Taken::parse("run:12:1767225600000"), Some(Taken::EndOfRun(12)));
        assert_eq!(["", "event:", "event:x", "x:5"].map(Taken::parse), [None, None, None, None]);
    }
}
