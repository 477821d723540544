//! The service of `windlass serve`: registers the workflows of a folder, fires schedules, executes jobs, and
//! reacts to signals and to the service manager.

mod folder;
mod manager;
mod notifier;
mod reload;
mod settings;
mod stopping;
#[cfg(feature = "otlp")]
mod traces;
mod watcher;
#[cfg(feature = "web")]
mod web;

use std::path::PathBuf;
use std::time::Duration;

use windlass_system::wake_ups::{WakeUpListener, WakeUps};
#[cfg(feature = "web")]
use windlass_web::WebOptions;

use crate::arguments::{GlobalOptions, LogFormat};
#[cfg(feature = "web")]
use crate::config::WebInServe;
use crate::database::Database;
use crate::error::Failure;
use crate::execution::{LocalWorker, LocalWorkerOptions};
use crate::signals::{StopRequests, Urgency};
use crate::text::schedules::next_occurrence;
use crate::text::style::printable;
use crate::text::time;
use crate::{stderr, workflow_files};
use folder::{ReadFiles, WorkflowFolder};
use manager::ServiceManager;
use notifier::Notifier;
pub(crate) use notifier::variables as notification_variables;
pub(crate) use settings::{ConfigRead, DEFAULT_LEVEL, ServiceOptions, Settings};
use stopping::Deadline;
#[cfg(feature = "otlp")]
pub(crate) use traces::try_collector;
use watcher::Watcher;
#[cfg(feature = "web")]
pub(crate) use web::{TakenPort, Web};

/// The longest sleep of the supervising thread. A signal wakes it at once.
pub(crate) const TICK: Duration = Duration::from_secs(1);
/// The longest sleep while the service stops.
const ENDING_TICK: Duration = Duration::from_millis(50);
/// How many watchdog signals the service sends in one interval of the watchdog.
const SIGNALS_PER_INTERVAL: u32 = 3;

/// A running service.
struct Service<'a> {
    global: &'a GlobalOptions,
    options: &'a ServiceOptions,
    settings: Settings,
    database: Database,
    manager: ServiceManager,
    watcher: Option<Watcher>,
    notifier: Notifier,
    worker: LocalWorker,
    #[cfg(feature = "web")]
    web: Option<Web>,
}

/// Runs the service until a signal stops it.
pub(crate) fn serve(
    global: &GlobalOptions,
    options: &ServiceOptions,
    settings: Settings,
) -> Result<(), Failure> {
    let manager = ServiceManager::from_environment();
    let database = Database::existing_or_new(global)?;
    let listener = database.store().listen(WakeUps::STOP);
    let mut requests = StopRequests::listen_with_reload(listener.clone())?;
    let watcher = settings.workflows.clone().map(|path| watch(path, &database)).transpose()?;
    let worker_options = LocalWorkerOptions {
        scope: settings.scope(),
        threads: Some(settings.threads),
        capabilities: settings.capabilities.clone(),
        code_version: settings.code_version,
        retention: settings.retention,
        link_local: global.link_local(),
        container_program: global.container_program(),
        patience: None,
    };
    let worker = LocalWorker::start(global, &database, worker_options)?;
    let notifier = Notifier::start(&database, worker.worker_id(), &settings.notify, global.link_local())?;
    #[cfg(feature = "web")]
    let web = start_web(global, &database, &settings)?;
    let mut service = Service {
        notifier,
        global,
        options,
        settings,
        database,
        manager,
        watcher,
        worker,
        #[cfg(feature = "web")]
        web,
    };
    service.print_greeting()?;
    service.manager.ready(&service.status());
    service.supervise(&mut requests, &listener);
    service.end(&requests)
}

#[cfg(feature = "web")]
fn start_web(
    global: &GlobalOptions,
    database: &Database,
    settings: &Settings,
) -> Result<Option<Web>, Failure> {
    match settings.web.in_serve {
        WebInServe::Disabled => Ok(None),
        WebInServe::Enabled => {
            let options = WebOptions { hooks: settings.hooks.clone(), ..settings.web.options.clone() };
            Web::start(global, database, &options, TakenPort::IsAWarning)
        }
    }
}

/// Registers the workflows of the folder, now and after each change.
fn watch(path: PathBuf, database: &Database) -> Result<Watcher, Failure> {
    // A missing folder is an error at the start. Later, the service waits for it to come back.
    workflow_files::files_below(&path)?;
    let mut folder = WorkflowFolder::new(path, database.clone());
    folder.update(ReadFiles::Always);
    Watcher::start(folder).map_err(|error| {
        Failure::no_resources(&format!("the folder of workflows cannot be watched: {error}"))
    })
}

impl Service<'_> {
    fn supervise(&mut self, requests: &mut StopRequests, listener: &WakeUpListener) {
        let mut deadline = Deadline::None;
        while !self.worker.has_ended() {
            match requests.new_request() {
                None => {}
                Some(Urgency::Drain) => {
                    deadline = Deadline::after(self.settings.grace);
                    self.drain();
                }
                Some(Urgency::Leave) => self.leave("second signal: stopping running jobs"),
            }
            if deadline.has_passed() {
                self.leave("the grace period is over: stopping running jobs; other workers run them again");
            }
            if requests.reload_is_wanted() && !requests.is_stopping() {
                self.reload();
            }
            self.signal_watchdog();
            let tick = if requests.is_stopping() { ENDING_TICK } else { self.tick() };
            listener.wait(tick.min(deadline.left()));
        }
    }

    fn tick(&self) -> Duration {
        self.manager.watchdog().map_or(TICK, |interval| (interval / SIGNALS_PER_INTERVAL).min(TICK))
    }

    /// Sends the watchdog signal. If the database does not answer, sends none, so that the service manager restarts the
    /// service.
    fn signal_watchdog(&self) {
        let Some(interval) = self.manager.watchdog() else { return };
        let unanswered_ms = self.worker.unanswered_ms();
        if u128::from(unanswered_ms.unsigned_abs()) < interval.as_millis() / 2 {
            self.manager.signal_watchdog();
        } else {
            self.manager.status(&format!("no answer from the database for {unanswered_ms} ms"));
        }
    }

    fn drain(&mut self) {
        let grace = self.settings.grace;
        tracing::info!(
            ?grace,
            "stopping: waiting for running jobs to finish (send the signal again to stop them now)"
        );
        self.manager.stopping("waiting for running jobs to finish");
        self.worker.drain();
        if let Some(watcher) = &self.watcher {
            watcher.stop();
        }
    }

    fn leave(&self, why: &str) {
        tracing::info!("{why}");
        self.manager.stopping("stopping running jobs");
        self.worker.leave();
    }

    fn status(&self) -> String {
        format!("worker {} of {}", self.worker.worker_id(), self.database.address())
    }

    /// Prints one line about the service, whatever the level of the log.
    fn print_greeting(&self) -> Result<(), Failure> {
        let greeting = self.greeting()?;
        match self.settings.log_format {
            LogFormat::Text => stderr::note(&greeting),
            // A JSON log contains only JSON objects.
            LogFormat::Json => tracing::info!("{greeting}"),
        }
        Ok(())
    }

    /// The database, the worker, the queues and the next schedule in one line.
    fn greeting(&self) -> Result<String, Failure> {
        let workflows = self.database.ask(|store| store.registrations().list())?.len();
        let workflows =
            if workflows == 1 { "1 workflow".to_owned() } else { format!("{workflows} workflows") };
        let queues = match self.settings.queues.as_slice() {
            [] => "all queues".to_owned(),
            [only] => format!("queue {only}"),
            queues => format!("queues {}", queues.join(", ")),
        };
        let schedules = self.database.ask(|store| store.schedules().list())?;
        let next = match next_occurrence(&schedules) {
            Some((schedule, at_ms)) => {
                format!("; next: {} at {}", printable(&schedule.key()), time::day_and_clock_with_zone(at_ms))
            }
            None => String::new(),
        };
        Ok(format!(
            "windlass {} serves {}: worker {}, {} threads, {queues}, {workflows}{next}{}",
            env!("CARGO_PKG_VERSION"),
            self.database.address(),
            self.worker.worker_id(),
            self.settings.threads,
            self.page(),
        ))
    }

    #[cfg(feature = "web")]
    fn page(&self) -> String {
        self.web.as_ref().map(|web| format!("; page: {}", web.url())).unwrap_or_default()
    }

    #[cfg(not(feature = "web"))]
    fn page(&self) -> &'static str {
        ""
    }

    fn end(self, requests: &StopRequests) -> Result<(), Failure> {
        #[cfg(feature = "web")]
        drop(self.web);
        let Service { global, options, database, worker, watcher, notifier, .. } = self;
        drop(watcher);
        let ended = worker.join(&database);
        drop(notifier);
        ended?;
        tracing::info!("stopped");
        requests.outcome(|| options.hint(global))
    }
}
