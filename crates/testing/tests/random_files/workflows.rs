//! The keys of a workflow, drawn by chance.

use serde_json::{Map, Value as Json, json};

use crate::draw::Draw;
use crate::fakes::Attempt;
use crate::held::{Callable, Ender};

/// How many jobs a workflow has, at most.
const JOBS_MAX: usize = 6;

/// What the jobs of a workflow are drawn with.
pub(crate) struct Scope {
    /// The beginning of the names of its jobs. It has a `_` if other workflows call this one.
    pub(crate) prefix: &'static str,
    /// What ends those of its jobs that do not end by themselves.
    pub(crate) ender: Ender,
    /// The workflow that its jobs may call.
    pub(crate) callable: Option<Callable>,
}

impl Scope {
    pub(crate) fn is_called(&self) -> bool {
        !self.prefix.is_empty()
    }
}

impl Draw {
    pub(crate) fn workflow(&mut self, scope: &Scope) -> Map<String, Json> {
        let mut workflow = Map::new();
        workflow.insert("params".to_owned(), params());
        let number = self.number(1..=JOBS_MAX);
        let (mut jobs, mut names) = (Map::new(), Vec::new());
        for index in 0..number {
            let name = format!("{}j{index}", scope.prefix);
            let job = self.job(&name, &names, &jobs, scope);
            jobs.insert(name.clone(), Json::Object(job));
            names.push(name);
        }
        self.conversation(scope.prefix, &mut jobs, &names);
        if self.draws("outputs", 50) {
            let read = self.one_of(&names.iter().map(String::as_str).collect::<Vec<_>>()).to_owned();
            workflow.insert("outputs".to_owned(), json!({ "end": format!("jobs.{read}.status") }));
        }
        workflow.insert("jobs".to_owned(), Json::Object(jobs));
        // Durations decide which of several child runs has the slot when they are ended.
        let may_wait = scope.ender == Ender::Nothing || !scope.is_called();
        if may_wait && self.draws("concurrency of runs", 25) {
            // Child runs of one workflow wait for each other, and those below them share the slot.
            let limit = self.number(1..=2);
            workflow.insert("concurrency".to_owned(), json!({ "limit": limit }));
        }
        self.surroundings(&mut workflow);
        self.handlers(&mut workflow, scope, &names);
        workflow
    }

    /// What the jobs of a workflow have in common.
    fn surroundings(&mut self, workflow: &mut Map<String, Json>) {
        if self.draws("workspace", 25) {
            let workspace = self.one_of(&["never", "on_failure", "always"]);
            workflow.insert("workspace".to_owned(), json!({ "keep": workspace }));
        }
        if self.draws("env of a workflow", 25) {
            let text = "{{ run.workflow }} {{ params.flag }} {{ variables.start }}";
            workflow.insert("env".to_owned(), json!({ "WHO": text }));
        }
        if self.draws("defaults", 15) {
            let mut defaults =
                json!({ "retry": 2, "queue": "other", "priority": "low", "max_interruptions": 4 });
            if self.draws_any(30) {
                defaults["allow_failure"] = json!(true);
            }
            workflow.insert("defaults".to_owned(), defaults);
        }
    }

    /// Runs that have no slot and do not wait for one. They begin at one instant, and only one job calls them.
    pub(crate) fn crowd_of_runs(
        &mut self,
        workflow: &mut Map<String, Json>,
        workflows: &mut Map<String, Json>,
    ) {
        let on_full = if self.draws("on_full skip of runs", 10) {
            "skip"
        } else if self.draws("on_full cancel_oldest of runs", 10) {
            "cancel_oldest"
        } else {
            return;
        };
        self.fakes.add("crowd_end", vec![Attempt::Exit(0)], json!("text"));
        let jobs = json!({ "crowd_sleep": { "sleep": "1h" }, "crowd_end": { "needs": ["crowd_sleep"], "run": "true" } });
        let concurrency = json!({ "limit": 1, "on_full": on_full });
        workflows.insert("crowd".to_owned(), json!({ "concurrency": concurrency, "jobs": jobs }));
        if let Some(jobs) = workflow.get_mut("jobs").and_then(Json::as_object_mut) {
            jobs.insert("crowded".to_owned(), json!({ "workflow": "crowd", "for_each": ["a", "b", "c"] }));
        }
    }
}

/// A parameter of each type. All have defaults, so that a call may leave them out.
fn params() -> Json {
    json!({
        "flag": { "type": "boolean", "default": true },
        "list": { "type": "list", "default": ["p", "q"] },
        "day": { "type": "date", "default": "2026-02-28" },
        "at": { "type": "datetime", "default": "2026-01-31T12:00:00+01:00" },
        "pause": { "type": "duration", "default": "90m" },
        "rows": { "type": "integer", "default": 10 },
        "rate": { "type": "number", "default": 1.5 },
        "mode": { "choices": ["full", "delta"], "default": "delta" },
        "title": { "required": false },
    })
}
