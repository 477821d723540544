//! Which runs the list shows, as the address says it.

use chrono::{DateTime, SecondsFormat};
use windlass_engine::store::{Cursor, ParamFilter, RunFilter, StartedBy, TimeRange};
use windlass_engine::{RunSource, RunStatus};

use super::RUNS_OF_PAGE;
use crate::pages::times::Times;
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
    /// The name of the schedule or the trigger that started them: `WORKFLOW/NAME`, or a name that is there once.
    pub by: Option<String>,
    /// The first instant at which they were accepted, in milliseconds.
    pub from_ms: Option<i64>,
    /// The instant before which they were accepted, in milliseconds.
    pub until_ms: Option<i64>,
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
    /// PENDING: none of their jobs has begun.
    Pending,
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
        (Tab::Pending, "pending"),
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
            Tab::Pending => Some(RunStatus::Pending),
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

    /// What the list of runs compares.
    pub(crate) fn started_by(self) -> StartedBy {
        match self {
            Trigger::Hand => StartedBy::Submission,
            Trigger::Source(source) => StartedBy::Schedule(source),
        }
    }
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
        // The form always sends a time up to now.
        if filter.has_instants() {
            filter.since = None;
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
            "from" => self.from_ms = Some(instant_ms(name, &value)?),
            "until" => self.until_ms = Some(instant_ms(name, &value)?),
            "by" => self.by = Some(value),
            "workflow" => self.workflow = Some(value),
            "key" => self.key = Some(value),
            "tag" => self.tag = Some(value),
            _ => {
                return Err(format!(
                    "`{name}` is no filter of runs. The filters are state, since, from, until, workflow, param, key, \
                     tag, trigger and by."
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
        let instants = [("from", self.from_ms), ("until", self.until_ms)];
        pairs.extend(instants.into_iter().filter_map(|(name, at_ms)| Some((name, instant_text(at_ms?)?))));
        let texts = [
            ("by", &self.by),
            ("workflow", &self.workflow),
            ("param", &self.param),
            ("key", &self.key),
            ("tag", &self.tag),
        ];
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
            Tab::Running | Tab::Pending => Since::Ever,
            Tab::All | Tab::Failed | Tab::Cancelled | Tab::Successful => match (&self.key, self.before) {
                (None, None) if !self.has_instants() => Since::Day,
                (None, None) | (Some(_), _) | (_, Some(_)) => Since::Ever,
            },
        })
    }

    /// Whether the time has a beginning or an end of its own.
    #[must_use]
    pub fn has_instants(&self) -> bool {
        self.from_ms.is_some() || self.until_ms.is_some()
    }

    /// Whether the reader has chosen the time.
    #[must_use]
    pub fn has_chosen_time(&self) -> bool {
        self.since.is_some() || self.has_instants()
    }

    /// The same in words, after a number of runs.
    pub(super) fn time_in_words(&self, times: &Times) -> String {
        let at = |at_ms| times.minute(at_ms);
        match (self.from_ms, self.until_ms, self.time()) {
            (Some(from), Some(until), _) => format!("from {} until {}", at(from), at(until)),
            (Some(from), None, _) => format!("since {}", at(from)),
            (None, Some(until), _) => format!("until {}", at(until)),
            (None, None, Since::Hour) => "of the last hour".to_owned(),
            (None, None, Since::Day) => "of the last 24 hours".to_owned(),
            (None, None, Since::Week) => "of the last 7 days".to_owned(),
            (None, None, Since::Month) => "of the last 30 days".to_owned(),
            (None, None, Since::Ever) => "of all times".to_owned(),
        }
    }

    /// Whether this is the time that is shown, for the form.
    pub(super) fn is_time(&self, since: &Since) -> bool {
        !self.has_instants() && self.time() == *since
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
        self.workflow.is_some() || self.has_instants() || self.compares_rows()
    }

    /// Whether runs are asked for by what no index counts.
    #[must_use]
    pub fn compares_rows(&self) -> bool {
        let Filter { param, key, tag, trigger, by, .. } = self;
        param.is_some() || key.is_some() || tag.is_some() || trigger.is_some() || by.is_some()
    }

    /// The time that is shown.
    #[must_use]
    pub fn created(&self, now_ms: i64) -> TimeRange {
        match self.has_instants() {
            true => TimeRange { from_ms: self.from_ms, until_ms: self.until_ms },
            false => TimeRange {
                from_ms: self.time().hours().map(|hours| now_ms - hours * 3_600_000),
                until_ms: None,
            },
        }
    }

    /// The filter of the store, but for the name of what started the runs, which needs a look into the tables.
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
            started_by: self.trigger.map(Trigger::started_by),
            cursor: Cursor { before: self.before, after: None, limit: RUNS_OF_PAGE },
            ..RunFilter::default()
        }
    }
}

fn instant_ms(name: &str, text: &str) -> Result<i64, String> {
    match DateTime::parse_from_rfc3339(text) {
        Ok(at) => Ok(at.timestamp_millis()),
        Err(_no_instant) => {
            Err(format!("`{text}` is no instant for `{name}`. Write it as 2026-11-21T06:00:00Z."))
        }
    }
}

fn instant_text(at_ms: i64) -> Option<String> {
    Some(DateTime::from_timestamp_millis(at_ms)?.to_rfc3339_opts(SecondsFormat::Millis, true))
}

/// The query with its `from` and `until` as instants, if a form has sent local times of the reader. So the address of a list
/// means the same to everybody.
///
/// # Errors
/// A sentence if the query is too long or no text.
pub fn with_instants(query: &str, times: &Times) -> Result<Option<String>, String> {
    let mut has_local = false;
    let pairs = url::filled_pairs(query)?.into_iter().map(|(name, value)| {
        let local = match name.as_str() {
            "from" | "until" => times.instant_of(&value).and_then(instant_text),
            _ => None,
        };
        has_local |= local.is_some();
        (name, local.unwrap_or(value))
    });
    let pairs: Vec<(String, String)> = pairs.collect();
    let query = url::query(pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())));
    Ok(has_local.then_some(query))
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
            "?state=pending",
            "?from=2026-11-21T05%3A00%3A00.000Z&until=2026-11-21T06%3A00%3A00.000Z&by=etl%2Fnight",
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
            ("state=broken", "running, pending, failed, cancelled, successful"),
            ("since=2d", "1h, 24h, 7d, 30d, ever"),
            ("before=x", "is no number of a run"),
            ("param=day", "name=value"),
            ("from=today", "is no instant for `from`"),
        ];
        for (query, says) in cases {
            let error = Filter::parse(query).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
        assert!(Filter::parse(&format!("key={}", "k".repeat(501))).unwrap_err().contains("500 bytes"));
    }

    #[test]
    fn local_times_of_a_form_become_instants() {
        let times = Times { zone: chrono_tz::Tz::Europe__Berlin, now_ms: 0 };
        let sent = with_instants("state=&since=24h&from=2026-11-21T06:00&until=", &times).unwrap().unwrap();
        assert_eq!(sent, "?since=24h&from=2026-11-21T05%3A00%3A00.000Z");
        let filter = Filter::parse(&sent[1..]).unwrap();
        assert_eq!((filter.since, filter.from_ms), (None, Some(1_795_237_200_000)));
        assert_eq!(filter.created(5).from_ms, filter.from_ms);
        assert_eq!(with_instants(&sent[1..], &times).unwrap(), None);
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
