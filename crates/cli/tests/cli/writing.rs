//! `init`, `fmt` and `import`: verbs that write workflow files.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::support::Bench;

#[test]
fn a_first_file_is_valid_formatted_and_runs() {
    let bench = Bench::new();
    bench
        .windlass(&["init", "nightly"])
        .code(0)
        .says(&["nightly.toml"])
        .tells(&["windlass run nightly.toml"]);
    bench.windlass(&["fmt", "--check", "nightly.toml"]).code(0);
    let text = fs::read_to_string(bench.path("nightly.toml")).unwrap();
    let schema = text.lines().next().unwrap().strip_prefix("#:schema ./").unwrap();
    let written = fs::read_to_string(bench.path(schema)).unwrap();
    assert_eq!(written, bench.windlass(&["schema"]).code(0).stdout, "the named schema is there");
    bench.windlass(&["apply", "."]).code(0);
    bench.windlass(&["run", "nightly.toml"]).code(0).tells(&["run 1 successful"]);
    bench.windlass(&["init", "nightly.toml"]).fails(2, &["nightly.toml exists already", "another name"]);
    bench.windlass(&["init", "a/b"]).fails(2, &["letters, digits", "try: windlass init b"]);
    // That file would be read as the configuration by every verb.
    bench.windlass(&["init", "windlass"]).fails(2, &["is the configuration"]);
    let serve = "windlass serve --workflows .";
    assert!(text.contains(&format!("`{serve}`")), "{text}");
    let words: Vec<&str> = serve.split(' ').skip(1).chain(["--check"]).collect();
    bench.windlass(&words).code(0);
}

#[test]
fn a_file_is_formatted_in_place_and_keeps_its_permissions() {
    let bench = Bench::new();
    bench.write("a.toml", "name='a' # its name\n[jobs.a]\nrun=\"true\"\n");
    bench.write("b.toml", "name = 1 2\n");
    let path = bench.folder().join("a.toml");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let outcome = bench.windlass(&["fmt", "--check", "a.toml"]);
    outcome.code(1);
    assert_eq!(outcome.stdout, "a.toml\n", "only the names are data");
    bench.windlass(&["fmt", "b.toml", "a.toml"]).code(2).tells(&["b.toml:1:", "formatted: a.toml"]);
    assert_eq!(fs::read_to_string(&path).unwrap(), "name = \"a\"  # its name\n\n[jobs.a]\nrun = \"true\"\n");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    bench.windlass(&["fmt", "--check", "a.toml"]).code(0);
    let left = fs::read_dir(bench.folder()).unwrap().count();
    assert_eq!(left, 2, "no temporary file is left");
}

#[test]
fn a_link_to_a_file_stays_a_link() {
    let bench = Bench::new();
    bench.write("a.toml", "name='a'");
    std::os::unix::fs::symlink("a.toml", bench.folder().join("link.toml")).unwrap();
    bench.windlass(&["fmt", "link.toml"]).code(0);
    assert_eq!(fs::read_to_string(bench.folder().join("a.toml")).unwrap(), "name = \"a\"\n");
    assert!(fs::symlink_metadata(bench.folder().join("link.toml")).unwrap().is_symlink());
}

#[test]
fn a_crontab_becomes_a_folder_of_workflows() {
    let bench = Bench::new();
    bench
        .write("crontab", "MAILTO=ann\n30 2 * * * /opt/backup.sh\n@reboot /opt/start.sh\n*/5 * * * * sync\n");
    let import = ["import", "crontab", "crontab", "--timezone", "Europe/Berlin"];
    bench.windlass(&import).fails(2, &["2 workflows", "--to"]);
    let to = [&import[..], &["--to", "flows"]].concat();
    bench.windlass(&to).code(0).tells(&["line 1: MAILTO", "line 3: `@reboot`", "written: flows/backup.toml"]);
    bench.windlass(&["validate", "flows/backup.toml", "flows/sync.toml"]).code(0);
    let strict = [&to[..], &["--strict"]].concat();
    bench.windlass(&strict).fails(2, &["flows/backup.toml exists already", "nothing was written"]);
    let text = fs::read_to_string(bench.folder().join("flows/backup.toml")).unwrap();
    assert!(text.contains("timezone = \"Europe/Berlin\""), "{text}");
    let strict = [&import[..], &["--to", "others", "--strict"]].concat();
    bench.windlass(&strict).code(2).tells(&["2 things were left out"]);
    bench.write("single", "0 0 1 1 * root a\n");
    let single = ["import", "crontab", "single", "--system", "--timezone", "UTC"];
    bench.windlass(&single).code(0).says(&["name = \"a\""]).tells(&["line 1: the user root"]);
}

const DAGU: &str = "\
name: etl
params: 2026 MODE=full
schedule: \"0 2 * * *\"
logDir: /var/log/etl
steps:
  - name: load
    command: load $1
    output: ROWS
  - name: report
    command: echo \"$MODE ${ROWS}\"
    depends: load
    signalOnStop: SIGINT
";

#[test]
fn a_file_of_dagu_becomes_a_workflow() {
    let bench = Bench::new();
    bench.write("etl.yaml", DAGU);
    let import = ["import", "dagu", "etl.yaml", "--timezone", "Europe/Berlin"];
    let outcome = bench.windlass(&import);
    outcome.code(0).tells(&["line 4: `logDir: /var/log/etl`", "line 12: `signalOnStop: SIGINT`"]);
    assert!(!outcome.stdout.contains("line 4"), "only the file is data");
    let to = [&import[..], &["--to", "etl.toml"]].concat();
    bench.windlass(&to).code(0).tells(&["written: etl.toml"]);
    let text = fs::read_to_string(bench.path("etl.toml")).unwrap();
    assert_eq!(text, outcome.stdout);
    assert!(text.contains("[jobs.report]\n# Not carried over: `signalOnStop: SIGINT`"), "{text}");
    assert!(text.contains("timezone = \"Europe/Berlin\""), "{text}");
    bench.windlass(&["validate", "etl.toml"]).code(0);
    bench.windlass(&to).fails(2, &["etl.toml exists already", "nothing was written"]);
    let strict = [&import[..], &["--strict"]].concat();
    let outcome = bench.windlass(&strict);
    outcome.code(2).tells(&["2 things were left out"]);
    assert_eq!(outcome.stdout, text, "the file is printed all the same");
}

#[test]
fn what_is_no_file_of_dagu_is_refused_with_its_place() {
    let bench = Bench::new();
    bench.write("broken.yaml", "steps:\n  - name: a\n    command: echo \"a: b\"\n");
    bench.windlass(&["import", "dagu", "broken.yaml"]).fails(2, &["not valid YAML", "broken.yaml:3:21"]);
    bench.write("later.yaml", "steps:\n  - echo a\n---\nsteps: [\n");
    bench.windlass(&["import", "dagu", "later.yaml"]).fails(2, &["not valid YAML", "later.yaml:5:1"]);
    bench.write("other.yaml", "services:\n  db: {}\n");
    let refused = bench.windlass(&["import", "dagu", "other.yaml", "--to", "other.toml"]);
    refused.fails(2, &["the file has no steps", "other.yaml:1:1", "a list `steps`"]);
    assert!(!bench.path("other.toml").exists());
}
