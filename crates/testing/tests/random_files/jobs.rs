//! A job drawn by chance.

use serde_json::{Map, Value as Json, json};

use crate::draw::Draw;

/// How many jobs another job needs, at most.
const NEEDS_MAX: usize = 3;
const RULES: [&str; 5] = ["all_successful", "none_failed", "any_successful", "any_failed", "all_finished"];

impl Draw {
    /// A job that may need the jobs of these names.
    pub(crate) fn job(
        &mut self,
        name: &str,
        before: &[String],
        jobs: &Map<String, Json>,
        callable: &[&'static str],
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
        self.condition(&mut job, &needs);
        if self.draws("allow_failure", 15) {
            job.insert("allow_failure".to_owned(), json!(true));
        }
        match self.number(0..=99) {
            0..=52 => self.process(name, &mut job, &needs, jobs),
            53..=64 => self.request(name, &mut job),
            65..=68 => self.sleep(&mut job),
            69..=71 => self.signal(name, &mut job),
            72..=78 => self.wait(name, &mut job),
            79..=85 => self.approval(name, &mut job),
            _ => match callable {
                [] => self.process(name, &mut job, &needs, jobs),
                [called, ..] => self.call(called, &mut job),
            },
        }
        job
    }

    fn draws_any(&mut self, percent: usize) -> bool {
        self.number(0..=99) < percent
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
                    "['SUCCESSFUL']",
                    "['FAILED']",
                    "['SKIPPED', 'FAILED']",
                    "['SUCCESSFUL', 'SKIPPED']",
                ]);
                format!("jobs.{need}.status in {ends}")
            }
            // What runs side by side in called workflows sets the same variables.
            Some(need) if !need.contains('_') && self.draws("variables", 20) => {
                format!("variables.set_by_{need} | default(-1) in [-1, 0, 200]")
            }
            Some(_) | None if self.draws("if", 15) => {
                self.one_of(&["params.flag", "not params.flag"]).to_owned()
            }
            Some(_) | None => return,
        };
        job.insert("if".to_owned(), json!(condition));
    }

    fn process(
        &mut self,
        name: &str,
        job: &mut Map<String, Json>,
        needs: &[String],
        jobs: &Map<String, Json>,
    ) {
        self.constructs.insert("run");
        job.insert("run".to_owned(), json!("true"));
        self.attempts(name, job);
        self.variable(name, "exit_code", job);
        if let Some(need) = needs.first()
            && self.draws("templates", 30)
        {
            let text = format!("{{{{ jobs.{need}.output | default('nothing') | tojson }}}}");
            job.insert("env".to_owned(), json!({ "BEFORE": text }));
        }
        if let Some(need) = needs.last()
            && self.draws("stdin", 15)
        {
            job.insert("stdin".to_owned(), json!(format!("{{{{ jobs.{need}.output | default('') }}}}")));
        }
        if self.draws("secrets", 10) {
            job.insert("secrets".to_owned(), json!(["TOKEN"]));
        }
        if self.draws("concurrency", 10) {
            job.insert("concurrency".to_owned(), json!({ "key": "one", "limit": 1, "on_full": "wait" }));
        }
        let is_repeated = job.contains_key("repeat");
        if !is_repeated && self.draws_any(30) {
            self.items(job, needs, jobs);
        }
    }

    /// A variable that the job sets. Jobs of called workflows run several times, side by side, so theirs always get the same
    /// value.
    fn variable(&mut self, name: &str, value: &str, job: &mut Map<String, Json>) {
        if self.draws("set_variables", 30) {
            let value = if name.contains('_') { "'set'" } else { value };
            let variable = format!("set_by_{name}");
            job.insert("set_variables".to_owned(), json!({ variable: value }));
        }
    }

    /// How the attempts of a process end, and what the job makes of it.
    fn attempts(&mut self, name: &str, job: &mut Map<String, Json>) {
        let number = self.number(1..=3);
        let mut codes: Vec<u8> = (0..number).map(|_attempt| self.one_of(&[0, 0, 0, 0, 1, 3, 99])).collect();
        if self.draws("retry", 45) {
            let mut retry = json!({ "max_attempts": self.number(2..=4), "delay": "90s", "factor": 2 });
            if self.draws("retry.if", 30) {
                retry["if"] = json!("exit_code != 3");
            }
            job.insert("retry".to_owned(), retry);
        }
        if self.draws("success_if", 12) {
            job.insert("success_if".to_owned(), json!("exit_code in [0, 3]"));
        }
        if self.draws("skip_if", 12) {
            job.insert("skip_if".to_owned(), json!("exit_code == 99"));
        }
        if self.draws("deadline", 8) {
            job.insert("deadline".to_owned(), json!("300d"));
        }
        let (construct, output) =
            self.one_of(&[("output json", "json"), ("output text", "text"), ("output lines", "lines")]);
        self.constructs.insert(construct);
        job.insert("output".to_owned(), json!(output));
        if self.draws("repeat", 10) {
            codes.extend([0, 1, 3]);
            job.insert("success_if".to_owned(), json!("exit_code in [0, 3]"));
            job.insert("repeat".to_owned(), json!({ "until": "exit_code == 3", "every": "10m", "max": 6 }));
        }
        match output {
            "json" => self.fakes.add_json(name, codes),
            _ => self.fakes.add_process(name, codes),
        }
    }

    /// The items of a group.
    fn items(&mut self, job: &mut Map<String, Json>, needs: &[String], jobs: &Map<String, Json>) {
        let mut items = match self.listing(needs, jobs) {
            Some(need) if self.draws("for_each output", 70) => json!({ "in": format!("jobs.{need}.output") }),
            Some(_) | None => match self.number(0..=2) {
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
            },
        };
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

    /// A needed job whose output is a list.
    fn listing(&mut self, needs: &[String], jobs: &Map<String, Json>) -> Option<String> {
        let lists = |name: &&String| {
            let output = jobs[*name].get("output").and_then(Json::as_str);
            matches!(output, Some("json" | "lines"))
        };
        needs.iter().find(lists).cloned()
    }

    fn request(&mut self, name: &str, job: &mut Map<String, Json>) {
        self.constructs.insert("http");
        // Longer than any attempt takes, so that its duration does not decide how it ends.
        let request = json!({ "url": "https://example.com/{{ run.workflow }}", "timeout": "1d" });
        job.insert("http".to_owned(), request);
        let number = self.number(1..=3);
        let statuses = (0..number).map(|_attempt| self.one_of(&[200, 200, 200, 404, 503])).collect();
        self.fakes.add_request(name, statuses);
        self.variable(name, "status", job);
        if self.draws("retry", 60) {
            job.insert("retry".to_owned(), json!({ "max_attempts": 3, "delay": "20s" }));
        }
        if self.draws("success_if", 20) {
            job.insert("success_if".to_owned(), json!("status in [200, 404]"));
        }
    }

    fn sleep(&mut self, job: &mut Map<String, Json>) {
        self.constructs.insert("sleep");
        let sleep = match self.draws("sleep until", 40) {
            true => json!({ "until": self.one_of(&["2026-01-01T02:00:00Z", "2026-01-03T00:00:00Z"]) }),
            false => json!(self.one_of(&["3h", "2d"])),
        };
        job.insert("sleep".to_owned(), sleep);
    }

    fn signal(&mut self, name: &str, job: &mut Map<String, Json>) {
        self.constructs.insert("signal");
        let payload = json!({ "by": "{{ run.workflow }}" });
        job.insert("signal".to_owned(), json!({ "event": format!("sent-{name}"), "payload": payload }));
    }

    fn wait(&mut self, name: &str, job: &mut Map<String, Json>) {
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
    }

    fn approval(&mut self, name: &str, job: &mut Map<String, Json>) {
        self.constructs.insert("approval");
        let mut approval = json!({ "prompt": "Go?" });
        if !self.is_never(&mut approval) {
            let is_rejected = self.draws("reject", 30);
            self.fakes.add_approval(name, is_rejected);
        }
        job.insert("approval".to_owned(), approval);
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

    fn call(&mut self, called: &str, job: &mut Map<String, Json>) {
        self.constructs.insert("call");
        job.insert("workflow".to_owned(), json!(called));
        if self.draws("params of a call", 40) {
            job.insert("params".to_owned(), json!({ "list": ["{{ params.flag }}", "u"] }));
        }
        if self.draws("retry", 20) {
            job.insert("retry".to_owned(), json!({ "max_attempts": 2, "delay": "1m" }));
        }
        if self.draws("for_each call", 40) {
            job.insert("for_each".to_owned(), json!({ "in": "params.list", "max_parallel": 2 }));
        }
    }
}
