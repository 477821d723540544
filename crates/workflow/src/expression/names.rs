//! Checks that the names in an expression exist, and that it can look them up where it stands.

use std::ops::Range;

use super::fault::Fault;
use super::foreign;
use super::lookup::{Lookup, Segment, is_plain, path_text};
use super::place::{self, Place, RUN, RUN_END, WORKSPACE};
use super::reads::JobField;
use super::scope::{HasItems, HasWorkspace, Scope};
use crate::names::check_variable_name;
use crate::report::Findings;
use crate::support;

/// Where an expression stands.
pub(crate) struct Site<'e> {
    /// The whole expression.
    pub(crate) expression: &'e str,
    pub(crate) place: Place,
    pub(crate) form: Form,
}

/// How an expression stands in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Between braces, in a text.
    Template,
    /// Alone, in a key that has nothing else.
    Bare,
}

impl Site<'_> {
    /// The expression as the file would have it here.
    fn written(&self, expression: &str) -> String {
        match self.form {
            Form::Template => format!("{{{{ {expression} }}}}"),
            Form::Bare => format!("`{expression}`"),
        }
    }
}

/// Checks one look-up. If it reads a job, the result is the index of that job and the field.
pub(crate) fn check(
    lookup: &Lookup,
    site: &Site<'_>,
    scope: &Scope<'_>,
    findings: &mut Findings,
) -> Result<Option<(usize, JobField)>, Fault> {
    let refuse = |message: String| Fault::new(lookup.range.clone(), message);
    let Some(Segment::Name(root)) = lookup.path.first() else { return Ok(None) };
    let second = lookup.path.get(1);
    if let Some(help) = site.place.why_unknown(root, scope, |support| findings.accepts(support)) {
        let message = match root.as_str() {
            "jobs" => "no output of a job is known here".to_owned(),
            "secrets" => "no secret is known here".to_owned(),
            "item" | "index" if scope.has_items == HasItems::No => {
                format!("`{root}` is known in a job with `for_each` only")
            }
            _ => format!("`{root}` is not known here"),
        };
        return Err(refuse(message).help(help));
    }
    if site.place.roots(scope).all(|known| known != root) || !findings.accepts(place::support_of_root(root)) {
        return Err(unknown_root(root, lookup, site, scope, &refuse, findings));
    }
    match root.as_str() {
        "params" => match second {
            Some(Segment::Name(name)) => param(name, lookup, site, scope, &refuse, findings).map(|()| None),
            Some(Segment::Index(_) | Segment::Computed) | None => {
                Err(refuse(format!("name one parameter: {}", site.written("params.NAME"))))
            }
        },
        "run" => run_field(lookup, site.place, scope, &refuse, findings).map(|()| None),
        "jobs" => job(lookup, site, scope, &refuse, findings).map(Some),
        "secrets" => match second {
            Some(Segment::Name(name)) => secret(name, scope, &refuse, findings).map(|()| None),
            Some(Segment::Index(_) | Segment::Computed) | None => {
                Err(refuse(format!("name one secret: {}", site.written("secrets.NAME"))))
            }
        },
        "variables" => match second {
            Some(Segment::Name(name)) => variable(name, &refuse).map(|()| None),
            Some(Segment::Index(_) | Segment::Computed) | None => {
                Err(refuse(format!("name one variable: {}", site.written("variables.NAME"))))
            }
        },
        "event" => event_field(lookup, site.place, &refuse).map(|()| None),
        "scheduled_for" if second.is_some() => Err(refuse(
            "`scheduled_for` is a text without fields".to_owned(),
        )
        .help(
            "write {{ scheduled_for | date }} for the day, {{ scheduled_for | date(\"%H\") }} for the hour",
        )),
        _ => Ok(None),
    }
}

fn run_field(
    lookup: &Lookup,
    place: Place,
    scope: &Scope<'_>,
    refuse: &dyn Fn(String) -> Fault,
    findings: &Findings,
) -> Result<(), Fault> {
    let known = place.run_fields(scope);
    match lookup.path.get(1) {
        Some(Segment::Name(name)) if known.contains(&name.as_str()) => Ok(()),
        Some(Segment::Name(name))
            if RUN_END.contains(&name.as_str()) && findings.accepts(support::HANDLERS) =>
        {
            let help = "only the jobs of `on_success`, `on_failure`, `on_cancel` and `finally` know how the run ended";
            Err(refuse(format!("`run.{name}` is not known here")).help(help))
        }
        Some(Segment::Name(name)) if name == WORKSPACE => Err(match scope.has_workspace {
            HasWorkspace::Yes if place == Place::Workflow => refuse(
                "`run.workspace` is not known here".to_owned(),
            )
            .help("the processes of all jobs have it as $WINDLASS_WORKSPACE; `env` of a job can name it too"),
            HasWorkspace::Yes if place == Place::Path => {
                refuse("`run.workspace` is not known here".to_owned())
                    .help("the path begins in the workspace already; leave `run.workspace` out")
            }
            HasWorkspace::Yes => refuse("`run.workspace` is not known here".to_owned()).help(
                "`command`, `dir`, `env`, `stdin`, `http` and `container` of a job can name the workspace",
            ),
            HasWorkspace::No => refuse("the runs of this workflow have no workspace".to_owned())
                .help("add workspace = true at the top of the file"),
        }),
        Some(Segment::Name(name)) if place == Place::ConcurrencyKey && RUN.contains(&name.as_str()) => {
            let help = "the key is made before the run exists; a key can read `params` and `run.workflow`";
            Err(refuse(format!("`run.{name}` is not known here")).help(help))
        }
        Some(Segment::Name(_) | Segment::Index(_) | Segment::Computed) | None => {
            let fields: Vec<String> = known.iter().map(|name| format!("run.{name}")).collect();
            Err(refuse(format!("there is no `{}`", path_text(&lookup.path)))
                .help(format!("the fields of `run` are {}", fields.join(", "))))
        }
    }
}

fn event_field(lookup: &Lookup, place: Place, refuse: &dyn Fn(String) -> Fault) -> Result<(), Fault> {
    let (fields, of_run) = place.event_fields();
    let is_known = match (lookup.path.get(1), lookup.path.get(2)) {
        (Some(Segment::Name(field)), Some(Segment::Name(of))) if field == "run" => {
            of_run.contains(&of.as_str())
        }
        (Some(Segment::Name(field)), _) => field != "run" && fields.contains(&field.as_str()),
        (Some(Segment::Index(_) | Segment::Computed) | None, _) => false,
    };
    if is_known {
        return Ok(());
    }
    Err(refuse(format!("there is no `{}`", path_text(&lookup.path))).help(place.summary()))
}

/// The name that was meant, and the look-up as it must be written, if the unknown name at `start` follows a field and a dash:
/// `item.node-version` is read as `item.node` minus `version`.
fn name_with_dash(expression: &str, start: usize, roots: &[&str]) -> Option<(String, String)> {
    let before = expression.get(..start)?.strip_suffix('-')?;
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let path_start = before.rfind(|c: char| !is_of_name(c) && c != '.').map_or(0, |at| at + 1);
    let (path, first) = before.get(path_start..)?.rsplit_once('.')?;
    let root = path.split('.').next()?;
    if first.is_empty() || !roots.contains(&root) {
        return None;
    }
    let rest = expression.get(start..)?;
    let end = rest.find(|c: char| !is_of_name(c) && c != '-').unwrap_or(rest.len());
    let name = format!("{first}-{}", rest[..end].trim_end_matches('-'));
    let whole = format!("{path}['{name}']");
    Some((name, whole))
}

fn unknown_root(
    root: &str,
    lookup: &Lookup,
    site: &Site<'_>,
    scope: &Scope<'_>,
    refuse: &dyn Fn(String) -> Fault,
    findings: &mut Findings,
) -> Fault {
    let fault = refuse(match site.form {
        Form::Template => format!("templates have no `{root}`"),
        Form::Bare => format!("there is no `{root}`"),
    });
    let known: Vec<&str> = site.place.roots(scope).collect();
    if let Some((name, whole)) = name_with_dash(site.expression, lookup.range.start, &known) {
        let message = format!("the name `{name}` has a character that ends a name in expressions");
        return refuse(message).help(format!("write {}", site.written(&whole)));
    }
    if known.contains(&"params") && scope.params.iter().any(|param| param.name == root) {
        return fault.help(format!("did you mean {}?", site.written(&format!("params.{root}"))));
    }
    if known.contains(&"jobs") && scope.jobs.known(root).is_some() {
        return fault.help(format!("did you mean {}?", site.written(&field_of(root, JobField::Output))));
    }
    if let Some(help) = foreign::instead_of(&lookup.path) {
        return fault.help(help);
    }
    let supported = known.into_iter().filter(|root| findings.accepts(place::support_of_root(root)));
    match findings.nearest(root, supported.collect::<Vec<_>>()) {
        Some(near) => fault.help(format!("did you mean `{near}`?")),
        None => fault.help(match (site.form, root) {
            // A word without quotes, as in `params.mode == full`.
            (Form::Bare, _) => format!("{}; a text stands in quotes, as in '{root}'", site.place.summary()),
            (Form::Template, _) => site.place.summary().to_owned(),
        }),
    }
}

fn secret(
    name: &str,
    scope: &Scope<'_>,
    refuse: &dyn Fn(String) -> Fault,
    findings: &mut Findings,
) -> Result<(), Fault> {
    if scope.secrets.contains(&name) || findings.may_be_unread() {
        return Ok(());
    }
    let fault = refuse(format!("there is no secret `{name}`"));
    Err(match findings.nearest(name, scope.secrets.iter().copied()) {
        Some(near) => fault.help(format!("did you mean `secrets.{near}`?")),
        None => fault.help(format!("declare it: {name} = {{}} under [secrets]")),
    })
}

/// A variable need not exist when the file is read. Its name must be allowed.
fn variable(name: &str, refuse: &dyn Fn(String) -> Fault) -> Result<(), Fault> {
    check_variable_name(name).map_err(|reason| refuse(format!("`{}`: {reason}", name.escape_debug())))
}

fn param(
    name: &str,
    lookup: &Lookup,
    site: &Site<'_>,
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
        _ if site.expression.get(lookup.range.end..).is_some_and(is_rest_of_name) => {
            fault.help("the name of a parameter has no `-`; write `_` there and where it is declared")
        }
        Some(near) => fault.help(format!("did you mean `params.{near}`?")),
        None => fault.help(format!("declare `{name}` under `params`")),
    })
}

fn job(
    lookup: &Lookup,
    site: &Site<'_>,
    scope: &Scope<'_>,
    refuse: &dyn Fn(String) -> Fault,
    findings: &mut Findings,
) -> Result<(usize, JobField), Fault> {
    let output = JobField::Output;
    let Some(Segment::Name(name)) = lookup.path.get(1) else {
        return Err(refuse(format!("name one job: {}", site.written("jobs.NAME.output")))
            .help("the name of the job must be known before the workflow runs"));
    };
    if let Some(job) = name_cut_short(name, lookup, site.expression, scope) {
        let message = format!("the name `{job}` has a character that ends a name in expressions");
        let field = field_after(job, lookup, site.expression).unwrap_or(output);
        return Err(refuse(message).help(format!("write {}", site.written(&field_of(job, field)))));
    }
    let written = match lookup.path.get(2) {
        Some(Segment::Name(field)) => Some(field.as_str()),
        Some(Segment::Index(_) | Segment::Computed) | None => None,
    };
    let Some(index) = scope.jobs.index(name) else {
        let fault = refuse(format!("there is no job `{name}`"));
        let field = written.and_then(JobField::of_name).unwrap_or(output);
        return Err(match findings.nearest(name, scope.jobs.iter()) {
            Some(near) => fault.help(format!("did you mean {}?", site.written(&field_of(near, field)))),
            None => fault.help("it is not defined in this file"),
        });
    };
    let accepts_all = site.form == Form::Bare || findings.accepts(support::JOB_FIELDS);
    match (written.and_then(JobField::of_name), accepts_all) {
        (Some(field), true) => Ok((index, field)),
        (Some(JobField::Output), false) => Ok((index, output)),
        (_, false) => Err(refuse("only the output of a job can be read".to_owned())
            .help(format!("write {}", site.written(&field_of(name, output))))),
        (None, true) => {
            let fields = JobField::ALL.map(JobField::name);
            let near = written.and_then(|written| findings.nearest(written, fields));
            let field = near.and_then(JobField::of_name).unwrap_or(output);
            let message = match written {
                Some(written) => format!("a job has no `{written}`; its fields are {}", fields.join(", ")),
                None => format!("name a field of the job: {}", fields.join(", ")),
            };
            Err(refuse(message).help(format!("write {}", site.written(&field_of(name, field)))))
        }
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

/// The field that follows the name of a job with a character that ends a name.
fn field_after(job: &str, lookup: &Lookup, expression: &str) -> Option<JobField> {
    let rest = expression.get(lookup.range.start..)?.strip_prefix("jobs.")?.strip_prefix(job)?;
    let name = rest.strip_prefix('.')?;
    let end = name.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(name.len());
    JobField::of_name(&name[..end])
}

/// Whether a name goes on behind the part that was read as one: `-limit` of `params.cpu-limit`.
fn is_rest_of_name(rest: &str) -> bool {
    rest.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic()))
}

fn field_of(job: &str, field: JobField) -> String {
    match is_plain(job) {
        true => format!("jobs.{job}.{}", field.name()),
        false => format!("jobs[{job:?}].{}", field.name()),
    }
}
