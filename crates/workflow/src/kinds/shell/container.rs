//! `container` of a job: the image in which its process runs.

use serde::{Deserialize, Serialize};

use crate::expression::Place;
use crate::field::{self, KnownNames, WorkflowError};
use crate::key::{Key, Table, ValueType};
use crate::report::{Finding, Findings};
use crate::template::Templates;
use crate::tree::{Entry, Node};
use crate::{expect, keys, limits};

pub(super) const CONTAINER: Key =
    Key::new("container", &[ValueType::Table(Table::Container)], "the image in which the process runs")
        .elsewhere(&["docker", "podman", "image"]);
const IMAGE: Key = Key::new("image", &[ValueType::Text], "the name of the image").template(Place::Command);
const VOLUMES: Key =
    Key::new("volumes", &[ValueType::Texts], "folders and volumes, as in \"./data:/data:ro\"")
        .template(Place::Command)
        .elsewhere(&["mounts", "volumemounts"]);
const NETWORK: Key =
    Key::new("network", &[ValueType::Text], "the network, as in \"none\"").default("that of the program");
const USER: Key = Key::new("user", &[ValueType::Text], "the user in the container")
    .default("that of the image")
    .elsewhere(&["runas", "runasuser"]);
const PULL: Key = Key::new("pull", &[ValueType::Word], "when the image is fetched")
    .words(&["missing", "always", "never"])
    .default("missing")
    .elsewhere(&["pullpolicy", "imagepullpolicy"]);

/// The keys of `container`.
pub(crate) const CONTAINER_KEYS: &[Key] = &[IMAGE, VOLUMES, NETWORK, USER, PULL];

/// The image in which a process runs, and what it sees of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Container {
    /// The name of the image. May be a template.
    pub image: String,
    /// Folders and volumes, each as `SOURCE:TARGET` or `SOURCE:TARGET:OPTIONS`. A source that begins with `.` is a path
    /// relative to the folder of the workflow file. May be templates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<String>,
    /// The network. Nothing means the one that the container program chooses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
    /// The user. Nothing means that of the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// When the image is fetched.
    #[serde(default)]
    pub pull: Pull,
}

/// When an image is fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pull {
    /// If it is not there.
    #[default]
    Missing,
    /// Before each attempt.
    Always,
    /// Never: the attempt fails if the image is not there.
    Never,
}

impl Pull {
    /// The word in the file, which is that of the container program too.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Pull::Missing => "missing",
            Pull::Always => "always",
            Pull::Never => "never",
        }
    }
}

const PULLS: [(&str, Pull); 3] =
    [("missing", Pull::Missing), ("always", Pull::Always), ("never", Pull::Never)];

/// Why a text can't stand where the container program expects a name. It would take a leading `-` for an option.
///
/// # Errors
/// The reason, for people.
pub fn check_argument(text: &str) -> Result<(), &'static str> {
    match text {
        "" => Err("it is empty"),
        _ if text.starts_with('-') => Err("it begins with `-`"),
        _ => Ok(()),
    }
}

/// Checks an argument that is not filled in.
fn check_plain(text: &str) -> Result<(), &'static str> {
    check_argument(text)?;
    if text.contains("{{") { Err("it can't be a template; only `image` and `volumes` can") } else { Ok(()) }
}

fn check_volume(text: &str) -> Result<(), &'static str> {
    check_argument(text)?;
    match text.split_once(':') {
        Some((source, target)) if !source.is_empty() && !target.is_empty() => Ok(()),
        Some(_) | None => Err("it is not SOURCE:TARGET"),
    }
}

pub(super) fn read<'t>(
    entry: &'t Entry<'_>,
    templates: &mut Templates<'t>,
    findings: &mut Findings,
) -> Option<Container> {
    let expected = "a table like { image = \"python:3.13\", volumes = [\"./data:/data:ro\"] }";
    let (mut image, mut volumes, mut network, mut user) = (None, Vec::new(), None, None);
    let (mut pull, mut has_image) = (Pull::default(), false);
    for part in expect::table(entry, usize::MAX, expected, findings)? {
        let Ok(found) = keys::find(part, Table::Container, findings) else { continue };
        match found.name() {
            "image" => {
                has_image = true;
                templates.add(&part.node, &IMAGE);
                image = read_argument(&part.node, "`image`", check_argument, findings);
            }
            "volumes" => volumes = read_volumes(part, templates, findings),
            "network" => network = read_argument(&part.node, "`network`", check_plain, findings),
            "user" => user = read_argument(&part.node, "`user`", check_plain, findings),
            _pull => pull = expect::word(part, &PULLS, findings).unwrap_or_default(),
        }
    }
    if !has_image {
        let finding = Finding::new(entry.key_span.clone(), "`container` has no `image`");
        findings.push(finding.help("add the name of the image, as in image = \"python:3.13\""));
    }
    Some(Container { image: image?, volumes, network, user, pull })
}

fn read_argument(
    node: &Node<'_>,
    what: &str,
    check: fn(&str) -> Result<(), &'static str>,
    findings: &mut Findings,
) -> Option<String> {
    let text = expect::filled_text(node, what, findings)?;
    match check(text) {
        Ok(()) => Some(text.to_owned()),
        Err(reason) => {
            findings.push(Finding::new(node.span.clone(), format!("{what} can't be used")).label(reason));
            None
        }
    }
}

fn read_volumes<'t>(
    part: &'t Entry<'_>,
    templates: &mut Templates<'t>,
    findings: &mut Findings,
) -> Vec<String> {
    let expected = "a list like [\"./data:/data:ro\"]";
    let items = expect::list(part, limits::VOLUMES, expected, findings).unwrap_or_default();
    let mut volumes = Vec::new();
    for item in items {
        templates.add(item, &VOLUMES);
        volumes.extend(read_argument(item, "an item of `volumes`", check_volume, findings));
    }
    volumes
}

impl Container {
    /// Checks a container that was made in code. Returns the jobs whose outputs its templates read.
    pub(super) fn check(&self, names: &KnownNames<'_>) -> Result<Vec<usize>, WorkflowError> {
        let refuse = |field: &str, checked: Result<(), &'static str>| {
            checked.or_else(|reason| field::refuse(field, reason))
        };
        refuse("action.container.image", check_argument(&self.image))?;
        let mut read = field::outputs_read(&self.image, "action.container.image", names, Place::Command)?;
        field::within(self.volumes.len(), limits::VOLUMES, "action.container.volumes")?;
        for (at, volume) in self.volumes.iter().enumerate() {
            let field = format!("action.container.volumes[{at}]");
            refuse(&field, check_volume(volume))?;
            read.extend(field::outputs_read(volume, &field, names, Place::Command)?);
        }
        for (text, field) in
            [(&self.network, "action.container.network"), (&self.user, "action.container.user")]
        {
            text.iter().try_for_each(|text| refuse(field, check_plain(text)))?;
        }
        Ok(read)
    }
}
