//! The definition with which a retried run goes on: the one that it has, or another one.

use std::path::Path;

use windlass_engine::decide::next_definition::DefinitionChanges;
use windlass_engine::store::{Continued, DefinitionFile, NextDefinition, Run, RunDefinition};
use windlass_workflow::{STANDARD_INPUT, Workflow};

use crate::arguments::GlobalOptions;
use crate::database::Database;
use crate::error::Failure;
use crate::read_file::PathOrigin;
use crate::submission::{StandardInputArgs, definition_file, is_standard_input, load_with_source, part_of};
use crate::text::style::printable;
use crate::text::values::counted;

/// How many jobs a message names for each kind of difference.
const NAMED_MAX: usize = 8;

/// A definition that a run could have next.
pub(super) struct Candidate {
    /// The file, or the registered workflow, for people.
    title: String,
    workflow: Workflow,
    file: Option<DefinitionFile>,
}

/// Where the definition of a run came from.
enum Origin {
    File(DefinitionFile),
    /// A registered workflow.
    Registered,
    /// Nowhere that can be looked at again.
    Unknown,
}

impl Origin {
    fn of(last: Option<&RunDefinition>) -> Origin {
        match last {
            Some(RunDefinition { file: Some(file), .. }) => Origin::File(file.clone()),
            Some(RunDefinition { version: Some(_), .. }) => Origin::Registered,
            Some(_) | None => Origin::Unknown,
        }
    }
}

impl Candidate {
    /// The definition in a file that a person named.
    pub(super) fn named(path: &Path, standard_input: &StandardInputArgs) -> Result<Candidate, Failure> {
        if is_standard_input(path) {
            let (workflow, _source) = standard_input.load().map_err(|error| error.failure())?;
            return Ok(Candidate { title: STANDARD_INPUT.to_owned(), workflow, file: None });
        }
        let (workflow, source) =
            load_with_source(path, PathOrigin::Named).map_err(|error| error.failure())?;
        let title = path.display().to_string();
        Ok(Candidate { title, workflow, file: definition_file(path, &source) })
    }

    /// The definition as it is now where the run got its own.
    pub(super) fn latest(
        global: &GlobalOptions,
        database: &Database,
        run: &Run,
    ) -> Result<Candidate, Failure> {
        let last = database.ask(|store| store.runs().definitions(run.id))?.pop();
        let found = match Origin::of(last.as_ref()) {
            Origin::File(file) => Some(Candidate::of_file(&file)?),
            Origin::Registered => Candidate::registered(database, run)?,
            Origin::Unknown => None,
        };
        found.ok_or_else(|| {
            let with = global.hint(&format!("retry {} --with FILE", run.id));
            Failure::Conflict {
                message: format!(
                    "run {} did not come from a file or a registered workflow, so there is no later definition",
                    run.id
                ),
                help: format!("`{with}` continues it with the definition in a file"),
            }
        })
    }

    /// The same part of the file, as it is now.
    fn of_file(known: &DefinitionFile) -> Result<Candidate, Failure> {
        let path = named_or_absolute(known);
        let (workflow, source) =
            load_with_source(path, PathOrigin::Found).map_err(|error| error.failure())?;
        let workflow = match &known.only {
            Some(only) => part_of(&workflow, only)?,
            None => workflow,
        };
        let file = definition_file(path, &source).map(|file| DefinitionFile {
            named: known.named.clone(),
            only: known.only.clone(),
            ..file
        });
        Ok(Candidate { title: title_of(known), workflow, file })
    }

    fn registered(database: &Database, run: &Run) -> Result<Option<Candidate>, Failure> {
        let found = database.ask(|store| store.registrations().workflow(&run.workflow))?;
        Ok(found.map(|(registration, workflow)| Candidate {
            title: format!("version {} of workflow `{}`", registration.version, printable(&run.workflow)),
            workflow,
            file: None,
        }))
    }

    pub(super) fn workflow(&self) -> &Workflow {
        &self.workflow
    }

    pub(super) fn title(&self) -> &str {
        &self.title
    }

    pub(super) fn into_next(self) -> (String, NextDefinition) {
        (self.title, NextDefinition { workflow: self.workflow, file: self.file })
    }
}

/// The path that a person gave the file, if it leads there from here too.
fn named_or_absolute(file: &DefinitionFile) -> &Path {
    let (named, path) = (Path::new(&file.named), Path::new(&file.path));
    if named.canonicalize().is_ok_and(|found| found == path) { named } else { path }
}

fn title_of(file: &DefinitionFile) -> String {
    printable(&named_or_absolute(file).to_string_lossy()).into_owned()
}

/// Says that the file has changed since the run got its definition, if it has. A file that is gone says nothing.
pub(super) fn change_note(database: &Database, run: &Run) -> Result<Option<String>, Failure> {
    let last = database.ask(|store| store.runs().definitions(run.id))?.pop();
    let since = match last.as_ref().map(|last| last.number) {
        Some(2..) => format!("since run {} was retried", run.id),
        Some(_) | None => format!("since run {}", run.id),
    };
    let (title, candidate) = match Origin::of(last.as_ref()) {
        Origin::Unknown => return Ok(None),
        Origin::File(file) if !Path::new(&file.path).exists() => return Ok(None),
        Origin::File(file) => (title_of(&file), Candidate::of_file(&file)),
        Origin::Registered => match Candidate::registered(database, run)? {
            Some(candidate) => (format!("workflow `{}`", printable(&run.workflow)), Ok(candidate)),
            None => return Ok(None),
        },
    };
    let Ok(Candidate { mut workflow, .. }) = candidate else {
        return Ok(Some(format!(
            "{title} has changed {since} and has errors now; the run keeps the definition that it has"
        )));
    };
    let changes = database.ask(|store| store.runs().changes(run.id, &mut workflow))?;
    if changes.is_empty() {
        return Ok(None);
    }
    let differ = match changes.jobs() {
        0 => "its jobs are the same".to_owned(),
        1 => "1 job differs".to_owned(),
        jobs => format!("{jobs} jobs differ"),
    };
    Ok(Some(format!("{title} has changed {since} ({differ}); --latest uses it")))
}

/// Says with which definition the run goes on.
pub(super) fn continued_note(title: &str, run: &Run, continued: &Continued) -> String {
    if continued.changes.is_empty() {
        return format!("{title} has not changed since run {}", run.id);
    }
    let number = continued.definition;
    format!("run {} goes on with {title}, its definition {number}: {}", run.id, summary(&continued.changes))
}

/// Says with which definition the run would go on.
pub(super) fn preview_note(title: &str, run: &Run, changes: &DefinitionChanges) -> String {
    match changes.is_empty() {
        true => format!("{title} has not changed since run {}", run.id),
        false => format!("run {} would go on with {title}: {}", run.id, summary(changes)),
    }
}

fn summary(changes: &DefinitionChanges) -> String {
    let kinds = [
        ("changed", &changes.changed),
        ("added", &changes.added),
        ("removed", &changes.removed),
        ("other settings for", &changes.settings),
    ];
    let mut parts: Vec<String> = kinds
        .iter()
        .filter(|(_kind, names)| !names.is_empty())
        .map(|(kind, names)| format!("{kind} {}", shortened(names)))
        .collect();
    if parts.is_empty() {
        parts.push("its jobs are the same".to_owned());
    }
    parts.join(", ")
}

fn shortened(names: &[String]) -> String {
    let shown: Vec<String> = names.iter().take(NAMED_MAX).map(|name| printable(name).into_owned()).collect();
    match names.len().saturating_sub(NAMED_MAX) {
        0 => shown.join(", "),
        more => format!("{} and {}", shown.join(", "), counted(more as i64, "more job", "more jobs")),
    }
}
