//! `[traces]` of the configuration: the collector that gets a trace of each run. It is a target of its own of the end of runs.

use std::path::Path;

use windlass_engine::store::{NotificationEvent, TARGETS_MAX};
use windlass_worker::check_url;
use windlass_workflow::kinds::http::check_header;
use windlass_workflow::strict::{Named, Table};

use super::notify::{Means, NotifyTarget, TIMEOUT_MAX_MS, check_workflow};
use super::secret::{self, ConfiguredSecret};
use crate::arguments::check_name;
use crate::error::Failure;

/// The key, which is also the name of the target.
const TRACES: &str = "traces";
/// How long the delivery of a trace may take if nothing else is said.
const TIMEOUT_MS: i64 = 30_000;
/// The most headers.
const HEADERS_MAX: usize = 20;
/// The ends of runs: all of them.
const EVENTS: [NotificationEvent; 3] =
    [NotificationEvent::RunFailed, NotificationEvent::RunCancelled, NotificationEvent::RunSuccessful];

/// A collector of traces. Its address and its headers are in no table and in no log.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Collector {
    pub(crate) url: String,
    /// The headers with their values, once the secrets are found.
    pub(crate) headers: Vec<(String, String)>,
    sources: Vec<(String, HeaderSource)>,
}

/// Where the value of a header is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum HeaderSource {
    Text(String),
    Secret(ConfiguredSecret),
}

impl std::fmt::Debug for Collector {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Collector(…)")
    }
}

impl Collector {
    /// The collector with the values of its headers.
    pub(super) fn resolve(&self) -> Result<Collector, Failure> {
        let headers = self.sources.iter().map(|(name, source)| {
            let value = match source {
                HeaderSource::Text(text) => text.clone(),
                HeaderSource::Secret(secret) => secret.header(name)?,
            };
            Ok((name.clone(), value))
        });
        Ok(Collector { headers: headers.collect::<Result<_, Failure>>()?, ..self.clone() })
    }
}

/// Reads the table, and adds its target to the others.
pub(super) fn take(table: &mut Table<'_, '_>, folder: &Path, targets: &mut Vec<NotifyTarget>) {
    let Some(Some(target)) = table.table(TRACES, |table| target(table, folder)) else { return };
    if targets.iter().any(|other| other.name == TRACES) {
        table.refuse_key(
            TRACES,
            "`[traces]` and `[notify.traces]` have the same name",
            "give the target of notifications another name",
        );
    }
    if targets.len() == TARGETS_MAX {
        let message = format!("there are {TARGETS_MAX} targets of notifications besides `[traces]`");
        table.refuse_key(TRACES, message, "remove one of them");
    }
    targets.push(target);
}

fn target(table: &mut Table<'_, '_>, folder: &Path) -> Option<NotifyTarget> {
    let endpoint = table.text("endpoint");
    let timeout_ms = table.duration_ms("timeout", 1_000..=TIMEOUT_MAX_MS);
    let workflows = table.texts("workflows", check_workflow).unwrap_or_default();
    let tags = table.texts("tags", check_name).unwrap_or_default();
    let mut sources = Vec::new();
    table.named("headers", |mut entry| {
        let name = entry.name().to_owned();
        if sources.len() == HEADERS_MAX {
            entry.refuse_name(format!("there are more than {HEADERS_MAX} headers"), "remove some of them");
        }
        sources.extend(header(&mut entry, folder).map(|source| (name, source)));
    });
    let Some(url) = endpoint else {
        table.refuse("`[traces]` needs `endpoint`", "write endpoint = \"http://localhost:4318/v1/traces\"");
        return None;
    };
    if let Err(reason) = check_url(&url) {
        // The report does not show the address.
        table.refuse("`endpoint` of `[traces]` can't be used", reason);
    }
    Some(NotifyTarget {
        name: TRACES.to_owned(),
        means: Means::Traces(Collector { url, headers: Vec::new(), sources }),
        timeout_ms: timeout_ms.unwrap_or(TIMEOUT_MS),
        on: EVENTS.to_vec(),
        workflows,
        tags,
    })
}

/// The value of a header: a text, or a secret.
fn header(entry: &mut Named<'_, '_>, folder: &Path) -> Option<HeaderSource> {
    let source = match entry.value().as_ref().and_then(|value| value.as_str()) {
        Some(text) => HeaderSource::Text(text.to_owned()),
        None => HeaderSource::Secret(secret::of_entry(entry, folder)?),
    };
    let text = match &source {
        HeaderSource::Text(text) => text.as_str(),
        HeaderSource::Secret(_) => "",
    };
    if let Err(reason) = check_header(entry.name(), text) {
        let message = format!("the header `{}` can't be sent", entry.name());
        entry.refuse_name(message, reason);
    }
    Some(source)
}
