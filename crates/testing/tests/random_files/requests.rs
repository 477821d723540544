//! A request drawn by chance.

use serde_json::{Map, Value as Json, json};

use crate::draw::Draw;
use crate::fakes::Attempt::{self, Answer, Endless, NoAnswer};

impl Draw {
    pub(crate) fn request(&mut self, name: &str, job: &mut Map<String, Json>) {
        self.constructs.insert("http");
        // Longer than any attempt that ends by itself, so that its duration does not decide how it ends.
        let mut request = json!({ "url": "https://example.com/{{ run.workflow }}", "timeout": "1d" });
        let answers = [Answer(200), Answer(200), Answer(200), Answer(404), Answer(503)];
        let number = self.number(1..=3);
        let mut attempts: Vec<Attempt> = (0..number).map(|_attempt| self.one_of(&answers)).collect();
        if self.draws("http timeout", 12) {
            request["timeout"] = json!("4h");
            attempts.insert(0, Endless);
        }
        if self.draws("http without an answer", 12) {
            attempts.insert(0, NoAnswer);
        }
        self.contents(&mut request);
        job.insert("http".to_owned(), request);
        self.fakes.add(name, attempts, json!({ "ok": true }));
        self.variable(name, "status", job);
        if self.draws("retry", 60) {
            job.insert("retry".to_owned(), json!({ "max_attempts": 3, "delay": "20s" }));
        }
        if self.draws("success_if", 20) {
            job.insert("success_if".to_owned(), json!("status in [200, 404]"));
        }
    }

    /// What is sent, and where the answer goes.
    fn contents(&mut self, request: &mut Json) {
        if self.draws("http body", 25) {
            request["method"] = json!(self.one_of(&["POST", "PUT"]));
            request["json"] = json!({ "rows": "{{ params.rows }}" });
            request["headers"] = json!({ "X-Mode": "{{ params.mode }}" });
            request["query"] = json!({ "day": "{{ params.day }}" });
            request["auth"] = json!({ "bearer": "{{ secrets.TOKEN }}" });
        }
        if self.draws("http save", 12) {
            request["save"] = json!("out/{{ params.mode }}.bin");
        }
    }
}
