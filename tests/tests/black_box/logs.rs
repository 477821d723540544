//! Captured output: line by line, in order, with a limit, for any bytes.

use windlass_tests::Sandbox;
use windlass_tests::tables::LogLine;

const LIMIT_BYTES: usize = 1024 * 1024;
const LONGEST_LINE_BYTES: usize = 16 * 1024;

/// Runs a workflow with one script and returns the captured output.
fn captured(sandbox: &Sandbox, script: &str) -> Vec<LogLine> {
    let file = sandbox.write("log.toml", format!("name = \"log\"\n[jobs.only]\nrun = '''\n{script}\n'''\n"));
    sandbox.run(&["run", &file]).exited(0);
    sandbox.tables().log(sandbox.tables().jobs()[0].id)
}

fn of_stream<'a>(log: &'a [LogLine], stream: &str) -> Vec<&'a str> {
    log.iter().filter(|line| line.stream == stream).map(|line| line.text.as_str()).collect()
}

#[test]
fn lines_keep_their_order_stream_and_time() {
    let sandbox = Sandbox::new();
    let log =
        captured(&sandbox, "for i in 1 2 3; do echo out $i; sleep 0.05; echo err $i >&2; sleep 0.05; done");
    let lines: Vec<(&str, &str)> =
        log.iter().map(|line| (line.stream.as_str(), line.text.as_str())).collect();
    let expected = [
        ("stdout", "out 1"),
        ("stderr", "err 1"),
        ("stdout", "out 2"),
        ("stderr", "err 2"),
        ("stdout", "out 3"),
        ("stderr", "err 3"),
    ];
    assert_eq!(lines, expected);
    let spread = log.last().map_or(0, |line| line.at) - log.first().map_or(0, |line| line.at);
    assert!(spread >= 200, "the times are not those at which the lines came: {spread} ms");
    assert!(log.is_sorted_by_key(|line| line.line));
}

#[test]
fn bytes_that_are_not_text_are_harmless() {
    let sandbox = Sandbox::new();
    let log = captured(
        &sandbox,
        r"printf 'bad \377\376 bytes\n'; printf 'nul \000 byte\n'; printf '\033[31mred\033[0m\n'; printf 'no newline'",
    );
    let lines = of_stream(&log, "stdout");
    assert_eq!(lines.len(), 4, "{lines:?}");
    assert!(lines[0].starts_with("bad ") && lines[0].ends_with(" bytes"), "{lines:?}");
    assert!(lines[1].starts_with("nul ") && lines[1].ends_with(" byte"), "{lines:?}");
    assert!(lines[2].contains("red"), "{lines:?}");
    assert_eq!(lines[3], "no newline");

    let shown = sandbox.run(&["logs", "1"]).exited(0).stdout;
    assert!(!shown.contains('\u{1b}'), "an escape code reached a pipe: {shown:?}");
    for text in ["bad ", "red", "no newline"] {
        assert!(shown.contains(text), "{shown}");
    }
}

#[test]
fn an_endless_line_is_cut_into_several() {
    let sandbox = Sandbox::new();
    let log = captured(&sandbox, "head -c 100000 /dev/zero | tr '\\0' x; echo; echo after");
    let lines = of_stream(&log, "stdout");
    assert!(lines.iter().all(|line| line.len() <= LONGEST_LINE_BYTES), "a line is longer than the limit");
    let xs: usize = lines.iter().map(|line| line.bytes().filter(|byte| *byte == b'x').count()).sum();
    assert_eq!(xs, 100_000, "something of the line is missing");
    assert_eq!(lines.last(), Some(&"after"));
}

#[test]
fn ten_mebibytes_are_bounded_with_a_marker() {
    let sandbox = Sandbox::new();
    let log = captured(&sandbox, "seq -f 'line %099.0f' 1 100000; echo the last line");
    let kept: usize = log.iter().filter(|line| line.stream != "engine").map(|line| line.text.len()).sum();
    assert!(kept <= LIMIT_BYTES, "{kept} bytes were kept");
    assert!(kept >= LIMIT_BYTES / 2, "only {kept} bytes were kept");
    let lines = of_stream(&log, "stdout");
    assert_eq!(lines.first(), Some(&format!("line {:099}", 1).as_str()));
    assert_eq!(lines.last(), Some(&"the last line"));
    let markers = of_stream(&log, "engine");
    assert_eq!(markers.len(), 1, "{markers:?}");
    assert!(markers[0].bytes().any(|byte| byte.is_ascii_digit()), "it does not say how much: {markers:?}");
    let position = log.iter().position(|line| line.stream == "engine").unwrap_or(0);
    assert!(position > 0 && position + 1 < log.len(), "the marker is not where the gap is");
}

#[test]
fn output_without_end_does_not_fill_the_memory_or_the_disk() {
    let sandbox = Sandbox::new();
    let file = sandbox.write("log.toml", "name = \"log\"\n[jobs.only]\ntimeout = \"1s\"\nrun = 'yes'\n");
    sandbox.run(&["run", &file]).exited(1);
    let bytes: i64 = sandbox.tables().value("SELECT sum(length(text)) FROM job_logs WHERE stream = 'stdout'");
    assert!(usize::try_from(bytes).is_ok_and(|bytes| bytes <= LIMIT_BYTES), "{bytes} bytes were kept");
}

#[test]
fn logs_can_be_followed_and_chosen() {
    let sandbox = Sandbox::new();
    let file = sandbox.write(
        "two.toml",
        "name = \"two\"\n[jobs.a]\nrun = 'echo from a; exit $((WINDLASS_ATTEMPT == 1))'\n\
         retry = { max_attempts = 2, delay = \"10ms\" }\n[jobs.b]\nneeds = [\"a\"]\nrun = 'echo from b'\n",
    );
    sandbox.run(&["run", &file]).exited(0);
    let of_b = sandbox.run(&["logs", "1", "b"]).exited(0).stdout;
    assert!(of_b.contains("from b") && !of_b.contains("from a"), "{of_b}");
    let followed = sandbox.run(&["logs", "1", "-f"]).exited(0).stdout;
    assert!(followed.contains("from a") && followed.contains("from b"), "{followed}");
    let first = sandbox.run(&["logs", "1", "a", "--attempt", "1", "-o", "jsonl"]).exited(0).stdout;
    let lines: Vec<serde_json::Value> =
        first.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect();
    assert_eq!(lines.len(), 1, "{first}");
    assert_eq!(lines[0]["attempt"], 1);
    assert_eq!(lines[0]["text"], "from a");
}
