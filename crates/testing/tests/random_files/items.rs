//! The items of a job, drawn by chance.

use serde_json::{Map, Value as Json, json};

use crate::draw::Draw;
use crate::fakes::Attempt::Exit;

impl Draw {
    /// The items of a group.
    pub(crate) fn items(&mut self, job: &mut Map<String, Json>, needs: &[String], jobs: &Map<String, Json>) {
        let mut items = match listing(needs, jobs) {
            Some(need) if self.draws("for_each output", 70) => json!({ "in": format!("jobs.{need}.output") }),
            Some(_) | None => self.known_items(),
        };
        if self.draws("for_each limit", 10) {
            items["limit"] = json!(2);
        }
        if self.draws("max_parallel", 50) {
            let max_parallel = self.number(1..=2);
            items["max_parallel"] = json!(max_parallel);
            // Of items side by side, durations decide which of them have begun when the first one fails.
            if max_parallel == 1 && self.draws("fail_fast", 50) {
                items["fail_fast"] = json!(true);
            }
        }
        job.insert("for_each".to_owned(), items);
    }

    fn known_items(&mut self) -> Json {
        match self.number(0..=2) {
            0 => {
                self.constructs.insert("for_each list");
                json!({ "in": ["a", "b"] })
            }
            1 => {
                self.constructs.insert("for_each expression");
                json!({ "in": "params.list" })
            }
            _ => {
                self.constructs.insert("for_each matrix");
                json!({ "matrix": { "a": ["1", "2"], "b": ["x", "y"] }, "exclude": [{ "a": "1", "b": "y" }] })
            }
        }
    }

    /// Items that have no slot and do not wait for one. They begin at one instant, and no other job has their key.
    pub(crate) fn crowd_of_items(&mut self, name: &str, job: &mut Map<String, Json>) {
        job.insert("run".to_owned(), json!("true"));
        job.insert("for_each".to_owned(), json!(["a", "b", "c"]));
        job.insert("retry".to_owned(), json!({ "max_attempts": 2, "delay": "1m" }));
        let (construct, on_full) =
            self.one_of(&[("on_full skip", "skip"), ("on_full cancel_oldest", "cancel_oldest")]);
        self.constructs.insert(construct);
        let concurrency = json!({ "key": format!("crowd-{name}"), "limit": 1, "on_full": on_full });
        job.insert("concurrency".to_owned(), concurrency);
        let attempts = if self.draws_any(40) { vec![Exit(1), Exit(0)] } else { vec![Exit(0)] };
        self.fakes.add(name, attempts, json!("text"));
    }
}

/// A needed job whose output is a list.
fn listing(needs: &[String], jobs: &Map<String, Json>) -> Option<String> {
    let lists = |name: &&String| {
        let output = jobs[*name].get("output").and_then(Json::as_str);
        matches!(output, Some("json" | "lines"))
    };
    needs.iter().find(lists).cloned()
}
