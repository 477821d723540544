//! `include`: tables of other files, and errors in them.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::Path;

use windlass_workflow::{Colour, Report, Source, Workflow, limits, parse, warnings};

/// Reads `flows/top.toml` of these files, whose paths start in `flows`.
fn source(files: &[(&str, &str)]) -> Source {
    let files: BTreeMap<&str, &str> = files.iter().copied().collect();
    let source = Source::new("flows/top.toml", files["top.toml"].into()).unwrap();
    source.with_included(&mut |path: &Path| {
        let found = files.get(path.to_str().unwrap());
        found.map(|text| text.as_bytes().to_vec()).ok_or_else(|| "it is not there".to_owned())
    })
}

fn workflow(files: &[(&str, &str)]) -> Result<Workflow, Report> {
    parse(&source(files))
}

#[track_caller]
fn error(files: &[(&str, &str)], parts: &[&str]) -> Report {
    let report = workflow(files).unwrap_err();
    let text = report.render(Colour::Never);
    for part in parts {
        assert!(text.contains(part), "no {part:?} in:\n{text}");
    }
    report
}

const JOB: &str = "[jobs.a]\nrun = 'x'\n";

#[test]
fn the_tables_of_several_files_are_one() {
    let top = "include = ['common/all.toml', 'env.json']\nname = 'top'\n[env]\nA = 'a'\n[secrets]\nOWN = {}
[jobs.a]\nrun = 'x'\nsecrets = ['TOKEN']\n[jobs.b]\nworkflow = 'load'\n";
    let all = "include = 'more.yaml'\n[secrets]\nTOKEN = {}\n[defaults]\ntimeout = '5m'\n";
    let more = "workflows:\n  load:\n    jobs:\n      copy: { run: copy }\n";
    let files = [
        ("top.toml", top),
        ("common/all.toml", all),
        ("common/more.yaml", more),
        ("env.json", r#"{"env": {"B": "b"}}"#),
    ];
    let written =
        "name = 'top'\n[env]\nA = 'a'\nB = 'b'\n[secrets]\nOWN = {}\nTOKEN = {}\n[defaults]\ntimeout = '5m'
[workflows.load.jobs.copy]\nrun = 'copy'
[jobs.a]\nrun = 'x'\nsecrets = ['TOKEN']\n[jobs.b]\nworkflow = 'load'\n";
    let expected = parse(&Source::new("top.toml", written.into()).unwrap()).unwrap();
    let found = workflow(&files).unwrap();
    assert_eq!(found, expected);
    assert_eq!(found.hash(), expected.hash(), "nothing of `include` reaches the rows");
}

#[test]
fn a_file_that_two_others_include_is_read_once() {
    let top = format!("include = ['a.toml', 'b.toml', 'c.toml']\n{JOB}");
    let c = "include = []\n[env]\nC = 'c'\n";
    let files = [
        ("top.toml", top.as_str()),
        ("a.toml", "include = 'c.toml'"),
        ("b.toml", "include = './c.toml'"),
        ("c.toml", c),
    ];
    assert_eq!(workflow(&files).unwrap().env["C"], "c");
}

#[test]
fn errors_name_the_file_and_the_line() {
    let top = format!("include = ['sub/common.toml']\n[env]\nA = 'a'\n{JOB}");
    let with =
        |common: &str, parts: &[&str]| error(&[("top.toml", &top), ("sub/common.toml", common)], parts);
    let report = with(
        "# first\n[secrets]\nTOKEN = { evn = 'x' }\n",
        &["flows/sub/common.toml:3:11", "did you mean `env`?"],
    );
    let diagnostic = &report.diagnostics()[0];
    assert_eq!(
        (diagnostic.file.as_str(), diagnostic.line, diagnostic.column),
        ("flows/sub/common.toml", 3, 11)
    );
    with("[env]\nB = '{{ params.x }}'\n", &["flows/sub/common.toml:2:9", "there is no parameter `x`"]);
    with(
        "[env]\nA = 'b'\n",
        &["`env` has `A` twice", "flows/sub/common.toml:2:1", "flows/top.toml:3:1", "the first one"],
    );
    with("[secrets]\n[defaults\n", &["flows/sub/common.toml:2:"]);
    with("env = 'x'\n", &["flows/sub/common.toml:1:7", "found a string"]);
    with("[jobs.b]\nrun = 'x'\n", &["`jobs` can't be included", "flows/sub/common.toml:1:2"]);
    with("include = 7\n", &["flows/sub/common.toml:1:11"]);
    // The file itself has an error behind the included text.
    let files = [("top.toml", "include = 'c.toml'\n[jobs.a]\nrnu = 'x'\n"), ("c.toml", "[env]\nX = 'x'")];
    error(&files, &["flows/top.toml:3:1", "did you mean `run`?"]);
}

#[test]
fn wrong_paths_are_errors() {
    let with = |include: &str, parts: &[&str]| {
        let top = format!("include = {include}\n{JOB}");
        error(
            &[
                ("top.toml", &top),
                ("loop.toml", "include = 'loop.toml'"),
                ("back.toml", "include = 'top.toml'"),
            ],
            parts,
        );
    };
    with("'gone.toml'", &["flows/gone.toml can't be read", "flows/top.toml:1:11", "it is not there"]);
    with("['../common.toml']", &["in the folder of the file", "flows/top.toml:1:12"]);
    with("'/etc/common.toml'", &["in the folder of the file"]);
    with("'.hidden/common.toml'", &["a hidden file"]);
    with("'common.txt'", &["no file in TOML, JSON or YAML"]);
    with("'top.toml'", &["`top.toml` includes itself: top.toml → top.toml"]);
    with("'loop.toml'", &["flows/loop.toml:1:11", "loop.toml → loop.toml"]);
    with("'back.toml'", &["flows/back.toml:1:11", "top.toml → back.toml → top.toml"]);
    with("7", &["flows/top.toml:1:11"]);
    let alone = Source::new("a.toml", format!("include = 'common.toml'\n{JOB}").into()).unwrap();
    assert!(parse(&alone).unwrap_err().to_string().contains("no file can be included here"));
}

#[test]
fn a_file_that_is_missing_hides_no_other_error() {
    let top = "include = ['gone.toml', 'broken.toml']\n[jobs.a]\nrnu = 'x'\nsecrets = ['TOKEN']
[jobs.b]\nrun = 'x'\nneeds = ['aa']\nenv = { T = '{{ secrets.TOKEN }}' }\n";
    let messages = |files: &[(&str, &str)]| -> Vec<(usize, String)> {
        let report = workflow(files).unwrap_err();
        report.diagnostics().iter().map(|error| (error.line, error.message.clone())).collect()
    };
    let found = messages(&[("top.toml", top), ("broken.toml", "[defaults\n")]);
    // The missing file may declare the secret.
    let expected = ["gone.toml can't be read", "unknown key `rnu`", "there is no job `aa`", ""];
    assert_eq!(found.len(), expected.len(), "{found:?}");
    for ((_line, message), part) in found.iter().zip(expected) {
        assert!(message.contains(part), "{message} has no {part}");
    }
    let lines: Vec<usize> = found.iter().map(|(line, _message)| *line).collect();
    assert_eq!(lines, [1, 3, 7, 1], "the last one is in the second file");
    // Each of the two files alone may have the secret.
    for (gone, broken) in [(None, ""), (Some(""), "[defaults\n")] {
        let files = [("top.toml", top), ("broken.toml", broken)];
        let found =
            messages(&files.into_iter().chain(gone.map(|text| ("gone.toml", text))).collect::<Vec<_>>());
        assert!(found.iter().all(|(_line, message)| !message.contains("no secret")), "{found:?}");
    }
    let found = messages(&[("top.toml", top), ("gone.toml", ""), ("broken.toml", "")]);
    let unknown = found.iter().filter(|(_line, message)| message.contains("there is no secret `TOKEN`"));
    assert_eq!(unknown.count(), 2, "every file was read: {found:?}");
}

#[test]
fn there_are_limits() {
    let chain = |length: usize| {
        let name =
            |number: usize| if number == 0 { "top.toml".to_owned() } else { format!("f{number}.toml") };
        let text = |number: usize| match number {
            0 => format!("include = 'f1.toml'\n{JOB}"),
            _ if number == length => "[env]\nX = 'x'".to_owned(),
            _ => format!("include = 'f{}.toml'", number + 1),
        };
        (0..=length).map(|number| (name(number), text(number))).collect::<Vec<_>>()
    };
    let refs = |files: &[(String, String)]| -> Result<Workflow, Report> {
        workflow(&files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect::<Vec<_>>())
    };
    assert!(refs(&chain(limits::INCLUDE_DEPTH)).is_ok());
    let error = refs(&chain(limits::INCLUDE_DEPTH + 1)).unwrap_err();
    assert!(error.to_string().contains("at most 4 deep"), "{error}");

    let many = |count: usize| {
        let names: Vec<String> = (0..count).map(|number| format!("'f{number}.toml'")).collect();
        // Two files include half of them each, because one list has a limit of its own.
        let (first, second) = names.split_at(count / 2);
        let files = |names: &[String]| format!("include = [{}]", names.join(", "));
        let mut all = vec![
            ("top.toml".to_owned(), format!("include = ['one.toml', 'two.toml']\n{JOB}")),
            ("one.toml".to_owned(), files(first)),
            ("two.toml".to_owned(), files(second)),
        ];
        all.extend((0..count).map(|number| (format!("f{number}.toml"), format!("[env]\nE{number} = 'x'"))));
        all
    };
    assert!(refs(&many(limits::INCLUDED_FILES - 2)).is_ok());
    let error = refs(&many(limits::INCLUDED_FILES - 1)).unwrap_err();
    assert!(error.to_string().contains("at most 16 others"), "{error}");

    let large = |bytes: usize| {
        workflow(&[("top.toml", &format!("include = 'c.toml'\n{JOB}")), ("c.toml", &" ".repeat(bytes))])
    };
    assert!(large(limits::INCLUDED_BYTES).is_ok());
    assert!(large(limits::INCLUDED_BYTES + 1).unwrap_err().to_string().contains("the limit is 1024 KiB"));
}

#[test]
fn nobody_is_warned_of_what_other_files_use() {
    let top = format!("include = 'common.toml'\n[secrets]\nOWN = {{}}\n{JOB}");
    let common = "[secrets]\nTOKEN = {}\n[workflows.load.jobs.a]\nrun = 'x'\ntimeout = '2h'\n[workflows.load]\ntimeout = '1h'\n";
    let source = source(&[("top.toml", &top), ("common.toml", common)]);
    let report = warnings(&source, &parse(&source).unwrap());
    let found: Vec<(&str, &str)> = report
        .diagnostics()
        .iter()
        .map(|warning| (warning.file.as_str(), warning.message.as_str()))
        .collect();
    let timeout = "the `timeout` of the workflow ends before this `timeout` does";
    assert_eq!(found, [("flows/top.toml", "no job uses the secret `OWN`"), ("flows/common.toml", timeout)]);
}
