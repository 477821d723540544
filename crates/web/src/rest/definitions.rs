//! Registering workflows. Their jobs are commands of this machine, so the configuration must allow it. Nothing of the machine is
//! read for it: no file, no folder, no variable.

use axum::http::StatusCode;
use serde_json::{Map, Value};
use windlass_engine::Store;
use windlass_engine::store::{NewRegistration, RegistrationChange, Role, Subject};
use windlass_views::{AppliedView, FileError};
use windlass_workflow::{Report, Source, Workflow};

use crate::answer::Answer;
use crate::call::Call;
use crate::options::Definitions;
use crate::problem::Problem;
use crate::route::{Document, Method, Route};

/// The largest body with a definition.
const DEFINITION_BYTES: usize = 1024 * 1024;
/// The types of a body, and the ending of a file with such a text.
const TYPES: [(&str, &str); 3] =
    [("application/json", "json"), ("application/toml", "toml"), ("application/yaml", "yaml")];

pub(crate) const ROUTES: &[Route] = &[Route::change(
    Method::Put,
    "/api/v1/workflows/{workflow}",
    Role::Edit,
    register,
    Document::of::<AppliedView>("Register a workflow, as its next version; needs `allow_definitions`")
        .with_body::<Map<String, Value>>()
        .with_text_bodies(&["application/toml", "application/yaml"]),
)
.with_body_max(DEFINITION_BYTES)];

/// Refuses what is a command of this machine, unless the caller has the role and the configuration allows it. `what` begins the
/// sentence that says so.
pub(super) fn check_commands(call: &Call, what: &str) -> Result<(), Problem> {
    let role = call.caller.as_ref().map_or(Role::Metrics, |caller| caller.role);
    if role < Role::Edit {
        return Err(Problem::role(role, Role::Edit));
    }
    match call.definitions {
        Definitions::Allowed => Ok(()),
        Definitions::Refused => Err(Problem::forbidden(
            format!("{what} are commands of this machine, which may not be sent"),
            "set `allow_definitions = true` under [web] in windlass.toml, if callers with the role `edit` may do anything here",
        )),
    }
}

fn register(store: &Store, call: &Call) -> Result<Answer, Problem> {
    check_commands(call, "the jobs of a workflow")?;
    let workflow = read(call)?;
    let subject = Subject::Workflow(workflow.name.clone());
    let new = NewRegistration { workflow: workflow.clone(), file: None, dir: None };
    let applied = call.recorded(store, subject).registrations().apply(new)?;
    let status = match applied.change {
        RegistrationChange::Created => StatusCode::CREATED,
        RegistrationChange::Updated | RegistrationChange::Unchanged => StatusCode::OK,
    };
    Answer::json_with(status, &AppliedView::new(None, &workflow, &applied))
}

/// The definition in the body.
fn read(call: &Call) -> Result<Workflow, Problem> {
    let name = call.part("workflow");
    // The name of no file: it says the format, and messages begin with it.
    let title = format!("{name}.{}", ending(call)?);
    let source = Source::new(title, call.body.clone()).map_err(|report| invalid(&report))?;
    // A definition that includes files is invalid, because they were not read.
    let workflow = windlass_workflow::parse(&source).map_err(|report| invalid(&report))?;
    if workflow.name != name {
        return Err(Problem::invalid(
            format!(
                "the definition has the name `{}`, and the address `{}`",
                workflow.name.escape_debug(),
                name.escape_debug()
            ),
            "write the same name in both, or leave it out of the definition",
        ));
    }
    let of_file = workflow.calls().find(|(_job, call)| call.is_of_file());
    if let Some((job, call)) = of_file {
        return Err(Problem::invalid(
            format!(
                "job `{}` calls the file `{}`, and the files of the server are not read",
                job.name, call.workflow
            ),
            "put the workflow into the table `workflows` of the definition, or register it and call it by its name",
        ));
    }
    Ok(workflow)
}

/// The ending of a file that has a text of the type of the body.
fn ending(call: &Call) -> Result<&'static str, Problem> {
    let content_type = call.header("content-type").unwrap_or_default();
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    let known = TYPES.iter().find(|(known, _ending)| essence.eq_ignore_ascii_case(known));
    known
        .map(|(_type, ending)| *ending)
        .ok_or_else(|| Problem::media_type(&TYPES.map(|(name, _)| name).join(" or ")))
}

fn invalid(report: &Report) -> Problem {
    let errors = FileError::all_of(report);
    let count = errors.len() + report.omitted();
    let detail = match (errors.as_slice(), count) {
        ([only], 1) => format!("the definition has an error: {}", only.message),
        (_, _) => format!("the definition has {count} errors"),
    };
    Problem::invalid(detail, "correct the definition: `errors` says where").with_errors(errors)
}
