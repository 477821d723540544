//! The configuration file, which is read as strictly as a workflow file. Every verb reads it.

mod find;
#[cfg(feature = "web")]
mod hooks;
mod notify;
mod secret;
#[cfg(feature = "otlp")]
mod traces;
#[cfg(feature = "web")]
mod web;
#[cfg(any(test, not(feature = "otlp")))]
mod without_traces;

use std::path::{Path, PathBuf};
use std::time::Duration;

use windlass_scheduler::Retention;
use windlass_worker::{LinkLocal, THREADS_MAX};
use windlass_workflow::strict::{self, Table};
use windlass_workflow::{Source, limits};

use crate::arguments::{
    ConfiguredOptions, DatabaseArgument, Durability, LogFormat, MAX_LEASE, MIN_LEASE, check_name,
};
use crate::error::Failure;
use crate::read_file;
#[cfg(feature = "web")]
use crate::read_file::PathOrigin;
pub(crate) use find::{ConfigFile, find};
#[cfg(feature = "web")]
pub(crate) use hooks::ConfiguredHook;
pub(crate) use notify::{Means, NotifyTarget};
#[cfg(feature = "otlp")]
pub(crate) use traces::Collector;
#[cfg(feature = "web")]
pub(crate) use web::{WebConfig, WebInServe, parse_listen};

/// The largest configuration file.
const FILE_BYTES: usize = 1024 * 1024;
/// The longest grace period.
pub(crate) const GRACE_MAX: Duration = Duration::from_secs(24 * 3600);
/// The levels of the log.
const LEVELS: [(&str, &str); 5] =
    [("error", "error"), ("warn", "warn"), ("info", "info"), ("debug", "debug"), ("trace", "trace")];

/// The values of a configuration file. `None` means that the file does not set the value.
#[derive(Debug, Clone, Default)]
pub(crate) struct Config {
    pub(crate) global: ConfiguredOptions,
    pub(crate) workflows: Option<PathBuf>,
    pub(crate) threads: Option<i64>,
    pub(crate) queues: Option<Vec<String>>,
    pub(crate) capabilities: Option<Vec<String>>,
    pub(crate) code_version: Option<i64>,
    pub(crate) grace: Option<Duration>,
    pub(crate) retention: Retention,
    pub(crate) notify: Vec<NotifyTarget>,
    pub(crate) log_format: Option<LogFormat>,
    pub(crate) log_level: Option<&'static str>,
    #[cfg(feature = "web")]
    pub(crate) web: WebConfig,
    #[cfg(feature = "web")]
    pub(crate) hooks: Vec<ConfiguredHook>,
}

/// Reads the configuration of this process. Without a file, it sets nothing.
pub(crate) fn read_here(named: Option<&Path>) -> Result<Config, Failure> {
    find(named)?.map_or_else(|| Ok(Config::default()), |file| load(&file))
}

/// The same once more, in a process that goes on. A pipe was read at the start and may have no more content.
#[cfg(feature = "web")]
pub(crate) fn read_again(named: Option<&Path>) -> Result<Config, Failure> {
    let file = find(named)?.map(|file| ConfigFile { origin: PathOrigin::Found, ..file });
    file.map_or_else(|| Ok(Config::default()), |file| load(&file))
}

/// Reads the file. Relative paths in it start at its folder.
pub(crate) fn load(file: &ConfigFile) -> Result<Config, Failure> {
    let path = file.path.as_path();
    let bytes = read_file::read(path, FILE_BYTES, file.origin)?;
    if bytes.len() > FILE_BYTES {
        return Err(Failure::usage(
            format!("the configuration {} is larger than {} KiB", path.display(), FILE_BYTES / 1024),
            "choose another file with --config",
        ));
    }
    let folder = path.parent().unwrap_or(Path::new("")).to_owned();
    Source::new(path.display().to_string(), bytes)
        .and_then(|source| strict::read(&source, "the configuration", |table| take(table, &folder)))
        .map_err(|report| Failure::InvalidWorkflow {
            report: Box::new(report),
            help: format!("correct the file; `windlass serve --check --config {}` checks it", path.display()),
        })
}

fn take(table: &mut Table<'_, '_>, folder: &Path) -> Config {
    let global = ConfiguredOptions {
        database: table.parsed("database", |text| database(text, folder)),
        durability: table.word("durability", &[("full", Durability::Full), ("normal", Durability::Normal)]),
        lease: duration(table, "lease", MIN_LEASE, MAX_LEASE),
        files: table.table("files", |table| table.text("dir").map(|text| folder.join(text))).flatten(),
        link_local: table.table("http", link_local),
        container_program: table.table("container", |table| program(table, folder)).flatten(),
    };
    Config {
        global,
        workflows: table.text("workflows").map(|text| folder.join(text)),
        threads: table.integer("threads", 1..=THREADS_MAX),
        queues: table.texts("queues", check_name),
        capabilities: table.texts("capabilities", check_name),
        code_version: table.integer("code_version", 0..=i64::MAX),
        grace: duration(table, "grace", Duration::ZERO, GRACE_MAX),
        retention: Retention {
            keep_events_ms: table.table("events", keep_events_ms).flatten(),
            ..table.table("retention", retention).unwrap_or_default()
        },
        notify: targets(table, folder),
        log_format: table.word("log_format", &[("text", LogFormat::Text), ("json", LogFormat::Json)]),
        log_level: table.word("log_level", &LEVELS),
        #[cfg(feature = "web")]
        web: table.table("web", |table| web::take(table, folder)).unwrap_or_default(),
        #[cfg(feature = "web")]
        hooks: hooks::take(table, folder),
    }
}

/// The targets of notifications, and that of traces.
fn targets(table: &mut Table<'_, '_>, folder: &Path) -> Vec<NotifyTarget> {
    #[cfg_attr(not(feature = "otlp"), allow(unused_mut, reason = "traces add a target"))]
    let mut targets = notify::targets(table, folder);
    #[cfg(feature = "otlp")]
    traces::take(table, folder, &mut targets);
    #[cfg(not(feature = "otlp"))]
    without_traces::refuse(table);
    targets
}

fn retention(table: &mut Table<'_, '_>) -> Retention {
    Retention {
        max_age_ms: table.duration_ms("max_age", 1..=limits::DURATION_MS),
        max_runs_per_workflow: table.integer("max_runs_per_workflow", 1..=i64::MAX),
        keep_events_ms: None,
    }
}

/// How long events are kept.
fn keep_events_ms(table: &mut Table<'_, '_>) -> Option<i64> {
    table.duration_ms("keep", 1..=limits::DURATION_MS)
}

/// A container program: a name that is looked for, or a path relative to the folder of the configuration.
fn program(table: &mut Table<'_, '_>, folder: &Path) -> Option<String> {
    table.parsed("program", |text| match text {
        "" => Err("it is empty".to_owned()),
        // It is started in the folders of jobs.
        path if path.contains('/') => std::path::absolute(folder.join(path))
            .map(|path| path.to_string_lossy().into_owned())
            .map_err(|error| format!("it can't be resolved: {error}")),
        name => Ok(name.to_owned()),
    })
}

fn link_local(table: &mut Table<'_, '_>) -> LinkLocal {
    match table.boolean("allow_link_local") {
        Some(true) => LinkLocal::Allowed,
        Some(false) | None => LinkLocal::Refused,
    }
}

/// A database: the path of a file, relative to the folder of the configuration, or the URL of a server.
fn database(text: &str, folder: &Path) -> Result<DatabaseArgument, String> {
    DatabaseArgument::relative_to(text, folder)
}

fn duration(
    table: &mut Table<'_, '_>,
    key: &'static str,
    least: Duration,
    most: Duration,
) -> Option<Duration> {
    let ms = |duration: Duration| i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
    let duration_ms = table.duration_ms(key, ms(least)..=ms(most))?;
    Some(Duration::from_millis(duration_ms.unsigned_abs()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::read_file::PathOrigin;

    fn config(text: &str) -> Result<Config, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("windlass.toml");
        std::fs::write(&path, text).unwrap();
        load(&ConfigFile { path, origin: PathOrigin::Found }).map_err(|failure| {
            let text = format!("{failure:?}").replace("\\n", "\n");
            anstream::adapter::strip_str(&text.replace("\\u{1b}", "\u{1b}")).to_string()
        })
    }

    #[test]
    fn every_key_is_read() {
        let said = config(
            "database = 'data/w.db'\ndurability = 'normal'\nlease = '10s'\nworkflows = '/etc/w'\nthreads = 3\n\
             queues = ['mail']\ncapabilities = ['gpu']\ncode_version = 7\ngrace = '0s'\nlog_format = 'json'\n\
             log_level = 'debug'\n[retention]\nmax_age = '30d'\nmax_runs_per_workflow = 9\n[events]\nkeep = '3d'\n[http]\n\
             allow_link_local = true\n[container]\nprogram = 'podman'\n",
        )
        .unwrap();
        assert!(said.global.database.unwrap().shown().ends_with("/data/w.db"));
        assert_eq!(said.global.lease, Some(Duration::from_secs(10)));
        assert_eq!(said.global.durability, Some(Durability::Normal));
        assert_eq!(said.workflows, Some(PathBuf::from("/etc/w")));
        assert_eq!((said.threads, said.code_version, said.grace), (Some(3), Some(7), Some(Duration::ZERO)));
        assert_eq!(said.queues, Some(vec!["mail".to_owned()]));
        assert_eq!(said.capabilities, Some(vec!["gpu".to_owned()]));
        assert_eq!((said.log_format, said.log_level), (Some(LogFormat::Json), Some("debug")));
        let retention = Retention {
            max_age_ms: Some(30 * 86_400_000),
            max_runs_per_workflow: Some(9),
            keep_events_ms: Some(3 * 86_400_000),
        };
        assert_eq!(said.retention, retention);
        assert_eq!(said.global.link_local, Some(LinkLocal::Allowed));
        assert_eq!(said.global.container_program.as_deref(), Some("podman"));
    }

    #[test]
    fn an_empty_file_sets_nothing() {
        let said = config("").unwrap();
        assert!(said.workflows.is_none() && said.threads.is_none() && said.global.database.is_none());
        assert_eq!(said.retention, Retention::default());
        assert_eq!(said.global.link_local, None);
    }

    #[test]
    fn the_url_of_a_server_is_not_a_path() {
        let said = config("database = 'postgres://app@db.example/jobs'\n").unwrap();
        assert_eq!(said.global.database.unwrap().shown(), "postgres://app@db.example/jobs");
        let report = config("database = 'mysql://app:secret@db/jobs'\n").unwrap_err();
        assert!(report.contains("windlass cannot use a database"), "{report}");
    }
}
