//! `windlass fmt`: gives workflow files in TOML one form.

use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use clap::Args;
use windlass_views::FormattedFile;
use windlass_workflow::{Format, Source, format_toml, limits};

use crate::arguments::{GlobalOptions, OutputFormat};
use crate::error::Failure;
use crate::output::{self, Output};
use crate::read_file::{self, PathOrigin};
use crate::stderr;
use crate::submission::{LoadError, is_standard_input, read_standard_input};

/// Format workflow files: spaces, blank lines and quotes
///
/// The files are changed in place. Comments stay, and the files mean the same as before.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct FmtArgs {
    /// The workflow files in TOML; `-` formats standard input to standard output
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Change nothing; print the files that are not formatted, and exit with 1 if there are any
    #[arg(long)]
    check: bool,
}

const EXAMPLES: &str = "\
Examples:
  windlass fmt nightly.toml
  windlass fmt --check workflows/*.toml
  windlass fmt - < nightly.toml";

/// A file and its form.
struct Formatted {
    before: String,
    after: String,
}

/// Formats all files. A file with an error does not keep the others from being formatted.
pub(crate) fn execute(global: &GlobalOptions, args: &FmtArgs) -> Result<(), Failure> {
    let is_text = global.output == OutputFormat::Text;
    let (mut views, mut invalid, mut errors) = (Vec::new(), 0, Vec::new());
    for path in &args.files {
        let formatted = match format_file(path) {
            Ok(formatted) => formatted,
            Err(error) => {
                errors.extend(error.failure().report(global.output));
                invalid += 1;
                continue;
            }
        };
        let is_changed = formatted.before != formatted.after;
        let is_printed = is_standard_input(path) && !args.check;
        if args.check {
            if is_changed && is_text {
                output::write_text(&format!("{}\n", path.display()))?;
            }
        } else if is_printed {
            if is_text {
                output::write_text(&formatted.after)?;
            }
        } else if is_changed {
            replace(path, &formatted.after).map_err(|error| unwritable(path, &error))?;
            stderr::note(&format!("formatted: {}", path.display()));
        }
        views.push(FormattedFile {
            file: path.display().to_string(),
            changed: is_changed,
            text: is_printed.then_some(formatted.after),
        });
    }
    Output { format: global.output }.list(&views, |_| String::new())?;
    let unformatted = views.iter().filter(|view| view.changed).count();
    match (invalid, unformatted) {
        (0, 0) => Ok(()),
        (0, _) if args.check => Err(Failure::ProblemsFound),
        (0, _) => Ok(()),
        (_, _) => Err(Failure::InvalidFiles { message: None, errors }),
    }
}

fn format_file(path: &Path) -> Result<Formatted, LoadError> {
    let bytes = if is_standard_input(path) {
        read_standard_input(limits::FILE_BYTES, "type or paste the file, and end it with Ctrl-D")
    } else {
        read_file::read(path, limits::FILE_BYTES, PathOrigin::Named)
    };
    let bytes = bytes.map_err(LoadError::Unreadable)?;
    let before = String::from_utf8_lossy(&bytes).into_owned();
    let source = match is_standard_input(path) {
        true => Source::of_standard_input(bytes, Some(Format::Toml)),
        false => Source::new(path.display().to_string(), bytes),
    };
    let source = source.map_err(LoadError::Invalid)?;
    let after = format_toml(&source).map_err(LoadError::Invalid)?;
    Ok(Formatted { before, after })
}

/// Replaces the content of a file in one step, so that a crash leaves the old content or the new one.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    // The target of a link is replaced, and the link stays.
    let path = path.canonicalize()?;
    let permissions = std::fs::metadata(&path)?.permissions();
    let folder = path.parent().unwrap_or(Path::new("/"));
    let mut new = tempfile::NamedTempFile::new_in(folder)?;
    new.write_all(text.as_bytes())?;
    new.as_file().set_permissions(std::fs::Permissions::from_mode(permissions.mode()))?;
    new.as_file().sync_all()?;
    new.persist(&path)?;
    Ok(())
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    Failure::File {
        message: format!("{} cannot be written: {error}", path.display()),
        help: "check the permissions of the file and of its folder, and the disk".to_owned(),
    }
}
