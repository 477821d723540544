//! Reading the configuration again while the service works.

use std::path::PathBuf;

use super::{Service, Settings, settings, watch};
use crate::cli::GlobalOptions;
use crate::error::Failure;
use crate::logging;
use crate::workflow_files;

impl Service<'_> {
    /// Takes over what can change, says what can't, and has the folder read again.
    pub(super) fn reload(&mut self) {
        self.manager.reloading();
        match Settings::read(self.options, settings::ConfigRead::Again) {
            Ok((settings, configured)) => {
                self.take_over(settings, &self.global.clone().configured(configured))
            }
            Err(failure) => {
                tracing::error!(
                    "the configuration can't be used, the present one stays active:\n{}",
                    failure.plain()
                );
            }
        }
        if let Some(watcher) = &self.watcher {
            watcher.look();
        }
        tracing::info!("reloaded");
        self.manager.ready(&self.status());
    }

    fn take_over(&mut self, new: Settings, global: &GlobalOptions) {
        let mut left = self.settings.needs_restart(&new);
        left.extend(self.global.differences(global));
        if !left.is_empty() {
            tracing::warn!("only a restart changes: {}", left.join(", "));
        }
        if new.log_level != self.settings.log_level {
            logging::set_level(new.log_level);
        }
        if new.retention != self.settings.retention {
            self.workforce.set_retention(new.retention);
            tracing::info!("retention: {}", settings::retention_text(new.retention));
        }
        let workflows = match self.change_folder(&new.workflows) {
            Ok(()) => new.workflows,
            Err(failure) => {
                tracing::error!("the folder of workflows stays the same:\n{}", failure.plain());
                self.settings.workflows.clone()
            }
        };
        let Settings { retention, grace, log_level, .. } = new;
        self.settings = Settings { workflows, retention, grace, log_level, ..self.settings.clone() };
    }

    /// What is registered from the former folder stays registered.
    fn change_folder(&mut self, folder: &Option<PathBuf>) -> Result<(), Failure> {
        if *folder == self.settings.workflows {
            return Ok(());
        }
        if let Some(folder) = folder {
            workflow_files::files_below(folder)?;
        }
        // The old watch ends before the new one begins.
        self.watcher = None;
        self.watcher = folder.clone().map(|folder| watch(folder, &self.database)).transpose()?;
        match folder {
            Some(folder) => tracing::info!(folder = %folder.display(), "another folder of workflows"),
            None => tracing::info!("no folder of workflows any more: what is registered stays"),
        }
        Ok(())
    }
}
