//! Artifacts and inputs: what is kept and handed on, and what a crash in the middle leaves.

use windlass_tests::{Sandbox, eventually};

const WORKFLOW: &str = r#"
name = "parts"
[params]
parts = { type = "list", default = ["x", "y", "z"] }
[jobs.split]
for_each = "params.parts"
dir = "work"
run = 'mkdir -p out; echo "$WINDLASS_ITEM" > "out/$WINDLASS_ITEM.txt"; truncate -s 60M "out/$WINDLASS_ITEM.big"'
artifacts = [{ glob = "out/{{ item }}.*", required = true }]
[jobs.merge]
needs = ["split"]
dir = "merged"
inputs = { "in/" = "jobs.split/out/*.txt", "first" = "jobs.split/out/x.txt" }
run = 'cat in/out/*.txt first > all'
artifacts = "all"
"#;

/// The contents are copied for a while after each process has ended, and the engine is killed then.
#[test]
fn artifacts_survive_a_kill_while_they_are_copied() {
    let sandbox = Sandbox::new();
    for folder in ["work", "merged"] {
        std::fs::create_dir(sandbox.path(folder)).expect("a folder can be made");
    }
    let file = sandbox.write("parts.toml", WORKFLOW);
    let mut engine = sandbox.spawn(&["run", &file]);
    let root = sandbox.root().to_owned();
    eventually("a content is being written", || {
        let folders = [root.join("windlass.db.files"), root.join("files")];
        let is_written = |path: std::path::PathBuf| {
            path.join("new").read_dir().is_ok_and(|mut entries| entries.next().is_some())
        };
        let found = folders.into_iter().any(|folder| {
            let instances = folder.read_dir().into_iter().flatten().flatten().map(|entry| entry.path());
            is_written(folder.clone()) || instances.into_iter().any(is_written)
        });
        (found || !engine.is_running()).then_some(())
    });
    engine.kill_9();
    let counted = sandbox.tables().value::<i64>("SELECT count(*) FROM artifacts");
    assert!(counted < 7, "it was killed before the end");
    sandbox.run(&["resume"]).exited(0);
    let list = sandbox.run(&["artifacts", "1", "-o", "json"]).exited(0).json();
    let list: Vec<String> = list
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| format!("{} {} {}", one["job"], one["path"], one["bytes"]).replace('"', ""))
        .collect();
    let of = |item: &str, index: usize| {
        [format!("split[{index}] out/{item}.big {}", 60 << 20), format!("split[{index}] out/{item}.txt 2")]
    };
    let expected: Vec<String> = std::iter::once("merge all 8".to_owned())
        .chain(["x", "y", "z"].iter().enumerate().flat_map(|(index, item)| of(item, index)))
        .collect();
    assert_eq!(list, expected);
    let all = sandbox.run(&["artifacts", "1", "merge", "all", "--to", "-"]).exited(0);
    assert_eq!(all.stdout, "x\ny\nz\nx\n");
    sandbox.run(&["db", "check"]).exited(0);
}

#[test]
fn what_is_not_there_or_not_a_file_is_said() {
    let sandbox = Sandbox::new();
    sandbox.write("secret", "s");
    std::fs::create_dir(sandbox.path("work")).expect("a folder can be made");
    let file = sandbox.write(
        "a.toml",
        "name = 'a'\n[jobs.a]\ndir = 'work'\nrun = 'ln -sf ../secret away; ln -sf ../secret near; echo 1 > one; mkfifo fifo || true'\n\
         artifacts = ['*', 'none']\n[jobs.b]\nneeds = ['a']\nartifacts = [{ glob = 'none', required = true }]\nrun = 'true'\n\
         allow_failure = true\n[jobs.c]\nneeds = ['a']\ninputs = { x = 'jobs.a/{{ params.path }}' }\nrun = 'cat x'\n\
         allow_failure = true\n[params]\npath = { default = 'two' }\n",
    );
    sandbox.run(&["run", &file]).exited(0);
    let jobs = sandbox.tables().jobs_of(1);
    let error = |job: &str| jobs[job].last_error.clone().unwrap_or_default();
    assert_eq!(error("b"), "no file matches `none` of `artifacts`");
    assert_eq!(error("c"), "the input `x`: no artifact of job `a` matches `two`; it has one");
    let log = sandbox.run(&["logs", "1", "a"]).exited(0).stdout;
    for line in [
        "no file matches `none` of `artifacts`",
        "away is not kept: it is a link that leads out of the folder",
        "fifo is not kept: it is a FIFO (named pipe)",
    ] {
        assert!(log.contains(line), "{log}");
    }
    sandbox.run(&["artifacts", "1", "a", "two", "--to", "-"]).exited(5);
    sandbox.run(&["artifacts", "1", "z"]).exited(5);
    sandbox.run(&["artifacts", "1", "a", "one", "--to", "copy"]).exited(0);
    assert_eq!(sandbox.read("copy"), "1\n");
}

/// The pattern matches the files of the database, which must not be opened.
#[test]
fn files_of_the_database_are_never_kept_or_replaced() {
    let sandbox = Sandbox::new();
    let file = sandbox.write(
        "a.toml",
        "name = 'a'\n[jobs.a]\nrun = 'echo 1 > one'\nartifacts = ['*.db*', 'one']\n\
         [jobs.b]\nneeds = ['a']\ninputs = { 'windlass.db' = 'jobs.a/one' }\nrun = 'true'\n",
    );
    let database = sandbox.path("windlass.db");
    let mut command = sandbox.command(&["run", &file]);
    command.env("WINDLASS_DB", &database);
    sandbox.start(command).wait().exited(1);
    let with_database = |arguments: &[&str]| {
        let mut command = sandbox.command(arguments);
        command.env("WINDLASS_DB", &database);
        sandbox.start(command).wait()
    };
    let list = with_database(&["artifacts", "1", "-o", "json"]).exited(0).json();
    let paths: Vec<&str> =
        list.as_array().expect("a list").iter().filter_map(|one| one["path"].as_str()).collect();
    assert_eq!(paths, ["one"]);
    let why = with_database(&["inspect", "1/b", "-o", "json"]).exited(0).json();
    assert!(
        why["last_error"].as_str().is_some_and(|error| error.contains("this file belongs to the database")),
        "{why}"
    );
    with_database(&["db", "check"]).exited(0);
}

#[test]
fn a_backup_a_copy_and_a_restored_database_have_the_contents() {
    let sandbox = Sandbox::new();
    let file = sandbox.write("a.toml", "name = 'a'\n[jobs.a]\nrun = 'echo 1 > one'\nartifacts = 'one'\n");
    let of_file = |database: &str, arguments: &[&str]| {
        let mut command = sandbox.command(arguments);
        command.env("WINDLASS_DB", sandbox.path(database));
        sandbox.start(command).wait().exited(0)
    };
    let get = |database| of_file(database, &["artifacts", "1", "a", "one", "--to", "-"]).stdout;
    of_file("first.db", &["run", &file]);
    of_file("first.db", &["db", "backup", "backup.db"]);
    assert_eq!(get("backup.db"), "1\n");
    of_file("first.db", &["db", "copy", "backup.db", "copy.db"]);
    assert_eq!(get("copy.db"), "1\n");
    of_file("restored.db", &["db", "restore", "backup.db"]);
    assert_eq!(get("restored.db"), "1\n");
    // To the database of the test, which may be on a server.
    sandbox.run(&["db", "copy", "backup.db", &sandbox.database().address()]).exited(0);
    assert_eq!(sandbox.run(&["artifacts", "1", "a", "one", "--to", "-"]).exited(0).stdout, "1\n");
}
