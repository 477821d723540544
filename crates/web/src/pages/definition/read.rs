//! Reads definitions.

use windlass_engine::store::{ListedVersion, RegisteredVersion, RunDefinition};
use windlass_engine::{Error, Result, Store};

use super::{DefinitionData, Known, Of};

/// So many versions are listed, the newest first.
const VERSIONS_SHOWN: i64 = 100;

/// A version of a workflow and the one before it, or another one.
///
/// # Errors
/// [`Error::NotFound`] and the database's.
pub fn version(store: &Store, name: &str, number: i64, other: Option<i64>) -> Result<DefinitionData> {
    let read = |number: i64| {
        let found = store.registrations().version(name, number)?;
        found.ok_or_else(|| Error::not_found(format!("version {number} of the workflow {name}")))
    };
    let shown = read(number)?;
    let other = match other {
        Some(other) => Some(read(other)?),
        None => store.registrations().version(name, number - 1)?,
    };
    let known = |version: &RegisteredVersion| Known {
        number: version.version,
        at_ms: version.applied_at,
        from: version.file.clone().unwrap_or_default(),
    };
    let listed = |version: ListedVersion| Known {
        number: version.version,
        at_ms: version.applied_at,
        from: version.file.unwrap_or_default(),
    };
    let all = store.registrations().newest_versions(name, VERSIONS_SHOWN)?;
    Ok(DefinitionData {
        of: Of::Workflow(name.to_owned()),
        other: other.map(|version| (known(&version), version.workflow)),
        all: all.into_iter().map(listed).collect(),
        shown: known(&shown),
        workflow: shown.workflow,
    })
}

/// A definition of a run, the last one without a number, and the one before it, or another one.
///
/// # Errors
/// [`Error::NotFound`] and the database's.
pub fn of_run(store: &Store, run_id: i64, number: Option<i64>, other: Option<i64>) -> Result<DefinitionData> {
    let run = store.runs().get(run_id)?;
    let all = store.runs().definitions(run_id)?;
    let find = |number: i64| {
        let found = all.iter().find(|definition| definition.number == number);
        found.ok_or_else(|| Error::not_found(format!("definition {number} of run {run_id}")))
    };
    let shown = match (number, all.last()) {
        (Some(number), _) => find(number)?,
        (None, Some(last)) => last,
        (None, None) => return Err(Error::not_found(format!("the definition of run {run_id}"))),
    };
    let other = match other {
        Some(other) => Some(find(other)?),
        None => find(shown.number - 1).ok(),
    };
    let content = |definition: &RunDefinition| store.registrations().definition(definition.workflow_id);
    Ok(DefinitionData {
        of: Of::Run { run_id, workflow: run.workflow },
        shown: known(shown),
        workflow: content(shown)?,
        other: other.map(|other| Ok::<_, Error>((known(other), content(other)?))).transpose()?,
        all: all.iter().rev().map(known).collect(),
    })
}

fn known(definition: &RunDefinition) -> Known {
    let file = definition.file.as_ref().map(|file| format!(", file {}", file.named));
    let version = definition.version.map(|version| format!(", version {version}"));
    Known {
        number: definition.number,
        at_ms: definition.pinned_at,
        from: [Some(definition.origin.as_str().to_owned()), version, file].into_iter().flatten().collect(),
    }
}
