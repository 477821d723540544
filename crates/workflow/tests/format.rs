//! Formatting the examples keeps what they mean and every comment.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

use windlass_workflow::{Source, format_toml, parse};

fn examples() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/workflows");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|extension| extension == "toml")).collect()
}

#[test]
fn the_examples_are_formatted() {
    let examples = examples();
    assert!(examples.len() > 5, "{examples:?}");
    for path in examples {
        let text = fs::read_to_string(&path).unwrap();
        let source = Source::new(path.display().to_string(), text.clone().into_bytes()).unwrap();
        let formatted = format_toml(&source).unwrap();
        assert!(formatted == text, "{}: run `windlass fmt` on it\n{formatted}", path.display());
    }
}

/// Spaces around the first `=` are removed, lines get spaces at their ends, and blank lines are repeated.
#[test]
fn a_badly_spaced_example_gets_its_form_back() {
    for path in examples() {
        let text = fs::read_to_string(&path).unwrap();
        // Spaces inside of texts mean something.
        if text.contains("'''") || text.contains("\"\"\"") {
            continue;
        }
        let lines = text.lines().map(|line| match line {
            "" => "\n \n".to_owned(),
            line => format!(" \t{}  ", line.replacen(" = ", "=", usize::from(!line.starts_with('#')))),
        });
        let spaced = lines.collect::<Vec<String>>().join("\n");
        let name = path.display().to_string();
        let spaced = Source::new(name.as_str(), spaced.into_bytes()).unwrap();
        assert_eq!(format_toml(&spaced).unwrap(), text, "{name}");
        let original = Source::new(name.as_str(), text.into_bytes()).unwrap();
        if let (Ok(spaced), Ok(original)) = (parse(&spaced), parse(&original)) {
            assert_eq!(spaced.hash(), original.hash(), "{name}");
        }
    }
}
