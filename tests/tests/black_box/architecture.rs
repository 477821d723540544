//! ARCHITECTURE.md keeps up with the code: the paths, crates and tests that it names exist, and none is left out.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use windlass_tests::binary::repository;

fn page() -> String {
    fs::read_to_string(repository().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md can be read")
}

/// The text of a section, without its heading.
fn section<'p>(page: &'p str, heading: &str) -> &'p str {
    let (_before, rest) = page.split_once(&format!("\n## {heading}\n")).expect("the section exists");
    rest.split_once("\n## ").map_or(rest, |(section, _after)| section)
}

fn exists(path: &str) -> bool {
    let root = repository();
    root.join(path).exists() || root.join("crates").join(path).exists()
}

#[test]
fn every_path_in_backquotes_exists() {
    let page = page();
    let is_path = |text: &&str| text.contains('/') && !text.contains([' ', ':', '…', '(']);
    let mut prefix = "";
    let mut checked = 0;
    for text in page.split('`').skip(1).step_by(2).filter(is_path) {
        // `claim/take.rs` after `engine/src/store/claim/mod.rs` is named from the folder above.
        let is_found = exists(text) || exists(&format!("{prefix}/{text}"));
        assert!(is_found || text.ends_with("0001"), "ARCHITECTURE.md names {text}, which does not exist");
        let parents = Path::new(text).ancestors().nth(2).and_then(Path::to_str);
        prefix = if exists(text) { parents.unwrap_or_default() } else { prefix };
        checked += 1;
    }
    assert!(checked >= 20, "only {checked} paths were found: the page is read wrongly");
}

#[test]
fn every_crate_is_in_the_table_of_crates() {
    let page = page();
    let table = section(&page, "The crates");
    let named: BTreeSet<&str> = table
        .lines()
        .filter_map(|line| line.strip_prefix("| `"))
        .filter_map(|line| line.split('`').next())
        .collect();
    let folders = fs::read_dir(repository().join("crates")).expect("there are crates").flatten();
    let crates: BTreeSet<String> =
        folders.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    assert_eq!(named, crates.iter().map(String::as_str).collect());
}

#[test]
fn every_entry_of_the_map_exists() {
    let page = page();
    let map = section(&page, "The crates").split("```").nth(3).expect("the second block is the map");
    let mut root = String::new();
    let mut checked = 0;
    for line in map.lines().filter(|line| !line.trim().is_empty()) {
        let is_root = !line.starts_with(' ');
        let paths = line.trim().split("  ").next().unwrap_or_default();
        if is_root {
            root = paths.split(' ').next().unwrap_or_default().to_owned();
            assert!(repository().join(&root).exists(), "the map names {root}, which does not exist");
            continue;
        }
        let mut folder = Path::new("");
        for path in paths.split(", ") {
            // `runs/, jobs/` are in one folder.
            let found = [Path::new(&root).join(path), Path::new(&root).join(folder).join(path)];
            let is_found = found.iter().any(|path| repository().join(path).exists());
            assert!(is_found, "the map names {path} in {root}, which does not exist");
            folder = Path::new(path).parent().unwrap_or(folder);
            checked += 1;
        }
    }
    assert!(checked >= 30, "only {checked} entries were found: the map is read wrongly");
}

#[test]
fn every_invariant_is_numbered_and_names_what_holds_it() {
    let page = page();
    let invariants = section(&page, "The invariants");
    let mut number = 0;
    for invariant in invariants.split("\n\n").flat_map(|block| block.split("\n").collect::<Vec<_>>()) {
        if let Some((found, _text)) = invariant.split_once(". ")
            && let Ok(found) = found.parse::<u32>()
        {
            number += 1;
            assert_eq!(found, number, "the invariants are numbered one after the other");
        }
    }
    let held: Vec<&str> = invariants.split("Held by ").skip(1).collect();
    assert_eq!(held.len(), number as usize, "each invariant says by which test or code it is held");
    for held in held {
        let path = held.split('`').nth(1).expect("a path in backquotes");
        assert!(repository().join(path).is_file(), "an invariant names {path}, which does not exist");
    }
}
