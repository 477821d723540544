//! The folder of a service. Its workflow files are registered, and the workflows of removed files are
//! deactivated. An invalid file is reported once per save, and the version registered before stays active.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use windlass_db::Error;
use windlass_engine::store::{Registration, RegistrationChange};
use windlass_views::WorkflowChanges;

use crate::database::Database;
use crate::error::Failure;
use crate::workflow_files::{self, Collection, InvalidFile, WorkflowFile};

/// A folder whose workflows are kept registered.
pub(crate) struct WorkflowFolder {
    path: PathBuf,
    database: Database,
    /// The error reported for each invalid path, with the stamp of the file at that time.
    reported: HashMap<PathBuf, (String, Option<FileStamp>)>,
    /// The stamps of the files when they were read last.
    seen: Option<Fingerprint>,
    /// Whether all files were applied once.
    has_applied: bool,
}

/// The stamps of all files of the folder.
type Fingerprint = HashMap<PathBuf, Option<FileStamp>>;

/// The metadata of a file that changes when the file is written or replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileStamp {
    inode: u64,
    bytes: u64,
    modified_ns: i64,
    changed_ns: i64,
}

impl FileStamp {
    fn of(path: &Path) -> Option<FileStamp> {
        let metadata = fs::metadata(path).ok()?;
        Some(FileStamp {
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

/// Whether the files are read again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadFiles {
    /// Always read them.
    Always,
    /// Read them only if a stamp changed.
    IfChanged,
}

impl WorkflowFolder {
    pub(crate) fn new(path: PathBuf, database: Database) -> WorkflowFolder {
        WorkflowFolder { path, database, reported: HashMap::new(), seen: None, has_applied: false }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Registers changed files. An error is reported, and the next update tries again.
    pub(crate) fn update(&mut self, read: ReadFiles) {
        let updated = self.try_update(read);
        let path = self.path.clone();
        match updated {
            Ok(()) => drop(self.reported.remove(&path)),
            Err(failure) => {
                // The update is incomplete, so the next one reads all files.
                self.seen = None;
                self.report(path, None, &failure, "the registered workflows stay unchanged");
            }
        }
    }

    fn try_update(&mut self, read: ReadFiles) -> Result<(), Failure> {
        let root = self.path.canonicalize().map_err(|error| unusable(&self.path, &error))?;
        let fingerprint = fingerprint(&self.path)?;
        if read == ReadFiles::IfChanged && self.seen.as_ref() == Some(&fingerprint) {
            return Ok(());
        }
        let collection = workflow_files::collect(std::slice::from_ref(&self.path))?;
        let registrations = self.database.ask(|store| store.registrations().list())?;
        for file in &collection.valid {
            if !self.is_active(file, &registrations)? {
                self.apply(file)?;
            }
        }
        self.report_invalid(&collection.invalid, &registrations, &fingerprint);
        for registration in gone(&root, &collection, &registrations) {
            self.remove(registration)?;
        }
        self.seen = Some(fingerprint);
        self.has_applied = true;
        Ok(())
    }

    /// Whether the file is registered already. This only reads, and usually only one file of many has changed.
    fn is_active(&self, file: &WorkflowFile, registrations: &[Registration]) -> Result<bool, Failure> {
        let is_same = |registration: &Registration| {
            registration.name == file.workflow.name
                && registration.file.as_ref() == Some(&file.absolute)
                && registration.dir.as_ref() == Some(&file.dir)
        };
        if !self.has_applied || self.reported.contains_key(&file.path) || !registrations.iter().any(is_same) {
            return Ok(false);
        }
        let preview = self.database.ask(|store| store.registrations().preview(&file.workflow))?;
        Ok(preview.change == RegistrationChange::Unchanged)
    }

    fn apply(&mut self, file: &WorkflowFile) -> Result<(), Failure> {
        let applied = self.database.ask(|store| store.registrations().apply(file.registration()))?;
        let (workflow, version) = (&applied.name, applied.version);
        let file_name = file.path.display();
        let was_invalid = self.reported.remove(&file.path).is_some();
        match (applied.change, &applied.before) {
            (RegistrationChange::Created, _) => {
                tracing::info!(%workflow, version, file = %file_name, "workflow registered");
            }
            (RegistrationChange::Updated, before) => {
                let before = before.as_ref();
                let changes = before.map(|before| WorkflowChanges::between(before, &file.workflow).summary());
                let changes = changes.unwrap_or_default();
                tracing::info!(%workflow, version, file = %file_name, "workflow changed: {changes}");
            }
            (RegistrationChange::Unchanged, _) if was_invalid => {
                tracing::info!(%workflow, version, file = %file_name, "workflow file is valid again, unchanged");
            }
            (RegistrationChange::Unchanged, _) => tracing::debug!(%workflow, version, "workflow unchanged"),
        }
        Ok(())
    }

    fn remove(&self, registration: &Registration) -> Result<(), Failure> {
        match self.database.store().registrations().remove(&registration.name) {
            Ok(()) => {
                let file = registration.file.as_deref().unwrap_or_default();
                let why = match Path::new(file).exists() {
                    true => "its file has another name now",
                    false => "its file was removed",
                };
                tracing::info!(
                    workflow = %registration.name,
                    version = registration.version,
                    file,
                    "workflow deactivated: {why}"
                );
                Ok(())
            }
            // Another process removed it first.
            Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.database.failure(error)),
        }
    }

    fn report_invalid(
        &mut self,
        invalid: &[InvalidFile],
        registrations: &[Registration],
        fingerprint: &Fingerprint,
    ) {
        let paths: HashSet<&PathBuf> = invalid.iter().map(|invalid| &invalid.path).collect();
        self.reported.retain(|path, _report| paths.contains(path));
        for invalid in invalid {
            let active = registrations.iter().find(|registration| is_of(registration, invalid));
            let consequence = match active {
                Some(registration) => {
                    format!(
                        "version {} of workflow `{}` stays active",
                        registration.version, registration.name
                    )
                }
                None => "no workflow is registered from it".to_owned(),
            };
            let stamp = fingerprint.get(&invalid.path).copied().flatten();
            self.report(invalid.path.clone(), stamp, &invalid.failure, &consequence);
        }
    }

    /// Reports the error once per save of the file.
    fn report(&mut self, path: PathBuf, stamp: Option<FileStamp>, failure: &Failure, consequence: &str) {
        let error_and_stamp = (failure.plain(), stamp);
        if self.reported.get(&path) == Some(&error_and_stamp) {
            return;
        }
        let report = format_args!("\n{}", error_and_stamp.0);
        let problem = match path == self.path {
            true => "the folder of workflows cannot be read",
            false => "the workflow file is invalid",
        };
        tracing::error!(file = %path.display(), %report, "{problem}; {consequence}");
        self.reported.insert(path, error_and_stamp);
    }
}

/// The registrations whose files were below the folder and are gone.
fn gone<'r>(
    root: &Path,
    collection: &Collection,
    registrations: &'r [Registration],
) -> Vec<&'r Registration> {
    let names: HashSet<&str> = collection.valid.iter().map(|file| file.workflow.name.as_str()).collect();
    let is_gone = |registration: &&Registration| {
        let is_here = registration.file.as_deref().is_some_and(|file| Path::new(file).starts_with(root));
        is_here
            && !names.contains(registration.name.as_str())
            && !collection.invalid.iter().any(|invalid| is_of(registration, invalid))
    };
    registrations.iter().filter(is_gone).collect()
}

/// Whether the registration comes from the invalid file, or has the same name.
fn is_of(registration: &Registration, invalid: &InvalidFile) -> bool {
    let is_file = invalid.absolute.is_some() && registration.file == invalid.absolute;
    is_file || invalid.name.as_deref() == Some(registration.name.as_str())
}

fn fingerprint(folder: &Path) -> Result<Fingerprint, Failure> {
    let files = workflow_files::files_below(folder)?;
    Ok(files.into_iter().map(|path| (path.clone(), FileStamp::of(&path))).collect())
}

fn unusable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::usage(
        format!("the folder {} cannot be read: {error}", path.display()),
        "check the path and its permissions; --workflows or the configuration names it",
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
            tags: Vec::new(),
        }
    }

    fn invalid(file: &str, name: Option<&str>) -> InvalidFile {
        InvalidFile {
            path: file.into(),
            absolute: Some(file.to_owned()),
            name: name.map(str::to_owned),
            failure: Failure::usage("invalid", "correct it"),
        }
    }

    #[test]
    fn only_registrations_whose_file_in_the_folder_was_removed_are_gone() {
        let registrations = [
            registration("away", "/flows/away.toml"),
            registration("invalid", "/flows/invalid.toml"),
            registration("twice", "/flows/old-name.toml"),
            registration("elsewhere", "/other/elsewhere.toml"),
            registration("alike", "/flows-old/alike.toml"),
        ];
        let collection = Collection {
            valid: Vec::new(),
            invalid: vec![
                invalid("/flows/invalid.toml", None),
                invalid("/flows/a.toml", Some("twice")),
                invalid("/flows/b.toml", Some("twice")),
            ],
        };
        let gone: Vec<&str> = gone(Path::new("/flows"), &collection, &registrations)
            .iter()
            .map(|registration| registration.name.as_str())
            .collect();
        assert_eq!(gone, ["away"]);
    }
}
