//! Secrets of the configuration: where their values are. The file itself has none, and they are looked for by `serve`, `web` and
//! `notify --test` only.

use std::path::{Path, PathBuf};

use windlass_engine::signature::SigningKey;
use windlass_worker::find_own_secret;
#[cfg(feature = "otlp")]
use windlass_workflow::kinds::http::check_header;
use windlass_workflow::model::SecretSource;
#[cfg(feature = "otlp")]
use windlass_workflow::strict::Named;
use windlass_workflow::strict::Table;

use crate::error::Failure;

/// What the name of a variable with a secret begins with: jobs get no variable that begins so.
const VARIABLE_PREFIX: &str = "WINDLASS_";

/// Where the value of a secret is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConfiguredSecret {
    source: SecretSource,
    /// The folder of the configuration.
    folder: PathBuf,
}

/// Reads a secret: a table with `env`, `file` or `command`.
pub(super) fn take(table: &mut Table<'_, '_>, key: &'static str, folder: &Path) -> Option<ConfiguredSecret> {
    let source = table.table(key, source)??;
    Some(ConfiguredSecret { source, folder: folder.to_owned() })
}

/// Reads a secret that has a name.
#[cfg(feature = "otlp")]
pub(super) fn of_entry(entry: &mut Named<'_, '_>, folder: &Path) -> Option<ConfiguredSecret> {
    let source = entry.table("a secret", source)??;
    Some(ConfiguredSecret { source, folder: folder.to_owned() })
}

fn source(table: &mut Table<'_, '_>) -> Option<SecretSource> {
    let env = table.parsed("env", check_variable).map(SecretSource::Env);
    let file = table.text("file").map(SecretSource::File);
    let command = table.texts("command", |_word| Ok(())).map(SecretSource::Command);
    let mut sources = [env, file, command].into_iter().flatten();
    match (sources.next(), sources.next()) {
        (Some(source), None) => Some(source),
        (None, _) | (Some(_), Some(_)) => {
            table.refuse(
                "a secret has one source",
                "write { file = \"…\" }, { env = \"WINDLASS_…\" } or { command = [\"PROGRAM\", \"ARGUMENT\"] }",
            );
            None
        }
    }
}

fn check_variable(name: &str) -> Result<String, String> {
    match name.starts_with(VARIABLE_PREFIX) && !name.contains(['=', '\0']) {
        true => Ok(name.to_owned()),
        false => Err(format!("its name must begin with {VARIABLE_PREFIX}, so that jobs do not get it")),
    }
}

impl ConfiguredSecret {
    /// The key for signatures. `owner` is for people, as in "the hook `shop`".
    pub(super) fn key(
        &self,
        owner: &str,
        parse: impl FnOnce(&str) -> Result<SigningKey, String>,
    ) -> Result<SigningKey, Failure> {
        self.value().and_then(|text| parse(&text)).map_err(|reason| {
            Failure::usage(
                format!("the secret of {owner} can't be used: {reason}"),
                "docs/guide/webhooks.md says what a secret is; `openssl rand -base64 32` makes what follows whsec_",
            )
        })
    }

    /// The value of a header of traces.
    #[cfg(feature = "otlp")]
    pub(super) fn header(&self, name: &str) -> Result<String, Failure> {
        let checked = self.value().and_then(|text| check_header(name, &text).map(|()| text));
        checked.map_err(|reason| {
            Failure::usage(
                format!("the header `{name}` of `[traces]` can't be used: {reason}"),
                "docs/guide/traces.md says where headers may come from",
            )
        })
    }

    /// The text, or why it can't be found.
    fn value(&self) -> Result<String, String> {
        let folder = Some(self.folder.as_path()).filter(|folder| !folder.as_os_str().is_empty());
        let missing = self.missing_variable();
        missing.map_or_else(|| find_own_secret(&self.source, folder), Err)
    }

    /// The variable that has the secret, if this process does not have it.
    fn missing_variable(&self) -> Option<String> {
        let SecretSource::Env(name) = &self.source else { return None };
        std::env::var_os(name).is_none().then(|| format!("this process has no variable `{name}`"))
    }
}
