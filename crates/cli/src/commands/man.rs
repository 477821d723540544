//! `windlass man`: the manual pages, made from the same declarations as the help.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use clap_mangen::Man;

use crate::arguments::GlobalOptions;
use crate::error::Failure;
use crate::{output, stderr};

/// Print the manual page, or write the pages of all verbs
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ManArgs {
    /// The folder for the pages, one for each verb; it is created if needed
    #[arg(value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  windlass man | man -l -
  windlass man ~/.local/share/man/man1     # then: man windlass-run";

/// Prints or writes the pages. `command` is the whole command line.
pub(crate) fn execute(global: &GlobalOptions, command: clap::Command, args: &ManArgs) -> Result<(), Failure> {
    output::refuse_json(global, "man", "manual pages", "leave -o out")?;
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let Some(folder) = &args.folder else {
        return output::write_text(&text(&Man::new(command)).map_err(|error| Failure::from_output(&error))?);
    };
    let mut commands = Vec::new();
    collect(command, &mut commands);
    let pages = commands.len();
    write(folder, commands).map_err(|error| Failure::File {
        message: format!("the manual pages cannot be written to {}: {error}", folder.display()),
        help: "check the permissions of the folder and the disk, or name another folder".to_owned(),
    })?;
    stderr::note(&format!("{pages} manual pages are in {}", folder.display()));
    Ok(())
}

/// The command and all verbs below it.
fn collect(command: clap::Command, into: &mut Vec<clap::Command>) {
    for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
        collect(verb.clone(), into);
    }
    into.push(command);
}

fn text(page: &Man) -> io::Result<String> {
    let mut text = Vec::new();
    page.render(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn write(folder: &Path, commands: Vec<clap::Command>) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    for command in commands {
        let page = Man::new(command);
        fs::write(folder.join(page.get_filename()), text(&page)?)?;
    }
    Ok(())
}
