//! The output of a successful job, which the jobs that need it may read.

use std::io::ErrorKind;
use std::path::Path;

use serde_json::Value as Json;
use windlass_workflow::kinds::shell::OutputSource;

use windlass_system::files::{Links, ReadError, read_regular};
use windlass_system::shortage::shortage;

/// Bytes of an output, at most. A job writes larger values into files of its own.
pub(super) const OUTPUT_MAX_BYTES: usize = 1024 * 1024;

/// Where an output comes from, for messages.
const OUTPUT_FILE: &str = "the file WINDLASS_OUTPUT";
const STANDARD_OUTPUT: &str = "its standard output";

/// Why there is no output.
#[derive(Debug)]
pub(super) enum OutputError {
    /// The job wrote an invalid output. The text is for people.
    Invalid(String),
    /// The system refused what is needed to read the output. It can be read later.
    Shortage(std::io::Error),
}

impl From<String> for OutputError {
    fn from(error: String) -> OutputError {
        OutputError::Invalid(error)
    }
}

/// Takes the output of a job as JSON, if it has one, and removes its file.
pub(super) fn take(source: OutputSource, stdout: &[u8], file: &Path) -> Result<Option<String>, OutputError> {
    match source {
        OutputSource::File => take_file(file),
        OutputSource::Text | OutputSource::Lines | OutputSource::Json => {
            discard(file);
            Ok(of_bytes(source, stdout)?)
        }
    }
}

/// The output as JSON, of the bytes that the job wrote: into its file, or to its standard output.
pub(super) fn of_bytes(source: OutputSource, bytes: &[u8]) -> Result<Option<String>, String> {
    match source {
        OutputSource::File => {
            within_limit(bytes.len(), OUTPUT_FILE)?;
            if bytes.is_empty() {
                return Ok(None);
            }
            match serde_json::from_slice::<Json>(bytes) {
                Ok(value) => Ok(Some(value.to_string())),
                Err(_plain_text) => Ok(Some(as_text(bytes))),
            }
        }
        OutputSource::Text => {
            within_limit(bytes.len(), STANDARD_OUTPUT)?;
            Ok(Some(as_text(bytes)))
        }
        OutputSource::Lines => {
            within_limit(bytes.len(), STANDARD_OUTPUT)?;
            let text = String::from_utf8_lossy(bytes).replace('\0', "\u{fffd}");
            let lines = text.lines().collect::<Json>().to_string();
            within_limit(lines.len(), "the list of its lines")?;
            Ok(Some(lines))
        }
        OutputSource::Json => {
            within_limit(bytes.len(), STANDARD_OUTPUT)?;
            let value: Json = serde_json::from_slice(bytes).map_err(|error| {
                format!("`output = \"json\"`, and its standard output is not JSON: {error}")
            })?;
            Ok(Some(value.to_string()))
        }
    }
}

/// Removes the output file of a job whose output is not in it, even if the job made something else of it.
pub(super) fn discard(file: &Path) {
    if let Err(error) = std::fs::remove_file(file)
        && error.kind() == ErrorKind::IsADirectory
    {
        let _left = std::fs::remove_dir_all(file);
    }
}

/// Takes the output from the job's file. Without a file there is no output. A file that can't be read fails the attempt,
/// because the output would be missing without notice. If the system lacks resources to read it, the file stays.
fn take_file(file: &Path) -> Result<Option<String>, OutputError> {
    let read = read_regular(file, Links::Refuse, OUTPUT_MAX_BYTES as u64);
    if let Err(ReadError::Io(error)) = &read
        && let Some(errno) = shortage(error)
    {
        return Err(OutputError::Shortage(errno.into()));
    }
    discard(file);
    let bytes = match read {
        Ok(bytes) => bytes,
        Err(error) if error.is_absent() => return Ok(None),
        Err(ReadError::TooLarge { .. }) => return Err(too_large(OUTPUT_FILE).into()),
        Err(error @ ReadError::NotRegular(_)) => {
            return Err(format!("{OUTPUT_FILE} {error}: write the value into it").into());
        }
        Err(error @ ReadError::Io(_)) => return Err(format!("{OUTPUT_FILE} {error}").into()),
    };
    Ok(of_bytes(OutputSource::File, &bytes)?)
}

fn within_limit(bytes: usize, what: &str) -> Result<(), String> {
    if bytes <= OUTPUT_MAX_BYTES {
        return Ok(());
    }
    Err(too_large(what))
}

fn too_large(what: &str) -> String {
    format!("{what} is larger than {OUTPUT_MAX_BYTES} bytes: write a file and hand its name on instead")
}

/// The bytes as a JSON string. Trailing line ends are removed, as `$(…)` of a shell does it. NUL is replaced, because
/// databases do not store it.
fn as_text(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes).replace('\0', "\u{fffd}");
    Json::String(text.trim_end_matches(['\n', '\r']).to_owned()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standard_output_as_text_or_json() {
        let nowhere = Path::new("/nonexistent/output");
        let text = take(OutputSource::Text, b"a\nb\n\n", nowhere);
        assert_eq!(text.ok(), Some(Some("\"a\\nb\"".to_owned())));
        let json = take(OutputSource::Json, b" {\"a\": 1}\n", nowhere);
        assert_eq!(json.ok(), Some(Some("{\"a\":1}".to_owned())));
        assert!(take(OutputSource::Json, b"no json", nowhere).is_err());
        let lines = take(OutputSource::Lines, b"a\n\nb c\n", nowhere);
        assert_eq!(lines.ok().flatten().as_deref(), Some("[\"a\",\"\",\"b c\"]"));
        assert_eq!(take(OutputSource::Lines, b"", nowhere).ok().flatten().as_deref(), Some("[]"));
        assert_eq!(take(OutputSource::File, b"ignored", nowhere).ok(), Some(None));
        assert!(take(OutputSource::File, b"", Path::new("/dev/null/output")).is_err(), "not absent");
        let large = vec![b'x'; OUTPUT_MAX_BYTES + 1];
        assert!(take(OutputSource::Text, &large, nowhere).is_err());
    }

    #[test]
    fn the_output_file_is_removed_wherever_the_output_comes_from() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("7-1");
        for (source, output) in
            [(OutputSource::File, "\"written\""), (OutputSource::Text, "\"1\""), (OutputSource::Json, "1")]
        {
            std::fs::write(&file, "written\n").expect("it can be written");
            assert_eq!(take(source, b"1", &file).ok(), Some(Some(output.to_owned())));
            assert!(!file.exists(), "{source:?}");
        }
    }

    #[test]
    fn an_output_that_is_no_regular_file_fails_the_attempt_and_is_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("7-1");
        let elsewhere = folder.path().join("elsewhere");
        std::fs::write(&elsewhere, "1").expect("it can be written");
        let refused = |what: &str| {
            let error = take(OutputSource::File, b"", &file).expect_err("it is no regular file");
            let expected =
                format!("the file WINDLASS_OUTPUT is {what}, not a regular file: write the value into it");
            assert!(matches!(&error, OutputError::Invalid(error) if *error == expected), "{error:?}");
            assert!(file.symlink_metadata().is_err(), "{what} is left");
        };
        std::os::unix::fs::symlink(&elsewhere, &file).expect("a link");
        refused("a symbolic link");
        std::fs::create_dir_all(file.join("deep")).expect("a directory");
        refused("a directory");
        let fifo = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &file, fifo, rustix::fs::Mode::RWXU, 0).expect("a FIFO");
        refused("a FIFO (named pipe)");
        assert!(elsewhere.exists());
    }
}
