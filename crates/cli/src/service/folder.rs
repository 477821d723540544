//! The folder of a service: its files are registered, and removed files are deactivated. A
//! broken file is told of once, and leaves what was good before.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use windlass::Error;
use windlass::store::{Change, Registration};

use crate::changes::Changes;
use crate::database::Database;
use crate::error::Failure;
use crate::workflow_files::{self, BrokenFile, Collection, WorkflowFile};

/// A folder whose workflows are kept registered.
pub(crate) struct WorkflowFolder {
    path: PathBuf,
    database: Database,
    /// What was said of each place that is broken, and how its file was then.
    reported: HashMap<PathBuf, (String, Option<Stamp>)>,
    /// As the files were when they were read last.
    seen: Option<Fingerprint>,
    /// All files were applied once.
    has_applied: bool,
}

/// How the files of the folder are, as far as can be seen without reading them.
type Fingerprint = HashMap<PathBuf, Option<Stamp>>;

/// What is different when a file was written or replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    bytes: u64,
    modified_ns: i64,
    changed_ns: i64,
}

impl Stamp {
    fn of(path: &Path) -> Option<Stamp> {
        let metadata = fs::metadata(path).ok()?;
        Some(Stamp {
            inode: metadata.ino(),
            bytes: metadata.len(),
            modified_ns: nanoseconds(metadata.mtime(), metadata.mtime_nsec()),
            changed_ns: nanoseconds(metadata.ctime(), metadata.ctime_nsec()),
        })
    }
}

fn nanoseconds(seconds: i64, nanoseconds: i64) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds)
}

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
        WorkflowFolder { path, database, reported: HashMap::new(), seen: None, has_applied: false }
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
                self.report(path, None, &failure, "what is registered stays as it is");
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
        let registrations = self.database.ask(|store| store.registrations().list())?;
        for file in &collection.good {
            if !self.is_in_force(file, &registrations)? {
                self.apply(file)?;
            }
        }
        self.report_broken(&collection.broken, &registrations, &fingerprint);
        for registration in gone(&root, &collection, &registrations) {
            self.remove(registration)?;
        }
        self.seen = Some(fingerprint);
        self.has_applied = true;
        Ok(())
    }

    /// Whether nothing has to be written for a file that was applied before. It costs a look at the tables only:
    /// one file of many is different.
    fn is_in_force(&self, file: &WorkflowFile, registrations: &[Registration]) -> Result<bool, Failure> {
        let is_same = |registration: &Registration| {
            registration.name == file.workflow.name
                && registration.file.as_ref() == Some(&file.absolute)
                && registration.dir.as_ref() == Some(&file.dir)
        };
        if !self.has_applied || self.reported.contains_key(&file.path) || !registrations.iter().any(is_same) {
            return Ok(false);
        }
        let preview = self.database.ask(|store| store.registrations().preview(&file.workflow))?;
        Ok(preview.change == Change::Unchanged)
    }

    fn apply(&mut self, file: &WorkflowFile) -> Result<(), Failure> {
        let applied = self.database.ask(|store| store.registrations().apply(file.registration()))?;
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
        match self.database.store().registrations().remove(&registration.name) {
            Ok(()) => {
                let file = registration.file.as_deref().unwrap_or_default();
                let why = match Path::new(file).exists() {
                    true => "its file says another name now",
                    false => "its file is gone",
                };
                tracing::info!(
                    workflow = %registration.name,
                    version = registration.version,
                    file,
                    "workflow removed: {why}"
                );
                Ok(())
            }
            // Somebody else was faster.
            Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.database.failure(error)),
        }
    }

    fn report_broken(
        &mut self,
        broken: &[BrokenFile],
        registrations: &[Registration],
        fingerprint: &Fingerprint,
    ) {
        let places: HashSet<&PathBuf> = broken.iter().map(|broken| &broken.path).collect();
        self.reported.retain(|path, _said| places.contains(path));
        for broken in broken {
            let active = registrations.iter().find(|registration| is_of(registration, broken));
            let consequence = match active {
                Some(registration) => {
                    format!("version {} of `{}` stays active", registration.version, registration.name)
                }
                None => "nothing is registered from it".to_owned(),
            };
            let stamp = fingerprint.get(&broken.path).copied().flatten();
            self.report(broken.path.clone(), stamp, &broken.failure, &consequence);
        }
    }

    /// Says what is wrong, unless it was said of this very file.
    fn report(&mut self, path: PathBuf, stamp: Option<Stamp>, failure: &Failure, consequence: &str) {
        let news = (failure.plain(), stamp);
        if self.reported.get(&path) == Some(&news) {
            return;
        }
        let report = format_args!("\n{}", news.0);
        tracing::error!(file = %path.display(), %report, "it can't be used: {consequence}");
        self.reported.insert(path, news);
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
    Ok(files.into_iter().map(|path| (path.clone(), Stamp::of(&path))).collect())
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
