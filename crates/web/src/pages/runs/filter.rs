//! Which runs the list shows, as the address says it.

use windlass_engine::store::{Cursor, ParamFilter, RunFilter, StartedBy, TimeRange};
use windlass_engine::{RunSource, RunStatus};

use super::RUNS_OF_PAGE;
use crate::pages::url;

/// What the list shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// The state.
    pub tab: Tab,
    /// Since when they were accepted; the default depends on the state.
    pub since: Option<Since>,
    /// The workflow.
    pub workflow: Option<String>,
    /// A param, as `name=value`.
    pub param: Option<String>,
    /// The run key.
    pub key: Option<String>,
    /// A tag.
    pub tag: Option<String>,
    /// What started them.
    pub trigger: Option<Trigger>,
    /// Only runs with lower ids.
    pub before: Option<i64>,
}

/// A state of runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Tab {
    /// Any.
    #[default]
    All,
    /// RUNNING.
    Running,
    /// PENDING.
    Waiting,
    /// FAILED.
    Failed,
    /// CANCELLED.
    Cancelled,
    /// SUCCESSFUL.
    Successful,
}

impl Tab {
    const NAMED: [(Tab, &'static str); 5] = [
        (Tab::Running, "running"),
        (Tab::Waiting, "waiting"),
        (Tab::Failed, "failed"),
        (Tab::Cancelled, "cancelled"),
        (Tab::Successful, "successful"),
    ];

    /// The state in the tables.
    #[must_use]
    pub fn status(self) -> Option<RunStatus> {
        match self {
            Tab::All => None,
            Tab::Running => Some(RunStatus::Running),
            Tab::Waiting => Some(RunStatus::Pending),
            Tab::Failed => Some(RunStatus::Failed),
            Tab::Cancelled => Some(RunStatus::Cancelled),
            Tab::Successful => Some(RunStatus::Successful),
        }
    }
}

/// A time up to now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Since {
    /// An hour.
    Hour,
    /// 24 hours.
    Day,
    /// 7 days.
    Week,
    /// 30 days.
    Month,
    /// All time.
    Ever,
}

impl Since {
    /// Each with its name in the address, and with words.
    pub const NAMED: [(Since, &'static str, &'static str); 5] = [
        (Since::Hour, "1h", "last hour"),
        (Since::Day, "24h", "last 24 h"),
        (Since::Week, "7d", "last 7 days"),
        (Since::Month, "30d", "last 30 days"),
        (Since::Ever, "ever", "any time"),
    ];

    fn hours(self) -> Option<i64> {
        match self {
            Since::Hour => Some(1),
            Since::Day => Some(24),
            Since::Week => Some(7 * 24),
            Since::Month => Some(30 * 24),
            Since::Ever => None,
        }
    }
}

/// What started a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    /// A person or a program.
    Hand,
    /// A schedule, an event, or something like that.
    Source(RunSource),
}

impl Trigger {
    /// Each with its name in the address, and with words.
    pub const NAMED: [(Trigger, &'static str, &'static str); 6] = [
        (Trigger::Hand, "hand", "by hand"),
        (Trigger::Source(RunSource::Schedule), "schedule", "schedule"),
        (Trigger::Source(RunSource::Catchup), "catchup", "catch-up"),
        (Trigger::Source(RunSource::Backfill), "backfill", "backfill"),
        (Trigger::Source(RunSource::Manual), "manual", "schedule, by hand"),
        (Trigger::Source(RunSource::Event), "event", "event"),
    ];
}

impl Filter {
    /// Reads the query of an address. An empty value is none, as forms send it.
    ///
    /// # Errors
    /// A sentence about the first part that is unknown or out of bounds.
    pub fn parse(query: &str) -> Result<Filter, String> {
        let mut filter = Filter::default();
        for (name, value) in url::filled_pairs(query)? {
            filter.set(&name, value)?;
        }
        Ok(filter)
    }

    fn set(&mut self, name: &str, value: String) -> Result<(), String> {
        let wrong = |value: &str, known: &[&str]| {
            Err(format!("`{value}` is no value of `{name}`. It is one of {}.", known.join(", ")))
        };
        match name {
            "state" => match Tab::NAMED.iter().find(|(_, text)| *text == value) {
                Some((tab, _)) => self.tab = *tab,
                None => return wrong(&value, &Tab::NAMED.map(|(_, text)| text)),
            },
            "since" => match Since::NAMED.iter().find(|(_, text, _)| *text == value) {
                Some((since, ..)) => self.since = Some(*since),
                None => return wrong(&value, &Since::NAMED.map(|(_, text, _)| text)),
            },
            "trigger" => match Trigger::NAMED.iter().find(|(_, text, _)| *text == value) {
                Some((trigger, ..)) => self.trigger = Some(*trigger),
                None => return wrong(&value, &Trigger::NAMED.map(|(_, text, _)| text)),
            },
            "before" => match value.parse() {
                Ok(id) => self.before = Some(id),
                Err(_no_number) => return Err(format!("`{value}` is no number of a run.")),
            },
            "param" => match value.split_once('=') {
                Some((name, wanted)) if !name.is_empty() && !wanted.is_empty() => self.param = Some(value),
                Some(_) | None => return Err(format!("`{value}` is no param. Write it as `name=value`.")),
            },
            "workflow" => self.workflow = Some(value),
            "key" => self.key = Some(value),
            "tag" => self.tag = Some(value),
            _ => {
                return Err(format!(
                    "`{name}` is no filter of runs. The filters are state, since, workflow, param, key, tag and \
                     trigger."
                ));
            }
        }
        Ok(())
    }

    /// The names and values of the address.
    #[must_use]
    pub fn pairs(&self) -> Vec<(&'static str, String)> {
        let mut pairs = Vec::new();
        if let Some((_, text)) = Tab::NAMED.iter().find(|(tab, _)| *tab == self.tab) {
            pairs.push(("state", (*text).to_owned()));
        }
        if let Some((_, text, _)) = Since::NAMED.iter().find(|(since, ..)| Some(*since) == self.since) {
            pairs.push(("since", (*text).to_owned()));
        }
        if let Some((_, text, _)) = Trigger::NAMED.iter().find(|(trigger, ..)| Some(*trigger) == self.trigger)
        {
            pairs.push(("trigger", (*text).to_owned()));
        }
        let texts =
            [("workflow", &self.workflow), ("param", &self.param), ("key", &self.key), ("tag", &self.tag)];
        pairs.extend(texts.into_iter().filter_map(|(name, value)| Some((name, value.clone()?))));
        pairs.extend(self.before.map(|before| ("before", before.to_string())));
        pairs
    }

    /// The query of the address, with its question mark.
    #[must_use]
    pub fn query(&self) -> String {
        let pairs = self.pairs();
        url::query(pairs.iter().map(|(name, value)| (*name, value.as_str())))
    }

    /// The time that is shown: unfinished runs of all times, others of 24 hours, unless the reader says otherwise. A run
    /// with a key and the pages after the first are of all times.
    #[must_use]
    pub fn time(&self) -> Since {
        self.since.unwrap_or(match self.tab {
            Tab::Running | Tab::Waiting => Since::Ever,
            Tab::All | Tab::Failed | Tab::Cancelled | Tab::Successful => match (&self.key, self.before) {
                (None, None) => Since::Day,
                (Some(_), _) | (_, Some(_)) => Since::Ever,
            },
        })
    }

    /// The same in words, after a number of runs.
    pub(super) fn time_in_words(&self) -> &'static str {
        match self.time() {
            Since::Hour => "of the last hour",
            Since::Day => "of the last 24 hours",
            Since::Week => "of the last 7 days",
            Since::Month => "of the last 30 days",
            Since::Ever => "of all times",
        }
    }

    /// Whether this is the time that is shown, for the form.
    pub(super) fn is_time(&self, since: &Since) -> bool {
        self.time() == *since
    }

    /// Whether this trigger is asked for, for the form.
    pub(super) fn is_trigger(&self, trigger: &Trigger) -> bool {
        self.trigger == Some(*trigger)
    }

    /// Whether this workflow is asked for, for the form.
    pub(super) fn is_workflow(&self, workflow: &str) -> bool {
        self.workflow.as_deref() == Some(workflow)
    }

    /// The names of triggers, for the form.
    pub(super) fn triggers(&self) -> [(Trigger, &'static str, &'static str); 6] {
        Trigger::NAMED
    }

    /// The times, for the form.
    pub(super) fn times(&self) -> [(Since, &'static str, &'static str); 5] {
        Since::NAMED
    }

    /// The state in the address, for the form.
    pub(super) fn state(&self) -> &'static str {
        Tab::NAMED.iter().find(|(tab, _)| *tab == self.tab).map_or("", |(_, text)| text)
    }

    /// Whether anything but the state and the time is asked for.
    #[must_use]
    pub fn has_conditions(&self) -> bool {
        let Filter { tab: _, since: _, workflow, param, key, tag, trigger, before: _ } = self;
        workflow.is_some() || param.is_some() || key.is_some() || tag.is_some() || trigger.is_some()
    }

    /// The first instant that is shown.
    #[must_use]
    pub fn created(&self, now_ms: i64) -> TimeRange {
        TimeRange { from_ms: self.time().hours().map(|hours| now_ms - hours * 3_600_000), until_ms: None }
    }

    /// The filter of the store.
    #[must_use]
    pub fn of_store(&self, now_ms: i64) -> RunFilter {
        RunFilter {
            workflow: self.workflow.clone(),
            tag: self.tag.clone(),
            statuses: self.tab.status().into_iter().collect(),
            created: self.created(now_ms),
            run_key: self.key.clone(),
            params: self
                .param
                .as_deref()
                .and_then(|param| param.split_once('='))
                .map(|(name, value)| ParamFilter {
                    name: name.trim().to_owned(),
                    value: value.trim().to_owned(),
                })
                .into_iter()
                .collect(),
            started_by: self.trigger.map(|trigger| match trigger {
                Trigger::Hand => StartedBy::Submission,
                Trigger::Source(source) => StartedBy::Schedule(source),
            }),
            cursor: Cursor { before: self.before, after: None, limit: RUNS_OF_PAGE },
            ..RunFilter::default()
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_filter_comes_back_from_its_address() {
        for query in [
            "",
            "?state=failed&since=7d&trigger=event&workflow=etl%20orders&param=day%3D2026-11-21&key=k%26&tag=t&before=9",
            "?state=waiting",
        ] {
            let filter = Filter::parse(query.trim_start_matches('?')).unwrap();
            assert_eq!(filter.query(), query);
        }
        assert_eq!(Filter::parse("state=&workflow=&param=").unwrap(), Filter::default());
    }

    #[test]
    fn what_is_no_filter_is_refused() {
        let cases = [
            ("stat=failed", "is no filter of runs"),
            ("state=broken", "running, waiting, failed, cancelled, successful"),
            ("since=2d", "1h, 24h, 7d, 30d, ever"),
            ("before=x", "is no number of a run"),
            ("param=day", "name=value"),
        ];
        for (query, says) in cases {
            let error = Filter::parse(query).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
        assert!(Filter::parse(&format!("key={}", "k".repeat(501))).unwrap_err().contains("500 bytes"));
    }

    #[test]
    fn unfinished_runs_are_of_all_times_unless_the_reader_says_otherwise() {
        let time = |query: &str| Filter::parse(query).unwrap().time();
        assert_eq!(time(""), Since::Day);
        assert_eq!(time("state=running"), Since::Ever);
        assert_eq!(time("state=running&since=1h"), Since::Hour);
        assert_eq!(time("key=k"), Since::Ever);
        assert_eq!(Filter::parse("").unwrap().of_store(100_000_000).created.from_ms, Some(13_600_000));
    }
}
