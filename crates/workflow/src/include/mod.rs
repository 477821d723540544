//! `include`: tables of other files become part of a file when it is read.
//!
//! The texts of the included files are put behind the text of the file, so that a position says in which of them it is. Their
//! tables are put together in the tree. After that nothing knows that there were several files, besides messages.

mod merge;

use std::path::{Component, Path, PathBuf};

pub(crate) use merge::{can_be_included, keys_of_included_files, read};

use crate::keys::INCLUDE;
use crate::report::{Diagnostic, Finding, Findings, Span};
use crate::source::{IncludedText, Source};
use crate::tree::{self, Entry, Node, Value};
use crate::{expect, limits};

/// A file that includes others.
struct Includer {
    /// The path from the folder of the first file.
    path: PathBuf,
    /// The files that include it, the first file first, and its own path.
    chain: Vec<PathBuf>,
    /// Its place in [`Source::included`]; nothing for the first file.
    part: Option<usize>,
}

impl Source {
    /// Reads the files that the file includes, and those that they include. `read` gets the path of a file from the folder of
    /// this one, and gives its bytes, or says why they can't be read.
    ///
    /// A path that is not allowed, a file that can't be read and too many files are errors of the file, which
    /// [`parse`](crate::parse) reports together with the others.
    #[must_use]
    pub fn with_included(mut self, read: &mut dyn FnMut(&Path) -> Result<Vec<u8>, String>) -> Source {
        // Most files include nothing, and need not be parsed twice.
        if self.text.contains(INCLUDE.name()) {
            self.unread = self.read_included(read);
        }
        self
    }

    /// Adds the texts of the included files. Returns the errors.
    fn read_included(&mut self, read: &mut dyn FnMut(&Path) -> Result<Vec<u8>, String>) -> Vec<Finding> {
        let name = Path::new(&self.path).file_name().map(PathBuf::from).unwrap_or_default();
        let mut pending = vec![Includer { path: name.clone(), chain: vec![name], part: None }];
        let mut findings = Vec::new();
        while let Some(includer) = pending.pop() {
            for (written, span) in self.written_includes(includer.part) {
                let path = match checked_path(&includer, &written, &span) {
                    Ok(path) => path,
                    Err(finding) => {
                        findings.push(finding);
                        continue;
                    }
                };
                let shown = self.folder().join(&path).display().to_string();
                if self.included.iter().any(|known| known.path == shown) {
                    continue;
                }
                if self.included.len() == limits::INCLUDED_FILES {
                    let message = format!("a file includes at most {} others", limits::INCLUDED_FILES);
                    findings.push(Finding::new(span, message).help("put the tables together in fewer files"));
                    return findings;
                }
                match read(&path) {
                    Ok(bytes) if bytes.len() > limits::INCLUDED_BYTES => findings.push(too_large(span)),
                    Ok(bytes) => {
                        match Source::new(shown.as_str(), bytes) {
                            Ok(included) => self.append(included),
                            Err(report) => {
                                findings.extend(
                                    report.diagnostics().first().map(|first| unusable(&shown, span, first)),
                                );
                                continue;
                            }
                        }
                        let chain = [includer.chain.as_slice(), std::slice::from_ref(&path)].concat();
                        pending.push(Includer { path, chain, part: Some(self.included.len() - 1) });
                    }
                    Err(reason) => {
                        let message = format!("the file {shown} can't be read");
                        let help = "a path starts in the folder of the file that includes it";
                        findings.push(Finding::new(span, message).label(reason).help(help));
                    }
                }
            }
        }
        findings
    }

    fn folder(&self) -> &Path {
        Path::new(&self.path).parent().unwrap_or(Path::new(""))
    }

    fn append(&mut self, included: Source) {
        self.text.push('\n');
        let start = self.text.len();
        self.text.push_str(&included.text);
        self.included.push(IncludedText { path: included.path, format: included.format, start });
    }

    /// The paths in `include` of one of the files, with their positions. Errors of syntax are reported later.
    fn written_includes(&self, part: Option<usize>) -> Vec<(String, Span)> {
        let (text, format, start) = self.part(part);
        let entries = tree::read_text(text, format, &mut Findings::default()).unwrap_or_default();
        let Some(include) = entries.iter().find(|entry| entry.key == INCLUDE.name()) else {
            return Vec::new();
        };
        let at = |node: &Node<'_>| node.span.start + start..node.span.end + start;
        items(include).iter().filter_map(|node| Some((text_of(node)?.to_owned(), at(node)))).collect()
    }
}

/// Reports an `include` that is no list of texts.
pub(crate) fn check(entry: &Entry<'_>, findings: &mut Findings) {
    let nodes = match &entry.node.value {
        Value::Text(_) => items(entry),
        Value::Integer(_)
        | Value::Number(_)
        | Value::Boolean(_)
        | Value::Date(_)
        | Value::Null
        | Value::Broken
        | Value::List(_)
        | Value::Table(_) => {
            let files = expect::list(entry, limits::INCLUDED_FILES, "a list of files", findings);
            files.unwrap_or_default()
        }
    };
    for node in nodes {
        expect::text(node, "an item of `include`", findings);
    }
}

/// The items of a list, or the value itself.
fn items<'t, 's>(entry: &'t Entry<'s>) -> &'t [Node<'s>] {
    match &entry.node.value {
        Value::List(items) => items,
        Value::Text(_) => std::slice::from_ref(&entry.node),
        Value::Integer(_)
        | Value::Number(_)
        | Value::Boolean(_)
        | Value::Date(_)
        | Value::Null
        | Value::Broken
        | Value::Table(_) => &[],
    }
}

fn text_of<'t>(node: &'t Node<'_>) -> Option<&'t str> {
    match &node.value {
        Value::Text(text) => Some(text),
        Value::Integer(_)
        | Value::Number(_)
        | Value::Boolean(_)
        | Value::Date(_)
        | Value::Null
        | Value::Broken
        | Value::List(_)
        | Value::Table(_) => None,
    }
}

/// The path from the folder of the first file.
fn checked_path(includer: &Includer, written: &str, span: &Span) -> Result<PathBuf, Finding> {
    let refuse = |message: String| Finding::new(span.clone(), message);
    let mut path = includer.path.parent().unwrap_or(Path::new("")).to_owned();
    for component in Path::new(written).components() {
        match component {
            Component::Normal(name) if !name.to_string_lossy().starts_with('.') => path.push(name),
            Component::CurDir => (),
            Component::Normal(_) => {
                return Err(refuse("a hidden file can't be included".to_owned())
                    .help("`serve` does not watch hidden files; rename it"));
            }
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                return Err(refuse(
                    "an included file is in the folder of the file that includes it, or below".to_owned(),
                )
                .help("move it there; a path has no `..` and does not begin with `/`"));
            }
        }
    }
    let extension = path.extension().and_then(|extension| extension.to_str());
    if !matches!(extension, Some("toml" | "json" | "yaml" | "yml")) {
        return Err(refuse(format!("`{}` is no file in TOML, JSON or YAML", written.escape_debug()))
            .help("the name of an included file ends in .toml, .json, .yaml or .yml"));
    }
    if includer.chain.contains(&path) {
        let names = includer.chain.iter().skip_while(|before| **before != path).chain([&path]);
        let names: Vec<String> = names.map(|path| path.display().to_string()).collect();
        return Err(
            refuse(format!("`{written}` includes itself: {}", names.join(" → "))).help("remove it here")
        );
    }
    if includer.chain.len() > limits::INCLUDE_DEPTH {
        return Err(refuse(format!("files include each other at most {} deep", limits::INCLUDE_DEPTH))
            .help("include the file in the first one"));
    }
    Ok(path)
}

/// A file whose bytes are no text.
fn unusable(shown: &str, span: Span, why: &Diagnostic) -> Finding {
    let finding = Finding::new(span, format!("the file {shown} can't be read"))
        .label(format!("{}, at line {}, column {}", why.message, why.line, why.column));
    match &why.help {
        Some(help) => finding.help(help),
        None => finding,
    }
}

fn too_large(span: Span) -> Finding {
    let limit = limits::INCLUDED_BYTES / 1024;
    Finding::new(span, "the included file is too large").label(format!("the limit is {limit} KiB"))
}
