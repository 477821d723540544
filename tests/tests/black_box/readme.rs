//! The README shows what the program prints, and the release archive has what the README says.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use windlass_tests::binary::{examples, repository, windlass};
use windlass_tests::{Outcome, Sandbox};

/// Runs its arguments on a new terminal and prints the output. Ends with the exit code of the program.
const ON_A_TERMINAL: &str =
    "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";

/// What stays on a terminal: lines that the program wrote and did not clear. It knows the codes that the program uses for
/// this: up by some lines, and clear all below.
fn screen(written: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for piece in written.replace("\r\n", "\n").split_inclusive('\n') {
        let mut rest = piece;
        while let Some((before, after)) = rest.split_once("\u{1b}[") {
            assert_eq!(before.trim(), "", "a code after text: {piece:?}");
            let end = after.find(|c: char| c.is_ascii_alphabetic()).expect("a code has an end");
            match &after[end..=end] {
                "A" => lines.truncate(lines.len() - after[..end].parse::<usize>().expect("a number")),
                "J" => {}
                other => panic!("an unknown code {other:?} in {piece:?}"),
            }
            rest = &after[end + 1..];
        }
        lines.push(rest.trim_end().trim_start_matches('\r').to_owned());
    }
    lines
}

/// Lines without what differs from run to run: times, commits, and the rows of the table. Jobs that run in parallel end in
/// any order. `…` in the README stands for rows.
fn masked(lines: &[String]) -> Vec<String> {
    let is_row = |line: &str| {
        let mut words = line.split_whitespace();
        matches!(words.next(), Some("author" | "file" | "weekday"))
            && words.next().is_some_and(|word| word.parse::<u64>().is_ok())
    };
    let mask = |word: &str| {
        let is_time =
            word.starts_with(|c: char| c.is_ascii_digit()) && word.trim_end_matches(':').ends_with('s');
        let is_commit = word.len() == 40 && word.chars().all(|c| c.is_ascii_hexdigit());
        match (is_time, is_commit) {
            (true, _) => "TIME".to_owned(),
            (_, true) => "COMMIT".to_owned(),
            (false, false) => word.to_owned(),
        }
    };
    let kept = lines.iter().filter(|line| !is_row(line) && *line != "…");
    let mut masked: Vec<String> =
        kept.map(|line| line.split(' ').map(mask).collect::<Vec<_>>().join(" ")).collect();
    let is_parallel = |line: &String| ["weekdays", "authors", "files"].iter().any(|job| line.contains(job));
    let first = masked.iter().position(is_parallel).expect("jobs in parallel");
    masked[first..first + 3].sort();
    masked
}

#[test]
fn the_first_output_is_what_the_program_prints() {
    let page = fs::read_to_string(repository().join("README.md")).expect("the page");
    assert!(page.contains("run examples/workflows/git-report.toml\n"), "the command of the output");
    let block = page.split("```text\n").nth(1).and_then(|rest| rest.split("```").next()).expect("an output");
    let shown: Vec<String> = block.lines().map(str::to_owned).collect();
    assert!(repository().join(".git").exists(), "this test needs a clone, not an archive");

    let sandbox = Sandbox::new();
    let file = examples().join("git-report.toml");
    let program = windlass().to_string_lossy().into_owned();
    let arguments = ["-c", ON_A_TERMINAL, &program, "run", &file.to_string_lossy()];
    let mut command = sandbox.prepared(Command::new("python3"), &arguments);
    command.env("TERM", "xterm-256color").env("NO_COLOR", "1");
    let written = sandbox.start(command).wait().exited(0).stdout;
    assert_eq!(masked(&shown), masked(&screen(&written)), "{block}\n{written}");
}

#[test]
fn a_screen_keeps_what_was_not_cleared() {
    let written = "one\r\nbar\r\n job\r\n\u{1b}[2A\r\u{1b}[Jtwo\r\nbar\r\n\u{1b}[1A\r\u{1b}[J\r\nend\r\n";
    assert_eq!(screen(written), ["one", "two", "", "end"]);
}

fn release_archive(sandbox: &Sandbox, folder: &Path) -> Outcome {
    fs::create_dir_all(folder).expect("a sandbox can be written to");
    let script = repository().join("scripts/release-archive");
    // The program of these tests is too large to be compressed twice.
    let program = sandbox.write("program", format!("#!/bin/sh\nexec {} \"$@\"\n", windlass().display()));
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("it can be made a program");
    let arguments = ["--binary", &program, &folder.to_string_lossy()];
    sandbox.start(sandbox.prepared(Command::new(script), &arguments)).wait()
}

#[test]
fn the_release_archive_is_the_same_each_time_and_its_program_runs() {
    let sandbox = Sandbox::new();
    let folders = ["first", "second"].map(|name| sandbox.path(name));
    let archives = folders.each_ref().map(|folder| {
        let said = release_archive(&sandbox, folder).exited(0).stdout;
        let path = Path::new(said.trim()).to_owned();
        assert!(path.starts_with(folder), "{said}");
        path
    });
    let sums = folders.each_ref().map(|folder| {
        let name = archives[0].file_name().expect("a name").to_string_lossy().into_owned();
        fs::read_to_string(folder.join(format!("{name}.sha256"))).expect("a sum")
    });
    assert_eq!(sums[0], sums[1], "two archives of the same program");
    let target = sandbox.path("installed");
    fs::create_dir(&target).expect("a sandbox can be written to");
    let (archive, to) = (archives[0].to_string_lossy(), target.to_string_lossy());
    let unpack = ["-xzf", &archive, "--strip-components=1", "-C", &to];
    sandbox.start(sandbox.prepared(Command::new("tar"), &unpack)).wait().exited(0);
    let installed = target.join("bin/windlass");
    let outcome = sandbox.start(sandbox.prepared(Command::new(installed), &["--version"])).wait().exited(0);
    assert!(outcome.stdout.starts_with("windlass "), "{}", outcome.stdout);
    let unit = fs::read_to_string(target.join("lib/systemd/system/windlass.service")).expect("the unit");
    assert!(unit.contains("ExecStart=/usr/local/bin/windlass serve"), "{unit}");
    for file in [
        "share/bash-completion/completions/windlass",
        "share/zsh/site-functions/_windlass",
        "share/fish/vendor_completions.d/windlass.fish",
        "share/man/man1/windlass.1",
        "share/man/man1/windlass-schedule-add.1",
        "share/doc/windlass/docs/guide/quickstart.md",
        "share/doc/windlass/examples/workflows/chain.toml",
        "share/doc/windlass/LICENSE-MIT",
        "share/doc/windlass/contrib/Containerfile",
    ] {
        let length = fs::metadata(target.join(file)).map(|found| found.len()).unwrap_or_default();
        assert!(length > 0, "{file} is missing or empty");
    }
}

#[test]
fn the_release_archive_refuses_what_it_does_not_know() {
    let sandbox = Sandbox::new();
    let script = repository().join("scripts/release-archive");
    for (arguments, said) in [(&["--fast"][..], "unknown option --fast"), (&["/no/such"], "is no folder")] {
        let outcome = sandbox.start(sandbox.prepared(Command::new(&script), arguments)).wait().exited(2);
        assert!(outcome.stderr.contains(said), "{}", outcome.stderr);
    }
}
