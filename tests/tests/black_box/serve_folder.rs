//! `serve` and its folder: its workflows are registered, an invalid file leaves the last valid version active, and a
//! removed file deactivates its workflow.

use std::fs;

use serde_json::Value;
use windlass_tests::{Engine, Sandbox, eventually};

fn workflow(script: &str) -> String {
    format!("[jobs.only]\nrun = '{script}'\n")
}

/// A service with the folder `flows`, when it is ready.
fn serve(sandbox: &Sandbox) -> Engine {
    fs::create_dir_all(sandbox.path("flows")).expect("a sandbox can be written to");
    let mut service = sandbox.spawn(&["serve", "--workflows", "flows"]);
    await_word(&mut service, " serves ");
    service
}

fn await_word(service: &mut Engine, word: &str) {
    eventually(&format!("{word:?} in the log"), || {
        assert!(service.is_running(), "the service ended: {}", service.stderr_so_far());
        service.stderr_so_far().contains(word).then_some(())
    });
}

/// The active workflows with their versions.
fn registered(sandbox: &Sandbox) -> Vec<(String, i64)> {
    let listed = sandbox.run(&["workflows", "-o", "json"]).exited(0).json();
    let entry = |entry: &Value| Some((entry["workflow"].as_str()?.to_owned(), entry["version"].as_i64()?));
    listed.as_array().expect("a list").iter().map(|found| entry(found).expect("a name and version")).collect()
}

fn await_registered(sandbox: &Sandbox, expected: &[(&str, i64)]) {
    eventually(&format!("{expected:?} being registered"), || {
        let found = registered(sandbox);
        let found: Vec<(&str, i64)> = found.iter().map(|(name, version)| (name.as_str(), *version)).collect();
        (found == expected).then_some(())
    });
}

#[test]
fn a_changed_file_that_others_include_makes_new_versions() {
    let sandbox = Sandbox::new();
    fs::create_dir_all(sandbox.path("flows/common")).expect("a sandbox can be written to");
    sandbox.write("flows/common/env.toml", "[env]\nA = '1'\n");
    let including = format!("include = 'common/env.toml'\n{}", workflow("echo $A"));
    sandbox.write("flows/first.toml", &including);
    sandbox.write("flows/second.toml", workflow("true"));
    let mut service = serve(&sandbox);
    await_registered(&sandbox, &[("first", 1), ("second", 1)]);
    assert!(!service.stderr_so_far().contains("invalid"), "{}", service.stderr_so_far());
    sandbox.write("flows/common/env.toml", "[env]\nA = '2'\n");
    await_registered(&sandbox, &[("first", 2), ("second", 1)]);
    await_word(&mut service, "workflow changed: env changed");
    sandbox.write("flows/common/env.toml", "[env]\nA = [3]\n");
    await_word(&mut service, "env.toml:2:5");
    sandbox.write("flows/common/env.toml", "[env]\nA = '3'\n");
    await_registered(&sandbox, &[("first", 3), ("second", 1)]);
}

#[test]
fn added_changed_and_removed_files_are_followed() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("flows")).expect("a sandbox can be written to");
    sandbox.write("flows/first.toml", workflow("echo 1"));
    let mut service = serve(&sandbox);
    await_registered(&sandbox, &[("first", 1)]);
    sandbox.write("flows/first.toml", workflow("echo 2"));
    await_registered(&sandbox, &[("first", 2)]);
    await_word(&mut service, "workflow changed: jobs changed only (run)");
    // Editors and deployments write a new file and rename it, also in a new folder.
    sandbox.write("prepared", workflow("echo 3"));
    fs::rename(sandbox.path("prepared"), sandbox.path("flows/first.toml")).expect("a file can be moved");
    await_registered(&sandbox, &[("first", 3)]);
    fs::create_dir(sandbox.path("flows/more")).expect("a sandbox can be written to");
    sandbox.write("flows/more/second.toml", workflow("true"));
    await_registered(&sandbox, &[("first", 3), ("second", 1)]);
    fs::remove_file(sandbox.path("flows/first.toml")).expect("a file can be removed");
    await_registered(&sandbox, &[("second", 1)]);
    await_word(&mut service, "workflow deactivated: its file was removed");
    sandbox.write("flows/first.toml", workflow("echo 4"));
    await_registered(&sandbox, &[("first", 4), ("second", 1)]);
    sandbox.write("flows/first.toml", format!("name = \"other\"\n{}", workflow("echo 4")));
    await_registered(&sandbox, &[("other", 1), ("second", 1)]);
    await_word(&mut service, "workflow deactivated: its file has another name now");
}

#[test]
fn an_invalid_file_is_reported_once_and_the_last_valid_version_stays_active() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("flows")).expect("a sandbox can be written to");
    sandbox.write("flows/good.toml", workflow("true"));
    let mut service = serve(&sandbox);
    sandbox.write("flows/good.toml", "[jobs.only]\nrnu = 'true'\n");
    await_word(&mut service, "unknown key `rnu` in a job");
    await_word(&mut service, "version 1 of workflow `good` stays active");
    // Another file changes: the folder is read again, and the invalid file is not reported again.
    sandbox.write("flows/other.toml", workflow("true"));
    await_registered(&sandbox, &[("good", 1), ("other", 1)]);
    assert_eq!(service.stderr_so_far().matches("unknown key `rnu`").count(), 1);
    // The file is saved again and still invalid: it is reported again.
    sandbox.write("flows/good.toml", "[jobs.only]\nrnu = 'false'\n");
    eventually("another word", || {
        (service.stderr_so_far().matches("unknown key `rnu`").count() == 2).then_some(())
    });
    sandbox.write("flows/good.toml", workflow("false"));
    await_registered(&sandbox, &[("good", 2), ("other", 1)]);
}

#[test]
fn two_files_with_the_same_name_leave_the_workflow_unchanged() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("flows")).expect("a sandbox can be written to");
    sandbox.write("flows/one.toml", format!("name = 'same'\n{}", workflow("true")));
    let mut service = serve(&sandbox);
    sandbox.write("flows/two.toml", format!("name = 'same'\n{}", workflow("false")));
    await_word(&mut service, "flows/one.toml and flows/two.toml both define the workflow `same`");
    await_word(&mut service, "version 1 of workflow `same` stays active");
    fs::remove_file(sandbox.path("flows/one.toml")).expect("a file can be removed");
    await_registered(&sandbox, &[("same", 2)]);
}

#[test]
fn a_missing_folder_deactivates_nothing() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("flows")).expect("a sandbox can be written to");
    sandbox.write("flows/kept.toml", workflow("true"));
    let mut service = serve(&sandbox);
    fs::rename(sandbox.path("flows"), sandbox.path("away")).expect("a folder can be moved");
    await_word(&mut service, "cannot be read");
    await_registered(&sandbox, &[("kept", 1)]);
    sandbox.write("away/kept.toml", workflow("false"));
    fs::rename(sandbox.path("away"), sandbox.path("flows")).expect("a folder can be moved");
    await_registered(&sandbox, &[("kept", 2)]);
}

#[test]
fn changes_without_a_service_are_found_at_the_start() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("flows")).expect("a sandbox can be written to");
    for name in ["changed", "removed", "kept"] {
        sandbox.write(&format!("flows/{name}.toml"), workflow("true"));
    }
    sandbox.write("elsewhere.toml", workflow("true"));
    sandbox.run(&["apply", "flows", "elsewhere.toml"]).exited(0);
    sandbox.write("flows/changed.toml", workflow("false"));
    fs::remove_file(sandbox.path("flows/removed.toml")).expect("a file can be removed");
    let _service = serve(&sandbox);
    await_registered(&sandbox, &[("changed", 2), ("elsewhere", 1), ("kept", 1)]);
}

#[test]
fn a_replaced_volume_is_followed_and_its_jobs_start_in_a_stable_folder() {
    let sandbox = Sandbox::new();
    for (release, script) in [("..first", "echo first; pwd"), ("..second", "echo second; pwd")] {
        fs::create_dir_all(sandbox.path("flows").join(release)).expect("a sandbox can be written to");
        sandbox.write(&format!("flows/{release}/linked.toml"), workflow(script));
    }
    let link = |target: &str, name: &str| {
        std::os::unix::fs::symlink(target, sandbox.path("flows").join(name)).expect("a link can be made");
    };
    link("..first", "..data");
    link("..data/linked.toml", "linked.toml");
    let _service = serve(&sandbox);
    await_registered(&sandbox, &[("linked", 1)]);
    link("..second", "..new");
    fs::rename(sandbox.path("flows/..new"), sandbox.path("flows/..data")).expect("a link can be moved");
    await_registered(&sandbox, &[("linked", 2)]);
    fs::remove_dir_all(sandbox.path("flows/..first")).expect("a folder can be removed");
    let run = sandbox.run(&["submit", "linked"]).exited(0).stdout;
    sandbox.run(&["watch", run.trim()]).exited(0);
    let logs = sandbox.run(&["logs", run.trim()]).exited(0).stdout;
    assert!(logs.contains("second") && logs.contains("/flows"), "{logs}");
    assert!(!logs.contains(".."), "{logs}");
}
