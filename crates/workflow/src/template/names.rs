//! Whether the names in a template exist.

use std::ops::Range;

use super::check::{Reader, Scope};
use super::explain::{is_plain, text};
use super::expression::{Reference, Segment};
use super::split::Refusal;
use crate::report::Findings;

/// What templates can look up.
const ROOTS: [&str; 4] = ["params", "run", "jobs", "scheduled_for"];
/// What is known of a run.
const RUN: [&str; 4] = ["id", "workflow", "created_at", "key"];

/// Checks one look-up. `Ok(Some(job))` when it reads the output of that job.
pub(super) fn check(
    reference: &Reference,
    expression: &str,
    scope: &Scope<'_>,
    findings: &mut Findings,
) -> Result<Option<usize>, Refusal> {
    let refuse = |message: String| Refusal::new(reference.range.clone(), message);
    let Some(Segment::Name(root)) = reference.path.first() else { return Ok(None) };
    let second = reference.path.get(1);
    if let Some(help) = not_known_here(root, scope.reader) {
        let message = match root.as_str() {
            "jobs" => "no output of a job is known here".to_owned(),
            _ => format!("`{root}` is not known here"),
        };
        return Err(refuse(message).help(help));
    }
    match root.as_str() {
        "params" => match second {
            Some(Segment::Name(name)) => param(name, scope, &refuse, findings).map(|()| None),
            Some(Segment::Index(_) | Segment::Computed) | None => {
                Err(refuse("name one parameter: {{ params.NAME }}".to_owned()))
            }
        },
        "run" => match second {
            Some(Segment::Name(name)) if RUN.contains(&name.as_str()) => match scope.reader {
                Reader::Key if name != "workflow" => Err(refuse(format!("`run.{name}` is not known here"))
                    .help("a key is made before its run is; there are `params` and `run.workflow`")),
                Reader::Key | Reader::Workflow | Reader::Job | Reader::Schedule => Ok(None),
            },
            _ => Err(refuse(format!("`{}` is not known of a run", text(&reference.path)))
                .help(format!("there are {}", RUN.map(|name| format!("run.{name}")).join(", ")))),
        },
        "jobs" => job(reference, expression, scope, &refuse, findings).map(Some),
        "scheduled_for" => match second {
            None => Ok(None),
            Some(_) => Err(refuse("`scheduled_for` is a text without fields".to_owned())
                .help("write {{ scheduled_for | date }} for the day, {{ scheduled_for | date(\"%H\") }} for the hour")),
        },
        _ => Err(unknown_root(root, scope, &refuse, findings)),
    }
}

/// Names that templates can look up, but not at this place: what to do about it.
fn not_known_here(root: &str, reader: Reader) -> Option<&'static str> {
    match (root, reader) {
        ("jobs", Reader::Workflow) => {
            Some("here are only `params` and `run`; set it in the `env` of the job that needs it")
        }
        ("jobs", Reader::Key) => {
            Some("a key is made before any job ran; there are `params` and `run.workflow`")
        }
        ("params" | "run" | "jobs", Reader::Schedule) => {
            Some("a schedule makes the params of a run; here is only `scheduled_for`")
        }
        ("scheduled_for", Reader::Workflow | Reader::Job | Reader::Key) => {
            Some("give it to a parameter, in the `params` of the schedule, and write {{ params.NAME }}")
        }
        (_, Reader::Workflow | Reader::Job | Reader::Key | Reader::Schedule) => None,
    }
}

fn unknown_root(
    root: &str,
    scope: &Scope<'_>,
    refuse: &dyn Fn(String) -> Refusal,
    findings: &mut Findings,
) -> Refusal {
    let refusal = refuse(format!("there is no `{root}` in templates"));
    if scope.reader == Reader::Schedule {
        return refusal.help("there is `scheduled_for`, as in {{ scheduled_for | date }}");
    }
    if scope.params.iter().any(|param| param.name == root) {
        return refusal.help(format!("did you mean {{{{ params.{root} }}}}?"));
    }
    if scope.names.known(root).is_some() {
        return refusal.help(format!("did you mean {{{{ {} }}}}?", output_of(root)));
    }
    match findings.nearest(root, ROOTS) {
        Some(near) => refusal.help(format!("did you mean `{near}`?")),
        None => refusal.help(match scope.reader {
            Reader::Workflow => "there are params.NAME and run.id",
            Reader::Job => "there are params.NAME, run.id and jobs.NAME.output",
            Reader::Key | Reader::Schedule => "there are params.NAME and run.workflow",
        }),
    }
}

fn param(
    name: &str,
    scope: &Scope<'_>,
    refuse: &dyn Fn(String) -> Refusal,
    findings: &mut Findings,
) -> Result<(), Refusal> {
    let names = || scope.params.iter().map(|param| param.name.as_str());
    if names().any(|known| known == name) {
        return Ok(());
    }
    let refusal = refuse(format!("there is no parameter `{name}`"));
    Err(match findings.nearest(name, names()) {
        Some(near) => refusal.help(format!("did you mean `params.{near}`?")),
        None => refusal.help(format!("declare `{name}` under `params`")),
    })
}

fn job(
    reference: &Reference,
    expression: &str,
    scope: &Scope<'_>,
    refuse: &dyn Fn(String) -> Refusal,
    findings: &mut Findings,
) -> Result<usize, Refusal> {
    let Some(Segment::Name(name)) = reference.path.get(1) else {
        return Err(refuse("name one job: {{ jobs.NAME.output }}".to_owned())
            .help("which job it is must be known before the workflow runs"));
    };
    if let Some(job) = name_cut_short(name, reference, expression, scope) {
        let message = format!("the name `{job}` has a character that ends a name in expressions");
        return Err(refuse(message).help(format!("write {{{{ {} }}}}", output_of(job))));
    }
    let Some(index) = scope.names.index(name) else {
        let refusal = refuse(format!("there is no job `{name}`"));
        return Err(match findings.nearest(name, scope.names.iter()) {
            Some(near) => refusal.help(format!("did you mean {{{{ {} }}}}?", output_of(near))),
            None => refusal.help("it is not defined in this file"),
        });
    };
    match reference.path.get(2) {
        Some(Segment::Name(field)) if field == "output" => Ok(index),
        _ => Err(refuse("the only thing known of a job is its output".to_owned())
            .help(format!("write {{{{ {} }}}}", output_of(name)))),
    }
}

/// `jobs.my-job.output` is read as `jobs.my` minus `job.output`, and `jobs.a.b.output` as the field
/// `b` of job `a`. When a job of the longer name exists, that is what was meant.
fn name_cut_short<'n>(
    name: &str,
    reference: &Reference,
    expression: &str,
    scope: &Scope<'n>,
) -> Option<&'n str> {
    let Range { start, .. } = reference.range;
    let rest = expression.get(start..)?.strip_prefix("jobs.")?;
    let length = rest.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')));
    let written = &rest[..length.unwrap_or(rest.len())];
    let ends = written.match_indices(['.', '-']).map(|(at, _)| at).chain([written.len()]);
    let longer = ends.filter(|end| *end > name.len());
    longer.filter_map(|end| scope.names.known(&written[..end])).next_back()
}

fn output_of(job: &str) -> String {
    match is_plain(job) {
        true => format!("jobs.{job}.output"),
        false => format!("jobs[{job:?}].output"),
    }
}
