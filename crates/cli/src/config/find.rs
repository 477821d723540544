//! Finding the configuration file: the one that is named, else `windlass.toml` in this folder, else in the nearest folder
//! above it.

use std::env;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

use crate::error::Failure;
use crate::read_file::PathOrigin;
use crate::workflow_files::CONFIG_FILE;

/// A configuration file that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConfigFile {
    pub(crate) path: PathBuf,
    pub(crate) origin: PathOrigin,
}

/// The configuration file of this process, if there is one. `named` is from `--config` or `WINDLASS_CONFIG`.
pub(crate) fn find(named: Option<&Path>) -> Result<Option<ConfigFile>, Failure> {
    if let Some(path) = named {
        return Ok(Some(ConfigFile { path: path.to_owned(), origin: PathOrigin::Named }));
    }
    let here = Path::new(CONFIG_FILE);
    if here.exists() {
        return Ok(Some(ConfigFile { path: here.to_owned(), origin: PathOrigin::Found }));
    }
    // Without a current folder there are no folders above it.
    let Ok(folder) = env::current_dir() else { return Ok(None) };
    above(&folder, geteuid().as_raw())
}

/// The nearest file in the folders above. It must belong to this user or to root: anybody can write to some folders above,
/// such as /tmp, and the file decides which database is used.
fn above(folder: &Path, user: u32) -> Result<Option<ConfigFile>, Failure> {
    let found = folder.ancestors().skip(1).map(|folder| folder.join(CONFIG_FILE)).find(|path| path.exists());
    let Some(path) = found else { return Ok(None) };
    let owner = fs::metadata(&path).map_err(|error| Failure::unreadable(&path, &error))?.uid();
    if owner != 0 && owner != user {
        return Err(Failure::File {
            message: format!("{} belongs to another user, so it is not used from here", path.display()),
            help: format!(
                "to use it, name it: --config {}; otherwise write a {CONFIG_FILE} in this folder, even an empty one",
                crate::shell_words::quoted(&path.display().to_string())
            ),
        });
    }
    Ok(Some(ConfigFile { path, origin: PathOrigin::Found }))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_nearest_file_above_is_found() {
        let top = tempfile::tempdir().unwrap();
        let inner = top.path().join("flows/daily");
        fs::create_dir_all(&inner).unwrap();
        let user = geteuid().as_raw();
        fs::write(top.path().join(CONFIG_FILE), "").unwrap();
        assert_eq!(above(&inner, user).unwrap().unwrap().path, top.path().join(CONFIG_FILE));
        fs::write(top.path().join("flows").join(CONFIG_FILE), "").unwrap();
        assert_eq!(above(&inner, user).unwrap().unwrap().path, top.path().join("flows").join(CONFIG_FILE));
    }

    #[test]
    fn a_file_above_that_belongs_to_another_user_is_an_error() {
        let top = tempfile::tempdir().unwrap();
        let inner = top.path().join("flows");
        fs::create_dir_all(&inner).unwrap();
        let path = top.path().join(CONFIG_FILE);
        fs::write(&path, "").unwrap();
        // The owner of the file must not be root, whose files are always used.
        let owner = fs::metadata(&path).unwrap().uid();
        if owner == 0 {
            std::os::unix::fs::chown(&path, Some(12_345), None).unwrap();
        }
        let error = format!("{:?}", above(&inner, 12_346).unwrap_err());
        assert!(error.contains("belongs to another user") && error.contains("--config"), "{error}");
    }
}
