//! What a successful job hands on.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

use serde_json::Value as Json;
use windlass_workflow::OutputSource;

/// An output may have so many bytes; larger values belong in files of the job's own.
pub(super) const OUTPUT_MAX_BYTES: usize = 1024 * 1024;

/// The output of a job as JSON, if it has one. Its file is gone afterwards. The error is for people.
pub(super) fn take(source: OutputSource, stdout: &[u8], file: &Path) -> Result<Option<String>, String> {
    match source {
        OutputSource::File => take_file(file),
        OutputSource::Text => {
            discard(file);
            within_limit(stdout.len(), "its standard output")?;
            Ok(Some(as_text(stdout)))
        }
        OutputSource::Json => {
            discard(file);
            within_limit(stdout.len(), "its standard output")?;
            let value: Json = serde_json::from_slice(stdout).map_err(|error| {
                format!("`output = \"json\"`, and its standard output is not JSON: {error}")
            })?;
            Ok(Some(value.to_string()))
        }
    }
}

/// Removes the file of a job that hands nothing on by it.
pub(super) fn discard(file: &Path) {
    let _never_written = std::fs::remove_file(file);
}

fn take_file(file: &Path) -> Result<Option<String>, String> {
    let unreadable = |error| format!("the file WINDLASS_OUTPUT could not be read: {error}");
    let opened = match File::open(file) {
        Ok(opened) => opened,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        // Without it the job would seem to hand nothing on.
        Err(error) => {
            discard(file);
            return Err(unreadable(error));
        }
    };
    discard(file);
    let mut bytes = Vec::new();
    opened.take(OUTPUT_MAX_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    within_limit(bytes.len(), "the file WINDLASS_OUTPUT")?;
    if bytes.is_empty() {
        return Ok(None);
    }
    match serde_json::from_slice::<Json>(&bytes) {
        Ok(value) => Ok(Some(value.to_string())),
        Err(_plain_text) => Ok(Some(as_text(&bytes))),
    }
}

fn within_limit(bytes: usize, what: &str) -> Result<(), String> {
    if bytes <= OUTPUT_MAX_BYTES {
        return Ok(());
    }
    Err(format!("{what} is larger than {OUTPUT_MAX_BYTES} bytes: write a file and hand its name on instead"))
}

/// Without trailing line ends, as `$(…)` of a shell does it, and without NUL, which no text column takes.
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
        assert_eq!(text, Ok(Some("\"a\\nb\"".to_owned())));
        assert_eq!(take(OutputSource::Json, b" {\"a\": 1}\n", nowhere), Ok(Some("{\"a\":1}".to_owned())));
        assert!(take(OutputSource::Json, b"no json", nowhere).is_err());
        assert_eq!(take(OutputSource::File, b"ignored", nowhere), Ok(None));
        assert!(take(OutputSource::File, b"", Path::new("/dev/null/output")).is_err(), "not absent");
        let large = vec![b'x'; OUTPUT_MAX_BYTES + 1];
        assert!(take(OutputSource::Text, &large, nowhere).is_err());
    }

    #[test]
    fn whatever_the_output_is_its_file_is_gone() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("7-1");
        for (source, output) in
            [(OutputSource::File, "\"written\""), (OutputSource::Text, "\"1\""), (OutputSource::Json, "1")]
        {
            std::fs::write(&file, "written\n").expect("it can be written");
            assert_eq!(take(source, b"1", &file), Ok(Some(output.to_owned())));
            assert!(!file.exists(), "{source:?}");
        }
    }
}
