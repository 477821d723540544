//! The folder of a service: what lies in it is registered, what is taken out of it is taken out of force. A
//! broken file is told of once, and leaves what was good before.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use windlass::store::{Change, Registration};
use windlass::{Error, Store};

use crate::changes::Changes;
use crate::database::Database;
use crate::error::Failure;
use crate::workflow_files::{self, BrokenFile, Collection, WorkflowFile};

/// A folder whose workflows are kept registered.
pub(crate) struct WorkflowFolder {
    path: PathBuf,
    database: Database,
    /// What was said of each place that is broken.
    reported: HashMap<PathBuf, String>,
    /// As the files were when they were read last.
    seen: Option<Fingerprint>,
}

/// How the files of the folder are, as far as can be seen without reading them.
type Fingerprint = Vec<(PathBuf, Option<(u64, u64, i64, i64)>)>;

/// When files are read again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// In any case.
    Always,
    /// When something about them is different.
    IfDifferent,
}

impl WorkflowFolder {
    pub(crate) fn new(path: PathBuf, database: Database) -> WorkflowFolder {
        WorkflowFolder { path, database, reported: HashMap::new(), seen: None }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Registers what changed. What can't be done now is told of, and done at a later look.
    pub(crate) fn look(&mut self, look: Look) {
        let looked = self.bring_up_to_date(look);
        let path = self.path.clone();
        match looked {
            Ok(()) => drop(self.reported.remove(&path)),
            Err(failure) => {
                // Not finished: the next look does it all.
                self.seen = None;
                self.report(path, &failure, "what is registered stays as it is");
            }
        }
    }

    fn bring_up_to_date(&mut self, look: Look) -> Result<(), Failure> {
        let root = self.path.canonicalize().map_err(|error| unusable(&self.path, &error))?;
        let fingerprint = fingerprint(&self.path)?;
        if look == Look::IfDifferent && self.seen.as_ref() == Some(&fingerprint) {
            return Ok(());
        }
        let collection = workflow_files::collect(std::slice::from_ref(&self.path))?;
        let registrations = self.database.ask(Store::registrations)?;
        for file in &collection.good {
            self.apply(file)?;
        }
        self.report_broken(&collection.broken, &registrations);
        for registration in gone(&root, &collection, &registrations) {
            self.remove(registration)?;
        }
        self.seen = Some(fingerprint);
        Ok(())
    }

    fn apply(&mut self, file: &WorkflowFile) -> Result<(), Failure> {
        let applied = self.database.ask(|store| store.apply(file.registration()))?;
        let (workflow, version) = (&applied.name, applied.version);
        let file_name = file.path.display();
        let was_broken = self.reported.remove(&file.path).is_some();
        match (applied.change, &applied.before) {
            (Change::Created, _) => {
                tracing::info!(%workflow, version, file = %file_name, "workflow registered");
            }
            (Change::Updated, before) => {
                let before = before.as_ref();
                let changes = before.map(|before| Changes::between(before, &file.workflow).text());
                let changes = changes.unwrap_or_default();
                tracing::info!(%workflow, version, file = %file_name, "workflow changed: {changes}");
            }
            (Change::Unchanged, _) if was_broken => {
                tracing::info!(%workflow, version, file = %file_name, "workflow file can be used again, unchanged");
            }
            (Change::Unchanged, _) => tracing::debug!(%workflow, version, "workflow unchanged"),
        }
        Ok(())
    }

    fn remove(&self, registration: &Registration) -> Result<(), Failure> {
        match self.database.store().remove_registration(&registration.name) {
            Ok(()) => {
                let file = registration.file.as_deref().unwrap_or_default();
                tracing::info!(
                    workflow = %registration.name,
                    version = registration.version,
                    file,
                    "workflow removed: its file is gone"
                );
                Ok(())
            }
            // Somebody else was faster.
            Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.database.failure(error)),
        }
    }

    fn report_broken(&mut self, broken: &[BrokenFile], registrations: &[Registration]) {
        let places: HashSet<&PathBuf> = broken.iter().map(|broken| &broken.path).collect();
        self.reported.retain(|path, _text| places.contains(path));
        for broken in broken {
            let in_force = registrations.iter().find(|registration| is_of(registration, broken));
            let consequence = match in_force {
                Some(registration) => {
                    format!("version {} of `{}` stays in force", registration.version, registration.name)
                }
                None => "nothing is registered from it".to_owned(),
            };
            self.report(broken.path.clone(), &broken.failure, &consequence);
        }
    }

    /// Says what is wrong, unless it was the last thing said of this place.
    fn report(&mut self, path: PathBuf, failure: &Failure, consequence: &str) {
        let text = failure.plain();
        let shown = path.display().to_string();
        if self.reported.insert(path, text.clone()).as_ref() != Some(&text) {
            tracing::error!(file = %shown, "{consequence}, because the file can't be used:\n{text}");
        }
    }
}

/// Registrations whose files lay below the folder and do not any more.
fn gone<'r>(
    root: &Path,
    collection: &Collection,
    registrations: &'r [Registration],
) -> Vec<&'r Registration> {
    let names: HashSet<&str> = collection.good.iter().map(|file| file.workflow.name.as_str()).collect();
    let is_gone = |registration: &&Registration| {
        let is_here = registration.file.as_deref().is_some_and(|file| Path::new(file).starts_with(root));
        is_here
            && !names.contains(registration.name.as_str())
            && !collection.broken.iter().any(|broken| is_of(registration, broken))
    };
    registrations.iter().filter(is_gone).collect()
}

/// Whether the registration comes from the broken file, or from one that claims the same name.
fn is_of(registration: &Registration, broken: &BrokenFile) -> bool {
    let is_file = broken.absolute.is_some() && registration.file == broken.absolute;
    is_file || broken.name.as_deref() == Some(registration.name.as_str())
}

fn fingerprint(folder: &Path) -> Result<Fingerprint, Failure> {
    let files = workflow_files::files_below(folder)?;
    let fingerprints = files.into_iter().map(|path| {
        let facts = fs::metadata(&path).ok().map(|metadata| {
            (
                metadata.ino(),
                metadata.len(),
                metadata.mtime_nsec() + metadata.mtime() * 1_000_000_000,
                metadata.ctime_nsec() + metadata.ctime() * 1_000_000_000,
            )
        });
        (path, facts)
    });
    Ok(fingerprints.collect())
}

fn unusable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::usage(
        format!("the folder {} can't be read: {error}", path.display()),
        "check the path and its rights; `--workflows` and the configuration name it",
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn registration(name: &str, file: &str) -> Registration {
        Registration {
            name: name.to_owned(),
            version: 1,
            workflow_id: 1,
            file: Some(file.to_owned()),
            dir: None,
            paused_at: None,
            created_at: 0,
            updated_at: 0,
        }
    }

    fn broken(file: &str, name: Option<&str>) -> BrokenFile {
        BrokenFile {
            path: file.into(),
            absolute: Some(file.to_owned()),
            name: name.map(str::to_owned),
            failure: Failure::usage("broken", "mend it"),
        }
    }

    #[test]
    fn only_what_lay_in_the_folder_and_is_away_is_gone() {
        let registrations = [
            registration("away", "/flows/away.toml"),
            registration("broken", "/flows/broken.toml"),
            registration("twice", "/flows/old-name.toml"),
            registration("elsewhere", "/other/elsewhere.toml"),
            registration("alike", "/flows-old/alike.toml"),
        ];
        let collection = Collection {
            good: Vec::new(),
            broken: vec![
                broken("/flows/broken.toml", None),
                broken("/flows/a.toml", Some("twice")),
                broken("/flows/b.toml", Some("twice")),
            ],
        };
        let gone: Vec<&str> = gone(Path::new("/flows"), &collection, &registrations)
            .iter()
            .map(|registration| registration.name.as_str())
            .collect();
        assert_eq!(gone, ["away"]);
    }
}
