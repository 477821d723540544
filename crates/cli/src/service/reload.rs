//! Reloading the configuration of a running service.

use std::path::PathBuf;

#[cfg(feature = "web")]
use windlass_web::Hook;

use super::notifier::Notifier;
use super::{Service, Settings, settings, watch};
use crate::arguments::GlobalOptions;
use crate::config::NotifyTarget;
use crate::error::Failure;
use crate::{logging, workflow_files};

impl Service<'_> {
    /// Applies changed settings, warns about settings that need a restart, and reads the folder again.
    pub(super) fn reload(&mut self) {
        self.manager.reloading();
        match Settings::read(self.global, self.options, settings::ConfigRead::Again) {
            Ok((settings, configured)) => self.apply(settings, &self.global.clone().configured(configured)),
            Err(failure) => {
                tracing::error!(
                    "the configuration is invalid; the current one stays active:\n{}",
                    failure.plain()
                );
            }
        }
        if let Some(watcher) = &self.watcher {
            watcher.update();
        }
        #[cfg(feature = "web")]
        if let Some(web) = &self.web {
            web.read_certificate_again();
        }
        tracing::info!("reloaded");
        self.manager.ready(&self.status());
    }

    fn apply(&mut self, new: Settings, global: &GlobalOptions) {
        let mut need_restart = self.settings.needs_restart(&new);
        need_restart.extend(self.global.differences(global));
        if !need_restart.is_empty() {
            tracing::warn!("these settings change only after a restart: {}", need_restart.join(", "));
        }
        if new.log_level != self.settings.log_level {
            logging::set_level(new.log_level);
        }
        if new.retention != self.settings.retention {
            self.worker.set_retention(new.retention);
            tracing::info!("retention: {}", settings::retention_text(new.retention));
        }
        let notify = self.change_targets(new.notify);
        let workflows = match self.change_folder(&new.workflows) {
            Ok(()) => new.workflows,
            Err(failure) => {
                tracing::error!("the folder of workflows stays unchanged:\n{}", failure.plain());
                self.settings.workflows.clone()
            }
        };
        #[cfg(feature = "web")]
        self.change_hooks(new.hooks);
        let Settings { retention, grace, log_level, .. } = new;
        self.settings = Settings { workflows, notify, retention, grace, log_level, ..self.settings.clone() };
    }

    /// Takes messages for other hooks, or with other secrets.
    #[cfg(feature = "web")]
    fn change_hooks(&mut self, hooks: Vec<Hook>) {
        if hooks == self.settings.hooks {
            return;
        }
        if let Some(web) = &self.web {
            web.set_hooks(&hooks);
            tracing::info!(hooks = hooks.len(), "the hooks changed");
        }
        self.settings.hooks = hooks;
    }

    /// Delivers to other targets. Returns those that are active now.
    fn change_targets(&mut self, notify: Vec<NotifyTarget>) -> Vec<NotifyTarget> {
        if notify == self.settings.notify {
            return notify;
        }
        let worker_id = self.worker.worker_id();
        // The former threads must not write the former targets again.
        self.notifier.end();
        match Notifier::start(&self.database, worker_id, &notify, self.global.link_local()) {
            Ok(notifier) => {
                self.notifier = notifier;
                tracing::info!(targets = notify.len(), "the targets of notifications changed");
                notify
            }
            Err(failure) => {
                tracing::error!(
                    "no notification is delivered until the configuration is read again:\n{}",
                    failure.plain()
                );
                Vec::new()
            }
        }
    }

    /// Watches another folder. The workflows of the former folder stay registered.
    fn change_folder(&mut self, folder: &Option<PathBuf>) -> Result<(), Failure> {
        if *folder == self.settings.workflows {
            return Ok(());
        }
        if let Some(folder) = folder {
            workflow_files::files_below(folder)?;
        }
        // End the old watch before the new one begins.
        self.watcher = None;
        self.watcher = folder.clone().map(|folder| watch(folder, &self.database)).transpose()?;
        match folder {
            Some(folder) => tracing::info!(folder = %folder.display(), "the folder of workflows changed"),
            None => tracing::info!("no folder of workflows is watched any more; registered workflows stay"),
        }
        Ok(())
    }
}
