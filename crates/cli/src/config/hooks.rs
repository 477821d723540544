//! `[hooks.NAME]` of the configuration: addresses for messages of other services.

use std::path::Path;

use windlass_engine::signature::SigningKey;
use windlass_web::{HOOKS_MAX, Hook, HookForm};
use windlass_workflow::strict::Table;

use super::secret::{self, ConfiguredSecret};
use crate::error::Failure;

/// How messages are signed, in the configuration.
const FORMS: [(&str, HookForm); 2] = [("standard", HookForm::Standard), ("github", HookForm::Github)];

/// The longest name of a hook.
const NAME_MAX_BYTES: usize = 100;

/// A hook before its secrets are looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConfiguredHook {
    name: String,
    event: String,
    form: HookForm,
    /// One, or two while the sender changes its secret.
    secrets: Vec<ConfiguredSecret>,
}

impl ConfiguredHook {
    /// The hook with the values of its secrets.
    pub(crate) fn resolve(&self) -> Result<Hook, Failure> {
        let owner = format!("the hook `{}`", self.name);
        let parse = match self.form {
            HookForm::Standard => SigningKey::standard,
            HookForm::Github => SigningKey::text,
        };
        let keys = self.secrets.iter().map(|secret| secret.key(&owner, parse));
        Ok(Hook {
            name: self.name.clone(),
            event: self.event.clone(),
            form: self.form,
            keys: keys.collect::<Result<_, Failure>>()?,
        })
    }
}

pub(super) fn take(table: &mut Table<'_, '_>, folder: &Path) -> Vec<ConfiguredHook> {
    let mut hooks = Vec::new();
    table.named("hooks", |mut entry| {
        let name = entry.name().to_owned();
        let read = entry.table("a hook", |table| {
            let event = table
                .parsed("event", |name| windlass_workflow::check_event_name(name).map(|()| name.to_owned()));
            let form = table.word("form", &FORMS).unwrap_or_default();
            let secret = secret::take(table, "secret", folder);
            let former = secret::take(table, "former_secret", folder);
            (event, form, secret, former)
        });
        if let Err(reason) = check_hook_name(&name) {
            entry.refuse_name(format!("`{name}` can't be the name of a hook"), reason);
        }
        if hooks.len() == HOOKS_MAX {
            entry.refuse_name(format!("there are more than {HOOKS_MAX} hooks"), "remove some of them");
        }
        let Some((event, form, secret, former)) = read else { return };
        let (Some(event), Some(secret)) = (event, secret) else {
            entry.refuse_name(
                format!("the hook `{name}` needs `event` and `secret`"),
                "write event = \"push\" and secret = { file = \"hook.secret\" }",
            );
            return;
        };
        let secrets = [Some(secret), former].into_iter().flatten().collect();
        hooks.push(ConfiguredHook { name, event, form, secrets });
    });
    hooks
}

/// A name that is the same in an address.
fn check_hook_name(name: &str) -> Result<(), String> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    match (1..=NAME_MAX_BYTES).contains(&name.len()) && name.bytes().all(allowed) {
        true => Ok(()),
        false => Err(format!("write letters, digits, `-` and `_`, at most {NAME_MAX_BYTES}")),
    }
}
