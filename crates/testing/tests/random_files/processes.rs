//! A job that starts a process, drawn by chance.

use serde_json::{Map, Value as Json, json};

use crate::draw::Draw;
use crate::fakes::Attempt::{self, Endless, Exit, Signal};

/// Longer than any attempt that ends by itself.
const TIMEOUT: &str = "5h";

impl Draw {
    pub(crate) fn process(
        &mut self,
        name: &str,
        job: &mut Map<String, Json>,
        needs: &[String],
        jobs: &Map<String, Json>,
    ) {
        self.program(job);
        self.attempts(name, job);
        self.variable(name, "exit_code", job);
        self.texts(job, needs);
        self.files(job, needs, jobs);
        self.place(job);
        // The time for which a job waits for its slot is a part of its deadline.
        if !job.contains_key("deadline") && self.draws("concurrency", 10) {
            job.insert("concurrency".to_owned(), json!({ "key": "one", "limit": 1, "on_full": "wait" }));
        }
        if !job.contains_key("repeat") && self.draws_any(30) {
            self.items(job, needs, jobs);
        }
    }

    fn program(&mut self, job: &mut Map<String, Json>) {
        if self.draws("command", 15) {
            job.insert("command".to_owned(), json!(["echo", "{{ params.list | join(',') }}"]));
            return;
        }
        self.constructs.insert("run");
        job.insert("run".to_owned(), json!("true"));
        if self.draws("shell", 5) {
            job.insert("shell".to_owned(), json!("bash -eu"));
        }
    }

    /// A variable that the job sets. Jobs of called workflows run several times, side by side, so theirs always get the same
    /// value.
    pub(crate) fn variable(&mut self, name: &str, value: &str, job: &mut Map<String, Json>) {
        if self.draws("set_variables", 30) {
            let value = if name.contains('_') { "'set'" } else { value };
            let variable = format!("set_by_{name}");
            job.insert("set_variables".to_owned(), json!({ variable: value }));
        }
    }

    /// How the attempts of a process end, and what the job makes of it.
    fn attempts(&mut self, name: &str, job: &mut Map<String, Json>) {
        let number = self.number(1..=3);
        let ends = [Exit(0), Exit(0), Exit(0), Exit(0), Exit(1), Exit(3), Exit(99)];
        let mut attempts: Vec<Attempt> = (0..number).map(|_attempt| self.one_of(&ends)).collect();
        if self.draws("killed by a signal", 8) {
            attempts.insert(0, Signal(9));
        }
        self.retry(job);
        if self.draws("success_if", 12) {
            job.insert("success_if".to_owned(), json!("exit_code in [0, 3]"));
        }
        if self.draws("skip_if", 12) {
            job.insert("skip_if".to_owned(), json!("exit_code == 99"));
        }
        match self.number(0..=99) {
            0..=5 => {
                self.constructs.insert("deadline");
                job.insert("deadline".to_owned(), json!("300d"));
            }
            6..=11 => self.passing_deadline(job, &mut attempts),
            12..=23 => self.timeout(job, &mut attempts),
            _ => self.repeat(job, &mut attempts),
        }
        let output = self.output(job);
        self.fakes.add(name, attempts, output);
    }

    fn retry(&mut self, job: &mut Map<String, Json>) {
        if !self.draws("retry", 45) {
            return;
        }
        let mut retry = json!({ "max_attempts": self.number(2..=4), "delay": "90s", "factor": 2 });
        if self.draws("retry.if", 20) {
            retry["if"] = json!("exit_code != 3");
        } else if self.draws("retry.if timed_out", 20) {
            retry["if"] = json!("not timed_out and signal is none");
        }
        job.insert("retry".to_owned(), retry);
    }

    fn repeat(&mut self, job: &mut Map<String, Json>, attempts: &mut Vec<Attempt>) {
        if !self.draws("repeat", 12) {
            return;
        }
        attempts.extend([Exit(0), Exit(1), Exit(3)]);
        job.insert("success_if".to_owned(), json!("exit_code in [0, 3]"));
        let mut repeat = json!({ "until": "exit_code == 3", "every": "10m", "max": 6 });
        if self.draws("repeat max", 30) {
            repeat = json!({ "until": "exit_code == 77", "every": "10m", "max": 2 });
        }
        job.insert("repeat".to_owned(), repeat);
    }

    /// A timeout of attempts, which passes in some cases.
    fn timeout(&mut self, job: &mut Map<String, Json>, attempts: &mut Vec<Attempt>) {
        self.constructs.insert("timeout");
        job.insert("timeout".to_owned(), json!(TIMEOUT));
        if self.draws("timeout that passes", 60) {
            let place = self.number(0..=attempts.len());
            attempts.insert(place, Endless);
        }
    }

    /// A deadline that passes during an attempt, a pause before a retry, or a pause of a repetition.
    fn passing_deadline(&mut self, job: &mut Map<String, Json>, attempts: &mut Vec<Attempt>) {
        self.constructs.insert("deadline that passes");
        job.insert("deadline".to_owned(), json!("30d"));
        job.remove("skip_if");
        match self.number(0..=2) {
            0 => *attempts = vec![Endless],
            1 => {
                *attempts = vec![Exit(1)];
                let retry = json!({ "max_attempts": 3, "delay": "40d", "jitter": 0 });
                job.insert("retry".to_owned(), retry);
            }
            _ => {
                *attempts = vec![Exit(0)];
                job.insert("repeat".to_owned(), json!({ "until": "exit_code == 77", "every": "11d" }));
            }
        }
    }

    fn output(&mut self, job: &mut Map<String, Json>) -> Json {
        let (construct, output) =
            self.one_of(&[("output json", "json"), ("output text", "text"), ("output lines", "lines")]);
        self.constructs.insert(construct);
        job.insert("output".to_owned(), json!(output));
        if output == "json" { json!(["m", "n"]) } else { json!("text") }
    }

    fn texts(&mut self, job: &mut Map<String, Json>, needs: &[String]) {
        let mut env = Map::new();
        if let Some(need) = needs.first()
            && self.draws("templates", 30)
        {
            let text = format!(
                "{{{{ jobs.{need}.output | default('nothing') | tojson }}}} {{{{ jobs.{need}.failures }}}}"
            );
            env.insert("BEFORE".to_owned(), json!(text));
        }
        if self.draws("params of all types", 10) {
            let text = "{{ params.day | date('%d.%m.%Y', days=1) }} {{ params.at }} {{ params.pause }} {{ params.rate }} \
                        {{ params.mode | upper }} {{ params.title | default('none') }}";
            env.insert("PARAMS".to_owned(), json!(text));
        }
        if !env.is_empty() {
            job.insert("env".to_owned(), Json::Object(env));
        }
        if let Some(need) = needs.last()
            && self.draws("stdin", 15)
        {
            job.insert("stdin".to_owned(), json!(format!("{{{{ jobs.{need}.output | default('') }}}}")));
        }
        if self.draws("secrets", 10) {
            job.insert("secrets".to_owned(), json!(["TOKEN"]));
        }
    }

    /// Files that a process would keep or get.
    fn files(&mut self, job: &mut Map<String, Json>, needs: &[String], jobs: &Map<String, Json>) {
        if self.draws("artifacts", 15) {
            let artifacts = json!(["out/*.csv", { "glob": "{{ params.mode }}.html", "required": true }]);
            job.insert("artifacts".to_owned(), artifacts);
        }
        let keeps = |need: &&String| jobs[*need].get("artifacts").is_some();
        if let Some(need) = needs.iter().find(keeps)
            && self.draws("inputs", 70)
        {
            job.insert("inputs".to_owned(), json!({ "parts/": format!("jobs.{need}/out/*.csv") }));
        }
        if self.draws("dir", 5) {
            job.insert("dir".to_owned(), json!("below/{{ run.workflow }}"));
        }
        if self.draws("env_files", 5) {
            job.insert("env_files".to_owned(), json!([".env", "?local.env"]));
        }
        if !job.contains_key("shell") && self.draws("container", 5) {
            job.insert("container".to_owned(), json!({ "image": "alpine:{{ params.rows }}" }));
        }
    }

    /// Where a process is executed, and what its interruption means.
    fn place(&mut self, job: &mut Map<String, Json>) {
        if self.draws("queue and priority", 10) {
            job.insert("queue".to_owned(), json!("other"));
            job.insert("priority".to_owned(), json!("high"));
        }
        if self.draws("requires and code_version", 8) {
            job.insert("requires".to_owned(), json!(["gpu"]));
            job.insert("code_version".to_owned(), json!(3));
        }
        if self.draws("on_interrupt", 3) {
            job.insert("on_interrupt".to_owned(), json!("fail"));
        } else if self.draws("max_interruptions", 8) {
            job.insert("max_interruptions".to_owned(), json!(2));
        }
    }
}
