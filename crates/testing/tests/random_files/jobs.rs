//! A job drawn by chance.

use serde_json::{Map, Value as Json, json};

use crate::draw::Draw;
use crate::held::{Callable, Ender};
use crate::workflows::Scope;

/// How many jobs another job needs, at most.
const NEEDS_MAX: usize = 3;
pub(crate) const RULES: [&str; 5] =
    ["all_successful", "none_failed", "any_successful", "any_failed", "all_finished"];

impl Draw {
    /// A job that may need the jobs of these names.
    pub(crate) fn job(
        &mut self,
        name: &str,
        before: &[String],
        jobs: &Map<String, Json>,
        scope: &Scope,
    ) -> Map<String, Json> {
        let mut job = Map::new();
        let needs = self.needs(before);
        if !needs.is_empty() {
            job.insert("needs".to_owned(), json!(needs));
            if self.draws_any(35) {
                let rule = self.one_of(&RULES);
                self.constructs.insert(rule);
                job.insert("when".to_owned(), json!(rule));
            }
        }
        let is_first = before.is_empty();
        if scope.ender != Ender::Nothing && (is_first || self.draws_any(15)) {
            self.held(name, &mut job);
            return job;
        }
        self.condition(&mut job, &needs);
        if self.draws("allow_failure", 15) {
            job.insert("allow_failure".to_owned(), json!(true));
        }
        self.action(name, &mut job, &needs, jobs, scope);
        job
    }

    fn action(
        &mut self,
        name: &str,
        job: &mut Map<String, Json>,
        needs: &[String],
        jobs: &Map<String, Json>,
        scope: &Scope,
    ) {
        match self.number(0..=99) {
            0..=6 if !scope.is_called() => self.crowd_of_items(name, job),
            0..=47 => self.process(name, job, needs, jobs),
            48..=60 => self.request(name, job),
            61..=65 => self.sleep(job),
            66..=69 => self.signal(name, job),
            70..=78 => self.wait(name, job),
            79..=85 => self.approval(name, job),
            _ => match scope.callable {
                None => self.process(name, job, needs, jobs),
                Some(called) => self.call(called, job),
            },
        }
    }

    fn needs(&mut self, before: &[String]) -> Vec<String> {
        let number = self.number(0..=NEEDS_MAX.min(before.len()));
        let mut needs: Vec<String> = Vec::new();
        for _need in 0..number {
            let need = before[self.number(0..=before.len() - 1)].clone();
            if !needs.contains(&need) {
                needs.push(need);
            }
        }
        needs
    }

    fn condition(&mut self, job: &mut Map<String, Json>, needs: &[String]) {
        let condition = match needs.first() {
            Some(need) if self.draws("if reads a job", 20) => {
                let ends = self.one_of(&[
                    ".status in ['SUCCESSFUL']",
                    ".status in ['FAILED']",
                    ".status in ['SKIPPED', 'FAILED', 'CANCELLED']",
                    ".status in ['SUCCESSFUL', 'SKIPPED']",
                    ".failures > 0",
                    ".exit_code in [0, 99]",
                    ".error is none",
                ]);
                format!("jobs.{need}{ends}")
            }
            // What runs side by side in called workflows sets the same variables.
            Some(need) if !need.contains('_') && self.draws("variables", 20) => {
                format!("variables.set_by_{need} | default(-1) in [-1, 0, 200]")
            }
            Some(_) | None if self.draws("if", 15) => self
                .one_of(&["params.flag", "not params.flag", "params.rows > 9 and params.title is none"])
                .to_owned(),
            Some(_) | None => return,
        };
        job.insert("if".to_owned(), json!(condition));
    }

    pub(crate) fn call(&mut self, called: Callable, job: &mut Map<String, Json>) {
        self.constructs.insert("call");
        job.insert("workflow".to_owned(), json!(called.name));
        if self.draws("params of a call", 40) {
            let params =
                json!({ "list": ["{{ params.flag }}", "u"], "rows": "{{ params.rows }}", "mode": "full" });
            job.insert("params".to_owned(), params);
        }
        if self.draws("retry", 20) {
            job.insert("retry".to_owned(), json!({ "max_attempts": 2, "delay": "1m" }));
        }
        if self.draws("for_each call", 40) {
            job.insert("for_each".to_owned(), json!({ "in": "params.list", "max_parallel": 2 }));
        }
        match called.ender {
            Ender::TimeoutOfCall => job.insert("timeout".to_owned(), json!(called.limit)),
            Ender::DeadlineOfCall => job.insert("deadline".to_owned(), json!(called.limit)),
            Ender::Nothing | Ender::Person | Ender::TimeoutOfCase | Ender::OwnTimeout => None,
        };
    }
}
