//! `[notify.NAME]` of the configuration: the targets of notifications.

use std::path::{Path, PathBuf};

use windlass_engine::signature::SigningKey;
use windlass_engine::store::{NewTarget, NotificationEvent, TARGETS_MAX};
use windlass_worker::{MessageCommand, Recipient, check_url};
use windlass_workflow::strict::{Named, Table};

use super::secret::{self, ConfiguredSecret};
#[cfg(feature = "otlp")]
use super::traces::Collector;
use crate::arguments::check_name;
use crate::error::Failure;

/// How long a delivery may take if nothing else is said.
const TIMEOUT_MS: i64 = 10_000;
/// The longest time for a delivery.
pub(super) const TIMEOUT_MAX_MS: i64 = 5 * 60_000;
/// What a target wants if nothing else is said.
const EVENTS: [NotificationEvent; 3] =
    [NotificationEvent::RunFailed, NotificationEvent::ScheduleLate, NotificationEvent::WorkerDead];

/// A target of notifications. The address and the command are in no table and in no log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NotifyTarget {
    pub(crate) name: String,
    pub(crate) means: Means,
    pub(crate) timeout_ms: i64,
    pub(crate) on: Vec<NotificationEvent>,
    pub(crate) workflows: Vec<String>,
    pub(crate) tags: Vec<String>,
}

/// How a target is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Means {
    /// With messages.
    Messages {
        recipient: Recipient,
        /// What signs the messages of an address: one secret, or two while it is changed.
        secrets: Vec<ConfiguredSecret>,
    },
    /// With traces of runs.
    #[cfg(feature = "otlp")]
    Traces(Collector),
}

impl NotifyTarget {
    /// What the tables have of it.
    pub(crate) fn row(&self) -> NewTarget {
        NewTarget {
            name: self.name.clone(),
            events: self.on.clone(),
            workflows: self.workflows.clone(),
            tags: self.tags.clone(),
        }
    }

    /// The target with the values of its secrets.
    pub(crate) fn resolve(&self) -> Result<NotifyTarget, Failure> {
        let means = match &self.means {
            Means::Messages { recipient, secrets } => {
                let recipient = signed(recipient, secrets, &format!("the target `{}`", self.name))?;
                Means::Messages { recipient, secrets: secrets.clone() }
            }
            #[cfg(feature = "otlp")]
            Means::Traces(collector) => Means::Traces(collector.resolve()?),
        };
        Ok(NotifyTarget { means, ..self.clone() })
    }

    /// How it is reached, for people.
    pub(crate) fn means(&self) -> &'static str {
        match &self.means {
            Means::Messages { recipient: Recipient::Url { .. }, .. } => "url",
            Means::Messages { recipient: Recipient::Command(_), .. } => "command",
            #[cfg(feature = "otlp")]
            Means::Traces(_) => "traces",
        }
    }
}

/// The recipient with the keys that sign its messages. `owner` is for people.
fn signed(recipient: &Recipient, secrets: &[ConfiguredSecret], owner: &str) -> Result<Recipient, Failure> {
    let keys = secrets.iter().map(|secret| secret.key(owner, SigningKey::standard));
    let keys = keys.collect::<Result<Vec<SigningKey>, Failure>>()?;
    Ok(match recipient {
        Recipient::Url { url, keys: _ } => Recipient::Url { url: url.clone(), keys },
        Recipient::Command(command) => Recipient::Command(command.clone()),
    })
}

/// The keys of a target as they were read.
struct Keys {
    url: Option<String>,
    command: Option<Vec<String>>,
    timeout_ms: Option<i64>,
    on: Option<Vec<String>>,
    workflows: Option<Vec<String>>,
    tags: Option<Vec<String>>,
    secrets: Vec<ConfiguredSecret>,
}

pub(super) fn targets(table: &mut Table<'_, '_>, folder: &Path) -> Vec<NotifyTarget> {
    let mut targets = Vec::new();
    table.named("notify", |mut entry| {
        let Some(keys) = entry.table("a target of notifications", |table| keys(table, folder)) else {
            return;
        };
        let name = entry.name().to_owned();
        if let Err(reason) = check_name(&name) {
            entry.refuse_name(format!("`{name}` can't be the name of a target"), reason);
        }
        if targets.len() == TARGETS_MAX {
            entry.refuse_name(format!("there are more than {TARGETS_MAX} targets"), "remove some of them");
        }
        let Some(recipient) = recipient(&mut entry, keys.url, keys.command, folder) else { return };
        if matches!(recipient, Recipient::Command(_)) && !keys.secrets.is_empty() {
            entry.refuse_name(
                format!("the target `{name}` has a `secret` and no `url`"),
                "remove the secret: a command gets its messages from this machine",
            );
        }
        let on = keys.on.map(|on| on.iter().filter_map(|event| NotificationEvent::parse(event)).collect());
        targets.push(NotifyTarget {
            name,
            means: Means::Messages { recipient, secrets: keys.secrets },
            timeout_ms: keys.timeout_ms.unwrap_or(TIMEOUT_MS),
            on: on.unwrap_or_else(|| EVENTS.to_vec()),
            workflows: keys.workflows.unwrap_or_default(),
            tags: keys.tags.unwrap_or_default(),
        });
    });
    targets
}

fn keys(table: &mut Table<'_, '_>, folder: &Path) -> Keys {
    let secret = secret::take(table, "secret", folder);
    let former = secret::take(table, "former_secret", folder);
    Keys {
        url: table.text("url"),
        command: table.texts("command", |_word| Ok(())),
        timeout_ms: table.duration_ms("timeout", 1_000..=TIMEOUT_MAX_MS),
        on: table.texts("on", check_event),
        workflows: table.texts("workflows", check_workflow),
        tags: table.texts("tags", check_name),
        secrets: secret.into_iter().chain(former).collect(),
    }
}

/// The messages repeat neither the address nor the command.
fn recipient(
    entry: &mut Named<'_, '_>,
    url: Option<String>,
    command: Option<Vec<String>>,
    folder: &Path,
) -> Option<Recipient> {
    let name = entry.name().to_owned();
    match (url, command) {
        (Some(url), None) => match check_url(&url) {
            Ok(()) => Some(Recipient::Url { url, keys: Vec::new() }),
            Err(reason) => {
                entry.refuse_name(format!("`url` of the target `{name}` can't be used"), reason);
                None
            }
        },
        (None, Some(words)) if !words.is_empty() => Some(Recipient::Command(in_folder(words, folder))),
        (None, Some(_)) | (None, None) | (Some(_), Some(_)) => {
            entry.refuse_name(
                format!("the target `{name}` needs either `url` or `command`"),
                "write url = \"https://…\", or command = [\"PROGRAM\", \"ARGUMENT\"]",
            );
            None
        }
    }
}

/// A command starts in the folder of the configuration. So a relative path of its program starts there too.
fn in_folder(mut words: Vec<String>, folder: &Path) -> MessageCommand {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let folder = std::path::absolute(folder).unwrap_or_else(|_no_current_folder| PathBuf::from("."));
    if let Some(program) = words.first_mut()
        && program.contains('/')
        && let Some(path) = folder.join(&*program).to_str()
    {
        *program = path.to_owned();
    }
    MessageCommand { words, dir: Some(folder) }
}

fn check_event(text: &str) -> Result<(), String> {
    match NotificationEvent::parse(text) {
        Some(_) => Ok(()),
        None => Err(format!(
            "must be one of {}",
            NotificationEvent::ALL.map(NotificationEvent::as_str).join(", ")
        )),
    }
}

/// The name of a workflow, or the beginning of one before `*`.
pub(super) fn check_workflow(text: &str) -> Result<(), String> {
    let name = text.strip_suffix('*').unwrap_or(text);
    match name.is_empty() {
        true => Ok(()),
        false if name.contains('*') => Err("`*` is allowed at the end only".to_owned()),
        false => check_name(name),
    }
}
