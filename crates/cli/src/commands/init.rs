//! `windlass init`: writes a first workflow file, and the schema by which editors complete its keys.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use windlass_views::WrittenFile;

use super::schema::schema_text;
use crate::arguments::GlobalOptions;
use crate::error::Failure;
use crate::output::Output;
use crate::stderr;
use crate::workflow_files::CONFIG_FILE;

/// Write a first workflow file to change
///
/// The first line of the file names .windlass/schema.json, which is written too. Editors with support for TOML (Taplo, Even
/// Better TOML) then complete keys and mark wrong ones, without a network.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct InitArgs {
    /// The name of the workflow; the file is NAME.toml in the current folder
    #[arg(value_name = "NAME", default_value = DEFAULT_NAME, value_parser = parse_name)]
    name: String,
}

const EXAMPLES: &str = "\
Examples:
  windlass init nightly && windlass run nightly.toml
  windlass init";

const DEFAULT_NAME: &str = "workflow";

/// The longest name.
const NAME_BYTES_MAX: usize = 100;

const TEMPLATE: &str = include_str!("init.toml");

/// The schema that the first line of the file names. `apply` and `serve` leave hidden folders out.
const SCHEMA: &str = ".windlass/schema.json";

/// Writes the file, and prints its path.
pub(crate) fn execute(global: &GlobalOptions, args: &InitArgs) -> Result<(), Failure> {
    let path = PathBuf::from(format!("{}.toml", args.name));
    let text = TEMPLATE.replace("NAME", &args.name);
    let written = fs::File::create_new(&path).and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| {
        if error.kind() == io::ErrorKind::AlreadyExists {
            return Failure::File {
                message: format!("{} exists already", path.display()),
                help: "choose another name: windlass init NAME".to_owned(),
            };
        }
        unwritable(&path, &error)
    })?;
    write_schema(Path::new(SCHEMA))?;
    stderr::note(&format!("run it with: windlass run {}", path.display()));
    let written = [path.display().to_string(), SCHEMA.to_owned()].map(|file| WrittenFile { file });
    Output { format: global.output }.list(&written, |_| path.display().to_string())
}

/// Writes the schema of this version, in place of an older one.
fn write_schema(path: &Path) -> Result<(), Failure> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(path, schema_text()));
    written.map_err(|error| unwritable(path, &error))
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    Failure::File {
        message: format!("{} cannot be written: {error}", path.display()),
        help: "check the permissions of the current folder, and the disk".to_owned(),
    }
}

fn parse_name(text: &str) -> Result<String, String> {
    let name = text.strip_suffix(".toml").unwrap_or(text);
    if let Some(stem) = [".yaml", ".yml", ".json"].iter().find_map(|ending| name.strip_suffix(ending)) {
        return Err(format!("the file is written in TOML: windlass init {}", plain_name(stem)));
    }
    if format!("{name}.toml") == CONFIG_FILE {
        return Err(format!("{CONFIG_FILE} is the configuration; choose another name"));
    }
    if name == plain_name(name) {
        return Ok(name.to_owned());
    }
    let rule = format!("a name has letters, digits, `_`, `-` and `.`, and at most {NAME_BYTES_MAX} of them");
    Err(format!("{rule}; try: windlass init {}", plain_name(name)))
}

/// The nearest name that a file and a workflow can have.
fn plain_name(text: &str) -> String {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let last_part = text.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let name: String = last_part.chars().map(|c| if is_allowed(c) { c } else { '-' }).collect();
    let name: String = name.trim_matches(['-', '.']).chars().take(NAME_BYTES_MAX).collect();
    if name.is_empty() { DEFAULT_NAME.to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::parse_name;

    #[test]
    fn a_wrong_name_is_refused_with_a_right_one() {
        for (written, suggested) in [
            ("my flow", "windlass init my-flow"),
            ("../flows/etl", "windlass init etl"),
            (".hidden", "windlass init hidden"),
            ("nightly.yaml", "TOML: windlass init nightly"),
            ("-", "windlass init workflow"),
            ("größe", "windlass init gr--e"),
            ("windlass", "windlass.toml is the configuration"),
            ("windlass.toml", "windlass.toml is the configuration"),
        ] {
            let error = parse_name(written).expect_err(written);
            assert!(error.ends_with(suggested) || error.starts_with(suggested), "{written}: {error}");
        }
        for name in ["nightly", "nightly.toml", "_a", "9x", "a.b-c"] {
            assert_eq!(parse_name(name), Ok(name.trim_end_matches(".toml").to_owned()));
        }
    }
}
