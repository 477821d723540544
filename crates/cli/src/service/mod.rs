//! The one process that a company needs: keeps workflows registered, fires their schedules, executes what
//! waits, and is told by signals and by a service manager what to do.

mod config;
mod folder;
mod manager;
mod reload;
mod settings;
mod stopping;
mod watcher;

use std::path::PathBuf;
use std::time::Duration;

use windlass::wake_ups::{WakeUpListener, WakeUps};

use crate::cli::GlobalOptions;
use crate::database::Database;
use crate::describe::next_occurrence;
use crate::error::Failure;
use crate::execution::{Duties, Workforce};
use crate::logging::LogFormat;
use crate::signals::{StopRequests, Urgency};
use crate::style::printable;
use crate::workflow_files;
use crate::{output, time};
use folder::{Look, WorkflowFolder};
use manager::ServiceManager;
pub(crate) use settings::{ConfigRead, ServiceOptions, Settings};
use stopping::Deadline;
use watcher::Watcher;

/// How long the supervising thread sleeps at most; signals wake it at once.
const TICK: Duration = Duration::from_secs(1);
/// The same while the end is waited for.
const ENDING_TICK: Duration = Duration::from_millis(50);
/// Signs of life in one interval of the watchdog.
const SIGNS_IN_INTERVAL: u32 = 3;

/// A running service.
struct Service<'a> {
    global: &'a GlobalOptions,
    options: &'a ServiceOptions,
    settings: Settings,
    database: Database,
    manager: ServiceManager,
    watcher: Option<Watcher>,
    workforce: Workforce,
}

/// Serves until it is told to stop.
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
    let duties = Duties {
        scope: settings.scope(),
        threads: Some(settings.threads),
        capabilities: settings.capabilities.clone(),
        version: settings.version,
        retention: settings.retention,
        patience: None,
    };
    let workforce = Workforce::start(global, &database, duties)?;
    let mut service = Service { global, options, settings, database, manager, watcher, workforce };
    service.greet()?;
    service.manager.ready(&service.status());
    service.supervise(&mut requests, &listener);
    service.end(&requests)
}

/// Registers what is in the folder, and goes on doing so.
fn watch(path: PathBuf, database: &Database) -> Result<Watcher, Failure> {
    // A folder that is not there at the start is a mistake; later it may come back.
    workflow_files::files_below(&path)?;
    let mut folder = WorkflowFolder::new(path, database.clone());
    folder.look(Look::Always);
    Watcher::start(folder)
        .map_err(|error| Failure::no_resources(&format!("the folder of workflows can't be watched: {error}")))
}

impl Service<'_> {
    fn supervise(&mut self, requests: &mut StopRequests, listener: &WakeUpListener) {
        let mut deadline = Deadline::None;
        while !self.workforce.has_ended() {
            match requests.news() {
                None => {}
                Some(Urgency::Drain) => {
                    deadline = Deadline::after(self.settings.grace);
                    self.drain();
                }
                Some(Urgency::Leave) => self.leave("told again to stop: stopping what runs"),
            }
            if deadline.has_passed() {
                self.leave("the time to drain is over: stopping what runs, others carry it on");
            }
            if requests.reload_is_wanted() && !requests.is_stopping() {
                self.reload();
            }
            self.give_sign_of_life();
            let tick = if requests.is_stopping() { ENDING_TICK } else { self.tick() };
            listener.wait(tick.min(deadline.left()));
        }
    }

    fn tick(&self) -> Duration {
        self.manager.watchdog().map_or(TICK, |interval| (interval / SIGNS_IN_INTERVAL).min(TICK))
    }

    /// Only while the threads that claim and schedule get their answers: a service that hangs is better
    /// started again.
    fn give_sign_of_life(&self) {
        let Some(interval) = self.manager.watchdog() else { return };
        let unanswered_ms = self.workforce.unanswered_ms();
        if u128::from(unanswered_ms.unsigned_abs()) < interval.as_millis() / 2 {
            self.manager.alive();
        } else {
            self.manager.status(&format!("no answer of the database for {unanswered_ms} ms"));
        }
    }

    fn drain(&mut self) {
        let grace = self.settings.grace;
        tracing::info!(
            ?grace,
            "draining: what runs may finish, nothing new starts (once more stops it at once)"
        );
        self.manager.stopping("draining: what runs may finish");
        self.workforce.drain();
        if let Some(watcher) = &self.watcher {
            watcher.stop();
        }
    }

    fn leave(&self, why: &str) {
        tracing::info!("{why}");
        self.manager.stopping("stopping what runs");
        self.workforce.leave();
    }

    fn status(&self) -> String {
        format!("worker {} of {}", self.workforce.worker_id(), self.database.place())
    }

    /// Says what is served, whatever the level of the log.
    fn greet(&self) -> Result<(), Failure> {
        let greeting = self.greeting()?;
        match self.settings.log_format {
            LogFormat::Text => output::note(&greeting),
            // Nothing else comes between the objects.
            LogFormat::Json => tracing::info!("{greeting}"),
        }
        Ok(())
    }

    /// What is served, in one line.
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
                format!("; next is {} at {}", printable(&schedule.key()), time::day_and_clock(at_ms))
            }
            None => String::new(),
        };
        Ok(format!(
            "windlass {} serves {}: worker {}, {} threads, {queues}, {workflows}{next}",
            env!("CARGO_PKG_VERSION"),
            self.database.place(),
            self.workforce.worker_id(),
            self.settings.threads,
        ))
    }

    fn end(self, requests: &StopRequests) -> Result<(), Failure> {
        let Service { global, database, workforce, watcher, .. } = self;
        drop(watcher);
        workforce.join(&database)?;
        tracing::info!("stopped");
        requests.outcome(|| global.hint("serve"))
    }
}
