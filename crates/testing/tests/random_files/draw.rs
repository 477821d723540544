//! A workflow file drawn by chance, with what happens to its jobs.

use std::collections::BTreeSet;

use serde_json::{Map, Value as Json, json};

use crate::fakes::{Durations, Fakes};
use crate::held::{CASE_LIMIT, Callable, Ender};
use crate::workflows::Scope;

/// A workflow and its case.
pub(crate) struct Drawn {
    pub(crate) workflow: Json,
    pub(crate) constructs: BTreeSet<&'static str>,
    pub(crate) fakes: Fakes,
    /// Whether a person cancels the run.
    is_cancelled: bool,
}

/// Chance, and what it has drawn.
pub(crate) struct Draw {
    random: fastrand::Rng,
    pub(crate) constructs: BTreeSet<&'static str>,
    pub(crate) fakes: Fakes,
}

impl Draw {
    /// True in so many of a hundred cases. If it is, the construct counts as drawn.
    pub(crate) fn draws(&mut self, construct: &'static str, percent: usize) -> bool {
        let is_drawn = self.draws_any(percent);
        if is_drawn {
            self.constructs.insert(construct);
        }
        is_drawn
    }

    pub(crate) fn draws_any(&mut self, percent: usize) -> bool {
        self.number(0..=99) < percent
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
        let (workflow, is_cancelled) = draw.file();
        Drawn {
            workflow: Json::Object(workflow),
            constructs: draw.constructs,
            fakes: draw.fakes,
            is_cancelled,
        }
    }

    /// The test file.
    pub(crate) fn case_text(&self, durations: Durations) -> Json {
        let params = json!({ "flag": true, "list": ["x", "y", "z"] });
        let (jobs, approvals, events) = self.fakes.of(&self.workflow, durations);
        let mut case = json!({
            "name": "drawn", "params": params, "variables": { "start": 1 }, "jobs": jobs, "approvals": approvals,
            "events": events,
        });
        if self.is_cancelled {
            case["cancel_after"] = json!(CASE_LIMIT);
        }
        json!({ "case": [case] })
    }
}

impl Draw {
    /// The file, and whether a person cancels the run.
    fn file(&mut self) -> (Map<String, Json>, bool) {
        let ender = self.ender_of_case();
        let holds_handler = ender == Ender::Nothing && self.draws("handler cancelled", 10);
        // What ends a called workflow comes late too, and must not meet what ends the run.
        let mut ender_of_called = || match holds_handler {
            true => Ender::Nothing,
            false => self.ender_of_called(ender),
        };
        let inner = Callable { name: "inner", prefix: "inner_", ender: ender_of_called(), limit: "3000d" };
        let deep = Callable { name: "deep", prefix: "deep_", ender: ender_of_called(), limit: "232d" };
        let mut workflow = self.workflow(&Scope { prefix: "", ender, callable: Some(inner) });
        if holds_handler {
            self.held_handler(&mut workflow);
        }
        if ender == Ender::TimeoutOfCase {
            workflow.insert("timeout".to_owned(), json!(CASE_LIMIT));
        }
        let mut workflows = Map::new();
        for (called, callable) in [(inner, Some(deep)), (deep, None)] {
            let mut drawn = self.workflow(&Scope { prefix: called.prefix, ender: called.ender, callable });
            if called.ender == Ender::OwnTimeout {
                drawn.insert("timeout".to_owned(), json!(called.limit));
            }
            workflows.insert(called.name.to_owned(), Json::Object(drawn));
        }
        self.crowd_of_runs(&mut workflow, &mut workflows);
        workflow.insert("name".to_owned(), json!("random"));
        workflow.insert("secrets".to_owned(), json!({ "TOKEN": {} }));
        if calls(&workflow["jobs"]) && calls(&workflows["inner"]["jobs"]) {
            self.constructs.insert("workflows in workflows");
        }
        workflow.insert("workflows".to_owned(), Json::Object(workflows));
        (workflow, ender == Ender::Person || holds_handler)
    }
}

fn calls(jobs: &Json) -> bool {
    jobs.as_object().is_some_and(|jobs| jobs.values().any(|job| job.get("workflow").is_some()))
}

impl std::fmt::Display for Drawn {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "\n{:#}\n{:#}", self.workflow, self.case_text(Durations::Equal))
    }
}
