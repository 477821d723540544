//! Where a worker finds the value of a secret.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use windlass_system::files::{Links, ReadError, open_regular, read_at_most};
use windlass_workflow::model::SecretSource;

use super::SECRET_MAX_BYTES;
use crate::handler::StopCause;

/// The folder with the credentials that systemd gives to a service.
const CREDENTIALS: &str = "CREDENTIALS_DIRECTORY";
/// The rights of group and others to read a file.
const READ_BY_OTHERS: u32 = 0o044;

/// Runs a program, and gives its output.
type ReadOutput<'a> = dyn Fn(&[String]) -> Result<Vec<u8>, Missing> + 'a;

/// What a worker reads.
pub(super) struct Worker<'a> {
    /// The variables of its environment.
    pub(super) variable: &'a dyn Fn(&str) -> Option<OsString>,
    /// The output of a program.
    pub(super) output: &'a ReadOutput<'a>,
    /// The folder of the run.
    pub(super) dir: Option<&'a Path>,
}

/// Why there is no value. The texts are for people, and have names and places only.
#[derive(Debug)]
pub(super) enum Missing {
    /// There is no value, or it can't be used. Another attempt would find the same.
    Unusable(String),
    /// A program that reads the value failed. It may work later.
    Failed(String),
    /// The system refused something.
    Io(String, std::io::Error),
    /// The attempt was asked to stop meanwhile.
    Stopped(StopCause),
}

/// Who may read a file with a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Readers {
    /// Only its owner.
    Owner,
    /// systemd decides.
    Any,
}

impl Worker<'_> {
    /// The bytes of the value.
    pub(super) fn find(&self, name: &str, source: &SecretSource) -> Result<Vec<u8>, Missing> {
        match source {
            SecretSource::Worker => self.variable_or_credential(name),
            SecretSource::Env(variable) => {
                (self.variable)(variable).map(OsString::into_vec).ok_or_else(|| {
                    Missing::Unusable(format!(
                        "the worker has no variable `{variable}`; set it where the worker is started"
                    ))
                })
            }
            SecretSource::File(path) => self.file(path),
            SecretSource::Command(words) => (self.output)(words),
        }
    }

    fn variable_or_credential(&self, name: &str) -> Result<Vec<u8>, Missing> {
        if let Some(value) = (self.variable)(name) {
            return Ok(value.into_vec());
        }
        let no_variable = format!("the worker has no variable `{name}`");
        let Some(folder) = (self.variable)(CREDENTIALS) else {
            return Err(Missing::Unusable(format!(
                "{no_variable}, and no {CREDENTIALS}; set the variable where the worker is started"
            )));
        };
        let path = PathBuf::from(folder).join(name);
        match read(&path, Readers::Any) {
            Ok(value) => Ok(without_line_end(value)),
            Err(Missing::Unusable(why)) => Err(Missing::Unusable(format!("{no_variable}, and {why}"))),
            Err(error) => Err(error),
        }
    }

    fn file(&self, path: &str) -> Result<Vec<u8>, Missing> {
        let path = self.dir.unwrap_or(Path::new("")).join(path);
        read(&path, Readers::Owner).map(without_line_end)
    }
}

/// Reads a file. It may be anything, such as a FIFO that nobody writes, so it is opened without waiting.
fn read(path: &Path, readers: Readers) -> Result<Vec<u8>, Missing> {
    let place = format!("the file {}", path.display());
    let explain = |error: ReadError| {
        if error.is_absent() {
            return Missing::Unusable(format!("{place} does not exist"));
        }
        match error {
            ReadError::Io(error) => Missing::Io(place.clone(), error),
            error @ (ReadError::NotRegular(_) | ReadError::TooLarge { .. }) => {
                Missing::Unusable(format!("{place} {error}"))
            }
        }
    };
    let file = open_regular(path, Links::Follow).map_err(explain)?;
    let mode = file.metadata().map_err(|error| explain(error.into()))?.permissions().mode();
    if readers == Readers::Owner && mode & READ_BY_OTHERS != 0 {
        return Err(Missing::Unusable(format!(
            "others than its owner may read {place} (mode {:03o}): run chmod 600 on it",
            mode & 0o777
        )));
    }
    read_at_most(file, SECRET_MAX_BYTES as u64).map_err(explain)
}

/// The bytes without line ends at the end, as `$(…)` of a shell gives them.
pub(super) fn without_line_end(mut value: Vec<u8>) -> Vec<u8> {
    while let Some(b'\n' | b'\r') = value.last() {
        value.pop();
    }
    value
}
