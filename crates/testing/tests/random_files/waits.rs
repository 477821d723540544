//! Jobs that no worker executes, drawn by chance.

use serde_json::{Map, Value as Json, json};

use crate::draw::Draw;
use crate::fakes::Decision;

impl Draw {
    pub(crate) fn sleep(&mut self, job: &mut Map<String, Json>) {
        self.constructs.insert("sleep");
        let sleep = match self.draws("sleep until", 40) {
            true => json!({ "until": self.one_of(&["2026-01-01T02:00:00Z", "2026-01-03T00:00:00Z"]) }),
            false => json!(self.one_of(&["3h", "2d", "{{ params.pause }}"])),
        };
        job.insert("sleep".to_owned(), sleep);
        self.items_that_wait(job);
    }

    pub(crate) fn signal(&mut self, name: &str, job: &mut Map<String, Json>) {
        self.constructs.insert("signal");
        let payload = json!({ "by": "{{ run.workflow }}" });
        let mut signal = json!({ "event": format!("sent-{name}"), "payload": payload });
        if self.draws("signal key", 40) {
            signal["key"] = json!("{{ params.mode }}");
        }
        job.insert("signal".to_owned(), signal);
        self.items_that_wait(job);
    }

    pub(crate) fn wait(&mut self, name: &str, job: &mut Map<String, Json>) {
        self.constructs.insert("wait_for");
        let mut wait = json!({ "event": name });
        let key = self.draws("wait_for key", 40).then_some("random");
        if let Some(key) = key {
            wait["key"] = json!(key);
        }
        if !self.is_never(&mut wait) {
            let after = self.one_of(&["0s", "1h", "1d"]);
            self.fakes.add_event(name, key, after);
        }
        job.insert("wait_for".to_owned(), wait);
        self.items_that_wait(job);
    }

    /// Adds a job that waits for what another job of the run sends, before or after it began to wait. The other one is executed
    /// in each case.
    pub(crate) fn conversation(&mut self, prefix: &str, jobs: &mut Map<String, Json>, names: &[String]) {
        if !self.draws("wait_for a signal of the run", 10) {
            return;
        }
        let event = format!("{prefix}told");
        let signal = json!({ "event": event, "key": "{{ params.mode }}", "payload": "{{ run.workflow }}" });
        jobs.insert(format!("{prefix}tell"), json!({ "signal": signal }));
        let mut told = json!({ "wait_for": { "event": event, "key": "{{ params.mode }}" } });
        if self.draws_any(50) {
            told["needs"] = json!([names[self.number(0..=names.len() - 1)]]);
            told["when"] = json!("all_finished");
        }
        jobs.insert(format!("{prefix}listen"), told);
    }

    pub(crate) fn approval(&mut self, name: &str, job: &mut Map<String, Json>) {
        self.constructs.insert("approval");
        let mut approval = json!({ "prompt": "Go?" });
        let has_fields = self.draws("approval fields", 30);
        if has_fields {
            approval["fields"] = json!({ "ticket": {}, "rows": { "type": "integer", "default": 3 } });
        }
        if !self.is_never(&mut approval) {
            let decision = if self.draws("reject", 30) {
                Decision::Reject
            } else if has_fields {
                Decision::ApproveWithFields
            } else {
                Decision::Approve
            };
            self.fakes.add_approval(name, decision);
        }
        job.insert("approval".to_owned(), approval);
        self.items_that_wait(job);
    }

    /// Lets a wait end by its timeout, in some cases.
    fn is_never(&mut self, wait: &mut Json) -> bool {
        let is_never = self.draws("on_timeout", 30);
        if is_never {
            wait["timeout"] = json!("5h");
            wait["on_timeout"] = json!(self.one_of(&["fail", "skip"]));
        }
        is_never
    }

    fn items_that_wait(&mut self, job: &mut Map<String, Json>) {
        if self.draws("for_each wait", 12) {
            let max_parallel = self.number(1..=3);
            job.insert("for_each".to_owned(), json!({ "in": "params.list", "max_parallel": max_parallel }));
        }
    }
}
