//! Completion in bash, which takes words apart at `=` and `:`.

use std::ffi::OsString;
use std::io::{Result, Write};
use std::path::Path;

use clap_complete::engine;
use clap_complete::env::{self, EnvCompleter};

use super::words;

/// The shell.
pub(super) struct Bash;

impl EnvCompleter for Bash {
    fn name(&self) -> &'static str {
        env::Bash.name()
    }

    fn is(&self, name: &str) -> bool {
        env::Bash.is(name)
    }

    fn write_registration(
        &self,
        variable: &str,
        name: &str,
        program: &str,
        completer: &str,
        script: &mut dyn Write,
    ) -> Result<()> {
        env::Bash.write_registration(variable, name, program, completer, script)
    }

    /// As clap_complete's own, with the words put together again.
    fn write_complete(
        &self,
        command: &mut clap::Command,
        _taken_apart: Vec<OsString>,
        folder: Option<&Path>,
        answer: &mut dyn Write,
    ) -> Result<()> {
        let typed = words::typed();
        let candidates = engine::complete(command, typed.words, typed.index, folder)?;
        let separator = std::env::var("_CLAP_IFS").unwrap_or_else(|_unset| "\n".to_owned());
        let values: Vec<String> = candidates
            .iter()
            .map(|candidate| {
                let value = candidate.get_value().to_string_lossy().into_owned();
                value.strip_prefix(&typed.kept).map(str::to_owned).unwrap_or(value)
            })
            .collect();
        answer.write_all(values.join(&separator).as_bytes())
    }
}
