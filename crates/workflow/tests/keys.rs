//! The list of keys, compared with what the parser reads and with the guide.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use windlass_workflow::keys::{self, InDefaults, Key, Support, Table, ValueType};
use windlass_workflow::{Accepted, Source, parse_accepting};

/// A file that has `entry` in the table. The rest of the file is right.
fn file_with(table: Table, entry: &str) -> String {
    let job = |entry: &str| format!("{{\"jobs\": {{\"a\": {{\"run\": \"x\"{entry}}}}}}}");
    match table {
        Table::Workflow if entry.starts_with("\"jobs\"") => format!("{{{entry}}}"),
        Table::Workflow => format!("{{{entry}, \"jobs\": {{\"a\": {{\"run\": \"x\"}}}}}}"),
        Table::Param => file_with(Table::Workflow, &format!("\"params\": {{\"p\": {{{entry}}}}}")),
        Table::Schedule if entry.starts_with("\"cron\"") => {
            file_with(Table::Workflow, &format!("\"schedules\": [{{{entry}}}]"))
        }
        Table::Trigger if ["\"event\"", "\"after\""].iter().any(|key| entry.starts_with(key)) => {
            file_with(Table::Workflow, &format!("\"triggers\": [{{{entry}}}]"))
        }
        Table::Trigger => {
            file_with(Table::Workflow, &format!("\"triggers\": [{{\"event\": \"e\", {entry}}}]"))
        }
        Table::Schedule => {
            file_with(Table::Workflow, &format!("\"schedules\": [{{\"cron\": \"@daily\", {entry}}}]"))
        }
        Table::LocalWorkflow => {
            file_with(Table::Workflow, &format!("\"workflows\": {{\"w\": {{{entry}, \"jobs\": {{}}}}}}"))
        }
        Table::Artifact => job(&format!(", \"artifacts\": [{{{entry}}}]")),
        Table::Container => job(&format!(", \"container\": {{{entry}}}")),
        Table::Workspace => file_with(Table::Workflow, &format!("\"workspace\": {{{entry}}}")),
        Table::Secret => file_with(Table::Workflow, &format!("\"secrets\": {{\"S\": {{{entry}}}}}")),
        Table::Defaults => file_with(Table::Workflow, &format!("\"defaults\": {{{entry}}}")),
        // A job has one action.
        Table::Job
            if ["\"http\"", "\"workflow\"", "\"sleep\"", "\"wait_for\"", "\"approval\"", "\"signal\""]
                .iter()
                .any(|key| entry.starts_with(key)) =>
        {
            format!("{{\"jobs\": {{\"a\": {{{entry}}}}}}}")
        }
        Table::Job if entry.starts_with("\"params\"") => {
            format!("{{\"jobs\": {{\"a\": {{\"workflow\": \"w\", {entry}}}}}}}")
        }
        Table::Job => job(&format!(", {entry}")),
        Table::Retry => job(&format!(", \"retry\": {{{entry}}}")),
        Table::Repeat => job(&format!(", \"repeat\": {{{entry}}}")),
        Table::Concurrency => job(&format!(", \"concurrency\": {{{entry}}}")),
        Table::RunConcurrency => file_with(Table::Workflow, &format!("\"concurrency\": {{{entry}}}")),
        Table::ForEach => job(&format!(", \"for_each\": {{{entry}}}")),
        Table::Http => format!("{{\"jobs\": {{\"a\": {{\"http\": {{{entry}}}}}}}}}"),
        Table::Auth => file_with(Table::Http, &format!("\"url\": \"http://a\", \"auth\": {{{entry}}}")),
        Table::Sleep => format!("{{\"jobs\": {{\"a\": {{\"sleep\": {{{entry}}}}}}}}}"),
        Table::WaitFor => format!("{{\"jobs\": {{\"a\": {{\"wait_for\": {{{entry}}}}}}}}}"),
        Table::Signal => format!("{{\"jobs\": {{\"a\": {{\"signal\": {{{entry}}}}}}}}}"),
        Table::Approval => format!("{{\"jobs\": {{\"a\": {{\"approval\": {{{entry}}}}}}}}}"),
    }
}

/// The errors of a file in which the key has the value `null`, which no key allows.
fn error_of_null(table: Table, key: &Key, accepted: Accepted) -> String {
    let text = file_with(table, &format!("\"{}\": null", key.name()));
    let source = Source::new("a.json", text.clone().into()).unwrap();
    let report = parse_accepting(&source, accepted).expect_err(&text);
    report.diagnostics().iter().map(|error| error.message.as_str()).collect::<Vec<_>>().join("; ")
}

#[test]
fn every_key_is_read() {
    let in_defaults = Table::Defaults.keys().map(|key| (Table::Defaults, key));
    // A key with any JSON value may be null.
    let has_types = |(_, key): &(Table, &Key)| !key.types.contains(&ValueType::Json);
    for (table, key) in keys::list().chain(in_defaults).filter(has_types) {
        let name = key.name();
        let error = error_of_null(table, key, Accepted::Everything);
        assert!(error.contains(" must be "), "{table:?} {name}: {error}");
        assert!(!error.contains("unknown key"), "{table:?} {name}: {error}");
    }
}

#[test]
fn a_planned_key_is_refused() {
    for (table, key) in keys::list().filter(|(_, key)| key.support == Support::Planned) {
        let error = error_of_null(table, key, Accepted::Supported);
        let expected = format!("unknown key `{}`", key.name());
        assert!(error.starts_with(&expected), "{table:?} {}: {error}", key.name());
    }
}

/// The page of the guide with the keys of a table, and the heading above them.
fn place_in_guide(table: Table) -> (&'static str, &'static str) {
    match table {
        Table::Workflow | Table::LocalWorkflow => ("workflow-file.md", "## Keys of a workflow\n"),
        Table::Param => ("workflow-file.md", "## Keys of a parameter\n"),
        Table::Artifact => ("files.md", "## Keys of an artifact\n"),
        Table::Container => ("containers.md", "## Keys of `container`\n"),
        Table::Workspace => ("files.md", "## Keys of workspace\n"),
        Table::Secret => ("workflow-file.md", "## Keys of a secret\n"),
        Table::Trigger => ("triggers.md", "## Keys of a trigger\n"),
        Table::Schedule => ("schedules.md", "## Keys of a schedule\n"),
        Table::Defaults | Table::Job => ("workflow-file.md", "## Keys of a job\n"),
        Table::Retry => ("workflow-file.md", "## Keys of `retry`\n"),
        Table::Repeat => ("waiting.md", "## Keys of `repeat`\n"),
        Table::Concurrency => ("workflow-file.md", "## Keys of `concurrency`\n"),
        Table::RunConcurrency => ("queues.md", "## Keys of `concurrency` of a workflow\n"),
        Table::ForEach => ("for-each.md", "## Keys of `for_each`\n"),
        Table::Http => ("http.md", "## Keys of `http`\n"),
        Table::Auth => ("http.md", "## Keys of `auth`\n"),
        Table::Sleep => ("waiting.md", "## Keys of `sleep`\n"),
        Table::WaitFor => ("waiting.md", "## Keys of `wait_for`\n"),
        Table::Signal => ("waiting.md", "## Keys of `signal`\n"),
        Table::Approval => ("waiting.md", "## Keys of `approval`\n"),
    }
}

fn guide(page: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide");
    std::fs::read_to_string(folder.join(page)).unwrap()
}

#[test]
fn the_guide_has_every_key_and_no_other() {
    let tables = [
        Table::Workflow,
        Table::Param,
        Table::Secret,
        Table::Schedule,
        Table::Trigger,
        Table::Job,
        Table::Retry,
        Table::Repeat,
        Table::Concurrency,
        Table::ForEach,
        Table::Container,
        Table::Http,
        Table::Auth,
        Table::Sleep,
        Table::WaitFor,
        Table::Approval,
    ];
    for table in tables {
        let mut known: Vec<&str> =
            table.keys().filter(|key| key.support == Support::Supported).map(Key::name).collect();
        let (page, heading) = place_in_guide(table);
        let text = guide(page);
        let section = text.split_once(heading).unwrap_or_else(|| panic!("{page} has no {heading}")).1;
        let section = section.split("\n## ").next().unwrap();
        let mut written: Vec<&str> = section
            .lines()
            .filter_map(|line| line.strip_prefix("| `")?.split_once("` |"))
            .map(|(key, _)| key)
            .collect();
        written.sort_unstable();
        known.sort_unstable();
        assert_eq!(written, known, "{page}, {heading}");
    }
}

#[test]
fn the_guide_lists_the_keys_of_defaults() {
    let text = guide("workflow-file.md");
    let line = text.lines().find(|line| line.starts_with("| `defaults` |")).unwrap();
    let list = line.rsplit_once(": ").unwrap().1;
    let written: Vec<&str> = list.split('`').skip(1).step_by(2).collect();
    let expected = Table::Job
        .keys()
        .filter(|key| key.in_defaults == InDefaults::Yes && key.support == Support::Supported);
    let (mut written, mut expected) = (written, expected.map(Key::name).collect::<Vec<_>>());
    written.sort_unstable();
    expected.sort_unstable();
    assert_eq!(written, expected);
}
