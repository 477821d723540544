//! A workflow, or the parameters of one, on standard input, named `-`.

use std::io::{self, IsTerminal, Read};
use std::path::Path;

use clap::{Args, ValueEnum};
use serde_json::{Map, Value as Json};
use windlass_workflow::{Format, STANDARD_INPUT, Source, Workflow, limits};

use super::{LoadError, called_files, parameters, read_included};
use crate::error::Failure;
use crate::stderr;

/// The next step after an error, which may come from a wrong format.
pub(crate) const STANDARD_INPUT_FORMAT_HELP: &str =
    "`--format yaml` reads standard input as YAML; without it only TOML and JSON are recognised";

/// The format of standard input.
#[derive(Debug, Args)]
pub(crate) struct StandardInputArgs {
    /// With `-`: the format of standard input. By default it is JSON if it begins with {, else TOML
    #[arg(long, value_name = "FORMAT")]
    format: Option<FormatName>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FormatName {
    Toml,
    Yaml,
    Json,
}

impl FormatName {
    fn format(self) -> Format {
        match self {
            FormatName::Toml => Format::Toml,
            FormatName::Yaml => Format::Yaml,
            FormatName::Json => Format::Json,
        }
    }
}

impl StandardInputArgs {
    /// Reads and checks the workflow on standard input, with the files that it calls.
    pub(crate) fn load(&self) -> Result<(Workflow, Source), LoadError> {
        load_standard_input(self.format.map(FormatName::format))
    }

    /// The parameters on standard input.
    pub(crate) fn load_params(&self) -> Result<Map<String, Json>, Failure> {
        parameters::read_standard_input(self.format.map(FormatName::format))
    }

    /// Refuses `--format` where no standard input is read: the name of a file says its format.
    pub(crate) fn refuse(&self) -> Result<(), Failure> {
        match self.format {
            None => Ok(()),
            Some(_) => Err(Failure::usage(
                "--format is for standard input, and no `-` is named",
                "leave it out: the name of a file says its format; or name `-`",
            )),
        }
    }
}

/// Whether the path means standard input. A file of this name is `./-`.
pub(crate) fn is_standard_input(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Reads and checks the workflow on standard input. Its paths start in the current folder.
pub(crate) fn load_standard_input(format: Option<Format>) -> Result<(Workflow, Source), LoadError> {
    let note = "type or paste the workflow, and end it with Ctrl-D";
    let bytes = read(limits::FILE_BYTES, note).map_err(LoadError::Unreadable)?;
    let path = Path::new(STANDARD_INPUT);
    let (workflow, source) = Source::of_standard_input(bytes, format)
        .map(|source| source.with_included(&mut |included| read_included(path, included)))
        .and_then(|source| Ok((windlass_workflow::parse(&source)?, source)))
        .map_err(LoadError::Invalid)?;
    Ok((called_files::embed(path, workflow, &source)?, source))
}

/// Reads at most one byte more than the limit. Somebody at a terminal reads the note first.
pub(crate) fn read(limit_bytes: usize, note: &str) -> Result<Vec<u8>, Failure> {
    if io::stdin().is_terminal() {
        stderr::note(note);
    }
    let mut bytes = Vec::new();
    let limit = u64::try_from(limit_bytes).unwrap_or(u64::MAX).saturating_add(1);
    let read = io::stdin().take(limit).read_to_end(&mut bytes);
    read.map(|_count| bytes).map_err(|error| Failure::File {
        message: format!("{STANDARD_INPUT} cannot be read: {error}"),
        help: "send the text through a pipe, or name a file".to_owned(),
    })
}
