//! Finds a registered workflow.

use windlass_engine::store::Registration;

use super::nearest_name;
use crate::database::Database;
use crate::error::Failure;

/// The registration of a workflow.
pub(crate) fn workflow(database: &Database, name: &str) -> Result<Registration, Failure> {
    match database.ask(|store| store.registrations().get(name))? {
        Some(registration) => Ok(registration),
        None => Err(no_workflow(database, name, "no workflow is registered under the name")?),
    }
}

/// The failure when no workflow is registered under a name. `reason` ends with "under the name".
pub(crate) fn no_workflow(database: &Database, name: &str, reason: &str) -> Result<Failure, Failure> {
    let registrations = database.ask(|store| store.registrations().list())?;
    let near = nearest_name(name, registrations.iter().map(|registration| registration.name.as_str()));
    let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    let help = match registrations.is_empty() {
        true => format!("no workflow is registered yet; `{}` registers a file", database.hint("apply FILE")),
        false => format!("`{}` lists the registered workflows", database.hint("workflows")),
    };
    Ok(Failure::not_found(format!("{reason} `{name}` in {}{hint}", database.address()), help))
}
