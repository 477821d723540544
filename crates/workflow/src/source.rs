//! The text of a workflow file, before it is parsed.

use std::path::Path;

use crate::report::{Finding, Report};
use crate::{include, limits};

/// The format of a file. All formats have the same tables and keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// TOML 1.0.
    Toml,
    /// Strict JSON: no comments, no trailing commas.
    Json,
    /// YAML 1.2: plain values by the core schema, without tags.
    Yaml,
}

/// What messages call standard input, in place of a path.
pub const STANDARD_INPUT: &str = "standard input";

/// A workflow file as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The path of the file, as messages show it.
    pub path: String,
    /// The text, without a byte order mark.
    pub text: String,
    /// The format of the text.
    pub format: Format,
    /// The included files, whose texts stand behind the file's own. See [`Source::with_included`].
    pub(crate) included: Vec<IncludedText>,
    /// Why files that the file includes are not among them.
    pub(crate) unread: Vec<Finding>,
}

/// A file that another one includes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IncludedText {
    /// The path, as messages show it.
    pub path: String,
    /// The format of its text.
    pub(crate) format: Format,
    /// Where its text begins, in bytes of the whole text.
    pub(crate) start: usize,
}

impl Source {
    /// Decodes the bytes of a file.
    ///
    /// The extension chooses the format (`.toml`, `.json`, `.yaml` or `.yml`). A file with another extension is JSON if it begins with `{`,
    /// else TOML.
    ///
    /// # Errors
    /// The bytes are not UTF-8, or there are more than [`limits::FILE_BYTES`].
    pub fn new(path: impl Into<String>, bytes: Vec<u8>) -> Result<Source, Report> {
        Source::decoded(path.into(), bytes, None)
    }

    /// Decodes the bytes of standard input. Without a format it is JSON if it begins with `{`, else TOML.
    ///
    /// # Errors
    /// As those of [`Source::new`].
    pub fn of_standard_input(bytes: Vec<u8>, format: Option<Format>) -> Result<Source, Report> {
        Source::decoded(STANDARD_INPUT.to_owned(), bytes, format)
    }

    fn decoded(path: String, bytes: Vec<u8>, format: Option<Format>) -> Result<Source, Report> {
        if bytes.len() > limits::FILE_BYTES {
            let size = bytes.len().div_ceil(1024 * 1024);
            let limit = limits::FILE_BYTES / (1024 * 1024);
            let finding = Finding::without_position(format!("the file is too large: {size} MiB"))
                .help(format!("the limit is {limit} MiB; split the workflow into several"));
            return Err(Report::of_one(path, "", finding));
        }
        let mut text = match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => return Err(not_utf8(path, error.as_bytes(), error.utf8_error().valid_up_to())),
        };
        if text.starts_with('\u{feff}') {
            text.drain(..'\u{feff}'.len_utf8());
        }
        let format = format.unwrap_or_else(|| format_of(&path, &text));
        Ok(Source { path, text, format, included: Vec::new(), unread: Vec::new() })
    }

    /// The text, the format and the start of an included file, or of the file itself.
    pub(crate) fn part(&self, index: Option<usize>) -> (&str, Format, usize) {
        let (format, start, next) = match index {
            None => (self.format, 0, 0),
            Some(index) => (self.included[index].format, self.included[index].start, index + 1),
        };
        // Before an included text stands a line break.
        let end = self.included.get(next).map_or(self.text.len(), |next| next.start - 1);
        (&self.text[start..end], format, start)
    }

    /// The index of the included file to which a byte of the text belongs; nothing for the file itself.
    pub(crate) fn part_at(&self, at: usize) -> Option<usize> {
        self.included.partition_point(|part| part.start <= at).checked_sub(1)
    }

    /// Whether a byte of the text belongs to an included file.
    pub(crate) fn is_included(&self, at: usize) -> bool {
        self.part_at(at).is_some()
    }

    /// Whether the file has nothing but tables for other files to include.
    #[must_use]
    pub fn can_be_included(&self) -> bool {
        include::can_be_included(self)
    }

    /// The file's name without folder and extension, or `stdin`. A workflow without `name` is called so.
    pub(crate) fn stem(&self) -> &str {
        if self.path == STANDARD_INPUT {
            return "stdin";
        }
        Path::new(&self.path).file_stem().and_then(|stem| stem.to_str()).unwrap_or("")
    }
}

fn format_of(path: &str, text: &str) -> Format {
    let extension = Path::new(path).extension().and_then(|extension| extension.to_str());
    match extension.map(str::to_ascii_lowercase).as_deref() {
        Some("toml") => Format::Toml,
        Some("json") => Format::Json,
        Some("yaml" | "yml") => Format::Yaml,
        _ if text.trim_start().starts_with('{') => Format::Json,
        _ => Format::Toml,
    }
}

fn not_utf8(path: String, bytes: &[u8], at: usize) -> Report {
    // The shown text has U+FFFD in place of the invalid bytes. U+FFFD has three bytes.
    let shown = String::from_utf8_lossy(bytes);
    let help = if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        "this looks like UTF-16; save the file as UTF-8"
    } else {
        "save the file as UTF-8"
    };
    let finding = Finding::new(at..at + '\u{fffd}'.len_utf8(), "the file is not valid UTF-8")
        .label(format!("byte 0x{:02x}", bytes[at]))
        .help(help);
    Report::of_one(path, &shown, finding)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_extension_or_the_first_character_chooses_the_format() {
        let format = |path: &str, text: &str| Source::new(path, text.into()).unwrap().format;
        assert_eq!(format("a.toml", "{"), Format::Toml);
        assert_eq!(format("a.JSON", ""), Format::Json);
        assert_eq!((format("a.yaml", "{"), format("a.YML", "")), (Format::Yaml, Format::Yaml));
        assert_eq!(format("a", "  {}"), Format::Json);
        assert_eq!(format("a.workflow", "name = 'x'"), Format::Toml);
    }

    #[test]
    fn standard_input_has_the_format_that_was_named_or_that_of_its_first_character() {
        let source = |text: &str, format| Source::of_standard_input(text.into(), format).unwrap();
        assert_eq!(source("jobs: {}", Some(Format::Yaml)).format, Format::Yaml);
        assert_eq!(source(" { }", None).format, Format::Json);
        assert_eq!(source("[jobs.a]", None).format, Format::Toml);
        assert_eq!((source("", None).path.as_str(), source("", None).stem()), ("standard input", "stdin"));
        assert!(Source::of_standard_input(vec![b' '; limits::FILE_BYTES + 1], None).is_err());
    }

    #[test]
    fn a_byte_order_mark_is_skipped() {
        assert_eq!(Source::new("a", b"\xef\xbb\xbfname".to_vec()).unwrap().text, "name");
    }

    #[test]
    fn bytes_that_are_not_utf8_are_refused_with_their_position() {
        let report = Source::new("a.toml", b"# ok\nname = \"\xff\"\n".to_vec()).unwrap_err();
        let diagnostic = &report.diagnostics()[0];
        assert_eq!((diagnostic.line, diagnostic.column), (2, 9));
        assert!(diagnostic.message.contains("UTF-8"), "{report:?}");
    }

    #[test]
    fn utf16_is_recognised() {
        let report = Source::new("a.toml", b"\xff\xfen\0a\0".to_vec()).unwrap_err();
        assert!(report.diagnostics()[0].help.as_ref().unwrap().contains("UTF-16"));
    }

    #[test]
    fn a_file_over_the_limit_is_refused() {
        assert!(Source::new("a.toml", vec![b' '; limits::FILE_BYTES]).is_ok());
        let report = Source::new("a.toml", vec![b' '; limits::FILE_BYTES + 1]).unwrap_err();
        assert!(report.diagnostics()[0].message.contains("too large"));
    }
}
