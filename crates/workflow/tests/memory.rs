//! The parser needs a bounded amount of memory for every file. Each file is parsed in a separate process, and the kernel
//! reports the peak of that process.
#![allow(clippy::unwrap_used)]

use std::fmt::Write;
use std::process::Command;

use windlass_workflow::{Source, limits, parse};

const PEAK_MAX_KIB: u64 = 256 * 1024;
/// The variable with the name of the file that the process parses.
const FILE_VARIABLE: &str = "WINDLASS_TEST_MEMORY_FILE";

/// `part`, repeated up to a size.
fn filled(start: &str, part: &str, bytes: usize, end: &str) -> String {
    let count = (bytes - start.len() - end.len()) / part.len();
    let mut text = part.repeat(count);
    text.insert_str(0, start);
    text.push_str(end);
    text
}

/// A file in which job i needs the jobs in the i-th list. The text is written in place, because the memory of the test counts
/// too.
fn graph_in_json(needs: impl Iterator<Item = Vec<usize>>) -> String {
    let mut text = String::with_capacity(9 << 20);
    text.push_str("{\"jobs\":{");
    for (index, needs) in needs.enumerate() {
        let comma = if index == 0 { "" } else { "," };
        write!(text, "{comma}\"j{index}\":{{\"run\":\"x\"").unwrap();
        for (at, need) in needs.iter().enumerate() {
            write!(text, "{}\"j{need}\"", if at == 0 { ",\"needs\":[" } else { "," }).unwrap();
        }
        text.push_str(if needs.is_empty() { "}" } else { "]}" });
    }
    text.push_str("}}");
    text
}

fn jobs_in_toml(jobs: usize) -> String {
    let mut text = String::with_capacity(9 << 20);
    (0..jobs).for_each(|job| write!(text, "[jobs.j{job}]\nrun='x'\n").unwrap());
    text
}

fn file(name: &str) -> (&'static str, String) {
    // As many repetitions as the limit allows.
    let most = |start: &str, part: &str, weight: usize, end: &str| {
        format!("{start}{}{end}", part.repeat((limits::PARTS - 100) / weight))
    };
    match name {
        "lists in TOML" => ("a.toml", filled("a = [", "[],", 44 << 20, "[]]")),
        "tables in TOML" => ("a.toml", filled("a = [", "{},", 44 << 20, "{}]")),
        "keys in TOML" => ("a.toml", filled("", "a.b=1\n", 44 << 20, "")),
        "lists in JSON" => ("a.json", filled("{\"a\": [", "[],", 44 << 20, "[]]}")),
        "numbers in JSON" => ("a.json", filled("{\"a\": [", "1,", 44 << 20, "1]}")),
        "as many lists in TOML" => ("a.toml", most("a = [", "[1],", 12, "[]]")),
        "as many numbers in TOML" => ("a.toml", most("a = [", "1,", 2, "1]")),
        "as many tables in TOML" => ("a.toml", most("a = [", "{a=1},", 22, "{}]")),
        "as many headers in TOML" => ("a.toml", most("", "[[a]]\nb=1\n", 26, "")),
        "as many lists in JSON" => ("a.json", most("{\"a\": [", "[1],", 5, "[]]}")),
        "as many numbers in JSON" => ("a.json", most("{\"a\": [", "1,", 2, "1]}")),
        "as many objects in JSON" => ("a.json", most("{\"a\": [", "{\"a\":1},", 10, "{}]}")),
        "as many numbers in YAML" => ("a.yaml", filled("a: [", "1,", 44 << 20, "1]")),
        "as many lists in YAML" => ("a.yaml", most("a:\n", "- [1]\n", 6, "- []\n")),
        "as many objects in YAML" => ("a.yaml", most("a:\n", "- a: 1\n", 12, "- {}\n")),
        "anchors in YAML" => ("a.yaml", most("a:\n", "- &a [x]\n", 6, "- []\n")),
        "aliases in YAML" => ("a.yaml", most("b: &a [x]\na:\n", "- *a\n", 2, "- []\n")),
        "a long text in YAML" => ("a.yaml", filled("a: |\n", "  x\n", 44 << 20, "\n")),
        "all jobs in JSON" => ("a.json", graph_in_json((0..limits::JOBS).map(|_| Vec::new()))),
        "as many jobs in TOML" => ("a.toml", jobs_in_toml((limits::PARTS - 100) / 32)),
        "a long chain in JSON" => {
            let jobs = (limits::PARTS - 100) / 20;
            ("a.json", graph_in_json((0..jobs).map(|job| job.checked_sub(1).into_iter().collect())))
        }
        "all edges in JSON" => {
            let needs = |job: usize| if job < 1_000 { Vec::new() } else { (0..1_000).collect() };
            ("a.json", graph_in_json((0..2_000).map(needs)))
        }
        other => panic!("there is no file {other}"),
    }
}

/// The process that parses one of the files. It prints its peak in KiB.
#[test]
#[ignore = "the other test starts it"]
fn reader() {
    let name = std::env::var(FILE_VARIABLE).unwrap();
    let (path, text) = file(&name);
    let bytes = text.len();
    let read = Source::new(path, text.into_bytes()).and_then(|source| parse(&source));
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let verdict = if read.is_ok() { "accepted" } else { "refused" };
    println!("\nPEAK {} {verdict} {bytes}", peak.trim().trim_end_matches(" kB"));
}

#[test]
fn no_file_needs_more_memory_than_the_limit() {
    let mut too_large = Vec::new();
    for (name, is_accepted) in [
        ("lists in TOML", false),
        ("tables in TOML", false),
        ("keys in TOML", false),
        ("lists in JSON", false),
        ("numbers in JSON", false),
        ("as many lists in TOML", false),
        ("as many numbers in TOML", false),
        ("as many tables in TOML", false),
        ("as many headers in TOML", false),
        ("as many lists in JSON", false),
        ("as many numbers in JSON", false),
        ("as many objects in JSON", false),
        ("as many numbers in YAML", false),
        ("as many lists in YAML", false),
        ("as many objects in YAML", false),
        ("anchors in YAML", false),
        ("aliases in YAML", false),
        ("a long text in YAML", false),
        ("all jobs in JSON", true),
        ("as many jobs in TOML", true),
        ("a long chain in JSON", true),
        ("all edges in JSON", true),
    ] {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "reader", "--ignored", "--nocapture", "--test-threads", "1"])
            .env(FILE_VARIABLE, name)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&child.stdout).into_owned();
        let line = said.lines().find_map(|line| line.strip_prefix("PEAK "));
        let line =
            line.unwrap_or_else(|| panic!("{name}: {said}\n{}", String::from_utf8_lossy(&child.stderr)));
        println!("{name}: {line}");
        let peak_kib: u64 = line.split(' ').next().unwrap().parse().unwrap();
        if peak_kib > PEAK_MAX_KIB || line.contains("accepted") != is_accepted {
            too_large.push(format!("{name}: {line}"));
        }
    }
    assert!(
        too_large.is_empty(),
        "over {PEAK_MAX_KIB} KiB, or accepted or refused against expectation:\n{}",
        too_large.join("\n")
    );
}
