//! The guide agrees with the program: its workflows are valid, its commands and options exist, and its links have
//! targets.

use std::fs;
use std::path::PathBuf;

use windlass_tests::Sandbox;
use windlass_tests::binary::repository;

/// The pages for users, in a fixed order.
fn pages() -> Vec<(PathBuf, String)> {
    read_pages(&["docs/guide"], &["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
}

/// All pages, those for developers too.
fn all_pages() -> Vec<(PathBuf, String)> {
    let folders = ["docs", "docs/guide", "docs/contributing", "docs/decisions"];
    read_pages(&folders, &["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "ARCHITECTURE.md"])
}

/// The pages in these folders, and these files.
fn read_pages(folders: &[&str], files: &[&str]) -> Vec<(PathBuf, String)> {
    let root = repository();
    let is_page = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "md");
    let mut paths: Vec<PathBuf> = files.iter().map(|name| root.join(name)).collect();
    for folder in folders {
        let entries = fs::read_dir(root.join(folder)).expect("the folder can be read").flatten();
        paths.extend(entries.map(|entry| entry.path()).filter(is_page));
    }
    paths.sort();
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).expect("a page can be read");
        (path, text)
    };
    paths.into_iter().map(read).collect()
}

/// The fenced code blocks of a language.
fn blocks<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
    let fence = format!("```{language}\n");
    page.split(&fence).skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

#[test]
fn workflows_on_the_pages_are_valid() {
    let sandbox = Sandbox::new();
    let mut checked = 0;
    for (path, page) in pages() {
        let toml = blocks(&page, "toml").into_iter().filter(|text| text.starts_with("name = "));
        let json = blocks(&page, "json").into_iter().filter(|text| text.contains("\"jobs\": {"));
        let named = toml.map(|text| ("page.toml", text)).chain(json.map(|text| ("page.json", text)));
        for (name, text) in named {
            sandbox.write(name, text);
            let outcome = sandbox.run(&["validate", name]);
            assert_eq!(outcome.code, Some(0), "{}: {}\n{text}", path.display(), outcome.stderr);
            checked += 1;
        }
    }
    assert!(checked >= 3, "only {checked} workflows were found: the pages are read wrongly");
}

#[test]
fn commands_on_the_pages_exist_with_their_options() {
    let sandbox = Sandbox::new();
    let mut checked = 0;
    for (path, page) in pages() {
        let commands = blocks(&page, "sh").into_iter().flat_map(str::lines);
        for command in commands.filter_map(|line| line.strip_prefix("windlass ")) {
            let command = command.split(" #").next().unwrap_or(command);
            let words: Vec<&str> = command.split_whitespace().collect();
            // Global options with their values may come first.
            let from_verb = if words[0].starts_with('-') { &words[2..] } else { &words[..] };
            let has_parts = matches!(from_verb[0], "db" | "queue" | "schedule");
            let verb = if has_parts { &from_verb[..2] } else { &from_verb[..1] };
            let help = sandbox.run(&[verb, &["--help"]].concat());
            assert_eq!(help.code, Some(0), "{}: `windlass {command}`: {}", path.display(), help.stderr);
            for option in words.iter().filter(|word| word.starts_with("--")) {
                assert!(help.stdout.contains(*option), "{}: `{option}` in {command:?}", path.display());
            }
            checked += 1;
        }
    }
    assert!(checked >= 20, "only {checked} commands were found: the pages are read wrongly");
}

#[test]
fn links_lead_to_files() {
    let pages = all_pages();
    assert!(pages.len() >= 60, "only {} pages were found", pages.len());
    let mut checked = 0;
    for (path, page) in pages {
        let folder = path.parent().expect("a page lies in a folder");
        for target in page.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let is_elsewhere = target.contains("://") || target.starts_with('#');
            let file = folder.join(target.split('#').next().unwrap_or(target));
            assert!(is_elsewhere || file.exists(), "{} links to {target}", path.display());
            checked += 1;
        }
    }
    assert!(checked >= 100, "only {checked} links were found: the pages are read wrongly");
}

#[test]
fn every_verb_is_on_the_page_of_the_command_line() {
    let sandbox = Sandbox::new();
    let help = sandbox.run(&["--help"]).exited(0).stdout;
    let page = fs::read_to_string(repository().join("docs/guide/command-line.md")).expect("the page");
    let verbs: Vec<&str> = help
        .lines()
        .filter_map(|line| {
            line.strip_prefix("  ").filter(|rest| rest.starts_with(|c: char| c.is_ascii_lowercase()))
        })
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(verbs.len() >= 18, "{verbs:?} of {help}");
    for verb in verbs {
        assert!(page.contains(&format!("`{verb}")), "{verb} is not on the page");
    }
}
