//! Containers of steps: `container` of a step or of all steps, and the settings of the executor `docker`.

use super::references::variable_of;
use super::values::{is_true, items, list, pairs, plain_key, quoted, quoted_list, scalar, table};
use crate::tree::Entry;

/// `container` of a job, and the variables that only jobs in the container have.
#[derive(Debug, Clone)]
pub(super) struct Container {
    /// The name of the image as Dagu has it.
    pub(super) image: String,
    pub(super) line: String,
    pub(super) env: Vec<(String, String)>,
}

/// The settings of the executor `docker`, without the tables that group them.
pub(super) fn of_executor<'t, 's>(settings: &[&'t Entry<'s>]) -> Vec<&'t Entry<'s>> {
    let is_group = |setting: &&Entry<'_>| matches!(plain_key(setting).as_str(), "container" | "host");
    let (groups, others): (Vec<&Entry<'s>>, Vec<&Entry<'s>>) = settings.iter().copied().partition(is_group);
    others.into_iter().chain(groups.into_iter().flat_map(|group| table(&group.node))).collect()
}

/// A setting that is left out, and what a person can do about it.
pub(super) type LeftOut<'t, 's> = (&'t Entry<'s>, &'static str);

/// Reads settings. `template` makes a template of a text of Dagu. Returns nothing if the name of the image is missing or
/// computed.
pub(super) fn read<'t, 's>(
    settings: &[&'t Entry<'s>],
    document: &str,
    template: &dyn Fn(&str) -> Option<String>,
) -> Option<(Container, Vec<LeftOut<'t, 's>>)> {
    let image = settings.iter().find(|setting| plain_key(setting) == "image")?;
    let image = scalar(&image.node, document)?;
    let mut parts = vec![("image", quoted(&template(&image)?))];
    let (mut env, mut left_out) = (Vec::new(), Vec::new());
    for setting in settings.iter().copied() {
        let text = scalar(&setting.node, document);
        match (plain_key(setting).as_str(), text) {
            ("image", _) => (),
            // The container of a job is removed at its end, and the job ends with its process.
            ("keepcontainer", _) if !is_true(&setting.node) => (),
            ("autoremove", _) if is_true(&setting.node) => (),
            ("volumes" | "binds", _) => {
                let volumes: Option<Vec<String>> = items(&setting.node)
                    .into_iter()
                    .map(|item| scalar(item, document).and_then(|volume| template(&volume)))
                    .collect();
                match volumes {
                    Some(volumes) => parts.push(("volumes", quoted_list(&volumes))),
                    None => left_out.push((setting, "a folder is computed; write it in `volumes`")),
                }
            }
            ("network", Some(network)) if !network.contains('$') => parts.push(("network", quoted(&network))),
            ("user", Some(user)) if !user.contains('$') => parts.push(("user", quoted(&user))),
            ("pull" | "pullpolicy", Some(word)) => match word.to_ascii_lowercase().as_str() {
                "always" | "true" => parts.push(("pull", quoted("always"))),
                "never" | "false" => parts.push(("pull", quoted("never"))),
                _missing => (),
            },
            ("env", _) => match read_env(setting, document, template) {
                Some(pairs) => env.extend(pairs),
                None => left_out.push((setting, "a value is computed; write it in `env`")),
            },
            ("workingdir" | "workdir", _) => {
                left_out.push((setting, "write `cd` at the beginning of the script"))
            }
            _other => left_out.push((setting, "`container` has no such setting")),
        }
    }
    let parts: Vec<String> = parts.into_iter().map(|(key, value)| format!("{key} = {value}")).collect();
    let line = format!("container = {{ {} }}", parts.join(", "));
    Some((Container { image, line, env }, left_out))
}

/// Reads variables: tables, or texts such as `KEY=value`. Returns nothing if a value is computed.
fn read_env(
    entry: &Entry<'_>,
    document: &str,
    template: &dyn Fn(&str) -> Option<String>,
) -> Option<Vec<(String, String)>> {
    let of_tables = pairs(&entry.node)
        .into_iter()
        .map(|pair| Some((pair.key.to_string(), scalar(&pair.node, document).unwrap_or_default())));
    let of_texts = list(&entry.node)
        .unwrap_or_default()
        .iter()
        .filter_map(|item| scalar(item, document))
        .map(|text| text.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned())));
    of_tables
        .chain(of_texts)
        .map(|pair| pair.and_then(|(name, value)| Some((name.clone(), template(&value)?))))
        .map(|pair| pair.filter(|(name, _)| variable_of(name) == *name))
        .collect()
}
