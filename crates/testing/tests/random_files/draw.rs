//! A workflow file drawn by chance, with what happens to its jobs.

use std::collections::BTreeSet;

use serde_json::{Map, Value as Json, json};

use crate::fakes::Fakes;

/// Everything that a file is drawn from.
pub(crate) const CONSTRUCTS: [&str; 48] = [
    "all_finished",
    "all_successful",
    "allow_failure",
    "any_failed",
    "any_successful",
    "approval",
    "call",
    "concurrency",
    "concurrency of runs",
    "deadline",
    "fail_fast",
    "finally",
    "for_each expression",
    "for_each list",
    "for_each matrix",
    "for_each output",
    "for_each call",
    "http",
    "if",
    "if reads a job",
    "max_parallel",
    "none_failed",
    "on_failure",
    "on_success",
    "on_timeout",
    "outputs",
    "output lines",
    "output json",
    "output text",
    "params of a call",
    "reject",
    "repeat",
    "retry",
    "retry.if",
    "run",
    "secrets",
    "signal",
    "set_variables",
    "skip_if",
    "sleep",
    "sleep until",
    "stdin",
    "success_if",
    "templates",
    "variables",
    "wait_for",
    "wait_for key",
    "workflows in workflows",
];

/// How many jobs a workflow has, at most.
const JOBS_MAX: usize = 6;

/// A workflow and its case.
pub(crate) struct Drawn {
    pub(crate) workflow: Json,
    pub(crate) constructs: BTreeSet<&'static str>,
    pub(crate) fakes: Fakes,
}

/// Chance, and what it has drawn.
pub(crate) struct Draw {
    random: fastrand::Rng,
    pub(crate) constructs: BTreeSet<&'static str>,
    pub(crate) fakes: Fakes,
}

impl Draw {
    /// True in so many of a hundred cases. If it is, the construct counts as drawn.
    pub(crate) fn draws(&mut self, construct: &'static str, percent: u8) -> bool {
        let is_drawn = self.random.u8(0..100) < percent;
        if is_drawn {
            self.constructs.insert(construct);
        }
        is_drawn
    }

    pub(crate) fn number(&mut self, range: std::ops::RangeInclusive<usize>) -> usize {
        self.random.usize(range)
    }

    pub(crate) fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.random.usize(0..choices.len())]
    }
}

impl Drawn {
    pub(crate) fn from_seed(seed: u64) -> Drawn {
        let mut draw = Draw {
            random: fastrand::Rng::with_seed(seed),
            constructs: BTreeSet::new(),
            fakes: Fakes::default(),
        };
        let mut workflow = draw.workflow(&["inner"], "");
        let inner = draw.called("inner", &["deep"]);
        let deep = draw.called("deep", &[]);
        workflow.insert("name".to_owned(), json!("random"));
        workflow.insert("secrets".to_owned(), json!({ "TOKEN": {} }));
        workflow.insert("workflows".to_owned(), json!({ "inner": inner, "deep": deep }));
        if inner_calls(&workflow) {
            draw.constructs.insert("workflows in workflows");
        }
        Drawn { workflow: Json::Object(workflow), constructs: draw.constructs, fakes: draw.fakes }
    }

    /// The test file. Durations are drawn from a seed of their own.
    pub(crate) fn case_text(&self, durations: u64) -> Json {
        let params = json!({ "flag": true, "list": ["x", "y", "z"] });
        let (jobs, approvals, events) = self.fakes.of(&self.workflow, durations);
        json!({ "case": [{ "name": "drawn", "params": params, "jobs": jobs, "approvals": approvals, "events": events }] })
    }
}

fn inner_calls(workflow: &Map<String, Json>) -> bool {
    let calls = |jobs: &Json| {
        jobs.as_object().is_some_and(|jobs| jobs.values().any(|job| job.get("workflow").is_some()))
    };
    calls(&workflow["jobs"]) && calls(&workflow["workflows"]["inner"]["jobs"])
}

impl Draw {
    /// A workflow whose jobs may call these.
    fn workflow(&mut self, callable: &[&'static str], prefix: &str) -> Map<String, Json> {
        let mut workflow = Map::new();
        let params = json!({ "flag": { "type": "boolean", "default": true }, "list": { "type": "list", "default": ["p", "q"] } });
        workflow.insert("params".to_owned(), params);
        let number = self.number(1..=JOBS_MAX);
        let (mut jobs, mut names) = (Map::new(), Vec::new());
        for index in 0..number {
            let name = format!("{prefix}j{index}");
            let job = self.job(&name, &names, &jobs, callable);
            jobs.insert(name.clone(), Json::Object(job));
            names.push(name);
        }
        if self.draws("outputs", 50) {
            let read = self.one_of(&names.iter().map(String::as_str).collect::<Vec<_>>()).to_owned();
            workflow.insert("outputs".to_owned(), json!({ "end": format!("jobs.{read}.status") }));
        }
        workflow.insert("jobs".to_owned(), Json::Object(jobs));
        if self.draws("concurrency of runs", 25) {
            // Child runs of one workflow wait for each other, and those below them share the slot.
            let limit = self.number(1..=2);
            workflow.insert("concurrency".to_owned(), json!({ "limit": limit }));
        }
        for (phase, construct) in
            [("on_success", "on_success"), ("on_failure", "on_failure"), ("finally", "finally")]
        {
            if self.draws(construct, 30) {
                let name = format!("{prefix}{phase}");
                let handler = json!({ "run": "true", "retry": 2, "timeout": "1d", "env": { "FAILED": "{{ run.failed | join(' ') }}" } });
                self.fakes.add_process(&name, vec![0]);
                workflow.insert(phase.to_owned(), json!({ name: handler }));
            }
        }
        workflow
    }

    /// A workflow that others call.
    fn called(&mut self, name: &str, callable: &[&'static str]) -> Json {
        Json::Object(self.workflow(callable, &format!("{name}_")))
    }
}

impl std::fmt::Display for Drawn {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "\n{:#}\n{:#}", self.workflow, self.case_text(0))
    }
}
