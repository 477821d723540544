//! A file at a limit is accepted. A file over the limit is refused, and the message names the limit.
#![allow(clippy::unwrap_used)]

use windlass_workflow::{Source, limits, parse};

/// The report on a file. Empty if the file is valid.
fn messages(path: &str, text: String) -> String {
    match Source::new(path, text.into()).and_then(|source| parse(&source)) {
        Ok(_) => String::new(),
        Err(report) => report.to_string(),
    }
}

fn assert_limit(make: impl Fn(usize) -> String, limit: usize, reason: &str) {
    assert_eq!(messages("a.toml", make(limit)), "", "{limit} is allowed");
    let text = messages("a.toml", make(limit + 1));
    assert!(text.contains(reason), "{reason}: {}", text.chars().take(500).collect::<String>());
}

fn job_with(line: &str) -> String {
    format!("[jobs.a]\nrun = 'x'\n{line}\n")
}

fn table(entries: usize, entry: impl Fn(usize) -> String) -> String {
    (0..entries).map(entry).collect()
}

#[test]
fn jobs() {
    let json = |count: usize| {
        let jobs: Vec<String> = (0..count).map(|job| format!("\"j{job}\":{{\"run\":\"x\"}}")).collect();
        format!("{{\"jobs\":{{{}}}}}", jobs.join(","))
    };
    assert_eq!(messages("a.json", json(limits::JOBS)), "");
    let text = messages("a.json", json(limits::JOBS + 1));
    assert!(text.contains("200001 jobs") && text.contains("the limit is 200000"), "{text}");
}

#[test]
fn edges() {
    // 1,000 jobs that each need the same 1,000 jobs are as many edges as the limit allows.
    let json = |needs: usize| {
        let first = (0..1_000).map(|job| format!("\"a{job}\":{{\"run\":\"x\"}}"));
        let names: Vec<String> = (0..1_000).map(|job| format!("\"a{job}\"")).collect();
        let second =
            (0..1_000).map(|job| format!("\"b{job}\":{{\"run\":\"x\",\"needs\":[{}]}}", names.join(",")));
        let more = (0..needs).map(|job| format!("\"c{job}\":{{\"run\":\"x\",\"needs\":[\"a0\"]}}"));
        let jobs: Vec<String> = first.chain(second).chain(more).collect();
        format!("{{\"jobs\":{{{}}}}}", jobs.join(","))
    };
    assert_eq!(messages("a.json", json(0)), "");
    let text = messages("a.json", json(1));
    assert!(text.contains("1000001 entries in `needs`") && text.contains("the limit is 1000000"), "{text}");
}

#[test]
fn names() {
    let long = |length: usize| "x".repeat(length);
    let reason = "the limit is 200";
    assert_limit(|length| format!("[jobs.{}]\nrun = 'x'\n", long(length)), limits::NAME_CHARS, reason);
    let param = |length: usize| format!("[params]\n{} = {{}}\n[jobs.a]\nrun = 'x'\n", long(length));
    assert_limit(param, limits::NAME_CHARS, reason);
    assert_limit(|length| job_with(&format!("queue = '{}'", long(length))), limits::NAME_CHARS, reason);
    assert_limit(|length| job_with(&format!("env.{} = 1", long(length))), limits::NAME_CHARS, reason);
    let workflow = |length: usize| format!("name = '{}'\n{}", long(length), job_with(""));
    assert_limit(workflow, limits::NAME_CHARS, "longer than 200 characters");
}

#[test]
fn entries_of_lists_and_tables() {
    let params = |count: usize| {
        format!("[params]\n{}[jobs.a]\nrun = 'x'\n", table(count, |at| format!("p{at} = {{}}\n")))
    };
    assert_limit(params, limits::PARAMS, "1001; the limit is 1000");
    let env =
        |count: usize| format!("{}[jobs.a.env]\n{}", job_with(""), table(count, |at| format!("e{at} = 1\n")));
    assert_limit(env, limits::ENV_ENTRIES, "1001; the limit is 1000");
    let command = |count: usize| format!("[jobs.a]\ncommand = [{}]\n", table(count, |_| "'x',".to_owned()));
    assert_limit(command, limits::COMMAND_ITEMS, "1001; the limit is 1000");
    let shell = |count: usize| job_with(&format!("shell = [{}]", table(count, |_| "'x',".to_owned())));
    assert_limit(shell, limits::COMMAND_ITEMS, "1001; the limit is 1000");
    let choices = |count: usize| {
        let choices = table(count, |at| format!("'c{at}',"));
        format!("[params]\np = {{ choices = [{choices}] }}\n[jobs.a]\nrun = 'x'\n")
    };
    assert_limit(choices, limits::CHOICES, "1001; the limit is 1000");
}

fn schedule_with(lines: &str) -> String {
    format!("[[schedules]]\n{lines}\n{}", job_with(""))
}

#[test]
fn schedules() {
    let schedules = |count: usize| {
        let all = table(count, |at| format!("[[schedules]]\nname = 's{at}'\nevery = '1h'\n"));
        format!("{all}{}", job_with(""))
    };
    assert_limit(schedules, limits::SCHEDULES, "101; the limit is 100");
    let cron = |length: usize| {
        let fields = "0 0 * * *";
        schedule_with(&format!("cron = '{fields}{}'", " ".repeat(length - fields.len())))
    };
    assert_limit(cron, limits::CRON_BYTES, "501 bytes; the limit is 500");
    let catchup =
        |most: usize| schedule_with(&format!("every = '1h'\ncatchup = 'all'\ncatchup_max = {most}"));
    assert_limit(catchup, usize::try_from(limits::CATCHUP).unwrap(), "between 1 and 100000");
    let name = |length: usize| schedule_with(&format!("every = '1h'\nname = '{}'", "x".repeat(length)));
    assert_limit(name, limits::NAME_CHARS, "the limit is 200");
    let days = usize::try_from(limits::DURATION_MS).unwrap() / 86_400_000;
    assert_limit(|days| schedule_with(&format!("every = '{days}d'")), days, "the longest duration is 3650d");
}

#[test]
fn capabilities_versions_and_concurrency() {
    let requires =
        |count: usize| job_with(&format!("requires = [{}]", table(count, |at| format!("'c{at}',"))));
    assert_limit(requires, limits::CAPABILITIES, "33; the limit is 32");
    let capability = |length: usize| job_with(&format!("requires = '{}'", "x".repeat(length)));
    assert_limit(capability, limits::NAME_CHARS, "the limit is 200");
    let version = |version: usize| job_with(&format!("code_version = {version}"));
    assert_limit(version, usize::try_from(limits::CODE_VERSION).unwrap(), "between 0 and 9007199254740991");
    let limit = |limit: usize| job_with(&format!("concurrency = {{ key = 'k', limit = {limit} }}"));
    assert_limit(limit, usize::try_from(limits::CONCURRENCY).unwrap(), "between 1 and 1000");
}

#[test]
fn texts() {
    let script = |length: usize| format!("[jobs.a]\nrun = '{}'\n", "x".repeat(length));
    assert_limit(script, limits::SCRIPT_BYTES, "the limit is 1024 KiB");
    let value = |length: usize| job_with(&format!("env = {{ A = '{}' }}", "x".repeat(length)));
    assert_limit(value, limits::TEXT_BYTES, "the limit is 128 KiB");
    let template = |length: usize| {
        let rest = "x".repeat(length - "{{ run.id }}".len());
        job_with(&format!("env = {{ A = '{{{{ run.id }}}}{rest}' }}"))
    };
    assert_limit(template, limits::TEMPLATE_BYTES, "64 KiB");
}

#[test]
fn durations() {
    let days = usize::try_from(limits::DURATION_MS).unwrap() / 86_400_000;
    assert_limit(|days| job_with(&format!("timeout = '{days}d'")), days, "the longest duration is 3650d");
}

#[test]
fn indirect_outputs() {
    let json = |count: usize| {
        let mut jobs: Vec<String> = (0..count).map(|job| format!("\"a{job}\":{{\"run\":\"x\"}}")).collect();
        let names: Vec<String> = (0..count).map(|job| format!("\"a{job}\"")).collect();
        jobs.push(format!("\"gate\":{{\"run\":\"x\",\"needs\":[{}]}}", names.join(",")));
        jobs.extend((0..count).map(|job| {
            format!(
                "\"b{job}\":{{\"command\":[\"x\",\"{{{{ jobs.a{job}.output }}}}\"],\"needs\":[\"gate\"]}}"
            )
        }));
        format!("{{\"jobs\":{{{}}}}}", jobs.join(","))
    };
    assert_eq!(messages("a.json", json(limits::INDIRECT_OUTPUTS)), "");
    let text = messages("a.json", json(limits::INDIRECT_OUTPUTS + 1));
    assert!(text.contains("outputs of 20001 jobs") && text.contains("the limit is 20000"), "{text}");
}

#[test]
fn cycles_shown() {
    let cycles: String = (0..50)
        .map(|at| {
            format!("[jobs.a{at}]\nrun = 'x'\nneeds = 'b{at}'\n[jobs.b{at}]\nrun = 'x'\nneeds = 'a{at}'\n")
        })
        .collect();
    let text = messages("a.toml", cycles);
    assert_eq!(text.matches("in a cycle").count(), limits::CYCLES_SHOWN);
}

#[test]
fn the_message_about_a_cycle_of_100_000_jobs_is_short() {
    let count = 100_000;
    let jobs: Vec<String> = (0..count)
        .map(|job| format!("\"j{job}\":{{\"run\":\"x\",\"needs\":[\"j{}\"]}}", (job + 1) % count))
        .collect();
    let text = messages("a.json", format!("{{\"jobs\":{{{}}}}}", jobs.join(",")));
    assert!(text.contains("j0 -> j1 -> j2") && text.contains("(99988 more) -> j0"), "{text}");
    assert!(text.len() < 2_000);
}
