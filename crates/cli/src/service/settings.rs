//! The settings of a service: from options, else the environment, else the configuration file, else defaults.

use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use windlass_engine::store::Scope;
use windlass_scheduler::Retention;
#[cfg(feature = "web")]
use windlass_web::Hook;
use windlass_worker::WorkerOptions;

use crate::arguments::{
    ConfiguredOptions, GlobalOptions, LogFormat, LogOptions, WorkOptions, parse_duration, push_option,
};
use crate::complete;
use crate::config::{self, Config, ConfigFile, GRACE_MAX, NotifyTarget};
#[cfg(feature = "web")]
use crate::config::{ConfiguredHook, WebConfig, WebInServe};
use crate::error::Failure;
use crate::read_file::PathOrigin;

/// The default grace period.
const DEFAULT_GRACE: Duration = Duration::from_secs(30);
/// The default level of the log.
pub(crate) const DEFAULT_LEVEL: &str = "info";

/// The settings of the command line and the environment.
#[derive(Debug, Clone, Args)]
pub(crate) struct ServiceOptions {
    /// A folder whose workflows are registered, at the start and when a file changes
    #[arg(long, value_name = "FOLDER", env = "WINDLASS_WORKFLOWS", hide_env_values = true)]
    workflows: Option<PathBuf>,

    /// Only jobs of these queues, separated by commas [default: all queues]
    #[arg(long = "queue", value_name = "QUEUES", add = complete::queue(), value_delimiter = ',')]
    queues: Option<Vec<String>>,

    #[command(flatten)]
    work: WorkOptions,

    /// How long running jobs may take to finish after SIGTERM; then they are stopped [default: 30s]
    #[arg(long, value_name = "DURATION", env = "WINDLASS_GRACE", value_parser = parse_grace)]
    #[arg(hide_env_values = true)]
    grace: Option<Duration>,

    #[command(flatten)]
    log: LogOptions,
}

impl ServiceOptions {
    /// The command that starts this service again.
    pub(crate) fn hint(&self, global: &GlobalOptions) -> String {
        let mut verb = "serve".to_owned();
        let folder = self.workflows.as_ref().map(|folder| folder.display().to_string());
        push_option(&mut verb, "workflows", folder);
        push_option(&mut verb, "queue", self.queues.as_ref().map(|queues| queues.join(",")));
        self.work.push_options(&mut verb);
        push_option(&mut verb, "grace", self.grace.map(duration_text));
        push_option(&mut verb, "log-format", self.log.format());
        global.hint(&verb)
    }
}

/// The settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Settings {
    /// The configuration file, if one was read.
    pub(crate) config: Option<PathBuf>,
    pub(crate) workflows: Option<PathBuf>,
    pub(crate) queues: Vec<String>,
    pub(crate) capabilities: Vec<String>,
    pub(crate) code_version: i64,
    pub(crate) threads: i64,
    pub(crate) grace: Duration,
    pub(crate) retention: Retention,
    pub(crate) notify: Vec<NotifyTarget>,
    pub(crate) log_format: LogFormat,
    pub(crate) log_level: &'static str,
    #[cfg(feature = "web")]
    pub(crate) web: WebConfig,
    /// With their secrets.
    #[cfg(feature = "web")]
    pub(crate) hooks: Vec<Hook>,
}

/// Why the configuration is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConfigRead {
    /// At the start.
    First,
    /// For a reload.
    Again,
}

impl Settings {
    /// Reads the configuration file and combines it with the options.
    pub(crate) fn read(
        global: &GlobalOptions,
        options: &ServiceOptions,
        read: ConfigRead,
    ) -> Result<(Settings, ConfiguredOptions), Failure> {
        let file = config::find(global.config().as_deref())?.map(|file| match read {
            ConfigRead::First => file,
            // A pipe was read at the start and may have no more content.
            ConfigRead::Again => ConfigFile { origin: PathOrigin::Found, ..file },
        });
        let config = file.as_ref().map_or_else(|| Ok(Config::default()), config::load)?;
        let queues = options.queues.clone().or(config.queues).unwrap_or_default();
        if queues.iter().any(String::is_empty) {
            return Err(Failure::usage(
                "the name of a queue is empty",
                "write names separated by commas, for example --queue default,mail",
            ));
        }
        let settings = Settings {
            config: file.map(|file| file.path),
            workflows: options.workflows.clone().or(config.workflows),
            queues,
            capabilities: options.work.capabilities.clone().or(config.capabilities).unwrap_or_default(),
            code_version: options.work.code_version.or(config.code_version).unwrap_or(0),
            threads: options.work.threads.or(config.threads).unwrap_or(WorkerOptions::default().threads),
            grace: options.grace.or(config.grace).unwrap_or(DEFAULT_GRACE),
            retention: config.retention,
            notify: config.notify.iter().map(NotifyTarget::resolve).collect::<Result<_, Failure>>()?,
            log_format: options.log.format().or(config.log_format).unwrap_or(LogFormat::Text),
            log_level: config.log_level.unwrap_or(DEFAULT_LEVEL),
            #[cfg(feature = "web")]
            web: config.web,
            #[cfg(feature = "web")]
            hooks: config.hooks.iter().map(ConfiguredHook::resolve).collect::<Result<_, Failure>>()?,
        };
        Ok((settings, config.global))
    }

    /// Which jobs the service executes.
    pub(crate) fn scope(&self) -> Scope {
        match self.queues.as_slice() {
            [] => Scope::Everything,
            queues => Scope::Queues(queues.to_vec()),
        }
    }

    /// The names of changed settings that take effect only after a restart.
    pub(crate) fn needs_restart(&self, new: &Settings) -> Vec<&'static str> {
        let parts = [
            ("queues", self.queues != new.queues),
            ("capabilities", self.capabilities != new.capabilities),
            ("code_version", self.code_version != new.code_version),
            ("threads", self.threads != new.threads),
            ("log_format", self.log_format != new.log_format),
            #[cfg(feature = "web")]
            ("web", self.web != new.web),
        ];
        parts.into_iter().filter(|(_name, differs)| *differs).map(|(name, _differs)| name).collect()
    }

    /// All settings, one a line, with the names of the configuration file.
    pub(crate) fn text(&self, global: &GlobalOptions) -> String {
        let mut text = String::new();
        let mut line = |name: &str, value: String| {
            let _ = writeln!(text, "{name:<13}{value}");
        };
        let list = |names: &[String], none: &str| match names {
            [] => none.to_owned(),
            names => names.join(", "),
        };
        let path = |path: &Option<PathBuf>| {
            path.as_ref().map_or_else(|| "none".to_owned(), |path| path.display().to_string())
        };
        line("config", path(&self.config));
        line("database", global.database().shown());
        line("durability", global.durability().to_string());
        line("lease", duration_text(global.lease()));
        line("workflows", path(&self.workflows));
        if let Some(files) = global.files() {
            line("files", files.display().to_string());
        }
        line("threads", self.threads.to_string());
        line("queues", list(&self.queues, "all"));
        line("capabilities", list(&self.capabilities, "none"));
        line("code_version", self.code_version.to_string());
        line("grace", duration_text(self.grace));
        line("retention", retention_text(self.retention));
        if !self.notify.is_empty() {
            let names: Vec<String> = self.notify.iter().map(|target| target.name.clone()).collect();
            line("notify", names.join(", "));
        }
        #[cfg(feature = "web")]
        line("web", web_text(&self.web));
        #[cfg(feature = "web")]
        if !self.hooks.is_empty() {
            let names: Vec<&str> = self.hooks.iter().map(|hook| hook.name.as_str()).collect();
            line("hooks", names.join(", "));
        }
        line("log", format!("{}, {}", self.log_format, self.log_level));
        text
    }
}

/// The address of the web server, in words.
#[cfg(feature = "web")]
fn web_text(web: &WebConfig) -> String {
    let options = &web.options;
    match web.in_serve {
        WebInServe::Disabled => "none".to_owned(),
        WebInServe::Enabled => {
            let scheme = if options.tls.is_some() { "https" } else { "http" };
            format!("{scheme}://{}{}/", options.listen.socket(), options.base_path)
        }
    }
}

/// The retention in words.
pub(crate) fn retention_text(retention: Retention) -> String {
    let age = retention.max_age_ms.map(|ms| format!("for {}", windlass_workflow::duration::to_text(ms)));
    let runs = retention.max_runs_per_workflow.map(|runs| format!("{runs} runs of each workflow"));
    let runs_and_jobs = match (age, runs) {
        (None, None) => "everything is kept".to_owned(),
        (age, runs) => age.into_iter().chain(runs).collect::<Vec<_>>().join(", at most "),
    };
    match retention.keep_events_ms {
        Some(ms) => format!("{runs_and_jobs}; events for {}", windlass_workflow::duration::to_text(ms)),
        None => runs_and_jobs,
    }
}

fn duration_text(duration: Duration) -> String {
    windlass_workflow::duration::to_text(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX))
}

fn parse_grace(text: &str) -> Result<Duration, String> {
    let grace = parse_duration(text)?;
    if grace <= GRACE_MAX { Ok(grace) } else { Err("the grace period is longer than a day".to_owned()) }
}
