//! The kind `sleep`: a job that ends at an instant. The scheduler ends it, and no worker is needed.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::{Action, ActionKey, Defaults, Kind, Summary, SummaryText};
use crate::expression::Place;
use crate::field::{self, KnownNames, WorkflowError, refuse};
use crate::key::{Key, Table, ValueType};
use crate::report::{Finding, Findings};
use crate::template::{self, Templates};
use crate::tree::{Entry, Value};
use crate::{duration, expect, keys, schedule};

pub(super) const KIND: Kind = Kind {
    name: "sleep",
    action_keys: &[ActionKey { key: SLEEP, holds: "a duration" }],
    other_keys: &[],
    read,
    check_payload: |_payload| {
        Err("a `sleep` is a job of a workflow; use `--delay` for a job alone".to_owned())
    },
    summarize_payload: |payload| serde_json::from_str::<Sleep>(payload).ok().map(|sleep| sleep.summary()),
};

const SLEEP: Key =
    Key::new("sleep", &[ValueType::Duration, ValueType::Table(Table::Sleep)], "how long the job waits")
        .template(Place::Wait)
        .elsewhere(&["wait", "pause", "suspend"]);

/// `until` of `sleep`.
pub(crate) const UNTIL: Key =
    Key::new("until", &[ValueType::Text, ValueType::Instant], "the instant at which the job ends")
        .template(Place::Wait)
        .elsewhere(&["at", "till"]);

/// The zone of an instant without an offset.
const TIMEZONE: &str = "UTC";

/// When the job ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sleep {
    /// After a duration, counted from when the job is ready. May be a template.
    For(String),
    /// At an instant. May be a template.
    Until(String),
}

/// When a job wakes up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wake {
    /// After so many milliseconds.
    After(i64),
    /// At an instant, in milliseconds since the Unix epoch.
    At(i64),
}

impl Sleep {
    /// When the job wakes up, with the values that its template can name.
    ///
    /// # Errors
    /// The template has no value, or its value is no duration or no instant. The message has no values.
    pub fn wake(&self, values: &Json) -> Result<Wake, String> {
        let (text, key) = match self {
            Sleep::For(text) => (text, "`sleep`"),
            Sleep::Until(text) => (text, "`sleep.until`"),
        };
        let rendered = template::render(text, values).map_err(|error| format!("{key}: {error}"))?;
        let woken = match self {
            Sleep::For(_) => duration::parse_ms(&rendered).map(Wake::After),
            Sleep::Until(_) => schedule::parse_instant(&rendered, TIMEZONE).map(Wake::At),
        };
        let noun = match self {
            Sleep::For(_) => "a duration",
            Sleep::Until(_) => "an instant",
        };
        woken.map_err(|reason| format!("{key} gives a text that is not {noun}: {reason}"))
    }

    pub(super) fn payload(&self) -> String {
        serde_json::to_string(self).expect("a sleep has only string keys")
    }

    pub(super) fn summary(&self) -> Summary {
        let text = match self {
            Sleep::For(text) => text.clone(),
            Sleep::Until(text) => format!("until {text}"),
        };
        Summary { label: "sleep", text: SummaryText::Lines(text) }
    }

    pub(super) fn check(&self, names: &KnownNames<'_>) -> Result<Vec<usize>, WorkflowError> {
        let (text, name) = match self {
            Sleep::For(text) => (text, "action.for"),
            Sleep::Until(text) => (text, "action.until"),
        };
        field::filled(text, name)?;
        if template::is_template(text) {
            return field::outputs_read(text, name, names, Place::Wait);
        }
        if let Err(reason) = self.wake(&Json::Null) {
            refuse(name, reason)?;
        }
        Ok(Vec::new())
    }
}

impl From<Sleep> for Action {
    fn from(sleep: Sleep) -> Action {
        Action::Sleep(sleep)
    }
}

fn read<'t>(
    keys: &[&'t Entry<'_>],
    _defaults: &Defaults,
    templates: &mut Templates<'t>,
    findings: &mut Findings,
) -> Option<Action> {
    let entry = keys.iter().find(|entry| entry.key == SLEEP.name())?;
    match &entry.node.value {
        Value::Table(_) => read_until(entry, templates, findings),
        Value::Text(text) if template::is_template(text) => {
            templates.add(&entry.node, &SLEEP);
            Some(Sleep::For(text.to_string()))
        }
        Value::Text(text) => {
            expect::duration_ms(entry, expect::ShortestDuration::Zero, findings)?;
            Some(Sleep::For(text.to_string()))
        }
        Value::Integer(_)
        | Value::Number(_)
        | Value::Boolean(_)
        | Value::Date(_)
        | Value::Null
        | Value::Broken
        | Value::List(_) => {
            expect::duration_ms(entry, expect::ShortestDuration::Zero, findings)?;
            None
        }
    }
    .map(Action::Sleep)
}

fn read_until<'t>(
    entry: &'t Entry<'_>,
    templates: &mut Templates<'t>,
    findings: &mut Findings,
) -> Option<Sleep> {
    let (mut until, before) = (None, findings.count());
    for part in expect::table(entry, usize::MAX, "a duration, or a table like { until = \"…\" }", findings)?
    {
        if keys::find(part, Table::Sleep, findings).is_ok() {
            until = read_instant(part, templates, findings);
        }
    }
    if until.is_none() && findings.count() == before {
        let finding = Finding::new(entry.node.span.clone(), "`sleep` does not say how long");
        findings.push(finding.help("write sleep = \"2h\", or sleep = { until = \"{{ params.at }}\" }"));
    }
    until
}

fn read_instant<'t>(
    part: &'t Entry<'_>,
    templates: &mut Templates<'t>,
    findings: &mut Findings,
) -> Option<Sleep> {
    let text = if let Value::Date(text) = &part.node.value {
        text.to_string()
    } else {
        expect::filled_text(&part.node, "`until`", findings)?.to_owned()
    };
    templates.add(&part.node, &UNTIL);
    if !template::is_template(&text)
        && let Err(reason) = schedule::parse_instant(&text, TIMEZONE)
    {
        let finding = Finding::new(part.node.span.clone(), "`until` is not an instant");
        findings.push(finding.help(reason));
        return None;
    }
    Some(Sleep::Until(text))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn a_sleep_ends_after_a_duration_or_at_an_instant() {
        let values =
            json!({ "params": { "pause": "1m 30s", "at": "2026-01-31T00:00:00Z", "day": "2026-01-31" } });
        let wake = |sleep: Sleep| sleep.wake(&values);
        assert_eq!(wake(Sleep::For("2h".to_owned())), Ok(Wake::After(7_200_000)));
        assert_eq!(wake(Sleep::For("{{ params.pause }}".to_owned())), Ok(Wake::After(90_000)));
        let midnight = Wake::At(1_769_817_600_000);
        assert_eq!(wake(Sleep::Until("{{ params.at }}".to_owned())), Ok(midnight));
        assert_eq!(wake(Sleep::Until("{{ params.day }}".to_owned())), Ok(midnight));
        for (sleep, reason) in [
            (Sleep::For("{{ params.at }}".to_owned()), "`sleep` gives a text that is not a duration"),
            (
                Sleep::Until("{{ params.pause }}".to_owned()),
                "`sleep.until` gives a text that is not an instant",
            ),
            (Sleep::For("{{ params.none }}".to_owned()), "{{ params.none }}"),
        ] {
            let error = wake(sleep).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
    }
}
