//! Measures the pure parts: parsing and planning a workflow, rendering templates, and listing occurrences.
//!
//! `cargo bench -p windlass-workflow` runs all, `cargo bench -p windlass-workflow -- templates` one of them. `windlass bench`
//! measures the parts that need a database.
#![allow(clippy::unwrap_used, missing_docs)]

use divan::{Bencher, black_box};
use serde_json::{Value, json};
use windlass_workflow::model::{Catchup, Overlap, Rule, Schedule};
use windlass_workflow::schedule::Timetable;
use windlass_workflow::template::render;
use windlass_workflow::{Graph, Source, Workflow, parse};

const JOBS: usize = 10_000;
/// The number of jobs in a layer. Each needs three jobs of the layer before.
const WIDTH: usize = 100;
/// 2026-01-01T00:00:00Z.
const FROM_MS: i64 = 1_767_225_600_000;
const OCCURRENCES: usize = 1_000;

fn main() {
    divan::main();
}

fn needs(job: usize) -> Vec<String> {
    let Some(layer_before) = (job / WIDTH).checked_sub(1) else { return Vec::new() };
    (0..3).map(|step| format!("job{}", layer_before * WIDTH + (job + step) % WIDTH)).collect()
}

fn toml() -> Source {
    let mut text =
        String::from("name = \"large\"\n[params]\nday = { type = \"date\", default = \"2026-01-31\" }\n");
    for job in 0..JOBS {
        let needs = json!(needs(job));
        text.push_str(&format!(
            "[jobs.job{job}]\nneeds = {needs}\ncommand = [\"echo\", \"{{{{ params.day }}}}\", \"{job}\"]\n"
        ));
    }
    Source::new("large.toml", text.into_bytes()).unwrap()
}

fn json_text() -> Source {
    let jobs: serde_json::Map<String, Value> = (0..JOBS)
        .map(|job| {
            let command = ["echo", "{{ params.day }}", &job.to_string()];
            (format!("job{job}"), json!({ "needs": needs(job), "command": command }))
        })
        .collect();
    let params = json!({ "day": { "type": "date", "default": "2026-01-31" } });
    let text = json!({ "name": "large", "params": params, "jobs": jobs }).to_string();
    Source::new("large.json", text.into_bytes()).unwrap()
}

fn large() -> Workflow {
    parse(&toml()).unwrap()
}

#[divan::bench]
fn parse_10_000_jobs_toml(bencher: Bencher<'_, '_>) {
    let source = toml();
    bencher.bench(|| parse(black_box(&source)).unwrap());
}

#[divan::bench]
fn parse_10_000_jobs_json(bencher: Bencher<'_, '_>) {
    let source = json_text();
    bencher.bench(|| parse(black_box(&source)).unwrap());
}

#[divan::bench]
fn plan_10_000_jobs(bencher: Bencher<'_, '_>) {
    let workflow = large();
    bencher.bench(|| {
        let graph = Graph::new(black_box(&workflow));
        (graph.order(), graph.layers())
    });
}

#[divan::bench(args = [
    "plain text",
    "{{ params.day }}",
    "{{ jobs.count.output.total + 1 }} of {{ params.day | replace('-', '/') }}",
    "{{ 'many' if jobs.count.output.rows | length > 10 else 'few' }}",
])]
fn templates(bencher: Bencher<'_, '_>, source: &str) {
    let context = json!({
        "params": { "day": "2026-01-31" },
        "jobs": { "count": { "output": { "total": 12, "rows": [1, 2, 3] } } },
    });
    bencher.bench(|| render(black_box(source), black_box(&context)).unwrap());
}

#[divan::bench(args = ["*/5 * * * *", "30 2 * * *", "0 9 L * *", "0 12 * * MON#2"])]
fn next_1_000_occurrences(bencher: Bencher<'_, '_>, cron: &str) {
    let timetable = Timetable::of(&schedule(cron)).unwrap();
    bencher.bench(|| timetable.after(black_box(FROM_MS)).take(OCCURRENCES).count());
}

#[divan::bench(args = ["*/5 * * * *", "30 2 * * *", "0 12 * * MON#2"])]
fn next_occurrence(bencher: Bencher<'_, '_>, cron: &str) {
    let schedule = schedule(cron);
    bencher.bench(|| Timetable::of(black_box(&schedule)).unwrap().after(FROM_MS).next());
}

fn schedule(cron: &str) -> Schedule {
    Schedule {
        name: "default".to_owned(),
        rule: Rule::Cron(cron.to_owned()),
        timezone: "Europe/Berlin".to_owned(),
        overlap: Overlap::Skip,
        catchup: Catchup::Last,
        catchup_window_ms: None,
        catchup_max: 1_000,
        start_ms: None,
        end_ms: None,
        jitter_ms: 0,
        params: Default::default(),
    }
}
