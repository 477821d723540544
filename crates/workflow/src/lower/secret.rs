//! Reads `secrets`: which secrets jobs can use, and the lists of secrets of jobs.

use crate::keys::{self, Table};
use crate::kinds::{self, Action};
use crate::model::{Secret, SecretSource};
use crate::names::{self, NameKind};
use crate::report::{Finding, Findings};
use crate::tree::{Entry, Node, Value};
use crate::{env, expect, limits};

/// Reads the `secrets` of a workflow.
pub(super) fn read_all(entry: &Entry<'_>, findings: &mut Findings) -> Vec<Secret> {
    let expected = "a table of names and sources, like { TOKEN = { env = \"PROD_TOKEN\" } }";
    let secrets = expect::table(entry, limits::SECRETS, expected, findings).unwrap_or_default();
    secrets.iter().filter_map(|secret| read(secret, findings)).collect()
}

fn read(entry: &Entry<'_>, findings: &mut Findings) -> Option<Secret> {
    if !names::check_key(entry, NameKind::Secret, findings) || !env::check_not_reserved(entry, findings) {
        return None;
    }
    let name = entry.key.to_string();
    if let Value::Text(_) = entry.node.value {
        let help = format!(
            "a file has no values of secrets; write {name} = {{}} for the worker's variable `{name}`, or \
             {name} = {{ file = \"…\" }}"
        );
        expect::wrong_type_help(&entry.node, &format!("`{name}`"), "a table", help, findings);
        return None;
    }
    let entries = expect::table(entry, usize::MAX, "a table with `env`, `file` or `command`", findings)?;
    let mut sources = Vec::with_capacity(entries.len());
    for part in entries {
        let Ok(key) = keys::find(part, Table::Secret, findings) else { continue };
        let text = |findings: &mut Findings| {
            expect::filled_text(&part.node, &expect::quoted(part), findings).map(str::to_owned)
        };
        let source = match key.name() {
            "env" => text(findings).map(SecretSource::Env),
            "file" => text(findings).map(SecretSource::File),
            "command" => kinds::read_command(part, findings).map(SecretSource::Command),
            _ => None,
        };
        sources.push((part, source));
    }
    if let [(first, _), (second, _), ..] = sources.as_slice() {
        let message = format!("secret `{name}` has both `{}` and `{}`", first.key, second.key);
        findings.push(
            Finding::new(second.key_span.clone(), message)
                .related(first.key_span.clone(), format!("`{}` is here", first.key))
                .help("a secret has one source; remove one of them"),
        );
    }
    match sources.into_iter().next() {
        Some((_, source)) => source.map(|source| Secret { name, source }),
        None => Some(Secret { name, source: SecretSource::Worker }),
    }
}

/// The names in the `secrets` of a job, sorted, without duplicates. Reports names that the workflow does not declare, and
/// variables that `env` of the job sets too.
pub(super) fn resolve(
    list: &[Node<'_>],
    action: &Action,
    declared: &[&str],
    findings: &mut Findings,
) -> Vec<String> {
    let mut names: Vec<(&str, &Node<'_>)> = Vec::with_capacity(list.len());
    for node in list {
        let Some(name) = expect::text(node, "an item of `secrets`", findings) else { continue };
        if declared.contains(&name) {
            names.push((name, node));
            if !action.has_process() && !action.is_wait() {
                let message = "`secrets` gives variables to a process, and this job starts none";
                let help =
                    format!("remove `secrets`, and write {{{{ secrets.{name} }}}} where the value is needed");
                findings.push(Finding::new(node.span.clone(), message).help(help));
            }
            if action.sets_variable(name) {
                findings.push(set_twice(name, node));
            }
            continue;
        }
        if findings.may_be_unread() {
            continue;
        }
        let finding =
            Finding::new(node.span.clone(), format!("there is no secret `{}`", name.escape_debug()));
        let nearest = findings.nearest(name, declared.iter().copied());
        findings.push(match nearest {
            Some(near) => finding.label(format!("did you mean `{near}`?")),
            None => finding.help(format!("declare it: {} = {{}} under [secrets]", name.escape_debug())),
        });
    }
    names.sort_by_key(|(name, node)| (*name, node.span.start));
    for pair in names.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
        findings.push(
            Finding::new(pair[1].1.span.clone(), format!("the secret `{}` is there twice", pair[1].0))
                .related(pair[0].1.span.clone(), "first here")
                .help("remove one of them"),
        );
    }
    names.dedup_by_key(|(name, _)| *name);
    names.into_iter().map(|(name, _)| name.to_owned()).collect()
}

fn set_twice(name: &str, node: &Node<'_>) -> Finding {
    let message = format!("the variable `{name}` is in both `secrets` and `env` of the job");
    Finding::new(node.span.clone(), message).help(format!(
        "remove one of them; `secrets` sets the variable to the secret, as env = {{ {name} = \"{{{{ secrets.{name} }}}}\" }} does"
    ))
}
