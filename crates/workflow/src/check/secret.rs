//! Checks the secrets of a workflow that a program made.

use std::collections::HashSet;

use crate::env;
use crate::field::{self, Checked, refuse, within};
use crate::limits;
use crate::model::{Secret, SecretSource};
use crate::names::NameKind;

pub(super) fn check_all(secrets: &[Secret]) -> Checked {
    within(secrets.len(), limits::SECRETS, "secrets")?;
    let mut seen = HashSet::new();
    for (index, secret) in secrets.iter().enumerate() {
        let field = format!("secrets[{index}] (`{}`)", secret.name);
        check(secret).map_err(|error| error.inside(&field))?;
        if !seen.insert(&secret.name) {
            return refuse(format!("{field}.name"), "an earlier secret has the same name");
        }
    }
    Ok(())
}

fn check(secret: &Secret) -> Checked {
    field::name(&secret.name, "name", NameKind::Secret)?;
    if secret.name.starts_with(env::RESERVED) {
        refuse("name", format!("Windlass sets the names that begin with {}; choose another", env::RESERVED))?;
    }
    match &secret.source {
        SecretSource::Worker => Ok(()),
        SecretSource::Env(name) => field::filled(name, "source.env"),
        SecretSource::File(path) => field::filled(path, "source.file"),
        SecretSource::Command(words) => {
            within(words.len(), limits::COMMAND_ITEMS, "source.command")?;
            if words.first().is_none_or(|program| program.trim().is_empty()) {
                refuse("source.command", "it names no program")?;
            }
            words
                .iter()
                .enumerate()
                .try_for_each(|(at, word)| field::plain(word, &format!("source.command[{at}]")))
        }
    }
}
