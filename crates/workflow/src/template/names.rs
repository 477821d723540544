//! Checks that the names in a template exist, and that the template can look them up.

use std::ops::Range;

use super::lookup::{Lookup, Segment, is_plain, path_text};
use super::place::{Place, RUN_FIELDS};
use super::scope::Scope;
use super::split::Fault;
use crate::report::Findings;

/// Checks one look-up. If it reads the output of a job, the result is the index of that job.
pub(super) fn check(
    lookup: &Lookup,
    expression: &str,
    place: Place,
    scope: &Scope<'_>,
    findings: &mut Findings,
) -> Result<Option<usize>, Fault> {
    let refuse = |message: String| Fault::new(lookup.range.clone(), message);
    let Some(Segment::Name(root)) = lookup.path.first() else { return Ok(None) };
    let second = lookup.path.get(1);
    if let Some(help) = place.why_unknown(root) {
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
        "run" => run_field(lookup, place, &refuse).map(|()| None),
        "jobs" => job(lookup, expression, scope, &refuse, findings).map(Some),
        "scheduled_for" => match second {
            None => Ok(None),
            Some(_) => Err(refuse("`scheduled_for` is a text without fields".to_owned())
                .help("write {{ scheduled_for | date }} for the day, {{ scheduled_for | date(\"%H\") }} for the hour")),
        },
        _ => Err(unknown_root(root, place, scope, &refuse, findings)),
    }
}

fn run_field(lookup: &Lookup, place: Place, refuse: &dyn Fn(String) -> Fault) -> Result<(), Fault> {
    let known = place.known().run;
    match lookup.path.get(1) {
        Some(Segment::Name(name)) if known.contains(&name.as_str()) => Ok(()),
        Some(Segment::Name(name)) if RUN_FIELDS.contains(&name.as_str()) => {
            Err(refuse(format!("`run.{name}` is not known here"))
                .help("the key is made before the run exists; a key can read `params` and `run.workflow`"))
        }
        Some(Segment::Name(_) | Segment::Index(_) | Segment::Computed) | None => {
            let fields: Vec<String> = known.iter().map(|name| format!("run.{name}")).collect();
            Err(refuse(format!("there is no `{}`", path_text(&lookup.path)))
                .help(format!("the fields of `run` are {}", fields.join(", "))))
        }
    }
}

fn unknown_root(
    root: &str,
    place: Place,
    scope: &Scope<'_>,
    refuse: &dyn Fn(String) -> Fault,
    findings: &mut Findings,
) -> Fault {
    let fault = refuse(format!("templates have no `{root}`"));
    let known = place.known();
    if known.roots.contains(&"params") && scope.params.iter().any(|param| param.name == root) {
        return fault.help(format!("did you mean {{{{ params.{root} }}}}?"));
    }
    if known.roots.contains(&"jobs") && scope.jobs.known(root).is_some() {
        return fault.help(format!("did you mean {{{{ {} }}}}?", output_of(root)));
    }
    match findings.nearest(root, known.roots.iter().copied()) {
        Some(near) => fault.help(format!("did you mean `{near}`?")),
        None => fault.help(known.summary),
    }
}

fn param(
    name: &str,
    scope: &Scope<'_>,
    refuse: &dyn Fn(String) -> Fault,
    findings: &mut Findings,
) -> Result<(), Fault> {
    let names = || scope.params.iter().map(|param| param.name.as_str());
    if names().any(|known| known == name) {
        return Ok(());
    }
    let fault = refuse(format!("there is no parameter `{name}`"));
    Err(match findings.nearest(name, names()) {
        Some(near) => fault.help(format!("did you mean `params.{near}`?")),
        None => fault.help(format!("declare `{name}` under `params`")),
    })
}

fn job(
    lookup: &Lookup,
    expression: &str,
    scope: &Scope<'_>,
    refuse: &dyn Fn(String) -> Fault,
    findings: &mut Findings,
) -> Result<usize, Fault> {
    let Some(Segment::Name(name)) = lookup.path.get(1) else {
        return Err(refuse("name one job: {{ jobs.NAME.output }}".to_owned())
            .help("the name of the job must be known before the workflow runs"));
    };
    if let Some(job) = name_cut_short(name, lookup, expression, scope) {
        let message = format!("the name `{job}` has a character that ends a name in expressions");
        return Err(refuse(message).help(format!("write {{{{ {} }}}}", output_of(job))));
    }
    let Some(index) = scope.jobs.index(name) else {
        let fault = refuse(format!("there is no job `{name}`"));
        return Err(match findings.nearest(name, scope.jobs.iter()) {
            Some(near) => fault.help(format!("did you mean {{{{ {} }}}}?", output_of(near))),
            None => fault.help("it is not defined in this file"),
        });
    };
    match lookup.path.get(2) {
        Some(Segment::Name(field)) if field == "output" => Ok(index),
        _ => Err(refuse("only the output of a job can be read".to_owned())
            .help(format!("write {{{{ {} }}}}", output_of(name)))),
    }
}

/// The job that was meant, if its name has a character that ends a name in an expression.
///
/// `jobs.my-job.output` is read as `jobs.my` minus `job.output`, and `jobs.a.b.output` as the field `b` of job `a`. If a
/// job `my-job` or `a.b` exists, the author meant that job.
fn name_cut_short<'n>(name: &str, lookup: &Lookup, expression: &str, scope: &Scope<'n>) -> Option<&'n str> {
    let Range { start, .. } = lookup.range;
    let rest = expression.get(start..)?.strip_prefix("jobs.")?;
    let length = rest.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')));
    let written = &rest[..length.unwrap_or(rest.len())];
    let ends = written.match_indices(['.', '-']).map(|(at, _)| at).chain([written.len()]);
    let longer = ends.filter(|end| *end > name.len());
    longer.filter_map(|end| scope.jobs.known(&written[..end])).next_back()
}

fn output_of(job: &str) -> String {
    match is_plain(job) {
        true => format!("jobs.{job}.output"),
        false => format!("jobs[{job:?}].output"),
    }
}
